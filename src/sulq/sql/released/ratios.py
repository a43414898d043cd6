"""Ratios of released sums, read together: one interval for the quotient, not one of two intervals.

Where both sides are linear in released sums, A - r B at the true ratio r is zero, and as released a weighted sum of
independent noises: the interval holds every r at which that stays within its quantile (Fieller's argument). A count of
some of the rows that another one counts is a share of it: from 0 to 1, value and interval.
Source: docs/theory/intervals.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final

import numpy as np

from sulq.answers.readings.estimators import Plain
from sulq.answers.readings.joint import WeightedSum
from sulq.answers.readings.noise_sums import AddedLaw
from sulq.answers.readings.regions import ratios
from sulq.answers.readings.sampling import ROUNDS
from sulq.answers.released import Noise, Released
from sulq.language.kinds import Floats, Truths
from sulq.language.law import BinomialLaw, GaussianLaw, LaplaceLaw
from sulq.sql.released.cells import Applied, GroupCells, NoisyValue, Unknown, applied, groups_of, may_be_zero
from sulq.sql.released.columns import StatColumn
from sulq.sql.released.functions import is_number, number
from sulq.sql.released.ranges import NumberRange, Outcome, outcome

SUMMED_LAWS: Final = (LaplaceLaw, GaussianLaw, BinomialLaw, AddedLaw)
Terms = tuple[tuple[GroupCells, float], ...]  # statistics with their factors


@dataclass(frozen=True, slots=True)
class LinearForm:
    """A constant and a weighted sum of statistics of groups, each of them linear in released sums."""

    terms: Terms = ()
    constant: float = 0.0

    def times(self, factor: float) -> LinearForm:
        """All of it times a number."""
        return LinearForm(tuple((cell, factor * weight) for cell, weight in self.terms), factor * self.constant)

    def plus(self, other: LinearForm) -> LinearForm:
        """The sum of two; equal statistics once."""
        found: dict[object, tuple[GroupCells, float]] = {}
        for cell, weight in (*self.terms, *other.terms):
            found[cell.statistic()] = cell, weight + found.get(cell.statistic(), (cell, 0.0))[1]
        return LinearForm(tuple(found.values()), self.constant + other.constant)


def linear(figure: NoisyValue) -> LinearForm | None:
    """A figure as a linear form; None where it is none."""
    origin = figure.origin
    if origin is None:
        plain = is_number(figure.value) and not isinstance(figure.value, bool)
        return LinearForm(constant=number(figure.value)) if plain else None
    if isinstance(origin, GroupCells):
        sums = len(origin.rows) == 1 and isinstance(origin.column.reading, (Plain, WeightedSum))
        return LinearForm(((origin, 1.0),)) if sums and figure.clock is None else None
    if not isinstance(origin, Applied) or origin.op not in ("+", "-", "neg", "*", "/", "cast float"):
        return None
    made = [linear(arg) for arg in origin.args]
    forms = [form for form in made if form is not None]
    return _combined(origin.op, forms, origin.args) if len(forms) == len(made) else None


def _combined(op: str, forms: Sequence[LinearForm], args: Sequence[NoisyValue]) -> LinearForm | None:
    first, last = forms[0], forms[-1]
    if op in ("+", "-"):
        return first.plus(last if op == "+" else last.times(-1.0))
    if op == "neg":
        return first.times(-1.0)
    if op == "*":
        return last.times(first.constant) if not first.terms else None if last.terms else first.times(last.constant)
    if op == "/":  # of whole numbers it is cut off
        cut = last.terms or last.constant == 0 or all(isinstance(arg.value, int) for arg in args)
        return None if cut else first.times(1 / last.constant)
    return first


@dataclass(frozen=True, slots=True, eq=False)
class JointRatio:
    """The ratios of all groups: what is above and below as released, and the weights of each noise on either side."""

    above: Floats
    below: Floats
    weights: Floats
    noises: tuple[Noise, ...]
    bounds: tuple[float, float] | None
    counted: Floats | None = None  # of a share: how many rows its divisor counts
    sampling: float = 0.0  # as of `StatColumn`
    kept: dict[float, tuple[Floats, Floats, Truths]] = field(default_factory=dict)

    def interval(self, beta: float) -> tuple[Floats, Floats, Truths]:
        """From where to where each lies, except with probability beta; and whether it may have no value."""
        if beta not in self.kept:
            found = ratios(self.above, self.below, self.weights, self.noises, beta, bounds=self.bounds)
            self.kept[beta] = self._sampled(found, beta) if self.sampling else found
        return self.kept[beta]

    def _sampled(self, found: tuple[Floats, Floats, Truths], beta: float) -> tuple[Floats, Floats, Truths]:
        """A share of n rows varies as the mean of n values of 0 and 1 does: by r(1 - r)/n at the share r."""
        low, high, null = found
        if self.bounds is None or self.counted is None or math.isnan(self.sampling):
            return np.full_like(low, -np.inf), np.full_like(high, np.inf), null
        least, most = self.bounds
        with np.errstate(all="ignore"):
            middle = np.where(self.below != 0, np.clip(self.above / self.below, least, most), (least + most) / 2)
        z = -NormalDist().inv_cdf(beta / 2) * self.sampling / np.sqrt(np.maximum(self.counted, 1.0))
        below, above = np.maximum(middle - low, 0.0), np.maximum(high - middle, 0.0)
        a, b = low, high
        for _ in range(ROUNDS):
            ends = (z * np.sqrt(np.maximum((end - least) * (most - end), 0.0)) for end in (a, b))
            a, b = middle - np.hypot(below, next(ends)), middle + np.hypot(above, next(ends))
        return np.minimum(np.clip(a, least, most), low), np.maximum(np.clip(b, least, most), high), null


@dataclass(frozen=True, slots=True, eq=False)
class Ratio(Applied):
    """A quotient of two linear forms in one group, which is one statistic."""

    joint: JointRatio
    at: int
    value: object

    def statistic(self) -> object:
        """The ratio and its group."""
        return id(self.joint), self.at

    def range(self, answers: Sequence[Released], beta: float) -> Outcome:
        """Every ratio the released sums do not contradict, and what is shown."""
        if self.joint.sampling and self.joint.bounds is None:  # of other ratios both sides vary by themselves
            return Applied.range(self, answers, beta / len(self.args))
        low, high, null = (end[self.at] for end in self.joint.interval(beta))
        seen = [] if self.value is None else [number(self.value)]
        found = NumberRange(min([float(low), *seen]), max([float(high), *seen]), null=bool(null) or not seen)
        return outcome("trunc", [found]) if self.whole else found


def _divisor(figure: NoisyValue) -> NoisyValue:
    """What is divided by; NULLIF(y, 0) is y there, as by nought a quotient is missing anyway."""
    origin = figure.origin
    nullif = isinstance(origin, Applied) and origin.op == "nullif" and origin.args[1].value == 0
    return origin.args[0] if isinstance(origin, Applied) and nullif and origin.args[1].origin is None else figure


def quotient(args: Sequence[NoisyValue], answers: Sequence[Released]) -> NoisyValue:
    """A ratio; unknown where its divisor, a statistic of a group, may be zero (SR18)."""
    found, joint, at = applied("/", args), None, 0
    above, below = linear(args[0]), linear(_divisor(args[1]))
    if above is not None and below is not None and below.terms:
        joint, at = _at(above, below, answers)
    bounds = None if joint is None else joint.bounds
    groups = groups_of(args[1])
    if groups and may_be_zero(args[1], groups, answers):
        return NoisyValue(None, Unknown() if bounds is None else Unknown(*bounds))
    if joint is None:
        return found
    value = found.value
    if bounds is not None and value is not None:
        clipped = min(max(number(value), bounds[0]), bounds[1])
        value = int(clipped) if isinstance(value, int) else clipped
    return NoisyValue(value, Ratio("/", tuple(args), joint, at, value))


def _at(above: LinearForm, below: LinearForm, answers: Sequence[Released]) -> tuple[JointRatio | None, int]:
    """The ratios of all groups, worked out once, and the place of this one among them."""
    holder, key = below.terms[0][0].column, (_key(above), _key(below))
    joint = holder.once(answers, key, lambda: _joint(above, below, answers))
    several = [cell for cell, _ in (*above.terms, *below.terms) if cell.column.released(answers).cells > 1]
    if len({cell.rows for cell in several}) > 1:
        return None, 0
    return joint, several[0].rows[0] if several else 0


def _key(form: LinearForm) -> object:
    return tuple((id(cell.column), weight) for cell, weight in form.terms), form.constant


def _joint(above: LinearForm, below: LinearForm, answers: Sequence[Released]) -> JointRatio | None:
    """The sums of two forms, each noise once; None where their noises are not known to be independent."""
    sums: dict[object, tuple[Floats, Noise, list[float]]] = {}
    ways: dict[object, object] = {}
    for side, form in enumerate((above, below)):
        for cell, factor in form.terms:
            column, released = cell.column, cell.column.released(answers)
            values, origins = released.values(), column.origins(answers)
            noises = [noise for noise in released.noise for _ in range(noise.width)]
            reading = column.reading
            weights = list(map(float, reading.weights)) if isinstance(reading, WeightedSum) else [1.0]
            if origins is None or not len(weights) == len(noises) == len(origins):
                return None
            for i, (weight, noise, origin) in enumerate(zip(weights, noises, origins, strict=True)):
                way = column.summed, id(column.less)
                if not isinstance(noise.law, SUMMED_LAWS) or ways.setdefault(origin, way) != way:
                    return None
                single = Noise(noise.law, noise.step, 1)
                sums.setdefault(origin, (values[:, i], single, [0.0, 0.0]))[2][side] += factor * weight
    if len({len(values) for values, _, _ in sums.values()} - {1}) > 1:
        return None
    parts = np.stack(np.broadcast_arrays(*(values for values, _, _ in sums.values())), axis=-1)
    both = np.array([weights for _, _, weights in sums.values()]).T
    one, other = (parts @ weights + form.constant for weights, form in zip(both, (above, below), strict=True))
    bounds, independent = share(above, below), tuple(noise for _, noise, _ in sums.values())
    divisors = [abs(weight) for _, weight in below.terms]
    factors = [cell.column.sampling for cell, _ in (*above.terms, *below.terms)]
    counted = None if bounds is None else np.abs(other) / max(divisors)
    return JointRatio(one, other, both, independent, bounds, counted, float(np.max(factors)))


def share(above: LinearForm, below: LinearForm) -> tuple[float, float] | None:
    """The range of a ratio of counts, where what is counted below holds all that is counted above; else None."""
    parts = [(cell.column, weight) for cell, weight in above.terms]
    whole = [(cell.column, weight) for cell, weight in below.terms]
    if above.constant or below.constant or not parts or any(column.counted is None for column, _ in (*parts, *whole)):
        return None
    if len(parts) == len(whole) == 1:
        (part, weight), (all_, divisor) = parts[0], whole[0]
        ends = sorted((0.0, weight / divisor)) if divisor else None
        return None if ends is None or not _within(part, all_) else (ends[0], ends[1])
    # A mediant: a weighted mean of the quotients of its parts.
    divisors = {id(column): weight for column, weight in whole}
    factors = {id(column): weight for column, weight in parts}
    if not set(factors) <= set(divisors) or min(divisors.values()) <= 0:
        return None
    quotients = [factors.get(name, 0.0) / weight for name, weight in divisors.items()]
    return min(quotients), max(quotients)


def _within(part: StatColumn, whole: StatColumn) -> bool:
    """Whether every row that one column counts is counted by the other."""
    one, other = part.counted, whole.counted
    if one is None or other is None or not other.each:
        return False
    keys = one.keys == other.keys and part.summed == whole.summed
    return one.over == other.over and one.conditions >= other.conditions and (keys or not other.keys)
