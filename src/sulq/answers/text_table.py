"""A table for people to read: what was learned or published, in a terminal and on a page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

LONGEST: Final = 40  # rows of a table in a text
Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Sheet:
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
        lines = [self.columns, *(tuple(_said(cell) for cell in row) for row in self.rows[:LONGEST])]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        said = [
            "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
            for line in lines
        ]
        left = max(len(self.rows) - LONGEST, 0) + self.more
        more = [f"... {left} more rows"] if left else []
        return "\n".join([self.title, *(line.rstrip() for line in said), *more])


def cell(value: object) -> Cell:
    """A value as a cell; a number that is none (nan, infinite) is its name, as JSON has no other word for it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _said(value: Cell) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
