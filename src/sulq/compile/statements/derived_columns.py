"""What a derived table's columns hold, the same for every engine: which grid a value is put on, and when it is copied.

A column of a derived table is a column of integers like any other. A person's
sum and mean run over whole terms on a grid so coarse that no total of theirs
passes 2^51: doubles add them exactly, whatever the order, and half a unit more
is exact too (SR16).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.language.domain import Column, Schema, Text, grid_for
from sulq.language.rowfn import Col, RowFn
from sulq.language.rowfn.vectors import bounded, scalar_grid

TOTAL_BITS: Final = 51


@dataclass(frozen=True, slots=True)
class Terms:
    """The grid on which a person's values are added: within [low, high] units of `step`."""

    step: Fraction
    low: int
    high: int


def copied(fn: RowFn, schema: Schema, column: Column) -> str | None:
    """The source column whose stored integers are the derived column's own, where there is one."""
    if not isinstance(fn, Col):
        return None
    source = schema.find(fn.name)
    if source is None or isinstance(source, Text) or isinstance(column, Text):
        return fn.name if isinstance(source, Text) and isinstance(column, Text) else None
    alike = (source.step, source.low, source.high) == (column.step, column.low, column.high)
    return fn.name if alike else None


def terms(fn: RowFn, schema: Schema, rows: int) -> Terms:
    """The grid of a value of which one person adds up to `rows`."""
    lo, hi, kind = bounded(fn, schema)
    far = max(abs(lo), abs(hi))
    step = scalar_grid(lo, hi, kind.step)[0] if kind.step is None else kind.step  # on a lattice nothing is lost
    step = max(step, grid_for(far * max(rows, 1), TOTAL_BITS))
    return Terms(step, math.floor(lo / step), math.ceil(hi / step))
