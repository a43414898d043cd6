"""The corpus: whatever tests ask of DuckDB is certified too, and no certificate is looser than the plan's bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from sulq.curator.certificates import within
from sulq.curator.engines.duckdb import DuckEngine
from sulq.curator.statistics.sums import extent
from sulq.errors import SulqError
from sulq.kernel.facts import Refused
from sulq.terms.engine import Tally
from sulq.terms.shape import shape

found: Counter[str] = Counter()  # of this process: what became of blocks
loose: list[str] = []  # what a test must not leave behind


def watched(engine: DuckEngine, tallies: Sequence[Tally], *, groups: bool = False) -> None:
    """Certify what is asked; note statements without a certificate and blocks whose bound is past the plan's."""
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
            found["without a plan"] += 1
            continue
        for block, bound in zip(blocks, planned, strict=True):
            if block is None:
                found["folded"] += 1
            elif within(block, bound, max(over.rows, 1)):
                found["certified"] += 1
            else:
                loose.append(f"{block} is looser than {bound} for {over.rows} rows")


def watch(monkeypatch: Any) -> None:
    """Watch all engines of a test."""

    def asked(name: str, tallies: Callable[[Any], list[Tally]]) -> None:
        real = getattr(DuckEngine, name)

        def method(self: DuckEngine, tally: Any, **more: Any) -> Any:
            watched(self, tallies(tally), groups=name == "groups")
            return real(self, tally, **more)

        monkeypatch.setattr(DuckEngine, name, method)

    asked("sums", lambda tally: [tally])
    asked("sums_of", list)
    asked("groups", lambda tally: [tally])
