"""Intervals of means and of Welch's difference cover: over samples of three kinds of people and fresh noise."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from sulq.language.privacy import Epsilon
from tests.counts import auditing, count, generator
from tests.inference.coverage import assert_covers, assert_fails
from tests.inference.populations import KINDS, numbers
from tests.inference.simulations import Found, batches, bernstein_noise, blurred, mean_sums, means_found


def one(kind: str, epsilon: float, runs: int, *, rows: int = 5000) -> Found:
    """The means of so many samples."""
    rng = np.random.default_rng(generator(f"mean {kind} {epsilon}").getrandbits(64))

    def batch(many: int) -> Found:
        values, bounds = numbers(kind, rng, samples=many, rows=rows)
        noise = bernstein_noise(bounds, Epsilon(epsilon), 2)
        return means_found(blurred(mean_sums(values, bounds), noise, rng), noise, two=False)

    return batches(batch, runs)


def two(kind: str, epsilon: float, runs: int) -> Found:
    """The differences of two groups of one law, a third of the rows in the first."""
    rng = np.random.default_rng(generator(f"welch {kind} {epsilon}").getrandbits(64))

    def batch(many: int) -> Found:
        values, bounds = numbers(kind, rng, samples=many)
        noise, cut = bernstein_noise(bounds, Epsilon(epsilon), 2), values.shape[1] // 3
        sums = np.stack([mean_sums(values[:, :cut], bounds), mean_sums(values[:, cut:], bounds)], axis=1)
        return means_found(blurred(sums.reshape(-1, 3), noise, rng).reshape(sums.shape), noise, two=True)

    return batches(batch, runs)


@functools.lru_cache(maxsize=8)
def truth(kind: str) -> np.ndarray:
    """The mean of ten million rows, in a short run of fewer, as a part of the way from bound to bound."""
    values, (low, high) = numbers(kind, np.random.default_rng(5), samples=2000 if auditing() else 100)
    return np.array([((values - low) / (high - low)).mean()])


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_means_and_differences_cover(kind: str, epsilon: float) -> None:
    """A 95% interval covers 94% to 96.5% of the time, of one mean and of the difference of two."""
    runs = count(f"coverage: means {kind} at epsilon {epsilon}", short=40, long=20_000)
    assert_covers(one(kind, epsilon, runs), truth(kind))
    assert_covers(two(kind, epsilon, runs), np.zeros(1))


def test_an_interval_of_noise_alone_or_of_sampling_alone_does_not_cover() -> None:
    """The control: at a very small epsilon the noise, at a large one the sampling, is what an interval must count."""
    assert_fails(one("normal", 0.02, 100).without("noise"), truth("normal"))
    assert_fails(one("normal", 4, 100).without("sampling"), truth("normal"))
