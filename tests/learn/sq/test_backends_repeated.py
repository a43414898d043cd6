"""Statistical queries by the SuLQ primitive: repetitions, their price, and what they buy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import sulq
from sulq import Queries, SubLinear, Unit, col
from sulq.errors import SulqError
from sulq.language.law import BinomialLaw, GaussianLaw, LaplaceLaw
from sulq.language.sublinear import noise_for
from sulq.learn import StatisticalQueries, min_n
from sulq.learn.sq.backends import often
from tests.counts import count
from tests.figures import figure
from tests.learn.cases import opened
from tests.learn.sq.noisy import Arrays

UNIT = Unit(neighbors="zero_out")
FALSE_ALARM = 1e-7


def table(rows: int) -> tuple[dict[str, object], dict[str, object]]:
    x = np.arange(rows) % 3 == 0
    return {"x": sulq.Bool(), "z": sulq.Real(0, 1)}, {"x": x, "z": np.linspace(0, 1, rows)}


def refused(code: str, act: object, *args: object, **kwargs: object) -> SulqError:
    with pytest.raises(SulqError) as refusal:
        act(*args, **kwargs)
    assert refusal.value.code == code
    return refusal.value


def test_a_query_costs_its_repetitions_S0_20() -> None:
    """The ledger is charged t = ceil(2 R ln(q/beta)/(tau^2 n^2)) queries, no more and no fewer."""
    rows, budget = 2000, SubLinear(epsilon=1, delta=1e-6, queries=40)
    with opened(*table(rows), budget, unit=UNIT, size=rows) as db:
        oracle = StatisticalQueries(db, queries=5)
        variance = noise_for(budget).variance
        for tau in (0.05, 0.02):
            before = oracle.spent.queries
            answer = oracle.stat(col("x"), tau)
            t = math.ceil(2 * variance * math.log(5 / 0.05) / (tau * rows) ** 2)
            assert oracle.spent.queries - before == t
            assert abs(answer - 1 / 3) <= 2 * tau
        assert db.spent == oracle.spent == Queries(1 + 6)
        refusal = refused("too-few-rows", oracle.stat, col("x"), 0.002)
        assert "33 queries are left" in refusal.message
        assert db.spent == Queries(7)
        refused("bad-parameter", StatisticalQueries, db, queries=5, method="split")
        refused("spend-kind", StatisticalQueries, db, queries=5, spend=sulq.Epsilon(1))


def test_the_rows_a_refusal_names_are_enough() -> None:
    """With so many rows the same query is answered; with one row less it is not."""

    def oracle(size: int) -> StatisticalQueries:
        budget = SubLinear(epsilon=1, delta=1e-6, queries=20)
        return StatisticalQueries(Arrays(*table(500), budget=budget, size=size), queries=4)

    refusal = refused("too-few-rows", oracle(500).stat, col("x"), 0.01)
    needed = int(refusal.message.split("about ")[1].split(" rows")[0].replace(",", ""))
    assert 0 <= oracle(needed).stat(col("x"), 0.01) <= 1
    refused("too-few-rows", oracle(needed - 1).stat, col("x"), 0.01)


def test_at_the_size_it_names_all_answers_are_within_tau_S0_21() -> None:
    """Theorem 3: at min_n's n the emulation asks at most T sums and errs with at most beta; at n/2 it asks more."""
    queries, tau, beta = 4, 0.05, 0.2
    budget = SubLinear(epsilon=1, delta=1e-6, queries=12)
    rows = min_n(queries, tau, spend=budget, beta=beta, paper=True)
    runs = count("S0.21 emulation", short=150, long=2000)
    columns, data = table(rows)
    phis = [col("x"), col("z"), ~col("x"), col("x") & (col("z") > 0.5)]
    x, z = np.asarray(data["x"]), np.asarray(data["z"])
    truth = np.array([x.mean(), z.mean(), 1 - x.mean(), (x & (z > 0.5)).mean()])
    failed = 0
    for seed in range(runs):
        oracle = StatisticalQueries(
            Arrays(columns, data, budget=budget, size=rows, seed=seed), queries=queries, beta=beta
        )
        failed += bool(np.abs(oracle.stats(phis, tau) - truth).max() > tau)
        assert oracle.spent.queries <= 12
    assert failed <= binom.ppf(1 - FALSE_ALARM, runs, beta)
    figure("S0.21", f"runs at n = {rows} with an answer past tau, T = 12, q = 4", failed / runs, f"at most {beta}")
    half = Arrays(*table(rows // 2), budget=budget, size=rows // 2, seed=1)
    refused("too-few-rows", StatisticalQueries(half, queries=queries, beta=beta).stats, phis, tau)


def test_as_printed_most_answers_are_off_E19() -> None:
    """R/(tau n^2) repetitions of the same noisy sum, run: far more than beta of the answers are farther than tau."""
    rows, tau = 2000, 0.02
    budget = SubLinear(epsilon=1, delta=1e-6, queries=40)
    printed = max(1, math.ceil(noise_for(budget).variance / (tau * rows**2)))
    assert printed == 1
    columns, data = table(rows)
    off = 0
    for seed in range(200):
        oracle = Arrays(columns, data, budget=budget, size=rows, seed=seed)
        sums = oracle.ask(sulq.Sums((col("x"),) * printed)).released.values()[0]
        off += abs(sums.mean() / rows - data["x"].mean()) > tau
    assert off > binom.ppf(1 - FALSE_ALARM, 200, 0.05)


def test_without_a_declared_size_one_query_counts_the_rows_E38() -> None:
    """The count's own error comes off the tolerance, and the number of rows is never read."""
    rows, budget = 20_000, SubLinear(epsilon=1, delta=1e-6, queries=40)
    database = Arrays(*table(rows), budget=budget, seed=4)
    oracle = StatisticalQueries(database, queries=5)
    assert oracle.size is None
    assert abs(oracle.stat(col("x"), 0.02) - 1 / 3) <= 0.02
    assert oracle.size is not None
    assert not oracle.size.declared
    assert abs(oracle.size.rows - rows) <= oracle.size.off
    asked = [len(question.values) for question, _ in database.asked]
    assert asked[0] == 1
    assert oracle.spent == Queries(sum(asked))
    small = Arrays(*table(9), budget=SubLinear(epsilon=1, delta=1e-6, queries=1))
    refused("budget-exceeded", StatisticalQueries(small, queries=2).stat, col("x"), 0.5)


@pytest.mark.parametrize("law", [GaussianLaw(Fraction(30)), LaplaceLaw(Fraction(20)), BinomialLaw(3600)])
def test_repetitions_of_every_law_are_enough(law: object) -> None:
    """The average of t draws is within the width but for beta, whatever the noise; of t/3 it is not."""
    rng = np.random.default_rng(8)
    width, beta, runs = 8.0, 0.02, 10_000

    def off(times: int) -> float:
        draw = rng.laplace if isinstance(law, LaplaceLaw) else rng.normal
        draws = draw(0, 20 if isinstance(law, LaplaceLaw) else 30, (runs, times))
        return float(np.mean(np.abs(draws.mean(axis=1)) > width))

    times = often(law, width, beta)
    assert off(times) <= binom.ppf(1 - FALSE_ALARM, runs, beta) / runs
    assert off(times // 3) > beta
    assert often(law, -1.0, beta) > 10**12


@pytest.mark.parametrize("calibration", ["posterior", "dp", "theorem1", "laplace", "binomial"])
def test_every_calibration_answers(calibration: str) -> None:
    """Whatever noise the budget has, the answer is within tau, at a price that is told."""
    rows = 200_000
    budget = SubLinear(epsilon=1, delta=1e-6, queries=30, calibration=calibration)
    columns, data = table(rows)
    oracle = StatisticalQueries(Arrays(columns, data, budget=budget, size=rows, seed=3), queries=3)
    assert abs(oracle.stat(col("x"), 0.02) - np.asarray(data["x"]).mean()) <= 0.02
    assert oracle.spent.queries >= 1


def normal_passes(width: float, deviation: float) -> float:
    """P(|Z| > width) of a normal of this deviation."""
    return math.erfc(width / deviation / math.sqrt(2))


def test_repeated_sums_answer_a_query_of_labelled_rows_S1_11() -> None:
    """S1.11: stat(f, tau), f of a row and its label, by about R/(tau^2 n^2) sums; by one if tau n >> sqrt(R).

    By the average's exact law, N(0, R/(t n^2)): within tau but for beta/q at the t that is charged. Controls: a single
    sum is far oftener past tau, and R/(tau n^2) sums, as the other paper prints (E19), still are.
    """
    rows, queries, beta = 1000, 10, 0.05
    budget = SubLinear(epsilon=1, delta=1e-6, queries=300)
    variance = noise_for(budget).variance
    x = np.arange(rows) % 4 == 0
    label = x ^ (np.arange(rows) % 10 == 0)
    f = col("x") & ~col("y")
    with opened({"x": sulq.Bool(), "y": sulq.Bool()}, {"x": x, "y": label}, budget, unit=UNIT, size=rows) as db:
        oracle = StatisticalQueries(db, queries=queries, beta=beta)
        for tau, repeated in ((0.1, True), (0.4, False)):
            before = oracle.spent.queries
            answer = oracle.stat(f, tau)
            t = oracle.spent.queries - before
            assert t == math.ceil(2 * variance * math.log(queries / beta) / (tau * rows) ** 2)
            assert (t > 1) is repeated
            assert abs(answer - (x & ~label).mean()) <= 3 * tau
            assert normal_passes(tau * rows, math.sqrt(variance / t)) <= beta / queries
            if repeated:
                assert normal_passes(tau * rows, math.sqrt(variance)) > 0.2
                printed = math.ceil(variance / (tau * rows**2))
                assert normal_passes(tau * rows, math.sqrt(variance / printed)) > beta / queries
                passed = normal_passes(tau * rows, math.sqrt(variance / t))
                figure("S1.11", f"sums of a query at tau .1, n = 1,000, R = {variance:.0f}, and P[it is farther off]",
                       [t, passed], [2 * variance * math.log(200) / 1e4, beta / queries])  # fmt: skip
            else:
                assert tau * rows > 4 * math.sqrt(variance)
