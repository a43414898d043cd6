"""What an analyst types: each named ask is the right statistic, over the right rows, at the named price."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sulq
from sulq.answers import wire
from sulq.answers.oracle import ColumnChoice
from sulq.answers.plan import Plan
from sulq.answers.readings.estimators import CentredMean, Mean
from sulq.answers.readings.sized import Average
from sulq.api.named_asks import NamedAsks
from sulq.api.questions import binned
from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Date, Int, Real, Schema, Text
from sulq.language.privacy import NEIGHBORS, Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit
from sulq.language.question import Sums
from sulq.language.rowfn import Bins, Col, Lit
from sulq.testing import exact
from tests.stub import Stub

SCHEMA = Schema.of(
    "people",
    {
        "age": Int(0, 120),
        "income": Real(0, 200_000),
        "city": Category(["Lod", "Yafo", "Haifa"]),
        "smoker": Bool(),
        "visit": Date("2020-01-01", "2020-12-31"),
        "same": Int(7, 7),
        "name": Text(),
    },
)
RNG = np.random.default_rng(7)
PEOPLE = [
    {
        "age": None if i % 11 == 0 else int(RNG.integers(0, 121)),
        "income": None if i % 13 == 0 else int(RNG.integers(0, SCHEMA.find("income").high + 1)),
        "city": None if i % 17 == 0 else int(RNG.integers(0, 2)),
        "smoker": None if i % 19 == 0 else int(RNG.integers(0, 2)),
        "visit": SCHEMA.find("visit").low + int(RNG.integers(0, 366)),
        "same": 7,
        "name": "x",
        "person": i,
        "position": i,
    }
    for i in range(400)
]
BUDGET = EpsilonDelta(900, 1e-6)
STEP = float(SCHEMA.find("income").step)


def database_asks(**options) -> NamedAsks:
    return NamedAsks(Stub(SCHEMA, PEOPLE, **({"budget": BUDGET} | options)))


def column(name: str, rows=PEOPLE) -> np.ndarray:
    """A column's present values, in its own units."""
    return np.array([row[name] for row in rows if row[name] is not None]) * float(SCHEMA.find(name).step)


SPENDS = [Epsilon(1), Rho(1), EpsilonDelta(1, 1e-6)]


@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_every_ask_takes_a_condition_in_every_spelling_SR12(spend):
    """A text, a handle or a row function: one question, so that a stored answer is given again; else refused alike."""
    db = database_asks()
    asks = {
        "count": lambda where: db.count(where, spend=spend),
        "sum": lambda where: db.sum("age", where=where, spend=spend),
        "histogram": lambda where: db.histogram("age", 4, where=where, spend=spend),
        "mean": lambda where: db.mean("age", where=where, spend=spend),
        "variance": lambda where: db.variance("age", where=where, spend=spend),
        "std": lambda where: db.std("age", where=where, spend=spend),
        "covariance": lambda where: db.covariance(["age", "income"], where=where, spend=spend),
    }
    asked = db._oracle.asked
    for name, ask in asks.items():
        questions = []
        for where in ("age > 40 AND NOT smoker", (Col("age") > 40) & ~Col("smoker"), (db["age"] > 40) & ~db["smoker"]):
            ask(where)
            questions.append(wire.encode(asked[-1][0]))
        assert len(set(questions)) == 1, name
        with pytest.raises(QuestionError, match="line 1, column 1 of the condition"):
            ask("nobody > 3")
        with pytest.raises(QuestionError, match="of type int"):
            ask(3)


def test_quantiles_of_a_condition_in_every_spelling_are_one_answer_SR12():
    """Asked as a text after it was bought as a row function or handle, each is given again, free."""
    frame = pd.DataFrame({"age": range(100), "smoker": [i % 3 == 0 for i in range(100)]})
    with sulq.connect(frame, columns={"age": range(120), "smoker": bool}, budget=Epsilon(9)) as db:
        for ask in (
            db.median,
            db.min,
            db.max,
            db.count_distinct,
            lambda value, **more: db.quantile(value, [0.1, 0.9], **more),
        ):
            bought = ask("age", where=(Col("age") > 40) & ~Col("smoker"), spend=Epsilon(1))
            for where in ("age > 40 AND NOT smoker", (db["age"] > 40) & ~db["smoker"]):
                again = ask(db["age"], where=where, spend=Epsilon(1))
                assert again.reused
                assert np.array_equal(again.value, bought.value)


