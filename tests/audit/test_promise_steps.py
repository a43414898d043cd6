"""Azuma's inequality, the steps of a confidence, and where Theorem 4's proof slips."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from sulq.audit.promise import (
    divergence,
    expected_step,
    gaussian_walks,
    largest_step,
    rate,
    theorem4_terms,
    walk_bound,
)
from sulq.errors import QuestionError
from sulq.language import sublinear
from sulq.language.theorems import azuma
from tests.figures import figure


def test_azuma_is_one_sided_and_needs_no_independence_S0_23_E06() -> None:
    """S0.23, E06: steps of conditional mean <= a that look back stay below the height; downwards they need not.

    N = 20,000 walks of 100, of drift a and steps of b for as long as they may: one that stands still once it is above
    the height, so that passing it at any time counts, and one that takes smaller steps the higher it is, so that it
    does not fall back. Nothing bounds a walk below, so the two-sided statement printed is false.
    """
    random = np.random.default_rng(1)
    a, b, steps, lam, trials = 0.1, 1.0, 100, 1.5, 20_000
    height, chance = azuma(lam, mean=a, bound=b, steps=steps)
    for still in (True, False):
        place = np.zeros(trials)
        for _ in range(steps):
            size = np.where(place > height, 0.0, b) if still else b * np.clip(1.5 - place / height, a / b, 1.0)
            up = random.random(trials) < (1 + a / np.where(size > 0, size, b)) / 2
            place += np.where(up, size, -size)
        assert not stats.binom.sf((place > height).sum() - 1, trials, chance) < 1e-7
        assert stats.binom.sf((place > height / 3).sum() - 1, trials, chance) < 1e-7  # control: of a walk that climbs
    free = random.choice([b, -b], (trials, steps), p=[0.5 + a / 2, 0.5 - a / 2]).sum(axis=1)
    low = (free > height / 3).mean()
    assert low > chance  # a third of the height is passed oftener than that
    falling = np.full(trials, -b * steps)  # conditional mean -b <= a
    assert (np.abs(falling) > height).mean() == 1 > 2 * chance


def test_divergences_and_expected_steps_S0_25() -> None:
    """S0.25: KL of normals by integration to 1e-8, at most 1/(2R); the mean step of random mixtures is within it."""
    variance = 7.0
    for gap in (0.0, 0.3, 1.0):
        p, q = stats.norm(gap, math.sqrt(variance)), stats.norm(0, math.sqrt(variance))
        found, _ = integrate.quad(lambda x, p=p, q=q: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), -60, 60)
        assert divergence(gap, 0, variance) == pytest.approx(found, abs=1e-8)
    random = np.random.default_rng(2)
    for _ in range(20):
        means, weights = random.random(4), random.dirichlet(np.ones(4))
        bound = expected_step(1.0, means, weights, variance)
        x = random.normal(1.0, math.sqrt(variance), 20_000)
        mixed = (weights * stats.norm.pdf(x[:, None], means, math.sqrt(variance))).sum(axis=1)
        steps = stats.norm.logpdf(x, 1.0, math.sqrt(variance)) - np.log(mixed)
        assert steps.mean() <= bound + 5 * steps.std() / math.sqrt(x.size)
        assert bound <= 1 / (2 * variance)
    with pytest.raises(QuestionError):
        expected_step(0, [0.5], [0.5], 1.0)


def test_no_step_of_T_is_larger_but_for_delta_S0_25() -> None:
    """S0.25: the largest of 50 steps passes sqrt(2 ln(T/delta)/R) + 1/(2R) no oftener than delta; half of it does."""
    variance, queries, delta, trials = 30.0, 50, 0.05, 20_000
    steps = np.diff(gaussian_walks(variance, queries, trials, np.random.default_rng(3)), axis=1, prepend=0)
    bound = largest_step(variance, queries, delta)
    found = rate(steps.max(axis=1), bound, delta)
    assert found.holds
    figure("S0.25", "walks of 50 with a step past sqrt(2 ln(T/delta)/R) + 1/(2R)", found.rate, f"at most {delta}")
    assert not rate(steps.max(axis=1), bound / 2, delta).holds


def test_the_terms_of_theorem_4_are_not_in_the_order_the_proof_says_E05() -> None:
    """E05: R = 4, T = 1e6: 20022, 1347, 125000; at R_thm4 with constant 8 or 4 they sum to epsilon or less."""
    terms = theorem4_terms(4, 10**6, 1e-6, 1e-6)
    assert terms == pytest.approx((20022, 1347, 125000), rel=1e-3)
    assert max(terms) == terms[2]
    for constant in (8, 4):
        variance = sublinear.variance_theorem4(1, 1e-6, 10**6, gamma=1e-6, constant=constant)
        assert sum(theorem4_terms(variance, 10**6, 1e-6, 1e-6)) <= 1
    assert sum(theorem4_terms(0.2 * variance, 10**6, 1e-6, 1e-6)) > 1


def test_a_walk_ends_below_its_bound_even_if_it_may_stop_S0_24() -> None:
    """S0.24: constants 8 and 4 keep a stopping adversary far below gamma + delta; a hundredth of the noise does not."""
    random, queries, delta = np.random.default_rng(4), 50, 0.05
    for constant in (8, 4):
        variance = sublinear.variance_theorem4(1, delta, queries, gamma=delta, constant=constant)
        height, chance = walk_bound(variance, queries, delta, delta)
        assert height <= 1 + 1e-12
        assert chance == pytest.approx(1.5 * delta)
        found = rate(gaussian_walks(variance, queries, 20_000, random).max(axis=1), 1, 2 * delta)
        assert found.exceeded == 0
    found = rate(gaussian_walks(variance / 100, queries, 20_000, random).max(axis=1), 1, 2 * delta)
    assert not found.holds
