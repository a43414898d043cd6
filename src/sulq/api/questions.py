"""Named statistics as sums: the best question for each by public facts, and how its answer is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Final

from sulq.answers.auto_bounds import Bounds
from sulq.answers.law_choice import LawName
from sulq.answers.oracle import ColumnChoice
from sulq.answers.readings.estimators import CentredMean, Covariance, Mean, Plain, Spread
from sulq.answers.readings.joint import SpreadMean, WeightedSum
from sulq.answers.readings.sampling import RowSum, SampledSpread, SampledTotal, sum_reading
from sulq.answers.readings.sized import SPREAD_SHARES, Average, SizedSpread, sized_spread
from sulq.errors import QuestionError
from sulq.language.domain import INT_LIMIT
from sulq.language.facts import Facts
from sulq.language.kinds import Code, Grid, Scalar, Truth
from sulq.language.privacy import EpsilonDelta, Loss, Rho
from sulq.language.question import Sums
from sulq.language.rowfn import (
    Bernstein,
    Bins,
    Each,
    IsMissing,
    Not,
    Outer,
    RowFn,
    Vector,
    WithinBall,
    WithinL1,
    named,
)
from sulq.language.rowfn import bins as edges
from sulq.language.rowfn.base import describe, figure
from sulq.language.rowfn.vectors import MAX_BITS, bounded, grid_vector, rounding, scalar_grid
from sulq.sql.conditions import Condition

By = Sequence[object] | str | RowFn | ColumnChoice | None
Where = Condition
Filter = RowFn | None
Keys = tuple[RowFn, ...]

# A centred sum's error is h^2/(1-s) + d^2/s for a count's share s and a mean d off
# the middle; averaged over d in [-h, h] the best share is 1/(1 + sqrt 3).
COUNT_SHARE: Final = (Fraction(366, 1000), Fraction(634, 1000))
MAX_BINS: Final = 10**6
FOURTH_SHARES: Final = (Fraction(1, 2), Fraction(1, 2))  # a variance, and how it varies


def keys(by: By) -> Keys:
    """Names or row functions of a partition."""
    if by is None:
        return ()
    if isinstance(by, ColumnChoice):
        return by.row
    items = by if isinstance(by, (list, tuple)) else (by,)
    return tuple(named(item) for item in items)


def total(facts: Facts, fn: RowFn, where: Filter, by: Keys) -> Sums:
    """The sum of one number; of a vector all coordinates would be paid for and one shown."""
    kind = fn.kind(facts.schema)
    if isinstance(kind, Grid) and kind.width > 1:
        raise QuestionError(
            "wrong-kind",
            f"{describe(fn)} is not a number but {kind.width:,} of them.",
            "Ask for the sums of all, db.ask(Sums((value,))), or sum one column at a time.",
        )
    return Sums((fn,), where, by)


def counted(facts: Facts, where: Filter, by: Keys) -> RowSum:
    """How a count is read: it varies by sampling as a Poisson number, or among a public number of rows."""
    return sum_reading(Fraction(1), Fraction(1), facts.fixed_size, every=where is None and not by)


def summed(facts: Facts, fn: RowFn, where: Filter, by: Keys) -> Plain:
    """How a sum is read: its values lie in their bounds, and rows that are not summed add nothing."""
    if isinstance(fn.kind(facts.schema), Grid):  # the one coordinate of a vector, of whose bounds nothing is made
        return Plain()
    lo, hi, kind = bounded(fn, facts.schema)
    return sum_reading(lo, hi, facts.fixed_size, every=where is None and not by and not kind.nullable)


def sampled_mean(facts: Facts, fn: RowFn, where: Filter, by: Keys) -> tuple[Sums, SpreadMean]:
    """A mean beside the spread, which tells its sampling error: terms of degree two, for the price of one sum."""
    lo, hi, _ = bounded(fn, facts.schema)
    if lo == hi:
        raise QuestionError("bad-question", f"{title(fn)} is constant by its bounds: its mean is known.")
    terms = Bernstein(fn, 2)
    step, low, high = terms.span(facts.schema)
    away = rounding(bounded(fn, facts.schema)[2].step, step)
    return Sums((terms,), where, by), SpreadMean(low * step, high * step, away)


def sampled_total(facts: Facts, fn: RowFn, where: Filter, by: Keys) -> tuple[Sums, SampledTotal]:
    """A sum beside the sum of squares, which tells its sampling error."""
    question, mean = sampled_mean(facts, fn, where, by)
    a, b, one = mean.lo, mean.hi, 1 / (mean.hi - mean.lo) ** 2
    weights = (one * b, one * (a + b) / 2, one * a)
    return question, SampledTotal(WeightedSum(weights, (one * b * b, one * a * b, one * a * a)))


def sampled_spread(
    facts: Facts, fn: RowFn, where: Filter, by: Keys, *, root: bool, ddof: int
) -> tuple[Sums, SampledSpread]:
    """A variance beside Bernstein's terms of degree four, for which half of the spend tells its sampling error."""
    question, mean = sampled_mean(facts, fn, where, by)
    part = ((fn - exact(mean.lo)) / exact(mean.hi - mean.lo)).clip(0, 1)
    rest = 1 - part
    fourths = Vector(tuple(math.comb(4, i) * part**i * rest ** (4 - i) for i in range(5)), MAX_BITS)
    values = (*question.values, WithinL1(fourths, 1))
    return Sums(values, where, by, FOURTH_SHARES), SampledSpread(mean.hi - mean.lo, root, ddof, mean.rounding)