def test_facts_are_read_again_for_a_text_alone():
    """At a far curator each reading is a call: a condition of columns needs none; control: a text needs one."""
    reads = []

    class Far(Stub):
        @property
        def facts(self):
            reads.append(1)
            return super().facts

    db, read = NamedAsks(Far(SCHEMA, PEOPLE, budget=BUDGET)), {}
    for name, where in (("none", None), ("columns", Col("age") > 40), ("text", "age > 40")):
        before = len(reads)
        db.count(where, spend=Epsilon(1))
        read[name] = len(reads) - before
    assert read["columns"] == read["none"] == read["text"] - 1


def test_keys_and_values_are_handles_too():
    """db["age"] is a value, db["city"] a key, db[["city", "smoker"]] two keys."""
    db, spend = database_asks(), Epsilon(1)
    assert db.sum(db["age"], spend=spend).value == db.sum("age", spend=spend).value
    assert db.count(by=db["city"], spend=spend).value == db.count(by="city", spend=spend).value
    both = db.count(by=db[["city", "smoker"]], spend=spend)
    assert both.value == db.count(by=["city", "smoker"], spend=spend).value
    assert db.count("smoker", spend=spend).value == db.count(db["smoker"], spend=spend).value


@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_counts_sums_and_histograms_are_of_the_rows_that_have_a_value(spend):
    """Without noise every ask is the exact statistic: missing values add nothing, filters and groups hold."""
    db = database_asks()
    older = [row for row in PEOPLE if row["age"] is not None and row["age"] > 40]
    assert db.count(spend=spend).value == 400
    assert db.count(Col("age") > 40, spend=spend).value == len(older)
    assert db.sum("age", spend=spend).value == column("age").sum()
    assert (
        db.sum("age", where=Col("city") == "Lod", spend=spend).value
        == column("age", [row for row in PEOPLE if row["city"] == 0]).sum()
    )
    assert db.sum(Col("age") * 2 - 1, spend=spend).value == (column("age") * 2 - 1).sum()
    by_city = db.count(by="city", spend=spend).value
    assert by_city == {
        label: sum(row["city"] == i for row in PEOPLE)
        for i, label in [*enumerate(("Lod", "Yafo", "Haifa")), (None, None)]
    }
    both = db.sum("age", by=["city", "smoker"], spend=spend).value
    assert list(both) == [(city, flag) for city in ("Lod", "Yafo", "Haifa", None) for flag in (False, True, None)]
    chosen = [row for row in PEOPLE if row["city"] == 1 and row["smoker"] == 1]
    assert both["Yafo", True] == column("age", chosen).sum()
    bins = db.histogram("age", bins=12, spend=spend).value
    assert list(bins.values()) == np.histogram(column("age"), bins=12, range=(0, 120))[0].tolist()
    edges = db.histogram("age", [0, 18.5, 65, 120], spend=spend).value
    assert list(edges.values()) == np.histogram(column("age"), bins=[0, 18.5, 65, 120])[0].tolist()


@pytest.mark.parametrize("spend", SPENDS, ids=str)
@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_means_variances_and_covariances_are_those_of_the_table_SR18(spend, neighbors):
    """Mean, variance, deviation and covariance agree with NumPy over the present values, in every relation (SR18)."""
    db = database_asks(unit=Unit("who", 2, neighbors))
    for name in ("age", "income"):
        values = column(name)
        fine = np.ptp([0, 120] if name == "age" else [0, 200_000])
        assert db.mean(name, spend=spend).value == pytest.approx(values.mean(), abs=1e-6 * fine)
        for ddof in (0, 1):
            found = db.variance(name, ddof=ddof, spend=spend).value
            assert found == pytest.approx(values.var(ddof=ddof), rel=2e-3)
            assert db.std(name, ddof=ddof, spend=spend).value == pytest.approx(values.std(ddof=ddof), rel=1e-3)
    grouped = db.mean("age", by="city", spend=spend)
    assert grouped.value["Lod"] == pytest.approx(column("age", [r for r in PEOPLE if r["city"] == 0]).mean(), abs=1e-6)
    assert grouped.value["Haifa"] is None  # nobody there: unknown
    complete = [r for r in PEOPLE if None not in (r["age"], r["income"], r["smoker"])]
    table = np.stack([column(name, complete) for name in ("age", "income", "smoker")])
    found = db.covariance(["age", "income", Col("smoker")], spend=spend)
    assert np.allclose(found.value, np.cov(table, ddof=0), rtol=5e-3, atol=1e-3 * 60 * 100_000 * 0.01)
    low, high = found.interval(0.95)
    exact = np.cov(table, ddof=0)
    assert (low <= exact).all()
    assert (exact <= high).all()
    assert found.columns == ("age*age", "age*income", "age*smoker", "income*income", "income*smoker", "smoker*smoker")


