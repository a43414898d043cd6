"""Where k-means begins: given centres, points spread over the bounds, or centres found in a noisy sketch."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.spend_plan import Purse
from sulq.language.kinds import Floats
from sulq.learn.public_random import public
from sulq.learn.unsupervised import location
from sulq.learn.unsupervised.lloyd import Round, Rounds
from sulq.learn.unsupervised.location import Location, locate
from sulq.learn.unsupervised.quantizer import cover, quantize
from sulq.learn.unsupervised.space import Space

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
class Shrink:
    """What was known of a mean before a round, so that a round of much noise and few rows does not undo it."""

    mean: Floats
    deviation: Floats  # of the rows, by coordinate
    most: float  # rows that there are surely

    def means(self, found: Round, centres: Floats, origin: Floats) -> Floats:
        """The new means, drawn towards the old centres by as much as noise explains of them."""
        rows = np.clip(found.sizes - found.blur, 0.0, self.most)[:, None]
        signal = (rows * self.deviation) ** 2
        weight = signal / (signal + found.errors**2)
        moved: Floats = centres + weight * (origin + found.guarded - centres)
        return moved


Plan = tuple[Rounds, Floats, list[Fraction], Shrink | None]


@dataclass(frozen=True, slots=True)
class Task:
    """One fit: where the centres begin and how the spend is divided."""

    space: Space
    purse: Purse
    k: int

    def plain(self, start: Floats | None, rounds: int, *, inertia: bool) -> Plan:
        """Lloyd's iteration from given centres, or points spread over the box, in equal parts."""
        space = self.space
        typical = float(np.linalg.norm(space.half)) / np.sqrt(3)
        origin = space.middle - space.half if self.purse.sublinear else space.middle  # the papers' cube begins at 0
        asked = Rounds(space, self.purse, origin, np.inf, typical)
        centres = cover(space.middle, space.half, self.k) if start is None else start
        usual, last = asked.question(centres), asked.question(centres, inertia=inertia)
        part = Fraction(1, rounds)
        self.purse.foresee(last, part)
        self.purse.plan(rounds, *[usual] * (rounds - 1), last)
        return asked, centres, [part] * rounds, None

    def sketched(self, rounds: int | None) -> Plan:
        """Centres found in a noisy sketch of the rows; then a few rounds."""
        space, purse, k = self.space, self.purse, self.k
        purse.foresee(location.question(space, purse), LOOK)
        box = Rounds(space, purse, space.middle, np.inf, float(np.linalg.norm(space.half)))
        purse.foresee(box.question(np.tile(space.middle, (max(CELLS, 8 * k), 1))), 1 - LOOK)
        purse.plan(2 + (rounds or LAST))
        where = locate(space, purse, LOOK)
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
        probe = Rounds(space, self.purse, where.mean, np.inf, float(np.sqrt(where.spread)))
        # The same part of the half-diagonal, in the units of the sums.
        radius = float(np.sqrt(wide / box) * np.linalg.norm(space.half / probe.unit))
        return Rounds(space, self.purse, where.mean, radius, float(np.sqrt(where.spread)))

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


def _flat(space: Space) -> Floats:
    """The variances of rows spread evenly over the box."""
    found: Floats = space.half**2 / 3
    return found