def mean(
    facts: Facts, fn: RowFn, where: Filter, by: Keys, spend: Loss | None
) -> tuple[Sums, Average | CentredMean | Mean]:
    """The best question for a mean: sum alone, two one-sided sums, or count and centred sum (SR18)."""
    lo, hi, kind = bounded(fn, facts.schema)
    size = _public_size(facts, where, by, nullable=kind.nullable)
    if size is not None:
        return Sums((fn,)), Average(size, lo, hi, _rounding(facts, fn))
    if isinstance(spend, (Rho, EpsilonDelta)):
        middle = float((lo + hi) / 2)
        question = Sums((Not(IsMissing(fn)), fn - middle), where, by, COUNT_SHARE)
        return question, CentredMean(lo, hi, Fraction(middle), _rounding(facts, fn - middle))
    pair = Bernstein(fn)
    step, low, high = pair.span(facts.schema)
    return Sums((pair,), where, by), Mean(low * step, high * step, rounding(kind.step, step))


def spread(
    facts: Facts, fn: RowFn, where: Filter, by: Keys, spend: Loss | None, *, root: bool, ddof: int
) -> tuple[Sums, Spread | SizedSpread]:
    """A variance, or with `root` a standard deviation: sums of Bernstein's terms of degree two.

    Where the number of values is public, two sums: of values about the middle of their bounds, and of their squares.
    """
    if not isinstance(ddof, Integral) or ddof not in (0, 1):
        raise QuestionError("bad-question", "ddof is 0 or 1.")
    lo, hi, kind = bounded(fn, facts.schema)
    size = _public_size(facts, where, by, nullable=kind.nullable)
    if size is not None and lo < hi:
        values, reading = sized_spread(facts.schema, fn, size, root=root, ddof=ddof)
        return Sums(values, shares=SPREAD_SHARES[not isinstance(spend, (Rho, EpsilonDelta))]), reading
    terms = Bernstein(fn, 2)
    step, low, high = terms.span(facts.schema)
    away = rounding(bounded(fn, facts.schema)[2].step, step)
    return Sums((terms,), where, by), Spread((high - low) * step, root, ddof, away)


def covariance(
    facts: Facts,
    items: Sequence[RowFn],
    where: Filter,
    by: Keys,
    *,
    norm: str | None = None,
    bound: float | None = None,
    counted: bool = False,
) -> tuple[Sums, Covariance]:
    """Sums of centred values and of their products, with a count where the number of values is not public.

    `counted`: with a count in any case.

    With a `norm` the values are about zero, in rows shortened to that norm: of L1 norm g the sums move by g and the
    products by g^2, each twice that under replace_one, however many columns there are.
    Source: DMNS06, section 3.2 [S4.10, E35].
    """
    vector: RowFn
    if norm is None and bound is None:
        middles, halves = zip(*(_centre(facts, item) for item in items), strict=True)
        scaled = tuple((item - float(m)) / float(h) for item, m, h in zip(items, middles, halves, strict=True))
        vector = Vector(scaled, MAX_BITS)
    else:
        vector, halves = _shortened(facts, items, norm, bound)
    kind = grid_vector(vector, facts.schema)
    size = None if counted else _public_size(facts, where, by, nullable=kind.nullable)
    count = () if size is not None else (Not(IsMissing(vector)),)
    shares = (*(Fraction(1) for _ in count), Fraction(1), Fraction(2))
    question = Sums((*count, vector, Outer(vector)), where, by, shares)
    away = rounding(None, kind.step) if norm is None else kind.step  # shortened coordinates round toward zero
    return question, Covariance(tuple(halves), size, away)


BALLS: Final = {"l1": WithinL1, "l2": WithinBall}


