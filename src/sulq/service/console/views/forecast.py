"""What the API foretells of a query: its price and how far off each column may be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sulq.language.privacy import Budget, Loss
from sulq.service.console.api import Tree
from sulq.service.console.views.words import loss, number, off


@dataclass(frozen=True, slots=True)
class ColumnError:
    """How far one column may be off: one width, or one for each number of rows a group might have."""

    name: str
    off: str
    cases: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Forecast:
    """A query before it is asked."""

    price: Loss | Budget | None
    columns: tuple[ColumnError, ...]
    level: float
    notes: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, tree: Tree) -> Forecast:
        """Read what /explain says."""
        return cls(
            price=loss(tree["price"]),
            columns=tuple(_column(item, tree["rows"]) for item in tree["columns"]),
            level=1 - tree["beta"],
            notes=tuple(tree["notes"]),
            text=tree["text"],
        )


def _column(item: Tree, rows: list[int]) -> ColumnError:
    widths = [math.inf if width is None else width for width in item["widths"]]
    if not widths:
        return ColumnError(item["name"], "not known beforehand")
    if item["sure"]:
        return ColumnError(item["name"], f"± {off(max(widths))}")
    cases = tuple((number(count), f"± {off(width)}") for count, width in zip(rows, widths, strict=False))
    return ColumnError(item["name"], "", cases)
