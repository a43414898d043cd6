"""Prices of accuracies and divided totals: the smallest that is enough, and nobody worse off than need be."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho
from sulq.sql.forecast import amount, divided, price


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


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=12), st.booleans())
def test_a_total_is_divided_so_that_errors_agree_SR7(costs, squared):
    """Every query is off by the same part, as far as the smallest part allows; the parts never pass the total (SR7)."""
    power = 0.5 if squared else 1

    def off(cost):
        return lambda spend: cost / spend**power

    parts = divided([off(cost) for cost in costs], 2.0, squared=squared)
    assert sum(parts) <= 1
    assert sum(parts) > 0.999
    errors = [off(cost)(2.0 * float(part)) for cost, part in zip(costs, parts, strict=True)]
    even = max(off(cost)(2.0 / len(costs)) for cost in costs)
    assert max(errors) <= even * 1.001  # never worse than dividing evenly
    best = sum(cost ** (1 / power) for cost in costs) ** power / 2.0**power
    assert max(errors) <= best * (1 + 2e-4 * len(costs)) ** 2


def test_a_query_that_nothing_helps_does_not_stop_the_others():
    """An error that is infinite, or zero, at any price leaves a valid division."""
    parts = divided([lambda _: math.inf, lambda s: 1 / s, lambda _: 0.0], 1.0, squared=False)
    assert sum(parts) <= 1
    assert min(parts) > 0


def test_totals_are_divided_in_their_own_currency():
    """Epsilon by epsilon, rho by rho, and what holds a delta by the rho it admits."""
    assert amount(Epsilon(0.5)) == 0.5
    assert amount(Rho(0.25)) == 0.25
    assert amount(EpsilonDelta(1, 1e-6)) == float(EpsilonDelta(1, 1e-6).rho)
