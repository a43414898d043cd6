"""A table that a job found, as a page shows it: its first rows, and a drawing where one helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from sulq.service.console.api import Tree
from sulq.service.console.views import chart, words

SHOWN: Final = 100  # rows of a table on the page; the file has all of them


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table, and a drawing of it where it is a list or a set of points."""

    title: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    more: int
    drawn: Markup
    numbers: tuple[bool, ...]  # of each column, whether it holds nothing else


def sheet_of(item: Tree) -> Sheet:
    """A table as the API tells it."""
    title = str(item.get("title", ""))
    found = item.get("columns")
    columns = tuple(str(name) for name in found) if isinstance(found, list) else ()
    lines, more = item.get("rows"), item.get("more")
    left = more if isinstance(more, int) else 0
    table = [line for line in lines if isinstance(line, list)] if isinstance(lines, list) else []
    cells = tuple(tuple(_cell(cell) for cell in line) for line in table[:SHOWN])
    numbers = tuple(all(_number(cell) is not None for cell in _column(table, i)) for i in range(len(columns)))
    return Sheet(title, columns, cells, max(len(table) - SHOWN, 0) + left, _drawn(title, columns, table), numbers)


def _column(table: list[list[object]], place: int) -> list[object]:
    return [line[place] for line in table[:SHOWN] if place < len(line) and line[place] is not None]


def _drawn(title: str, columns: tuple[str, ...], table: list[list[object]]) -> Markup:
    """Bars for a list of numbers, points for the centres of clusters; nothing where a drawing would not help."""
    if title == "cluster centers" and len(columns) > 2:
        found = [(str(line[0]), _number(line[1]), _number(line[2])) for line in table if len(line) == len(columns)]
        points = [(name, x, y) for name, x, y in found if x is not None and y is not None]
        return chart.points(points, title=title, x=columns[1], y=columns[2])
    if len(columns) != 2 or not 2 <= len(table) <= chart.MOST or title == "Summary":
        return Markup()
    pairs = [(str(line[0]), _number(line[1])) for line in table if len(line) == 2]
    return chart.bars([chart.Bar(name, value, None, None) for name, value in pairs if value is not None], title=title)


def _number(cell: object) -> float | None:
    return float(cell) if isinstance(cell, (int, float)) and not isinstance(cell, bool) else None


def _cell(cell: object) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return words.number(cell)
