"""Intervals of logistic regression cover: over samples of normal, skewed and clipped people and fresh noise."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from sulq.language.privacy import Epsilon
from tests.counts import auditing, count, generator
from tests.inference.coverage import assert_covers, assert_fails
from tests.inference.populations import KINDS, maximum_likelihood, odds
from tests.inference.simulations import Found, batches, logit_found


@functools.lru_cache(maxsize=8)
def truth(kind: str) -> np.ndarray:
    """The coefficients that the likelihood of two million rows is largest at, in a short run of fewer."""
    return maximum_likelihood(odds(kind, np.random.default_rng(99), samples=400 if auditing() else 40, width=1))


def found(kind: str, epsilon: float, runs: int) -> Found:
    """So many runs, each a sample of 5,000 rows and its noise."""
    rng = np.random.default_rng(generator(f"logit {kind} {epsilon}").getrandbits(64))
    return batches(lambda many: logit_found(odds(kind, rng, samples=many, width=1), Epsilon(epsilon), rng), runs)


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_coefficients_cover(kind: str, epsilon: float) -> None:
    """A 95% interval covers 94% to 96.5% of the time, of every coefficient."""
    runs = count(f"coverage: logit {kind} at epsilon {epsilon}", short=40, long=20_000)
    assert_covers(found(kind, epsilon, runs), truth(kind))


def test_an_interval_of_noise_alone_or_of_sampling_alone_does_not_cover() -> None:
    """The control: at a small epsilon the noise of the slope, at a large one the sampling, must be counted."""
    small = found("skewed", 0.5, 100).without("noise")
    assert small.covered(truth("skewed")).mean() < 0.8
    assert_fails(found("normal", 8, 60).without("sampling"), truth("normal"))