@settings(max_examples=25)
@given(
    st.lists(st.none() | st.integers(0, 40), max_size=30),
    st.sampled_from([Int(0, 40), Real(0, 10, grid=0.25), Real(-1, 9)]),
    st.sampled_from(SPENDS),
)
def test_without_noise_intervals_hold_the_statistic_of_any_table_S0_29(cells, declared, spend):
    """Whatever the rows, grid and spend: the interval around exact sums holds the statistic of the values (S0.29)."""
    schema = Schema.of("t", {"v": declared})
    codes = [
        None if cell is None else min(declared.low + cell * ((declared.high - declared.low) // 40), declared.high)
        for cell in cells
    ]
    db = NamedAsks(Stub(schema, [{"v": code} for code in codes], budget=BUDGET))
    values = np.array([code * float(declared.step) for code in codes if code is not None])
    if not len(values):
        assert db.variance("v", spend=spend).value == 0
        return
    for answer, truth in (
        (db.mean("v", spend=spend), values.mean()),
        (db.variance("v", spend=spend), values.var()),
        (db.std("v", spend=spend), values.std()),
    ):
        low, high = answer.interval(0.9)
        assert low - 1e-9 <= truth <= high + 1e-9


def test_facts_of_the_data_are_no_errors_SR6():
    """An empty table, a constant column, one class: a valid answer at the full price (SR6)."""
    empty = NamedAsks(Stub(SCHEMA, [], budget=BUDGET))
    for spend in SPENDS:
        for db in (empty, database_asks()):
            assert db.mean("same", spend=spend).value == 7
            assert db.variance("same", spend=spend).value == 0
            assert sum(db.histogram("same", bins=3, spend=spend).value.values()) in {0, 400}
        assert empty.count(spend=spend).value == 0
        assert empty.mean("age", spend=spend).value == 60
        assert empty.std("age", spend=spend).value == 0
        assert (empty.covariance(["age", "income"], spend=spend).value == 0).all()


def test_the_best_question_for_a_mean_follows_noise_and_relation_SR18():
    """Pure: the one-sided pair. Gaussian: count and centred sum. Public n and always present: the sum alone (SR18)."""
    stub = Stub(SCHEMA, PEOPLE, budget=BUDGET)
    assert isinstance(NamedAsks(stub).mean("age", spend=Epsilon(1)).reading, Mean)
    assert isinstance(NamedAsks(stub).mean("age", spend=Rho(1)).reading, CentredMean)
    known = Stub(SCHEMA, PEOPLE, unit=Unit(None, 1, "replace_one"), budget=BUDGET, size=400)
    whole = NamedAsks(known).mean(Col("age").fill(0), spend=Epsilon(1))
    assert isinstance(whole.reading, Average)
    assert whole.value == pytest.approx(column("age").sum() / 400)
    assert isinstance(
        NamedAsks(known).mean("age", spend=Epsilon(1)).reading, Mean
    )  # missing values make the number secret
    for options in ({"unit": Unit(), "size": 400}, {"unit": Unit("who", 2, "replace_one"), "size": 400}):
        db = NamedAsks(Stub(SCHEMA, PEOPLE, budget=BUDGET, **options))
        assert isinstance(db.mean(Col("age").fill(0), spend=Epsilon(1)).reading, Mean)


def test_intervals_know_how_far_values_lie_from_the_grid_T28():
    """Inside a variance an income has fewer units: half of one is part of its interval; whole ages lose nothing."""
    db = database_asks()
    assert db.std("age", spend=Epsilon(1)).reading.rounding == 0
    assert db.mean("age", spend=Epsilon(1)).reading.rounding == 0
    assert db.mean("income", spend=Rho(1)).reading.rounding == 0
    wide = db.std("income", spend=Epsilon(900)).reading
    assert 0 < wide.rounding <= 200_000 * Fraction(1, 2**15)
    assert db.covariance(["age", "income"], spend=Epsilon(1)).reading.rounding == Fraction(1, 2**16)


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda db: db.count(), "spend-missing"),
        (lambda db: db.count(spend=Epsilon(1), within=5), "bad-question"),
        (lambda db: db.mean("age", spend=Epsilon(1), within=5), "bad-question"),
        (lambda db: db.count(within=1, at_most=Epsilon(0.1)), "too-costly"),
        (lambda db: db.count(within=100, at_most=Queries(5)), "spend-kind"),
        (lambda db: db.count(within=float("nan")), "bad-loss"),
        (lambda db: db.count(within="5"), "bad-loss"),
        (lambda db: db.mean("age", within=5), "spend-missing"),
        (lambda db: db.mean("age", within=-5, at_most=Epsilon(1)), "bad-loss"),
        (lambda db: db.mean("age", within=0.001, at_most=Epsilon(1)), "too-costly"),
        (lambda db: db.mean("income", within=1e-4, at_most=Epsilon(1)), "too-costly"),
        (lambda db: db.sum("nobody", spend=Epsilon(1)), "unknown-column"),
        (lambda db: db.sum("city", spend=Epsilon(1)), "wrong-kind"),
        (lambda db: db.mean("name", spend=Epsilon(1)), "wrong-kind"),
        (lambda db: db.mean(1 / Col("age"), spend=Epsilon(1)), "unbounded"),
        (lambda db: db.count(40, spend=Epsilon(1)), "bad-question"),
        (lambda db: db.count("age >", spend=Epsilon(1)), "sql-syntax"),
        (lambda db: db.count("age", spend=Epsilon(1)), "wrong-kind"),
        (lambda db: db.count("age IN (SELECT age FROM people)", spend=Epsilon(1)), "sql-unsupported"),
        (lambda db: db.count(Col("city") == "Akko", spend=Epsilon(1)), "unknown-category"),
        (lambda db: db.count(by="name", spend=Epsilon(1)), "open-keys"),
        (lambda db: db.variance("age", ddof=2, spend=Epsilon(1)), "bad-question"),
        (lambda db: db.covariance(["age", "same"], spend=Epsilon(1)), "bad-question"),
        (lambda db: db.histogram("age", bins=0, spend=Epsilon(1)), "bad-literal"),
        (lambda db: db.histogram("age", bins=True, spend=Epsilon(1)), "bad-literal"),
        (lambda db: db.histogram("age", bins=[5], spend=Epsilon(1)), "bad-literal"),
        (lambda db: db.histogram("income", spend=Epsilon(1)), "wrong-kind"),
        (lambda db: db.histogram("visit", bins=3, spend=Epsilon(1)), "wrong-kind"),
        (lambda db: db.sql("SELECT age FROM people", spend=Epsilon(1)), "raw-rows"),
        (lambda db: db.sql("SELECT COUNT(*) FROM people"), "spend-missing"),
        (lambda db: db.explain("SELECT COUNT(*) FROM nowhere"), "unknown-table"),
        (lambda db: db.median("age"), "spend-missing"),
        (lambda db: db.sample_and_aggregate("mean", None, blocks=9, low=0, high=1, spend=Epsilon(1)), "bad-question"),
        (lambda db: db.distance_from_key(7, spend=Epsilon(1)), "bad-question"),
        (lambda db: db.occurring([None], spend=Epsilon(1)), "bad-question"),
        (lambda db: db.distance_from_key("age"), "spend-missing"),
        (lambda db: db.statistic("spread", spend=Epsilon(1)), "not-certified"),
        (lambda db: db.distance_from("sparse", spend=Epsilon(1)), "not-certified"),
        (lambda db: db.distance_from(None), "not-certified"),
        (lambda db: db.graph, "bad-question"),
        (lambda db: db["nobody"], "unknown-column"),
        (lambda db: db[["age", "nobody"]], "unknown-column"),
    ],
)
def test_a_refusal_costs_nothing(ask, code):
    """Each has its code, and no question reached the Oracle's rows (T12, T51)."""
    stub = Stub(SCHEMA, PEOPLE, budget=BUDGET)
    with pytest.raises(QuestionError) as refusal:
        ask(NamedAsks(stub))
    assert refusal.value.code == code
    bought_first = code == "too-costly" and len(stub.asked) == 1
    assert stub.asked == [] or bought_first


