"""Discrete Gaussian noise: zero-concentrated loss."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sulq.kernel.arrays import Integers
from sulq.kernel.laws import GaussianLaw
from sulq.kernel.mechanisms import bulk
from sulq.kernel.mechanisms._release import released
from sulq.kernel.private import Private


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Independent integer noise with P(z) proportional to exp(-z^2/(2 scale^2)) on every cell.

    Privacy: if one person moves the integer sums by a vector of squared L2 norm
    at most D2, the Renyi divergence of order a is at most a D2/(2 scale^2), so
    rho = D2/(2 scale^2) [CKS20]; no pure epsilon holds.
    Accuracy: the exact tail of the law; never wider than the normal of the same scale.
    Source: docs/theory/discrete-gaussian.md; sampled as docs/theory/bulk-noise.md says, after [CKS20, Algorithm 3].
    """

    law: GaussianLaw

    def epsilon(self, sensitivity: Fraction) -> Fraction | None:
        """No pure loss holds, unless nobody moves the sums."""
        return None if sensitivity else Fraction(0)

    def rho(self, sensitivity: Fraction) -> Fraction:
        """Exact zero-concentrated loss for a squared L2 sensitivity in grid units."""
        return sensitivity / (2 * self.law.scale**2)

    def release(self, exact: Private[Integers]) -> Integers:
        """Add fresh noise to every exact integer."""
        return released(exact, lambda values: values + bulk.gaussian(values.size, self.law.scale))
