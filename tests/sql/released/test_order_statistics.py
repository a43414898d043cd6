"""Tests of sulq.sql.released.order_statistics."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.answers.plan import Plan
from sulq.answers.readings.quantiles import Picked, Quantile
from sulq.answers.readings.rank_choice import ChosenExtreme, ChosenQuantile, CountedFirst
from sulq.compile.plan import draw
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Rho
from sulq.language.question import WHOLE, Choose, Question, Sums
from sulq.language.rowfn import Col
from sulq.sql.released.columns import RowGroups, StatColumn, SumCollector, collect
from sulq.sql.released.program import Stat
from sulq.sql.released.questions import columns_of
from tests.sql.programs import database

AGE, INCOME = Col("age"), Col("income")
HALF = Fraction(1, 2)
MIDDLE = Stat("quantile_disc", (INCOME,), q=HALF)
ALL, BY_CITY = RowGroups(WHOLE, None, ()), RowGroups(WHOLE, None, (Col("city"),))


def laid_out(
    stats: list[Stat], rows: RowGroups = ALL, spend: Loss | None = None, *, interval: bool = True
) -> tuple[tuple[Question, ...], tuple[Fraction, ...], list[StatColumn]]:
    facts = database().facts
    question, columns = collect(
        facts, spend or Epsilon(1), lambda asking: columns_of(asking, rows, stats), foresee, interval=interval
    )
    whole = sum(question.shares)
    return question.questions, tuple(share / whole for share in question.shares), columns


def foresee(question: Question, spend: Loss | None) -> Plan:
    return draw(question, database().facts, spend)


def quantiles(number: int) -> list[Stat]:
    return [Stat("quantile_cont", (INCOME,), q=Fraction(i, number + 1)) for i in range(1, number + 1)]


def test_many_quantiles_of_a_value_share_one_tree():
    """More quantiles of the same value ask nothing more; extremes beside them are chosen."""
    many, _, columns = laid_out(quantiles(19))
    assert all(isinstance(question, Sums) for question in many)
    assert {type(column.reading) for column in columns} == {Quantile}
    more, _, _ = laid_out(quantiles(29))
    assert len(more) == len(many)
    beside, _, _ = laid_out([*quantiles(19), Stat("min", (INCOME,))])
    assert sum(isinstance(question, Choose) for question in beside) == 2


def test_a_single_quantile_is_chosen_with_all_of_the_spend_or_beside_its_ends():
    """Without an interval one choice has all of it; with one three quarters, and two shifted ranks an eighth each."""
    questions, _, (column,) = laid_out([MIDDLE], interval=False)
    assert [question.score.shift for question in questions] == [-1]
    assert isinstance(column.reading, ChosenQuantile)
    assert column.reading.gap is None
    questions, shares, (column,) = laid_out([MIDDLE])
    assert all(isinstance(question, Choose) for question in questions)
    assert shares == (Fraction(3, 4), Fraction(1, 8), Fraction(1, 8))
    gap = column.reading.gap
    assert gap > 100
    assert [question.score.shift for question in questions] == [-1, -1 - gap, -1 + gap]


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(Fraction(1, 10)), EpsilonDelta(1, 1e-7)], ids=str)
def test_the_shift_of_an_end_is_what_its_law_needs(spend):
    """The gap is the least at which both ends hold at 99%, by the law that the plan gives; one less would not do."""
    db = database()
    questions, _, (column,) = laid_out([MIDDLE], spend=spend)
    question, _ = collect(db.facts, spend, lambda asking: columns_of(asking, ALL, [MIDDLE]), foresee)
    plan = draw(question, db.facts, spend)
    law = plan.parts[column.slices[1].question].laws[0]
    gap = column.reading.gap
    assert law.tail(gap - 1) <= 0.005 < law.tail(gap - 2)
    assert len(questions) == 3


def test_two_or_three_quantiles_are_chosen_beside_one_tree_for_their_intervals():
    """Several choices, and a tree that all intervals are read from; without intervals choices alone."""
    for number in (2, 3):
        questions, shares, columns = laid_out(quantiles(number))
        assert all(isinstance(column.reading, Picked) for column in columns)
        chosen = [share for question, share in zip(questions, shares, strict=True) if isinstance(question, Choose)]
        assert chosen == [Fraction(3, 4) / number] * number
        questions, _, columns = laid_out(quantiles(number), interval=False)
        assert len(questions) == number


def test_extremes_are_chosen_at_their_own_rank_and_inside():
    """Quantiles 0 and 1 are the minimum and maximum: one choice, and for an interval one more, shifted inside."""
    for name, q, sign in (("min", None, 1), ("quantile_disc", Fraction(0), 1), ("max", None, -1)):
        questions, _, (column,) = laid_out([Stat(name, (INCOME,), q=q)])
        assert isinstance(column.reading, ChosenExtreme)
        assert [question.score.shift for question in questions] == [0, sign * column.reading.gap]
        questions, _, _ = laid_out([Stat(name, (INCOME,), q=q)], interval=False)
        assert [question.score.shift for question in questions] == [0]


def test_groups_have_a_count_of_their_own_SR18():
    """A tenth of the spend of a group's chosen quantiles counts its values."""
    questions, shares, (column,) = laid_out([MIDDLE], BY_CITY)
    assert isinstance(column.reading, CountedFirst)
    assert isinstance(questions[0], Sums)
    assert shares[0] == Fraction(1, 10)


