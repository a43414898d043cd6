"""min_n and plan: rows before there are any."""

from __future__ import annotations

import math

import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear
from sulq.language.sublinear import noise_for
from sulq.learn import min_n, plan
from sulq.learn.sq.planning import sample_block

TAU = 0.1 / 24
SULQ = SubLinear(epsilon=1, delta=1e-6, queries=200)


def test_the_papers_numbers() -> None:
    """S3.27's 9,596; S2.12's 9.49 and .79 million; what is tight needs .23 million, a factor of 41."""
    assert min_n(30, 0.02, spend=Epsilon(1)) == 9596
    paper = {"spend": Epsilon(1), "population": True, "paper": True}
    split, joint = min_n(12, TAU, method="split", **paper), min_n(12, TAU, **paper)
    assert split == pytest.approx(9.49e6, rel=1e-3)
    assert joint == pytest.approx(0.79e6, rel=2e-3)
    tight = min_n(12, TAU, spend=Epsilon(1), population=True)
    assert tight == pytest.approx(231_966, rel=1e-3)
    assert split / tight > 40


@pytest.mark.parametrize("spend", [Epsilon(0.5), Rho(0.02), EpsilonDelta(1, 1e-6), SULQ])
@pytest.mark.parametrize("population", [True, False])
@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_tight_is_never_more_than_the_papers(spend: object, population: object, eta: float) -> None:
    """And a tolerance per query is never dearer than the smallest of them for all."""
    settings = {"spend": spend, "population": population, "eta": eta}
    tight, paper = min_n(20, 0.02, **settings), min_n(20, 0.02, **settings, paper=True)
    assert tight <= paper
    assert min_n(20, [0.02] + [0.2] * 19, **settings) < tight
    assert tight == pytest.approx(min_n(20, [0.02] * 20, **settings), abs=1)
    assert tight < min_n(20, 0.01, **settings)
    assert tight <= min_n(20, 0.02, **settings, beta=0.01)


def test_the_tight_number_is_where_the_bounds_meet() -> None:
    """At n the noise's bound and sampling's fit the tolerance; one row less and they do not."""
    queries, tau, epsilon, beta = 12, 0.01, 0.5, 0.05
    rows = min_n(queries, tau, spend=Epsilon(epsilon), population=True, beta=beta)

    def fits(n: int) -> bool:
        margin = math.sqrt(math.log(4 * queries / beta) / (2 * n))
        return queries * math.log(2 * queries / beta) / (epsilon * n) + margin <= tau

    assert fits(rows)
    assert not fits(rows - 1)


def test_a_sample_without_privacy() -> None:
    """Fresh blocks for queries that follow answers; all rows for queries that do not, or are of one family."""
    assert min_n(10, 0.05, method="split") == 10 * sample_block(10, 0.05, 0.05)
    assert min_n(10, 0.05) == sample_block(10, 0.05, 0.05)
    assert min_n(10, 0.05, adaptive=True, family=10**9) == sample_block(10**9, 0.05, 0.05)


def test_on_a_ledger_adaptive_blocks_share_the_spend_E26() -> None:
    """Asked together, M blocks cost as one; one after another their noise is the text's, M times as wide."""
    together = min_n(20, 0.1, spend=Epsilon(0.01), method="split", population=True)
    after = min_n(20, 0.1, spend=Epsilon(0.01), method="split", population=True, adaptive=True)
    assert after > 10 * together


def test_with_the_papers_R_S0_21() -> None:
    """n^2 >= 16 T ln^2(T/delta_p) ln(q/delta)/((T - q) epsilon^2) sum 1/tau^2, almost flat in T from 2q on."""
    queries, tau = 50, 0.01

    def rows(asks: int) -> int:
        budget = SubLinear(epsilon=1, delta=1e-6, queries=asks, calibration="theorem1")
        found = min_n(queries, tau, spend=budget, paper=True)
        square = 16 * asks * math.log(asks / 1e-6) ** 2 * math.log(queries / 0.05) / (asks - queries) * queries / tau**2
        assert found == pytest.approx(math.sqrt(square), rel=1e-3)
        return found

    assert rows(400) / rows(100) == pytest.approx(1, abs=0.25)
    assert rows(51) > 4 * rows(100)


def test_a_plan_compares_the_ways() -> None:
    """The best way stands first; under SubLinear it also tells the best T, of which the owner has a say."""
    found = plan(12, TAU, spend=Epsilon(1), population=True)
    assert (found.method, found.rows) == ("joint", min_n(12, TAU, spend=Epsilon(1), population=True))
    assert dict(found.others)["split (paper)"] == pytest.approx(9.49e6, rel=1e-3)
    assert "joint: 231,9" in str(found)
    assert plan(12, TAU, spend=Epsilon(1), population=True, adaptive=True).method == "split"
    sulq_plan = plan(50, 0.01, spend=SULQ)
    assert sulq_plan.method == "repeated"
    assert sulq_plan.asks is not None
    best = SubLinear(epsilon=1, delta=1e-6, queries=sulq_plan.asks)
    assert min_n(50, 0.01, spend=best) <= sulq_plan.rows
    # With the exact calibration R is proportional to T: no T does better than q sums, asked once each.
    once = math.sqrt(2 * noise_for(best).variance * math.log(50 / 0.05)) / 0.01
    assert min_n(50, 0.01, spend=best) == pytest.approx(once, rel=1e-3)


@pytest.mark.parametrize(
    ("queries", "tau", "more"),
    [
        (0, 0.1, {}),
        (3, 0.0, {}),
        (3, 1.5, {}),
        (3, [0.1, 0.1], {}),
        (3, 0.1, {"beta": 1.0}),
        (3, 0.1, {"eta": 0.5}),
        (3, 0.1, {"method": "sideways"}),
        (3, 0.1, {"spend": SubLinear(epsilon=1, delta=1e-6, queries=2)}),
        (3, 0.1, {"spend": SULQ, "method": "split"}),
        (3, 0.1, {"spend": sulq.Queries(3)}),
        (3, 0.1, {"spend": Epsilon(1), "population": True, "adaptive": True}),
    ],
)
def test_numbers_that_make_no_sense_are_refused(queries: int, tau: object, more: dict[str, object]) -> None:
    """With the code of a parameter."""
    with pytest.raises(sulq.errors.QuestionError) as refusal:
        min_n(queries, tau, **more)
    assert refusal.value.code == "bad-parameter"
