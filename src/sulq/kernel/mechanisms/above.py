"""The sparse vector: which of many sums is the first to reach its threshold, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sulq.kernel.arrays import Integers
from sulq.kernel.laws import AboveLaw
from sulq.kernel.mechanisms import bulk
from sulq.kernel.mechanisms._release import chosen
from sulq.kernel.private import Private


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Discrete Laplace noise on every sum and on the threshold; the place of the first sum that passes is told.

    Privacy: let one person move the sums, none by more than R, with a span of S, the largest
    rise plus the largest fall, and by L altogether. Where the threshold is noisy, the odds of
    any place change by at most e^(R/threshold_scale + S/scale) [LSL17]; where it is not, by
    e^(L/scale). So epsilon = S/scale + R/threshold_scale, or L/scale; and
    rho = epsilon^2/2 [BS16, Proposition 1.4]. How many sums there are does not count; S is R
    where all sums move the same way, else at most 2R.
    Accuracy: `AboveLaw.tail`, over all sums at once.
    Source: docs/theory/above.md; sampled as `DiscreteLaplace`.
    """

    law: AboveLaw

    def epsilon(self, sensitivity: Fraction, most: Fraction = Fraction(0)) -> Fraction:
        """Pure loss: of a noisy threshold for a span S and a largest move R, of one as it is for a total L."""
        level = self.law.threshold_scale
        return sensitivity / self.law.scale + (most / level if level else 0)

    def rho(self, sensitivity: Fraction, most: Fraction = Fraction(0)) -> Fraction:
        """Zero-concentrated loss for the same."""
        return self.epsilon(sensitivity, most) ** 2 / 2

    def release(self, exact: Private[Integers]) -> Integers:
        """The place of the first passing sum in each row of exact sums less their thresholds; past the last if none."""
        return chosen(exact, self._first, none=True)

    def _first(self, above: Integers) -> Integers:
        """All noise is drawn and every sum compared, wherever the first to pass is."""
        rows, sums = above.shape
        noisy = above + bulk.laplace(above.size, self.law.scale).reshape(above.shape)
        level = np.zeros(rows, dtype=np.int64)
        if self.law.threshold_scale:
            level = bulk.laplace(rows, self.law.threshold_scale)
        places = np.where(noisy >= level[:, None], np.arange(sums), sums)
        first: Integers = places.min(axis=1, initial=sums)
        return first
