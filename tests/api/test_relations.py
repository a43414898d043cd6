"""One table, a derived one, rows under a condition and two parts of the people, asked as a database is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, Unit, col
from sulq.api.database import Database
from sulq.errors import AccessDenied, QuestionError
from sulq.learn import KMeans, LinearRegression
from sulq.testing import exact

PAY = Epsilon(1)
N = 400
RNG = np.random.default_rng(3)
PEOPLE = pd.DataFrame({"pid": range(N), "age": RNG.integers(18, 95, N), "region": RNG.integers(1, 5, N)})
VISITS = pd.DataFrame(
    {
        "patient": RNG.integers(0, N, 3 * N),
        "cost": RNG.integers(0, 100, 3 * N).astype(float),
        "kind": RNG.choice(["eye", "skin"], 3 * N),
        "year": RNG.integers(2000, 2005, 3 * N),
    }
)
REGIONS = pd.DataFrame({"code": [1, 2, 3, 4], "zone": ["n", "n", "s", "s"]})
COLUMNS = {
    "people": {"age": (0, 120), "region": (1, 4)},
    "visits": {"cost": (0.0, 100.0), "kind": ["eye", "skin"], "year": (2000, 2004)},
    "regions": {"code": (1, 4), "zone": ["n", "s"]},
}
JOIN = (
    "SELECT v.cost, v.kind, p.age, r.zone FROM visits v JOIN people p ON v.patient = p.pid "
    "JOIN regions r ON p.region = r.code"
)
HEIGHT = "No column 'height' is declared"
THERE = """No column 'year' in people; table visits has it. Ask there: db.table("visits"), table="visits", or SQL."""
OTHER = "SELECT COUNT(*) AS n FROM people"


def opened(rows: int = 20, **options: object) -> Database:
    """People, their visits under another name for the person, and public regions; of a person all rows are kept."""
    return sulq.connect(
        {"people": PEOPLE, "visits": VISITS, "regions": REGIONS},
        columns=COLUMNS,
        **{
            "unit": Unit("pid", rows=rows),
            "persons": {"visits": "patient"},
            "keys": {"people": "pid", "regions": "code"},
            "public": ["regions"],
            "budget": EpsilonDelta(900, 1e-5),
            "synthetic": True,
        }
        | options,
    )


@pytest.fixture(scope="module")
def db():
    """The tables, opened once."""
    with opened() as found:
        yield found


ASKS = {
    "count": lambda db, **more: db.count(by="kind", spend=PAY, **more),
    "sum": lambda db, **more: db.sum("cost", spend=PAY, **more),
    "histogram": lambda db, **more: db.histogram("year", spend=PAY, **more),
    "mean": lambda db, **more: db.mean("cost", by="kind", spend=PAY, **more),
    "variance": lambda db, **more: db.variance("cost", spend=PAY, **more),
    "std": lambda db, **more: db.std("cost", spend=PAY, **more),
    "covariance": lambda db, **more: db.covariance(["cost", "year"], spend=PAY, **more),
    "quantile": lambda db, **more: db.quantile("cost", [0.1, 0.5], spend=PAY, **more),
    "median": lambda db, **more: db.median("year", spend=PAY, **more),
    "min": lambda db, **more: db.min("year", spend=PAY, **more),
    "max": lambda db, **more: db.max("cost", spend=PAY, **more),
    "count_distinct": lambda db, **more: db.count_distinct("year", spend=PAY, **more),
}


@pytest.mark.parametrize("name", ASKS)
def test_an_ask_of_a_table_is_that_of_the_table_alone(db, name: str) -> None:
    """By `db.table` and by `table=`, exactly what a database of nothing but the table says. Control: other rows."""
    alone = sulq.connect(
        VISITS, table="visits", columns=COLUMNS["visits"], unit=Unit("patient", rows=20), budget=Epsilon(9),
        synthetic=True,
    )  # fmt: skip
    with alone:
        wanted = np.array(list(_flat(ASKS[name](exact(alone)).value)), dtype=float)
        for found in (ASKS[name](exact(db).table("visits")), ASKS[name](exact(db), table="visits")):
            assert np.array_equal(np.array(list(_flat(found.value)), dtype=float), wanted, equal_nan=True)
        part = exact(db).table("visits").where(col("year") > 2002)
        assert list(_flat(ASKS[name](part).value)) != list(wanted) or name in ("max", "quantile")


def _flat(value: object):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, np.ndarray)):
        for item in value:
            yield from _flat(item)
    else:
        yield np.nan if value is None else value


def test_equal_questions_are_one_by_whatever_way_they_are_asked_SR12(db) -> None:
    """The second is free: of a table, under a condition, of a view of the same columns. Control: another condition."""
    assert not db.table("visits").count(col("year") > 2003, spend=PAY).reused
    for again in (
        db.count(col("year") > 2003, table="visits", spend=PAY),
        db.table("visits").where(col("year") > 2003).count(spend=PAY),
        db.view("SELECT kind, year FROM visits WHERE year > 2003").count(spend=PAY),
    ):
        assert again.reused
    assert db.view(JOIN).mean("cost", by="zone", spend=PAY).spent == PAY
    assert db.view(JOIN).mean("cost", by="zone", spend=PAY).reused
    assert not db.count(col("year") > 2002, table="visits", spend=PAY).reused
    train, _ = db.split(test=0.25)
    assert not train.count(spend=PAY).reused
    assert db.split(test=0.25)[0].count(spend=PAY).reused
    assert not db.split(test=0.25, salt=1)[0].count(spend=PAY).reused


def test_a_join_is_asked_as_a_table_is(db) -> None:
    """Means by a public table's column, medians, people: those of the joined frame."""
    frame = VISITS.merge(PEOPLE, left_on="patient", right_on="pid").merge(REGIONS, left_on="region", right_on="code")
    view = exact(db).view(JOIN)
    assert view.facts.table == "view"
    means = view.mean("cost", by="zone").value
    for zone, mean in frame.groupby("zone")["cost"].mean().items():
        assert means[zone] == pytest.approx(mean, abs=1e-3)
    assert view.count_distinct("pid").value == frame["pid"].nunique()
    assert view.sql("SELECT COUNT(*) AS n FROM view WHERE age > 40").value == (frame["age"] > 40).sum()
    assert exact(db.view(JOIN)).count().value == len(frame)


