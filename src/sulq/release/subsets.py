"""Histograms of few attributes over random subsets of the people, and how often two things hold together.

Two designs. `halves`: t subsets, each person in each with probability 1/2, as in the paper. `groups`: one division
of the people into g groups. Counts of a and b over the same subset are both high where the people are who have both;
the noise in them is independent, so that it adds to the spread of the products and not to their mean.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from sulq.answers.answer import Answers
from sulq.answers.plan import Plan
from sulq.answers.readings.noise_sums import covariance, covariance_errors
from sulq.errors import QuestionError
from sulq.language.attribute import Attribute
from sulq.language.kinds import Floats
from sulq.language.question import MAX_VALUES, Sums, Together
from sulq.language.rowfn import Lit, OrMissing, bucket
from sulq.release.base import unreadable
from sulq.release.space import Marginal
from sulq.release.tables.interactions import Places

MAX_SUBSETS: Final = 2**14  # subsets
MIN_GROUP_PEOPLE: Final = 10  # in a group, where their number is left open
Design = Literal["groups", "halves"]
MAX_COUNTS: Final = 2**22  # noisy counts in one release
ALL_PEOPLE: Final = Fraction(1, 5)  # of the spend, for the histograms over all people, where the subsets are groups
SAFE_DEVIATIONS: Final = 3.0  # of its noise, that a number of people is at least where something is divided by it


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and its standard error: of the noise and of the random subsets, not of the people's own sampling."""

    value: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.value:.6g} ± {self.standard_error:.3g}"


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Noisy counts of some disjoint conditions over each subset, and over all people.

    `counts`: a row a subset, a column a condition. `sizes`: noisy numbers of people in the subsets, from the same
    histogram. `chances`: each condition's noisy share of all people. `noise`, `share_noise`: the variance of the noise
    in a count over a subset, and in a share. `rest`: the variance of the noise in the people of a subset of whom
    the condition does not hold.
    """

    counts: Floats
    sizes: Floats
    chances: Floats
    noise: Floats
    rest: Floats
    share_noise: Floats

    @property
    def excess(self) -> Floats:
        """Counts beyond what subsets of these sizes would have by chance, about their mean."""
        away = self.counts - self.sizes[:, None] * self.chances
        return np.asarray(away - away.mean(axis=0))

    @property
    def excess_noise(self) -> Floats:
        """The variance of the noise in an excess: what is counted weighs 1 - p, the rest of the histogram -p."""
        return self.noise * (1.0 - self.chances) ** 2 + self.rest * self.chances**2

    @property
    def spread(self) -> Floats:
        """p(1 - p), the variance of a condition over the people."""
        p = np.clip(self.chances, 0.0, 1.0)
        return p * (1.0 - p)


def from_halves(a: Series, b: Series, n: float) -> tuple[Floats, Floats]:
    """Pr[a and b] = 4/(n(t - 1)) sum over subsets of (a_s - mean)(b_s - mean), with standard errors [S3.11, S0.12].

    A random half's counts have a covariance of a quarter of the number of people who have both. The standard error
    is sqrt((p_a + 4R/n)(p_b + 4R/n) + p_ab^2)/sqrt(t - 1), R the variance of the noise.
    """
    found: Floats = covariance(a.counts, b.counts) * (4.0 / n)
    own_a, own_b = (np.maximum(x.chances, 0.0) + 4.0 * x.noise / n for x in (a, b))
    return found, covariance_errors(own_a, own_b, found, len(a.counts))


def from_groups(a: Series, b: Series, n: float) -> tuple[Floats, Floats]:
    """Pr[a and b] = p_a p_b + (1/n) g/(g - 1) sum over groups of the products of excesses, with standard errors.

    The excess of a group is the sum over its people of a(x) - p_a, so that the products' sum has an expectation of
    n(1 - 1/g) times the covariance. Standard error: sqrt((v_a + gR_a/n)(v_b + gR_b/n) + c^2)/sqrt(g - 1), v = p(1 - p)
    and R the variance of the noise in an excess; that of p_a p_b is added.
    """
    g = len(a.counts)
    together: Floats = covariance(a.excess, b.excess) * (g / n)
    errors = covariance_errors(a.spread + g * a.excess_noise / n, b.spread + g * b.excess_noise / n, together, g)
    p, q = np.clip(a.chances, 0.0, 1.0), np.clip(b.chances, 0.0, 1.0)
    own = np.outer(a.share_noise, q**2) + np.outer(p**2, b.share_noise)
    found: Floats = together + np.outer(a.chances, b.chances)
    return found, np.sqrt(errors**2 + own)


@dataclass(frozen=True, slots=True)
class Implication:
    """Whether a implies b in probability: Pr[b | a] > Pr[b] [S3.12].

    `effect`: Pr[b | a] - Pr[b], with its standard error. `slope`: the effect/(1 - Pr[a]) = Pr[b | a] - Pr[b | not a],
    by which the excess of b grows with that of a. `heavy`: how many subsets the estimate rests on.
    """

    effect: Estimate
    slope: Estimate
    chance: float  # Pr[b]
    heavy: int

    @property
    def conditional(self) -> Estimate:
        """Pr[b | a]; the noise in Pr[b] itself is far smaller, and left out of its standard error."""
        return Estimate(self.chance + self.effect.value, self.effect.standard_error)

    @property
    def implies(self) -> bool:
        """Whether the effect is positive."""
        return self.effect.value > 0


def by_regression(a: Series, b: Series, n: float, part: float) -> Implication:
    """The slope of b's excess on a's, with the noise's share taken off a's sum of squares (errors in variables).

    `part`: the variance that a subset's excess has for each of the n people and unit of p(1 - p): 1/4 for halves,
    (1 - 1/g)/g for groups. With V the variance of a's own excess, X = V + R_a, Y = W + R_b and c the covariance, the
    slope c/V has a variance of ((XY + c^2) - 4 X c^2/V + 2 X^2 c^2/V^2)/(t V^2).
    """
    x, y = a.excess[:, 0], b.excess[:, 0]
    t = len(x)
    noise_x, noise_y = float(a.excess_noise[0]), float(b.excess_noise[0])
    expected = n * part * float(a.spread[0])
    # Where noise hides the spread of a's excess its size is what the share says: never zero, never negative.
    own = max(float(x @ x) / (t - 1) - noise_x, expected / 2, 1e-12)
    c = float(x @ y) / (t - 1)
    whole_x, whole_y = own + noise_x, n * part * float(b.spread[0]) + noise_y
    slope = c / own
    variance = (whole_x * whole_y + c * c - 4 * whole_x * slope * c + 2 * (whole_x * slope) ** 2) / (t * own * own)
    return _implication(slope, math.sqrt(max(variance, 0.0)), a, b, t)


def by_heavy(a: Series, b: Series, n: float, part: float) -> Implication:
    """The mean excess of b on subsets that are heavy for a: a standard deviation or more beyond expectation [S3.12].

    Of the excess x that a noisy count shows, V/(V + R) is the people's own in expectation: the slope is the mean of
    b's excess over that of a's own. No heavy subset: nothing is known, and the standard error is infinite.
    """
    x, y = a.excess[:, 0], b.excess[:, 0]
    own = max(n * part * float(a.spread[0]), 1e-12)
    whole = own + float(a.excess_noise[0])
    heavy = x >= math.sqrt(whole)
    number = int(heavy.sum())
    if not number:
        return _implication(0.0, math.inf, a, b, 0)
    above = float(x[heavy].mean()) * own / whole
    slope = float(y[heavy].mean()) / above
    spread = n * part * float(b.spread[0]) + float(b.excess_noise[0])
    # What is left of b's excess when a's noisy excess is known: c^2/(V + R) of its variance is explained.
    left = max(spread - slope**2 * own * own / whole, 0.0)
    return _implication(slope, math.sqrt(left / number) / above, a, b, number)


def _implication(slope: float, error: float, a: Series, b: Series, heavy: int) -> Implication:
    without = 1.0 - min(max(float(a.chances[0]), 0.0), 1.0)
    effect = Estimate(slope * without, error * without)
    return Implication(effect, Estimate(slope, error), float(b.chances[0]), heavy)


def best_groups(people: float, share: float, noise: float) -> int:
    """How many groups make the standard error (v + gR/n)/sqrt(g) smallest, v = p(1 - p): nv/R.

    But no fewer than ten people a group: counts of fewer are far from normal, and the heavy groups' own excess is
    then not the part V/(V + R) of what is seen (docs/theory/inference.md).
    """
    wish = people * share * (1 - share) / max(noise, 1e-300)
    return int(max(min(wish, people / MIN_GROUP_PEOPLE, MAX_SUBSETS), 2))


def infer_t(minterms: int, eta: float, beta: float = 0.05, spread: float = 2.0) -> int:
    """How many random halves give every product of two minterms within eta/m^2, all at once but for probability beta.

    t = 2 s^2 m^4 ln(2 m^2/beta)/eta^2 [S3.11]: an average of t products of variance s^2 is within eta/m^2 but for
    2 exp(-t eta^2/(2 s^2 m^4)), by the normal law; of that the m^2 pairs may have beta/m^2 each.

    Args:
        minterms: m, the number of conjunctions of l literals: C(k, l) 2^l for k truth values.
        eta: The accuracy times m^2.
        beta: The probability with which some minterm may be further off.
        spread: s^2 = (p_a + 4R/n)(p_b + 4R/n) + p_ab^2, at most 2 where the noise is small.

    Raises:
        QuestionError: `bad-parameter`: a number out of range.
    """
    whole = isinstance(minterms, int) and minterms >= 1
    if not whole or not eta > 0 or not 0 < beta < 1 or not 0 < spread < math.inf:
        raise QuestionError("bad-parameter", "minterms is at least 1, eta and spread positive, beta between 0 and 1.")
    return math.ceil(2 * spread * minterms**4 * math.log(2 * minterms**2 / beta) / eta**2)


def proper(values: Floats) -> Floats:
    """Estimates as a table of probabilities: none negative, the sum one."""
    kept = np.maximum(values, 0.0)
    whole = float(kept.sum())
    found: Floats = kept / whole if whole > 0 else np.full(kept.shape, 1.0 / max(kept.size, 1))
    return found


def merged(estimates: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """The mean of several estimates of one table; they rest on the same subsets, so their errors may all agree."""
    values: Floats = np.mean([value for value, _ in estimates], axis=0)
    errors: Floats = np.mean([error for _, error in estimates], axis=0)
    return values, errors


@dataclass(frozen=True, slots=True)
class SubsetQuestion:
    """Which histograms: of every `l` attributes, on `subsets` random subsets.

    Rows that miss an attribute have a cell of their own: every histogram of a subset sums to its number of rows.
    """

    attributes: tuple[Attribute, ...]
    l: int  # noqa: E741 - the paper's letter
    design: Design
    subsets: int
    salt: int

    def __post_init__(self) -> None:
        copies = self.subsets + 1
        asked = len(self.sets) * (2 if self.design == "groups" else copies)
        cells = copies * sum(math.prod(self.shape(own)) for own in self.sets)
        if asked > MAX_VALUES or cells > MAX_COUNTS:
            raise QuestionError(
                "too-large",
                f"This would be {asked:,} histograms with {cells:,} cells; {MAX_VALUES:,} and {MAX_COUNTS:,} fit.",
                "Take fewer attributes, bins or subsets.",
            )

    @property
    def sets(self) -> tuple[Places, ...]:
        """The sets of l attributes, by their places."""
        return tuple(itertools.combinations(range(len(self.attributes)), self.l))

    def shape(self, places: Sequence[int]) -> tuple[int, ...]:
        """The cells of a histogram, the missing of each attribute last."""
        return tuple(self.attributes[place].size + 1 for place in places)

    def histogram(self, places: Sequence[int]) -> Sums:
        """Counts by some attributes over all people."""
        return Sums((Lit(1),), by=tuple(OrMissing(self.attributes[place].row) for place in places))

    @property
    def question(self) -> Together:
        """All of it as one question, at one debit.

        A person is in one cell of each histogram: of `halves` the sensitivity is (t + 1) C(k, l) in L1 [X1], of
        `groups`, which divide the people, 2 C(k, l) whatever their number (SR11, SR13).
        """
        whole = [self.histogram(own) for own in self.sets]
        if self.design == "halves":
            halves = [bucket(2, self.salt + i) == 0 for i in range(self.subsets)]
            parts = [Sums(each.values, half, each.by) for half in halves for each in whole]
            return Together((*whole, *parts))
        group = bucket(self.subsets, self.salt)
        parts = [Sums(each.values, by=(group, *each.by)) for each in whole]
        return Together((*whole, *parts), (ALL_PEOPLE,) * len(whole) + (1 - ALL_PEOPLE,) * len(parts))

    def noise(self, plan: Plan) -> tuple[float, float]:
        """The variances of the noise in a cell, over all people and over a subset."""
        first, last = (part.noise[0] for part in (plan.parts[0], plan.parts[-1]))
        return first.law.variance() * float(first.step) ** 2, last.law.variance() * float(last.step) ** 2

    def read(self, answers: Answers) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
        """The noisy histograms over all people, and over the subsets: there a row a subset."""
        found = [answer.released.values()[:, 0] for answer in answers]
        sets = self.sets
        whole = tuple(cells.reshape(self.shape(own)) for own, cells in zip(sets, found, strict=False))
        parts = []
        for i, own in enumerate(sets):
            cells = found[len(sets) + i :: len(sets)]
            parts.append(np.concatenate(cells).reshape(self.subsets, *self.shape(own)))
        return whole, tuple(parts)


@dataclass(frozen=True, slots=True, eq=False)
class SubsetHistograms:
    """The noisy histograms, and the number of people their shares are of."""

    sets: tuple[Places, ...]
    whole: tuple[Floats, ...]
    parts: tuple[Floats, ...]
    whole_noise: float
    part_noise: float
    size: int | None  # the owner's declared one

    @property
    def people(self) -> float:
        """The declared number of rows, or the mean of what the histograms sum to, no less than its noise (SR6)."""
        if self.size is not None:
            return float(self.size)
        sums = [float(cells.sum()) for cells in self.whole]
        noise = math.sqrt(self.whole_noise * sum(cells.size for cells in self.whole)) / len(sums)
        return max(float(np.mean(sums)), SAFE_DEVIATIONS * noise, 1.0)

    def series(self, places: Places, held: Places) -> Series:
        """Counts by some attributes, read off the histogram of a set that holds them."""
        own = self.sets.index(held)
        gone = tuple(axis for axis, place in enumerate(held) if place not in places)
        whole, parts = self.whole[own], self.parts[own]
        summed = math.prod(whole.shape[axis] for axis in gone)
        shares = whole.sum(axis=gone).ravel() / self.people
        counts = parts.sum(axis=tuple(axis + 1 for axis in gone)).reshape(len(parts), -1)
        ones = np.ones(len(shares))
        return Series(
            counts=counts,
            sizes=counts.sum(axis=1),
            chances=shares,
            noise=ones * (self.part_noise * summed),
            rest=ones * (self.part_noise * (whole.size - summed)),
            share_noise=ones * (self.whole_noise * summed / self.people**2),
        )

    def splits(self, places: Places) -> list[tuple[tuple[Places, Places], tuple[Places, Places]]]:
        """The ways to divide attributes into two parts, and for each the two different histograms that hold them.

        Two histograms have independent noise, which is what the estimates need; the least of other attributes is best.
        """
        l = len(self.sets[0])  # noqa: E741 - the paper's letter
        found = []
        larger = (len(places) + 1) // 2
        for one in itertools.combinations(places, larger):
            other = tuple(place for place in places if place not in one)
            if len(other) == larger and one[0] != places[0]:
                continue  # the same division the other way round
            if larger <= l and (held := self.pair(one, other)) is not None:
                found.append(((one, other), held))
        return found

    def pair(self, one: Places, other: Places) -> tuple[Places, Places] | None:
        """Histograms that hold the two parts, different ones, with as few cells to sum as can be."""
        first = sorted((own for own in self.sets if set(one) <= set(own)), key=self._cells)
        second = sorted((own for own in self.sets if set(other) <= set(own)), key=self._cells)
        pairs = ((a, b) for a in first for b in second if a != b)
        return next(pairs, None)

    def _cells(self, own: Places) -> int:
        return self.whole[self.sets.index(own)].size

    def holding(self, places: Places) -> Places:
        """The smallest histogram that holds some attributes."""
        return min((own for own in self.sets if set(places) <= set(own)), key=self._cells)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Probabilities(Marginal):
    """Estimated shares of all rows, by some attributes; unbiased, so that some may be negative."""

    @property
    def proper(self) -> Floats:
        """As probabilities: none negative, the sum one."""
        return proper(self.values)


@dataclass(frozen=True, slots=True)
class Direct:
    """What measuring the 2l-attribute histograms themselves would give at the same spend.

    `histograms`: their number, C(k, 2l). `standard_error`: of a minterm of 2l literals, measured. `inferred`: of the
    same by inference, as a root mean square over tables. `better`: how many times smaller the measured one is.
    """

    histograms: int
    standard_error: float
    inferred: float

    @property
    def better(self) -> float:
        """Above 1: direct measurement is better by so much. Below: inference is."""
        return self.inferred / self.standard_error if self.standard_error > 0 else math.inf

    def __str__(self) -> str:
        said = f"direct measurement of {self.histograms:,} histograms: standard error {self.standard_error:.3g}, "
        which, times = ("smaller", self.better) if self.better >= 1 else ("larger", 1 / self.better)
        return f"{said}{times:,.3g} times {which} than inference's {self.inferred:.3g}"


def single(series: Series, column: int) -> Series:
    """One condition of a series; the sizes stay those of the whole histogram."""
    own = slice(column, column + 1)
    return replace(
        series,
        counts=series.counts[:, own],
        **{name: getattr(series, name)[own] for name in ("chances", "noise", "rest", "share_noise")},
    )


def code_of(labels: Sequence[object], value: object, name: str) -> int:
    """The place of a value among an attribute's cells; a number within an interval is in its cell."""
    wanted = tuple(value) if isinstance(value, list) else value
    for i, label in enumerate(labels):
        if label == wanted and isinstance(label, bool) == isinstance(wanted, bool):
            return i
    if isinstance(wanted, (int, float, str)) and not isinstance(wanted, bool):
        last = len(labels) - 1
        for i, label in enumerate(labels):
            if isinstance(label, tuple) and isinstance(wanted, str) == isinstance(label[0], str):
                low, high = label
                if low <= wanted and (wanted < high or (i == last and wanted == high)):
                    return i
    raise QuestionError("bad-parameter", f"{str(value)[:80]!r} is no value of {name}.")


def divided(table: pa.Table, shapes: Sequence[tuple[int, ...]]) -> tuple[Floats, ...]:
    """A column of numbers as arrays, one after the other."""
    values = np.asarray(table.column("value").to_numpy(), dtype=np.float64)
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    if ends[-1] != len(values):
        raise unreadable()
    return tuple(part.reshape(shape) for part, shape in zip(np.split(values, ends[:-1]), shapes, strict=True))
