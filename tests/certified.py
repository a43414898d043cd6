"""The corpus: whatever tests ask of stored rows is certified, and no certificate is looser than the plan's bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sulq.curator.engines.duckdb import StoredEngine
from sulq.curator.statistics.sums import Extent, extent
from sulq.errors import SulqError
from sulq.kernel.facts import Refused
from sulq.kernel.norms import Certified
from sulq.terms.engine import Tally
from sulq.terms.shape import shape

loose: list[str] = []  # what a test must not leave behind


def watched(engine: StoredEngine, tallies: Sequence[Tally], *, groups: bool = False) -> None:
    """Certify what is asked; note statements without a certificate and blocks whose bound is past the plan's."""
    found = shape(tallies[0].over, engine.tables) if groups else None
    if found is not None and not found.owned and found.rows > 1:  # no plan asks for such groups: they have no people
        return
    try:
        every = [engine.certified_groups(tallies[0])[1:]] if groups else engine.certified(tallies)
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
