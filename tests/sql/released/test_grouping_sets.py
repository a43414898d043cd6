"""Grouping sets: which are asked and which are added up, and groups in PostgreSQL's order."""

from __future__ import annotations

import datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq.api.database import Database
from sulq.errors import QuestionError
from sulq.language.law import PassedGaussianLaw, PassedLaplaceLaw
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


def test_what_is_worked_out_group_by_group_has_fewer_of_them_T74():
    """An expression of a statistic costs Python each group, and explaining is free. Control: the statistic itself."""
    for sql in (
        "SELECT k, COUNT(*) * 2 FROM data GROUP BY k",
        "SELECT k, COUNT(*) AS n FROM data GROUP BY k HAVING COUNT(*) > 1",
        "SELECT DISTINCT COUNT(*) FROM data GROUP BY k",
        "SELECT MAX(n) FROM (SELECT k, COUNT(*) AS n FROM data GROUP BY k) AS each",
    ):
        for paid in ({"spend": Epsilon(1)}, {"spend": Rho(1)}, {"within": 10}):
            with pytest.raises(QuestionError, match=r"computes with the statistics .* 65,536 groups; .*,001") as why:
                wide(f"EXPLAIN {sql}", **paid)
            assert (why.value.code, "in a frame" in str(why.value)) == ("too-large", True)
    with pytest.raises(QuestionError, match="over several grouping sets has at most 65,536 groups") as why:
        wide("SELECT k, COUNT(*) AS n FROM data GROUP BY ROLLUP (k)", Epsilon(1))
    assert wide("SELECT k, COUNT(*) * 2 FROM data GROUP BY k", EpsilonDelta(1, 1e-6)).table.size < 10
    assert wide("SELECT k + 1 AS next, COUNT(*) FROM data GROUP BY k ORDER BY 2, k", Epsilon(9)).table.size == 100_001


def wide(text: str, spend: object = None, within: float | None = None, **more: object) -> object:
    """An answer over a column of 100,000 whole numbers, some of them missing."""
    rows = pa.table({"k": [7, 7, None, 99_999, *range(50, 90)], "g": [True] * 44})
    columns = {"k": sulq.Int(0, 99_999, **more), "g": sulq.Bool(missing=False)}
    with sulq.connect(rows, columns=columns, budget=EpsilonDelta(900, 1e-3), synthetic=True) as db:
        return db.sql(text, spend=spend, within=within)


def test_a_pure_spend_lists_up_to_a_million_declared_keys_SR14():
    """Where no delta is spent every declared number is a group, the missing one last; a delta still finds them."""
    text = "SELECT k, COUNT(*) AS n FROM data GROUP BY k"
    for spend in (Epsilon(50), Rho(20)):
        found = wide(text, spend).to_dict(None)
        assert found["k"] == [*range(100_000), None]
        assert [found["n"][i] for i in (7, 8, 60, 99_999, 100_000)] == [2, 0, 1, 1, 1]
    assert wide(text, Epsilon(50), missing=False).to_dict(None)["k"] == [*range(100_000)]
    assert wide(text, EpsilonDelta(1, 1e-6)).table.size < 10
    both = wide("SELECT k, g, COUNT(*) AS n FROM data GROUP BY k, g ORDER BY n DESC LIMIT 1", Epsilon(50))
    assert both.value == ((7, True, 2),)
    for sql in (
        "SELECT k, g, COUNT(*) FROM data GROUP BY k, g, k % 10",
        "SELECT k * 100, COUNT(*) FROM data GROUP BY 1",
    ):
        with pytest.raises(QuestionError) as refusal:
            wide(sql, Epsilon(1))
        assert refusal.value.code == "open-keys"


