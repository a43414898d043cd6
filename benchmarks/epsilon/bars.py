"""A measured figure beside its bar, and the page of all of them, of which each part is a section."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "benchmarks-epsilon.md"
HEAD: Final = ("| what | sulq | beside | bar | |", "|---|---:|---|---|---|")


@dataclass(frozen=True)
class Bar:
    """One figure of ours, what it is compared with, and the bar in words; None: the peer was not run."""

    what: str
    ours: str
    beside: str
    bar: str
    met: bool | None

    def line(self) -> str:
        """A row of the page."""
        verdict = "not run" if self.met is None else "met" if self.met else "**missed**"
        return f"| {self.what} | {self.ours} | {self.beside} | {self.bar} | {verdict} |"


@dataclass(frozen=True)
class Section:
    """What one part found: its bars, and how they were measured."""

    title: str
    bars: Sequence[Bar]
    notes: Sequence[str] = ()

    @property
    def missed(self) -> int:
        """How many bars are missed."""
        return sum(bar.met is False for bar in self.bars)

    def text(self) -> str:
        """The section as Markdown."""
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        notes = [part for note in self.notes for part in ("", note)]
        rows = [bar.line() for bar in self.bars]
        return "\n".join([f"## {self.title}", "", f"Measured {today}.", "", *HEAD, *rows, *notes, ""])
