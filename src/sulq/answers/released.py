"""Released integers with the law of the noise in them, and which rows of a person they are about."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar, Final, Self

import numpy as np

from sulq.errors import QuestionError
from sulq.language.facts import Facts, Heavy
from sulq.language.kinds import Floats, Integers
from sulq.language.law import Law, Passed
from sulq.language.question import Above, Choose, Holistic, Question, Together
from sulq.language.relation import Relation, Table
from sulq.language.statistic import HeavyPersons


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of `width` neighbouring columns: its law in units of `step`."""

    law: Law
    step: Fraction
    width: int

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in one number."""
        return float(self.law.variance() ** 0.5 * float(self.step))


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """Noisy whole units, a row for each cell; every number shown is computed from these alone (T1, T2).

    `labels`: where keys were open, of each key the labels of the rows' groups, which
    ascend; written row by row. Of a choice the one column holds the number of the
    chosen candidate. `exact`: no noise was added, as only made-up data may have it (SR9).
    """

    units: Integers
    noise: tuple[Noise, ...]
    labels: tuple[tuple[object, ...], ...] | None = field(default=None, metadata={"wire": "rows"})
    exact: bool = field(default=False, metadata={"wire": "set"})

    @property
    def cells(self) -> int:
        """Number of cells of the partition."""
        return int(self.units.shape[0])

    @property
    def draws(self) -> int:
        """Number of independent draws of noise."""
        return int(self.units.size)

    def values(self) -> Floats:
        """The released sums: whole units times a public step."""
        steps = np.repeat([float(noise.step) for noise in self.noise], [noise.width for noise in self.noise])
        values: Floats = self.units * steps
        return values

    def radius(self, beta: float) -> Floats:
        """How far each column's cells may be off, except with probability beta a cell; exact for the law."""
        found = [float(noise.law.accuracy(beta) * noise.step) for noise in self.noise for _ in range(noise.width)]
        return np.array(found)

    def interval(self, beta: float) -> tuple[Floats, Floats]:
        """From where to where each number lies except with probability beta; exact for the law.

        A group's number of people is judged given that it passed its threshold (SR14).
        """
        value, radius = self.values(), self.radius(beta)
        low, high = value - radius, value + radius
        column = 0
        for noise in self.noise:
            if isinstance(noise.law, Passed):
                ends = {int(n): noise.law.ends(int(n), beta) for n in np.unique(self.units[:, column])}
                low[:, column] = [ends[int(n)][0] for n in self.units[:, column]]
                high[:, column] = [ends[int(n)][1] for n in self.units[:, column]]
            column += noise.width
        return low, high

    def deviations(self) -> Floats:
        """Standard deviation of the noise in each column."""
        return np.array([noise.deviation for noise in self.noise for _ in range(noise.width)])


def kept_rows(question: Question, facts: Facts) -> tuple[str, ...]:
    """A note for every answer over a table of which so many rows a person are kept; none where all rows are."""
    asked = question.questions if isinstance(question, Together) else (question,)
    names: dict[str, None] = {}
    for item in asked:
        if not (isinstance(item, Holistic) and isinstance(item.statistic, HeavyPersons)):
            over = item.counts.over if isinstance(item, (Choose, Above)) else item.over
            names |= dict.fromkeys(_tables(over, facts))
    bounded = [name for name in names if facts.kept_of(facts.table_of(name)) is not None]
    if not bounded:
        return ()
    note = f"of the kept rows (at most {'one' if facts.unit.rows == 1 else facts.unit.rows} a person)"
    beside = [f"{item}{f' of {item.table}' if facts.tables else ''}" for item in facts.heavy if item.table in bounded]
    return ("; ".join([note, *beside]),)


def _tables(relation: Relation, facts: Facts) -> list[str]:
    """The tables a relation reads."""
    if isinstance(relation, Table):
        return [facts.table_of(relation.name).schema.table]
    return [name for source in relation.sources() for name in _tables(source, facts)]


