"""The papers' formulas, corrected: their numbers, and what the printed ones would do."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, norm

import sulq
from sulq import Epsilon, Sums, col
from sulq.language.law import LaplaceLaw
from sulq.learn import min_n
from sulq.learn.sq.planning import (
    emulation_rows,
    exact_emulation_rows,
    least,
    repetitions,
    sample_block,
    sampling_error,
)
from tests.figures import figure
from tests.learn.sq.noisy import Arrays


def noise_rows(queries: int, tau: float, epsilon: float, beta: float) -> int:
    """(k/epsilon) ln(k/beta)/tau: rows at which k counts of Laplace noise k/epsilon are all within tau n [S3.27]."""
    return min_n(queries, tau, spend=Epsilon(epsilon), beta=beta)


def joint_rows(queries: int, tau: float, epsilon: float, beta: float) -> int:
    """max((2M/(epsilon tau)) ln(2M/beta), (2/tau^2) ln(4M/beta)): all M queries on all rows [S2.12, S3.27]."""
    return min_n(queries, tau, spend=Epsilon(epsilon), beta=beta, population=True, paper=True)


def split_block(queries: int, tau: float, epsilon: float, beta: float) -> int:
    """max((2/tau^2) ln(4M/beta), (2/(epsilon tau)) ln(2M/beta)): rows of each of M disjoint blocks [S2.12]."""
    rows = min_n(queries, tau, spend=Epsilon(epsilon), beta=beta, population=True, paper=True, method="split")
    return rows // queries


def fails(times: int, *, variance: float = 4000, tau: float = 0.01, rows: int = 1000) -> float:
    """The exact probability that an average of so many noisy sums is off by more than tau."""
    return 2 * norm.sf(tau * rows / math.sqrt(variance / times))


def test_repetitions_and_what_they_buy_S0_20() -> None:
    """The numbers of SPEC: t = 1, 40, 609 fail with .87, .31, .0003; exactly .874, .317, .0000955 (bound .0005)."""
    t = repetitions(4000, 0.01, 1000, 100, 0.05)
    assert t == 609
    assert fails(1) == pytest.approx(0.87, abs=5e-3)
    assert fails(40) == pytest.approx(0.31, abs=8e-3)
    assert fails(609) <= 0.0003 <= 0.05 / 100
    figure(
        "S0.20",
        "chance that 609 repetitions are off by .01, n = 1,000, R = 4,000, q = 100",
        fails(609),
        "at most 0.0005",
    )
    figure("S0.20", "the same for the printed R/(tau n^2), one repetition", fails(1), "at most 0.0005")
    rng = np.random.default_rng(3)
    draws = 200_000  # N; five standard errors
    for times in (1, 40, 609):
        found = np.mean(np.abs(rng.normal(0, math.sqrt(4000 / times), draws)) > 10)
        assert abs(found - fails(times)) <= 5 * math.sqrt(fails(times) * (1 - fails(times)) / draws) + 1e-12


@pytest.mark.parametrize("rows", [50, 100, 1000])
def test_repeat_count_E19(rows: int) -> None:
    """The printed R/(tau n^2) makes the variance tau, not the deviation: nearly every answer is off by more."""
    variance, tau = 4000.0, 0.01
    printed = max(1, math.ceil(variance / (tau * rows**2)))
    assert fails(printed, rows=rows) > 0.85
    corrected = repetitions(variance, tau, rows, 1, 0.05)
    assert fails(corrected, rows=rows) <= 0.05
    assert fails(max(1, corrected // 4), rows=rows) > 0.05  # and it is no wider than it must be


def test_the_size_of_a_database_E20() -> None:
    """With sum 1/tau_j^2 and the factor 2 the repetitions fit T; with the printed sum 1/tau_j they do not by far."""
    variance, taus, asks, beta = 4000.0, [0.01, 0.02, 0.05, 0.05], 40, 0.05

    def used(rows: float) -> int:
        return sum(repetitions(variance, tau, rows, len(taus), beta) for tau in taus)

    rows = emulation_rows(variance, taus, asks, beta)
    assert used(rows) <= asks < used(rows / 2)
    printed = math.sqrt(variance * math.log(len(taus) / beta) / (asks - len(taus)) * sum(1 / tau for tau in taus))
    assert used(printed) > asks
    tight = exact_emulation_rows(variance, taus, asks, beta)
    assert used(tight) <= asks < used(tight - 1)
    assert tight <= rows
    assert used(exact_emulation_rows(variance, taus, len(taus), beta)) == len(taus)  # also where T = q


def test_the_direction_of_the_chain_E20() -> None:
    """The sum of ceilings is at most q plus the sum: as printed, at least that, it is false."""
    xs = np.random.default_rng(5).uniform(0, 3, 50)
    ceilings = sum(math.ceil(x) for x in xs)
    assert ceilings <= len(xs) + sum(xs)
    assert not ceilings >= len(xs) + sum(xs)


def test_a_block_for_each_query_S2_11() -> None:
    """Hoeffding's block holds the worst mean there is within tau; half of a quarter of it does not."""
    queries, tau, beta = 10, 0.05, 0.05
    block = sample_block(queries, tau, beta)
    assert block == math.ceil(math.log(400) / 0.005) == 1199

    def off(rows: int) -> float:
        inside = binom.cdf(math.floor(rows * (0.5 + tau)), rows, 0.5)
        return 1 - (inside - binom.cdf(math.ceil(rows * (0.5 - tau)) - 1, rows, 0.5))

    assert off(block) <= beta / queries < off(block // 4)
    figure("S2.11", "chance that a block of 1,199 is off by .05, 10 queries", off(block), f"at most {beta / queries}")
    assert sampling_error(block, queries, beta) == pytest.approx(tau, rel=1e-3)


def test_split_and_joint_S2_12() -> None:
    """For 12 queries of tolerance .1/24 at epsilon 1: 9.49 million rows in blocks, .79 million in all."""
    tau = 0.1 / 24
    assert tau == pytest.approx(0.00417, abs=1e-5)
    split, joint = 12 * split_block(12, tau, 1.0, 0.05), joint_rows(12, tau, 1.0, 0.05)
    assert split == pytest.approx(9.49e6, rel=1e-3)
    assert joint == pytest.approx(0.79e6, rel=2e-3)
    assert split / joint >= 10
    figure(
        "S2.12",
        "rows for 12 queries of .1/24 at alpha 1, in blocks",
        split,
        12 * math.ceil(2 * math.log(48 / 0.05) / tau**2),
    )
    figure("S2.12", "rows for the same, all queries of all rows", joint, math.ceil(2 * math.log(48 / 0.05) / tau**2))


def test_the_noise_of_a_block_does_not_grow_with_their_number_E26() -> None:
    """M = 20 blocks of 500: .0134; with the text's noise of rate alpha m/M it is .267, twenty times as far off."""
    queries, block = 20, 500
    corrected = math.log(2 * queries / 0.05) / block
    literal = queries * corrected
    assert corrected == pytest.approx(0.0134, abs=1e-4)
    assert literal == pytest.approx(0.267, abs=1e-3)
    tau = 2 * corrected  # the tolerance this noise is half of
    assert math.ceil(2 / tau * math.log(2 * queries / 0.05)) == block
    rng = np.random.default_rng(7)
    assert np.mean(np.abs(rng.laplace(0, 1 / block, 100_000)) > tau / 2) < 2 * 0.05 / (2 * queries)
    assert np.mean(np.abs(rng.laplace(0, queries / block, 100_000)) > tau / 2) > 0.5


def test_a_scale_is_not_a_rate_E24() -> None:
    """An average over n at alpha has noise of scale 1/(alpha n), which `noise_rows` and `split_block` reckon with.

    The text calls alpha n the scale; that is the rate. Noise of that scale passes tau nearly always, and more rows
    make it worse. The law is the one a question is planned with, its tail exact.
    """
    alpha, tau, beta, queries = Fraction(1, 2), 0.01, 0.05, 20
    database = Arrays({"z": sulq.Real(0, 1)}, {"z": np.zeros(0)})
    (noise,) = database.foresee(Sums((col("z"),)), spend=Epsilon(alpha)).parts[0].noise

    def passed(rows: int, tolerance: float, scale: Fraction = noise.law.scale) -> float:
        return LaplaceLaw(scale).tail(math.floor(tolerance * rows / noise.step))

    assert noise.law.scale * noise.step == 1 / alpha  # of the sum
    rows = noise_rows(1, tau, float(alpha), beta)
    density = noise.law.pmf(0) / float(noise.step) * rows  # at zero, of the average
    assert density == pytest.approx(float(alpha) * rows / 2, rel=1e-6)
    assert passed(rows, tau) <= beta < passed(rows - 2, tau)
    block = split_block(queries, 2 * tau, float(alpha), beta)
    assert passed(block, tau) <= beta / (2 * queries)
    printed = [passed(n, tau, alpha * n * n / noise.step) for n in (rows, 2 * rows, 4 * rows)]
    assert 0.99 < printed[0] < printed[1] < printed[2]


def test_rows_for_the_noise_S3_27() -> None:
    """For k = 30, epsilon 1, tau .02: n = 9596; fails with 1 - (1 - beta/k)^k = .0488, drawn 200,000 times."""
    rows = noise_rows(30, 0.02, 1.0, 0.05)
    assert rows == 9596
    exact = 1 - (1 - math.exp(-0.02 * rows / 30)) ** 30
    assert exact == pytest.approx(0.0488, abs=1e-4)
    draws = 200_000
    worst = np.abs(np.random.default_rng(13).laplace(0, 30, (draws, 30))).max(axis=1)
    assert np.mean(worst > 0.02 * rows) == pytest.approx(exact, abs=5 * math.sqrt(exact / draws))
    figure(
        "S3.27",
        "30 answers, tau .02, epsilon 1, n = 9,596: some past tau",
        np.mean(worst > 0.02 * rows),
        1 - (1 - 0.05 / 30) ** 30,
    )


def test_both_failures_have_half_E50() -> None:
    """With beta undivided, as printed, noise and sampling together may fail more often than beta; with halves never."""
    queries, tau, beta = 30, 0.02, 0.05

    def bound(rows: int, epsilon: float) -> float:
        return queries * (math.exp(-epsilon * rows * tau / (2 * queries)) + 2 * math.exp(-rows * tau**2 / 2))

    epsilon = 2 * queries * math.log(queries / beta) / tau / (2 / tau**2 * math.log(2 * queries / beta))
    printed = max(noise_rows(queries, tau / 2, epsilon, beta), sample_block(queries, tau / 2, beta))
    assert bound(printed, epsilon) > 1.9 * beta
    assert bound(joint_rows(queries, tau, epsilon, beta), epsilon) <= beta


def test_blocks_under_label_noise_S2_14() -> None:
    """2 ln(4M/beta)/tau^2 for the part without labels, divided by (1 - 2 eta)^2 for the other."""
    free, bound = math.ceil(2 * math.log(800) / 0.05**2), math.ceil(2 * math.log(800) / (0.05 * 0.4) ** 2)
    assert min_n(10, 0.05, beta=0.05, eta=0.3, method="split", paper=True) == 10 * (free + bound)


def test_trap_4_the_logarithm_multiplies_the_square() -> None:
    """Rows for sampling grow as ln(q)/tau^2, rows for noise as q ln(q)/tau; sampling is on top of noise."""
    assert sample_block(100, 0.01, 0.05) == pytest.approx(4 * sample_block(100, 0.02, 0.05), abs=4)
    assert sample_block(100**2 * 40, 0.01, 0.05) == pytest.approx(2 * sample_block(100, 0.01, 0.05), abs=2)
    assert noise_rows(100, 0.01, 1.0, 0.05) == pytest.approx(2 * noise_rows(100, 0.02, 1.0, 0.05), abs=2)
    assert joint_rows(100, 0.01, 1.0, 0.05) > max(noise_rows(100, 0.01, 1.0, 0.05), sample_block(100, 0.01, 0.05))


def test_the_least_number_is_found() -> None:
    """Whatever the threshold is, the search ends at it, or at the most."""
    for threshold in (1, 2, 3, 1000, 12345):
        assert least(lambda n, t=threshold: n >= t) == threshold
    assert least(lambda _: False, most=100) == 100
