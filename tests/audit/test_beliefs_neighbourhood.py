"""Groups, simulation and semantic security, by enumeration of all databases."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sulq.audit.beliefs import (
    distance,
    enumerated,
    group_epsilon,
    semantic_shift,
    simulate,
    simulation_epsilon,
    within,
)
from sulq.audit.pmf import noisy, product
from sulq.errors import QuestionError
from sulq.language.law import LaplaceLaw
from tests.figures import figure

KEEP = Fraction(3, 4)


def response(database: tuple) -> dict:
    """Everybody's bit by randomised response."""
    return product([{bit: KEEP, 1 - bit: 1 - KEEP} for bit in database])


def counted(database: tuple) -> dict:
    """The number of ones with discrete Laplace noise of epsilon 1/2."""
    return noisy(LaplaceLaw(Fraction(2)), sum(database), -12, 15)


def random_mechanism(rng: np.random.Generator, outcomes: int = 3):
    laws: dict[tuple, dict] = {}
    return lambda database: laws.setdefault(database, dict(enumerate(rng.dirichlet(np.ones(outcomes)).tolist())))


@pytest.mark.parametrize("mechanism", [response, counted])
def test_a_group_of_c_loses_c_times_as_much_at_most_S3_3_S4_22(mechanism) -> None:
    """S3.3, S4.22: over distance-c pairs at most c epsilon, with equality here; without the group's factor it fails."""
    laws = enumerated(mechanism, (0, 1), 3)
    one = group_epsilon(laws, 1)
    for people in (1, 2, 3):
        assert group_epsilon(laws, people) == pytest.approx(people * one, abs=1e-9)
    assert group_epsilon(laws, 2) > one


def test_chaining_is_an_upper_bound_for_any_mechanism_S4_22() -> None:
    """S4.22: for random mechanisms the group's loss is at most people times one's."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        laws = enumerated(random_mechanism(rng), (0, 1), 3)
        assert group_epsilon(laws, 2) <= 2 * group_epsilon(laws, 1) + 1e-9
        assert group_epsilon(laws, 3) <= 3 * group_epsilon(laws, 1) + 1e-9


@pytest.mark.parametrize("people", [1, 2])
def test_indistinguishable_is_simulatable_is_half_as_indistinguishable_S4_21_S4_23(people: int) -> None:
    """S4.21, S4.23: n = 3, k = 1, 2, on random mechanisms both directions hold; and the factor 2 is needed."""
    rng = np.random.default_rng(2)
    apart = []
    for _ in range(20):
        mechanism = random_mechanism(rng)
        laws = enumerated(mechanism, (0, 1), 3)
        simulated, group = simulation_epsilon(laws, people, 0), group_epsilon(laws, people)
        assert simulated <= group + 1e-12
        assert group <= 2 * simulated + 1e-12
        apart.append(group / simulated)
        made_up = simulate(mechanism, {0: 1, 2: 1}, 3, 0)
        assert made_up == laws[1, 0, 1]
    # With three values a simulator in the middle is half as far from either end.
    laws = enumerated(lambda x: {0: Fraction(4 + x[0], 10), 1: Fraction(6 - x[0], 10)}, (-2, 0, 2), 1)
    assert group_epsilon(laws, 1) > 1.5 * simulation_epsilon(laws, 1, 0)


@pytest.mark.parametrize("mechanism", [response, counted])
@pytest.mark.parametrize("people", [1, 2])
def test_semantic_security_is_the_groups_loss_S4_24(mechanism, people: int) -> None:
    """S4.24: the log-odds move by exactly epsilon at any prior; |ln(prior/posterior)| comes to it within 1e-3 at .9999.

    Control: at even odds the adversary's gain is well below.
    """
    laws = enumerated(mechanism, (0, 1), 3)
    exact = group_epsilon(laws, people)
    for weight in (0.1, 0.5, 0.9):
        ratio, odds = semantic_shift(laws, people, weight)
        assert odds == pytest.approx(exact, abs=1e-9)
        assert ratio <= exact + 1e-12
    grid = [semantic_shift(laws, people, weight)[0] for weight in (0.5, 0.9, 0.99, 0.9999)]
    assert grid == sorted(grid)
    assert grid[-1] == pytest.approx(exact, abs=1e-3)
    assert grid[0] < 0.95 * exact
    figure("S4.24", f"|ln(prior/posterior)| at .9999, {mechanism.__name__}, k = {people}", grid[-1], exact)


def test_no_prior_and_no_property_beats_two_points_S4_24() -> None:
    """S4.24: random priors on all databases that agree on n-k rows, and random properties, stay within the loss."""
    rng = np.random.default_rng(3)
    laws = enumerated(random_mechanism(rng), (0, 1), 3)
    exact = group_epsilon(laws, 2)
    consistent = [(0, *rest) for rest in itertools.product((0, 1), repeat=2)]  # the first row is known
    for _ in range(300):
        prior = dict(zip(consistent, rng.dirichlet(np.ones(4)).tolist(), strict=True))
        held = [x for x in consistent if rng.random() < 0.5] or consistent[:1]
        before = sum(prior[x] for x in held)
        for outcome in range(3):
            told = sum(prior[x] * laws[x][outcome] for x in consistent)
            after = sum(prior[x] * laws[x][outcome] for x in held) / told
            assert abs(math.log(after / before)) <= exact + 1e-9


def test_what_is_enumerated_is_small() -> None:
    """Distances are in rows, pairs are counted once, and large domains are refused."""
    assert distance((0, 1, 2), (0, 2, 1)) == 2
    assert len(list(within(enumerated(response, (0, 1), 3), 1))) == 12
    with pytest.raises(QuestionError):
        enumerated(response, range(10), 4)
