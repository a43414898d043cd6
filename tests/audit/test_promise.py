"""The promise over T answers: exact for two points, simulated for adversaries that stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from sulq.audit.promise import gaussian_walks, rate, shift_chance, verify
from sulq.errors import QuestionError
from sulq.language import sublinear
from sulq.language.law import GaussianLaw, LaplaceLaw
from tests.counts import count
from tests.language import readings

T, DELTA = 50, 0.05


def off(chance: float, trials: int) -> float:
    """Five standard errors."""
    return 5 * math.sqrt(chance * (1 - chance) / trials)


def test_the_exact_chance_of_two_points_S0_4() -> None:
    """S0.4: R_nonadaptive = 181.8 gives exactly delta; a smaller move gives less, two-sided adds the other tail."""
    variance = readings.variance_nonadaptive(1, DELTA, T)
    assert variance == pytest.approx(181.8, abs=0.05)
    assert shift_chance(1, variance=variance, queries=T) == pytest.approx(DELTA, rel=1e-9)
    assert shift_chance(1, variance=variance, queries=T, move=0.5) < DELTA / 10
    both = shift_chance(1, variance=variance, queries=T, two_sided=True)
    assert DELTA < both < 2 * DELTA


def test_trap_3_stopping_breaks_what_is_right_for_fixed_questions_S0_4() -> None:
    """S0.4, trap 3: N = 40,000: fixed .049, stopping .077; R_adaptive (232.8) stopping .041; Thm 1 none, max .20."""
    trials = count("audited transcripts", short=40_000, long=400_000)
    random = np.random.default_rng(7)
    walks = gaussian_walks(readings.variance_nonadaptive(1, DELTA, T), T, trials, random)
    fixed, stopped = rate(walks[:, -1], 1, DELTA), rate(walks.max(axis=1), 1, DELTA)
    assert fixed.holds
    assert fixed.rate == pytest.approx(0.05, abs=off(0.05, trials))
    assert not stopped.holds
    assert "BROKEN" in str(stopped)
    assert stopped.rate == pytest.approx(0.077, abs=off(0.077, trials) + 5e-4)  # the figure has three digits
    variance = readings.variance_adaptive(1, DELTA, T)
    assert variance == pytest.approx(232.8, abs=0.05)
    stopped = rate(gaussian_walks(variance, T, trials, random).max(axis=1), 1, DELTA)
    assert stopped.holds
    assert stopped.rate == pytest.approx(0.041, abs=off(0.041, trials) + 5e-4)
    wide = rate(gaussian_walks(sublinear.variance_theorem1(1, DELTA, T), T, 40_000, random).max(axis=1), 1, DELTA)
    assert wide.exceeded == 0
    assert wide.largest == pytest.approx(0.2, abs=0.06)


def test_both_sides_fail_twice_as_often_at_most_S1_3_E48() -> None:
    """S1.3, E48: |shift| passes with at most twice delta."""
    trials = 40_000
    variance = readings.variance_nonadaptive(1, DELTA, T)
    walks = gaussian_walks(variance, T, trials, np.random.default_rng(8))
    both = rate(walks[:, -1], 1, DELTA, two_sided=True)
    assert both.holds
    exact = shift_chance(1, variance=variance, queries=T, two_sided=True)
    assert both.rate == pytest.approx(exact, abs=off(exact, trials))
    assert both.delta == 2 * DELTA


def test_the_chance_of_failing_vanishes_faster_than_every_inverse_polynomial_S1_3_E09() -> None:
    """E09: sqrt(n) answers with noise of variance n fail with a chance that is below n^-k from some n on, for every k.

    Read as printed, "grows more slowly than 1/poly", any falling function would do. Controls: n answers of that noise,
    and so many that the chance falls as 1/n^2 and no faster, are not negligible.
    """
    sizes = [10**k for k in range(2, 7)]

    def vanishing(answers: Callable[[int], float], power: int) -> bool:
        """Whether the chance is below n^-power at the largest n, and falls away from it there."""
        logs = [math.log(shift_chance(1, variance=n, queries=answers(n))) + power * math.log(n) for n in sizes[-2:]]
        return logs[1] < min(0.0, logs[0])

    for power in (1, 2, 5, 10):
        assert vanishing(math.sqrt, power)
        assert not vanishing(lambda n: n, power)
    slow = [vanishing(lambda n: n / (4 * math.log(n)), power) for power in (1, 3)]
    assert slow == [True, False]


def greedy(epsilon: float):
    """Ask for the fact itself until the shift has passed epsilon, then stop."""
    return lambda _answers, shifted: None if shifted > epsilon else {0: 0, 1: 1, 2: 1}


def test_an_adversary_on_exact_noise_is_held_to_the_promise_S0_4() -> None:
    """S0.4, S0.7: a stopping adversary with discrete noise of R_posterior keeps it; with a quarter of it, not.

    Pure noise never passes at all: Laplace of scale T/epsilon (S0.26). Bar: delta .05 at 10 answers.
    """
    trials = count("audited adversaries", short=1_500, long=40_000)
    prior = {0: 0.5, 1: 0.3, 2: 0.2}
    promise = {"epsilon": 1.0, "delta": DELTA, "queries": 10, "trials": trials}

    def played(law: GaussianLaw | LaplaceLaw, seed: int):
        random = np.random.default_rng(seed)
        return verify(prior, law, greedy(1.0), lambda value: value != 0, random=random, **promise)

    scale = Fraction(math.sqrt(sublinear.variance_posterior(1, DELTA, 10)))
    assert played(GaussianLaw(scale), 1).holds
    assert not played(GaussianLaw(scale / 4), 2).holds
    pure = played(LaplaceLaw(Fraction(10)), 3)
    assert pure.exceeded == 0
    assert pure.largest <= 1 + 1e-9


def test_a_property_of_all_or_none_is_refused() -> None:
    """There must be something to learn."""
    settings = {"epsilon": 1.0, "delta": 0.1, "queries": 1, "trials": 10, "random": np.random.default_rng(1)}
    with pytest.raises(QuestionError):
        verify({0: 0.5, 1: 0.5}, LaplaceLaw(Fraction(1)), greedy(1), lambda _value: True, **settings)
