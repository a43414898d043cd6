"""SQL before an Oracle: asked once, reused where it was asked before, priced by the accuracy wished for."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit
from sulq.errors import QuestionError, SulqError
from sulq.language.question import Choose, Sums
from sulq.sql.answer import SqlAnswer
from sulq.sql.explain import Explanation
from sulq.sql.session import Sql
from sulq.testing import exact
from tests.api import test_named_asks as named
from tests.stub import Stub

RNG = np.random.default_rng(3)
N = 6_000
PEOPLE = pd.DataFrame(
    {
        "pid": np.arange(N) // 2,
        "age": RNG.integers(18, 95, N),
        "income": RNG.gamma(4, 12_000, N),
        "city": RNG.choice(["Haifa", "Lod", "Yafo"], N),
        "smoker": RNG.random(N) < 0.22,
        "name": RNG.choice(["ann", "bob"], N),
    }
)
COLUMNS = {
    "age": (0, 120),
    "income": (0.0, 200_000.0),
    "city": ["Haifa", "Lod", "Yafo"],
    "smoker": sulq.Bool(),
    "name": sulq.Text(),
}
GROUPED = "SELECT city, COUNT(*) AS n, AVG(income) AS mean FROM people GROUP BY city"
# Without the group of missing cities: it has nobody, and by chance its noisy count may promise somebody.
KNOWN = "SELECT city, COUNT(*) AS n, AVG(income) AS mean FROM people WHERE city IS NOT NULL GROUP BY city"


NAMES = "SELECT name, COUNT(*) AS n, AVG(age) AS mean FROM people GROUP BY name"
NESTED: list[object] = []
for _ in range(100_000):  # too deep to be written out
    NESTED = [NESTED]
KEYS = EpsilonDelta(2, 1e-7)


def opened(**options: object) -> sulq.api.database.Database:
    given: dict[str, object] = {
        "table": "people", "columns": COLUMNS, "unit": Unit("pid", rows=2), "budget": EpsilonDelta(50, 1e-6),
        "engine": "memory", "synthetic": True,
    }  # fmt: skip
    return sulq.connect(PEOPLE, **(given | options))


WORDS = [
    "select P.city, count(*) n, avg(P.income) as mean -- a remark\nfrom people P group by 1",
    "SELECT city, AVG(income), COUNT(*) FROM people GROUP BY city",
    "/* why */ SELECT AVG(income) AS a, city FROM (SELECT city, income FROM people) AS t GROUP BY city ORDER BY 2 DESC",
    "WITH t AS (SELECT * FROM people) SELECT city, COUNT(*), AVG(income) FROM t GROUP BY city HAVING COUNT(*) > 100",
    'SELECT "city", 2 * COUNT(*), AVG(income) / 12 FROM people GROUP BY "city" LIMIT 2;',
]


def test_the_same_query_in_other_words_is_free_T10_SR12() -> None:
    """Aliases, remarks, order, letters' case, subqueries, HAVING and LIMIT: one question, paid once (T10, SR12)."""
    with opened() as db:
        first = db.sql(GROUPED, spend=Epsilon(1))
        spent = db.spent
        for text in WORDS:
            again = db.sql(text, spend=Epsilon(1))
            if "COUNT" in text.upper():
                assert again.reused, text
                assert again.receipt.seq == first.receipt.seq
                assert again.spent.amount == 0
        assert len(db.transcript()) == 2  # the mean alone is a question of its own
        assert db.sql(GROUPED, spend=Epsilon(1)).value == first.value
        fresh = db.sql(GROUPED, spend=Epsilon(1), fresh=True)
        assert not fresh.reused
        assert fresh.value != first.value
        assert not db.sql(GROUPED, spend=Epsilon(1.5)).reused
        assert db.spent != spent


WHERE = [
    "age > 40 AND smoker AND city = 'Lod'",
    "'Lod' = city AND 40 < age AND smoker",
    "smoker AND (city = 'Lod' AND NOT (NOT age > 40))",
]


