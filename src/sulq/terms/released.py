"""Released integers: what left the curator, with the law of the noise in it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sulq.terms.kinds import Floats, Integers
from sulq.terms.law import Law


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of `width` neighbouring columns: its law in units of `step`."""

    law: Law
    step: Fraction
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """Noisy whole units, a row for each cell; every number shown is computed from these alone (T1, T2)."""

    units: Integers
    noise: tuple[Noise, ...]

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
        steps = np.array([float(noise.step) for noise in self.noise for _ in range(noise.width)])
        values: Floats = self.units * steps
        return values

    def radius(self, beta: float) -> Floats:
        """How far each column's cells may be off, except with probability beta a cell; exact for the law."""
        found = [float(noise.law.accuracy(beta) * noise.step) for noise in self.noise for _ in range(noise.width)]
        return np.array(found)

    def deviations(self) -> Floats:
        """Standard deviation of the noise in each column."""
        found = [noise.law.variance() ** 0.5 * float(noise.step) for noise in self.noise for _ in range(noise.width)]
        return np.array(found)
