"""Readings of R(epsilon, delta, T) that no calibration uses: references, and controls that must fail."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

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
