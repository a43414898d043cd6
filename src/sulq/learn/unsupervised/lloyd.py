"""Rounds of Lloyd's iteration, and where they begin: given centres, points over the bounds, or a noisy sketch.

A round asks how many rows are nearest to each centre, and what they sum to.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.oracle import SpendPlan
from sulq.answers.released import Released
from sulq.language.kinds import Floats
from sulq.language.question import Sums
from sulq.language.rowfn import Nearest
from sulq.learn.noisy_sums import deviations, divided
from sulq.learn.public_random import public
from sulq.learn.unsupervised.quantizer import cover, quantize
from sulq.learn.unsupervised.space import (
    SAFE,
    ColumnSpace,
    Location,
    ball,
    locate,
    location_question,
    moved,
    present,
    squared,
)

INERTIA: Final = Fraction(1, 10)  # of a round that also asks for the squared distances, their part
LOOK: Final = Fraction(3, 20)  # of the spend, for where the rows lie
SKETCH: Final = Fraction(1, 2)  # of the rest, for a first partition into many cells
CELLS: Final = 64  # of that partition at most, or eight a cluster
CLEAR: Final = 0.5  # the noise of a cell's mean, as part of the spread, up to which cells are worth asking for
CLOSE: Final = 0.7  # how far apart the cells' centres lie, in deviations of the rows
WIDE: Final = 4.0  # squared radius, in spreads
ROUNDS: Final = 5  # of plain Lloyd
LAST: Final = 3  # rounds after a sketch at most
BLUR: Final = 0.1  # the noise of a cluster's mean, as part of the spread, that another round may not pass


@dataclass(frozen=True, slots=True)
class LloydRound:
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

    space: ColumnSpace
    spending: SpendPlan
    origin: Floats
    radius: float  # of the weighted coordinates
    typical: float  # how far a cell's mean may be from the origin

    @property
    def unit(self) -> Floats:
        """The units of the sums: the space's own where they are all alike, so that a row is read once for both."""
        even = self.space.even(pure=self.spending.pure)
        alike = float(np.ptp(self.space.half)) <= 1e-9 * float(self.space.half.max())
        return np.ones(len(self.space)) if alike else even

    def question(self, centres: Floats, *, inertia: bool = False) -> Sums:
        """The question of a round."""
        space = self.space
        unit = self.unit
        away = space.away(self.origin) / unit
        vector = space.vector(self.origin)
        summed = vector if (unit == 1).all() else space.vector(self.origin, unit)
        move = moved(away, self.radius, pure=self.spending.pure) * float(np.sqrt((unit**2).mean()))
        shares = divided((1, len(space)), (self.typical, move), pure=self.spending.pure)
        values = (present(vector), ball(summed, self.radius, away))
        by = (Nearest(vector, tuple(map(tuple, (centres - self.origin).tolist()))),)
        if not inertia:
            return Sums(values, by=by, shares=shares)
        rest = tuple(share * (1 - INERTIA) for share in shares)
        return Sums((*values, squared(space, self.origin)), by=by, shares=(*rest, INERTIA))

    def ask(self, centres: Floats, part: Fraction, *, inertia: bool = False) -> LloydRound:
        """Ask one round, for a part of the spend."""
        released = self.spending.one(self.question(centres, inertia=inertia), part).released
        return self.read(released, inertia=inertia)

    def read(self, released: Released, *, inertia: bool = False) -> LloydRound:
        """A round's answer, in the units of the space."""
        values, noise, unit = released.values(), released.deviations(), self.unit
        d = len(self.space)
        return LloydRound(
            sizes=values[:, 0],
            sums=values[:, 1 : 1 + d] * unit,
            blur=float(noise[0]),
            errors=noise[1 : 1 + d] * unit,
            squares=values[:, 1 + d] if inertia else None,
        )

    def noise(self, part: Fraction) -> float:
        """The norm of the noise in one cell's sums, foreseen for a part of the spend; free."""
        plan = self.spending.foresee(self.question(self.origin[None]), part)
        return float(np.linalg.norm(deviations(plan)[0][1 : 1 + len(self.space)] * self.unit))


@dataclass(frozen=True, slots=True)
class Shrink:
    """What was known of a mean before a round, so that a round of much noise and few rows does not undo it."""

    mean: Floats
    deviation: Floats  # of the rows, by coordinate
    most: float  # rows that there are surely

    def means(self, found: LloydRound, centres: Floats, origin: Floats) -> Floats:
        """The new means, drawn towards the old centres by as much as noise explains of them."""
        rows = np.clip(found.sizes - found.blur, 0.0, self.most)[:, None]
        signal = (rows * self.deviation) ** 2
        weight = signal / (signal + found.errors**2)
        moved: Floats = centres + weight * (origin + found.guarded - centres)
        return moved


