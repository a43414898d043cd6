"""Tests of sulq.sql.released.questions."""

from __future__ import annotations

from fractions import Fraction

from sulq.answers.quantiles import Picked
from sulq.language.privacy import Epsilon
from sulq.language.question import WHOLE, Choose, Sums
from sulq.language.rowfn import Col
from sulq.sql.released.columns import RowGroups, SumCollector
from sulq.sql.released.program import Stat
from sulq.sql.released.questions import columns_of
from tests.sql.programs import database

AGE, INCOME = Col("age"), Col("income")
HALF = Fraction(1, 2)


def test_all_quantiles_of_a_value_share_one_tree():
    """More quantiles of the same value ask nothing more."""

    def questions(stats: list[Stat]) -> list[Sums]:
        asking = SumCollector(database().facts, Epsilon(1))
        columns_of(asking, RowGroups(WHOLE, None, (Col("city"),)), stats)
        return [question for question in asking.question().questions if isinstance(question, Sums)]

    one = questions([Stat("quantile_cont", (INCOME,), q=HALF)])
    many = [Stat("quantile_cont", (INCOME,), q=Fraction(i, 10)) for i in range(11)] + [Stat("min", (INCOME,))]
    assert len(questions(many)) == len(one)


def test_a_single_quantile_is_also_chosen_where_that_is_nearer():
    """Of a value with many bins one quantile is chosen too; not of few bins, several, extremes, nor SubLinear (SR4)."""
    ninth = Stat("quantile_disc", (INCOME,), q=Fraction(9, 10))
    asking = SumCollector(database().facts, Epsilon(1))
    (leaf,) = columns_of(asking, RowGroups(WHOLE, None, ()), [ninth])
    assert isinstance(leaf.reading, Picked)
    assert isinstance(asking.question().questions[-1], Choose)
    for rows, stats in (
        (RowGroups(WHOLE, None, ()), [Stat("quantile_disc", (AGE,), q=HALF)]),
        (RowGroups(WHOLE, None, ()), [ninth, Stat("max", (INCOME,))]),
        (RowGroups(WHOLE, None, (), alone=False), [ninth]),
        (RowGroups(WHOLE, None, ()), [Stat("quantile_cont", (INCOME,), q=Fraction(i, 20)) for i in range(1, 20)]),
    ):
        found = columns_of(SumCollector(database().facts, Epsilon(1)), rows, stats)
        assert not any(isinstance(leaf.reading, Picked) for leaf in found)
