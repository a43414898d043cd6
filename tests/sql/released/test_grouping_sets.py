"""Grouping sets: which are asked and which are added up, and groups in PostgreSQL's order."""

from __future__ import annotations

import datetime

import pytest

from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho
from sulq.language.question import OpenSums
from sulq.language.relation import Table
from sulq.language.rowfn import Bins, Col, OrMissing
from sulq.sql.released.columns import SumCollector
from sulq.sql.released.grouping_sets import adds, ascending, ask, sources
from sulq.sql.released.program import GroupStatistics, Stat
from tests.sql.programs import database

ROWS = Stat("rows")


def test_a_coarse_set_is_added_up_where_that_is_better_SR13():
    """OneOf groups are added up for nothing; very many are asked for themselves, at a share (SR13)."""
    rollup = [(0, 1), (0,), ()]
    assert sources(rollup, [3, 2], gaussian=False) == [0, 0, 0]
    assert sources(rollup, [300, 200], gaussian=False) == [0, 1, 2]
    assert sources([(0,), (1,)], [3, 2], gaussian=True) == [0, 1]
    assert sources([(), (0,), (0,)], [2], gaussian=True) == [1, 1, 1]
    assert sources([], [], gaussian=True) == []


def test_a_set_summed_from_another_asks_nothing_more():
    """Sums of a coarser set are read from the finer one; people are not, for nobody is counted twice."""
    asking = SumCollector(database().facts, Epsilon(1))
    keys = (Col("city"), Col("smoker"))
    ask(asking, GroupStatistics(Table(), None, keys, ((0, 1), (0,), ()), (ROWS,)))
    assert len(asking.question().questions) == 1
    assert adds(ROWS)
    assert not adds(Stat("persons"))
    assert not adds(Stat("count", (Col("age"),), distinct=True))


def test_keys_that_nobody_listed_are_open():
    """Whole numbers of too many values make open sums; a number that is not whole is no key."""
    facts = database().facts
    asking = SumCollector(facts, EpsilonDelta(1, 1e-6))
    wide = Col("age") * 100_000
    (found,) = ask(
        asking, GroupStatistics(Table(), None, (wide,), (), (ROWS, Stat("persons"), Stat("mean", (Col("age"),))))
    )
    assert found.groups is None
    assert isinstance(asking.question().questions[0], OpenSums)
    for key in (Col("income") / 3, Col("age") / 7):
        with pytest.raises(QuestionError):
            ask(SumCollector(facts, Rho(1)), GroupStatistics(Table(), None, (key,), (), (ROWS,)))
    for stat in (
        Stat("max", (Col("age"),)),
        Stat("count", (Col("age"),), distinct=True),
        Stat("persons", where=Col("smoker")),
    ):
        with pytest.raises(QuestionError) as refusal:
            ask(SumCollector(facts, Rho(1)), GroupStatistics(Table(), None, (wide,), (), (stat,)))
        assert refusal.value.code == "open-keys"


def test_labels_are_read_and_sorted():
    """Dates are dates, bins are intervals, and missing labels come last."""
    asking = SumCollector(database().facts, Epsilon(1))
    keys = (Col("visit"), OrMissing(Bins(Col("age"), (0, 60, 120))))
    (found,) = ask(asking, GroupStatistics(Table(), None, keys, (), (ROWS,)))
    rows = [labels for _, labels in found.rows([], 2)]
    assert rows[0] == (datetime.date(2020, 1, 1), "[0, 60)")
    assert rows[2] == (datetime.date(2020, 1, 1), None)
    assert len(rows) == 366 * 3
    assert sorted(["b", None, "a"], key=ascending) == ["a", "b", None]
    assert sorted([2, None, True, 0.5], key=ascending) == [0.5, True, 2, None]