def test_one_row_for_each_person_has_a_smaller_price(db) -> None:
    """A person-level table: bounds that follow from the rows of a person, one of which moves an answer."""
    view = db.view("SELECT patient, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY patient", name="each")
    assert view.facts.schema.find("n").hi == 20
    assert view.facts.schema.find("total").hi == 2000
    each = VISITS.groupby("patient")["cost"].sum()
    assert exact(view).mean("total").value == pytest.approx(each.mean(), abs=0.01)
    assert view.foresee(sulq.Sums((sulq.lit(1),)), spend=PAY).parts[0].sensitivity == (1,)
    assert db.table("visits").foresee(sulq.Sums((sulq.lit(1),)), spend=PAY).parts[0].sensitivity == (20,)
    assert exact(view).sql("SELECT AVG(n) AS a FROM each").value == pytest.approx(3 * N / len(each))


def test_handles_are_of_the_table_that_is_named(db) -> None:
    """`db["visits.cost"]`, lists of them, and those of a table: X and y of one, learned as there."""
    assert db["visits.cost"].names == ("cost",)
    assert repr(db[["visits.cost", "visits.year"]]) == "Columns(cost, year of visits; private)"
    assert db["people.age"].oracle is db["age"].oracle
    asks = exact(db)
    here = LinearRegression().fit(asks[["visits.year"]], asks["visits.cost"], spend=PAY)
    table = asks.table("visits")
    again = LinearRegression().fit(table[["year"]], table["cost"], spend=PAY)
    assert here.coef_ == pytest.approx(again.coef_)
    mixed = LinearRegression().fit(db[["visits.year"]], db["visits.cost"], spend=Rho(1))
    assert float(mixed.spent_.rho) == pytest.approx(1)