def test_conditions_in_another_order_are_the_same_question_T10() -> None:
    """AND commutes, comparisons turn round, NOT NOT falls away; another bound is another question (T10).

    Control: a condition that differs by one row's worth is charged.
    """
    with opened() as db:
        answers = [db.sql(f"SELECT COUNT(*) FROM people WHERE {where}", spend=Epsilon(0.1)) for where in WHERE]
        assert [answer.reused for answer in answers] == [False, True, True]
        assert len({answer.value for answer in answers}) == 1
        other = db.sql("SELECT COUNT(*) FROM people WHERE age >= 40 AND smoker AND city = 'Lod'", spend=Epsilon(0.1))
        assert not other.reused
        assert db.spent == Epsilon(other.spent.exact * 2)


def test_a_named_ask_and_a_query_share_their_answer() -> None:
    """COUNT(*) in SQL and db.count are one question, whoever asked first (SR12)."""
    with opened() as db:
        count = db.count(spend=Epsilon(0.5))
        again = db.sql("SELECT COUNT(*) AS n FROM people", spend=Epsilon(0.5))
        assert again.reused
        assert again.value == count.value
        total = db.sql("SELECT SUM(age) FROM people WHERE smoker", spend=Epsilon(0.5))
        assert db.sum("age", where=sulq.col("smoker"), spend=Epsilon(0.5)).value == total.value
        assert len(db.transcript()) == 2


@pytest.mark.parametrize("kind", [Epsilon, Rho])
def test_sums_and_counts_are_priced_exactly_SR7(kind: type) -> None:
    """within= is kept, and a little less would not do (SR7)."""
    with opened() as db:
        for text, width in (
            ("SELECT COUNT(*) FROM people WHERE smoker", 31),
            ("SELECT city, SUM(age) FROM people GROUP BY city", 2_500),
            ("SELECT city, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY city", {"s": 3_000}),
        ):
            answer = db.sql(text, within=width, at_most=kind(20), fresh=True)
            wish = width if isinstance(width, int) else width["s"]
            away = answer.accuracy(0.05)
            worst = max(row[-1] for row in away) if isinstance(away, tuple) else away
            assert worst <= wish
            assert isinstance(answer.spent, kind)
            less = db.sql(text, spend=answer.spent.share(0.97), fresh=True).accuracy(0.05)
            assert (max(row[-1] for row in less) if isinstance(less, tuple) else less) > wish


def test_a_quotient_buys_a_count_first_and_keeps_its_width_SR7() -> None:
    """A tenth of at_most buys counts; the price follows from their lower bounds; all within at_most (SR7)."""
    held = []
    for _ in range(10):
        with opened() as db:
            answer = db.sql(KNOWN, within={"mean": 3_000}, at_most=Epsilon(4))
            assert len(db.transcript()) == 2
            assert db.spent.amount <= 4
            assert db.transcript()[0]["event"].epsilon == pytest.approx(0.4)
            assert "a count that set the price cost epsilon 0.4 besides" in answer.notes
            assert [row[0] for row in answer.value] == sorted(row[0] for row in answer.value)
            held.append(max(row[2] for row in answer.accuracy(0.05)) <= 3_000)
    assert sum(held) >= 4  # each with 95%: three or fewer of ten would be a chance of 1e-7


