"""Plans of choices: sensitivity by brute force over persons, prices, refusals (SR1, SR4, SR5, SR13)."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest

from sulq import (
    Category,
    Choose,
    Contrast,
    Diagonal,
    Distance,
    Epsilon,
    EpsilonDelta,
    Int,
    Linear,
    NegAbs,
    NegL1,
    NegMaxAbs,
    Rank,
    Rho,
    SubLinear,
    Sums,
    Unit,
    col,
)
from sulq.answers.plan import Plan
from sulq.compile.plan import draw
from sulq.errors import QuestionError
from sulq.kernel.mechanisms import cost_of
from sulq.kernel.scores import scores
from sulq.language.domain import Schema
from sulq.language.facts import Facts
from sulq.language.law import ExponentialLaw, FlipLaw
from sulq.language.question import Together
from sulq.language.rowfn import Each, Lit
from sulq.language.score import form
from tests.counts import count

SCHEMA = Schema.of("t", {"x": Int(0, 2), "g": Category(["a", "b"]), "w": Int(-1, 2)})
BUDGET = EpsilonDelta(100, 1e-6)
BY_X = Sums((Lit(1),), None, (Each(col("x")),))
BY_G = Sums((Lit(1),), None, (col("g"), Each(col("x"))))
WEIGHED = Sums((col("w"),), None, (col("g"), Each(col("x"))))
SCORES = [Rank(1, 2), Rank(1, 4), Linear(((1, 0, 0), (0, 1, 0), (0, 0, 1))), NegAbs(((1, -1, 0), (0, 2, 1)))]
SCORES += [Diagonal((1, 1, 1)), Diagonal((2, -3, 1)), Diagonal((1, -2, 1), folded=True)]
AIMED = [
    NegMaxAbs(((1, 1, 0), (0, 1, 1)), ((2, 1), (0, 5))),
    NegMaxAbs(((4, 4, 0), (0, 4, 4)), ((3, 1), (0, 4)), (1, 1, 1)),
    NegL1(((1, 1, 0), (0, 1, 1)), ((2, 1), (0, 5))),
    NegL1(((4, 4, 0), (0, 4, 4)), ((3, 1), (0, 4)), (1, 1, 1)),
    Distance(((2, 3), (4,)), (1, 2), (0, 3)),
]
CONTRAST = Contrast((((1, -1, 0), (0, 3, -2)), ((2, 1, 1), (-3, 0, 1))))


def planned(question: object, unit: Unit, spend: object, budget: object = BUDGET) -> Plan:
    return draw(question, Facts(SCHEMA, unit, budget, budget, budget), spend)


def tally(question: Sums, rows: tuple[tuple[int, int, int], ...]) -> np.ndarray:
    """Exact sums of rows (x, g, w): shape (choices, 3, 1)."""
    outer = len(question.by) - 1
    table = np.zeros((2 if outer else 1, 3, 1), dtype=np.int64)
    for x, g, w in rows:
        table[g if outer else 0, x, 0] += 1 if isinstance(question.values[0], Lit) else w
    return table


@functools.lru_cache(maxsize=256)  # each table of a question is compared with many others
def scored(question: Choose, rows: tuple[tuple[int, int, int], ...]) -> np.ndarray:
    """The exact scores over rows."""
    return scores(form(question.score), tally(question.counts, rows))


def moved(question: Choose, before: tuple, after: tuple) -> np.ndarray:
    """The span by which the scores of each choice move."""
    gap = scored(question, after) - scored(question, before)
    return np.maximum(gap.max(axis=1), 0) - np.minimum(gap.min(axis=1), 0)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one", "zero_out"])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("counts", [BY_X, BY_G, WEIGHED], ids=["x", "g and x", "weighed"])
@pytest.mark.parametrize("score", [*SCORES, *AIMED, CONTRAST], ids=str)
def test_no_person_moves_the_scores_farther_than_planned_SR1(score, counts, k, neighbors) -> None:
    """All persons of up to k rows, put in, taken out or exchanged, beside all others' tables of a sample (SR1, SR13).

    Control: a person of one row more than is kept passes the plan's sensitivity.
    """
    if isinstance(score, Contrast):  # as many matrices as there are choices
        score = Contrast(score.weights[: len(counts.by)])
    question = Choose(counts, score)
    unit = Unit("pid", k, neighbors)
    l1 = planned(question, unit, Epsilon(1)).event.draws[0].sensitivity
    l2 = planned(question, unit, Rho(1)).event.draws[0].sensitivity
    rng = np.random.default_rng(11)
    kinds = [(x, g, w) for x in range(3) for g in range(2) for w in (-1, 0, 2)]
    persons = [p for size in range(k + 1) for p in itertools.combinations_with_replacement(kinds, size)]
    extreme = [((x, g, 2),) * k for x in range(3) for g in range(2)]
    persons = [persons[i] for i in rng.permutation(len(persons))[:40]] + extreme
    pairs = list(itertools.product(persons, repeat=2))
    some = rng.permutation(len(pairs))[: count("pairs of persons exchanged in a choice", short=100, long=len(pairs))]
    exchanged = [*(pairs[i] for i in some), *itertools.product(extreme, repeat=2)]
    widest = [Fraction(0), Fraction(0)]
    for _ in range(count("tables beside which persons are exchanged", short=2, long=4)):
        others = tuple(kinds[i] for i in rng.integers(0, len(kinds), int(rng.integers(0, 12))))
        for out, come in exchanged if neighbors == "replace_one" else [((), p) for p in persons]:
            spans = moved(question, (*others, *out), (*others, *come))
            widest = [max(widest[0], Fraction(int(spans.sum()))), max(widest[1], Fraction(int((spans**2).sum())))]
    assert widest[0] <= l1
    assert widest[1] <= l2
    if neighbors == "add_remove" and isinstance(score, (Rank, Linear)):
        assert widest[0] > l1 * Fraction(k - 1, k)
        twice = planned(question, Unit("pid", 2 * k, neighbors), Epsilon(1)).event.draws[0].sensitivity
        assert twice == 2 * l1


def test_the_sensitivity_of_a_median_S3_9() -> None:
    """A median's ranks span 2 a row, and 4 where a row is exchanged; k rows k times that; monotone counts 1 (S3.9)."""
    median, most = Rank(1, 2), Linear(((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    for score, unit, expected in (
        (median, Unit(), 2),
        (median, Unit("pid", 5), 10),
        (median, Unit("pid", 5, "replace_one"), 20),
        (median, Unit(None, 1, "replace_one"), 4),
        (median, Unit("pid", 5, "zero_out"), 10),
        (most, Unit(), 1),
        (most, Unit(None, 1, "replace_one"), 2),
        (Rank(9, 10), Unit(), 18),
    ):
        plan = planned(Choose(BY_X, score), unit, Epsilon(Fraction(1, 2)))
        assert plan.parts[0].laws == (FlipLaw(Fraction(2 * expected), 3),)
        assert plan.event.draws[0].sensitivity == expected
    apart = planned(Choose(BY_G, median), Unit("pid", 5, "replace_one"), Rho(1)).event.draws[0]
    assert apart.sensitivity == 20**2  # all five rows exchanged in one choice; five and five in two choices: 2 * 10^2


@pytest.mark.parametrize(
    ("spend", "law", "norm"),
    [(Epsilon(0.5), FlipLaw, "l1"), (Rho(0.02), ExponentialLaw, "l2"), (EpsilonDelta(0.5, 1e-6), ExponentialLaw, "l2")],
)
def test_the_spend_chooses_the_mechanism_SR4(spend: object, law: type, norm: str) -> None:
    """Pure: permute-and-flip, rho = epsilon^2/2; else the exponential mechanism, rho = epsilon^2/8 (SR4)."""
    plan = planned(Choose(BY_G, Rank(1, 2)), Unit("pid", 3), spend)
    (draw_,) = plan.event.draws
    assert isinstance(plan.parts[0].laws[0], law)
    assert (draw_.norm, draw_.cells, plan.parts[0].cells) == (norm, 2, 2)
    cost = cost_of(draw_)
    if norm == "l1":
        assert plan.event.epsilon == Fraction(1, 2) >= cost.epsilon > Fraction(49, 100)
        assert plan.event.rho == plan.event.epsilon**2 / 2 >= cost.rho
    else:
        assert plan.event.epsilon is None
        assert plan.event.rho >= cost.rho > plan.event.rho * Fraction(99, 100)


def test_a_sublinear_budget_refuses_choices_SR8() -> None:
    """A choice is no noisy sum, alone or beside sums."""
    budget = SubLinear(1, 1e-6, 100)
    for question in (Choose(BY_X, Rank(1, 2)), Together((BY_X, Choose(BY_X, Rank(1, 2))))):
        with pytest.raises(QuestionError) as refused:
            planned(question, Unit(), None, budget)
        assert refused.value.code == "not-a-noisy-sum"


def test_a_choice_is_one_of_several_questions() -> None:
    """Together divides the spend over sums and choices; each is priced at its share."""
    plan = planned(Together((BY_X, Choose(BY_X, Rank(1, 2))), (Fraction(1), Fraction(3))), Unit(), Epsilon(1))
    assert plan.parts[0].laws[0].scale == 4
    assert (
        plan.parts[1].laws[0].scale == Fraction(8, 3).limit_denominator(3)
        or abs(plan.parts[1].laws[0].scale - Fraction(8, 3)) < 1e-9
    )
    assert "choices" in str(plan)
    assert "of the best" in str(plan)


def test_what_cannot_be_chosen_is_refused() -> None:
    """No key, no score of the list, a matrix that does not fit, a rank of two counts."""
    for make in (
        lambda: Choose(Sums((Lit(1),)), Rank(1, 2)),
        lambda: Choose(BY_X, max),
        lambda: Choose(Choose, Rank(1, 2)),
    ):
        with pytest.raises(QuestionError) as refused:
            make()
        assert refused.value.code == "bad-question"
    for question in (
        Choose(BY_X, Linear(((1, 2),))),
        Choose(Sums((Lit(1), Lit(1)), None, (Each(col("x")),)), Rank(1, 2)),
    ):
        with pytest.raises(QuestionError) as refused:
            planned(question, Unit(), Epsilon(1))
        assert refused.value.code == "bad-question"


def test_scores_nobody_moves_are_drawn_like_any_other_T19() -> None:
    """A matrix of zeros has sensitivity nought and is noised for one (T8, T19)."""
    plan = planned(Choose(BY_X, Linear(((0, 0, 0), (0, 0, 0)))), Unit(), Epsilon(1))
    assert plan.parts[0].laws[0] == FlipLaw(Fraction(1), 2)
    assert plan.event.draws[0].sensitivity == 1
