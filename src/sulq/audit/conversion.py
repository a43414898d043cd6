"""What a zero-concentrated loss means in other words, for whoever reads a report."""

from __future__ import annotations

import math

from sulq.kernel.facts import rho_within


def epsilon_of(rho: float, delta: float) -> float:
    """Smallest epsilon for which a zero-concentrated loss rho is (epsilon, delta)-private."""
    low, high = 0.0, rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta)) + 1.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle > 0.0 and rho_within(middle, delta) >= rho:
            high = middle
        else:
            low = middle
    return high
