"""Outputs in a metric space: a point near the exact one, and the Hamming cube bit by bit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sulq.kernel import coins
from sulq.kernel.arrays import Integers
from sulq.kernel.laws import BitLaw, MetricLaw
from sulq.kernel.mechanisms._release import chosen, released
from sulq.kernel.mechanisms.choose import proposed
from sulq.kernel.private import Private


@dataclass(frozen=True, slots=True)
class NearPoint:
    """A point of a finite space, drawn with probability proportional to exp(-distance/scale) [S4.15, E42].

    Privacy: one person moves the exact value, and so its distance from any point, by S at most. Each weight
    changes by a factor of e^(S/scale), and so does their total: epsilon = D/scale with D = 2S. Where the
    total is the same whatever the exact value is (a circle all of whose places are points), it does not
    change at all and D = S [DMNS06, Theorem 2 and Remark 1].
    rho = epsilon^2/2 [BS16, Proposition 1.4].
    Accuracy: P(distance > least + scale*(ln m + s)) <= e^-s for m points.
    Source: docs/theory/metric.md; sampled by proposing uniform points to exact coins.
    """

    law: MetricLaw

    def epsilon(self, sensitivity: Fraction) -> Fraction:
        """Pure loss for D, the sensitivity once or twice."""
        return sensitivity / self.law.scale

    def rho(self, sensitivity: Fraction) -> Fraction:
        """Zero-concentrated loss for the same."""
        return self.epsilon(sensitivity) ** 2 / 2

    def release(self, exact: Private[Integers]) -> Integers:
        """The place of a point for each row of negated distances."""
        return chosen(exact, lambda scores: proposed(scores, self.law.scale))


@dataclass(frozen=True, slots=True)
class BitFlips:
    """Every bit is flipped by itself with probability 1/(1 + e^(1/scale)): the Hamming cube [S4.16, E43].

    Privacy: a flip is e^(1/scale) times as likely to be missed as to be made, so each of the S bits
    that one person moves loses 1/scale: epsilon = S/scale, and exactly that; by independence
    rho = S/(2 scale^2) [BS16, Propositions 1.4 and 1.7]. This is the density of E42 with
    scale S/epsilon: its total is the same for every value, so the factor 2 of `NearPoint` falls away.
    Accuracy: each bit is right except with the probability above.
    Source: docs/theory/metric.md; sampled from fair bits and exact coins.
    """

    law: BitLaw

    def epsilon(self, sensitivity: Fraction) -> Fraction:
        """Exact pure loss where one person moves so many bits."""
        return sensitivity / self.law.scale

    def rho(self, sensitivity: Fraction) -> Fraction:
        """Zero-concentrated loss where one person moves so many bits."""
        return sensitivity / (2 * self.law.scale**2)

    def release(self, exact: Private[Integers]) -> Integers:
        """The bits, some of them flipped; what is no bit is an error like any other."""
        return released(exact, self._flipped)

    def _flipped(self, bits: Integers) -> Integers:
        if not np.isin(bits, (0, 1)).all():
            raise ValueError
        return bits ^ flips(bits.size, self.law.scale)


def flips(count: int, scale: Fraction) -> Integers:
    """So many bits, each 1 with probability q/(1 + q), q = e^(-1/scale), exactly.

    A fair bit says which is tried; a 0 is taken as it is, a 1 if a coin of bias q shows heads; else all is tried
    anew. So 0 and 1 are as likely as 1 to q.
    """
    found = np.zeros(count, dtype=np.int64)
    left = np.arange(count)
    while left.size:
        one = coins.below(np.full(left.size, 2)) == 1
        up = coins.heads(np.ones(left.size, dtype=np.int64), scale)
        found[left[one & up]] = 1
        left = left[one & ~up]
    return found
