"""TextTable: a small table of what was learned or published, for a terminal, a page or JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from sulq.display import tables
from sulq.display.numbers import UNKNOWN, plain

MAX_TEXT_ROWS: Final = 40  # rows of a table in a text
Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table: its name, the names of its columns, its rows; `more` rows are not shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: int = 0

    def to_json(self) -> dict[str, object]:
        """As a door shows it."""
        found: dict[str, object] = {
            "title": self.title, "columns": list(self.columns), "rows": [list(row) for row in self.rows],
        }  # fmt: skip
        return found | ({"more": self.more} if self.more else {})

    def text(self) -> str:
        """As a text whose columns stand below each other."""
        shown = [tuple(map(_said, row)) for row in self.rows[:MAX_TEXT_ROWS]]
        more = max(len(self.rows) - MAX_TEXT_ROWS, 0) + self.more
        return f"{self.title}\n{tables.text(self.columns, shown, more=more, right=True)}"


def cell(value: object) -> Cell:
    """A value as a cell; a number that is none is a word, as JSON has no other for it."""
    if isinstance(value, float) and not math.isfinite(value):
        return UNKNOWN if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _said(value: Cell) -> str:
    if value is None:
        return UNKNOWN
    return plain(value) if isinstance(value, float) else str(value)
