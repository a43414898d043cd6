"""Intervals that count sampling beside noise: the rows taken for an independent sample of a larger population.

Noise tells how far an answer may be from the statistic of the declared table, sampling how far that is from the
population's. Both errors are independent, so their half-widths are added as squares: z sqrt(d^2 + s^2) on either side,
d the deviation that the noise's own interval tells, s that of the sampling error at that end of the interval.
Post-processing of released numbers. Laws, bounds and measured coverage: docs/theory/sampling.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from types import MappingProxyType
from typing import Any, Final, Literal, NoReturn, get_args

import numpy as np

from sulq.answers.readings.estimators import CentredMean, Covariance, Estimated, Mean, Plain, Reading, Spread
from sulq.answers.readings.joint import Correlation, PairCovariance, SpreadMean, WeightedSum
from sulq.answers.readings.noise_sums import least_total
from sulq.answers.readings.quantiles import Picked, Quantile, Quantiles
from sulq.answers.readings.rank_choice import ChosenExtreme, ChosenQuantile, CountedFirst, SeveralQuantiles
from sulq.answers.readings.regions import squared
from sulq.answers.readings.regression import Determination, Intercept, PairMean, PairProduct, Slope
from sulq.answers.readings.sized import Average, SizedSpread
from sulq.answers.released import Released, ReportLaw
from sulq.errors import QuestionError
from sulq.language.kinds import Floats
from sulq.language.privacy import Unit

Sampling = bool | Literal["people", "rows"]  # True is "people"
NEAR: Final = 0.05  # the level at which the deviation of noise is read, where a lower one would make it smaller
PART_OF_DOUBT: Final = 0.25  # of the noise in a fourth moment, added so that a low one is not taken for granted
ROUNDS: Final = 24  # by which the ends of an interval and the deviations there agree
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class RowSum(Plain):
    """One released sum of values between `lo` and `hi`, of a count 1; `size`: of a public number of rows.

    `persons`: what is summed are persons, each once, however many rows they have.

    Where the number of rows is secret it is taken for a Poisson number, and the sum varies by the sum of squares, which
    is at most `hi` times a sum of values that are not negative: for a count the count itself.
    """

    lo: Fraction = Fraction(1)
    hi: Fraction = Fraction(1)
    size: int | None = None
    persons: bool = False

    def deviation(self, at: Floats) -> Floats:
        """How far it varies by sampling where it is expected to be `at`."""
        lo, hi = float(self.lo), float(self.hi)
        if self.size is not None:
            return _root((at - self.size * lo) * (self.size * hi - at) / self.size)
        if lo < 0 < hi:
            _refuse("this sum of values of either sign", "its second moment, which sampling=True of the ask buys")
        return _root((hi if lo >= 0 else lo) * at)


@dataclass(frozen=True, slots=True)
class SampledTotal:
    """A sum beside what tells how it varies: the sum of squares, as weighted sums of the same released terms."""

    of: WeightedSum

    def value(self, released: Released) -> Floats:
        """The weighted sum."""
        return self.of.value(released)

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """The noise's own."""
        return self.of.interval(released, beta)


