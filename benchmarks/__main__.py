"""`make bench`: run every comparison of this version and write docs/benchmarks.md and the pages beside it.

With FULL=1 also every peer and size (benchmarks.versus): docs/benchmarks-peers.md. `python -m benchmarks PART ...`
measures those parts of docs/benchmarks.md alone and leaves its other sections as they are.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import duckdb
import numpy as np
from opendp.domains import atom_domain
from opendp.measurements import make_laplace
from opendp.metrics import absolute_distance
from opendp.mod import enable_features

import sulq
from benchmarks import (
    auditor,
    before,
    budget,
    data,
    doors,
    free_calls,
    graphs,
    growth,
    heavy,
    jobs,
    learn,
    learn_kernels,
    ledgers,
    local,
    many_groups,
    noise,
    preparing,
    release,
    server,
    soak,
    sql,
    start,
)
from benchmarks.epsilon import __main__ as epsilon
from benchmarks.report import Line, Report
from benchmarks.timing import interleave
from benchmarks.versus import __main__ as versus
from sulq import Epsilon, Rho, Unit, col

ROUNDS = 9
SPEND = Epsilon(0.001)
BUDGET = Epsilon(900)
GROUPED = "SELECT region, COUNT(*), SUM(income), AVG(income) FROM {0} GROUP BY region"
WIDTH = 200_000 / 101
KEPT = Path(__file__).resolve().parents[1] / ".build" / "versus.json"  # remove it to measure all of it again
PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"


Run = Callable[[], object]


def compare(report: Report, group: str, what: str, *, ours: Run, raw: Run, bar: float) -> None:
    """Time ours against a baseline, interleaved, and take the line into the report."""
    found = interleave({"ours": ours, "raw": raw}, ROUNDS)
    report.add(group, Line(what, found["ours"], found["raw"], bar))


def plain(con: duckdb.DuckDBPyConnection, sql: str) -> Callable[[], object]:
    """A query of raw DuckDB."""
    return lambda: con.execute(sql).fetchall()


def queries(report: Report, folder: Path, con: duckdb.DuckDBPyConnection) -> None:
    """Counts, sums and means, ungrouped and in 50 groups, from the prepared copy and straight from Parquet."""
    path = data.survey(folder / "survey.parquet")
    raw = {
        "filtered count": "SELECT count(*) FROM '{0}' WHERE age > 40",
        "sum": "SELECT sum(income) FROM '{0}'",
        "mean": "SELECT avg(income) FROM '{0}'",
        "50-group count": "SELECT region, count(*) FROM '{0}' GROUP BY region",
        "50-group sum": "SELECT region, sum(income) FROM '{0}' GROUP BY region",
        "50-group mean": "SELECT region, avg(income) FROM '{0}' GROUP BY region",
        "50-group count and sum": "SELECT region, count(*), sum(income) FROM '{0}' GROUP BY region",
        "sum and mean": "SELECT sum(income), avg(income) FROM '{0}'",
        "50-group count, sum and mean": GROUPED.format("'{0}'"),
        "101-bin histogram": f"SELECT CAST(floor(income / {WIDTH}) AS INTEGER) b, count(*) FROM '{{0}}' GROUP BY b",
        "101-bin histogram of whole numbers": "SELECT age, count(*) FROM '{0}' GROUP BY age",
    }
    ways = (("from the prepared copy", None, 1.0, 1.0), ("straight from Parquet", False, 3.0, 1.6))
    for name, prepared, alone, grouped in ways:
        group = f"10M rows, {name}, against raw DuckDB over the same Parquet"
        ledger = folder / f"survey-{prepared}.ledger"
        with sulq.connect(
            path, columns=data.COLUMNS, budget=BUDGET, synthetic=True, ledger=ledger, prepared=prepared
        ) as db:
            db.prepare()
            ours: dict[str, Callable[[], object]] = {
                "filtered count": lambda: db.count(col("age") > 40, spend=SPEND, fresh=True),
                "sum": lambda: db.sum("income", spend=SPEND, fresh=True),
                "mean": lambda: db.mean("income", spend=SPEND, fresh=True),
                "50-group count": lambda: db.count(by="region", spend=SPEND, fresh=True),
                "50-group sum": lambda: db.sum("income", by="region", spend=SPEND, fresh=True),
                "50-group mean": lambda: db.mean("income", by="region", spend=SPEND, fresh=True),
                "50-group count and sum": lambda: db.ask(
                    sulq.Sums((sulq.lit(1), col("income")), by=(col("region"),)), spend=SPEND
                ),
            }
            if prepared is None:
                ours |= {
                    "sum and mean": lambda: db.sql(
                        "SELECT SUM(income), AVG(income) FROM survey", spend=SPEND, fresh=True
                    ),
                    "50-group count, sum and mean": lambda: db.sql(GROUPED.format("survey"), spend=SPEND, fresh=True),
                    "101-bin histogram": lambda: db.histogram("income", 101, spend=SPEND, fresh=True),
                    "101-bin histogram of whole numbers": lambda: db.histogram(
                        "age", range(102), spend=SPEND, fresh=True
                    ),
                }
            for what, run in ours.items():
                bar = grouped if "group" in what else alone
                compare(report, group, what, ours=run, raw=plain(con, raw[what].format(path)), bar=bar)


def persons(report: Report, folder: Path, con: duckdb.DuckDBPyConnection) -> None:
    """Bounded rows per person against the raw query that bounds nothing."""
    path = data.visits(folder / "owned.parquet", 2_000_000, 5)
    columns = {name: column for name, column in data.COLUMNS.items() if name != "smoker"}
    unit = Unit("person", rows=5)
    group = "10M rows of 2M people, at most 5 kept each, against the raw query that bounds nobody"
    with sulq.connect(
        path, columns=columns, unit=unit, budget=BUDGET, synthetic=True, ledger=folder / "owned.ledger"
    ) as db:
        db.prepare()
        ours: dict[str, Run] = {
            "count(*)": lambda: db.count(by="region", spend=SPEND, fresh=True),
            "sum(income)": lambda: db.sum("income", by="region", spend=SPEND, fresh=True),
            "count(*), sum(income), avg(income)": lambda: db.sql(GROUPED.format("owned"), spend=SPEND, fresh=True),
        }
        for what, run in ours.items():
            sql = f"SELECT region, {what} FROM '{path}' GROUP BY region"
            compare(report, group, f"{what} in 50 groups", ours=run, raw=plain(con, sql), bar=1.2)


def covariance(report: Report, folder: Path) -> None:
    """A covariance matrix against X'X of the same numbers already in memory."""
    width = 50
    path = data.matrix(folder / "matrix.parquet", 1_000_000, width)
    names = [f"x{j}" for j in range(width)]
    table = duckdb.sql(f"SELECT * FROM '{path}'").fetchnumpy()
    X = np.column_stack([table[name] for name in names])
    columns = {name: sulq.Real(-1, 1) for name in names}
    budget = sulq.Rho(900)
    with sulq.connect(path, columns=columns, budget=budget, ledger=folder / "matrix.ledger") as db:
        db.prepare()
        what = f"covariance, d={width}, n=1M"
        ask = lambda: db.covariance(names, spend=Rho(1), fresh=True)  # noqa: E731
        compare(report, "Against NumPy in memory", what, ours=ask, raw=lambda: X.T @ X, bar=3.5)


