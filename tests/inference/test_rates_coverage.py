"""Intervals of differences and lifts of proportions cover, over samples of people and fresh noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from sulq.language.privacy import Epsilon
from tests.counts import count, generator
from tests.inference.coverage import FALSE_ALARM, LEAST, MOST, assert_covers, assert_fails, bars
from tests.inference.simulations import Found, bernstein_noise, blurred, rates_found

RATES = {"even": (0.5, 0.55), "few": (0.1, 0.13), "alike": (0.3, 0.3)}


def found(name: str, epsilon: float, runs: int, *, lift: bool) -> Found:
    """So many tests of 5,000 rows, about half of them in each group."""
    rng = np.random.default_rng(generator(f"rates {name} {epsilon} {lift}").getrandbits(64))
    noise = bernstein_noise((0.0, 1.0), Epsilon(epsilon), 1)
    first = rng.binomial(5000, 0.5, runs)
    sizes = np.stack([first, 5000 - first], axis=1)
    yes = rng.binomial(sizes, RATES[name])
    sums = np.stack([yes, sizes - yes], axis=2).astype(float)
    return rates_found(blurred(sums.reshape(-1, 2), noise, rng).reshape(sums.shape), noise, lift=lift)


def truth(name: str, *, lift: bool) -> np.ndarray:
    """The difference, or the logarithm of the ratio."""
    a, b = RATES[name]
    return np.array([np.log(b / a) if lift else b - a])


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
@pytest.mark.parametrize("name", RATES)
def test_intervals_of_differences_and_lifts_cover(name: str, epsilon: float) -> None:
    """A 95% interval covers 94% to 96.5% of the time, of the difference and of the lift."""
    runs = count(f"coverage: proportions {name} at epsilon {epsilon}", short=2_000, long=20_000)
    for lift in (False, True):
        assert_covers(found(name, epsilon, runs, lift=lift), truth(name, lift=lift))


def test_an_interval_of_noise_alone_or_of_sampling_alone_does_not_cover() -> None:
    """The control: at a very small epsilon the noise, at a large one the sampling, is what an interval must count."""
    assert_fails(found("even", 0.02, 2_000, lift=False).without("noise"), truth("even", lift=False))
    assert_fails(found("even", 4, 2_000, lift=False).without("sampling"), truth("even", lift=False))


def test_an_interval_that_is_twice_as_wide_as_it_should_be_is_found_out() -> None:
    """The control of the upper bar: intervals that cover nearly always."""
    one = found("even", 4, 2_000, lift=False)
    wide = replace(one, law=replace(one.law, sampling=4 * one.law.sampling, laplace=2 * one.law.laplace))
    with pytest.raises(AssertionError):
        assert_covers(wide, truth("even", lift=False))
    least, most = bars(2_000)
    assert binom.cdf(least - 1, 2_000, LEAST) <= FALSE_ALARM >= binom.sf(most, 2_000, MOST)