@dataclass(frozen=True, slots=True)
class SampledSpread(Spread):
    """A variance beside the five terms C(4, i) t^i (1 - t)^(4 - i) of t in [0, 1], which tell how it varies.

    They add up to 1 for a row, so that all of them have the noise of one sum.
    """

    def _first(self, released: Released) -> Released:
        return replace(released, units=released.units[:, :3], noise=released.noise[:1])

    def value(self, released: Released) -> Floats:
        """The variance's own."""
        return Spread.value(self, self._first(released))

    def least(self, released: Released, beta: float) -> Floats:
        """The variance's own."""
        return least_total(self._first(released), slice(None), beta, float(self.width) ** 2 or 1.0)

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """The variance's own."""
        return Spread.interval(self, self._first(released), beta)

    def deviation(self, released: Released, at: Floats) -> Floats:
        """The root of (fourth central moment less squared variance)/n, the moment as far as noise tells it.

        Where it does not tell that from a normal population's, it is at least that, so that a small one is not taken
        for granted; nor is it more than the bounds allow.
        """
        p, q, r = self._first(released).values().T / (float(self.width) ** 2 or 1.0)
        n = np.maximum(p + q + r, 1.0)
        mean = np.clip((p + q / 2) / n, 0.0, 1.0)
        variance, most = _variance(self, at, n), np.maximum(mean, 1 - mean) ** 2
        weights = np.stack([(1 - mean) ** i * (-mean) ** (4 - i) for i in range(5)], axis=1)
        found = (released.values()[:, 3:] * weights).sum(axis=1) / n - variance**2
        doubt = released.noise[1].deviation * np.sqrt((weights**2).sum(axis=1)) / n
        found = np.maximum(found + PART_OF_DOUBT * doubt, np.minimum(2 * variance**2, found + doubt))
        return _spread_unit(self, _root(np.minimum(found, variance * (most - variance)) / n), variance)


SampledReading = RowSum | SampledTotal | SpreadMean | SampledSpread | Correlation
AnyReading = Reading | SampledReading
Deviation = Callable[[Any, Released, Floats], Floats]


def deviation_of(sampling: Sampling, unit: Unit) -> float:
    """By what a deviation of independent rows is multiplied: a person's k rows, all alike, vary root k times as far.

    Raises:
        QuestionError: `bad-question`: sampling is neither.
    """
    return math.sqrt(unit.rows) if of_people(sampling) else 1.0


def of_people(sampling: Sampling) -> bool:
    """Whether people are sampled, and not rows."""
    if sampling is not True and sampling not in ("people", "rows"):
        raise QuestionError("bad-question", 'sampling is True, "rows" where rows are independent, or False.')
    return sampling != "rows"


def sampled(reading: object, released: Released, beta: float, *, factor: float) -> tuple[Floats, Floats]:
    """From where to where the population's statistic lies, noise and sampling counted, except with probability beta.

    Raises:
        QuestionError: `bad-question`: no law of sampling is known for this statistic, and why.
    """
    match reading:
        case Correlation():
            return _fisher(reading, released, beta, factor)
        case Determination():
            return squared(*_fisher(reading.correlation(), released, beta, factor))
        case Quantile():
            return reading.interval(released, beta, sampling=factor)
        case Picked():
            low, high = reading.tree.interval(_counts(released), beta, sampling=factor)
            value = reading.value(released)
            return np.minimum(low, value), np.maximum(high, value)
        case Quantiles():
            return _columns([sampled(one, released, beta, factor=factor) for one in reading.wanted])
        case SeveralQuantiles():
            return _columns([sampled(one, part, beta, factor=factor) for one, part in reading.parts(released)])
        case CountedFirst() if isinstance(reading.of, (Quantile, Picked)):
            rest = replace(released, units=released.units[:, released.noise[0].width :], noise=released.noise[1:])
            return sampled(reading.of, rest, beta, factor=factor)
    law = LAWS.get(type(reading))
    if law is None:
        _refuse(*REFUSED.get(type(reading), ("this statistic", "a law of its sampling error, and there is none")))
    if isinstance(reading, RowSum) and reading.persons:
        factor = 1.0
    return _joined(reading, released, beta, lambda at: factor * law(reading, released, at))


def sampled_sum(reading: object, released: Released, rows: list[int], factor: float) -> float:
    """The deviation by sampling of a sum over several groups, which have different rows; endless where it is not known.

    Where the number of rows is secret the groups' are independent; among a public number they vary less together.
    """
    if not isinstance(reading, RowSum) or math.isnan(factor):
        return math.inf
    found = reading.deviation(reading.value(released)[rows])
    return (1.0 if reading.persons else factor) * float(np.sqrt((found**2).sum()))


def sum_reading(lo: Fraction, hi: Fraction, size: int | None, *, every: bool) -> RowSum:
    """How a sum of values in [lo, hi] is read; where not `every` row is summed the others add nothing."""
    if size is None or every:
        return RowSum(lo, hi, size)
    return RowSum(min(lo, Fraction(0)), max(hi, Fraction(0)), size)


