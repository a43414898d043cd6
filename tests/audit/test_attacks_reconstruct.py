"""Reconstruction: Dinur and Nissim's attack with little noise, with none, and through a budget."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import sulq.testing
from sulq import Epsilon, SubLinear
from sulq.audit.attacks import METHODS, least_squares, linear_program, reconstruct, subsets
from tests.audit.people import SEAT, SECRET, bits, people
from tests.counts import count
from tests.figures import figure

N = 128


@pytest.mark.parametrize(
    ("queries", "noise", "recovered"),
    [
        (8 * N, 1.0, 1.0),
        (8 * N, math.sqrt(N) / 4, 0.995),
        (8 * N, math.sqrt(N) / 2, 0.927),
        (8 * N, math.sqrt(N), 0.741),
        (8 * N, 2 * math.sqrt(N), 0.617),
        (N // 4, math.sqrt(N), 0.537),
    ],
)
def test_the_part_recovered_falls_with_the_noise_S4_26(queries: int, noise: float, recovered: float) -> None:
    """S4.26: n = 128, normal noise on random subset sums, least squares: the dagger numbers, 5 standard errors.

    12 secrets of 128 bits; the printed figures have three digits and an error of their own, .01.
    """
    trials = count("secrets reconstructed", short=12, long=400)
    random = np.random.default_rng(11)
    found = []
    for _ in range(trials):
        matrix, secret = subsets(queries, N, random), random.random(N) < 0.5
        answers = matrix @ secret + random.normal(0, noise, queries)
        found.append((least_squares(matrix, answers) == secret).mean())
    off = 5 * np.std(found) / math.sqrt(trials)
    assert np.mean(found) == pytest.approx(recovered, abs=off + 0.01)
    paper = "almost all, for noise far below sqrt(n) = 11.3 and about n ln^2 n sums"
    figure("S4.26", f"part recovered, n = 128, {queries} sums, noise {noise:.3g}", np.mean(found), paper)


def test_the_linear_program_recovers_as_well_and_bears_wild_answers_S4_26() -> None:
    """S4.26: at noise sqrt(n)/8 nearly all bits; one answer in ten far off, least squares fails and it does not."""
    random = np.random.default_rng(12)
    matrix, secret = subsets(4 * N, N, random), random.random(N) < 0.5
    answers = matrix @ secret + random.normal(0, math.sqrt(N) / 8, 4 * N)
    assert (linear_program(matrix, answers) == secret).mean() > 0.97
    answers[random.random(4 * N) < 0.1] += 5 * N
    assert (linear_program(matrix, answers) == secret).mean() > 0.95
    assert (least_squares(matrix, answers) == secret).mean() < 0.8


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_withstands_and_without_noise_all_is_recovered_T61(method: str) -> None:
    """T61: n = 200 secret bits, random subset sums through the API until the budget of epsilon 1 is gone.

    Bar: accuracy at most e^eps/(1 + e^eps) + 3 sigma. Control: with the noise off 95% or more.
    """
    random, secrets = np.random.default_rng(13), bits(200, 13)
    settings = {"person": SEAT, "secret": SECRET, "truth": secrets, "queries": 400, "random": random, "method": method}
    with people(secrets, Epsilon(1)) as db:
        found = reconstruct(db, spend=Epsilon(1), **settings)
        assert found.within
        assert found.rate <= found.allowed + 3 * math.sqrt(found.allowed * (1 - found.allowed) / 200)
        assert db.spent == Epsilon(1)
        control = reconstruct(sulq.testing.exact(db), spend=Epsilon(1), **settings)
        assert control.succeeded
        assert not replace(control, allowed=found.allowed).within


def test_through_the_policy_recovery_stays_near_a_coin_S4_26() -> None:
    """S4.26, T << n, R_posterior: below .5 + .1 of 128 bits over 8 databases; and a query more is refused."""
    random, total = np.random.default_rng(14), None
    for seed in range(8):
        secrets = bits(N, seed)
        with people(secrets, SubLinear(1, 1e-6, 16)) as db:
            found = reconstruct(db, person=SEAT, secret=SECRET, truth=secrets, spend=None, queries=16, random=random)
            total = found if total is None else total + found
            with pytest.raises(sulq.errors.BudgetExceeded):
                db.count()
    assert total is not None
    assert total.within
    assert total.rate < 0.62


def test_noise_must_grow_with_the_number_of_queries_S3_30() -> None:
    """S3.30: noise that stays, sqrt(n)/4, gives nearly every bit away once there are 8n sums, though not from n/8.

    Noise that grows as a promise of epsilon 1 over T sums asks, T/epsilon of Laplace or sqrt(R), R = 25.44 T, of
    Gaussian, gives none of it away from any number; the Gaussian's grows as sqrt(T), so from T = 13 on it is less.
    """
    random = np.random.default_rng(30)

    def recovered(queries: int, noise: object) -> float:
        found = []
        for _ in range(3):
            matrix, secret = subsets(queries, N, random), random.random(N) < 0.5
            answers = matrix @ secret + noise(queries)  # type: ignore[operator]
            found.append((least_squares(matrix, answers) == secret).mean())
        return float(np.mean(found))

    fixed = [recovered(q, lambda q: random.normal(0, math.sqrt(N) / 4, q)) for q in (N // 8, 2 * N, 8 * N)]
    assert fixed == sorted(fixed)
    assert fixed[0] < 0.65
    assert fixed[-1] > 0.97
    grown = [recovered(q, lambda q: random.normal(0, math.sqrt(25.44 * q), q)) for q in (N // 8, 2 * N, 8 * N)]
    laplace = [recovered(q, lambda q: random.laplace(0, q, q)) for q in (N // 8, 2 * N, 8 * N)]
    assert max(grown + laplace) < 0.64  # 384 fair coins pass that once in 10^8
    assert next(t for t in range(1, 100) if math.sqrt(25.44 * t) < math.sqrt(2) * t) == 13
    figure("S3.30", "part recovered from n/8, 2n and 8n sums, n = 128: fixed noise sqrt(n)/4", fixed, "almost all")
    figure("S3.30", "the same with Gaussian noise that grows as sqrt(25.44 T)", grown, "about half")
