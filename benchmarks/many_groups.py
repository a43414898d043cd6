"""Answers of many groups: SQL against `db.count`, keys found in the data against raw DuckDB, and how both grow."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import sulq
from benchmarks.report import Law, Line, Report
from benchmarks.timing import Timing
from sulq import Epsilon, EpsilonDelta, Unit
from sulq.answers.answer import Answer
from sulq.sql.answer import SqlAnswer

ROUNDS = 5
ROWS = 1_000_000
LISTED = "SELECT k, COUNT(*) AS n FROM data GROUP BY k"
FOUND = EpsilonDelta(10, 1e-3)
SIZES = (1_000, 10_000, 100_000, 1_000_000)
SLOPE = 1.15  # what is sorted takes a little more than in proportion


def cpu(contenders: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, Timing]:
    """Seconds of CPU of each contender in turn, after one warm-up each."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    return {name: Timing(statistics.median(found), min(found), max(found)) for name, found in seconds.items()}


def listed(groups: int, *, texts: bool = False) -> sulq.Database:
    """A million rows of so many declared keys, prepared."""
    drawn = np.random.default_rng(1).integers(0, groups, size=ROWS)
    column = sulq.Category([f"key{i}" for i in range(groups)]) if texts else sulq.Int(0, groups - 1)
    table = pa.table({"k": pa.array([f"key{i}" for i in drawn.tolist()]) if texts else drawn})
    db = sulq.connect(table, columns={"k": column}, budget=Epsilon(900), synthetic=True)
    db.prepare()
    return db


def found(keys: int) -> tuple[sulq.Database, duckdb.DuckDBPyConnection]:
    """So many text keys that nobody listed, two rows each, for us and for raw DuckDB."""
    drawn = np.random.default_rng(1).integers(0, keys, size=2 * keys)
    table = pa.table({"pid": np.arange(2 * keys), "k": pa.array(drawn.astype(str))})
    budget = EpsilonDelta(900, 0.5)
    unit, columns = Unit("pid", rows=1), {"k": sulq.Text(longest=20)}
    db = sulq.connect(table, columns=columns, unit=unit, budget=budget, synthetic=True)
    db.prepare()
    con = duckdb.connect(config={"threads": 2})
    con.register("given", table)
    con.execute("CREATE TABLE data AS SELECT * FROM given")
    return db, con


def many_groups(report: Report, sizes: tuple[int, ...] = SIZES) -> None:
    """65,000 declared groups, keys found in the data, and the growth of both from 1,000 to a million."""
    group = "many groups, seconds of CPU: SQL against db.count in the same run"
    for what, texts in (("65,000 whole numbers", False), ("65,000 categories", True)):
        with listed(65_000, texts=texts) as db:

            def sql(db: sulq.Database = db, *, fresh: bool = True) -> SqlAnswer:
                return db.sql(LISTED, spend=Epsilon(1), fresh=fresh)

            def count(db: sulq.Database = db) -> Answer:
                return db.count(by=["k"], spend=Epsilon(1), fresh=True)

            times = cpu({
                "sql": sql, "count": count, "reused": lambda sql=sql: sql(fresh=False),
                "sql frame": lambda sql=sql: sql().to_pandas(0.95),
                "count frame": lambda count=count: count().to_pandas(0.95),
            })  # fmt: skip
            report.add(group, Line(f"{what}: asked", times["sql"], times["count"], 2.0))
            report.add(group, Line(f"{what}: reused", times["reused"], times["count"], 2.0))
            report.add(group, Line(f"{what}: as a frame with intervals", times["sql frame"], times["count frame"], 2.0))
    seconds = {size: _listed_seconds(size) for size in sizes}
    report.law(Law("declared groups in SQL, of CPU", seconds, SLOPE))
    seconds = {size: _found_seconds(report, size) for size in sizes}
    report.law(Law("text keys found in the data, of CPU", seconds, SLOPE))


def _listed_seconds(size: int) -> float:
    with listed(size) as db:
        return cpu({"sql": lambda: db.sql(LISTED, spend=Epsilon(1), fresh=True)}, 3)["sql"].median


def _found_seconds(report: Report, size: int) -> float:
    db, con = found(size)
    with db, con:
        times = cpu(
            {
                "sql": lambda: db.sql(LISTED, spend=FOUND, fresh=True).to_pandas(),
                "raw": lambda: con.execute("SELECT k, COUNT(*) AS n FROM data GROUP BY k ORDER BY k").df(),
            },
            3,
        )
    if size >= SIZES[-1]:
        report.add(
            "keys found in the data, seconds of CPU", Line(f"{size:,} text keys", times["sql"], times["raw"], 3.0)
        )
    return times["sql"].median


def main() -> None:
    """These lines alone."""
    report = Report()
    many_groups(report)
    with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name:
        report.write(Path(name) / "many_groups.md")


if __name__ == "__main__":
    main()