def test_a_declared_size_prices_a_mean_at_once_SR7() -> None:
    """Where every row is kept and has its value the declared size is the count; nothing is bought first (SR7)."""
    with opened(unit=Unit(), size=N) as db:
        answer = db.sql("SELECT AVG(COALESCE(age, 0)) FROM people", within=1.5, at_most=Epsilon(5))
        assert answer.accuracy(0.05) <= 1.5
        assert len(db.transcript()) == 1


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda db: db.sql("SELECT COUNT(*) FROM people"), "spend-missing"),
        (lambda db: db.sql("SELECT COUNT(*) FROM people", spend=Epsilon(1), within=5), "bad-question"),
        (lambda db: db.explain("SELECT COUNT(*) FROM people", spend=Epsilon(1), within=5), "bad-question"),
        (lambda db: db.sql("SELECT COUNT(*) FROM people", within={"n": 5}), "bad-question"),
        (lambda db: db.sql("SELECT COUNT(*) FROM people", within={}), "bad-question"),
        (lambda db: db.sql("SELECT COUNT(*) FROM people", within=-1), "bad-loss"),
        (lambda db: db.sql("SELECT COUNT(*) FROM people", within="5"), "bad-loss"),
        (lambda db: db.sql("SELECT COUNT(*) FROM people", within=1, at_most=Epsilon(0.1)), "too-costly"),
        (lambda db: db.sql("SELECT COUNT(*) FROM people", within=5, fresh="yes"), "bad-question"),
        (lambda db: db.sql("SELECT AVG(age) FROM people", within=1), "spend-missing"),
        (
            lambda db: db.sql("SELECT MEDIAN(age) FROM people", within=9, at_most=Epsilon(9), interval=False),
            "bad-question",
        ),
        (lambda db: db.explain("SELECT MAX(age) FROM people", within=9, interval=False), "bad-question"),
        (lambda db: db.sql("SELECT AVG(DISTINCT age) FROM people", within=1, at_most=Epsilon(1)), "bad-question"),
        (lambda db: db.sql("SELECT age FROM people", spend=Epsilon(1)), "raw-rows"),
        (lambda db: db.sql("DELETE FROM people", spend=Epsilon(1)), "sql-unsupported"),
        (lambda db: db.sql(7, spend=Epsilon(1)), "sql-syntax"),
        (lambda db: db.sql("SELECT COUNT(*) FROM people", spend=0.5), "bad-loss"),
        (lambda db: db.sql("SELECT name, COUNT(*) FROM people GROUP BY name", spend=Epsilon(1)), "open-keys"),
        (lambda db: db.sql(NAMES, spend=Epsilon(1), other="x"), "open-keys"),
        (lambda db: db.sql(NAMES, within=50, at_most=KEYS, other="x"), "open-keys"),
        (lambda db: db.sql(NAMES, spend=KEYS, other=7), "bad-question"),
        (lambda db: db.sql(NAMES, spend=KEYS, other=""), "bad-question"),
        (lambda db: db.sql(NAMES, spend=KEYS, other="\ud800"), "bad-question"),
        (lambda db: db.sql(NAMES, spend=KEYS, other="x" * 201), "bad-question"),
        (lambda db: db.sql(GROUPED, spend=KEYS, other="x"), "bad-question"),
        (lambda db: db.sql(GROUPED, within={"mean": 9_000}, at_most=Epsilon(4), other="x"), "bad-question"),
        (lambda db: db.sql("SELECT DISTINCT name FROM people", spend=KEYS, other="x"), "bad-question"),
        (lambda db: db.sql(f"{NAMES} HAVING COUNT(DISTINCT pid) > 9", spend=KEYS, other="x"), "open-keys"),
        (lambda db: db.explain(GROUPED, other="x"), "bad-question"),
        (lambda db: db.explain(NAMES, spend=KEYS, other=NESTED), "bad-question"),
        (lambda db: db.plan("SELECT COUNT(*) FROM people", spend=Epsilon(1)), "bad-question"),
        (lambda db: db.plan([], spend=Epsilon(1)), "bad-question"),
        (lambda db: db.plan(["SELECT COUNT(*) FROM people"], spend=None), "spend-kind"),
        (lambda db: db.plan(["SELECT COUNT(*) FROM people"], spend=Epsilon(1), known=[None, None]), "bad-question"),
        (lambda db: db.plan(["SELECT age FROM people"], spend=Epsilon(1)), "raw-rows"),
    ],
)
def test_a_refusal_costs_nothing(ask: object, code: str) -> None:
    """Each has its code, and nothing is charged or asked (T12, T51)."""
    with opened() as db:
        with pytest.raises(SulqError) as refused:
            ask(db)
        assert refused.value.code == code
        assert db.transcript() == []


@pytest.mark.parametrize("what", ["MEDIAN(age)", "COUNT(DISTINCT age)", "COUNT(DISTINCT pid) FILTER (WHERE age > 9)"])
def test_what_no_spend_buys_of_open_keys_is_said(what: str) -> None:
    """Where a delta was given the remedy is to declare the categories, and not a delta."""
    with opened() as db, pytest.raises(SulqError) as refused:
        db.sql(f"SELECT name, {what} FROM people GROUP BY name", spend=KEYS)
    assert refused.value.code == "open-keys"
    assert "Declare the categories" in str(refused.value)
    assert "EpsilonDelta" not in str(refused.value)


