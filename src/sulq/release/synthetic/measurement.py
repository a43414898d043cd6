"""A marginal as it was measured, and what is known of its noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.answers.answer import Answer
from sulq.answers.released import Noise
from sulq.language.kinds import Floats
from sulq.language.law import LaplaceLaw
from sulq.release.marginal import Marginal
from sulq.release.space import CellSpace
from sulq.release.tables.interactions import Places

FINEST: Final = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredMarginal:
    """Noisy counts by some columns, an axis each, and the standard deviation of the noise in each of them."""

    places: Places
    values: Floats
    deviation: float

    @classmethod
    def of(cls, answer: Answer, places: Places, space: CellSpace) -> MeasuredMarginal:
        """What was answered to the marginal's question."""
        return cls(places, answer.released.values().reshape(space.shape(places)), answer.released.noise[0].deviation)

    @property
    def error(self) -> float:
        """The deviation as fits take it: whole counts are not told more exactly than this by hardly any noise."""
        return max(self.deviation, FINEST)

    def marginal(self, space: CellSpace) -> Marginal:
        """As it is published, with its error bars."""
        labels = tuple(space.attributes[place].labels for place in self.places)
        names = tuple(space.names[place] for place in self.places)
        return Marginal(names, labels, self.values, np.full(self.values.shape, self.deviation))


def distance(noise: Noise) -> float:
    """How far the noise is expected to move one number, about: the mean of its absolute value."""
    factor = math.sqrt(0.5) if isinstance(noise.law, LaplaceLaw) else math.sqrt(2.0 / math.pi)
    return factor * noise.deviation


def total(measured: Sequence[MeasuredMarginal]) -> float:
    """How many rows there are, as all measurements together say: each weighs as the inverse of its variance (SR6)."""
    weights = [1.0 / (each.values.size * each.error**2) for each in measured]
    return float(np.average([each.values.sum() for each in measured], weights=weights))
