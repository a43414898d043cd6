"""Spend to noise: never less than the spend asks for, hardly more, and never none."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.answers.plan import Plan
from sulq.compile.plan import draw
from sulq.errors import QuestionError, SetupError
from sulq.kernel.mechanisms import cost_of, priced
from sulq.language.domain import Bool, Category, Int, Real, Schema
from sulq.language.law import BinomialLaw, GaussianLaw, LaplaceLaw
from sulq.language.privacy import NEIGHBORS, Epsilon, EpsilonDelta, Loss, Queries, Rho, SubLinear, Unit
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Bernstein, Col, Dot, Each, Lit, Lookup, Nearest, Outer, Vector, WithinBall
from sulq.language.tally import Tally
from tests.compile.plan.test_calibration_sensitivity import UNITS, every_row, people
from tests.stub import facts

SCHEMA = Schema.of("t", {"x": Int(0, 2), "y": Int(-1, 2), "f": Bool(), "city": Category(["a", "b"])})
PAIR = Vector((Col("x"), Col("y")), 2)
QUESTIONS = {
    "count": Sums((Lit(1),)),
    "sum": Sums((Col("y"),)),
    "histogram": Sums((Lit(1),), None, (Col("city"),)),
    "count and sum": Sums((Lit(1), Col("x"))),
    "count and sum by group": Sums((Lit(1), Col("y").fill(0)), Col("f"), (Col("city"),)),
    "perceptron": Sums((Lit(1), Vector((Col("y"), Col("y") * 2), 3)), Dot(PAIR, (1, -1)) > 0),
    "k-means": Sums((Lit(1), PAIR), None, (Nearest(PAIR, ((0, 0), (2, 2))),)),
    "covariance": Sums((Lit(1), PAIR, Outer(PAIR)), shares=(Fraction(1), Fraction(1), Fraction(2))),
    "uneven shares": Sums((Col("x"), Col("y")), shares=(Fraction(1, 100), Fraction(3))),
    "moments": Sums((Bernstein(Col("x"), 2),)),
    "ball": Sums((WithinBall(PAIR, 1),)),
    "table": Sums((Lookup((Col("city"), Each(Col("f"))), ((1, 0), (0.3, -2), (5, 5), (0, 0))),)),
    "nothing": Sums((Lit(0),)),
}
SPENDS: list[Loss] = [Epsilon(0.1), Epsilon(1), Epsilon(3), Rho(0.005), Rho(2), EpsilonDelta(1, 1e-6)]
BUDGET = EpsilonDelta(100, 1e-6)


def planned(question: Sums | Together, unit: Unit, spend: Loss | None, budget=BUDGET) -> Plan:
    return draw(question, facts(SCHEMA, unit, budget), spend)


def true_cost(plan: Plan, unit: Unit) -> float:
    """The exact loss of the noise planned, over all persons of the small table: |move|/scale, or move^2/2scale^2."""
    part = plan.parts[0]
    tally: Tally = part.tally
    scales = np.array(
        [float(law.scale) for law, b in zip(part.laws, tally.blocks, strict=True) for _ in range(b.width)]
    )
    kept = range(1, 2) if unit.rows == 1 and unit.neighbors == "replace_one" else range(unit.rows + 1)
    persons = people(tally, SCHEMA, every_row(SCHEMA), kept).astype(float)
    moves = persons[:, None] - persons[None] if unit.neighbors == "replace_one" else persons
    moves = np.abs(moves) / np.tile(scales, tally.cells)
    return float((moves if part.norm == "l1" else moves**2 / 2).sum(axis=-1).max())


def asked_for(spend: Loss) -> Fraction:
    return spend.rho if isinstance(spend, EpsilonDelta) else spend.exact


TIGHT = {"count", "sum", "histogram", "moments", "table"}


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.rows < 3], ids=str)
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_noise_costs_what_is_paid_and_no_more_T20(name, unit):
    """The exact loss over all persons, with the scales drawn, is within the spend; for boxes it uses it up (T20)."""
    for spend in SPENDS:
        plan = planned(QUESTIONS[name], unit, spend)
        cost, paid = true_cost(plan, unit), float(asked_for(spend))
        assert cost <= paid * (1 + 1e-12)
        if name in TIGHT and cost:  # n is public under replace_one with one row: that count cannot move at all
            assert cost >= paid * (1 - 1e-6)


def test_the_true_cost_notices_noise_that_is_too_small():
    """Control: with half the scale the same exact check finds twice the loss."""
    plan = planned(QUESTIONS["count and sum"], Unit(), Epsilon(1))
    halved = [LaplaceLaw(law.scale / 2) for law in plan.parts[0].laws]
    object.__setattr__(plan.parts[0], "laws", tuple(halved))
    assert true_cost(plan, Unit()) > 1.9


@settings(max_examples=60)
@given(
    st.sampled_from(list(QUESTIONS)),
    st.sampled_from(UNITS),
    st.fractions(Fraction(1, 10**6), 50),
    st.sampled_from([Epsilon, Rho]),
)
def test_the_samplers_own_price_is_within_the_spend_T8(name, unit, amount, kind):
    """Summed over the draws of the worst way, the price the samplers name never passes the spend (T8, STYLE 7)."""
    plan = planned(QUESTIONS[name], unit, kind(amount))
    event = plan.event
    assert (event.epsilon if kind is Epsilon else event.rho) == amount
    several = len(event.draws) > 1
    assert event.rho <= (amount**2 / 2 if kind is Epsilon else amount)
    assert (event.rho < amount**2 / 2) == several if kind is Epsilon else event.rho == amount
    assert event.epsilon is not None or kind is Rho
    for law, recorded in zip(plan.parts[0].laws, event.draws, strict=True):
        cost = cost_of(recorded)
        assert recorded.scale == law.scale
        assert recorded.sensitivity >= 1
        assert priced(law, recorded.sensitivity) == (cost.epsilon if kind is Epsilon else cost.rho) <= amount
    if len(event.draws) == 1:
        assert priced(plan.parts[0].laws[0], event.draws[0].sensitivity) >= amount * (1 - Fraction(1, 10**9))


def test_the_worst_way_is_tightened_as_a_whole():
    """A perceptron round under replace_one: the count's move and the sum's are not both largest in one way (X1)."""
    schema = Schema.of("t", {"s": Int(-1, 1), "f": Bool()})
    question = Sums((Lit(1), Col("s")), Col("f"))
    plan = draw(question, facts(schema, Unit("who", 1, "replace_one")), Epsilon(1))
    count, total = (float(law.scale) for law in plan.parts[0].laws)
    # single: 1/count + 1/total, pair: 0 + 2/total; evenly shared it would be 2 and 4.
    assert max(1 / count + 1 / total, 2 / total) == pytest.approx(1, rel=1e-9)
    assert count < 2
    assert total < 4


def test_shares_divide_the_loss_over_the_values():
    """Shares are proportions of epsilon, or of rho; evenly by default (S2.6)."""
    for spend, family in ((Epsilon(1), LaplaceLaw), (Rho(1), GaussianLaw)):
        for shares, parts in (((), (1, 1)), ((Fraction(1), Fraction(4)), (2, 8)), ((3, 3), (1, 1))):
            plan = planned(Sums((Lit(1), Lit(1)), shares=shares), Unit(), spend)
            assert {type(law) for law in plan.parts[0].laws} == {family}
            scales = [float(law.scale) for law in plan.parts[0].laws]
            costs = [1 / s if family is LaplaceLaw else 1 / (2 * s * s) for s in scales]
            assert costs == pytest.approx([p / sum(parts) for p in parts], rel=1e-9)


def test_heterogeneous_blocks_get_noise_in_their_own_units():
    """A count, an income and a share of one side by side: each block's noise follows its own range and grid."""
    schema = Schema.of("t", {"income": Real(0, 200_000), "part": Real(0, 1)})
    plan = draw(Sums((Lit(1), Col("income"), Col("part"))), facts(schema), Epsilon(0.3))
    wide = [float(law.scale * step) for law, step in zip(plan.parts[0].laws, plan.parts[0].steps, strict=True)]
    assert wide == pytest.approx([10, 2_000_000, 10], rel=1e-4)
    assert [float(s) for s in plan.parts[0].sensitivity] == pytest.approx([1, 200_000, 1], rel=1e-4)


