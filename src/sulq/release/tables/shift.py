"""The constant of `fourier-shift`: so many rows, spread evenly, that a non-negative table very likely exists [S3.21].

Noise z_b on coefficient b moves each cell by at most |z_b| max|f_b| / length_b; adding S to the count of rows moves
each of N cells up by S/N. So S at or above the sum of |z_b| max|f_b| N/length_b leaves no cell below zero. The
constant is a quantile of that sum's *law*, known before anything is asked. A constant taken from the realised noise
would need the true coefficients, and would publish them [T6].
Accuracy: P(a cell is negative) <= beta. For equal Laplace noise the sum is a Gamma variable, |B| of scale b, plus at
most a unit each for whole numbers. For unequal Laplace noise its law is worked out on a grid, every term rounded up.
For normal noise Chernoff's bound: P(S >= s) <= exp(-u s) prod E exp(u |z_b|), least over u: above the quantile itself.
Even weights have the least constant at a price: sum s_b is least for given sum 1/s_b where all are equal. The best
weights are for the marginals, of which they lessen the error, and add 11% to the constant (ten attributes, all pairs).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from sulq.language.kinds import Floats, Integers
from sulq.release.tables.basis import lengths, product
from sulq.release.tables.coefficients import Coefficients, own_sizes
from sulq.release.tables.interactions import cells

GRID: Final = 2**16
GROUPS: Final = 512  # of terms with about the same mean
FAR: Final = 1e-9


def shift(noise: Coefficients, beta: float) -> float:
    """How many rows to add; from the noise's law alone."""
    moves = []
    farthest: dict[tuple[int, ...], Integers] = {}
    for part, deviations in noise.deviations.items():
        own = own_sizes(part, noise.sizes)
        if own not in farthest:
            farthest[own] = np.abs(product(own)).max(axis=1, initial=0)
        moves.append(deviations * farthest[own] * cells(part, noise.sizes) / lengths(own))
    each = np.concatenate(moves)
    if noise.law != "laplace":
        return _chernoff(each, beta, _log_mean_normal, 8.0)
    if float(np.ptp(each)) <= 1e-9 * float(each.max()):
        return gamma_quantile(len(each), 1.0 - beta) * float(each[0]) / math.sqrt(2.0) + len(each)
    return _gridded(each / math.sqrt(2.0), beta) + len(each)


def gamma_quantile(shape: int, level: float) -> float:
    """What a sum of so many exponential variables of mean 1 stays below with probability `level`.

    P(sum > x) = exp(-x) (1 + x + ... + x^(shape-1)/(shape-1)!), found by bisection.
    """
    powers = np.arange(shape)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, shape)))])

    def above(x: float) -> float:
        return float(np.exp(powers * math.log(x) - x - factorials).sum())

    low, high = 1e-12, 10.0 * shape - 10.0 * math.log(1.0 - level)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) > 1.0 - level else (low, middle)
    return high


def _gridded(means: Floats, beta: float) -> float:
    """What a sum of exponential variables of these means passes with probability at most beta.

    Means and variables are rounded up to grids, so the sum is never taken for less than it is. A variable on a grid of
    step h is geometric, q = exp(-h/mean); the law of the sum is the inverse Fourier transform of the product of theirs.
    What lies beyond the grid's end has probability at most FAR, and is counted as above everything.
    """
    end = _chernoff(means * math.sqrt(2.0), FAR, _log_mean_laplace, 1.4)
    top = float(means.max())
    grouped, many = np.unique(np.ceil(means / top * GROUPS) * (top / GROUPS), return_counts=True)
    step = (end + len(means) * end / GRID) / GRID  # room for what the rounding adds
    angle = 2 * np.pi * np.arange(GRID // 2 + 1) / GRID
    cos, sin = np.cos(angle), np.sin(angle)
    size, turned = np.zeros(len(angle)), -len(means) * angle  # of the product: its modulus's logarithm, and its angle
    for mean, count in zip(grouped.tolist(), many.tolist(), strict=True):
        kept = math.exp(-step / mean)
        size += count * (math.log1p(-kept) - 0.5 * np.log(1.0 - 2.0 * kept * cos + kept * kept))
        turned -= count * np.arctan2(kept * sin, 1.0 - kept * cos)
    below = np.cumsum(np.fft.irfft(np.exp(size + 1j * turned), GRID))
    reached = np.flatnonzero(1.0 - below + 2 * FAR <= beta)
    bound = _chernoff(means * math.sqrt(2.0), beta, _log_mean_laplace, 1.4)  # the less where terms outnumber the grid
    return min(float(reached[0] * step), bound) if len(reached) else bound


def _chernoff(each: Floats, beta: float, log_mean: Callable[[Floats], Floats], last: float) -> float:
    """The least of (sum of log E exp(u |z|) + log 1/beta)/u; any u gives a valid bound, so a grid of them will do."""
    tries = np.geomspace(last / 1e4, last, 400) / float(each.max())
    unlike, many = np.unique(each, return_counts=True)  # a few deviations stand for hundreds of coefficients
    step = max(1, GRID // len(unlike))
    some = (tries[i : i + step] for i in range(0, len(tries), step))
    return float(min(((log_mean(u[:, None] * unlike) @ many - math.log(beta)) / u).min() for u in some))


def _log_mean_laplace(x: Floats) -> Floats:
    """Of |z|, z Laplace of deviation x, an exponential variable of mean x/sqrt 2: -log(1 - x/sqrt 2)."""
    return -np.log1p(-x / math.sqrt(2.0))


def _log_mean_normal(x: Floats) -> Floats:
    """Of |z|, z normal of deviation x: log(2 exp(x^2/2) Phi(x))."""
    below = np.array([math.erfc(-value / math.sqrt(2.0)) for value in x.ravel().tolist()]).reshape(x.shape)
    return np.asarray(x * x / 2 + np.log(below))
