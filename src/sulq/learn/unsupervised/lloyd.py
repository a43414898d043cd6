"""One round of Lloyd's iteration: how many rows are nearest to each centre, and what they sum to."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.released import Released
from sulq.answers.spend_plan import Purse
from sulq.language.kinds import Floats
from sulq.language.question import Sums
from sulq.language.rowfn import Nearest
from sulq.learn.noise import deviations, divided
from sulq.learn.unsupervised.location import SAFE, present, squared
from sulq.learn.unsupervised.space import Space, ball, moved

INERTIA: Final = Fraction(1, 10)  # of a round that also asks for the squared distances, their part


@dataclass(frozen=True, slots=True)
class Round:
    """What one round tells of each cell: its noisy number of rows and their sums about the origin."""

    sizes: Floats
    sums: Floats
    blur: float  # the deviation of a size
    errors: Floats  # of a sum, by coordinate
    squares: Floats | None = None  # squared distances from the origin, where asked for

    @property
    def means(self) -> Floats:
        """The mean of each cell, about the origin; zero where the noisy size is none."""
        found: Floats = self.sums / np.where(self.sizes > 0, self.sizes, np.inf)[:, None]
        return found

    @property
    def guarded(self) -> Floats:
        """The same with sizes no less than their noise: no mean is far off because a size is small by chance."""
        found: Floats = self.sums / np.maximum(self.sizes, SAFE * self.blur)[:, None]
        return found


@dataclass(frozen=True, slots=True)
class Rounds:
    """How rounds are asked: about which origin, within which radius, at which shares.

    Rows are counted for the nearest centre as they lie; what they add to its sum is shortened to the radius
    about the origin, in units that divide the noise evenly over the coordinates.
    """

    space: Space
    purse: Purse
    origin: Floats
    radius: float  # of the weighted coordinates
    typical: float  # how far a cell's mean may be from the origin

    @property
    def unit(self) -> Floats:
        """The units of the sums: the space's own where they are all alike, so that a row is read once for both."""
        even = self.space.even(pure=self.purse.pure)
        alike = float(np.ptp(self.space.half)) <= 1e-9 * float(self.space.half.max())
        return np.ones(len(self.space)) if alike else even

    def question(self, centres: Floats, *, inertia: bool = False) -> Sums:
        """The question of a round."""
        space = self.space
        unit = self.unit
        away = space.away(self.origin) / unit
        vector = space.vector(self.origin)
        summed = vector if (unit == 1).all() else space.vector(self.origin, unit)
        move = moved(away, self.radius, pure=self.purse.pure) * float(np.sqrt((unit**2).mean()))
        shares = divided((1, len(space)), (self.typical, move), pure=self.purse.pure)
        values = (present(vector), ball(summed, self.radius, away))
        by = (Nearest(vector, tuple(map(tuple, (centres - self.origin).tolist()))),)
        if not inertia:
            return Sums(values, by=by, shares=shares)
        rest = tuple(share * (1 - INERTIA) for share in shares)
        return Sums((*values, squared(space, self.origin)), by=by, shares=(*rest, INERTIA))

    def ask(self, centres: Floats, part: Fraction, *, inertia: bool = False) -> Round:
        """Ask one round, for a part of the spend."""
        released = self.purse.one(self.question(centres, inertia=inertia), part).released
        return self.read(released, inertia=inertia)

    def read(self, released: Released, *, inertia: bool = False) -> Round:
        """A round's answer, in the units of the space."""
        values, noise, unit = released.values(), released.deviations(), self.unit
        d = len(self.space)
        return Round(
            sizes=values[:, 0],
            sums=values[:, 1 : 1 + d] * unit,
            blur=float(noise[0]),
            errors=noise[1 : 1 + d] * unit,
            squares=values[:, 1 + d] if inertia else None,
        )

    def noise(self, part: Fraction) -> float:
        """The norm of the noise in one cell's sums, foreseen for a part of the spend; free."""
        plan = self.purse.foresee(self.question(self.origin[None]), part)
        return float(np.linalg.norm(deviations(plan)[0][1 : 1 + len(self.space)] * self.unit))