def test_together_divides_one_spend_over_its_questions():
    """Questions asked together cost the spend once; their shares sum to no more than it (S2.6, SR3)."""
    questions = (QUESTIONS["count"], QUESTIONS["sum"], QUESTIONS["histogram"])
    for spend in (Epsilon(1), Rho(Fraction(1, 3)), EpsilonDelta(1, 1e-6)):
        for shares in ((), (1, 2, 7)):
            plan = planned(Together(questions, shares), Unit(), spend)
            costs = [priced(part.laws[0], d.sensitivity) for part, d in zip(plan.parts, plan.event.draws, strict=True)]
            assert sum(costs) <= asked_for(spend)
            assert float(sum(costs)) == pytest.approx(float(asked_for(spend)), rel=1e-6)
            weights = shares or (1, 1, 1)
            assert [float(c / sum(costs)) for c in costs] == pytest.approx(
                [w / sum(weights) for w in weights], rel=1e-6
            )
            assert plan.spend == spend
            assert len(plan.event.draws) == 3


@pytest.mark.parametrize("spend", [Epsilon(1e-15), Rho(Fraction(1, 10**15)), Epsilon(Fraction(1, 10**12))])
def test_a_spend_too_small_for_any_noise_is_refused_T8(spend):
    """Noise wider than the sampler holds is refused with a code, never drawn saturated (T8)."""
    schema = Schema.of("t", {"x": Real(-1, 1)})
    with pytest.raises(QuestionError) as refusal:
        draw(Sums((Col("x"),)), facts(schema, Unit("who", 10**6), BUDGET), spend)
    assert refusal.value.code == "too-little-noise"