def test_a_width_of_a_quantile_is_priced_by_the_cheaper_way_SR7() -> None:
    """Counts alone have narrower intervals than choices: for the price the answer has, choices do not suffice."""
    text, within = "SELECT MEDIAN(age) AS m FROM people", 2
    with opened() as db:
        told = db.explain(text, within=within)
        largest = db.explain("SELECT MAX(age) AS m FROM people", within=9)
        assert all(isinstance(one, Sums) for plan in (told, largest) for one in plan.plan.question.questions)
        assert told.columns[0].widths[-1] <= within
        chosen = db.explain(text, spend=told.price)
        assert any(isinstance(one, Choose) for one in chosen.plan.question.questions)
        assert chosen.columns[0].widths[-1] > within


def test_an_explanation_without_an_interval_tells_the_rank() -> None:
    """As the answer does, of all that is made of a chosen value, and the accuracy of what is not chosen (SR7)."""
    text = "SELECT MEDIAN(income) AS m, 2 * MAX(income) AS twice, COUNT(*) AS n FROM people"
    with opened() as db:
        told = {one.name: one for one in db.explain(text, spend=Epsilon(1), interval=False).columns}
        assert "rank is within" in told["m"].near
        assert "rank is within" in told["twice"].near
        assert not told["n"].near
        shown = str(db.explain(text, spend=Epsilon(1), interval=False))
        assert "no interval is bought: a chosen value's rank is within" in shown
        assert not any(one.near for one in db.explain(text, spend=Epsilon(1)).columns)


def test_the_rest_is_one_more_question_at_the_same_debit_SR14() -> None:
    """`other` buys a total beside the groups; with another label, or in other words, it is the same question (SR12)."""
    with opened() as db:
        found = db.sql(NAMES, spend=KEYS, other="(other)")
        assert [row[0] for row in found.value] == ["ann", "bob", "(other)"]
        low, high = found.interval(1 - 1e-9)
        assert low[-1][1] <= 0 <= high[-1][1]
        assert len(found.answers) == 2
        assert [answer.released.labels for answer in found.answers] == [(("ann", "bob"),), None]
        words = "SELECT AVG(age), COUNT(*) + 1, name FROM people GROUP BY name ORDER BY 2 DESC"
        again = db.sql(words, spend=KEYS, other="all else")
        assert again.reused
        assert again.value[-1][1:] == (found.value[-1][1] + 1, "all else")
        assert not db.sql(NAMES, spend=KEYS).reused
        assert len(db.transcript()) == 2


def test_the_rest_is_explained_SR14() -> None:
    """A second question with its share, what the row is, and the accuracies of the groups shown, a little wider."""
    with opened() as db:
        told = db.explain(NAMES, spend=KEYS, other="(other)")
        assert "question 2 of 2, 16% of the spend: over people" in str(told)
        assert f"row '{'x' * 60}': " in str(db.explain(NAMES, spend=KEYS, other="x" * 60))
        assert str(told).endswith("row '(other)': a total less the groups shown, so each group adds its noise")
        assert "no spend was named" in str(db.explain(NAMES, other="(other)"))
        assert str(db.sql(f"EXPLAIN {NAMES}", spend=KEYS, other="(other)")) == str(told)
        plain = db.explain(NAMES, spend=KEYS)
        for wide, narrow in zip(told.columns, plain.columns, strict=True):
            assert wide.name == narrow.name
            assert all(1 < a / b < 1.14 for a, b in zip(wide.widths[1:], narrow.widths[1:], strict=True))
        assert db.transcript() == []


