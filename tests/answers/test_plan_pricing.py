"""Prices: exact for sums and counts, sufficient for means, never read off a row."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sulq.answers.plan import affordable, price_of_mean, price_of_sums, probe
from sulq.answers.readings.estimators import CentredMean, Mean
from sulq.answers.released import Noise, Released
from sulq.api.questions import COUNT_SHARE
from sulq.compile.plan import draw
from sulq.errors import QuestionError
from sulq.language.domain import Category, Int, Real, Schema
from sulq.language.privacy import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Bernstein, Col, Lit, Vector
from tests.stub import facts, noise

SCHEMA = Schema.of("t", {"x": Int(0, 7), "r": Real(0, 200_000), "c": Category(["a", "b"])})
UNITS = [Unit(), Unit("who", 5), Unit("who", 3, "replace_one"), Unit(None, 1, "zero_out")]
BUDGET = EpsilonDelta(900, 1e-6)
QUESTIONS = [
    Sums((Lit(1),)),
    Sums((Col("x"),), None, (Col("c"),)),
    Sums((Col("r"),)),
    Sums((Lit(1), Col("x")), Col("x") > 1, (), (1, 3)),
    Sums((Vector((Col("x"), Col("x"))),)),
    Together((Sums((Lit(1),)), Sums((Col("x"),)))),
]


def width(question, unit, spend, beta) -> Fraction:
    plan = draw(question, facts(SCHEMA, unit, BUDGET), spend)
    return max(alpha for part in plan.accuracy(beta) for alpha in part)


def one_less(price):
    """The next lower price of six digits."""
    grain = Fraction(10) ** (math.floor(math.log10(price.exact)) - 5)
    lower = price.exact - grain
    if lower < Fraction(10) ** math.floor(math.log10(price.exact)):
        lower = price.exact - grain / 10
    return type(price)(lower)


@settings(max_examples=60)
@given(
    st.sampled_from(QUESTIONS),
    st.sampled_from(UNITS),
    st.sampled_from([Epsilon(1), Rho(1)]),
    st.floats(3, 1e5),
    st.sampled_from([0.3, 0.05, 1e-6]),
)
def test_the_price_of_a_sum_is_exact_SR7(question, unit, probing, within, beta):
    """At the price every sum is within the width; at the next lower price of six digits one is not (SR7)."""
    plan = draw(question, facts(SCHEMA, unit, BUDGET), probing)
    if width(question, unit, type(probing)(1000), beta) > within:
        with pytest.raises(QuestionError):
            price_of_sums(plan, within, beta)
        return
    price = price_of_sums(plan, within, beta)
    assert type(price) is type(probing)
    assert len(str(float(price.exact)).replace(".", "").strip("0").partition("e")[0]) <= 6
    assert width(question, unit, price, beta) <= Fraction(str(within))
    assert width(question, unit, one_less(price), beta) > Fraction(str(within)) * (1 - Fraction(1, 10**6))


def test_a_price_does_not_depend_on_the_probe_SR7():
    """Scales are inverse to epsilon and to the root of rho: any probe gives the same price to six digits."""
    question = Sums((Lit(1), Col("x")))
    for probes in ((Epsilon(1), Epsilon(3)), (Rho(1), Rho(5))):
        prices = [price_of_sums(draw(question, facts(SCHEMA, Unit(), BUDGET), p), 50, 0.05) for p in probes]
        scaled = [price.exact * (p.exact if i else 1) for i, (price, p) in enumerate(zip(prices, probes, strict=True))]
        assert float(scaled[0]) == pytest.approx(float(scaled[1]), rel=1e-5)


def test_a_width_below_one_unit_and_a_width_past_all_noise():
    """Too narrow a width is too costly; the widest costs the least there is, not less."""
    plan = draw(Sums((Lit(1),)), facts(SCHEMA, Unit(), BUDGET), Epsilon(1))
    assert price_of_sums(plan, 1e50, 0.05).exact >= Fraction(1, 10**15)
    gaussian = draw(Sums((Lit(1),)), facts(SCHEMA, Unit(), BUDGET), Rho(1))
    assert price_of_sums(gaussian, 1e12, 0.05) == Rho(Fraction(1, 10**15))
    assert float(price_of_sums(plan, 0.5, 0.05).exact) == pytest.approx(math.log(2 / 0.05), rel=0.1)
    with pytest.raises(QuestionError) as refusal:
        price_of_sums(plan, 0.5, 1e-300)
    assert refusal.value.code == "too-costly"
    for bad in (0, -1, float("nan"), float("inf"), True, "5", None):
        with pytest.raises(QuestionError) as refusal:
            price_of_sums(plan, bad, 0.05)
        assert refusal.value.code == "bad-loss"


def test_noise_that_is_fixed_has_no_price():
    """Under a binomial SubLinear budget the width cannot be bought."""
    told = facts(SCHEMA, Unit("who", 1, "replace_one"), SubLinear(1, 0.01, 5, "binomial"), size=10_000)
    plan = draw(Sums((Col("x") > 1,)), told, None)
    with pytest.raises(QuestionError) as refusal:
        price_of_sums(plan, 100, 0.05)
    assert refusal.value.code == "bad-question"


def test_the_kind_of_a_price_follows_what_would_be_paid():
    """at_most's kind, else the budget's own."""
    assert probe(Epsilon(5), None) == Epsilon(1)
    assert probe(Rho(5), None) == Rho(1)
    assert probe(EpsilonDelta(5, 1e-6), None) == Epsilon(1)
    assert probe(EpsilonDelta(5, 1e-6), Rho(1)) == Rho(1)
    assert probe(EpsilonDelta(5, 1e-6), EpsilonDelta(1, 1e-6)) == Rho(1)
    assert probe(Rho(5), Epsilon(1)) == Epsilon(1)


def test_at_most_caps_the_price():
    """More than at_most is refused before anything is paid; a cap of another kind is refused as such (SR7)."""
    known = facts(SCHEMA, Unit(), BUDGET)
    assert affordable(Epsilon(1), None, known) == Epsilon(1)
    assert affordable(Epsilon(1), Epsilon(1), known) == Epsilon(1)
    assert affordable(Epsilon(1), EpsilonDelta(1, 1e-6), known) == Epsilon(1)
    assert affordable(Rho(Fraction(1, 100)), EpsilonDelta(1, 1e-6), known) == Rho(Fraction(1, 100))
    for price, cap, code in (
        (Epsilon(1.000001), Epsilon(1), "too-costly"),
        (Rho(1), EpsilonDelta(1, 1e-6), "too-costly"),
        (Epsilon(1.000001), EpsilonDelta(1, 1e-6), "too-costly"),
        (Epsilon(1), Rho(5), "spend-kind"),
        (Rho(1), Epsilon(5), "spend-kind"),
        (Epsilon(1), Queries(5), "spend-kind"),
    ):
        with pytest.raises(QuestionError) as refusal:
            affordable(price, cap, known)
        assert refusal.value.code == code


def mean_question(kind) -> Sums:
    if kind is Epsilon:
        return Sums((Bernstein(Col("r")),))
    return Sums((Lit(1), Col("r") - 100_000.0), shares=COUNT_SHARE)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("kind", [Epsilon, Rho])
@pytest.mark.parametrize("spot", [0.0, 0.4])
def test_the_price_of_a_mean_buys_its_width_SR7(unit, kind, spot):
    """With `count` values the accuracy is within the width in 1 - beta of the runs; for a third of it not (SR7)."""
    rng = np.random.default_rng(8)
    runs, beta, count, within = 4000, 0.05, 2000, 3000.0
    question = mean_question(kind)
    told = facts(SCHEMA, unit, BUDGET)
    spread = Fraction(200_000)
    price = price_of_mean(draw(question, told, kind(1)), spread, within, beta, count)
    missed = []
    for spend in (price, kind(price.exact / 3)):
        part = draw(question, told, spend).parts[0]
        laws = [law for law, block in zip(part.laws, part.tally.blocks, strict=True) for _ in range(block.width)]
        steps = [step for step, block in zip(part.steps, part.tally.blocks, strict=True) for _ in range(block.width)]
        mass = count * 200_000
        sums = [spot * mass, (1 - spot) * mass] if kind is Epsilon else [count, (spot - 0.5) * mass]
        columns = [
            round(total / float(s)) + noise(law, rng, (runs,)) for total, s, law in zip(sums, steps, laws, strict=True)
        ]
        noises = tuple(
            Noise(law, s, b.width) for law, s, b in zip(part.laws, part.steps, part.tally.blocks, strict=True)
        )
        released = Released(np.stack(columns, axis=1), noises)
        reading = Mean(Fraction(0), spread) if kind is Epsilon else CentredMean(Fraction(0), spread, spread / 2)
        low, high = reading.interval(released, beta)
        value = reading.value(released)
        alpha = np.maximum(high - value, value - low)[:, 0]
        missed.append(int((alpha > within).sum()))
    assert missed[0] <= stats.binom.ppf(1 - 1e-7, runs, beta)
    assert missed[1] > stats.binom.ppf(1 - 1e-7, runs, beta)


def test_a_mean_of_too_few_values_has_no_price():
    """With no values surely there no spend is enough."""
    plan = draw(mean_question(Epsilon), facts(SCHEMA, Unit(), BUDGET), Epsilon(1))
    for count in (0, -5):
        with pytest.raises(QuestionError) as refusal:
            price_of_mean(plan, Fraction(200_000), 10.0, 0.05, count)
        assert refusal.value.code == "too-costly"
