"""Labels of groups and cells without noise, as texts; and the cells of a column of any kind (decision 0078)."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final, cast

from sulq.display import moments, numbers

MISSING: Final = "missing"  # the group of rows whose key is missing
Cell = tuple[object, object, object]  # a value and the ends of its interval, None where there is none


def label(value: object, *, missing: str = MISSING) -> str:
    """A key's label, or a value that rests on no noise; numbers among them have no thousands apart."""
    match value:
        case None:
            return missing
        case datetime.date():
            return moments.text(value)
        case bool() | str():
            return str(value)
        case int() | float() | Fraction():
            return numbers.plain(float(value) if isinstance(value, Fraction) else value)
        case (low, high):
            return f"[{label(low)}, {label(high)})"
    return str(value)


def interval(value: object, *, closed: bool) -> object:
    """A bin as a text, half open or `closed`; any other label as it is."""
    if not isinstance(value, tuple) or len(value) != 2:
        return value
    return f"[{label(value[0])}, {label(value[1])}{']' if closed else ')'}"


def estimate(cell: Cell) -> numbers.Estimate | None:
    """A cell as an estimate of a number; None where it is a date, a text or a truth value."""
    value, low, high = cell
    if value is None:
        return None, None, None
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        return None
    ends = (low, high) if low is not None or high is not None else (value, value)
    return cast("numbers.Estimate", tuple(float(end) if isinstance(end, Fraction) else end for end in (value, *ends)))


def column(cells: Iterable[Cell], *, noisy: Sequence[bool] | None = None, missing: str = MISSING) -> list[str]:
    """The cells of a column as texts, its estimates in one style.

    `noisy`: which cells rest on noise: one of them that is missing is unknown, and one without an interval stands
    alone. None: all do.
    """
    every = list(cells)
    barred = [low is not None or high is not None for _, low, high in every]
    known = [estimate(cell) for cell, has in zip(every, barred, strict=True) if has]
    style = numbers.NumberStyle.of([one for one in known if one is not None])
    sure = [False] * len(every) if noisy is None else [not flag for flag in noisy]
    return [
        _text(cell, style, barred=has, sure=is_sure, missing=missing)
        for cell, has, is_sure in zip(every, barred, sure, strict=True)
    ]


def _text(cell: Cell, style: numbers.NumberStyle, *, barred: bool, sure: bool, missing: str) -> str:
    value, low, high = cell
    if value is None:
        return missing if sure else numbers.UNKNOWN
    if not barred:
        counted = isinstance(value, (int, float)) and not isinstance(value, bool) and not sure
        return numbers.plain(value, separated=abs(value) >= numbers.MIN_SEPARATED) if counted else label(value)  # type: ignore[arg-type]
    if isinstance(value, datetime.date) and isinstance(low, datetime.date) and isinstance(high, datetime.date):
        return moments.bracketed(value, low, high)
    found = estimate(cell)
    return label(value) if found is None else style.text(found)