def fixed(report: Report, folder: Path) -> None:
    """The cost of an ask beside its scan: plan, durable debit, noise."""
    tiny = data.survey(folder / "tiny.parquet", 10)
    enable_features("contrib")

    def release() -> object:
        return make_laplace(atom_domain(T="i64"), absolute_distance(T="i64"), 1000.0)(3)

    with sulq.connect(tiny, columns=data.COLUMNS, budget=BUDGET, ledger=folder / "tiny.ledger") as db:
        db.prepare()
        ask = lambda: [db.count(spend=SPEND, fresh=True) for _ in range(20)]  # noqa: E731
        group = (
            "Fixed cost of an ask (plan, durable debit, sums of 10 rows, noise), against a bare OpenDP scalar release"
        )
        compare(report, group, "20 counts", ours=ask, raw=lambda: [release() for _ in range(20)], bar=40.0)


def imports(report: Report) -> None:
    """Importing sulq against importing what it stands on."""

    def run(code: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    parts = "import numpy, duckdb, pyarrow"
    compare(report, "Import", "import sulq", ours=run("import sulq"), raw=run(parts), bar=1.5)


Part = Callable[[Report, Path, duckdb.DuckDBPyConnection], None]
PARTS: dict[str, Part] = {
    "queries": queries,
    "persons": persons,
    "covariance": lambda report, folder, _: covariance(report, folder),
    "learners": learn_kernels.kernels,
    "fixed": lambda report, folder, _: fixed(report, folder),
    "sql": sql.grouped,
    "joins": sql.joined,
    "preparing": preparing.preparing,
    "start": lambda report, folder, _: start.started(report, folder),
    "first": lambda report, folder, _: start.first_answers(report, folder),
    "ledgers": lambda report, folder, _: ledgers.ledgers(report, folder),
    "growth": lambda report, folder, _: growth.growth(report, folder),
    "doors": lambda report, folder, _: doors.doors(report, folder),
    "service": lambda report, folder, _: (server.service(report, folder), free_calls.free_calls(report, folder)),
    "jobs": lambda report, folder, _: jobs.jobs(report, folder),
    "auditor": lambda report, folder, _: auditor.auditors(report, folder),
    "soak": lambda report, folder, _: soak.soaks(report, folder),
    "graphs": lambda report, folder, _: graphs.graphs(report, folder),
    "heavy": lambda report, _folder, _: heavy.heavy(report),
    "groups": lambda report, _folder, _: many_groups.many_groups(report),
    "local": lambda report, _folder, _: local.reports(report),
    "noise": lambda report, _folder, _: noise.many(report),
    "import": lambda report, _folder, _: imports(report),
    "before": lambda report, _folder, _: before.before(report),
}


def page(names: list[str]) -> None:
    """Measure each part, or those named, and write their sections of the page."""
    report = Report()
    for name in names or PARTS:
        with tempfile.TemporaryDirectory(prefix="sulq-bench-") as folder, duckdb.connect() as con:
            con.execute("SET threads = 2")
            PARTS[name](report, Path(folder), con)
        report.write(PAGE, keep=bool(names) or name != next(iter(PARTS)))
    print(f"\n{len(report.missed)} bars missed; wrote docs/benchmarks.md\n")


def main(names: list[str]) -> None:
    """Run everything and write the pages; with names only those parts of docs/benchmarks.md."""
    page(names)
    if names:
        return
    learn.PAGE.write_text(learn.run(), encoding="utf-8")
    print("wrote docs/benchmarks-learn.md")
    release.PAGE.write_text(release.run(), encoding="utf-8")
    print("wrote docs/benchmarks-release.md")
    text, missed = budget.run()
    budget.PAGE.write_text(text, encoding="utf-8")
    print(f"{missed} bars missed; wrote docs/benchmarks-budget.md")
    print(f"{epsilon.main([])} bars missed; wrote docs/benchmarks-epsilon.md")
    if os.environ.get("FULL"):
        versus.main(["--keep", str(KEPT)])


if __name__ == "__main__":
    main(sys.argv[1:])