@pytest.mark.parametrize("spend", [Epsilon(1000), Rho(1000)])
def test_the_largest_spend_still_buys_noise_T8(spend):
    """The largest epsilon or rho there is leaves a scale the sampler holds, and never the exact answer (T8)."""
    plan = planned(QUESTIONS["count"], Unit(), spend, budget=EpsilonDelta(1000, 1e-6))
    assert plan.parts[0].laws[0].scale >= Fraction(1, 1024)
    assert plan.parts[0].laws[0].scale == pytest.approx(1 / 1000 if isinstance(spend, Epsilon) else 1 / 2000**0.5)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), 1001, 1e-16, True, "1", None, Fraction(0)])
def test_a_spend_that_is_no_loss_is_refused_T51(bad):
    """Zero, negative, NaN, infinite, huge, tiny, boolean and textual spends are refused with a code (T51)."""
    for kind in (Epsilon, Rho):
        with pytest.raises(QuestionError) as refusal:
            planned(QUESTIONS["count"], Unit(), kind(bad))
        assert refusal.value.code == "bad-loss"


def test_spends_are_of_a_kind_the_budget_holds():
    """Epsilon budgets take Epsilon; Rho takes Rho and Epsilon; EpsilonDelta all three; else it is refused (SR3)."""
    spends = (Epsilon(1), Rho(1), EpsilonDelta(1, 1e-6), Queries(1))
    held = {
        Epsilon(10): [True, False, False, False],
        Rho(10): [True, True, False, False],
        EpsilonDelta(10, 1e-6): [True, True, True, False],
    }
    for budget, allowed in held.items():
        for spend, fits in zip(spends, allowed, strict=True):
            if fits:
                planned(QUESTIONS["count"], Unit(), spend, budget)
                continue
            with pytest.raises(QuestionError) as refusal:
                planned(QUESTIONS["count"], Unit(), spend, budget)
            assert refusal.value.code == "spend-kind"
        with pytest.raises(QuestionError) as refusal:
            planned(QUESTIONS["count"], Unit(), None, budget)
        assert refusal.value.code == "spend-missing"
        with pytest.raises(QuestionError) as refusal:
            planned(QUESTIONS["count"], Unit(), 1.0, budget)
        assert refusal.value.code == "bad-loss"


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_what_cannot_move_gets_noise_all_the_same_T19(unit):
    """A sum of sensitivity zero is noised for one unit and charged in full: nothing is free by declaration (T19)."""
    constant = Schema.of("t", {"x": Int(3, 3)})
    for question in (Sums((Lit(0),)), Sums((Col("x").fill(3),)), Sums((Col("x") - Col("x"),))):
        for spend in (Epsilon(0.5), Rho(0.5)):
            plan = draw(question, facts(constant, unit, BUDGET), spend)
            assert plan.spend == spend
            assert all(law.variance() > 0 for law in plan.parts[0].laws)
            assert all(record.sensitivity >= 1 for record in plan.event.draws)
            assert plan.event.rho > 0


BOUNDED = {"x": Int(0, 2), "r": Real(0, 1), "c": Category(["a"]), "f": Bool()}


@pytest.mark.parametrize("name", BOUNDED)
def test_without_its_declaration_a_column_cannot_be_asked_about_T12(name):
    """Each declaration deleted in turn: the question that needs it is refused before anything is drawn (T12)."""
    rest = {k: v for k, v in BOUNDED.items() if k != name}
    questions = [Sums((Col(name),)), Sums((Lit(1),), Col(name) == "a"), Sums((Lit(1),), None, (Col(name),))]
    for question in questions:
        with pytest.raises(QuestionError) as refusal:
            draw(question, facts(Schema.of("t", rest)), Epsilon(1))
        assert refusal.value.code == "unknown-column"


