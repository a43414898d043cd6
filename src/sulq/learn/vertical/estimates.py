"""Products of columns that nobody sees side by side, from their sums over the same random groups of people."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from sulq.answers.subset_covariance import covariance, covariance_errors
from sulq.language.kinds import Floats

MOST: Final = 2**14  # groups


def from_cells(sums: Floats) -> Floats:
    """Sums over all people of the products of columns, from their sums over random groups: a row a group.

    Of m groups: m/(m - 1) times the sum over them of (a_i - mean)(a_j - mean). Unbiased where the noises of two columns
    are independent: products of group sums have an expectation of P(1 - 1/m) + T_i T_j/m, P the wanted sum and T the
    totals, and the means take the last term away.
    """
    return len(sums) * covariance(sums, sums)


def from_subsets(sums: Floats) -> Floats:
    """The same from sums over random halves of the people, a row a subset [S0.12].

    4/(t - 1) times the sum of (a_i - mean)(a_j - mean): subset sums have a covariance of a quarter of the wanted sum.
    """
    return 4 * covariance(sums, sums)


def standard_errors(moments: Floats, variances: Floats, n: float, groups: int, *, factor: float) -> Floats:
    """The standard error of each average product: sqrt((m_ii + fR_i/n)(m_jj + fR_j/n) + m_ij^2)/sqrt(g - 1) [S0.12].

    `moments`: the average products m. `variances`: R, of the noise in a sum of each column. `factor`: f, 4 for random
    halves, for disjoint groups their number: by it the noise is counted once for all rows of a group.
    """
    own = np.maximum(np.diag(moments), 0.0) + factor * variances / n
    return covariance_errors(own, own, moments, groups)


def best_number(squares: Floats, variances: Floats, n: float) -> int:
    """How many groups make the standard errors smallest: with so many, noise is as large as the rows' own products.

    (m_ii + gR/n)/sqrt(g) is least at g = n m_ii/R; of several columns the geometric mean.
    """
    ratio = np.maximum(squares, 1e-300) / np.maximum(variances, 1e-300)
    wish = n * math.exp(float(np.log(ratio).mean()))
    return int(min(max(wish, 2.0), MOST))