def test_nothing_is_chosen_where_that_is_no_nearer():
    """Not where coarser groups are added up from these, nor for so large a spend that whole counts are known."""
    for rows, spend in ((RowGroups(WHOLE, None, (), alone=False), Epsilon(1)), (ALL, Epsilon(800))):
        questions, _, columns = laid_out([MIDDLE, Stat("max", (AGE,))], rows, spend)
        assert all(isinstance(question, Sums) for question in questions)
        assert {type(column.reading) for column in columns} == {Quantile}
    asking = SumCollector(database().facts, None)
    assert isinstance(columns_of(asking, ALL, [MIDDLE])[0].reading, Quantile)


def test_a_float_that_stands_for_a_simple_fraction_is_that():
    """A third in sixteen digits asks what 1/3 does."""
    for text, q in (("0.3333333333333333", Fraction(1, 3)), ("0.6666666666666666", Fraction(2, 3))):
        for how in ("quantile_disc", "quantile_cont"):
            given, simple = (laid_out([Stat(how, (INCOME,), q=one)])[0] for one in (Fraction(text), q))
            assert [one.score for one in given if isinstance(one, Choose)] == [
                one.score for one in simple if isinstance(one, Choose)
            ]


MANY_DIGITS = (0.4723456, 0.5000051, *np.random.default_rng(5).uniform(0.45, 0.58, 6).tolist())


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(Fraction(1, 10))], ids=str)
@pytest.mark.parametrize("number", MANY_DIGITS)
def test_a_fraction_of_many_digits_is_rounded_outward(number, spend):
    """Its ends are those of ranks that are no nearer, in units alike; at the level they are bought for they hold."""
    q, facts = Fraction(repr(number)), database().facts
    stat = Stat("quantile_disc", (INCOME,), q=q)
    question, (column,) = collect(facts, spend, lambda asking: columns_of(asking, ALL, [stat]), foresee)
    ranks = [question.questions[part.question].score for part in column.slices]
    centre, low, high = (Fraction(rank.numerator, rank.denominator) for rank in ranks)
    assert len({rank.denominator for rank in ranks}) == 1
    assert low <= q <= high
    assert max(abs(end - q) for end in (centre, low, high)) < Fraction(1, 10**5)
    plan, gap = draw(question, facts, spend), column.reading.gap
    tails = [plan.parts[part.question].laws[0].tail(gap - 1) for part in column.slices[1:]]
    assert sum(tails) <= 0.01
