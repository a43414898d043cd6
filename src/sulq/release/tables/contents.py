"""What a published table holds: noisy numbers as measured, or a table made from noisy coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sulq.language.kinds import Floats, Integers
from sulq.release.tables.basis import inverse
from sulq.release.tables.coefficients import Coefficients, own_sizes
from sulq.release.tables.interactions import Places, cells
from sulq.release.tables.loglinear import LogLinear
from sulq.release.tables.noisy_tables import NoisyCells, NoisyMarginals, NoisyTable


@dataclass(frozen=True, slots=True, eq=False)
class FittedTable:
    """`fourier`: the noisy coefficients, and the one table of whole counts that was fitted to them."""

    noise: Coefficients
    places: Integers  # of the cells that are not zero, the last attribute fastest
    counts: Integers

    @classmethod
    def to(cls, coefficients: Coefficients, values: Floats) -> FittedTable:
        """The fit, rounded to the nearest whole numbers."""
        whole = np.rint(values).astype(np.int64)
        places = np.flatnonzero(whole)
        return cls(coefficients, places, whole[places])

    def marginal(self, places: Places) -> Floats:
        """Sums of cells."""
        found = np.zeros(own_sizes(places, self.noise.sizes))
        codes = np.unravel_index(self.places, self.noise.sizes)
        np.add.at(found, tuple(codes[place] for place in places), self.counts)
        return found

    def table(self) -> Floats:
        """All cells."""
        found = np.zeros(cells(range(len(self.noise.sizes)), self.noise.sizes))
        found[self.places] = self.counts
        return found.reshape(self.noise.sizes)


@dataclass(frozen=True, slots=True, eq=False)
class ShiftedTable:
    """`fourier-shift`: the noisy coefficients alone, and the constant number of rows that is added."""

    noise: Coefficients
    shift: float

    def marginal(self, places: Places) -> Floats:
        """Straight from the coefficients, without the added rows."""
        return self.noise.marginal(places)

    def table(self) -> Floats:
        """The table that has these coefficients and no others, with the added rows: real numbers, seldom negative."""
        sizes = self.noise.sizes
        whole = np.zeros(sizes)
        for part, values in self.noise.values.items():
            place = tuple(slice(1, None) if i in part else 0 for i in range(len(sizes)))
            whole[place] = values.reshape(tuple(size - 1 for size in own_sizes(part, sizes)))
        return inverse(whole) + self.shift / whole.size


@dataclass(frozen=True, slots=True, eq=False)
class ModelTable:
    """`model`: a log-linear table fitted to the coefficients of interactions of at most `order` attributes.

    `measured`: by which method they were. `noise` has them as measured.
    """

    noise: Coefficients
    measured: str
    order: int
    model: LogLinear
    values: Floats

    @classmethod
    def of(cls, noise: Coefficients, measured: str, order: int, model: LogLinear) -> ModelTable:
        """The table of this model."""
        return cls(noise, measured, order, model, model.table(noise.sizes))

    def marginal(self, places: Places) -> Floats:
        """Sums of cells."""
        return np.asarray(self.values.sum(axis=tuple(set(range(self.values.ndim)) - set(places))))

    def table(self) -> Floats:
        """All cells: real numbers, none negative."""
        return self.values.copy()


Contents = NoisyCells | NoisyMarginals | FittedTable | ShiftedTable | ModelTable


def noise_of(contents: Contents) -> NoisyTable:
    """How noisy the marginals of a published table are; of a fit, before it."""
    return contents if isinstance(contents, (NoisyCells, NoisyMarginals)) else contents.noise
