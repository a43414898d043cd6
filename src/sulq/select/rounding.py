"""How far a number as an engine has it may lie from the number that a row function means.

The cells of a Real column lie on its grid, half a step from what was written at most; arithmetic carries
that on, and rounds doubles besides. Whole numbers, dates and literals are what they are.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from sulq.language.domain import Real, Schema
from sulq.language.rowfn import Arith, Clip, Col, Fill, RowFn
from sulq.language.rowfn.vectors import bounded

DOUBLES: Final = Fraction(1, 2**48)  # of the largest value: more than a few operations on doubles round


def rounding(fn: RowFn, schema: Schema) -> Fraction:
    """A bound for arithmetic on columns; for other functions, of which little is known, what their terms have."""
    if isinstance(fn, Col):
        column = schema.find(fn.name)
        return column.step / 2 if isinstance(column, Real) else Fraction(0)
    if isinstance(fn, (Clip, Fill)):
        return rounding(fn.item, schema)
    inner = [rounding(part, schema) for part in fn.parts()]
    if not isinstance(fn, Arith):
        return max(inner, default=Fraction(0))
    ends = [bounded(part, schema)[:2] for part in (fn.left, fn.right)]
    left, right = (max(map(abs, pair)) for pair in ends)
    if fn.op == "*":
        carried = left * inner[1] + right * inner[0] + inner[0] * inner[1]
    elif fn.op == "/":  # bounded, so the divisor is not zero; the grid has it no nearer to it than its bounds
        least = min(map(abs, ends[1]))
        carried = inner[0] / least + left * inner[1] / least**2
    else:
        carried = inner[0] + inner[1]
    low, high, _ = bounded(fn, schema)
    return carried + max(abs(low), abs(high)) * DOUBLES
