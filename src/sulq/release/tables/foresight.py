"""How far off a method's marginals will be, from the plan's noise alone: free, and before any row is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from sulq.language.kinds import Floats
from sulq.release.tables.interactions import Places
from sulq.release.tables.noisy import Noisy

EXCESS: Final = 3.0  # the fourth cumulant of Laplace noise over its squared variance
AT_ONCE: Final = 2**18  # cells of marginals that are looked at together


def mean_distance(variance: Floats, fourth: Floats, law: str) -> float:
    """The mean of a marginal's L1 distance from the truth: the sum over its cells of E|noise|.

    E|Z| = sqrt(2 var/pi) (1 - excess/24 + ...) for a sum of many draws, the excess kurtosis being 3 sum v^2/(sum v)^2
    for Laplace noise; for a single draw this is .698 of the deviation, and .707 is true.
    """
    return float(_means(variance[None], fourth[None], law)[0])


def _means(variance: Floats, fourth: Floats, law: str) -> Floats:
    """The same of several marginals."""
    excess = EXCESS * fourth / variance**2 if law == "laplace" else np.zeros_like(variance)
    each = np.sqrt(2.0 * variance / math.pi) * (1.0 - excess / 24.0)
    return np.asarray(each.reshape(len(each), -1).sum(axis=1))


def distance(noise: Noisy, marginals: Sequence[Places]) -> float:
    """The mean over some marginals of the expected L1 distance from the truth; of a fit, before it."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for i, places in enumerate(marginals):
        alike.setdefault(tuple(noise.sizes[place] for place in places), []).append(i)
    each = np.zeros(len(marginals))
    for sizes, own in alike.items():
        step = max(1, AT_ONCE // math.prod(sizes))
        for some in (own[i : i + step] for i in range(0, len(own), step)):
            each[some] = _means(*noise.moments([marginals[i] for i in some]), noise.law)
    return sum(each.tolist()) / len(marginals)
