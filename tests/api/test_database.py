"""A database, opened: shared by threads, closed for good, and true to plain queries on real data."""

from __future__ import annotations

import contextlib
import json
import threading
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq import (
    Category,
    Epsilon,
    EpsilonDelta,
    Int,
    Queries,
    Real,
    Rho,
    SubLinear,
    Sums,
    Unit,
    bins,
    bucket,
    col,
    lit,
)
from sulq.errors import AccessDenied, BudgetExceeded, QuestionError, SetupError, SetupWarning, SulqError
from sulq.language.facts import UNCERTIFIED
from sulq.language.rowfn import Lit
from sulq.testing import exact
from tests.data import need

ENGINES = ("duckdb", "memory")
NAN = float("nan")
COLUMNS = {"x": Int(0, 9), "g": Category(("a", "b"))}
TABLE = pa.table({"x": [1, 5, 7, 3], "g": ["a", "b", "a", "c"], "pid": ["p", "q", "q", None]})


def opened(**options: object) -> sulq.api.database.Database:
    given: dict[str, object] = {"columns": COLUMNS, "budget": Epsilon(10)}
    return sulq.connect(TABLE, **(given | options))


BAD_ASKS = {
    "unknown column": (lambda db: db.sum("y", spend=Epsilon(1)), "unknown-column"),
    "unknown column in where": (lambda db: db.count(col("y") > 1, spend=Epsilon(1)), "unknown-column"),
    "person column undeclared": (lambda db: db.count(by="pid", spend=Epsilon(1)), "unknown-column"),
    "unbounded sum": (lambda db: db.sum(1 / col("x"), spend=Epsilon(1)), "unbounded"),
    "undeclared category": (lambda db: db.count(col("g") == "c", spend=Epsilon(1)), "unknown-category"),
    "sum of categories": (lambda db: db.sum("g", spend=Epsilon(1)), "wrong-kind"),
    "order of categories": (lambda db: db.count(col("g") > "a", spend=Epsilon(1)), "wrong-kind"),
    "number as condition": (lambda db: db.count(col("x"), spend=Epsilon(1)), "wrong-kind"),
    "python and": (lambda db: db.count(col("x") > 1 and col("x") < 3, spend=Epsilon(1)), "bad-question"),
    "reversed bins": (lambda db: db.histogram("x", [9, 0], spend=Epsilon(1)), "bad-literal"),
    "no bins": (lambda db: db.histogram("x", 0, spend=Epsilon(1)), "bad-literal"),
    "reversed clip": (lambda db: db.sum(col("x").clip(5, 1), spend=Epsilon(1)), "bad-literal"),
    "NaN literal": (lambda db: db.count(col("x") > lit(NAN), spend=Epsilon(1)), "bad-literal"),
    "object literal": (lambda db: db.count(col("x") > object(), spend=Epsilon(1)), "bad-literal"),
    "too many cells": (lambda db: db.count(by=[bins("x", range(2000))] * 3, spend=Epsilon(1)), "too-large"),
    "deep nesting": (
        lambda db: db.sum(sum((col("x") for _ in range(200)), col("x")).clip(0, 1), spend=Epsilon(1)),
        "too-large",
    ),
    "no spend": (lambda db: db.count(), "spend-missing"),
    "spend and within": (lambda db: db.count(spend=Epsilon(1), within=3), "bad-question"),
    "spend as number": (lambda db: db.count(spend=0.5), "bad-loss"),
    "rho under epsilon": (lambda db: db.count(spend=Rho(0.1)), "spend-kind"),
    "delta under epsilon": (lambda db: db.count(spend=EpsilonDelta(1, 1e-6)), "spend-kind"),
    "queries under epsilon": (lambda db: db.count(spend=Queries(1)), "spend-kind"),
    "no question": (lambda db: db.ask("SELECT 1", spend=Epsilon(1)), "bad-question"),
    "empty question": (lambda db: db.ask(Sums(()), spend=Epsilon(1)), "too-large"),
    "other table": (
        lambda db: db.ask(Sums((Lit(1),), over=sulq.language.relation.Table("other")), spend=Epsilon(1)),
        "unknown-table",
    ),
    "buckets of rows": (lambda db: db.count(by=bucket(3), spend=Epsilon(1)), "needs-position"),
    "too exact": (lambda db: db.count(within=1e-9, at_most=Epsilon(1)), "too-costly"),
    "over budget": (lambda db: db.count(spend=Epsilon(10.5)), "budget-exceeded"),
    "sql over rows": (lambda db: db.sql("SELECT x FROM data", spend=Epsilon(1)), "raw-rows"),
    "sql of two statements": (lambda db: db.sql("SELECT COUNT(*) FROM data; SELECT 1", spend=Epsilon(1)), "sql-syntax"),
    "sql of another table": (lambda db: db.sql("SELECT COUNT(*) FROM other", spend=Epsilon(1)), "unknown-table"),
    "unknown handle": (lambda db: db[["x", "y"]], "unknown-column"),
    "bad key": (lambda db: db.ask(Sums((Lit(1),)), spend=Epsilon(1), key=""), "bad-question"),
    "ddof": (lambda db: db.std("x", ddof=2, spend=Epsilon(1)), "bad-question"),
}


