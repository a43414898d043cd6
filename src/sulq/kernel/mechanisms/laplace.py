"""Discrete Laplace noise: pure epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sulq.kernel.arrays import Integers
from sulq.kernel.laws import LaplaceLaw
from sulq.kernel.mechanisms import bulk
from sulq.kernel.mechanisms._release import released
from sulq.kernel.private import Private


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Independent integer noise with P(z) proportional to exp(-|z|/scale) on every cell.

    Privacy: if one person moves the integer sums by at most D in L1, the loss is
    epsilon = D/scale, whatever the order of the asks, and exactly that for
    integer D [DMNS06, Proposition 1; S4.7]; so also rho = epsilon^2/2 [BS16, Proposition 1.4].
    Accuracy: a cell is within t except with probability 2 a^(t+1)/(1 + a), a = exp(-1/scale) [X2].
    Source: docs/theory/discrete-laplace.md; sampled as docs/theory/bulk-noise.md says, after [CKS20, Algorithm 2].
    """

    law: LaplaceLaw

    def epsilon(self, sensitivity: Fraction) -> Fraction:
        """Exact pure loss for an L1 sensitivity in grid units."""
        return sensitivity / self.law.scale

    def rho(self, sensitivity: Fraction) -> Fraction:
        """Zero-concentrated loss for an L1 sensitivity in grid units."""
        return self.epsilon(sensitivity) ** 2 / 2

    def release(self, exact: Private[Integers]) -> Integers:
        """Add fresh noise to every exact integer."""
        return released(exact, lambda values: values + bulk.laplace(values.size, self.law.scale))
