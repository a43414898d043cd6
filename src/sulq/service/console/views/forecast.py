"""What the API foretells of a query: its price and how far off each column may be."""

from __future__ import annotations

from dataclasses import dataclass

from sulq.language.privacy import Budget, Loss
from sulq.service.console.api import Tree
from sulq.service.console.views.words import loss, number, off


@dataclass(frozen=True, slots=True)
class Column:
    """How far one column may be off: one width, or one for each number of rows a group might have."""

    name: str
    off: str
    cases: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A query before it is asked."""

    price: Loss | Budget | None
    columns: tuple[Column, ...]
    level: float
    notes: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, tree: Tree) -> Foreseen:
        """Read what /explain says."""
        beta = tree.get("beta")
        rows = _numbers(tree.get("rows"))
        found = tree.get("columns")
        columns = [_column(item, rows) for item in found if isinstance(item, dict)] if isinstance(found, list) else []
        notes = tree.get("notes")
        return cls(
            price=loss(tree.get("price")),
            columns=tuple(columns),
            level=1 - (float(beta) if isinstance(beta, (int, float)) else 0.05),
            notes=tuple(str(note) for note in notes) if isinstance(notes, list) else (),
            text=str(tree.get("text") or ""),
        )


def _column(item: Tree, rows: list[float]) -> Column:
    widths = _numbers(item.get("widths"))
    if not widths:
        return Column(str(item.get("name", "")), "not known beforehand")
    sure = bool(item.get("sure", max(widths) - min(widths) <= 0.05 * min(widths)))
    if sure:
        return Column(str(item.get("name", "")), f"± {off(max(widths))}")
    cases = tuple((number(count), f"± {off(width)}") for count, width in zip(rows, widths, strict=False))
    return Column(str(item.get("name", "")), "", cases)


def _numbers(tree: object) -> list[float]:
    if not isinstance(tree, list):
        return []
    return [float("inf") if item is None else item for item in tree if item is None or isinstance(item, (int, float))]