@pytest.mark.parametrize("what", BAD_ASKS)
def test_bad_questions_have_a_code_and_cost_nothing(what: str) -> None:
    """Each is refused with its code and advice before any debit, and the database goes on (T12, T51)."""
    ask, code = BAD_ASKS[what]
    with opened() as db:
        with pytest.raises(SulqError) as refused:
            ask(db)
        assert refused.value.code == code
        assert isinstance(refused.value, (QuestionError, BudgetExceeded))
        assert refused.value.remedy
        assert db.spent.amount == 0
        assert db.transcript() == []
        assert db.count(spend=Epsilon(1)).receipt


def test_closed_is_closed() -> None:
    """After close every call is refused with `closed`; closing twice is no error."""
    db = opened()
    db.close()
    db.close()
    for call in (
        lambda: db.count(spend=Epsilon(1)),
        lambda: db.facts,
        lambda: db.spent,
        db.transcript,
        db.verify,
        db.prepare,
    ):
        with pytest.raises(AccessDenied) as refused:
            call()
        assert refused.value.code == "closed"
    assert repr(db) == "<sulq database: closed>"
    with pytest.raises(AccessDenied):
        exact(db)


def test_an_interrupted_opening_lets_go_of_the_ledger(tmp_path: Path) -> None:
    """If the data cannot be opened the ledger's file is free for the next."""
    for _ in range(2):
        with pytest.raises(SetupError):
            opened(columns={"nothing": Int(0, 1)}, ledger=tmp_path / "l.ledger")
    with opened(ledger=tmp_path / "l.ledger") as db:
        assert db.count(spend=Epsilon(1)).receipt.seq


@pytest.mark.parametrize("engine", ENGINES)
def test_a_database_is_shared_by_threads(engine: str) -> None:
    """Many threads with different questions get their own answers (T38, T42)."""
    with opened(engine=engine, synthetic=True, budget=Epsilon(900)) as db:
        wanted = {i: exact(db).sum(col("x") * i).value for i in range(1, 9)}
        found: dict[int, float] = {}

        def work(i: int) -> None:
            for _ in range(3):
                found[i] = db.sum(col("x") * i, spend=Epsilon(30), fresh=True).value

        threads = [threading.Thread(target=work, args=(i,)) for i in wanted]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert db.spent == Epsilon(24 * 30)
    assert all(abs(found[i] - wanted[i]) < 9 * i for i in wanted)


def test_the_ledger_outlives_the_database(tmp_path: Path) -> None:
    """What was spent and answered is there when the file is opened again, and `verify` agrees (T47, T56)."""
    path = tmp_path / "people.parquet"
    pq.write_table(TABLE, path)
    options = {"columns": COLUMNS, "budget": EpsilonDelta(2, 1e-6)}
    with sulq.connect(path, **options) as db:
        answer = db.mean("x", by="g", spend=Rho(0.01))
        spent = db.spent
    with sulq.connect(path, **options) as db:
        assert db.spent == spent
        assert db.verify()
        assert len(db.transcript()) == 1
        assert db.transcript()[0]["event"] == answer.event


def test_two_databases_share_one_ledger_file(tmp_path: Path) -> None:
    """Two openings of one ledger see each other's spends at once and never pass the budget together (T42, T56)."""
    with opened(ledger=tmp_path / "l.ledger") as one, opened(ledger=tmp_path / "l.ledger") as other:
        one.count(spend=Epsilon(6))
        assert other.spent == Epsilon(6)
        with pytest.raises(BudgetExceeded):
            other.count(spend=Epsilon(6), fresh=True)
        other.count(spend=Epsilon(4), fresh=True)
        assert one.remaining.amount == 0


