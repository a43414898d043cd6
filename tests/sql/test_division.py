"""A total is divided by what errors are foreseen: never past it, never far from the optimum, as weights ask."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import QuestionError
from sulq.sql.division import LEAST_PART, Curve, divided, fitted, weights_of

COSTS = st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=9)


def off(cost, power):
    """An error that is a power of the part."""
    return lambda part: cost / part**power


def mean(offs, weights, parts):
    """The weighted mean of the errors."""
    return math.fsum(weight * one(float(part)) for weight, one, part in zip(weights, offs, parts, strict=True))


@given(COSTS, st.booleans())
def test_no_other_division_is_better_SR7(costs, squared):
    """Moving a little from one query to another, as far as least parts allow, gains nothing; nothing is overspent."""
    power = 0.5 if squared else 1.0
    offs, weights = [off(cost, power) for cost in costs], weights_of(None, len(costs))
    parts = divided(offs, weights, power)
    assert 0.999 < sum(parts) <= 1
    least = LEAST_PART / len(costs)
    assert min(parts) >= least * (1 - 1e-6)
    found = mean(offs, weights, parts)
    assert found <= mean(offs, weights, [1 / len(costs)] * len(costs)) * (1 + 1e-6)
    for i, j in itertools.permutations(range(len(costs)), 2):
        moved = [float(part) for part in parts]
        step = min(1e-3, moved[i] - least)
        if step > 1e-6:
            moved[i], moved[j] = moved[i] - step, moved[j] + step
            assert mean(offs, weights, moved) >= found * (1 - 1e-6)


def test_parts_are_as_the_roots_of_errors():
    """Of errors inverse to epsilon the square roots, of those inverse to the root of rho the powers of 2/3."""
    for power, grows in ((1.0, 0.5), (0.5, 2 / 3)):
        one, two = divided([off(1, power), off(4, power)], weights_of(None, 2), power)
        assert float(two / one) == pytest.approx(4**grows, rel=1e-6)


def test_a_step_is_smoothed():
    """A quantile's foreseen error is a step: fitted, a doubling of the total moves its part little.

    Control: the rule by which a query twice as far off gets twice as much gives all or nothing next to the step.
    """

    def step(part):
        return 8.0 if part < 0.3 else 1.0

    parts = divided([step, off(1, 1)], weights_of(None, 2), 1.0)
    assert 0.3 < float(parts[0]) < 0.8
    before = [0.5, 0.5]
    for _ in range(12):
        wanted = [part * one(part) for part, one in zip(before, (step, off(1, 1)), strict=True)]
        before = [part / sum(wanted) for part in wanted]
    assert mean([step, off(1, 1)], (0.5, 0.5), parts) < mean([step, off(1, 1)], (0.5, 0.5), before)


def test_a_query_that_nothing_helps_does_not_stop_the_others():
    """An error that is infinite, constant or zero at any price gets its least part; alone, all of it."""
    parts = divided([lambda _: math.inf, off(1, 1), lambda _: 0.0, lambda _: 5.0], weights_of(None, 4), 1.0)
    assert sum(parts) <= 1
    assert [float(part) for part in parts] == pytest.approx([0.125, 0.625, 0.125, 0.125], rel=1e-6)
    assert float(divided([lambda _: math.inf], [1.0], 1.0)[0]) == pytest.approx(1, rel=1e-6)


def test_the_even_division_is_kept_where_it_is_better():
    """A curve that no power fits may mislead; what is asked for is never foreseen to be worse than even parts."""

    def cliff(part):
        return 1.0 if part >= 0.49 else 1000.0

    parts = divided([cliff, cliff], weights_of(None, 2), 1.0)
    assert mean([cliff, cliff], (0.5, 0.5), parts) == 1.0


def test_weights_say_whose_error_counts():
    """Four times the weight is twice the part; the least part is half of what weights give, so that it may be asked."""
    offs = [off(1, 1), off(1, 1)]
    one, two = divided(offs, weights_of([1, 4], 2), 1.0)
    assert float(two / one) == pytest.approx(2, rel=1e-6)
    assert weights_of(np.array([1, 3]), 2) == weights_of([np.int64(1), np.float64(3)], 2) == [0.25, 0.75]
    rare = divided([off(1e-9, 1), off(1, 1)], weights_of([1, 99], 2), 1.0)
    assert float(rare[0]) == pytest.approx(0.005, rel=1e-3)  # below half of an even part, as asked


@pytest.mark.parametrize(
    "weights",
    [
        "ab",
        [1],
        [1, 0],
        [1, -1],
        [1, math.nan],
        [1, math.inf],
        [True, 1],
        [1, "x"],
        [1, 1e9],
        {1: 2, 3: 4},
        [1, 10**400],
        [1, None],
    ],
)
def test_what_is_no_weight_is_refused(weights):
    """Free, with what to write."""
    with pytest.raises(QuestionError, match="weights are positive numbers") as refused:
        weights_of(weights, 2)
    assert refused.value.code == "bad-question"


def test_large_weights_are_as_small_ones():
    """Only how they stand to each other counts; added up as they are they would be past any double."""
    assert weights_of([1e308, 1e308, 5e307], 3) == weights_of([2, 2, 1], 3)


def test_a_curve_goes_through_what_it_is_fitted_to():
    """By logarithms; one point alone has the usual power, rising errors have none."""
    found = Curve.through([(part, 3 / part**0.7) for part in (0.1, 0.2, 0.5)], 1.0)
    assert (found.size, found.power) == pytest.approx((3, 0.7))
    assert Curve.through([(0.1, math.inf), (0.2, 5.0), (0.5, math.inf)], 0.5).power == 0.5
    assert Curve.through([(0.1, 1.0), (0.5, 2.0)], 1.0).power == 0
    assert fitted([Curve(0, 0), Curve(0, 0)], [0.25, 0.75]) == [0.25, 0.75]


@given(st.lists(st.tuples(st.floats(0, 1e12), st.floats(0, 2)), min_size=1, max_size=40))
def test_any_curves_have_parts(curves):
    """However far apart errors are, parts add up to 1 and none is below its least."""
    parts = fitted([Curve(*curve) for curve in curves], weights_of(None, len(curves)))
    assert math.fsum(parts) == pytest.approx(1)
    assert min(parts) >= LEAST_PART / len(curves) * (1 - 1e-9)
