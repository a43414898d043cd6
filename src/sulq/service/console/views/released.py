"""A release as the console shows it: its charts with error bars, its tables, what it cost and whom it hides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest

from markupsafe import Markup

from sulq.language.privacy import Budget, Loss, Unit
from sulq.service.console.api import Tree
from sulq.service.console.views import chart, words
from sulq.service.console.views.sheet import Sheet, sheet_of
from sulq.service.console.visit import rows


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing with what is said of it."""

    title: str
    drawn: Markup
    said: str


@dataclass(frozen=True, slots=True)
class Released:
    """What a job published."""

    title: str
    chosen: bool  # a selection
    pictures: tuple[Picture, ...]
    sheets: tuple[Sheet, ...]
    spent: Loss | Budget | None
    unit: Unit | None
    guarantee: str
    packed: bool  # whether there are files to download
    cut: bool  # whether there are more tables or charts than could be kept

    @classmethod
    def of(cls, result: Tree) -> Released | None:
        """Read a job's result; None where it is no release."""
        told = result.get("release")
        if not isinstance(told, Mapping):
            return None
        found = told.get("paid")
        paid: Tree = found if isinstance(found, Mapping) else {}
        drawn = (_picture(item) for item in rows(result, "charts"))
        return cls(
            title=str(told.get("title") or ""),
            chosen="selection" in told,
            pictures=tuple(one for one in drawn if one.drawn),
            sheets=tuple(replace(sheet_of(item), drawn=Markup()) for item in rows(result, "tables")),
            spent=words.loss(paid.get("spent")),
            unit=words.unit(paid.get("unit")),
            guarantee=str(paid.get("guarantee") or "dp"),
            packed=isinstance(result.get("archive"), str),
            cut=isinstance(left := result.get("left_out"), list) and ("tables" in left or "charts" in left),
        )


def _picture(item: Tree) -> Picture:
    names, values, error = (
        found if isinstance(found := item.get(key), list) else [] for key in ("names", "values", "error")
    )
    bars = [
        _bar(str(name), float(value), wide)
        for name, value, wide in zip_longest(names, values, error)
        if isinstance(value, (int, float))
    ]
    title = str(item.get("title", ""))
    return Picture(title, chart.bars(bars, title=title), str(item.get("said") or ""))


def _bar(name: str, value: float, wide: object) -> chart.Bar:
    if not isinstance(wide, (int, float)) or not math.isfinite(wide):
        return chart.Bar(name, value, None, None)
    return chart.Bar(name, value, value - wide, value + wide)
