"""Rows drawn from weights: as often as their share says, up to one, in random order."""

from __future__ import annotations

import numpy as np

from sulq.release.synthetic.rows import drawn, given


def test_each_cell_comes_as_often_as_its_share_says_up_to_one() -> None:
    """Low variance: the counts are floors or ceilings, where independent draws would be off by their root."""
    rng = np.random.default_rng(1)
    weights = rng.random(37)
    for rows in (0, 1, 10, 999):
        counts = np.bincount(drawn(weights, rows, rng), minlength=37)
        assert counts.sum() == rows
        assert np.abs(counts - rows * weights / weights.sum()).max() < 1
    independent = np.bincount(rng.choice(37, 999, p=weights / weights.sum()), minlength=37)
    assert np.abs(independent - 999 * weights / weights.sum()).max() > 1  # the control


def test_cells_are_drawn_without_bias_and_in_no_order() -> None:
    """A cell of share 1/4 is the one row drawn in a quarter of draws; the first rows are not the first cells."""
    rng = np.random.default_rng(2)
    found = np.array([drawn(np.array([1.0, 3.0]), 1, rng)[0] for _ in range(10_000)])
    assert abs(found.mean() - 0.75) < 5.4 * np.sqrt(0.1875 / 10_000)
    first = drawn(np.array([1.0, 1.0]), 10_000, rng)[:1000]
    assert 300 < first.sum() < 700


def test_groups_have_their_own_weights() -> None:
    """Each row is drawn by its group's weights; negative ones are none, and no weight at all is even."""
    rng = np.random.default_rng(3)
    weights = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -5.0], [0.0, 0.0, 0.0]])
    groups = rng.integers(0, 3, 3000)
    found = given(weights, groups, rng)
    counts = np.array([np.bincount(found[groups == g], minlength=3) for g in range(3)])
    assert counts[0, 1] == 0
    assert abs(counts[0, 0] - counts[0, 2]) <= 2
    assert counts[1].tolist() == [0, (groups == 1).sum(), 0]
    assert np.ptp(counts[2]) <= 2
