"""How sums over random subsets of people vary together: one estimator for every method that rests on it.

Sums of two columns over the same subset are both high where the people are who have both; the noises in them are
independent, so that they add to the spread of the products and not to their mean.
"""

from __future__ import annotations

import numpy as np

from sulq.language.kinds import Floats


def covariance(a: Floats, b: Floats) -> Floats:
    """The covariance of the columns of a with those of b, a row a subset; unbiased.

    Centred on the subsets' own mean. Centred on noisy totals, the product of the totals' two noises would stay in the
    mean however many subsets there are (docs/theory/vertical.md).
    """
    found: Floats = (a - a.mean(axis=0)).T @ (b - b.mean(axis=0)) / (len(a) - 1)
    return found


def covariance_errors(own_a: Floats, own_b: Floats, found: Floats, subsets: int) -> Floats:
    """The standard errors of covariances: sqrt((var var' + cov^2)/(subsets - 1)), of pairs that are nearly normal."""
    errors: Floats = np.sqrt((np.outer(own_a, own_b) + found**2) / (subsets - 1))
    return errors
