"""The law of a sum of independent draws of one noise, for cells that are added up after release.

Accuracy: the characteristic function of the sum is a power of the draw's, so its
probabilities come from one Fourier transform, exact to 1e-13; the error is added
to every tail. A Laplace scale past FINE units is brought down to FINE: with
Z = floor(sE) - floor(sE') for exponential E, E' the draw differs from s/FINE times
the coarser one by two independent terms, one of E and one of E', each the difference
of two fractional parts and so within a range of s/FINE + 1: Hoeffding's bound covers it.
Source: docs/theory/quantiles.md.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar, Final, Protocol, runtime_checkable

import numpy as np

from sulq.answers.released import Released
from sulq.language.kinds import Floats, Truths
from sulq.language.law import LARGEST_COINS, MIN_BETA, BinomialLaw, GaussianLaw, LaplaceLaw, Law, round_up

FINE: Final = 40
ERROR: Final = 1e-13  # of a transform of at most 2^22 probabilities
TINY: Final = 1e-12
MIN_WEIGHT: Final = 1e-200  # a sum of less moves nothing that a double shows
MIN_TABLE_BETA: Final = 1e-10
GRID_BETA_SHARE: Final = 1e-2  # of beta, for what the coarser grid loses
SMOOTH: Final = 2.0  # from this scale on, sums of discrete Gaussians are discrete Gaussians up to 1e-16
SLACK: Final = 1.5  # two integer draws against two continuous ones (docs/theory/means.md)

Added = LaplaceLaw | GaussianLaw | BinomialLaw


@dataclass(frozen=True, slots=True)
class AddedLaw:
    """The law of the sum of `number` independent draws of a law; read by intervals, never sampled."""

    law: Added
    number: int
    kind: ClassVar[str] = "added"

    def variance(self) -> float:
        """Variance in squared grid units."""
        return self.number * self.law.variance()

    def accuracy(self, beta: float) -> int:
        """A whole number of units that the sum passes with probability at most beta."""
        return math.ceil(reach(self.law, self.number, 0, 0.0, beta / 2) - 1e-9)


def added(law: Law | AddedLaw, number: int) -> Law | AddedLaw:
    """The law of a sum of independent draws, in its simplest form."""
    if isinstance(law, AddedLaw):
        return added(law.law, law.number * number)
    if number == 1:
        return law
    if isinstance(law, GaussianLaw) and law.scale >= SMOOTH:
        return GaussianLaw(round_up(Fraction(math.sqrt(number) * (1 + 1e-12)) * law.scale))
    if isinstance(law, BinomialLaw) and law.coins * number <= LARGEST_COINS:
        return BinomialLaw(law.coins * number)
    if isinstance(law, (LaplaceLaw, GaussianLaw, BinomialLaw)):
        return AddedLaw(law, number)
    raise TypeError("only noise on sums adds up")


@functools.lru_cache(maxsize=4096)
def reach(law: Added, left: int, right: int, q: float, beta: float) -> float:
    """The least r that (1-q)X - qY passes with probability at most beta; X a sum of `left` draws, Y of `right`."""
    if left + right == 0:
        return 0.0
    if beta < MIN_TABLE_BETA:  # finer than the tables: each draw within its own bound
        return (left * (1 - q) + right * q) * law.accuracy(max(beta / (left + right), MIN_BETA))
    scale = float(law.scale) if not isinstance(law, BinomialLaw) else math.sqrt(law.variance())
    if not isinstance(law, LaplaceLaw) and scale >= SMOOTH:
        return _normal(scale * math.hypot(math.sqrt(left) * (1 - q), math.sqrt(right) * q), beta)
    unit, lost = 1.0, 0.0
    if isinstance(law, LaplaceLaw) and scale > FINE:
        unit = scale / FINE
        # Each of a draw's two exponentials adds a fractional part of either grid: two terms of range unit + 1.
        squares = (left * (1 - q) ** 2 + right * q**2) * 2 * (unit + 1) ** 2
        lost = math.sqrt(squares * math.log(1 / (beta * GRID_BETA_SHARE)) / 2)
        law, beta = LaplaceLaw(Fraction(FINE)), beta * (1 - GRID_BETA_SHARE)
    return unit * _tabled(law, left, right, q, beta) + lost


def _normal(deviation: float, beta: float) -> float:
    return -NormalDist().inv_cdf(beta) * deviation + SLACK if beta < 0.5 else SLACK


@functools.lru_cache(maxsize=4096)
def _tabled(law: Added, left: int, right: int, q: float, beta: float) -> float:
    """The quantile by summing exact probabilities, X by X."""
    if not left or not right or q < MIN_WEIGHT or q == 1.0:
        number, weight = (left, 1 - q) if left and q < 1 else (right, q)
        return weight * _first(law, number, beta)
    mass, beyond = _table(law, left)[0], np.append(1.0, _table(law, right)[1])
    near = np.flatnonzero(mass > TINY / len(mass))  # what is left out weighs less than TINY
    last = len(beyond) - 1
    shifted, mass = (1 - q) / q * (near - len(mass) // 2) - last // 2 - 1 - 1e-9, mass[near]

    def passed(r: float) -> float:
        # (1-q)x + qY > r where Y > (r - (1-q)x)/q; `beyond` has P(Y > j) from j = -w - 1, where it is 1, to w: 0.
        need = np.minimum(np.maximum(np.floor(r / q - shifted), 0), last)
        return float(mass @ beyond[need.astype(np.int64)]) + ERROR + TINY

    deviation = math.sqrt(law.variance() * (left * (1 - q) ** 2 + right * q**2))
    low, high = 0.0, deviation
    while passed(high) > beta:
        low, high = high, 2 * high
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if passed(middle) > beta else (low, middle)
    return high + 1e-6  # past the ties that rounding of r and q may have missed


def _first(law: Added, number: int, beta: float) -> int:
    """Least t with P(X > t) <= beta."""
    beyond = _table(law, number)[1]
    centre = len(beyond) // 2
    return max(0, int(np.argmax(beyond + ERROR <= beta)) - centre)


@functools.lru_cache(maxsize=512)
def _table(law: Added, number: int) -> tuple[Floats, Floats]:
    """Probabilities of a sum of draws at -w..w, and of passing each of these."""
    deviation = math.sqrt(number * law.variance())
    longest = float(law.scale) if isinstance(law, LaplaceLaw) else deviation
    width = math.ceil(10 * deviation + 40 * longest) + 2
    size = 1 << (2 * width).bit_length()
    theta = 2 * np.pi * np.arange(size // 2 + 1) / size
    mass = np.fft.irfft(_wave(law, theta) ** number, size)
    mass = np.maximum(np.concatenate([mass[-width:], mass[: width + 1]]), 0.0)
    beyond = np.append(np.cumsum(mass[::-1])[::-1][1:], 0.0)
    return mass, beyond


def _wave(law: Added, theta: Floats) -> Floats:
    """The characteristic function of a law: real, as the law is symmetric."""
    found: Floats
    if isinstance(law, LaplaceLaw):
        a = math.exp(-1 / float(law.scale))
        found = (1 - a) ** 2 / (1 - 2 * a * np.cos(theta) + a * a)
        return found
    reach_ = math.ceil(12 * math.sqrt(law.variance()) + 12)
    mass = np.array([law.pmf(z) for z in range(reach_ + 1)])
    found = mass[0] + 2 * np.cos(np.outer(theta, np.arange(1, reach_ + 1))) @ mass[1:]
    return found


LEVEL: Final = 0.95  # the fixed level: no group without rows is taken for one with rows, over all groups of an answer
UNKNOWN: Final = (
    "unknown: the group may have no rows, as the interval of its count reaches 0 (at 95% for all groups at once)"
)


@runtime_checkable
class Counted(Protocol):
    """A statistic that a group without rows does not have: a mean, spread, covariance, quantile or extreme."""

    def least(self, released: Released, beta: float) -> Floats:
        """The lower end of the interval of each cell's number of values, except with probability beta a cell."""
        ...

    def bounds(self) -> tuple[Floats, Floats]:
        """The whole range of each column by public facts."""
        ...


