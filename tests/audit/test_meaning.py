"""The report in plain words: computed from public books, and true of exact posteriors."""

from __future__ import annotations

import math
from fractions import Fraction

import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Int, Rho, SubLinear, Unit
from sulq.audit.beliefs import Tracker
from sulq.audit.meaning import Moved, allowed_chance, moved, report, sentences
from sulq.audit.pmf import noisy
from sulq.language import sublinear
from sulq.language.law import GaussianLaw, LaplaceLaw
from sulq.language.privacy import Queries
from sulq.language.sublinear import conf, inv_conf
from sulq.local import Collector, Respondent

TABLE = pa.table({"x": [0, 1, 1]})


def told(budget, unit: Unit, *spends) -> list[str]:
    with sulq.connect(TABLE, columns={"x": Int(0, 1)}, unit=unit, budget=budget) as db:
        for spend in spends:
            db.count(spend=spend, fresh=True, law="gaussian" if isinstance(spend, EpsilonDelta) else None)
        return report(db.facts)


@pytest.mark.parametrize("spend", [Rho(0.02), EpsilonDelta(0.5, 1e-7)], ids=str)
def test_answers_that_are_not_pure_may_fail_with_a_delta(spend: object) -> None:
    """The report rests on what is proved, not on what is left: it may fail with a delta. Control: pure."""
    unit = Unit(neighbors="replace_one")
    assert "except with probability" in told(EpsilonDelta(2, 1e-6), unit, spend)[0]
    assert "except with probability" not in told(EpsilonDelta(2, 1e-6), unit, Epsilon(0.5))[0]
    with sulq.connect(TABLE, columns={"x": Int(0, 1)}, unit=unit, budget=EpsilonDelta(2, 1e-6)) as db:
        db.count(spend=spend, law="gaussian")
        assert db.facts.proved.exact_delta > Fraction(9, 10**7)
        assert db.facts.proved.exact >= db.facts.spent.exact


@pytest.mark.parametrize("loss", [(20, 1e-6), (10, 1e-4), (5, 1e-2), (400, 1e-6), (1, 0.5)])
def test_a_chance_is_at_most_one_however_large_the_loss(loss: tuple[float, float]) -> None:
    """The delta of several steps may pass 1: then nothing is excluded. Control: a small loss excludes much."""
    assert 0.99 < allowed_chance(EpsilonDelta(*loss), 4) <= 1
    assert allowed_chance(EpsilonDelta(0.1, 1e-6), 2) < 0.56


def test_the_odds_move_by_the_factor_the_report_says() -> None:
    """Pure epsilon .5 in all, replace_one: factor e^.5 = 1.65; a half lies within 38% and 62%."""
    said = told(Epsilon(2), Unit(neighbors="replace_one"), Epsilon(0.2), Epsilon(0.3))
    assert (
        said[0] == "After these answers, the odds that a given row has any property moved by at most a factor of 1.65."
    )
    assert "50% before is 38% to 62% now" in said[1]
    assert any("group of 4" in line and "7.39" in line for line in said)
    assert "what taking part adds" in said[-1]


def test_where_people_come_and_go_a_property_is_two_steps_away() -> None:
    """add_remove at .5: a property e^1 = 2.72, taking part at all e^.5 = 1.65."""
    said = told(Epsilon(2), Unit(), Epsilon(0.5))
    assert "2.72" in said[0]
    assert any("took part at all" in line and "1.65" in line for line in said)


@pytest.mark.parametrize(("unit", "most"), [(Unit(), math.tanh(0.3)), (Unit(neighbors="replace_one"), math.tanh(0.15))])
def test_a_budget_that_tells_little_is_said_with_how_much_S4_3(unit: Unit, most: float) -> None:
    """S4.3: at epsilon .1 for 3 people, tanh(n epsilon/2) where people are exchanged; 2n steps where they come and go.

    For a budget that can tell much nothing is said.
    """
    for epsilon, said in ((0.1, f"apart by more than {most:.2g} "), (2, "")):
        with sulq.connect(TABLE, columns={"x": Int(0, 1)}, unit=unit, budget=Epsilon(epsilon), size=3) as db:
            small = [line for line in report(db.facts) if "small for 3 people" in line]
            assert [said in line for line in small] == ([True] if said else [])


def test_of_reports_it_is_what_each_of_them_lost_SR19() -> None:
    """After reports of epsilon 3 the odds may have moved by e^3 = 20.1, though questions cost nothing; before, by 1."""
    collector = Collector(2, epsilon=3, method="krr")
    assert "a factor of 1." in report(collector.facts)[0]
    collector.collect(Respondent(2, epsilon=3, method="krr").randomise([0, 1, 1]))
    collector.frequencies()
    said = report(collector.facts)
    assert (
        said[0] == "After these reports, the odds that a given row has any property moved by at most a factor of 20.1."
    )
    laws = [Respondent(2, epsilon=3, method="krr").pmf(value) for value in (0, 1)]
    assert math.exp(sulq.audit.exact_epsilon(laws)) == pytest.approx(moved(collector.facts.spent, Epsilon(3)).factor)