def test_a_name_with_a_dot_is_a_column_where_there_is_one() -> None:
    """The first table's own column is meant before another table's; what may be two is refused with both ways."""
    frame = pd.DataFrame({"pid": [1, 2], "b.c": [1, 2], "d.e": [5, 6]})
    other = pd.DataFrame({"pid": [1, 2], "c": [3, 4], "e": [1, 1], "x.y": [1, 2]})
    third = pd.DataFrame({"pid": [1, 2], "y": [7, 8]})
    with sulq.connect(
        {"a": frame, "d": other, "d.x": third},
        columns={
            "a": {"b.c": (0, 9), "d.e": (0, 9)},
            "d": {"c": (0, 9), "e": (0, 9), "x.y": (0, 9)},
            "d.x": {"y": (0, 9)},
        },
        unit=Unit("pid", rows=2), budget=Epsilon(9), synthetic=True,
    ) as db:  # fmt: skip
        assert db["b.c"].names == ("b.c",)
        assert db["a.b.c"].names == ("b.c",)
        assert db["d.e"].names == ("d.e",)
        assert exact(db).sum("d.e").value == 11
        assert db["d.c"].oracle.facts.table == "d"
        assert exact(db).sum("c", table="d").value == 7
        with pytest.raises(QuestionError, match="several columns") as refused:
            db["d.x.y"]
        assert """db.table('d')['x.y'] or db.table('d.x')['y']""" in refused.value.remedy
        assert db.table("d")["x.y"].names == ("x.y",)