def test_within_buys_no_more_than_it_says() -> None:
    """The price of an accuracy is foreseeable, is what is charged, and the answer keeps it (SR7)."""
    with opened(budget=Epsilon(100), synthetic=True) as db:
        answer = db.count(within=5, beta=0.05)
        assert answer.accuracy(0.05) <= 5
        assert db.spent == answer.spent
        mean = db.mean("x", within=2, at_most=Epsilon(50))
        assert db.spent.amount <= answer.spent.amount + 50
        assert 0 <= mean.value <= 9


def test_SubLinear_needs_no_spend_and_says_what_it_certifies() -> None:
    """Asks cost queries; the facts name the policy, the answers the reading it certifies (S0.6, S0.8)."""
    with opened(budget=SubLinear(1, 1e-6, queries=20), size=100_000) as db:
        answer = db.mean("x")
        assert answer.spent == Queries(2)
        assert answer.guarantee == "posterior"
        with pytest.raises(QuestionError) as refused:
            db.count(spend=Epsilon(1))
        assert refused.value.code == "spend-kind"


def declared(path: Path) -> dict[str, object]:
    """The declarations of a schema file beside a data set."""
    columns: dict[str, object] = {}
    for name, facts in json.loads(path.read_text(encoding="utf-8"))["columns"].items():
        if "values" in facts:
            columns[name] = Category(tuple(facts["values"]))
        elif "lower" in facts:
            kind = Real if facts["type"] == "float" else Int
            columns[name] = kind(facts["lower"], facts["upper"])
    return columns


@pytest.mark.parametrize("engine", ENGINES)
def test_adult_agrees_with_plain_queries(engine: str, tmp_path: Path) -> None:
    """Counts, sums, means and histograms of a census at large epsilon lie within their own accuracy of DuckDB's."""
    path = need("tabular/adult-train.csv")
    columns = declared(need("tabular/adult-train.schema.json"))
    plain = duckdb.connect().sql(f"SELECT * FROM read_csv('{path}', header=true)")
    beta = 1e-9
    spend = Epsilon(20)
    options = {"columns": columns, "budget": Epsilon(1000), "ledger": tmp_path / "l.ledger", "prepared": None}
    with sulq.connect(path, engine=engine, **options) as db:
        count = db.count(col("age") > 40, spend=spend)
        truth = plain.filter("age > 40").aggregate("count(*)").fetchall()[0][0]
        assert abs(count.value - truth) <= count.accuracy(beta)
        total = db.sum("capital_gain", where=col("sex") == "Female", spend=spend)
        truth = plain.filter("sex = 'Female'").aggregate("sum(capital_gain)").fetchall()[0][0]
        assert abs(total.value - truth) <= total.accuracy(beta)
        means = db.mean("hours_per_week", by="income", spend=spend)
        for income, truth in plain.aggregate("income, avg(hours_per_week)").fetchall():
            assert abs(means.value[income] - truth) <= means.accuracy(beta)[income] + 1e-4
        ages = db.histogram("age", bins=[17, 30, 45, 60, 90], spend=spend)
        for (low, high), value in ages.value.items():
            upper = "<=" if high == 90 else "<"
            truth = plain.filter(f"age >= {low} AND age {upper} {high}").aggregate("count(*)").fetchall()[0][0]
            assert abs(value - truth) <= ages.accuracy(beta)[(low, high)]
        spread = db.std("age", spend=spend)
        truth = plain.aggregate("stddev_pop(age)").fetchall()[0][0]
        assert abs(spread.value - truth) <= spread.accuracy(beta) + 1e-3
        covariance = db.covariance(["age", "education_num"], spend=spend)
        truth = plain.aggregate("covar_pop(age, education_num)").fetchall()[0][0]
        assert abs(covariance.value[0, 1] - truth) <= covariance.accuracy(beta)[0, 1] + 0.05
        assert db.spent == Epsilon(120)