def test_EXPLAIN_reads_no_row_and_spends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The explanation names questions, rows a person has, bounds, noise, shares and accuracies, rows unseen (T58)."""
    with opened() as db:

        def unread(*_: object) -> None:
            raise AssertionError("a row was read")

        monkeypatch.setattr(db._engine, "sums", unread)
        monkeypatch.setattr(db._engine, "_asking", unread, raising=False)
        monkeypatch.setattr(db._engine, "ready", unread)
        for found in (
            db.explain(GROUPED, spend=Epsilon(0.5)),
            db.sql(f"EXPLAIN {GROUPED}", spend=Epsilon(0.5)),
            db.explain(GROUPED, within={"n": 30}),
            db.explain(GROUPED),
            db.explain("SELECT name, COUNT(*) FROM people GROUP BY name"),
            db.explain("SELECT MEDIAN(age), VAR_POP(income) FROM people WHERE smoker", spend=Rho(0.1)),
            db.explain("SELECT AVG(c) FROM (SELECT pid, COUNT(*) AS c FROM people GROUP BY pid) t", spend=Epsilon(1)),
        ):
            assert isinstance(found, Explanation)
            text = str(found)
            for word in ("price", "at most", "sensitivity", "noise", "expected accuracy", "over"):
                assert word in text, text
            assert found.price is not None
        assert db.spent.amount == 0
        assert db.transcript() == []


def test_the_foretold_accuracy_is_the_accuracy_of_the_answer() -> None:
    """A count's bar is what was foretold; a mean's is between those foretold for fewer and for more rows (SR7)."""
    with opened() as db:
        told = db.explain(GROUPED, spend=Epsilon(1))
        answer = db.sql(GROUPED, spend=Epsilon(1))
        count, mean = told.columns
        assert (count.name, mean.name) == ("n", "mean")
        assert count.sure
        assert not mean.sure
        for row in answer.accuracy(0.05)[:3]:
            assert row[1] == pytest.approx(count.widths[0], abs=0.6)
            assert mean.widths[2] < row[2] < mean.widths[0]  # about 2,000 rows a city
        assert told.price == answer.spent
        assert told.to_dict()["column"] == ["n", "mean"]


def test_a_plan_divides_a_total_and_its_asks_keep_it() -> None:
    """Nothing is spent before ask(), then no more than the total; no query has less than half of an even part."""
    queries = [GROUPED, "SELECT COUNT(*) FROM people WHERE smoker", "SELECT STDDEV_POP(age) FROM people"]
    for total in (Epsilon(2), Rho(0.2), EpsilonDelta(1, 1e-6)):
        with opened() as db:
            plan = db.plan(queries, spend=total)
            assert db.transcript() == []
            assert all(0 < query.error < 1 for query in plan.queries)
            assert all(float(spend.exact) >= 0.49 * float(plan.total.share(1).exact) / 3 for spend in plan.spends)
            text = repr(plan)
            assert all(re.search(rf"{name}  \+- ", text) for name in ("n", "mean", "count", "stddev_pop"))
            assert isinstance(plan.total, Epsilon if isinstance(total, EpsilonDelta) else type(total))  # as few sums
            assert sum(spend.exact for spend in plan.spends) <= total.exact
            assert [text for text, _ in plan] == queries
            answers = plan.ask()
            assert [answer.spent for answer in answers] == list(plan.spends)
            assert all(isinstance(answer, SqlAnswer) for answer in answers)
            again = db.plan(queries, spend=total, known=answers)
            pure = isinstance(plan.total, Epsilon)
            assert len(db.transcript()) == (3 if pure else 1)  # one debit for all gains nothing for pure ones
            assert [one.reused for one in db.plan(queries, spend=total).ask()] == [True] * 3
            assert len(again) == 3
            other = db.plan(queries, spend=total).ask(together=pure)
            assert [one.reused for one in other] == [False] * 3
            assert len(db.transcript()) == 4
            bars = [[one.accuracy(0.05) for one in several] for several in (answers, other)]
            assert bars[0][1] == pytest.approx(bars[1][1], rel=0.01)


def test_a_pure_plan_pays_for_nothing_twice_SR12() -> None:
    """The same query listed again, or answered before at its part or more, is free; EXPLAIN is refused, free."""
    count, total = "SELECT COUNT(*) AS n FROM people", "SELECT SUM(age) AS s FROM people"
    with opened(budget=Epsilon(9)) as db:
        answers = db.plan([count, count, count], spend=Epsilon(0.3)).ask()
        assert [one.reused for one in answers] == [False, True, True]
        assert db.spent.exact < Epsilon(0.11).exact
        db.sql(total, spend=Epsilon(1))
        spent = db.spent
        assert db.plan([count, total], spend=Epsilon(0.15)).ask()[1].reused
        with pytest.raises(QuestionError, match="EXPLAIN"):
            db.plan([f"EXPLAIN {count}"], spend=Epsilon(1))
        assert db.afford([f"EXPLAIN {count}"], spend=Epsilon(1)).prices == ()
        assert db.spent.exact - spent.exact < Epsilon(0.15).exact


def test_an_explanation_names_the_law_for_many_asks_SR3() -> None:
    """Laplace noise is nearer for one count and takes more of the budget; what Gaussian noise would leave stands by."""
    text = "SELECT COUNT(*) AS n FROM people"
    with opened(budget=EpsilonDelta(1, 1e-6)) as db:
        told = db.explain(text, spend=EpsilonDelta(0.1, 1e-7))
        assert told.price == Epsilon(0.1)
        other = db.explain(text, spend=EpsilonDelta(0.1, 1e-7), law="gaussian")
        assert f'law="gaussian", farther off, would leave {other.left.remaining}' in str(told)
        assert other.columns[0].widths[0] > 2 * told.columns[0].widths[0]
        for none in (db.explain(text, spend=Epsilon(0.1)), other):
            assert "farther off" not in str(none)


def test_a_plan_of_many_sums_is_one_event_that_costs_less_than_its_queries_SR26() -> None:
    """Gaussian queries as one: rho adds up alike, and the (epsilon, delta) is counted once, not query by query."""
    queries = [f"SELECT AVG(age) AS a, AVG(income) AS b FROM people WHERE age > {i}" for i in range(30)]
    with opened(budget=EpsilonDelta(3, 1e-6)) as db:
        plan = db.plan(queries, spend=EpsilonDelta(0.5, 1e-7))
        assert plan.total == EpsilonDelta(0.5, 1e-7)
        assert plan.plan is not None
        together = db.afford(plan).after.remaining
        apart = db.afford([query.explanation for query in plan.queries]).after.remaining
        assert float(together.amount) > float(apart.amount) + 0.1
        answers = plan.ask()
        assert len(answers) == 30
        assert db.remaining == together
        assert {answer.receipt.seq for answer in answers} == {answers[0].receipt.seq}
        assert float(plan.plan.event.rho) == pytest.approx(sum(float(one.exact) for one in plan.spends), rel=1e-6)


def test_a_plan_gives_more_where_noise_hurts_more() -> None:
    """A mean in many small groups gets more than a count of all; evenly divided its error would be larger."""
    with opened() as db:
        plan = db.plan(
            ["SELECT age, AVG(income) FROM people GROUP BY age", "SELECT COUNT(*) FROM people"], spend=Rho(1)
        )
        large, small = plan.spends
        assert large.exact == pytest.approx(3 * small.exact, rel=0.01)  # the count has its least part
        asked = db.plan([query.text for query in plan.queries], spend=Rho(1), weights=[1, 1000])
        assert asked.spends[1].exact > asked.spends[0].exact


def test_a_known_answer_tells_how_far_off_its_query_is() -> None:
    """A query whose answer drowned in noise gets more; by declarations alone both have the same."""
    queries = [f"SELECT COUNT(*) AS n FROM t WHERE x = {value}" for value in (5, 7)]
    rows = pa.table({"x": [5] * 1000})
    with sulq.connect(rows, table="t", columns={"x": sulq.Int(0, 100)}, budget=Epsilon(9)) as db:
        even = db.plan(queries, spend=Epsilon(1)).spends
        assert even[0].exact == pytest.approx(even[1].exact, rel=0.01)
        known = [db.sql(query, spend=Epsilon(0.1)) for query in queries]
        told = db.plan(queries, spend=Epsilon(1), known=known).spends
        assert told[1].exact == pytest.approx(3 * told[0].exact, rel=0.01)  # the other has its least part
        again = db.sql(queries[1], spend=Epsilon(0.1))
        assert again.reused  # a stored answer has no price of its own: declarations are taken
        assert db.plan(queries, spend=Epsilon(1), known=[None, again]).spends == even


def test_extremes_are_measured_by_their_range() -> None:
    """Made-up rows have their extremes at the bounds, wherever they lie; a minimum of 0 is no size."""
    queries = ["SELECT MIN(income) FROM people", "SELECT COUNT(*) FROM people", "SELECT AVG(age) FROM people"]
    with opened() as db:
        errors = [query.error for query in db.plan(queries, spend=Epsilon(1)).queries]
        assert max(errors) < 70  # as a part of one in sixty of the range; by 1.0 it was 900


def test_a_plan_of_undeclared_keys_is_refused() -> None:
    """Free, whatever law is named, with what to do."""
    rows = pa.table({"name": ["a", "b"] * 50})
    query = "SELECT name, COUNT(*) AS n FROM t GROUP BY name"
    with sulq.connect(rows, table="t", columns={"name": sulq.Text()}, budget=EpsilonDelta(9, 1e-5)) as db:
        for law in (None, "laplace", "gaussian"):
            with pytest.raises(QuestionError) as refused:
                db.plan([query], spend=EpsilonDelta(1, 1e-6), law=law)
            assert refused.value.code == "open-keys"
        assert db.transcript() == []


def test_a_known_answer_has_its_price_in_any_kind() -> None:
    """Of Gaussian noise too, bought by an epsilon and a delta or by a rho."""
    queries = [f"SELECT COUNT(*) AS n FROM t WHERE x = {value}" for value in (5, 7)]
    rows = pa.table({"x": [5] * 1000})
    with sulq.connect(rows, table="t", columns={"x": sulq.Int(0, 100)}, budget=EpsilonDelta(9, 1e-5)) as db:
        for spend in (EpsilonDelta(0.2, 1e-6), Rho(0.001)):
            known = [db.sql(query, spend=spend, law="gaussian", fresh=True) for query in queries]
            told = db.plan(queries, spend=EpsilonDelta(1, 1e-6), known=known, law="gaussian").spends
            assert told[1].exact == pytest.approx(3 * told[0].exact, rel=0.02)


def test_under_SubLinear_queries_cost_queries() -> None:
    """No spend is named, none can be divided, and the explanation says how many queries it would be (S0.8)."""
    with opened(budget=SubLinear(1, 1e-6, queries=50), size=N, unit=Unit(None, 1, "replace_one")) as db:
        answer = db.sql("SELECT city, COUNT(*) FROM people GROUP BY city")
        assert answer.spent == Queries(4)
        assert db.sql("SELECT city, COUNT(*) FROM people GROUP BY city").reused
        assert db.explain("SELECT COUNT(*) FROM people").price == Queries(1)
        for refused in (lambda: db.plan(["SELECT COUNT(*) FROM people"], spend=Queries(3)),
                        lambda: db.sql("SELECT COUNT(*) FROM people", within=5)):  # fmt: skip
            with pytest.raises(QuestionError) as error:
                refused()
            assert error.value.code == "spend-kind"


def test_without_noise_a_query_is_plain_SQL() -> None:
    """The exact oracle answers the same text with the table's own numbers."""
    with opened(unit=Unit()) as db:
        found = exact(db).sql(GROUPED).to_pandas()
        plain = PEOPLE.groupby("city").income.agg(["size", "mean"])
        assert found["n"][:3].tolist() == plain["size"].tolist()
        assert np.allclose(found["mean"][:3].astype(float), plain["mean"], atol=0.01)


def test_what_is_no_spend_or_no_name_is_refused_with_a_code() -> None:
    """A list as spend, a placeholder where a name stands: found by the fuzz of the doors."""
    sql = Sql(Stub(named.SCHEMA, named.PEOPLE))
    for text, spend in (
        ("SELECT city, AVG(income) FROM people GROUP BY city", ["x", 3]),
        ("SELECT COUNT(*) FROM people % at > '2020-01-02' GROUP BY city", Epsilon(1)),
    ):
        with pytest.raises(QuestionError):
            sql.explain(text, spend=spend)