REFUSED = {
    "of another table": (lambda db: db.count(by="year", spend=PAY), THERE),
    "in a condition": (lambda db: db.mean("age", where=col("kind") == "eye", spend=PAY), "table visits has it"),
    "of a handle": (lambda db: db[["age", "cost"]], "No column 'cost' in people; table visits has it"),
    "of the first table, elsewhere": (lambda db: db.sum("age", table="visits", spend=PAY), "table people has it"),
    "of a condition alone": (lambda db: db.where(col("year") > 2), "table visits has it"),
    "of nobody": (lambda db: db.sum("height", spend=PAY), HEIGHT),
    "a column of none": (lambda db: db["visits.height"], f"{HEIGHT} (declared: cost, kind, year)"),
    "two tables": (lambda db: db[["age", "visits.cost"]], "These are columns of people and visits."),
    "a table": (lambda db: db.table("bills"), "No table 'bills' is registered here"),
    "no name": (lambda db: db.table(3), "by name"),
    "a view's name": (lambda db: db.view(JOIN, name=""), "named by a text"),
    "no condition": (lambda db: db.where(True), "A condition is a text or built from columns"),
    "a number as a condition": (lambda db: db["age"].where(col("age") + 1), "is not a condition"),
    "another table in SQL": (lambda db: db.table("visits").sql(OTHER, spend=PAY), "people"),
    "a part": (lambda db: db.split(test=1.5), "between 0 and 1"),
    "a small part": (lambda db: db.split(test=1e-9), "at least 1/1000"),
    "a salt": (lambda db: db.split(salt=-1), "whole number"),
    "public rows": (lambda db: db.table("regions").split(), "Public rows have no people"),
    "columns": (lambda db: db[3], "by name"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_is_wrong_and_cost_nothing(db, name: str) -> None:
    """From public facts alone, with what to do."""
    ask, said = REFUSED[name]
    before = db.spent
    with pytest.raises(QuestionError) as refused:
        ask(db)
    assert said in f"{refused.value.message} {refused.value.remedy}"
    assert db.spent == before


def test_what_is_learned_is_of_one_tables_rows(db) -> None:
    """X of one table and y of another, of a part and of all, and of two databases: refused with what to do."""
    train, test = db.split(test=0.3)
    rows = db.view(JOIN)
    over = col("age") > 40
    with opened() as other:
        for X, y, said in (
            (db[["visits.year"]], db["age"], "X is of table visits and y of people"),
            (train[["age"]], test["region"], "different rows of people"),
            (db[["age"]].where(over), db["region"], "different rows of people"),
            (rows[["age"]], db.view(f"{JOIN} WHERE p.age > 40")["cost"], "different rows of view"),
            (db[["age"]], other["region"], "columns of one database"),
        ):
            with pytest.raises(QuestionError, match=said) as refused:
                LinearRegression().fit(X, y, spend=PAY)
            assert refused.value.remedy
    LinearRegression().fit(db[["age"]].where(over), db["region"].where(col("age") > 40), spend=PAY)
    LinearRegression().fit(train.table("visits")[["year"]], train["visits.cost"], spend=PAY)


def test_two_parts_are_all_the_people_and_no_person_is_in_both_SR11(db) -> None:
    """All rows of a person lie in one part, in every table and every join; parts of a part are parts."""
    asks = exact(db)
    train, test = asks.split(test=0.25)
    numbers = [
        (asks.count(), train.count(), test.count()),
        *((part.count(table="visits") for part in (asks, train, test)),),
        *((part.view(JOIN).count() for part in (asks, train, test)),),
        *((part.count_distinct("patient", table="visits") for part in (asks, train, test)),),
        *((asks.view(JOIN).count(), *(part.count() for part in asks.view(JOIN).split(test=0.25))),),
        *((train.count(), *(part.count() for part in train.split(test=0.5))),),
    ]
    for whole, one, other in ((item.value for item in several) for several in numbers):
        assert whole == one + other
        assert 0 < other < whole
    sql = "SELECT COUNT(*) AS n FROM visits v JOIN people p ON v.patient = p.pid"
    assert asks.sql(sql).value == train.sql(sql).value + test.sql(sql).value
    assert train.count(table="regions").value == asks.count(table="regions").value == 4
    assert 0.1 < test.count().value / N < 0.4
    assert train.facts.size is None


def test_a_model_is_learned_of_one_part_and_asked_of_the_other(db) -> None:
    """The errors of a model are asked of people that it has not seen."""
    train, test = db.view(JOIN).split(test=0.3)
    model = KMeans(2).fit(train[["age", "cost"]], spend=PAY)
    assert model.cluster_centers_.shape == (2, 2)
    assert test.mean("cost", spend=PAY).spent == PAY


@pytest.mark.parametrize(
    ("unit", "able"),
    [
        (Unit(), False),
        (Unit(None, 1, "replace_one"), True),
        (Unit(None, 1, "zero_out"), True),
        (Unit("pid", 2), True),
        (Unit("pid", 2, "replace_one"), True),
        (Unit("pid", 1, "zero_out"), True),
    ],
    ids=str,
)
def test_rows_are_divided_where_neighbours_leave_them_in_place_SR11(unit: Unit, *, able: bool) -> None:
    """Elsewhere refused before anything is asked, with what the owner can declare. Control: SR11's own refusal."""
    with sulq.connect(PEOPLE, columns=COLUMNS["people"], unit=unit, budget=Epsilon(9), synthetic=True) as db:
        if able:
            train, test = exact(db).split(test=0.2)
            assert train.count().value + test.count().value == exact(db).count().value
            assert db.split()[0].count(spend=PAY).spent == PAY
            each = db.view("SELECT age * 2 AS twice FROM data WHERE region > 1").split()[1]
            assert each.mean("twice", spend=PAY).spent == PAY
            return
        with pytest.raises(QuestionError, match="nothing to be divided by") as refused:
            db.split()
        assert refused.value.code == "needs-position"
        with pytest.raises(QuestionError, match="bucket"):
            db.count(sulq.bucket(2) == 0, spend=PAY)


def test_a_declared_size_goes_no_further_than_its_table_SR6() -> None:
    """Of a fixed number of rows a mean is their sum over it; of some of the rows a count is bought too."""
    with sulq.connect(
        PEOPLE.fillna(0), columns={"age": sulq.Int(0, 120, missing=False), "region": (1, 4)},
        unit=Unit(None, 1, "replace_one"), budget=Epsilon(900), size=N, synthetic=True,
    ) as db:  # fmt: skip
        assert len(db.mean("age", spend=PAY).released.noise) == 1
        asks = exact(db)
        some = PEOPLE["age"] > 60
        for part, rows in (
            (asks.where(col("age") > 60), PEOPLE[some]),
            (asks.view("SELECT age FROM data WHERE age > 60"), PEOPLE[some]),
            (asks.view("SELECT age, region FROM data"), PEOPLE),
        ):
            assert part.facts.size is None
            assert part.mean("age").value == pytest.approx(rows["age"].mean(), abs=0.05)
            assert part.variance("age").value == pytest.approx(rows["age"].var(ddof=0), abs=0.5)
        train, test = asks.split(test=0.3)
        means = [part.mean("age").value * part.count().value for part in (train, test)]
        assert sum(means) == pytest.approx(PEOPLE["age"].sum(), rel=1e-3)


def test_releases_and_choices_take_some_of_the_rows(db, tmp_path: Path) -> None:
    """A contingency table of a table, a published query of a view, a chosen category, and statistics by chosen rows."""
    visits = exact(db).table("visits")
    table = sulq.release.contingency(visits, ["kind", "year"], [["kind"]], spend=PAY)
    assert sum(table.marginal(["kind"]).to_dict()["value"]) == pytest.approx(len(VISITS), abs=1)
    told = sulq.release.publish(db.view(JOIN), ["SELECT zone, COUNT(*) AS n FROM view GROUP BY zone"], spend=PAY)
    assert told.paid.spent == PAY
    told.save(tmp_path / "told")
    assert repr(sulq.release.load(tmp_path / "told")[0]) == repr(told[0])
    chosen = sulq.select.choose(visits.where(col("year") > 2001), "kind", spend=PAY)
    assert chosen.candidate == VISITS["kind"][VISITS["year"] > 2001].mode()[0]
    phi = sulq.learn.StatisticalQueries(visits, spend=Epsilon(100), queries=4, beta=0.05).stat(
        col("kind") == "eye", 0.2
    )
    assert phi == pytest.approx((VISITS["kind"] == "eye").mean(), abs=0.01)


def test_forecasts_and_plans_are_of_these_rows(db) -> None:
    """`afford`, `explain`, `foresee` and `plan` on a table and a view; nothing is spent."""
    view, before = db.view(JOIN), db.spent
    assert view.afford(["SELECT AVG(cost) AS a FROM view", PAY], spend=PAY).fits
    assert "over view" in str(view.explain("SELECT AVG(cost) AS a FROM view", spend=PAY))
    assert len(view.plan(["SELECT AVG(cost) AS a FROM view", "SELECT COUNT(*) AS n FROM view"], spend=PAY).spends) == 2
    assert view.remaining == db.remaining
    assert view.budget.remaining == db.budget.remaining
    assert "asks of view" in repr(view)
    assert db.spent == before


def test_bounds_are_searched_on_these_rows(db) -> None:
    """`bounds="auto"` for an ask and for a fit."""
    view = db.view(JOIN)
    assert view.mean("cost", spend=PAY, bounds="auto").clips
    assert LinearRegression().fit(view[["age"]], view["cost"], spend=PAY, bounds="auto").bounds_
    assert db.mean("cost", table="visits", within=5, at_most=Epsilon(20)).spent.exact > 0


def test_graphs_and_whole_tables_are_asked_by_their_name() -> None:
    """A second table's edges, keys and heavy persons; of a derived table there is none of them."""
    edges = pd.DataFrame({"pid": [1, 1, 2, 3], "u": [1, 2, 3, 1], "v": [2, 3, 1, 4]})
    with sulq.connect(
        {"people": pd.DataFrame({"pid": [1, 2, 3], "age": [1, 2, 3]}), "edges": edges},
        columns={"people": {"age": (0, 9)}, "edges": {"u": (1, 4), "v": (1, 4)}},
        unit=Unit("pid", rows=2), budget=Epsilon(90), synthetic=True,
    ) as db:  # fmt: skip
        asks = exact(db)
        assert asks.table("edges").distance_from_key("u", spend=PAY).value == 1
        assert list(asks.table("edges").heavy_persons(spend=PAY).value) == [0, 3]
        assert asks.table("edges").where(col("v") > 2).distance_from_key("u", spend=PAY).value == 0
        with pytest.raises(QuestionError, match="not of a derived one"):
            db.view("SELECT u + 1 AS x FROM edges").distance_from_key("x", spend=PAY)
        with pytest.raises(QuestionError, match="leave where= and space= out"):
            db.where(col("age") > 1).heavy_persons(spend=PAY)
    columns = {"u": sulq.Int(1, 4), "v": sulq.Int(1, 4)}
    with sulq.connect(edges, columns=columns, graph=("u", "v"), budget=Epsilon(90), synthetic=True) as db:
        asks = exact(db)
        assert asks.graph.triangles(spend=PAY).value == 1
        assert asks.where(col("v") > 1).graph.triangles(spend=PAY).value == 0


@pytest.mark.parametrize(
    ("budget", "spend"),
    [(Epsilon(90), PAY), (Rho(9), Rho(0.5)), (EpsilonDelta(90, 1e-5), EpsilonDelta(1, 1e-7))],
    ids=str,
)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one", "zero_out"])
def test_empty_tables_are_answered_SR6(budget: object, spend: object, neighbors: str) -> None:
    """Whatever budget and neighbours: no row, no person, one class."""
    with sulq.connect(
        {"people": PEOPLE.head(0), "visits": VISITS.head(0), "regions": REGIONS},
        columns=COLUMNS, unit=Unit("pid", 3, neighbors), persons={"visits": "patient"},
        keys={"people": "pid", "regions": "code"}, public=["regions"], budget=budget,
    ) as db:  # fmt: skip
        train, test = db.view(JOIN).split()
        assert test.mean("cost", by="zone", spend=spend).value
        assert train.count(spend=spend).spent
        assert LinearRegression().fit(train[["age"]], train["cost"], spend=spend).fitted


def test_a_sublinear_budget_is_for_sums_of_these_rows_too() -> None:
    """Counted in queries; what is printed of the rows says no size that is not declared of them."""
    with sulq.connect(
        {"people": PEOPLE, "visits": VISITS}, columns={name: COLUMNS[name] for name in ("people", "visits")},
        unit=Unit("pid", 3), persons={"visits": "patient"}, keys={"people": "pid"}, size={"people": N},
        budget=sulq.SubLinear(epsilon=1, delta=1e-4, queries=50, calibration="posterior"),
    ) as db:  # fmt: skip
        assert db.table("visits").count(by="kind").spent == sulq.Queries(3)
        assert "nothing can be answered" not in str(db.table("visits").facts)


def test_no_door_leads_to_rows_without_noise_SR9() -> None:
    """Of data that is not synthetic neither a table nor a view is asked exactly."""
    with opened(synthetic=False) as db:
        for asks in (db.table("visits"), db.view(JOIN), db.split()[0]):
            with pytest.raises(AccessDenied):
                exact(asks).count()
