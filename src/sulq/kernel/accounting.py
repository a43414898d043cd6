"""Conversions between the currencies of privacy loss, rounded against the asker."""

from __future__ import annotations

import math
from fractions import Fraction

# Every conversion below is a handful of float operations, each off by at most
# 2^-52 relative; a margin of 1e-12 in the asker's disfavour covers them all.
_MARGIN = 1e-12


def conversion_cost(alpha: float, delta: float) -> float:
    """Cost c(alpha, delta) of reading a Renyi loss of order alpha as (epsilon, delta).

    Privacy: a mechanism of Renyi loss r at order alpha is (r + c, delta)-private
    with c = ln(1 - 1/alpha) - (ln delta + ln alpha)/(alpha - 1) [CKS20, Prop. 12].
    Rounded up.
    """
    cost = math.log1p(-1.0 / alpha) - (math.log(delta) + math.log(alpha)) / (alpha - 1.0)
    return cost + _MARGIN * (1.0 + abs(cost))


def best_order(epsilon: float, delta: float) -> float:
    """Order alpha at which (epsilon, delta) holds the largest zero-concentrated loss.

    Maximises (epsilon - c(alpha, delta))/alpha; any alpha > 1 is sound, so the
    search may stop anywhere.
    """

    def held(log_excess: float) -> float:
        alpha = 1.0 + math.exp(log_excess)
        return (epsilon - conversion_cost(alpha, delta)) / alpha

    low, high = math.log(1e-6), math.log(1e12)
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    # The objective has one peak: golden-section search on a log scale.
    for _ in range(200):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if held(left) < held(right):
            low = left
        else:
            high = right
    return 1.0 + math.exp((low + high) / 2.0)


def rho_within(epsilon: float, delta: float) -> Fraction:
    """Largest rho known to be (epsilon, delta)-private: the inverse of the tight conversion."""
    alpha = best_order(epsilon, delta)
    rho = (epsilon - conversion_cost(alpha, delta)) / alpha
    return Fraction(max(rho, 0.0) * (1.0 - _MARGIN))