def heavy_share(table: str, released: Released) -> Heavy:
    """The share from the two noisy counts of persons, each within its interval at 97.5%: both hold at once at 95%."""
    (heavy, others), ends = released.values()[0], [end[0] for end in released.interval(0.025)]
    (least, fewest), (most, many) = ([max(float(n), 0.0) for n in end] for end in ends)
    whole = max(heavy, 0.0) + max(others, 0.0)
    low = least / (least + many) if least + many else 0.0
    high = most / (most + fewest) if most + fewest else 1.0
    return Heavy(table, min(max(max(heavy, 0.0) / whole if whole else 0.0, low), high), low, high)


SLIP: Final = 1e-6  # with which the deviation read off the reports may be too small
_BERRY: Final = 0.56  # of the Berry-Esseen inequality for independent summands that need not be alike
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class ReportLaw:
    """The error of a sum over independent reports, in units: bounds on its deviation and on one report's part.

    `most`: the standard deviation at most, whatever the people are. `likely`: likewise, but for a probability of
    1e-6, as the reports themselves show. `least`: at least. `jump`: how far one summand may be off.

    Accuracy: Bennett's inequality, or the normal tail with the Berry-Esseen inequality [Shev10] added, whichever is
    smaller; summands within `jump` have third moments within `jump` times their variances
    (docs/theory/local.md).
    """

    reports: int
    most: float
    likely: float
    least: float
    jump: float
    kind: ClassVar[str] = "reports"

    def accuracy(self, beta: float) -> int:
        """A t that the error passes with probability at most beta; one unit of it is for rounding.

        Where the smaller of two bounds is taken and one of them is read off the reports, either has SLIP less of beta:
        that the reading is too small must be paid for whichever is the smaller.
        """
        if isinstance(beta, bool) or not isinstance(beta, (int, float)) or not 1e-300 <= beta < 1:
            raise QuestionError("bad-question", "beta must be a probability of at least 1e-300 and below 1.")
        read = beta > 2 * SLIP
        found = self.reach(min(self.most, self.likely) if read else self.most, beta - SLIP if read else beta)
        return math.ceil(found * (1 + 1e-9)) + 1

    def variance(self) -> float:
        """Variance at most, in squared units, but for a probability of 1e-6."""
        return min(self.most, self.likely) ** 2

    def at(self, reports: float) -> Self:
        """The law that so many reports of such people would have."""
        wider = math.sqrt(reports / self.reports)
        most, likely, least = self.most * wider, self.likely * wider, self.least * wider
        return type(self)(max(1, round(reports)), most, likely, least, self.jump)

    def reach(self, deviation: float, beta: float) -> float:
        """How far off the error may be where its deviation is at most this, except with probability beta."""
        if deviation == 0:
            return 0.0
        rest = beta - 2 * _BERRY * self.jump / self.least if self.least > 0 else 0.0
        normal = -_NORMAL.inv_cdf(rest / 2) * deviation if rest > 0 else math.inf
        return min(normal, bennett(deviation, self.jump, beta))


def of_reports(laws: Iterable[object]) -> list[ReportLaw]:
    """The laws of a plan whose noise is in reports already given; none for noise that a spend would buy (SR19)."""
    return [law for law in laws if isinstance(law, ReportLaw)]


def bennett(deviation: float, jump: float, beta: float) -> float:
    """The t that a sum of independent parts within `jump` of their means passes with probability beta at most.

    Accuracy: each side has probability exp(-v h(jump t/v)/jump^2) at most, v the variance,
    h(u) = (1 + u) ln(1 + u) - u [Bennett62].
    """
    needed = math.log(2 / beta) * (jump / deviation) ** 2
    return _root(lambda u: (1 + u) * math.log1p(u) - u - needed, math.sqrt(2 * needed) + needed) * deviation**2 / jump


def _root(rises: Callable[[float], float], high: float) -> float:
    """Where a function that rises through zero does so, from above."""
    low = 0.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if rises(middle) >= 0 else (middle, high)
    return high
