"""What a coverage suite asserts: between 94% and 96.5%, give or take what so many runs may differ by."""

from __future__ import annotations

import numpy as np

from tests.inference.simulations import Found

LEAST, MOST = 0.94, 0.965
DEVIATIONS = 5.3  # a false alarm once in 1e7
MIN_TOLD = 0.9  # of the samples: the suites are of spends at which something is told


def assert_covers(found: Found, truth: np.ndarray) -> None:
    """Every estimate's interval covers as often as it says."""
    covered = found.covered(truth)
    slack = DEVIATIONS * (0.05 * 0.95 / len(covered)) ** 0.5
    shares = covered.mean(axis=0)
    assert found.clear.mean() >= MIN_TOLD
    assert (shares >= LEAST - slack).all(), shares
    assert (shares <= MOST + slack).all(), shares


def assert_fails(found: Found, truth: np.ndarray) -> None:
    """The control: no estimate's interval covers."""
    assert (found.covered(truth).mean(axis=0) < 0.8).all()