@pytest.mark.parametrize("ask", ["sum", "mean", "variance", "std", "median", "min", "max", "count_distinct"])
@pytest.mark.parametrize("ball", [sulq.within_l1, sulq.within_ball])
def test_a_vector_is_no_number_of_a_named_ask(ask: str, ball: object) -> None:
    """All its coordinates would be paid for and one shown. Controls: one coordinate is shown, and ask shows all."""
    asks = database_asks()
    with pytest.raises(QuestionError) as refusal:
        getattr(asks, ask)(ball([Col("age"), Col("same")], 10), spend=Epsilon(1))
    assert refusal.value.code == "wrong-kind"
    assert asks.spent == database_asks().spent
    assert asks.sum(ball([Col("age")], 10), spend=Epsilon(1)).columns == ("sum",)
    assert len(asks.ask(Sums((ball([Col("age"), Col("same")], 10),)), spend=Epsilon(1)).value) == 2


def test_under_sublinear_asks_need_no_spend_and_cost_queries():
    """Each scalar sum is a query; within has no price where the noise is fixed (S0.8, S0.9)."""
    db = database_asks(unit=Unit(None, 1, "replace_one"), budget=SubLinear(1, 1e-6, 50), size=400)
    assert db.count().spent == Queries(1)
    assert db.count(by="city").spent == Queries(4)  # the missing among them
    assert db.mean("age").spent == Queries(2)
    assert db.mean("age").value == pytest.approx(column("age").mean(), abs=1e-3)
    assert db.variance("age").spent == Queries(3)
    for ask in (lambda: db.count(within=5), lambda: db.mean("age", within=5, at_most=Queries(3))):
        with pytest.raises(QuestionError) as refusal:
            ask()
        assert refusal.value.code == "spend-kind"


