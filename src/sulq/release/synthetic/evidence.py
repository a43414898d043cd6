"""What answers say of a table, interaction by interaction: noisy coefficients, each with its own deviation.

The coefficients are those of an orthogonal basis (release/tables/basis.py), each vector scaled so that its squares
average one over the cells. Measured marginals give them too: independent noise that is alike in all cells of a
marginal is, in an orthogonal basis, uncorrelated noise of known size, so nothing is lost; what several of
them say of one interaction is averaged by the inverse of the variances.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sulq.language.kinds import Floats
from sulq.release.synthetic.measurement import Measurement
from sulq.release.synthetic.space import Places
from sulq.release.synthetic.summing import gathered
from sulq.release.tables.basis import basis, lengths
from sulq.release.tables.coefficients import Coefficients
from sulq.release.tables.interactions import cells, inside, width


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Noisy coefficients by interaction, and how noisy each is; `()` has the number of rows."""

    sizes: tuple[int, ...]
    values: Mapping[Places, Floats]
    deviations: Mapping[Places, Floats]

    @classmethod
    def told(cls, found: Coefficients, finest: float) -> Evidence:
        """What a table's own coefficients say, as they were asked; none more exactly than `finest`."""
        parts = [part for part in found.values if width(part, found.sizes)]
        scales = {part: _scales(part, found.sizes) for part in parts}
        return cls(
            found.sizes,
            {part: found.values[part] / scales[part] for part in parts},
            {part: np.maximum(found.deviations[part], finest) / scales[part] for part in parts},
        )

    @classmethod
    def measured(cls, several: Iterable[Measurement], sizes: Sequence[int], wanted: Iterable[Places]) -> Evidence:
        """What measured marginals say of the interactions wanted; of those that none holds, nothing."""
        parts = [part for part in wanted if width(part, sizes)]
        own = tuple(sizes)
        found = cls(own, {}, {})
        for each in several:
            held = {tuple(map(each.places.index, part)): part for part in parts if {*part} <= {*each.places}}
            values, deviations = {}, {}
            for where, summed in gathered(each.values, held).items():
                part = held[where]
                values[part] = coefficients(summed, part, own)
                deviations[part] = np.full(values[part].shape, each.error * each.values.size**0.5)
            found = found.joined(cls(own, values, deviations))
        return found

    def joined(self, other: Evidence) -> Evidence:
        """What both say together."""
        values, deviations = dict(self.values), dict(self.deviations)
        for part, more in other.values.items():
            one, two = deviations.get(part), other.deviations[part]
            if one is None:
                values[part], deviations[part] = more, two
                continue
            trust = one**-2.0 + two**-2.0
            values[part] = (values[part] * one**-2.0 + more * two**-2.0) / trust
            deviations[part] = trust**-0.5
        return Evidence(self.sizes, values, deviations)

    @property
    def total(self) -> float:
        """The number of rows, as the evidence has it."""
        return float(self.values[()][0])

    @property
    def parts(self) -> tuple[Places, ...]:
        """The interactions, without the number of rows."""
        return tuple(part for part in self.values if part)

    def marginal(self, places: Places) -> tuple[Floats, float]:
        """A marginal before any fit and the deviation of its cells, about; of what is not known, nothing.

        A cell is the sum of the coefficients times their vectors there, over the number of cells; the
        squares of the vectors average one.
        """
        shape = [self.sizes[place] for place in places]
        count = cells(places, self.sizes)
        known = [part for part in inside(places) if part in self.values]
        found = np.zeros(shape)
        for part in known:
            own = [size if place in part else 1 for place, size in zip(places, shape, strict=True)]
            found += (tabled(self.values[part], part, self.sizes) / count).reshape(own)
        variance = sum(float((self.deviations[part] ** 2).sum()) for part in known) / count**2
        return found, variance**0.5


def coefficients(table: Floats, part: Places, sizes: Sequence[int]) -> Floats:
    """The coefficients of one interaction in the marginal of its own columns."""
    for axis, place in enumerate(part):
        table = np.moveaxis(np.tensordot(basis(sizes[place])[1:], table, axes=(1, axis)), 0, axis)
    found: Floats = np.ravel(table) / _scales(part, sizes)
    return found


def tabled(values: Floats, part: Places, sizes: Sequence[int]) -> Floats:
    """The sum of an interaction's vectors times these numbers, on its own cells: the transpose of `coefficients`."""
    found: Floats = (values / _scales(part, sizes)).reshape([sizes[place] - 1 for place in part])
    for axis, place in enumerate(part):
        found = np.moveaxis(np.tensordot(basis(sizes[place])[1:].T, found, axes=(1, axis)), 0, axis)
    return found


def _scales(part: Places, sizes: Sequence[int]) -> Floats:
    """The root of the mean square of each vector over its cells."""
    own = tuple(sizes[place] for place in part)
    return np.sqrt(lengths(own) / cells(part, sizes))
