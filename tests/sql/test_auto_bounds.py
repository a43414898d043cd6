"""bounds="auto" of a query: which values are searched, what is clipped, what is told before and after."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, SubLinear, Unit
from sulq.api.database import Database
from sulq.errors import QuestionError
from sulq.sql.auto_bounds import QuerySearch
from sulq.sql.compile import compile as compiled_of

RNG = np.random.default_rng(47)
N = 2000
TABLE = pa.table(
    {
        "pid": np.arange(N) // 2,
        "income": np.round(np.exp(RNG.normal(9, 1, N))).astype(np.int64),
        "age": RNG.integers(18, 90, N),
        "city": np.array(["a", "b"])[np.arange(N) % 2],
        "name": np.array(["x", "y"])[np.arange(N) % 2],
    }
)
COLUMNS = {
    "income": sulq.Int(0, 10**9),
    "age": sulq.Int(0, 120),
    "city": ["a", "b"],
    "name": sulq.Text(),
}
BUDGET = EpsilonDelta(100, 1e-3)


def opened(**options: object) -> Database:
    """Incomes within a milliard."""
    given = {"columns": COLUMNS, "unit": Unit("pid", 2), "budget": BUDGET}
    return sulq.connect(TABLE, table="people", **(given | options))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT AVG(income), SUM(income), COUNT(income), COUNT(*) FROM people", ["income"]),
        ("SELECT city, SUM(income * age) FROM people WHERE age > 20 GROUP BY city", ["income and age"]),
        (
            "SELECT AVG(income) FILTER (WHERE age > 30) AS a, AVG(income) AS b FROM people",
            ["income of a", "income of b"],
        ),
        (
            """SELECT SUM(x) AS s, MAX(y) AS t FROM (SELECT city, AVG(income) AS x,
            AVG(income) FILTER (WHERE age > 30) AS y FROM people GROUP BY city) AS g""",
            ["income of s", "income of t"],
        ),
        (
            "SELECT AVG(income) - (SELECT AVG(income) FROM people WHERE age > 30) AS d, AVG(income) AS m FROM people",
            ["income of d, m", "income of d"],
        ),
        (
            "SELECT AVG(income) AS m FROM people UNION ALL SELECT AVG(income) FROM people WHERE age > 30",
            ["income of m (1)", "income of m (2)"],
        ),
        ("SELECT STDDEV(age), MAX(income), COUNT(DISTINCT city) FROM people", ["age"]),
        ("SELECT AVG(t) FROM (SELECT pid, SUM(income) AS t FROM people GROUP BY pid) AS x", ["sum"]),
        ("SELECT COUNT(*), MEDIAN(income) FROM people", []),
        ("SELECT AVG(income) - (SELECT AVG(age) FROM people) AS d FROM people", ["income", "age"]),
    ],
)
def test_sums_means_and_spreads_are_searched_each_value_once(text: str, names: list[str]) -> None:
    """By one debit more where there is anything to search; the clipped program asks for the same columns."""
    with opened() as db:
        search = QuerySearch.of(compiled_of(text, db.facts).program, db.facts)
        assert search.names == names
        found = db.sql(text, spend=Epsilon(2), bounds="auto")
        assert db._ledger.totals.events == 1 + bool(names)
        assert float(found.spent.exact) == pytest.approx(2)
        assert found.columns == db.sql(text, spend=Epsilon(2)).columns
        note = found.notes[0] if names else "values are clipped"
        assert note.startswith("values are clipped")
        assert names or any("no bounds to search for" in one for one in found.notes)


def test_groups_found_in_the_data_share_one_clip_SR14() -> None:
    """Open keys need a delta: the search has none of it, the groups all of it."""
    with opened() as db:
        text = "SELECT name, AVG(income) AS m FROM people GROUP BY name"
        found = db.sql(text, spend=EpsilonDelta(5, 1e-5), bounds="auto")
        assert "values are clipped: income to [" in "; ".join(found.notes)
        assert isinstance(found.spent, EpsilonDelta)
        assert float(found.spent.exact) == pytest.approx(5)
        assert {row[0] for row in found.value} <= {"x", "y"}


def test_explain_and_afford_tell_both_debits_and_spend_nothing() -> None:
    """Price, both parts, and what would be left; without a spend a tenth of the budget is told."""
    text = "SELECT AVG(income) AS m FROM people"
    with opened(budget=Epsilon(3)) as db:
        told = db.explain(text, spend=Epsilon(1), bounds="auto")
        assert told.search is not None
        assert float(told.price.exact) == pytest.approx(1)
        assert float(told.left.remaining.exact) == pytest.approx(2)
        assert "first, for epsilon 0.333333: a search for where values lie" in str(told)
        assert "price epsilon 1" in str(db.sql(f"EXPLAIN {text}", spend=Epsilon(1), bounds="auto"))
        assert "no spend was named: this is for epsilon 0.3" in str(db.explain(text, bounds="auto"))
        assert not db.explain(text, spend=Epsilon(4), bounds="auto").fits
        run = db.afford([text] * 4, spend=Epsilon(1), bounds="auto")
        assert len(run.prices) == 8
        assert [left is not None for left in run.left] == [True] * 6 + [False] * 2
        assert "its search for bounds" in repr(run)
        assert repr(db.afford([told])).count("left after") == 2
        assert "no bounds to search" in str(db.explain("SELECT COUNT(*) FROM people", spend=Epsilon(1), bounds="auto"))
        assert db.spent.amount == 0


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("SELECT AVG(DISTINCT income) FROM people", {"spend": Epsilon(1)}, "bad-question"),
        ("SELECT AVG(income) FROM people", {"within": 5.0, "at_most": Epsilon(1)}, "bad-question"),
        ("SELECT AVG(income) FROM people", {}, "spend-missing"),
        ("SELECT AVG(income) FROM people", {"spend": Epsilon(1), "at_most": Epsilon(0.1)}, "too-costly"),
        (
            "SELECT AVG(income) FROM people",
            {"spend": EpsilonDelta(1, 1e-7), "at_most": EpsilonDelta(0.5, 1e-7)},
            "too-costly",
        ),
        ("SELECT AVG(income) FROM people", {"spend": Epsilon(1), "at_most": "x"}, "spend-kind"),
        ("SELECT AVG(income) FROM people", {"spend": Epsilon(200)}, "budget-exceeded"),
    ],
)
def test_what_cannot_be_searched_is_refused_free(text: str, options: dict[str, object], code: str) -> None:
    """Each with its code, before the first debit."""
    with opened() as db:
        with pytest.raises(sulq.errors.SulqError) as refused:
            db.sql(text, **options, bounds="auto")
        assert refused.value.code == code
        assert db._ledger.totals.events == 0
    with (
        opened(unit=Unit(neighbors="zero_out"), budget=SubLinear(1, 1e-6, 50)) as db,
        pytest.raises(QuestionError, match="spend-kind"),
    ):
        db.sql(text, bounds="auto")