def test_an_analyst_is_told_of_its_own_answers_and_that_there_are_others_T79() -> None:
    """Two analysts at .5 and 1: each report says "your", counts its own, and bounds all by the budget."""
    with sulq.connect(TABLE, columns={"x": Int(0, 1)}, unit=Unit(neighbors="replace_one"), budget=Epsilon(2)) as db:
        curator = db["x"].oracle
        for name, spend in (("ann", 0.5), ("bob", 1)):
            curator.for_analyst(name).ask(sulq.Sums((sulq.lit(1),)), spend=Epsilon(spend))
        said = {name: report(curator.for_analyst(name).facts) for name in ("ann", "bob")}
        whole = report(curator.facts)
    assert said["ann"][0].startswith("After your answers, ")
    assert said["ann"][0].endswith("a factor of 1.65.")
    assert said["bob"][0].endswith("a factor of 2.72.")
    for lines in said.values():
        assert any("Answers to others are not counted" in line and "7.39" in line for line in lines)
    assert whole[0].startswith("After these answers, ")
    assert whole[0].endswith("a factor of 4.48.")
    assert not any("others" in line for line in whole[:-1])


def test_the_books_alone_say_the_same() -> None:
    """What a console shows of a ledger, where no data is open, is what the database says of itself."""
    with sulq.connect(TABLE, columns={"x": Int(0, 1)}, budget=EpsilonDelta(2, 1e-6)) as db:
        db.count(spend=Rho(0.01))
        facts = db.facts
        assert sentences(facts.unit, facts.budget, facts.proved) == report(facts)


def test_nothing_asked_moves_nothing() -> None:
    """Before the first answer the factor is 1, in every currency."""
    for budget in (Epsilon(1), Rho(1), EpsilonDelta(1, 1e-6), SubLinear(1, 1e-6, 10)):
        assert "a factor of 1." in told(budget, Unit())[0]


def test_every_exact_posterior_is_within_the_reported_factor() -> None:
    """Laplace noise: over all answers the odds move by the factor and no more, and reach it."""
    found = moved(Epsilon(0.7), Epsilon(2))
    largest = 0.0
    for answer in range(-30, 31):
        tracker = Tracker({0: 0.5, 1: 0.5}, lambda value: value == 1)
        tracker.hear_sum({0: 0, 1: 1}, LaplaceLaw(Fraction(10, 7)), answer)
        largest = max(largest, abs(tracker.confidence))
    assert math.exp(largest) == pytest.approx(found.factor)


@pytest.mark.parametrize("rho", [0.02, 0.5])
def test_trap_3_with_a_delta_the_odds_may_move_more_and_how_often_is_said(rho: float) -> None:
    """Trap 3: Gaussian noise of rho: the exact chance of a larger move is within what is said.

    Control: the chance of a move a quarter as far is not.
    """
    law = GaussianLaw(Fraction(math.sqrt(1 / (2 * rho))))
    found = moved(Rho(rho), Rho(1))
    laws = [noisy(law, count, -80, 81) for count in (0, 1)]

    def chance(factor: float) -> float:
        one = sum(laws[1][z] for z in laws[1] if laws[1][z] > factor * laws[0][z])
        other = sum(laws[1][z] for z in laws[1] if laws[0][z] > factor * laws[1][z])
        return one + other

    assert chance(found.factor) <= found.failing
    assert chance(math.exp(math.log(found.factor) / 4)) > found.failing
    assert 0 < found.failing < 1e-4


def test_approximate_and_sublinear_losses() -> None:
    """EpsilonDelta adds .1 and pays 2 delta/(1 - e^-.1); the policy's promise is its own; dp calibration is as DP."""
    found = moved(EpsilonDelta(1, 1e-6), EpsilonDelta(1, 1e-6))
    assert found.factor == pytest.approx(math.exp(1.1))
    assert found.failing == pytest.approx(2e-6 / -math.expm1(-0.1))
    policy = SubLinear(1, 1e-6, 100)
    assert moved(Queries(5), policy) == Moved(math.e, 2e-6)
    assert moved(Queries(5), SubLinear(1, 1e-6, 100, "laplace")).factor == pytest.approx(math.exp(0.05))
    assert moved(Queries(5), SubLinear(1, 1e-6, 100, "dp")).factor == pytest.approx(math.exp(1.1))
    assert moved(Queries(5), Epsilon(1)).failing == 1
    assert moved(Queries(5), policy, 2).factor == pytest.approx(math.exp(2.1))
    pure = moved(EpsilonDelta.total(Fraction(1, 2), Fraction(0)), EpsilonDelta(1, 1e-6))
    assert pure == Moved(pytest.approx(math.exp(0.5)), 0.0)
    assert "protects nobody" in told(Epsilon(500), Unit(), Epsilon(400))[0]


def test_probabilities_and_odds_agree() -> None:
    """A factor of f on the odds, from a probability to another and back."""
    low, high = Moved(2.0, 0.0).after(0.5)
    assert (low, high) == pytest.approx((1 / 3, 2 / 3))
    assert conf(high) - conf(0.5) == pytest.approx(math.log(2))
    assert inv_conf(conf(0.2)) == pytest.approx(0.2)
    assert sublinear.conf is conf
