"""How far off a method's marginals will be, from the plan's noise alone: free, and before any row is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from sulq.release.tables.interactions import Places
from sulq.release.tables.noisy import Noisy
from sulq.terms.kinds import Floats

EXCESS: Final = 3.0  # the fourth cumulant of Laplace noise over its squared variance


def mean_distance(variance: Floats, fourth: Floats, law: str) -> float:
    """The mean of a marginal's L1 distance from the truth: the sum over its cells of E|noise|.

    E|Z| = sqrt(2 var/pi) (1 - excess/24 + ...) for a sum of many draws, the excess kurtosis being 3 sum v^2/(sum v)^2
    for Laplace noise; for a single draw this is .698 of the deviation, and .707 is true.
    """
    excess = EXCESS * fourth / variance**2 if law == "laplace" else np.zeros_like(variance)
    return float((np.sqrt(2.0 * variance / math.pi) * (1.0 - excess / 24.0)).sum())


def distance(noise: Noisy, marginals: Sequence[Places]) -> float:
    """The mean over some marginals of the expected L1 distance from the truth; of a fit, before it."""
    each = [mean_distance(noise.variance(places), noise.fourth(places), noise.law) for places in marginals]
    return sum(each) / len(each)