def test_the_oracle_is_behind_the_desk():
    """Asking and foreseeing are the Oracle's own; facts, spent and remaining are its; columns are handles."""
    stub = Stub(SCHEMA, PEOPLE, budget=BUDGET)
    db = NamedAsks(stub)
    question = Sums((Lit(1),), None, (Col("smoker"),))
    assert isinstance(db.foresee(question, spend=Epsilon(1)), Plan)
    assert stub.asked == []
    assert db.ask(question, spend=Epsilon(1)).spent == Epsilon(1)
    assert db.facts is stub.facts
    assert db.remaining == BUDGET
    assert db.spent == EpsilonDelta.total(Fraction(0), Fraction(0))
    assert isinstance(db[["age", "income"]], ColumnChoice)
    assert db["smoker"].names == ("smoker",)


def test_histograms_choose_their_keys():
    """Categories and truths are their own bins; whole numbers too; a number of bins divides the declared range."""
    db = database_asks()
    assert list(db.histogram("city", spend=Epsilon(1)).value) == ["Lod", "Yafo", "Haifa"]
    assert list(db.histogram("smoker", spend=Epsilon(1)).value) == [False, True]
    assert len(db.histogram("age", spend=Epsilon(1)).value) == 121
    halves = list(db.histogram("income", bins=3, spend=Epsilon(1)).value)
    assert halves[0][0] == 0
    assert halves[-1][1] >= 200_000
    assert len(halves) == 3
    dates = db.histogram("visit", ["2020-01-01", "2020-07-01", "2020-12-31"], spend=Epsilon(1))
    assert sum(dates.value.values()) == 400
    vast = Schema.of("t", {"v": Int(2**53, 2**53)})
    assert list(NamedAsks(Stub(vast, [{"v": 2**53}])).histogram("v", bins=4, spend=Epsilon(1)).value.values()) == [1]
    assert isinstance(binned(db.facts, Col("age"), np.array([0.0, 60.5, 120.0])), Bins)


