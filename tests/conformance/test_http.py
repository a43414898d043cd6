"""Asked here and asked over HTTP, everything is answered alike: same values, bars and shapes, to the byte.

The noise is left out by test code, on made-up data: the shipped server has no such path (SR9). A part of sulq that
asks an Oracle belongs to the suite: a new public method of the named asks or a release without its program fails the
first test, as does a learner that takes none of the columns of tests/learn/programs.py, which make its program.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import sulq
import sulq.testing
from sulq import Epsilon, Rho, col, learn
from sulq.answers import wire
from sulq.answers.plan import Plan
from sulq.api.client import Client
from sulq.api.database import Database
from sulq.api.named_asks import NamedAsks
from sulq.errors import SulqError
from sulq.learn import LEARNERS
from sulq.learn.base import Learner
from sulq.service.web.app import create_app
from sulq.service.web.sql_answers import sql_json
from sulq.sql.answer import SqlAnswer
from sulq.sql.explain import Explanation
from sulq.sql.workload import Workload
from sulq.testing.exact import ExactOracle
from tests import counts
from tests.client.far import Loop
from tests.learn.programs import people, program
from tests.release.programs import PROGRAMS as RELEASED
from tests.service.door import Door
from tests.service.office import Office, survey
from tests.sql.queries import Grammar, opened, tables

PAY = Epsilon(1)
BATCH = 25


def line(db: NamedAsks) -> str:
    """What is learned of two columns, as text."""
    return json.dumps(sulq.learn.LinearRegression().fit(db[["age"]], db["income"], spend=PAY).to_json())


Program = Callable[[NamedAsks], object]
OLD = col("age") > 40
REPORT = {"title": "A", "table": [{"title": "All", "sql": "SELECT COUNT(*) AS rows FROM survey"}]}
PROGRAMS: dict[str, Program] = {
    "ask": lambda db: db.ask(sulq.Together((sulq.Sums((sulq.lit(1),)), sulq.Sums((col("age"),), OLD))), spend=PAY),
    "foresee": lambda db: db.foresee(sulq.Sums((sulq.lit(1),), by=(col("city"),)), spend=Rho(0.1)),
    "count": lambda db: db.count(OLD, by="city", spend=PAY),
    "count, a condition as text": lambda db: db.count("age > 40 AND city = 'Lod'", by=db["city"], spend=PAY),
    "mean, a condition of handles": lambda db: db.mean(
        db["income"], where=(db["age"] > 40) & (db["city"] == "Lod"), spend=PAY
    ),
    "a condition that is refused": lambda db: db.count("age > 40 GROUP BY city", spend=PAY),
    "count, priced by accuracy": lambda db: db.count(OLD, within=5, spend=None),
    "sum": lambda db: db.sum("income", where=col("city") == "Lod", spend=PAY),
    "histogram": lambda db: db.histogram("age", bins=12, spend=PAY),
    "mean": lambda db: db.mean("income", by="city", spend=PAY),
    "mean, priced by accuracy": lambda db: db.mean("income", within=50, at_most=Epsilon(5)),
    "variance": lambda db: db.variance("income", spend=PAY),
    "std": lambda db: db.std("income", by="city", spend=PAY),
    "covariance": lambda db: db.covariance(["age", "income"], spend=PAY),
    "quantile": lambda db: db.quantile("income", [0.25, 0.5, 0.75], spend=PAY),
    "median": lambda db: db.median("age", by="city", spend=PAY),
    "min": lambda db: db.min("age", spend=PAY),
    "max": lambda db: db.max("income", spend=PAY),
    "median, no interval": lambda db: db.median("income", spend=PAY, interval=False),
    "sql, no interval": lambda db: db.sql("SELECT MEDIAN(income) FROM survey", spend=PAY, interval=False),
    "ols": lambda db: repr(db.ols("income", ["age"], spend=PAY).to_dict()),
    "logit": lambda db: repr(db.logit(OLD, ["income"], spend=PAY).to_dict()),
    "ttest": lambda db: repr(db.ttest("income", OLD, spend=PAY).to_dict()),
    "proportions": lambda db: repr(db.proportions(OLD, "city", spend=PAY).to_dict()),
    "chi2": lambda db: repr(db.chi2([OLD, "city"], spend=PAY).to_pandas().to_dict()),
    "ols, too much": lambda db: db.ols("income", ["age"], spend=Epsilon(999)),
    "count_distinct": lambda db: db.count_distinct("age", spend=PAY),
    "mean, with its spread": lambda db: db.mean("income", by="city", sampling=True, spend=PAY).with_sampling(),
    "sum, with its squares": lambda db: db.sum("income", sampling=True, spend=PAY).with_sampling("rows"),
    "variance, with fourth moments": lambda db: db.variance("income", sampling=True, spend=PAY).with_sampling(),
    "count, of a population": lambda db: db.count(OLD, by="city", spend=PAY).with_sampling(),
    "median, of a population": lambda db: db.median("age", sampling=True, spend=PAY).with_sampling(),
    "max, of a population": lambda db: db.max("age", spend=PAY).with_sampling(),
    "corr": lambda db: db.corr(["age", "income"], spend=PAY).with_sampling(),
    "describe": lambda db: repr(db.describe(spend=PAY)),
    "report": lambda db: json.dumps(db.report(REPORT, spend=PAY).tables()["01-all"].to_pydict(), default=str),
    "describe_plan": lambda db: repr(db.describe_plan(["age", "city"], spend=PAY)),
    "sql, a line of a population": lambda db: db.sql(
        "SELECT city, REGR_SLOPE(income, age), AVG(age) FROM survey GROUP BY city", spend=PAY
    ).with_sampling(),
    "heavy_persons": lambda db: db.heavy_persons(spend=PAY),
    "sql": lambda db: db.sql("SELECT city, COUNT(*), AVG(income) FROM survey GROUP BY city", spend=PAY),
    "sql, priced by accuracy": lambda db: db.sql("SELECT AVG(age) FROM survey", within=3, at_most=Epsilon(5)),
    "sql, explained": lambda db: db.sql("EXPLAIN SELECT COUNT(*) FROM survey", spend=PAY),
    "explain": lambda db: db.explain("SELECT AVG(income) FROM survey WHERE age > 30", spend=PAY),
    "plan": lambda db: db.plan(["SELECT COUNT(*) FROM survey", "SELECT AVG(age) FROM survey"], spend=PAY),
    "plan, asked": lambda db: db.plan(["SELECT COUNT(*) FROM survey", "SELECT AVG(age) FROM survey"], spend=PAY).ask(),
    "afford": lambda db: repr(
        db.afford([("SELECT COUNT(*) FROM survey", PAY), sulq.Sums((sulq.lit(1),)), PAY], spend=PAY)
    ),
    "sql, open keys": lambda db: db.sql(OPEN, spend=sulq.EpsilonDelta(1, 1e-7)),
    "explain, open keys by a named law": lambda db: db.explain(OPEN, spend=sulq.EpsilonDelta(1, 1e-7), law="laplace"),
    "ask, open keys": lambda db: db.ask(
        sulq.OpenSums((), None, (col("income"),)), spend=sulq.EpsilonDelta(1, 1e-7), law="laplace"
    ),
    "count by a named law": lambda db: db.count(OLD, spend=PAY, law="laplace"),
    "count by a law that is not bought": lambda db: db.count(OLD, spend=PAY, law="gaussian"),
    "facts": lambda db: db.facts,
    "remaining": lambda db: db.remaining,
    "budget": lambda db: repr(db.budget).partition(" by ")[2].partition("\n")[2],
    "spent": lambda db: db.spent,
    "graph": lambda db: db.graph,
    "distance_from_key": lambda db: db.distance_from_key(["age", "city"], where=OLD, spend=PAY),
    "distance_from_order": lambda db: db.distance_from_order("age", spend=PAY),
    "statistic": lambda db: db.statistic("spread", spend=PAY),
    "distance_from": lambda db: db.distance_from("sparse", spend=PAY),
    "occurring": lambda db: db.occurring("city", spend=PAY),
    "sample_and_aggregate": lambda db: db.sample_and_aggregate("median", "age", blocks=5, low=0, high=99, spend=PAY),
    "ask, a point of a space": lambda db: db.ask(
        sulq.Holistic(sulq.ToUnique(("age",)), space=sulq.Box(0, 1000, 10)), spend=PAY
    ),
    "table": lambda db: db.table("survey").count(by="city", spend=PAY),
    "table, unknown": lambda db: db.mean("income", table="visits", spend=PAY),
    "view": lambda db: db.view("SELECT income, age > 40 AS old FROM survey").mean("income", by="old", spend=PAY),
    "view, in SQL": lambda db: db.view("SELECT income * 2 AS twice FROM survey").sql(
        "SELECT AVG(twice) FROM view", spend=PAY
    ),
    "view, learned": lambda db: line(db.view("SELECT age, income FROM survey WHERE age > 30")),
    "view, released rows": lambda db: db.view("SELECT city, COUNT(*) AS n FROM survey GROUP BY city"),
    "where": lambda db: db.where(OLD).median("income", spend=PAY),
    "split": lambda db: [part.count(spend=PAY) for part in db.split(test=0.25)],
    "ask, an estimator nobody named": lambda db: db.ask(
        sulq.Holistic(sulq.Aggregated("secret", ("age",), 3, 0, 1)), spend=PAY
    ),
    "an unknown column": lambda db: db.count(col("nothing") > 1, spend=PAY),
    "no spend": lambda db: db.sum("income", spend=None),
    "too much": lambda db: db.foresee(sulq.Sums((sulq.lit(1),)), spend=sulq.Queries(1)),
}
OPEN = "SELECT income, COUNT(*) AS n FROM survey GROUP BY income"
NO_ASK = {"asking"}  # puts the named asks before another Oracle


def told(found: object) -> object:
    """Everything a caller can see of an answer, as comparable text."""
    if isinstance(found, list):
        return [told(item) for item in found]
    if isinstance(found, SqlAnswer):
        return sql_json(found), found.to_dict(0.9), repr(found)
    if isinstance(found, (Explanation, Workload)):
        return repr(found)
    text = wire.encode(found)
    return (
        text if isinstance(found, Plan) or not hasattr(found, "accuracy") else (text, repr(found), found.to_dict(0.9))
    )


def outcome(program: Program, database_asks: NamedAsks) -> object:
    """What a program gives, or how it is refused."""
    try:
        return told(program(database_asks))
    except SulqError as error:
        return type(error).__name__, error.code, error.message, error.remedy


class ForAll(ExactOracle):
    """Without noise, and alike for every analyst."""

    def for_analyst(self, name: str, *, scope: str | None = None, dataset: str = "") -> ForAll:
        return self

    def stored(self, question: object, *, spend: object = None) -> None:
        """Nothing is stored."""


def without_noise(folder: Path, database: Database, name: str = "survey") -> Office:
    """A clerk whose curator answers exactly; possible for synthetic data alone, and only from a test."""
    office = Office(folder, **{name: database})
    office.datasets[name].curator = exact = ForAll(database._oracle.curator)
    exact.curator = database._oracle.curator  # which says how long an ask may take
    return office


@contextmanager
def far(office: Office, name: str = "survey") -> Iterator[Client]:
    """The same curator at the far end of HTTP."""
    with (
        Loop(create_app(office.call, office.service, console=False)) as loop,
        Client(f"http://localhost/{name}", office.tokens["owner"], transport=loop.transport) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NamedAsks, Client]]:
    with survey(budget=sulq.EpsilonDelta(5, 1e-6)) as database:
        office = without_noise(tmp_path_factory.mktemp("far"), database)
        with far(office) as client:
            yield sulq.testing.exact(database), client
        office.access.close()


def members(package: str, table: str) -> set[str]:
    """The names in a tuple of a part that may not exist yet."""
    if importlib.util.find_spec(package) is None:
        return set()
    return {item.__name__ for item in getattr(importlib.import_module(package), table)}


def test_everything_that_asks_is_in_the_suite() -> None:
    """Public methods of the named asks, learners and releases; a new one fails this until it has a program."""
    named = {name.partition(",")[0] for name in PROGRAMS}
    methods = {name for name, _ in inspect.getmembers(NamedAsks) if not name.startswith("_")} - NO_ASK
    assert methods <= named
    assert [program(learner).learner for learner in LEARNERS] == list(LEARNERS)
    assert members("sulq.release", "RELEASES") | members("sulq.select", "SELECTIONS") <= set(RELEASED)


@pytest.mark.parametrize("name", PROGRAMS)
def test_over_http_is_as_here(pair: tuple[NamedAsks, Client], name: str) -> None:
    """The same outcome, to the byte: value, intervals, shapes, receipts, and refusals with their texts."""
    here, there = pair
    assert outcome(PROGRAMS[name], there) == outcome(PROGRAMS[name], here)


@pytest.fixture(scope="module")
def far_people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NamedAsks, Client, Door]]:
    with people() as database:
        office = without_noise(tmp_path_factory.mktemp("people"), database)
        with far(office) as client, Door(office) as door:
            yield sulq.testing.exact(database), client, door


def written(model: Learner) -> bytes:
    """All a model holds, as one text."""
    return json.dumps(model.to_json(), sort_keys=True, allow_nan=False).encode()


def learned(door: Door, body: object) -> bytes:
    """The model that a job finds."""
    key = door.post("/v1/datasets/survey/jobs", body, "owner").json()["id"]
    deadline = time.monotonic() + 60
    while (told := door.get(f"/v1/jobs/{key}", "owner").json())["state"] in ("waiting", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert told["state"] == "done", told["error"]
    return json.dumps(told["result"]["model"], sort_keys=True).encode()


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
def test_a_learner_learns_over_http_as_here(far_people: tuple[NamedAsks, Client, Door], learner: type[Learner]) -> None:
    """The same model, byte for byte: fitted here, question by question over HTTP, and as a job of the server.

    Control: another spend is another model, if only in what it says it cost.
    """
    here, there, door = far_people
    wanted = written(program(learner).fit(here))
    assert written(program(learner).fit(there)) == wanted
    assert learned(door, program(learner).job()) == wanted
    assert written(program(learner).fit(here, spend=Epsilon(3))) != wanted


def test_a_model_is_judged_over_http_as_here(far_people: tuple[NamedAsks, Client, Door]) -> None:
    """The same scores, tables and curves, question by question; a scaled column and its handles too."""
    here, there, _ = far_people
    names, label = ["age", "income", "city", "smoker"], "ill"
    model = learn.LogisticRegression(max_iter=0).fit(here[names], here[label], spend=PAY)

    def told(db: NamedAsks) -> list[object]:
        found = learn.evaluate(model, db[names], db[label], spend=PAY)
        scaled = learn.StandardScaler().fit(db[["age", "income"]], spend=PAY).transform(db[["age", "income"]])
        groups = learn.KMeans(2).fit(scaled, spend=PAY)
        return [
            model.score(db[names], db[label], spend=PAY).value,
            found.confusion.counts.tolist(),
            {name: answer.value for name, answer in found.measures().items()},
            found.calibration.answer.value,
            groups.score(scaled, spend=PAY).value,
            db.count(by=model.prediction_row(), spend=PAY).value,
        ]

    assert repr(told(there)) == repr(told(here))
    other = learn.LogisticRegression(max_iter=0).fit(here[["age"]], here[label], spend=PAY)
    assert other.score(there[["age"]], there[label], spend=PAY).value != told(there)[0]  # control


def test_the_comparison_sees_a_difference(pair: tuple[NamedAsks, Client]) -> None:
    """Control: another filter, another spend and another refusal are other outcomes."""
    here, _ = pair
    for one, other in (
        (lambda db: db.count(OLD, spend=PAY), lambda db: db.count(col("age") > 41, spend=PAY)),
        (lambda db: db.count(OLD, spend=PAY), lambda db: db.count(OLD, spend=Epsilon(2))),
        (lambda db: db.count(col("x") > 1, spend=PAY), lambda db: db.count(col("y") > 1, spend=PAY)),
    ):
        assert outcome(one, here) != outcome(other, here)
        assert outcome(one, here) == outcome(one, here)


def test_random_queries_over_http_are_answered_as_here(tmp_path: Path) -> None:
    """Queries of the grammar over several tables, compiled at the client and at the server: one answer.

    Bar: 0 differences (2,000 queries in the audit). Control: the test above.
    """
    planned = counts.count("random SQL over HTTP", short=25, long=2_000)
    for number in range(-(-planned // BATCH)):
        rng = counts.generator(f"http {number}")
        grammar = Grammar(rng)
        folder = tmp_path / str(number)
        folder.mkdir()
        with opened(tables(rng)) as database:
            office = without_noise(folder, database)
            with far(office) as client, Door(office) as door:
                here = sulq.testing.exact(database)
                for _ in range(BATCH):
                    sql = grammar.query()
                    answer = here.sql(sql, spend=PAY)
                    assert told(client.sql(sql, spend=PAY)) == told(answer), sql
                    body = {"sql": sql, "spend": {"epsilon": 1}}
                    assert door.post("/v1/datasets/survey/sql", body, "owner").json() == sql_json(answer), sql


JOINED = (
    "SELECT v.cost, v.minutes, p.age, p.married, r.zone FROM people p JOIN visits v ON p.pid = v.pid "
    "JOIN regions r ON p.region = r.code"
)
ROWS: dict[str, Program] = {
    "a table": lambda db: db.table("visits").mean("cost", by="kind", spend=PAY),
    "a table by its name": lambda db: db.median("minutes", table="visits", spend=PAY),
    "a column that another table has": lambda db: db.sum("cost", spend=PAY),
    "a join": lambda db: db.view(JOINED).mean("cost", by=["zone", "married"], spend=PAY),
    "a person's rows": lambda db: db.view("SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid").max("n", spend=PAY),
    "both parts": lambda db: [part.table("visits").count(by="kind", spend=PAY) for part in db.split(test=0.3)],
    "both parts of a join": lambda db: [part.sum("cost", spend=PAY) for part in db.view(JOINED).split(test=0.3)],
    "SQL on a part": lambda db: db.split()[0].sql(f"SELECT AVG(cost) AS a FROM ({JOINED}) AS t", spend=PAY),
    "what is learned of a part": lambda db: json.dumps(
        sulq.learn.LinearRegression().fit(
            (rows := db.view(JOINED).split()[0])[["age", "minutes"]], rows["cost"], spend=PAY, bounds="auto"
        ).to_json()
    ),
    "handles": lambda db: json.dumps(
        sulq.learn.KMeans(2).fit(db[["visits.cost", "visits.minutes"]].where(col("paid")), spend=PAY).to_json()
    ),
    "a release": lambda db: repr(
        sulq.release.contingency(db.table("visits"), ["kind", "paid"], [["kind"]], spend=PAY).marginal(["kind"]).values
    ),
    "X and y of two tables": lambda db: sulq.learn.LinearRegression().fit(db[["age"]], db["visits.cost"], spend=PAY),
}  # fmt: skip


def test_some_of_the_rows_are_asked_over_http_as_here(tmp_path: Path) -> None:
    """One table of several, joins, parts of the people, and what is learned and released of them; and the refusals."""
    with opened(tables(counts.generator("rows over http"))) as database:
        office = without_noise(tmp_path, database)
        with far(office) as client:
            here = sulq.testing.exact(database)
            for name, program_of in ROWS.items():
                found = outcome(program_of, here)
                assert outcome(program_of, client) == found, name
                refused = name in ("a column that another table has", "X and y of two tables")
                assert (isinstance(found, tuple) and found[0] == "QuestionError") == refused, (name, found)
        office.access.close()