def _joined(
    reading: Any,  # noqa: ANN401 - one of LAWS
    released: Released, beta: float, deviation: Callable[[Floats], Floats],
) -> tuple[Floats, Floats]:  # fmt: skip
    """Both errors as squares on either side, the deviation of sampling that of the end itself."""
    z, value = -_NORMAL.inv_cdf(beta / 2), reading.value(released)
    low, high = reading.interval(released, beta)
    near = reading.interval(released, NEAR)
    scale = z / -_NORMAL.inv_cdf(NEAR / 2)
    below = np.maximum(value - low, scale * (value - near[0]))
    above = np.maximum(high - value, scale * (near[1] - value))
    half, nothing = _half_row(reading, value, deviation)
    a, b = value - half - below, np.maximum(value, nothing) + above + 2 * z**2 * half
    for _ in range(ROUNDS):
        a, before = value - half - np.hypot(below, z * deviation(a)), a
        sampling = z * deviation(b)
        b = np.maximum(value + half + np.hypot(above, sampling), nothing + sampling)
    a = np.minimum(a, before)  # near 0 the ends may alternate
    bounds = getattr(reading, "bounds", None)
    if bounds is not None:
        least, most = bounds()
        a, b = np.clip(a, least, most), np.clip(b, least, most)
    elif isinstance(reading, Average):
        a, b = (np.clip(end, float(reading.lo), float(reading.hi)) for end in (a, b))
    return np.minimum(a, low), np.maximum(b, high)


