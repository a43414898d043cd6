"""The corpus: whatever tests ask of stored rows is certified, and no certificate is looser than the plan's bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sulq.compile.plan.extent import Extent, extent
from sulq.errors import SulqError
from sulq.kernel import layout
from sulq.kernel.facts import Refused
from sulq.kernel.moves import Certified
from sulq.kernel.request import Asking
from sulq.language.shape import shape
from sulq.language.tally import Tally
from sulq.sources.stored_engine import StoredEngine

loose: list[str] = []  # what a test must not leave behind


def certified(engine: StoredEngine, tallies: Sequence[Tally]) -> list[tuple[Certified | None, ...]]:
    """Of each tally what is certified of its blocks; None for what is worked out by hand."""
    found = []
    for source, tally in zip(engine.sources(tallies), tallies, strict=True):
        if source is None:
            found.append((None,) * len(tally.blocks))
        else:
            found.append(layout.of_proposal(source.proposal, engine.kernel_facts).blocks[source.tally])
    return found


def certified_groups(engine: StoredEngine, tally: Tally) -> tuple[Certified | None, ...]:
    """Likewise of groups found in the data, the number of people first."""
    found = engine.found(tally)
    if found is None:
        return (None,) * (1 + len(tally.blocks))
    return layout.of_proposal(found.proposal, engine.kernel_facts).blocks[0]


def watched(engine: StoredEngine, tallies: Sequence[Tally], *, groups: bool = False) -> None:
    """Certify what is asked; note statements without a certificate and blocks whose bound is past the plan's."""
    found = shape(tallies[0].over, engine.tables) if groups else None
    if found is not None and not found.owned and found.rows > 1:  # no plan asks for such groups: they have no people
        return
    try:
        every = [certified_groups(engine, tallies[0])[1:]] if groups else certified(engine, tallies)
    except Refused as refused:
        loose.append(f"no certificate: {refused}")
        return
    for tally, blocks in zip(tallies, every, strict=True):
        try:
            over = shape(tally.over, engine.tables)
            planned = [extent(block, over.schema) for block in tally.blocks]
        except SulqError:  # such a tally is made by a test alone: no plan has it
            continue
        for block, bound in zip(blocks, planned, strict=True):
            if block is not None and not within(block, bound, max(over.rows, 1)):
                loose.append(f"{block} is looser than {bound} for {over.rows} rows")


def watch(monkeypatch: Any) -> None:
    """Watch all engines of a test."""

    def asked(name: str, tallies: Callable[[Any], list[Tally]]) -> None:
        real = getattr(StoredEngine, name)

        def method(self: StoredEngine, tally: Any, **more: Any) -> Any:
            watched(self, tallies(tally), groups=name == "groups")
            return real(self, tally, **more)

        monkeypatch.setattr(StoredEngine, name, method)

    asked("sums", lambda tally: [tally])
    asked("sums_of", list)
    asked("groups", lambda tally: [tally])
    real = StoredEngine._asking

    @contextmanager
    def asking(self: StoredEngine, tallies: Sequence[Tally]) -> Iterator[Asking]:
        with real(self, tallies) as found:
            yield Watched(self, tallies, found)

    monkeypatch.setattr(StoredEngine, "_asking", asking)


class Watched:
    """Where certified text runs, watched."""

    def __init__(self, engine: StoredEngine, tallies: Sequence[Tally], asking: Any) -> None:
        self.engine, self.tallies, self.asking = engine, tallies, asking

    def columns(self, statements: Any) -> Any:
        watched(self.engine, self.tallies)
        return self.asking.columns(statements)

    def fold(self, asked: Any) -> Any:
        watched(self.engine, self.tallies)
        return self.asking.fold(asked)

    def groups(self, asked: Any) -> Any:
        watched(self.engine, self.tallies, groups=True)
        return self.asking.groups(asked)


def within(found: Certified, planned: Extent, rows: int) -> bool:
    """Whether the certified move is within the plan's, in every norm."""
    single, pair = found.moves.single, found.moves.pair
    return (
        found.rows <= rows
        and single.l1 <= planned.single_l1 * rows
        and single.l2_squared <= planned.single_l2_squared * rows**2
        and single.coordinate <= planned.single_coordinate * rows
        and pair.l1 <= max(planned.pair_l1, planned.single_l1) * rows
        and pair.l2_squared <= max(planned.pair_l2_squared, planned.single_l2_squared) * rows**2
    )