Plan = tuple[Rounds, Floats, list[Fraction], Shrink | None]


@dataclass(frozen=True, slots=True)
class KMeansTask:
    """One fit: where the centres begin and how the spend is divided."""

    space: ColumnSpace
    spending: SpendPlan
    k: int

    def plain(self, start: Floats | None, rounds: int, *, inertia: bool) -> Plan:
        """Lloyd's iteration from given centres, or points spread over the box, in equal parts."""
        space = self.space
        typical = float(np.linalg.norm(space.half)) / np.sqrt(3)
        origin = space.middle - space.half if self.spending.sublinear else space.middle  # the papers' cube begins at 0
        asked = Rounds(space, self.spending, origin, np.inf, typical)
        centres = cover(space.middle, space.half, self.k) if start is None else start
        usual, last = asked.question(centres), asked.question(centres, inertia=inertia)
        part = Fraction(1, rounds)
        self.spending.foresee(last, part)
        self.spending.plan(rounds, *[usual] * (rounds - 1), last)
        return asked, centres, [part] * rounds, None

    def sketched(self, rounds: int | None) -> Plan:
        """Centres found in a noisy sketch of the rows; then a few rounds."""
        space, spending, k = self.space, self.spending, self.k
        spending.foresee(location_question(space, spending), LOOK)
        box = Rounds(space, spending, space.middle, np.inf, float(np.linalg.norm(space.half)))
        spending.foresee(box.question(np.tile(space.middle, (max(CELLS, 8 * k), 1))), 1 - LOOK)
        spending.plan(2 + (rounds or LAST))
        where = locate(space, spending, LOOK)
        about = self._about(where)
        spread = np.sqrt(np.minimum(where.spread * space.half**2 / (space.half**2).sum() + where.doubt, _flat(space)))
        shrink = Shrink(where.mean, spread, where.least)
        reach = float(np.linalg.norm(spread))
        left = 1 - LOOK
        cells = min(max(CELLS, 8 * k), int(CLEAR * where.least * reach / about.noise(left * SKETCH)))
        if cells < 2 * k:
            centres = space.inside(cover(where.mean, spread * np.sqrt(3), k))
        else:
            centres = self._sketch(about, shrink, cells, left * SKETCH)
            left *= 1 - SKETCH
        if rounds is None:
            clear = [n for n in range(1, LAST + 1) if about.noise(left / n) * k <= BLUR * where.least * reach]
            rounds = max(clear, default=1)
        return about, centres, [left / rounds] * rounds, shrink

    def _about(self, where: Location) -> Rounds:
        """Rounds about the rows' mean, within a few spreads."""
        space = self.space
        box = float((space.half**2).sum())
        wide = WIDE * (where.spread + where.blur + float(where.doubt.sum()))
        probe = Rounds(space, self.spending, where.mean, np.inf, float(np.sqrt(where.spread)))
        # The same part of the half-diagonal, in the units of the sums.
        radius = float(np.sqrt(wide / box) * np.linalg.norm(space.half / probe.unit))
        return Rounds(space, self.spending, where.mean, radius, float(np.sqrt(where.spread)))

    def _sketch(self, about: Rounds, shrink: Shrink, cells: int, part: Fraction) -> Floats:
        """The best k centres of the noisy means of many cells, weighted by their noisy sizes."""
        rng = public()
        space = self.space
        points = space.inside(shrink.mean + CLOSE * shrink.deviation * rng.normal(size=(cells, len(space))))
        found = about.ask(points, part)
        loose = Shrink(shrink.mean, 2 * shrink.deviation, shrink.most)
        means = space.inside(loose.means(found, points, about.origin))
        noise = float((found.errors**2).sum()) / np.maximum(found.sizes, 1.0) ** 2
        weights = np.maximum(found.sizes, 0.0) / (1 + 4 * noise / float((shrink.deviation**2).sum()))
        weights = np.where(found.sizes < 2 * found.blur, 0.0, weights)
        chosen = np.flatnonzero(weights)
        if len(chosen) < self.k:
            chosen, weights = np.argsort(-found.sizes, kind="stable")[: self.k], np.ones(cells)
        return quantize(means[chosen], weights[chosen], self.k)


def _flat(space: ColumnSpace) -> Floats:
    """The variances of rows spread evenly over the box."""
    found: Floats = space.half**2 / 3
    return found
