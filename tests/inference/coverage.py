"""What a coverage suite asserts: between 94% and 96.5%, give or take what so many runs may differ by."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from tests.inference.simulations import Found

LEAST, MOST = 0.94, 0.965
FALSE_ALARM = 1e-7  # of each bar of each estimate, by the exact binomial law
MIN_TOLD = 0.9  # of the samples: the suites are of spends at which something is told


def bars(runs: int) -> tuple[int, int]:
    """From how many to how many of so many intervals hold the truth; so few runs that all may have no bar above."""
    return int(binom.ppf(FALSE_ALARM, runs, LEAST)), int(binom.isf(FALSE_ALARM, runs, MOST))


def assert_covers(found: Found, truth: np.ndarray) -> None:
    """Every estimate's interval covers as often as it says."""
    covered = found.covered(truth)
    least, most = bars(len(covered))
    hits = covered.sum(axis=0)
    assert found.clear.mean() >= MIN_TOLD
    assert (hits >= least).all(), hits / len(covered)
    assert (hits <= most).all(), hits / len(covered)


def assert_fails(found: Found, truth: np.ndarray) -> None:
    """The control: no estimate's interval covers."""
    assert (found.covered(truth).mean(axis=0) < 0.8).all()