def test_names_of_a_desk_are_those_of_the_interface():
    """Everything an analyst may type is there."""
    named = {"count", "sum", "mean", "variance", "std", "covariance", "histogram", "quantile", "median", "min", "max"}
    written = {"count_distinct", "sql", "explain", "plan", "ask", "foresee", "facts", "remaining", "spent", "graph"}
    assert named | written <= set(dir(NamedAsks))


def towns(town: object) -> sulq.Database:
    """Three declared towns, people in one of them."""
    frame = pd.DataFrame({"town": ["Lod"] * 60, "age": [30, 50] * 30, "bmi": [20.0, 24.0, 28.0] * 20})
    columns = {"town": town, "age": sulq.Int(0, 100), "bmi": sulq.Real(10, 50)}
    return sulq.connect(frame, columns=columns, budget=EpsilonDelta(1000, 1e-3), synthetic=True)


@pytest.mark.parametrize(
    ("ask", "low", "high"),
    [
        (lambda db, **more: db.mean("age", **more), 0, 100),
        (lambda db, **more: db.median("age", **more), 0, 100),
        (lambda db, **more: db.min("age", **more), 0, 100),
        (lambda db, **more: db.max("age", **more), 0, 100),
        (lambda db, **more: db.variance("age", **more), 0, 2500),
        (lambda db, **more: db.std("age", ddof=1, **more), 0, 50 * 2**0.5),
    ],
)
@pytest.mark.parametrize("spend", [Epsilon(100), Rho(100)], ids=str)
def test_named_asks_of_groups_without_rows_are_unknown_SR18(ask, low, high, spend):
    """None in values, missing in frames, "unknown" in text, the whole range as interval; never the whole table."""
    with towns(["Akko", "Lod", "Yafo"]) as db:
        found = ask(db, by="town", spend=spend)
        assert [town for town, value in found.value.items() if value is None] == ["Akko", "Yafo", None]
        assert found.interval(0.3)[0]["Akko"] == low
        assert found.interval(0.3)[1]["Akko"] == pytest.approx(high)
        assert found.accuracy(0.05)["Akko"] == pytest.approx(high - low)
        assert found.to_dict()["value"].count(None) == 3
        assert found.to_pandas()["value"].isna().tolist() == [True, False, True, True]
        assert str(found.to_pandas(0.95)["value"].dtype) == "float64"
        assert found.to_arrow()["value"].null_count == 3
        assert repr(found).count("unknown") == 4  # three groups, and a line that says why
        assert "<td>unknown</td>" in found._repr_html_()
        assert ask(db, where=Col("age") > 90, spend=spend).value is not None
        assert ask(exact(db), by="town", spend=spend).value["Akko"] is None


def test_vectors_of_groups_without_rows_are_unknown_SR18():
    """Several quantiles and covariances: no number is a number."""
    with towns(["Akko", "Lod"]) as db:
        several = db.quantile("age", [0.25, 0.75], by="town", spend=Epsilon(100)).value
        assert np.isnan(several["Akko"]).all()
        assert not np.isnan(several["Lod"]).any()
        matrix = db.covariance(["age", "bmi"], by="town", spend=Epsilon(100)).value
        assert np.isnan(matrix["Akko"]).all()
        assert not np.isnan(matrix["Lod"]).any()


def test_sql_and_python_show_the_same_groups():
    """A key that can be missing is a group of its own in both; one that cannot is in neither."""
    for town, groups in ((sulq.Category(["Akko", "Lod"]), ["Akko", "Lod", None]),
                         (sulq.Category(["Akko", "Lod"], missing=False), ["Akko", "Lod"])):  # fmt: skip
        with towns(town) as db:
            asked = db.sql("SELECT town, COUNT(*) FROM data GROUP BY town", spend=Epsilon(1)).value
            assert [name for name, _ in asked] == groups
            assert list(db.count(by="town", spend=Epsilon(1)).value) == groups
            assert list(db.median("age", by="town", spend=Epsilon(1)).value) == groups