def least_total(released: Released, columns: slice, beta: float, row: float = 1.0) -> Floats:
    """The lower end of the interval of a sum of columns whose noise is of one law, to which a row adds `row`.

    Rows are whole: an interval narrower than half a row on either side is taken as that,
    so that a sum nearer to no row than to one reaches 0 however little noise it has.
    """
    units, noise = released.units[:, columns], released.noise[0]
    away = 0.0 if released.exact else float(added(noise.law, units.shape[1]).accuracy(beta) * noise.step)
    found: Floats = units.sum(axis=1) * float(noise.step) - max(away, row / 2)
    return found


class OfCountedRows:
    """Readings whose first released column is the noisy number of rows."""

    __slots__ = ()

    def least(self, released: Released, beta: float) -> Floats:
        """The lower end of the count's interval."""
        return least_total(released, slice(1), beta)


def beta_of(groups: int) -> float:
    """The error probability of one group's count, so that all counts of an answer hold at the fixed level."""
    return (1 - LEVEL) / max(groups, 1)


def unknown(reading: object, released: Released) -> Truths:
    """Which groups may have no rows, so that a statistic they may not have is not claimed; released numbers alone."""
    if not isinstance(reading, Counted):
        return np.zeros(released.cells, dtype=bool)
    found: Truths = reading.least(released, beta_of(released.cells)) <= 0
    return found


def covariance(a: Floats, b: Floats) -> Floats:
    """The covariance of the columns of a with those of b, a row a subset; unbiased.

    Centred on the subsets' own mean. Centred on noisy totals, the product of the totals' two noises would stay in the
    mean however many subsets there are (docs/theory/vertical.md).
    """
    found: Floats = (a - a.mean(axis=0)).T @ (b - b.mean(axis=0)) / (len(a) - 1)
    return found


def covariance_errors(own_a: Floats, own_b: Floats, found: Floats, subsets: int) -> Floats:
    """The standard errors of covariances: sqrt((var var' + cov^2)/(subsets - 1)), of pairs that are nearly normal."""
    errors: Floats = np.sqrt((np.outer(own_a, own_b) + found**2) / (subsets - 1))
    return errors
