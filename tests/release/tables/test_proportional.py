"""Proportional fitting: marginals are met where they can be, and none is negative."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.release.tables.proportional import nearest, scaled


def test_the_nearest_marginal() -> None:
    """Not negative, of the total, and nearer than any of many others; what is such a one already stays."""
    rng = np.random.default_rng(1)
    noisy = rng.normal(2, 5, (4, 5))
    found = nearest(noisy, 30.0)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(30)
    others = rng.dirichlet(np.ones(20), 2000).reshape(-1, 4, 5) * 30
    best = np.square(others - noisy).sum(axis=(1, 2)).min()
    assert np.square(found - noisy).sum() < best
    assert nearest(found, 30.0) == pytest.approx(found)
    clipped = np.maximum(noisy, 0)  # the control: cut off at zero it has too many rows
    assert clipped.sum() > 31


def test_marginals_that_agree_are_met() -> None:
    """Those of one table: after the sweeps the fitted table has them, and its logarithm is the sum of the factors'."""
    table = np.random.default_rng(2).gamma(0.5, 10, (3, 4, 2))
    targets = {(0, 1): table.sum(axis=2), (1, 2): table.sum(axis=0)}
    start = np.full(table.shape, table.mean())
    found, logs = scaled(start, targets)
    for part, target in targets.items():
        other = 3 - sum(part)
        assert found.sum(axis=other) == pytest.approx(target, rel=1e-6)
        assert np.abs(start.sum(axis=other) - target).max() > 1
    assert np.log(found / start) == pytest.approx(logs[0, 1][:, :, None] + logs[1, 2][None])


def test_empty_cells_stay_finite() -> None:
    """A marginal of one full cell among empty ones, and the reverse after it."""
    first, second = np.array([10.0, 0.0, 0.0]), np.array([0.0, 0.0, 10.0])
    found, logs = scaled(np.ones((3, 3)), {(0,): first, (1,): second})
    assert np.isfinite(found).all()
    assert np.isfinite(logs[0,]).all()
    assert found[0, 2] == pytest.approx(10, rel=1e-2)
