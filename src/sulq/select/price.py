"""The price of a digital good that earns much, however one bidder bids (S3.10)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.oracle import Oracle, Progress, SpendPlan
from sulq.errors import QuestionError
from sulq.forms.parameters import checked, number
from sulq.language.domain import Real, Schema
from sulq.language.privacy import Loss
from sulq.language.question import Choose, Sums
from sulq.language.rowfn import Bins, Col, Lit, RowFn, named
from sulq.language.rowfn.vectors import bounded
from sulq.language.score import Linear
from sulq.select.choose import MOST
from sulq.select.rounding import rounding
from sulq.select.selected import Selected, select

FINE: Final = 2**20  # units of the largest price, where the prices have no common unit coarser than that


def price(
    db: Oracle,
    bids: str | RowFn,
    grid: list[float],
    *,
    spend: Loss | None = None,
    progress: Progress | None = None,
) -> Selected:
    """Draw a price of the grid by its revenue y * #{bids >= y}; nothing else is released.

    Privacy: one bid moves no revenue by more than the largest price, and all of them the same way, so the span is
    that price and exp(epsilon*u/price) suffices under add_remove; the plan finds it (SR5). No bidder changes the
    odds of any price by more than e^epsilon, c of them together by no more than e^(c*epsilon): to bid otherwise
    than one's value earns next to nothing (approximate truthfulness).
    Accuracy: the revenue is within scale*(ln m + s) of the best price's but for e^-s, m prices [S3.9].
    Source: S3.10.

    Args:
        db: the database, or a far curator.
        bids: the column of the bids, or from Python a row function; bounds as declared.
        grid: the prices to choose from, within the declared bounds of the bids; bids are compared with them as
            exactly as the bids' own grid is.
        spend: what the choice costs; its kind chooses the mechanism.
        progress: called with how many asks are done, and how many there are.

    Raises:
        QuestionError: `bad-parameter`: a price outside the bounds, two that are one on the bids' grid, or no grid;
            nothing is spent.
    """
    spending = SpendPlan(db, spend, progress)
    fn = named(bids)
    schema = spending.facts.schema
    prices = _prices(fn, grid, schema)
    units, step = _units(prices)
    # Of a bid in bin j, between two prices, every price up to the j-th earns.
    matrix = tuple((0,) * i + (unit,) * (len(units) - i) for i, unit in enumerate(units))
    counts = Sums((Lit(1),), None, (Bins(fn, tuple(_edges(prices, fn, schema))),))
    return select(spending, Choose(counts, Linear(matrix)), tuple(prices), step, "revenue")


def _prices(fn: RowFn, grid: Sequence[float], schema: Schema) -> list[float]:
    """The prices in order."""
    low, high, kind = bounded(fn, schema)
    checked(not kind.clock, "Bids are numbers.")
    array = isinstance(grid, np.ndarray) and grid.ndim == 1
    given: list[object] = list(grid) if array or isinstance(grid, (list, tuple)) else []
    checked(bool(given), "grid is a list of prices.")
    if len(given) > MOST:
        raise QuestionError("too-large", f"A grid has at most {MOST:,} prices; {len(given):,} are given.")
    prices = sorted(y for y in map(number, given) if not math.isnan(y))
    checked(len(prices) == len(given), "A price is a finite number.")
    checked(len(set(prices)) == len(prices), "The prices of a grid differ.")
    least = Fraction(0) if low < 0 else low  # a price below nought is none
    inside = least <= Fraction(prices[0]) and Fraction(prices[-1]) <= high
    checked(inside, f"The prices lie within the declared bounds of the bids: {float(least):g} to {float(high):g}.")
    return prices


def _edges(prices: Sequence[float], fn: RowFn, schema: Schema) -> list[float]:
    """From where on a bid pays each price, and the end of the last bin: whoever bids the price, or more, pays it.

    The bids of a Real column lie on its grid, where a price may not: it is rounded as they are. What is reckoned from
    such bids carries their rounding: an edge is lower by as much.
    """
    column = schema.find(fn.name) if isinstance(fn, Col) else None
    if isinstance(column, Real):
        step = column.step
        edges = [float(math.floor(Fraction(y) / step + Fraction(1, 2)) * step) for y in prices]
        apart = all(a < b for a, b in itertools.pairwise(edges))
        checked(apart, f"Two prices of the grid are equal on the bids' own grid, whose step is {float(step):.6g}.")
    else:
        slack = rounding(fn, schema)
        edges = [math.nextafter(float(Fraction(y) - slack), -math.inf) if slack else y for y in prices]
        apart = all(a < b for a, b in itertools.pairwise(edges))
        checked(apart, f"Two prices of the grid are nearer to each other than bids are reckoned: {float(slack):.3g}.")
    high = float(bounded(fn, schema)[1])
    return [*edges, high if high > edges[-1] else edges[-1] + max(1.0, math.ulp(edges[-1]))]


def _units(prices: Sequence[float]) -> tuple[list[int], Fraction]:
    """Whole numbers that stand for the prices, and their unit: the common one of their decimals if it is not too fine.

    Else the largest price has 2^20 units: rounding then moves a revenue by less than a millionth of it.
    """
    exact = [Fraction(repr(y)) for y in prices]
    unit = Fraction(1, math.lcm(*(y.denominator for y in exact)))
    largest = max(exact)
    if largest / unit > FINE:
        unit = largest / FINE
    return [round(y / unit) for y in exact], unit