@pytest.mark.parametrize("engine", ENGINES)
def test_pums_agrees_with_plain_queries_by_person(engine: str, tmp_path: Path) -> None:
    """With a person column of one row each, bounding changes nothing and answers lie within their accuracy."""
    path = need("tabular/pums_pid.csv")
    columns = declared(need("tabular/pums_pid.schema.json"))
    frame = duckdb.connect().sql(f"SELECT * FROM read_csv('{path}', header=true)").df()
    beta, spend = 1e-9, Rho(20)
    with sulq.connect(
        path, columns=columns, unit=Unit("pid", rows=1), budget=Rho(500), ledger=tmp_path / "l.ledger", engine=engine
    ) as db:
        by = db.count(by=["sex", "married"], spend=spend)
        for key, value in by.value.items():
            truth = int(((frame.sex == key[0]) & (frame.married == key[1])).sum())
            assert abs(value - truth) <= by.accuracy(beta)[key]
        income = db.mean("income", where=col("educ") >= 10, spend=spend)
        truth = frame[frame.educ >= 10].income.mean()
        assert abs(income.value - truth) <= income.accuracy(beta) + 1
        ages = db.histogram("age", bins=10, spend=spend)
        truths = np.histogram(frame.age, bins=np.linspace(0, 100, 11))[0]
        assert all(
            abs(v - t) <= a for v, t, a in zip(ages.value.values(), truths, ages.accuracy(beta).values(), strict=True)
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_pums_dup_counts_no_more_rows_than_the_unit_keeps(engine: str, tmp_path: Path) -> None:
    """Where people have several rows, no more than k of each count, and k=1 counts the people (SR2, T14)."""
    path = need("tabular/pums_dup.csv")
    columns = declared(need("tabular/pums_dup.schema.json"))
    owned = (
        duckdb.connect()
        .sql(f"SELECT count(*) AS n FROM read_csv('{path}', header=true) WHERE pid IS NOT NULL GROUP BY pid")
        .df()
        .n
    )
    for k in (1, 2, 3):
        with sulq.connect(
            path, columns=columns, unit=Unit("pid", rows=k), budget=Epsilon(1), synthetic=True, engine=engine,
            ledger=tmp_path / f"{k}.ledger",
        ) as db:  # fmt: skip
            assert exact(db).count().value == int(owned.clip(upper=k).sum())
    assert Fraction(int(owned.max())) > 1


def test_a_database_reads_well() -> None:
    """The representation shows declarations, unit and budget, and no row."""
    with opened(unit=Unit("pid", rows=2)) as db:
        text = repr(db)
    assert all(word in text for word in ("protects", "pid", "budget", "x", "g"))


@pytest.mark.parametrize(
    "ask",
    [
        lambda db: db.covariance([], spend=Epsilon(0.1)),
        lambda db: db[3],
        lambda db: db[[]],
        lambda db: db[["age", 3]],
        lambda _: sulq.vector(["age"], bits=11.5),
        lambda _: sulq.vector(["age"], bits=True),
        lambda db: db.count(spend=Epsilon(0.1)).interval("x"),
        lambda db: db.count(spend=Epsilon(0.1)).accuracy("x"),
        lambda db: db.quantile("age", [0.25, 1.5], spend=Epsilon(0.1)),
        lambda db: db.median("nobody", spend=Epsilon(0.1)),
        lambda db: db.sql(None, spend=Epsilon(0.1)),
        lambda db: db.plan(None, spend=Epsilon(0.1)),
        lambda db: db.sql("SELECT 1", spend=Epsilon(0.1), within=3),
        lambda db: db.graph,
        lambda db: db.count(spend=0.1),
    ],
)
def test_an_odd_argument_is_a_question_error(ask: object) -> None:
    """Whatever is asked wrongly, or is not in this version, is refused with a code and never with a raw error."""
    with (
        sulq.connect(pa.table({"age": [1, 2]}), columns={"age": Int(0, 9)}, budget=Epsilon(1)) as db,
        pytest.raises(sulq.errors.QuestionError),
    ):
        ask(db)


def test_the_copy_is_built_aside_and_questions_wait_for_it(tmp_path: Path) -> None:
    """`prepare(wait=False)` comes back at once; an ask meanwhile waits and answers; then there is no progress."""
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    held, told = threading.Event(), list[float]()

    def progress(part: float) -> None:
        told.append(part)
        assert held.wait(30)

    unit = Unit("pid", rows=2)  # such rows are asked when they are kept, and not before
    with sulq.connect(path, columns=COLUMNS, unit=unit, budget=Epsilon(10), progress=progress) as db:
        assert db.preparing is None
        db.prepare(wait=False)
        assert not (tmp_path / "t.prepared").exists()
        assert db.preparing == 0.0
        answers: list[object] = []
        asking = threading.Thread(target=lambda: answers.append(db.count(spend=Epsilon(1))))
        asking.start()
        asking.join(0.3)
        assert (asking.is_alive(), db.remaining) == (True, Epsilon(10))  # it waits, and before anything is paid
        held.set()
        asking.join(60)
        assert len(answers) == 1
        assert (db.preparing, told[-1]) == (None, 1.0)
        assert (tmp_path / "t.prepared").exists()
    with pytest.raises(AccessDenied):
        _ = db.preparing


def test_a_copy_that_cannot_be_built_aside_costs_nothing(tmp_path: Path) -> None:
    """The next ask raises why, before the debit; the one after that tries again."""
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    copy = tmp_path / "missing" / "t.prepared"
    unit = Unit("pid", rows=2)
    with sulq.connect(path, columns=COLUMNS, unit=unit, budget=Epsilon(10), prepared=copy) as db:
        db.prepare(wait=False)
        with pytest.raises(SetupError) as refused:
            db.count(spend=Epsilon(1))
        assert (refused.value.code, db.remaining) == ("prepared-unusable", Epsilon(10))
        copy.parent.mkdir()
        assert db.count(spend=Epsilon(1)).spent == Epsilon(1)


def test_closing_waits_for_what_is_built_aside(tmp_path: Path) -> None:
    """No thread and no half-made folder are left behind."""
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    with sulq.connect(path, columns=COLUMNS, budget=Epsilon(10)) as db:
        db.prepare(wait=False)
    assert "sulq-preparing" not in {thread.name for thread in threading.enumerate()}
    assert not list(tmp_path.glob(".t.prepared.preparing-*"))


@pytest.mark.parametrize(
    ("how", "certified"), [({}, True), ({"engine": "memory"}, False), ({"prepared": False}, False)]
)
def test_facts_say_where_sums_are_not_certified(how: dict[str, object], certified: bool) -> None:  # noqa: FBT001
    """The engine `memory` and rows without a copy stand outside what the kernel certifies, and say so."""
    with opened(**how) as db:
        assert db.facts.certified is certified
        assert (UNCERTIFIED in str(db.facts)) is not certified


def alike(rows: np.ndarray) -> bool:
    """Whether all rows of a small table are equal."""
    return len(set(rows[:, 0].tolist())) <= 1


@pytest.mark.parametrize("size", [None, 4])
def test_rows_are_exchanged_until_a_table_has_a_property_of_its_own_size_S4_28(size: int | None) -> None:
    """Of 0, 1, 2, 0 two rows must be exchanged until all are equal, where two must come and two go.

    A property of tables of another size than all neighbours have is refused as the data is opened, declared size or
    not. Control: where rows come and go, another size has a distance, and it is rows: two go, as one of 0, 0 is of at
    most three rows.
    """
    told = {"columns": {"x": sulq.Int(0, 2)}, "budget": Epsilon(9), "synthetic": True, "prepared": None}
    table, swapped = pa.table({"x": [0, 1, 2, 0]}), Unit(neighbors="replace_one")

    def own(rows: int) -> dict:
        return {"alike": ("tests.api.test_database:alike", sulq.Property(("x",), rows))}

    with sulq.connect(table, unit=swapped, size=size, estimators=own(4), **told) as db:
        assert sulq.testing.exact(db).distance_from("alike").value == 2
    for rows in (3, 5):
        with pytest.raises(SetupError, match="data has 4") as refusal:
            sulq.connect(table, unit=swapped, size=size, estimators=own(rows), **told)
        assert refusal.value.code == "bad-declaration"
        assert "rows=4" in str(refusal.value)
    with sulq.connect(table, estimators=own(3), **told) as db:
        assert sulq.testing.exact(db).distance_from("alike").value == 2


@pytest.mark.parametrize("kind", ["frame", "parquet", "csv"])
def test_a_size_that_is_not_the_number_of_rows_stops_the_owner_S2_3_SR6(tmp_path: Path, kind: str) -> None:
    """Under replace_one, where each row is a person and n public: means would be divided by a wrong number.

    Control: where a neighbour may have another number of rows, nothing is looked at.
    """
    table = pa.table({"x": [1, 2, 3]})
    source = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(table, source)
    elif kind == "csv":
        source.write_text("x\n1\n2\n3\n")
    data = table if kind == "frame" else source
    told = {"columns": {"x": sulq.Int(0, 9, missing=False)}, "budget": Epsilon(1), "prepared": None}
    told |= {"ledger": tmp_path / f"{kind}.ledger"}
    with pytest.raises(SetupError, match="size says 30") as refusal:
        sulq.connect(data, unit=Unit(neighbors="replace_one"), size=30, **told)
    assert refusal.value.code == "bad-declaration"
    sulq.connect(data, unit=Unit(neighbors="replace_one"), size=3, **told).close()
    other = {**told, "ledger": tmp_path / f"{kind}-other.ledger"}
    with contextlib.nullcontext() if kind == "frame" else pytest.warns(SetupWarning, match="a second budget"):
        sulq.connect(data, size=30, **other, new_people=True).close()
