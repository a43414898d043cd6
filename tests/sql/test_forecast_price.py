"""Prices of accuracies: the smallest that is enough."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho
from sulq.sql.division import amount
from sulq.sql.forecast import price


@given(st.floats(1e-9, 500), st.sampled_from([Epsilon, Rho]))
def test_the_price_is_enough_and_no_more_SR7(cost, kind):
    """An error inverse to epsilon, or to the root of rho, is met to six digits in a handful of steps (SR7)."""
    power = 1 if kind is Epsilon else 0.5
    calls = []

    def off(spend):
        calls.append(spend)
        return (cost / spend) ** power

    found = price(off, kind)
    assert isinstance(found, kind)
    assert off(float(found.exact)) <= 1
    assert float(found.exact) <= cost * (1 + 3e-5)
    assert len(calls) <= 8


@given(st.floats(1, 1e6), st.floats(1e-3, 1e3))
def test_errors_that_are_not_inverse_are_met_too_SR7(rows, width):
    """A quotient is infinite while its noise drowns the rows, then falls; steps too (SR7)."""

    def off(spend):
        left = rows - math.ceil(20 / spend)
        return math.ceil(10 / spend) / left / width if left > 0 else math.inf

    if off(999.9) > 1:
        with pytest.raises(QuestionError, match="too-costly"):
            price(off, Epsilon)
    else:
        found = price(off, Epsilon)
        assert off(float(found.exact)) <= 1
        assert off(float(found.exact) * 0.9) > 1 or float(found.exact) < 1e-14


def test_what_no_spend_can_buy_is_refused_SR7():
    """Control: an error that never falls has no price."""
    with pytest.raises(QuestionError) as refused:
        price(lambda _: 2.0, Epsilon)
    assert refused.value.code == "too-costly"
    assert float(price(lambda _: 0.0, Rho).exact) < 1.1e-15


def test_totals_are_divided_in_their_own_currency():
    """Epsilon by epsilon, rho by rho, and what holds a delta by the rho it admits."""
    assert amount(Epsilon(0.5)) == 0.5
    assert amount(Rho(0.25)) == 0.25
    assert amount(EpsilonDelta(1, 1e-6)) == float(EpsilonDelta(1, 1e-6).rho)
