"""Readings of sums over a public number of rows: a mean from one sum, a spread from two (S2.3).

Post-processing, with intervals that hold the table's bounded statistic except with probability beta. Proofs:
docs/theory/means.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.readings.regions import variances
from sulq.answers.released import Noise, Released
from sulq.language.domain import Schema
from sulq.language.kinds import Floats
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.vectors import bounded, rounding, scalar_grid

# With the mean at m the error of a variance is that of Q less 2m times that of S, which move by h^2 and by 2h; over m
# in [-h, h] the best shares are as 1 to (16/3)^(1/3) for Laplace noise and as 1 to (16/3)^(1/2) for Gaussian.
SPREAD_SHARES: Final = {
    True: (Fraction(636, 1000), Fraction(364, 1000)),
    False: (Fraction(698, 1000), Fraction(302, 1000)),
}


@dataclass(frozen=True, slots=True)
class Average:
    """A sum over a public number of rows: the mean where n may be known (S2.3, S4.10)."""

    size: int
    lo: Fraction
    hi: Fraction
    rounding: Fraction = Fraction(0)

    def value(self, released: Released) -> Floats:
        """The noisy sum over n, clipped into the bounds."""
        return np.clip(released.values() / self.size, float(self.lo), float(self.hi))

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """The sum's interval over n, clipped into the bounds."""
        low, high = released.interval(beta)
        bounds, away = (float(self.lo), float(self.hi)), float(self.rounding)
        return np.clip(low / self.size - away, *bounds), np.clip(high / self.size + away, *bounds)


@dataclass(frozen=True, slots=True)
class SizedSpread:
    """A variance, or a standard deviation, of a public number n of values z in [-h, h], from their sums S and Q.

    S is the sum of z, Q that of z^2: the variance is Q/n - (S/n)^2, and with m the mean Q - 2m S + n m^2 over n.
    `roundings`: how far z, and z^2, may lie from what was summed.
    """

    size: int
    half: Fraction  # h
    root: bool = False
    ddof: int = 0
    roundings: tuple[Fraction, ...] = (Fraction(0), Fraction(0))

    def _shown(self, mean: Floats, squares: Floats) -> Floats:
        most = float(self.half) ** 2
        found = np.clip(np.clip(squares, 0.0, most) - np.minimum(mean**2, most), 0.0, most)
        found = found * (self.size / max(self.size - 1, 1) if self.ddof else 1.0)
        return (np.sqrt(found) if self.root else found)[:, None]

    def value(self, released: Released) -> Floats:
        """The formula on the released sums, clipped into what a variance can be."""
        mean, squares = (released.values() / self.size).T
        return self._shown(mean, squares)

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every variance that the sums allow, whatever the mean is that they allow."""
        near, far = (float(each) for each in self.roundings)
        most = float(self.half) + near
        single, double = (noise for noise in released.noise for _ in range(noise.width))
        noises = None, _per(single, most), _per(double, most**2)
        total, squares = (released.values() / [most, most**2]).T[..., None]
        low, high = variances(np.full(len(total), float(self.size)), total, squares, noises, beta)
        slip = far + near * (2 * most + near)
        low, high = (
            self._shown(np.zeros(1), np.clip(end[:, 0], 0.0, most**2))
            for end in (low * most**2 - slip, high * most**2 + slip)
        )
        value = self.value(released)
        return np.minimum(low, value), np.maximum(high, value)


def _per(noise: Noise, unit: float) -> Noise:
    """The noise of a number told in another unit."""
    return Noise(noise.law, noise.step / Fraction(unit), 1)


def sized_spread(
    schema: Schema, fn: RowFn, size: int, *, root: bool = False, ddof: int = 0
) -> tuple[tuple[RowFn, RowFn], SizedSpread]:
    """What is summed for a spread of a public number of values, and how it is read."""
    lo, hi, _ = bounded(fn, schema)
    about = fn - float((lo + hi) / 2)
    values = (about, about**2)
    spans = [bounded(each, schema) for each in values]
    half = max(-spans[0][0], spans[0][1])
    steps = tuple(rounding(kind.step, scalar_grid(low, high, kind.step)[0]) for low, high, kind in spans)
    return values, SizedSpread(size, half, root, ddof, steps)
