"""What noise adds is taken back: exact without noise, safe where there is nothing else, better in between."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.learn.noisy_sums import apart, covariance, sizes


def test_sizes_are_the_counts_without_noise() -> None:
    """And their sum."""
    found, total = sizes(np.array([10.0, 300.0, 90.0]), 0.0)
    assert found == pytest.approx([10, 300, 90])
    assert total == 400


@pytest.mark.parametrize("counts", [[0.0, 0.0], [-50.0, 3.0], [-900.0, -900.0, 20.0], [5.0]])
def test_sizes_are_positive_whatever_the_noise_says(counts: list[float]) -> None:
    """So that nothing is divided by zero or less."""
    found, total = sizes(np.array(counts), 40.0)
    assert (found > 0).all()
    assert found.sum() == pytest.approx(total)
    assert total >= 40


def test_sizes_that_differ_by_noise_alone_are_nearly_equal() -> None:
    """Shrunk ones are nearer the truth than the noisy."""
    rng = np.random.default_rng(1)
    truth = np.array([100.0, 110.0, 90.0])
    noisy = truth + rng.laplace(0, 30, (400, 3))
    shrunk = np.array([sizes(each, 30 * np.sqrt(2))[0] for each in noisy])
    assert ((shrunk - truth) ** 2).mean() < 0.8 * ((noisy - truth) ** 2).mean()


def test_gaps_are_believed_as_far_as_noise_does_not_explain_them() -> None:
    """All of them without noise, hardly any where noise is all, and nearer the truth in between."""
    rng = np.random.default_rng(2)
    gaps = rng.normal(0, 1, (4, 6))
    equal = np.full(4, 0.25)
    assert apart(gaps, np.zeros(4), equal, 1e-6) == pytest.approx(1)
    assert (apart(0.01 * gaps, np.full(4, 1.0), equal, 1e-6) < 1e-5).all()
    noisy = gaps + rng.normal(0, 1, (300, 4, 6))
    shrunk = np.array([each * apart(each, np.ones(4), equal, 1e-6)[:, None] for each in noisy])
    assert ((shrunk - gaps) ** 2).mean() < 0.8 * ((noisy - gaps) ** 2).mean()
    assert apart(gaps, np.array([0.0, 1.0, 4.0, 100.0]), equal, 1e-6).tolist() == sorted(
        apart(gaps, np.array([0.0, 1.0, 4.0, 100.0]), equal, 1e-6), reverse=True
    )  # the noisier, the less


def test_a_covariance_is_itself_without_noise_and_round_with_much() -> None:
    """Always positive definite; nearer the truth than the noisy one."""
    rng = np.random.default_rng(3)
    half = rng.normal(size=(50, 5))
    truth = half.T @ half / 50
    assert covariance(truth, 0.0) == pytest.approx(truth)
    errors = {"noisy": 0.0, "shrunk": 0.0}
    for _ in range(200):
        noise = np.triu(rng.normal(0, 0.5, (5, 5)))
        noisy = truth + noise + np.triu(noise, 1).T
        shrunk = covariance(noisy, 0.5)
        assert np.linalg.eigvalsh(shrunk).min() > 0
        errors["noisy"] += ((noisy - truth) ** 2).sum()
        errors["shrunk"] += ((shrunk - truth) ** 2).sum()
    assert errors["shrunk"] < 0.6 * errors["noisy"]
    far = covariance(truth, 1e6)
    assert far == pytest.approx(np.eye(5) * np.trace(truth) / 5)
    assert np.isfinite(covariance(np.zeros((2, 2)), 1.0)).all()
