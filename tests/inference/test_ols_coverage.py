"""Intervals of least squares cover: over samples of normal, skewed and clipped people and fresh noise."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from sulq.language.privacy import Epsilon, Rho
from tests.counts import auditing, count, generator
from tests.inference.coverage import assert_covers, assert_fails
from tests.inference.populations import KINDS, least_squares, lines
from tests.inference.simulations import Found, batches, ols_found

WIDTH = 1


@functools.lru_cache(maxsize=8)
def truth(kind: str) -> np.ndarray:
    """The coefficients of five million rows, in a short run of fewer."""
    return least_squares(lines(kind, np.random.default_rng(99), samples=1000 if auditing() else 60, width=WIDTH))


def found(kind: str, spend: object, runs: int) -> Found:
    """So many runs, each a sample of 5,000 rows and its noise."""
    rng = np.random.default_rng(generator(f"ols {kind} {spend}").getrandbits(64))
    return batches(
        lambda many: ols_found(lines(kind, rng, samples=many, width=WIDTH), spend, rng), runs
    )  # fmt: skip


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_coefficients_cover(kind: str, epsilon: float) -> None:
    """A 95% interval covers 94% to 96.5% of the time, of every coefficient."""
    runs = count(f"coverage: ols {kind} at epsilon {epsilon}", short=40, long=20_000)
    assert_covers(found(kind, Epsilon(epsilon), runs), truth(kind))


def test_intervals_with_gaussian_noise_cover() -> None:
    """Likewise where the spend buys Gaussian noise."""
    runs = count("coverage: ols with Gaussian noise", short=40, long=20_000)
    assert_covers(found("skewed", Rho(0.02), runs), truth("skewed"))


def test_an_interval_of_noise_alone_or_of_sampling_alone_does_not_cover() -> None:
    """The control: at a small epsilon the noise, at a large one the sampling, is what an interval must count."""
    assert_fails(found("normal", Epsilon(0.5), 60).without("noise"), truth("normal"))
    assert_fails(found("clipped", Epsilon(4), 60).without("sampling"), truth("clipped"))
