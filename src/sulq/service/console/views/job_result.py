"""What a job found, as the console shows it: a model or a release with its tables, charts, price and unit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from markupsafe import Markup

from sulq.display.axes import Timeline
from sulq.language.privacy import Budget, Loss, Unit
from sulq.service.console.api import Tree
from sulq.service.console.views import chart, words

MAX_ROWS_SHOWN: Final = 100  # the file has all of them
MAX_TREE_CHARACTERS: Final = 100_000


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table, and a drawing of it where it is a list or a set of points."""

    title: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    more: int
    drawn: Markup
    numbers: tuple[bool, ...]  # of each column, whether it holds numbers alone

    @classmethod
    def of(cls, item: Tree) -> ResultTable:
        """A table as the API tells it."""
        title, columns, rows = item["title"], tuple(item["columns"]), item["rows"]
        shown = rows[:MAX_ROWS_SHOWN]
        cells = tuple(tuple(map(_text, row)) for row in shown)
        held = [[row[i] for row in shown if row[i] is not None] for i in range(len(columns))]
        numbers = tuple(all(words.as_float(cell) is not None for cell in column) for column in held)
        more = max(len(rows) - MAX_ROWS_SHOWN, 0) + item.get("more", 0)
        return cls(title, columns, cells, more, _drawn(title, columns, rows), numbers)


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing with what is said of it."""

    title: str
    drawn: Markup
    said: str

    @classmethod
    def of(cls, item: Tree) -> Picture:
        """A chart as the API tells it; a value that is not finite comes as a text, and is left out."""
        bars = [
            _bar(str(name), float(value), width)
            for name, value, width in zip_longest(item["names"], item["values"], item["error"])
            if isinstance(value, (int, float))
        ]
        over = Timeline.of([bar.name for bar in bars])
        drawn = chart.bars(bars, title=item["title"]) if over is None else chart.lines(bars, over, title=item["title"])
        return cls(item["title"], drawn, item.get("said") or "")


@dataclass(frozen=True, slots=True)
class JobResult:
    """A model that a job learned, or a release or a selection that it published."""

    title: str  # the learner's name, or the release's own title
    tables: tuple[ResultTable, ...]
    spent: Loss | Budget | None
    unit: Unit | None
    guarantee: str
    learned: bool = False  # a model
    tree: str = ""  # how a model draws itself, where it does
    chosen: bool = False  # a selection
    pictures: tuple[Picture, ...] = ()
    packed: bool = False  # whether there are files to download
    cut: bool = False  # whether there are more tables or charts than could be kept

    @classmethod
    def of(cls, result: Tree) -> JobResult | None:
        """Read a job's result; None where it is neither."""
        model, release = result.get("model"), result.get("release") or {}
        if not (model or release):
            return None
        tables = tuple(map(ResultTable.of, result["tables"]))
        if model:
            promise = model.get("guarantee") or {}
            return cls(
                title=model["learner"],
                tables=tables,
                spent=words.loss(model.get("spent")),
                unit=words.unit(promise.get("unit")),
                guarantee=promise.get("kind") or "dp",
                learned=True,
                tree=(result.get("text") or "")[:MAX_TREE_CHARACTERS],
            )
        paid = release.get("paid") or {}
        return cls(
            title=release.get("title") or "",
            tables=tuple(replace(table, drawn=Markup()) for table in tables),
            spent=words.loss(paid.get("spent")),
            unit=words.unit(paid.get("unit")),
            guarantee=paid.get("guarantee") or "dp",
            chosen="selection" in release,
            pictures=tuple(one for one in map(Picture.of, result["charts"]) if one.drawn),
            packed=result.get("archive") is not None,
            cut=not {"tables", "charts"}.isdisjoint(result.get("left_out") or ()),
        )


def _bar(name: str, value: float, width: object) -> chart.Bar:
    if not isinstance(width, (int, float)) or not math.isfinite(width):
        return chart.Bar(name, value, None, None)
    return chart.Bar(name, value, value - width, value + width)


def _drawn(title: str, columns: tuple[str, ...], table: list[list[object]]) -> Markup:
    """Bars for a list of numbers, points for the centres of clusters; nothing where a drawing would not help."""
    if title == "cluster centers" and len(columns) > 2:
        found = [(str(line[0]), words.as_float(line[1]), words.as_float(line[2])) for line in table]
        points = [(name, x, y) for name, x, y in found if x is not None and y is not None]
        return chart.points(points, title=title, x=columns[1], y=columns[2])
    if len(columns) != 2 or not 2 <= len(table) <= chart.MAX_BARS or title == "Summary":
        return Markup()
    pairs = [(str(name), words.as_float(value)) for name, value in table]
    return chart.bars([chart.Bar(name, value, None, None) for name, value in pairs if value is not None], title=title)


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return words.number(cell)
