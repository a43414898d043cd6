"""Conversions between currencies of loss: tight, rounded against the asker, checked against the exact Gaussian."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sulq.kernel.facts import best_order, conversion_cost, rho_within

epsilons = st.floats(1e-3, 50)
deltas = st.floats(-60, -1).map(lambda log: 10.0**log)


@given(st.floats(1.0001, 1e6), deltas)
def test_the_conversion_is_rounded_up_SR3(alpha, delta):
    """c(alpha, delta) is at least the exact value in 60 digits, and within 1e-9 of it [CKS20, Prop. 12] (SR3)."""
    with mpmath.workdps(60):
        a, d = mpmath.mpf(alpha), mpmath.mpf(delta)
        exact = mpmath.log1p(-1 / a) - (mpmath.log(d) + mpmath.log(a)) / (a - 1)
        found = mpmath.mpf(conversion_cost(alpha, delta))
        assert found >= exact
        assert found - exact <= mpmath.mpf(1e-9) * (1 + abs(exact))


@settings(max_examples=40)
@given(epsilons, deltas)
def test_the_order_found_is_the_best(epsilon, delta):
    """No order on a fine grid holds more than the one found."""

    def held(alpha: float) -> float:
        return (epsilon - conversion_cost(alpha, delta)) / alpha

    best = held(best_order(epsilon, delta))
    grid = [1 + math.exp(x / 20) for x in range(-120, 300)]
    assert best >= max(map(held, grid)) - 1e-9 * abs(best)


def test_the_worked_example_SR3():
    """(2, 1e-6): the order is 12.3 and the room 1.086 (SR3)."""
    alpha = best_order(2, 1e-6)
    assert alpha == pytest.approx(12.3, abs=0.05)
    assert 2 - conversion_cost(alpha, 1e-6) == pytest.approx(1.086, abs=1e-3)
    assert float(rho_within(2, 1e-6)) == pytest.approx(1.086 / 12.3, rel=3e-3)


def gaussian_delta(rho: float, epsilon: float) -> float:
    """The exact delta of a Gaussian mechanism of zero-concentrated loss rho at epsilon."""
    mu = math.sqrt(2 * rho)
    first = stats.norm.sf(epsilon / mu - mu / 2)
    return first - math.exp(epsilon) * stats.norm.sf(epsilon / mu + mu / 2)


@settings(max_examples=40)
@given(st.floats(1e-2, 20), st.floats(-10, -1).map(lambda log: 10.0**log))
def test_a_gaussian_of_the_admitted_rho_is_private_as_promised_T53(epsilon, delta):
    """The Gaussian of rho = rho_within(epsilon, delta) has an exact delta below the promised one (T53)."""
    rho = float(rho_within(epsilon, delta))
    if rho > 0:
        assert gaussian_delta(rho, epsilon) <= delta


def test_twice_the_rho_would_not_be_private_T53():
    """Control: the exact check fails for twice the rho that is admitted."""
    assert gaussian_delta(2 * float(rho_within(1, 1e-6)), 1) > 1e-6


def test_a_promise_too_small_for_any_gaussian_admits_none():
    """Nothing negative: an (epsilon, delta) that holds no zero-concentrated loss admits zero."""
    assert rho_within(1e-12, 1e-300) >= 0
    assert rho_within(1e-3, 1e-10) < 1e-6