def test_labels_are_read_and_sorted():
    """Dates are dates, bins are intervals, and missing labels come last."""
    asking = SumCollector(database().facts, Epsilon(1))
    keys = (Col("visit"), OrMissing(Bins(Col("age"), (0, 60, 120))))
    (found,) = ask(asking, GroupStatistics(Table(), None, keys, (), (ROWS,)))
    known = found.labels([], 2)
    rows = [(known[0][place], known[1][place]) for place in found.order(known).tolist()]
    assert rows[0] == (datetime.date(2020, 1, 1), "[0, 60)")
    assert rows[2] == (datetime.date(2020, 1, 1), None)
    assert len(rows) == 366 * 3
    assert sorted(["b", None, "a"], key=ascending) == ["a", "b", None]
    assert sorted([2, None, True, 0.5], key=ascending) == [0.5, True, 2, None]


WORDS = pa.table({"pid": np.arange(2400), "word": ["big"] * 1200 + ["less"] * 900 + [f"w{i}" for i in range(300)],
                  "age": [i % 90 for i in range(2400)]})  # fmt: skip
SPEND = EpsilonDelta(1, 1e-6)


def words(rows: int = 1, **more: object) -> Database:
    columns = {"word": sulq.Text(), "age": sulq.Int(0, 99), "pid": sulq.Int(0, 9999)}
    given = {"columns": columns, "unit": sulq.Unit("pid", rows), "budget": EpsilonDelta(1000, 1e-3)}
    return sulq.connect(WORDS, table="t", synthetic=True, **(given | more))


@pytest.mark.parametrize(
    ("values", "rows", "other", "bought"),
    [
        ("COUNT(*)", 1, None, 0),
        ("COUNT(*), COUNT(DISTINCT pid)", 1, None, 0),
        ("COUNT(*), SUM(age)", 1, None, 1),
        ("COUNT(*) FILTER (WHERE age > 5)", 1, None, 1),
        ("COUNT(age)", 1, None, 1),  # which may be missing
        ("COUNT(*)", 2, None, 1),
        ("COUNT(DISTINCT pid)", 2, None, 0),
        ("COUNT(*)", 1, "rest", 1),
    ],
)
def test_rows_are_the_people_where_each_has_one_SR14(values: str, rows: int, other: str | None, bought: int):
    """The number that shows a group is COUNT(*), bought once; a sum of another kind, or of two rows each, is not it."""
    text = f"SELECT word, {values} FROM t GROUP BY word"
    with words(rows) as db:
        plan = db.explain(text, spend=SPEND, other=other).plan
        assert len(plan.parts[0].laws) == bought
        if rows == 1:
            assert isinstance(plan.parts[0].people, PassedGaussianLaw if other else PassedLaplaceLaw)
        if not bought and rows == 1:
            found = db.sql(text, spend=SPEND, fresh=True)
            assert {row[0] for row in found.value} == {"big", "less"}
            assert {type(noise.law) for noise in found.answers[0].released.noise} == {PassedLaplaceLaw}
            assert found.value[0][1] == found.answers[0].released.units[0, 0]
            low, high = found.interval(1 - 1e-9)
            assert low[0][1] <= 1200 <= high[0][1]


def test_a_law_may_be_named_for_open_keys_SR14():
    """`law` decides; `explain` names law and threshold; a row for the others has Gaussian noise, or is refused."""
    text = "SELECT word, COUNT(*) AS n FROM t GROUP BY word"
    with words() as db:
        for law, name in (("laplace", "Laplace"), ("gaussian", "Gaussian"), (None, "Laplace")):
            told = str(db.explain(text, spend=SPEND, law=law))
            assert f"discrete {name} noise" in told
            assert "a group is shown if its noisy number of people is above" in told
        assert "discrete Gaussian noise" in str(db.explain(text, spend=SPEND, other="rest"))
        with pytest.raises(QuestionError) as refused:
            db.sql(text, spend=SPEND, other="rest", law="laplace")
        assert refused.value.code == "open-keys"
        assert db.transcript() == []
        paid = db.sql(text, spend=SPEND)
        assert paid.spent == EpsilonDelta(1, Fraction(1, 10**7))
        assert db.sql(text, spend=SPEND).reused
