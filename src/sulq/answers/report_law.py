"""How far an estimate from randomised reports may be off: the noise is in the reports, and nobody draws it again.

Unlike the laws of drawn noise this one is not a single distribution: it depends on what
the people are. What is known of it bounds how far off an estimate is for any of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar, Final, Self

from sulq.errors import QuestionError

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
