"""How far the marginals of a fitted table may be off: the paper's theorem, for any arity, weights and noise."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from sulq.release.tables.basis import lengths, product
from sulq.release.tables.coefficients import Coefficients, own_sizes
from sulq.release.tables.interactions import Places, inside


def bound(coefficients: Coefficients, places: Places, beta: float) -> float:
    """A marginal's distance from the truth in L1; of all asked ones together but for probability beta [S3.19, S3.20].

    Each coefficient's noise is within ln(|B|/beta) scales, and the fit at most doubles that; in a marginal it weighs
    the sum of its vector's entries over their squares; rounding moves at most |B| cells by less than one. For yes or
    no, even weights and epsilon: 2^|a| 2|B| ln(|B|/beta)/epsilon + |B|.
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
