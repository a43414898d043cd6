"""Questions in SQL against the same SQL in raw DuckDB over the same Parquet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb

import sulq
from benchmarks import data
from benchmarks.report import Line, Report
from benchmarks.timing import interleave
from sulq import Epsilon, Unit
from sulq.sql.compile import compile as compiled
from sulq.sql.released.render import prepare

ROUNDS = 9
SPEND = Epsilon(0.001)
BUDGET = Epsilon(900)
FLOOR = 0.020  # seconds a plan may take whatever DuckDB's own takes

GROUPED = {
    "count, sum and mean in 50 groups": "SELECT region, COUNT(*), SUM(income), AVG(income) FROM {0} GROUP BY region",
    "two means and a deviation in 50 groups": (
        "SELECT region, AVG(income), AVG(age), STDDEV_POP(age) FROM {0} WHERE smoker GROUP BY region"
    ),
    "filtered counts in 50 groups": (
        "SELECT region, COUNT(*) FILTER (WHERE age > 40), COUNT(*) FILTER (WHERE smoker), SUM(income) FROM {0} "
        "GROUP BY region ORDER BY 2 DESC LIMIT 10"
    ),
}
JOINED = (
    "SELECT p.sex, COUNT(*), AVG(v.income) FROM {people} p JOIN {visits} v ON p.person = v.person "
    "WHERE v.age > 30 GROUP BY p.sex"
)


def grouped(report: Report, folder: Path, con: duckdb.DuckDBPyConnection) -> None:
    """Grouped queries of several aggregates, and what parsing and planning them takes."""
    path = folder / "survey.parquet"
    if not path.exists():
        data.survey(path)
    with sulq.connect(path, columns=data.COLUMNS, budget=BUDGET, synthetic=True, ledger=folder / "sql.ledger") as db:
        db.prepare()
        for what, sql in GROUPED.items():
            raw = sql.format(f"'{path}'")
            asked = sql.format("survey")
            found = interleave(
                {"ours": lambda asked=asked: db.sql(asked, spend=SPEND, fresh=True), "raw": _plain(con, raw)}, ROUNDS
            )
            report.add("SQL, 10M rows, from the prepared copy", Line(what, found["ours"], found["raw"], 1.2))
        planned = found_plan(db, con, GROUPED["count, sum and mean in 50 groups"], path)
        bar = round(max(5.0, FLOOR / planned["raw"].median), 1)
        group = "SQL: parse and plan, against DuckDB's EXPLAIN (bar: 5x, or 20 ms if that is more)"
        report.add(group, Line("count, sum and mean in 50 groups", planned["ours"], planned["raw"], bar))


def found_plan(db: sulq.Database, con: duckdb.DuckDBPyConnection, sql: str, path: Path) -> dict[str, object]:
    """Text to plan, reading no row, against DuckDB's own EXPLAIN of the query."""
    text = sql.format("survey")

    def ours() -> object:
        facts = db.facts
        return db.foresee(prepare(compiled(text, facts).program, facts, SPEND).question, spend=SPEND)

    return interleave({"ours": ours, "raw": _plain(con, "EXPLAIN " + sql.format(f"'{path}'"))}, ROUNDS)


def joined(report: Report, folder: Path, con: duckdb.DuckDBPyConnection) -> None:
    """Two tables of the same people, joined on the person."""
    visits = folder / "visits.parquet"
    if not visits.exists():
        data.visits(visits, 1_000_000, 5)
    people = data.people(folder / "people.parquet", 1_000_000)
    columns = {
        "people": {"sex": ["f", "m"], "born": sulq.Int(1900, 2026)},
        "visits": {name: column for name, column in data.COLUMNS.items() if name != "smoker"},
    }
    with sulq.connect(
        {"people": people, "visits": visits}, columns=columns, unit=Unit("person", rows=10), keys={"people": "person"},
        budget=BUDGET, synthetic=True, ledger=folder / "joined.ledger",
    ) as db:  # fmt: skip
        db.prepare()
        asked = JOINED.format(people="people", visits="visits")
        raw = JOINED.format(people=f"'{people}'", visits=f"'{visits}'")
        found = interleave({"ours": lambda: db.sql(asked, spend=SPEND, fresh=True), "raw": _plain(con, raw)}, ROUNDS)
        group = "SQL, 1M people and their 5M visits joined on the person, from the prepared copy"
        report.add(group, Line("count and mean in 2 groups", found["ours"], found["raw"], 1.5))


def _plain(con: duckdb.DuckDBPyConnection, sql: str) -> Callable[[], object]:
    return lambda: con.execute(sql).fetchall()