def _half_row(reading: object, value: Floats, deviation: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
    """By how much farther either end is of a count, a Poisson number; and the least from where the upper one is.

    Without half a row few rows are covered too seldom. That least is half a row as well: else a released 0 would have
    the upper end 0, and a negative number none. Of anything else: nothing, and the value.
    """
    if not isinstance(reading, RowSum) or reading.size is not None or reading.lo < 0 or reading.hi == 0:
        return np.zeros_like(value), value
    row = np.full_like(value, float(reading.hi))
    half = deviation(row) ** 2 / row / 2  # of all the rows of a person, where they may be alike
    return half, half


def _fisher(reading: Correlation, released: Released, beta: float, factor: float) -> tuple[Floats, Floats]:
    """Fisher's z of a correlation: normal with variance 1/(n - 3) in a bivariate normal population."""
    count = np.maximum(released.values()[:, :1] - 3, 1.0)
    z = factor * -_NORMAL.inv_cdf(beta / 2) / np.sqrt(count)
    edge = 1 - 1e-12
    found = (reading.value(released), *reading.interval(released, beta))
    value, low, high = (np.arctanh(np.clip(end, -edge, edge)) for end in found)
    ends = np.tanh(value - np.hypot(value - low, z)), np.tanh(value + np.hypot(high - value, z))
    return np.minimum(ends[0], found[1]), np.maximum(ends[1], found[2])


def _columns(ends: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    return np.concatenate([low for low, _ in ends], axis=1), np.concatenate([high for _, high in ends], axis=1)


def _counts(released: Released) -> Released:
    """The tree's counts, without what was chosen."""
    return replace(released, units=released.units[:, :-1], noise=released.noise[:-1])


def _root(squares: Floats) -> Floats:
    found: Floats = np.sqrt(np.maximum(squares, 0.0))
    return found


def _refuse(what: str, needs: str) -> NoReturn:
    raise QuestionError(
        "bad-question",
        f"The sampling error of {what} is not known: it needs {needs}.",
        "Ask for the interval of the noise alone: interval(level).",
    )


# -- the deviation of sampling of each statistic, where it is `at`; a column each


def _bounded_mean(reading: Any, count: Floats, at: Floats) -> Floats:  # noqa: ANN401 - a mean with bounds
    """Of values in [a, b] with this mean the variance is at most (mean - a)(b - mean)."""
    lo, hi = float(reading.lo), float(reading.hi)
    return _root((at - lo) * (hi - at) / np.maximum(count, 1.0)[:, None])


def _of_pair(reading: Mean, released: Released, at: Floats) -> Floats:
    width = float(reading.hi - reading.lo) or 1.0
    return _bounded_mean(reading, released.values().sum(axis=1) / width, at)


def _of_size(reading: Average, released: Released, at: Floats) -> Floats:
    return _bounded_mean(reading, np.full(released.cells, float(reading.size)), at)


def _of_spread_mean(reading: SpreadMean, released: Released, at: Floats) -> Floats:
    """By the released variance."""
    del at
    spread = Spread(reading.hi - reading.lo)
    n = released.values().sum(axis=1) / (float(spread.width) ** 2 or 1.0)
    return _root(spread.value(released) / np.maximum(n, 1.0)[:, None])


def _of_squares(reading: WeightedSum, released: Released, at: Floats) -> Floats:
    del at
    if not reading.squares:
        _refuse("this sum", "the sum of squares of what was summed")
    return _root(released.values() @ np.array([float(weight) for weight in reading.squares]))[:, None]


def _variance(reading: Spread, at: Floats, n: Floats) -> Floats:
    """What is shown, as the variance of values in [0, 1]."""
    found = (at[:, 0] ** 2 if reading.root else at[:, 0]) / (float(reading.width) ** 2 or 1.0)
    variance: Floats = np.clip(found * ((n - 1) / n if reading.ddof else 1.0), 0.0, 0.25)
    return variance


def _spread_unit(reading: Spread, deviation: Floats, variance: Floats) -> Floats:
    """The deviation of a variance of values in [0, 1], as what is shown."""
    width = float(reading.width) or 1.0
    if reading.root:
        deviation = deviation / (2 * width * np.sqrt(np.maximum(variance, 1e-12)))
    found: Floats = (width**2 * deviation)[:, None]
    return found


def _of_spread(reading: Spread, released: Released, at: Floats) -> Floats:
    """Squares of distances from the mean are at most M^2, M the farther bound's, and vary by v(M^2 - v) at most."""
    p, q, r = released.values().T / (float(reading.width) ** 2 or 1.0)
    n = np.maximum(p + q + r, 1.0)
    mean = np.clip((p + q / 2) / n, 0.0, 1.0)
    variance = _variance(reading, at, n)
    return _spread_unit(reading, _root(variance * (np.maximum(mean, 1 - mean) ** 2 - variance) / n), variance)


def _of_sized_spread(reading: SizedSpread, released: Released, at: Floats) -> Floats:
    half, n = float(reading.half), float(reading.size)
    most = (half + np.minimum(np.abs(released.values()[:, :1]) / n, half)) ** 2
    variance = at**2 if reading.root else at
    found = _root(variance * (most - variance) / n)
    return found / (2 * np.sqrt(np.maximum(variance, 1e-12 * half**2))) if reading.root else found


def _of_covariances(reading: Covariance, released: Released, at: Floats) -> Floats:
    """A product of distances from both means varies by min(M_i^2 v_j, M_j^2 v_i) - c^2 at most."""
    values, d = released.values(), len(reading.halves)
    n = np.full(len(values), float(reading.size)) if reading.size is not None else values[:, 0]
    n, first = np.maximum(n, 1.0)[:, None], int(reading.size is None)
    half = np.array([float(one) for one in reading.halves])
    rows, columns = np.triu_indices(d)
    most = (1 + np.clip(np.abs(values[:, first : first + d] / n), 0.0, 1.0)) ** 2
    own = reading.value(released)[:, rows == columns] / half**2
    scale = half[rows] * half[columns]
    bound = np.minimum(most[:, rows] * own[:, columns], most[:, columns] * own[:, rows])
    found: Floats = _root((bound - (at / scale) ** 2) / n) * scale
    return found


def _of_pair_covariance(reading: PairCovariance, released: Released, at: Floats) -> Floats:
    whole = Covariance(reading.halves, None, reading.rounding)
    full = np.repeat(whole.value(released), 1, axis=0)
    full[:, 1:2] = at
    return _of_covariances(whole, released, full)[:, 1:2]


def _of_reports(reading: Estimated, released: Released, at: Floats) -> Floats:
    """A count among a public number of reports."""
    del reading
    law = released.noise[0].law
    reports = float(law.reports) if isinstance(law, ReportLaw) else 1.0
    return _root(at * (1 - at / reports))


LAWS: Final[Mapping[type, Deviation]] = MappingProxyType({
    RowSum: lambda reading, _, at: reading.deviation(at),
    SampledTotal: lambda reading, released, at: _of_squares(reading.of, released, at),
    WeightedSum: _of_squares,
    Mean: _of_pair,
    CentredMean: lambda reading, released, at: _bounded_mean(reading, released.values()[:, 0], at),
    Average: _of_size,
    SpreadMean: _of_spread_mean,
    Spread: _of_spread,
    SampledSpread: lambda reading, released, at: reading.deviation(released, at),
    SizedSpread: _of_sized_spread,
    Covariance: _of_covariances,
    PairCovariance: _of_pair_covariance,
    Estimated: _of_reports,
    **dict.fromkeys((Slope, Intercept, PairMean), lambda reading, released, at: reading.deviation(released, at)),
})  # fmt: skip
"""How each statistic varies from sample to sample, but for quantiles and correlations."""

TREE: Final = "counts over the whole range, which sampling=True of the ask buys"
REFUSED: Final[Mapping[type, tuple[str, str]]] = MappingProxyType({
    ChosenExtreme: ("a minimum or maximum", "the law of the population's tail, which no sample tells"),
    ChosenQuantile: ("a quantile chosen by its rank", TREE),
    CountedFirst: ("a quantile chosen by its rank, or an extreme", TREE),
    PairProduct: ("a sum of products", "how many rows a sample has, and moments that were not asked for"),
    Plain: ("this number", "rows that are summed, each once, within bounds that db.count, db.sum and SQL know"),
})  # fmt: skip

BOUND: Final = "its spread is not known: what the declared bounds allow at most is taken, which is too wide for most"
NORMAL: Final = "of a correlation by Fisher's z, right for a population that is near bivariate normal"
# Of readings: what is said, and what would tell more, in Python and in SQL.
WORDS: Final[tuple[tuple[tuple[type, ...], str, tuple[str, str]], ...]] = (
    (
        (Mean, CentredMean, Average),
        f"of a mean {BOUND}",
        ("; asked with sampling=True it brings its spread along", "; AVG beside VAR_POP brings it along"),
    ),
    (
        (Spread, SizedSpread),
        f"of a spread {BOUND}",
        ("; asked with sampling=True it brings the fourth moment along", ""),
    ),
    ((Covariance, PairCovariance), f"of a covariance {BOUND}", ("", "")),
    ((Slope, Intercept), "of a line as of a linear model whose errors have one variance", ("", "")),
    ((Correlation, Determination), NORMAL, ("", "")),
    (tuple(REFUSED), "no law of sampling is known for some: their interval is endless", ("", "")),
)


def words(readings: list[object], sampling: Sampling, unit: Unit, *, sql: bool = False) -> tuple[str, ...]:
    """What is to be said of intervals that count sampling, at the door of SQL or in Python."""
    kinds = {type(reading) for reading in readings}
    rows = "rows are taken for independent"
    if of_people(sampling) and unit.rows > 1:
        rows = f"people are taken for independent; the {unit.rows} rows of one may be alike, so it is at most so wide"
    told = [text + more[sql] for classes, text, more in WORDS if kinds & set(classes)]
    counts = any(isinstance(reading, RowSum) and reading.size is None for reading in readings)
    told += ["of counts and sums the number of rows is taken for a Poisson number"] if counts else []
    return (f"intervals count noise and the sampling of a larger population ({rows})", *told)


READINGS: Final = tuple(one for one in get_args(SampledReading) if one not in get_args(Reading))
