"""A model as the console shows it: its tables, its tree, a drawing where one helps, what it cost and whom it hides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from sulq.errors import SulqError
from sulq.server.console import chart, words
from sulq.server.console.api import Tree
from sulq.server.console.visit import rows
from sulq.terms import wire
from sulq.terms.privacy import Budget, Loss, Unit

SHOWN: Final = 100  # rows of a table on the page; the file has all of them
LONGEST: Final = 100_000  # characters of a tree


@dataclass(frozen=True, slots=True)
class Sheet:
    """One learned attribute: a table, and a drawing of it where it is a list or a set of points."""

    title: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    more: int
    drawn: Markup


@dataclass(frozen=True, slots=True)
class Learned:
    """A model that a job found."""

    learner: str
    tree: str  # how it draws itself, where it does
    sheets: tuple[Sheet, ...]
    spent: Loss | Budget | None
    unit: Unit | None
    guarantee: str

    @classmethod
    def of(cls, result: Tree) -> Learned | None:
        """Read a job's result; None where it is no model."""
        model = result.get("model")
        if not isinstance(model, Mapping):
            return None
        guarantee = model.get("guarantee")
        told: Tree = guarantee if isinstance(guarantee, Mapping) else {}
        return cls(
            learner=str(model.get("learner", "")),
            tree=str(result.get("text") or "")[:LONGEST],
            sheets=tuple(_sheet(item) for item in rows(result, "tables")),
            spent=words.loss(model.get("spent")),
            unit=_unit(told.get("unit")),
            guarantee=str(told.get("kind") or "dp"),
        )


def _sheet(item: Tree) -> Sheet:
    title = str(item.get("title", ""))
    found = item.get("columns")
    columns = tuple(str(name) for name in found) if isinstance(found, list) else ()
    lines = item.get("rows")
    table = [line for line in lines if isinstance(line, list)] if isinstance(lines, list) else []
    cells = tuple(tuple(_cell(cell) for cell in line) for line in table[:SHOWN])
    return Sheet(title, columns, cells, max(len(table) - SHOWN, 0), _drawn(title, columns, table))


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


def _unit(tree: object) -> Unit | None:
    try:
        found = wire.from_json(tree)
    except SulqError:
        return None
    return found if isinstance(found, Unit) else None