def _shortened(
    facts: Facts, items: Sequence[RowFn], norm: str | None, bound: float | None
) -> tuple[RowFn, tuple[Fraction, ...]]:
    """Rows as parts of the largest norm they may have; a value past it is that, so that the grid is fine enough."""
    if not isinstance(norm, str) or norm not in BALLS or bound is None:
        raise QuestionError(
            "bad-question",
            'norm is "l1" or "l2" and bound the largest norm of a row, both together.',
            'Rows of indicators of which one is 1 have: norm="l1", bound=1.',
        )
    most = float(figure(bound))
    if most <= 0:
        raise QuestionError("bad-literal", "bound is a positive number.")
    parts = []
    for item in items:
        lo, hi, _ = bounded(item, facts.schema)
        scaled = item if most == 1 else item / most
        parts.append(scaled.clip(-1, 1) if max(-lo, hi) > Fraction(most) else scaled)
    return BALLS[norm](Vector(tuple(parts), MAX_BITS), 1), (Fraction(most),) * len(parts)


def binned(facts: Facts, fn: RowFn, bins: int | Sequence[float | int | str] | None) -> RowFn:
    """The key of a histogram: edges, a number of equal bins, or every declared value."""
    kind = fn.kind(facts.schema)
    if isinstance(kind, Code):
        return fn
    if bins is None or isinstance(kind, Truth):
        return Each(fn)
    if not isinstance(bins, int):
        return edges(fn, bins)
    if isinstance(bins, bool) or not 1 <= bins <= MAX_BINS:
        raise QuestionError("bad-literal", "bins is a number of bins from 1 to 1e6, or a list of edges.")
    if not isinstance(kind, Scalar) or kind.clock:
        raise QuestionError("wrong-kind", "Give the edges of bins of dates: bins=['2020-01-01', ...].")
    lo, hi, _ = bounded(fn, facts.schema)
    if lo == hi:
        return Bins(fn, (float(lo), float(lo) + max(1.0, math.ulp(float(lo)))))
    return Bins(fn, tuple(_edge(lo + (hi - lo) * i / bins) for i in range(bins + 1)))


def title(fn: RowFn) -> str:
    """What a row function is called in an answer."""
    return str(getattr(fn, "name", type(fn).__name__.lower()))


def _public_size(facts: Facts, where: Filter, by: Keys, *, nullable: bool) -> int | None:
    """The number of values, where it is public: every row is a person that stays, and has its value (SR6)."""
    return facts.fixed_size if where is None and not by and not nullable else None


def _rounding(facts: Facts, fn: RowFn) -> Fraction:
    lo, hi, kind = bounded(fn, facts.schema)
    return rounding(kind.step, scalar_grid(lo, hi, kind.step)[0])


def _centre(facts: Facts, fn: RowFn) -> tuple[Fraction, Fraction]:
    lo, hi, _ = bounded(fn, facts.schema)
    if lo == hi:
        raise QuestionError("bad-question", f"{title(fn)} is constant by its bounds.")
    return Fraction(float((lo + hi) / 2)), Fraction(float((hi - lo) / 2))


def exact(value: Fraction) -> float | int:
    """A number as a row function takes it."""
    return _edge(value)


def _edge(value: Fraction) -> float | int:
    return int(value) if value.denominator == 1 and abs(value) <= INT_LIMIT else float(value)


@dataclass(frozen=True, slots=True)
class Pay:
    """A spend, or the accuracy that sets its price.

    `within`: the width that an answer may be off by, except with probability `beta`, at a price of `at_most`.
    `fresh`: new noise at full price, although a stored answer would do (SR12).
    `law`: "laplace" or "gaussian", where the price leaves that open; by default the one of least foreseen error.
    `bounds`: "auto": where the values lie is searched for first, from the same spend.
    `sampling`: what tells the sampling error is asked along.
    """

    spend: Loss | None = None
    within: float | None = None
    beta: float = 0.05
    at_most: Loss | None = None
    fresh: bool = False
    law: LawName | None = None
    bounds: Bounds | None = None
    sampling: bool = False

    @property
    def samples(self) -> bool:
        """Whether what tells the sampling error is asked along."""
        if not isinstance(self.sampling, bool):
            raise QuestionError("bad-question", "sampling is True or False: whether the spread is asked along.")
        if self.sampling and (self.within is not None or self.bounds is not None):
            why = "What tells the sampling error is asked for a spend, within the declared bounds."
            raise QuestionError("bad-question", why, "Name spend=, and neither within= nor bounds=.")
        return self.sampling

    def price_once(self) -> None:
        """Refuse a spend beside an accuracy."""
        if self.spend is not None:
            raise QuestionError("bad-question", "Name spend or within, not both.")

    @property
    def reuse(self) -> bool:
        """Whether a stored answer may be given instead."""
        if not isinstance(self.fresh, bool):
            raise QuestionError("bad-question", "fresh is True or False.")
        return not self.fresh
