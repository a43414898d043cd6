"""Noise beside the sampling error: the specification's figures, what is refused, and the survey's bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sulq
from sulq import Epsilon, SubLinear
from sulq.audit import perturbation, sampling_report
from sulq.errors import QuestionError
from sulq.language import sublinear as sub
from sulq.language.law import BinomialLaw
from tests.figures import figure
from tests.learn.cases import opened, refused

BUDGET = SubLinear(1, 1e-6, 100)


@pytest.mark.parametrize(("size", "known"), [(10**6, (325, 39304, 707)), (10**4, (5, 393, 70))])
def test_noise_beside_the_sampling_error_S0_28(size: int, known: tuple[int, ...]) -> None:
    """S0.28: largest T with sqrt(R) < sqrt(n): 325 / 39304 / 707 at n = 1e6, 5 / 393 / 70 at n = 1e4.

    By the papers' formulas: 8 T ln^2(T/delta), 25.4426 T, 2 T^2; the next T is past it (the control).
    """
    report = sampling_report(BUDGET, size)
    capacity, noise = dict(report.capacity), dict(report.noise)
    assert tuple(capacity[name] for name in ("theorem1", "posterior", "laplace")) == known
    each = sub.variance_posterior(1, 1e-6, 1)
    formulas = {
        "theorem1": lambda t: 8 * t * math.log(t / 1e-6) ** 2,
        "posterior": lambda t: each * t,
        "laplace": lambda t: 2 * t**2,
    }
    for name, variance in formulas.items():
        assert variance(capacity[name]) < size <= variance(capacity[name] + 1)
        assert noise[name] == pytest.approx(math.sqrt(variance(100)), rel=1e-9)
    assert report.sampling == math.sqrt(size) / 2
    assert noise["posterior"] == pytest.approx(50.44, abs=0.01)
    figure("S0.28", f"largest T with noise below sqrt(n), n = {size}: theorem 1, posterior, Laplace",
           [capacity[name] for name in formulas], known)  # fmt: skip


def test_the_figure_for_posterior_is_not_the_rounded_one_S0_28() -> None:
    """S0.28: 39308 comes of R rounded to 25.44; at T = 39305 the noise is already at sqrt(n)."""
    assert sub.variance_posterior(1, 1e-6, 39304) < 10**6 < sub.variance_posterior(1, 1e-6, 39305)
    assert int(10**6 / 25.44) == 39308


def test_a_database_reports_by_its_declared_size_S0_28_SR6() -> None:
    """SR6: `db.facts.sampling` and the facts' own words by the declared size; refused, free, where n is secret."""
    columns, data = {"x": sulq.Int(0, 1)}, {"x": np.arange(50) % 2}
    with opened(columns, data, BUDGET, size=10**6) as db:  # declared, and not the number of rows
        assert db.facts.sampling == sampling_report(BUDGET, 10**6)
        assert "Up to 39,304 queries" in str(db.facts)
        assert "325 queries" in str(db.facts.sampling)
    with opened(columns, data, BUDGET) as db:
        with pytest.raises(QuestionError) as refusal:
            _ = db.facts.sampling
        assert refusal.value.code == "size-secret"
        assert "root of the size" not in str(db.facts)
        assert db.spent == sulq.Queries(0)
    with opened(columns, data, Epsilon(1), size=50) as db:
        refused("spend-kind", sampling_report, db.facts.budget, 50)
    for size in (0, True, 1.5):
        refused("bad-parameter", sampling_report, BUDGET, size)


def test_not_one_query_of_the_surveys_coins_is_below_the_root_S0_28_S1_5() -> None:
    """S1.5: a quarter of ln^6 n is above n up to n of about 2.6e6: at n = 1e6 not one query fits at epsilon 1."""
    report = sampling_report(BUDGET, 10**6)
    assert dict(report.capacity)["binomial-paper"] == 0 < dict(report.capacity)["theorem1"]
    assert dict(report.noise)["binomial-paper"] == pytest.approx(1.3184e4, rel=1e-3)
    first = [dict(sampling_report(BUDGET, size).capacity)["binomial-paper"] for size in (2_500_000, 2_700_000)]
    assert first == [0, 1]
    assert dict(sampling_report(BUDGET, 10**9).capacity)["binomial-paper"] == int(4e9 / math.log(10**9) ** 6)


@pytest.mark.parametrize(("size", "c", "c_prime"), [(20, 0.5, 0.0), (12, 0.7, 0.3), (6, 0.9, 0.1)])
def test_the_perturbation_bound_holds_S1_6(size: int, c: float, c_prime: float) -> None:
    """S1.6: P[|E| > sqrt(R) ln^2 n] <= 2 exp(-2 ln^4 n) by the exact binomial law; an eighth of the bound is passed."""
    found = perturbation(size, c, c_prime)
    assert found.queries == math.ceil(size**c)
    assert found.epsilon == pytest.approx(size**-c_prime)
    coins = found.queries * size ** (2 * c_prime) * math.log(size) ** 6
    assert coins <= found.coins <= coins + 2
    assert found.bound == pytest.approx(math.sqrt(found.coins) * math.log(size) ** 2)
    assert found.failure == pytest.approx(2 * math.exp(-2 * math.log(size) ** 4))
    law = BinomialLaw(found.coins)
    beyond = law.tail(math.floor(found.bound))
    assert beyond <= found.failure
    assert law.tail(math.floor(found.bound / 8)) > found.failure
    figure("S1.6", f"P[noise > sqrt(R) ln^2 n], n = {size}, c = {c}, c' = {c_prime}: exact, beside the bound",
           beyond, found.failure)  # fmt: skip


def test_the_flag_follows_from_the_bound_S1_6_E11() -> None:
    """S1.6, E11: sqrt(T)/epsilon is below sqrt(n) for every c < 1, c' < (1-c)/2; the bound, ln^5 n times that, is not.

    The bound passes below sqrt(n) only where n^((1-c)/2 - c') > ln^5 n: at c = .5 from about n = 1e39 on.
    """
    for size, c, c_prime in ((10**6, 0.5, 0.0), (10**12, 0.3, 0.1), (10**30, 0.2, 0.0), (100, 0.9, 0.4)):
        found = perturbation(size, c, c_prime)
        bound = math.sqrt(found.coins) * math.log(size) ** 2
        assert found.below_sampling is (bound < math.sqrt(size))
        assert found.rate_below is (math.sqrt(found.queries) / found.epsilon < math.sqrt(size))
    survey = perturbation(10**6, 0.5)
    assert survey.rate_below
    assert not survey.below_sampling  # what the survey's reading says and its own bound does not
    assert survey.bound / math.sqrt(survey.queries) == pytest.approx(math.log(10**6) ** 5, rel=1e-3)
    assert perturbation(10**30, 0.2).below_sampling
    assert [perturbation(10**power, 0.5).below_sampling for power in (38, 40)] == [False, True]
    assert "above sqrt(n)" in str(survey)
    assert "below it" in str(survey)
    figure("S1.6", "the bound sqrt(R) ln^2 n beside sqrt(n), n = 1e6, c = 1/2", survey.bound, 1000.0)


def test_exponents_the_theorem_does_not_cover_are_refused_S1_6() -> None:
    """S1.6: 0 < c < 1, 0 <= c' < c/2, two people or more."""
    for c, c_prime in ((0, 0), (1, 0), (0.5, 0.25), (0.5, -0.1), (math.nan, 0)):
        refused("bad-parameter", perturbation, 100, c, c_prime)
    for size in (1, 2.5, True):
        refused("bad-parameter", perturbation, size, 0.5)
