"""Readings of R(epsilon, delta, T) that no calibration uses: references, and controls that must fail."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from sulq.errors import SetupError
from sulq.language import sublinear as sub

NORMAL: Final = NormalDist()


def variance_nonadaptive(epsilon: float, delta: float, queries: int) -> float:
    """R = T/(sqrt(z^2 + 2 epsilon) - z)^2, z = Q^-1(delta): solves Q(epsilon/mu - mu/2) = delta.

    Exact for queries fixed in advance; an analyst who stops when ahead passes
    it (trap 3), so no calibration uses it.
    """
    z = -NORMAL.inv_cdf(delta)
    root = math.sqrt(z * z + 2.0 * epsilon)
    mu = 2.0 * epsilon / (root + z) if z > 0 else root - z
    return queries / mu**2


def variance_adaptive(epsilon: float, delta: float, queries: int) -> float:
    """R that solves Q(epsilon/mu - mu/2) + e^epsilon Q(epsilon/mu + mu/2) = delta: stopping allowed [X3]."""

    def passed(mu: float) -> float:
        a, b = epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0
        return sub._upper(a) + math.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi) * sub._mills(b)

    return queries / sub._largest_mu(passed, delta) ** 2


def variance_zcdp(epsilon: float, delta: float, queries: int) -> float:
    """R = T/(2 rho), rho = (sqrt(epsilon + ln(1/delta)) - sqrt(ln(1/delta)))^2 [X3]."""
    level = -math.log(delta)
    return queries / (2.0 * (epsilon / (math.sqrt(epsilon + level) + math.sqrt(level))) ** 2)


def coins_paper(queries: int, delta: float, size: int) -> int:
    """R = (T/delta^2) ln^6 n fair coins, made even: the survey's own number; delta is its epsilon [S1.5]."""
    return sub._even(queries / delta**2 * math.log(size) ** 6)


@dataclass(frozen=True, slots=True)
class Perturbation:
    """What the survey's Theorem 1 promises for T = n^c queries at privacy n^-c' [S1.6]."""

    queries: int
    epsilon: float
    coins: int
    bound: float  # sqrt(R) ln^2 n
    failure: float  # 2 exp(-2 ln^4 n): how often the noise passes the bound
    below_sampling: bool  # whether sqrt(T)/epsilon < sqrt(n)


def perturbation(size: int, c: float, c_prime: float) -> Perturbation:
    """Check the exponents 0 < c < 1, 0 <= c' < c/2 of the survey's Theorem 1 and say what they give."""
    if size < 2 or not 0.0 < c < 1.0 or not 0.0 <= c_prime < c / 2.0:
        raise SetupError("bad-declaration", "The survey's theorem needs n >= 2, 0 < c < 1 and 0 <= c' < c/2.")
    queries, epsilon, log = math.ceil(size**c), size**-c_prime, math.log(size)
    coins = coins_paper(queries, epsilon, size)
    bound, failure = math.sqrt(coins) * log**2, 2.0 * math.exp(-2.0 * log**4)
    return Perturbation(queries, epsilon, coins, bound, failure, math.sqrt(queries) / epsilon < math.sqrt(size))


@dataclass(frozen=True, slots=True)
class SamplingReport:
    """Noise beside the sampling error a survey of this size has anyway [S0.28]."""

    size: int
    sampling: float  # sqrt(n)/2: the largest standard deviation of a count of n fair rows
    noise: tuple[tuple[str, float], ...]  # sqrt(R) by calibration
    capacity: tuple[tuple[str, int], ...]  # largest T with sqrt(R) < sqrt(n), by calibration

    def __str__(self) -> str:
        head = f"With {self.size} people a count has a sampling error of up to {self.sampling:.4g}."
        capacity = dict(self.capacity)
        lines = (
            f"{name}: noise {noise:.4g}; below sqrt(n) for up to {capacity[name]} queries" for name, noise in self.noise
        )
        return "\n".join((head, *lines))


def sampling_report(size: int, epsilon: float, delta: float, queries: int) -> SamplingReport:
    """Compare sqrt(R) with sqrt(n)/2 and find how many queries stay below sqrt(n), by calibration [S0.28]."""
    noise, capacity = [], []
    for name, variance in sub._VARIANCES.items():
        noise.append((name, math.sqrt(variance(epsilon, delta, queries))))
        low, high = 0, 1
        while high <= 10**12 and variance(epsilon, delta, high) < size:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if variance(epsilon, delta, middle) < size else (low, middle)
        capacity.append((name, low))
    return SamplingReport(size, math.sqrt(size) / 2.0, tuple(noise), tuple(capacity))
