"""How far off a method's marginals are: expected from the plan's noise alone, and at most by the paper's theorem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np

from sulq.language.kinds import Floats
from sulq.release.tables.basis import lengths, product
from sulq.release.tables.coefficients import Coefficients, own_sizes
from sulq.release.tables.interactions import Places, inside
from sulq.release.tables.noisy_tables import NoisyTable

LAPLACE_EXCESS: Final = 3.0  # the fourth cumulant of Laplace noise over its squared variance
MAX_BATCH_CELLS: Final = 2**18  # of marginals that are looked at together


def mean_distances(variance: Floats, fourth: Floats, law: str) -> Floats:
    """Of several marginals, the mean of the L1 distance from the truth: the sum over the cells of E|noise|.

    E|Z| = sqrt(2 var/pi) (1 - excess/24 + ...) for a sum of many draws, the excess kurtosis being 3 sum v^2/(sum v)^2
    for Laplace noise; for a single draw this is .698 of the deviation, and .707 is true.
    """
    excess = LAPLACE_EXCESS * fourth / variance**2 if law == "laplace" else np.zeros_like(variance)
    each = np.sqrt(2.0 * variance / math.pi) * (1.0 - excess / 24.0)
    return np.asarray(each.reshape(len(each), -1).sum(axis=1))


def distance(noise: NoisyTable, marginals: Sequence[Places]) -> float:
    """The mean over some marginals of the expected L1 distance from the truth; of a fit, before it."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for i, places in enumerate(marginals):
        alike.setdefault(own_sizes(places, noise.sizes), []).append(i)
    each = np.zeros(len(marginals))
    for sizes, own in alike.items():
        step = max(1, MAX_BATCH_CELLS // math.prod(sizes))
        for some in (own[i : i + step] for i in range(0, len(own), step)):
            each[some] = mean_distances(*noise.moments([marginals[i] for i in some]), noise.law)
    return sum(each.tolist()) / len(marginals)


def bound(coefficients: Coefficients, places: Places, beta: float) -> float:
    """A fitted marginal's L1 distance from the truth; of all asked ones together but for probability beta.

    Each coefficient's noise is within ln(|B|/beta) scales, and the fit at most doubles that; in a marginal it weighs
    the sum of its vector's entries over their squares; rounding moves at most |B| cells by less than one. For yes or
    no, even weights and epsilon: 2^|a| 2|B| ln(|B|/beta)/epsilon + |B| [S3.19, S3.20].
    """
    count = sum(len(values) for values in coefficients.values.values())
    if coefficients.law == "laplace":
        reach = math.log(count / beta) / math.sqrt(2.0)
    else:
        reach = -NormalDist().inv_cdf(beta / (2 * count))
    moved = 0.0
    for part in inside(places):
        if part in coefficients.values:
            own = own_sizes(part, coefficients.sizes)
            weighs = np.abs(product(own)).sum(axis=1) / lengths(own)
            moved += float((coefficients.deviations[part] * weighs).sum())
    return 2.0 * reach * moved + count