@pytest.mark.parametrize("field", ["lo", "hi"])
@pytest.mark.parametrize("bad", [None, float("nan"), float("inf"), "?"])
def test_a_bound_cannot_be_left_out_T12(field, bad):
    """A bound that is missing or no number is refused when it is declared: no plan ever sees it (T12)."""
    for kind in (Int, Real):
        with pytest.raises((SetupError, TypeError)):
            kind(**{"lo": 0, "hi": 1, field: bad})
        with pytest.raises(TypeError):
            kind(**{name: value for name, value in {"lo": 0, "hi": 1}.items() if name != field})


def test_an_expression_without_bounds_is_refused_T12():
    """1/x has no bounds over x in [0, 2]: refused with a remedy; clipped it is asked (T12, T11)."""
    for fn in (1 / Col("x"), Col("x") / Col("y"), (1 / Col("x")) * Col("f")):
        with pytest.raises(QuestionError) as refusal:
            planned(Sums((fn,)), Unit(), Epsilon(1))
        assert refusal.value.code == "unbounded"
        assert planned(Sums((fn.clip(0, 1),)), Unit(), Epsilon(1)).parts[0].sensitivity == (1,)


@pytest.mark.parametrize("calibration", ["posterior", "dp", "theorem1", "laplace"])
def test_sublinear_charges_queries_and_scales_noise_by_the_sensitivity_S0_5_S0_9(calibration):
    """Each scalar sum costs one query; a sum in [0, 4] gets four times the noise of one in [0, 1] (S0.5, S0.9, SR8)."""
    schema = Schema.of("t", {"one": Int(0, 1), "four": Int(0, 4), "city": Category(["a", "b", "c"])})
    budget = SubLinear(1, 1e-6, 100, calibration)
    for neighbors in NEIGHBORS:
        told = facts(schema, Unit("who", 1, neighbors), budget, size=1000)
        plan = draw(Sums((Col("one"), Col("four")), None, (Col("city"),)), told, None)
        assert plan.spend == Queries(6)
        assert plan.event.queries == 6
        assert plan.event.epsilon is None
        part = plan.parts[0]
        wide = [law.variance() ** 0.5 * float(step) for law, step in zip(part.laws, part.steps, strict=True)]
        assert wide[1] / wide[0] == pytest.approx(4, rel=1e-3)
        assert plan.guarantee == ("dp" if calibration == "dp" else "posterior")
        together = draw(Together((Sums((Lit(1),)), Sums((Lit(1), Col("one"))))), told, None)
        assert together.spend == Queries(3)
        assert draw(Sums((Lit(1),)), told, Queries(1)).spend == Queries(1)
        with pytest.raises(QuestionError) as refusal:
            draw(Sums((Lit(1),), None, (Col("city"),)), told, Queries(2))
        assert refusal.value.code == "too-costly"
        with pytest.raises(QuestionError) as refusal:
            draw(Sums((Lit(1),)), told, Epsilon(1))
        assert refusal.value.code == "spend-kind"


def test_trap_8_binomial_noise_is_for_counts_alone():
    """A real sum would show its fraction through coin noise: refused; a condition is answered (trap 8, S1.5)."""
    schema = Schema.of("t", {"x": Real(0, 1), "n": Int(0, 2), "f": Bool()})
    told = facts(schema, Unit("who", 1, "replace_one"), SubLinear(1, 0.01, 5, "binomial"), size=10_000)
    for fn in (Col("x"), Col("n")):
        with pytest.raises(QuestionError) as refusal:
            draw(Sums((fn,)), told, None)
        assert refusal.value.code == "boolean-only"
    plan = draw(Sums((Col("f"),)), told, None)
    assert isinstance(plan.parts[0].laws[0], BinomialLaw)
    assert plan.parts[0].steps == (1,)


def test_a_plan_says_whom_it_protects_and_in_what_sense_T93():
    """The printed plan names the price, the unit and relation, the sensitivity, the law and the width (T93)."""
    text = str(planned(QUESTIONS["histogram"], Unit("who", 2, "replace_one"), Epsilon(0.5)))
    for word in (
        "epsilon 0.5",
        "who",
        "2 rows",
        "replace_one",
        "dp",
        "2 cells",
        "l1 sensitivity 4",
        "LaplaceLaw",
        "95%",
    ):
        assert word in text
    assert math.isfinite(float(planned(QUESTIONS["sum"], Unit(), Rho(1)).accuracy()[0][0]))
