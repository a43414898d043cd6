"""Questions of rows in Spark beside the same SQL of plain Spark, and beside sulq's own DuckDB: `local[2]`, one session.

    python -m benchmarks.spark_queries [--rows 1000000 10000000] [--rounds 5] [--parts queries joins] [--processor]

`--processor`: seconds of processor of this process and of all below it, Spark's Java and its workers too, in place of
seconds by the clock: for a machine with other work to do.
Plain Spark reads the same Parquet, kept in its memory, in the same partitions; a turn of each, one after the other.
Ours is a whole ask: plan, debit on disk, job, noise.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import sulq
from benchmarks.report import Line, Report
from benchmarks.timing import Timing, interleave
from sulq import Epsilon, Unit, col

Clock = Callable[[], float]
ROWS = (1_000_000, 10_000_000)
ROUNDS = 5
BAR = 1.3
SPEND = Epsilon(0.001)
BINS = 101
WIDTH = 200_000 / BINS
REGIONS = [f"r{i:02d}" for i in range(50)]
COLUMNS = {
    "age": sulq.Int(0, 120),
    "income": sulq.Real(0, 200_000),
    "region": sulq.Category(REGIONS),
    "smoker": sulq.Bool(),
}
CELLS = (
    "CAST(pmod(xxhash64(id, 1), 100) AS int) AS age",
    "pmod(xxhash64(id, 2), 1800000) / 10.0D AS income",
    "concat('r', lpad(CAST(pmod(xxhash64(id, 3), 50) AS string), 2, '0')) AS region",
)
GROUPED = "SELECT region, COUNT(*), SUM(income), AVG(income) FROM {0} GROUP BY region"
JOINED = (
    "SELECT p.sex, COUNT(*), AVG(v.income) FROM {0} p JOIN {1} v ON p.person = v.person WHERE v.age > 30 GROUP BY p.sex"
)
WITH_PUBLIC = "SELECT r.code, COUNT(*), SUM(v.income) FROM {1} v JOIN {2} r ON v.age = r.code GROUP BY r.code"
PLAIN = {
    "filtered count": "SELECT count(*) FROM {0} WHERE age > 40",
    "sum and mean": "SELECT sum(income), avg(income) FROM {0}",
    "50-group count": "SELECT region, count(*) FROM {0} GROUP BY region",
    "50-group count, sum and mean": GROUPED,
    f"{BINS}-bin histogram": f"SELECT CAST(floor(income / {WIDTH}) AS int) b, count(*) FROM {{0}} GROUP BY b",
}


class Turns(NamedTuple):
    """How many rounds, and by what clock."""

    rounds: int
    clock: Clock


def processor_seconds() -> float:
    """Of this process and all below it so far, those that ended among them; in hundredths, as the system counts."""
    stats: dict[int, list[str]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            stats[int(place.parent.name)] = place.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
    below, found = [os.getpid()], 0.0
    while below:
        each = below.pop()
        found += sum(map(int, stats[each][11:15])) / os.sysconf("SC_CLK_TCK")  # its own, and of those it waited for
        below += [process for process, stat in stats.items() if int(stat[1]) == each]
    return found


def session(folder: Path):
    """A session of this process's own Java, shut as sulq asks, on two cores."""
    from pyspark.sql import SparkSession

    from sulq.sources.spark.frame import CLUSTER, SETTINGS

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    told = {name: value for name, value in SETTINGS.items() if name not in CLUSTER} | {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "4",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    builder = SparkSession.builder.master("local[2]").appName("sulq")
    for name, value in told.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


def asked(db: sulq.Database) -> dict[str, Callable[[], object]]:
    """The questions, by the names of the plain ones."""
    return dict(
        zip(
            PLAIN,
            (
                lambda: db.count(col("age") > 40, spend=SPEND, fresh=True),
                lambda: db.sql("SELECT SUM(income), AVG(income) FROM data", spend=SPEND, fresh=True),
                lambda: db.count(by="region", spend=SPEND, fresh=True),
                lambda: db.sql(GROUPED.format("data"), spend=SPEND, fresh=True),
                lambda: db.histogram("income", BINS, spend=SPEND, fresh=True),
            ),
            strict=True,
        )
    )


def queries(report: Report, spark, folder: Path, rows: int, turns: Turns) -> dict[str, dict[str, Timing]]:
    """One table without persons: ours on Spark and on DuckDB, and plain Spark."""
    place = str(folder / f"data{rows}")
    cells = (*CELLS, "pmod(xxhash64(id, 4), 5) = 0 AS smoker")
    spark.range(0, rows, 1, 4).selectExpr(*cells).write.parquet(place)
    told = {"columns": COLUMNS, "budget": Epsilon(900)}
    plain = spark.read.parquet(place).persist()
    plain.createOrReplaceTempView("plain")
    plain.count()
    found = {}
    with (
        sulq.connect(spark.read.parquet(place), ledger=folder / f"spark{rows}.ledger", **told) as there,
        sulq.connect(f"{place}/*.parquet", table="data", ledger=folder / f"duck{rows}.ledger", **told) as here,
    ):
        there.prepare()
        here.prepare()
        ours, ducks = asked(there), asked(here)
        for what, text in PLAIN.items():
            found[what] = _turns(spark, ours[what], text.format("plain"), ducks[what], turns)
            _told(report, what, rows, found[what])
    plain.unpersist()
    return found


def joins(report: Report, spark, folder: Path, rows: int, turns: Turns) -> dict[str, dict[str, Timing]]:
    """Two tables of the same persons, and one of them with a public table."""
    people = rows // 5
    made = {
        "people": (people, ("id AS person", "pmod(xxhash64(id, 5), 2) AS sex", "CAST(1920 + id % 100 AS int) AS born")),
        "visits": (rows, (f"pmod(xxhash64(id, 6), {people}) AS person", *CELLS)),
        "codes": (100, ("CAST(id AS int) AS code",)),
    }
    places = {name: str(folder / f"{name}{rows}") for name in made}
    plain = []
    for name, (count, cells) in made.items():
        spark.range(0, count, 1, 4).selectExpr(*cells).write.parquet(places[name])
        plain.append(spark.read.parquet(places[name]).persist())
        plain[-1].createOrReplaceTempView(f"plain_{name}")
        plain[-1].count()
    visits = {name: column for name, column in COLUMNS.items() if name != "smoker"}
    told = {
        "columns": {
            "people": {"sex": sulq.Int(0, 1), "born": sulq.Int(1900, 2026)},
            "visits": visits,
            "codes": {"code": sulq.Int(0, 120)},
        },
        "unit": Unit("person", rows=30),  # nobody has more: both sides join the same rows
        "keys": {"people": "person", "codes": "code"},
        "public": ["codes"],
        "budget": sulq.EpsilonDelta(900, 1e-6),
    }
    frames = {name: spark.read.parquet(place) for name, place in places.items()}
    files = {name: f"{place}/*.parquet" for name, place in places.items()}
    found = {}
    with (
        sulq.connect(frames, ledger=folder / f"joined{rows}.ledger", **told) as there,
        sulq.connect(files, ledger=folder / f"joined_here{rows}.ledger", **told) as here,
    ):
        there.prepare()
        here.prepare()
        for what, text in (("join on the person", JOINED), ("join with a public table", WITH_PUBLIC)):
            own, theirs = text.format(*made), text.format(*(f"plain_{name}" for name in made))
            ask = lambda db, own=own: db.sql(own, spend=SPEND, fresh=True)  # noqa: E731
            found[what] = _turns(spark, lambda ask=ask: ask(there), theirs, lambda ask=ask: ask(here), turns)
            _told(report, what, rows, found[what])
    for each in plain:
        each.unpersist()
    return found


def _turns(spark, ours: Callable, text: str, duck: Callable, rounds: Turns) -> dict[str, Timing]:
    turns = {"ours": ours, "plain": lambda: spark.sql(text).collect(), "duck": duck}
    for run in (ours, turns["plain"]):  # its compiler takes some runs to come to rest
        for _ in range(3):
            run()
    return interleave(turns, *rounds)


def _told(report: Report, what: str, rows: int, found: dict[str, Timing]) -> None:
    report.add("Spark, local[2], against plain Spark over its own cached rows",
               Line(f"{what}, {rows:,} rows", found["ours"], found["plain"], BAR))  # fmt: skip


PARTS = (queries, joins)


def measured(
    report: Report,
    sizes: Sequence[int] = ROWS,
    rounds: int = ROUNDS,
    parts: Sequence[Callable] = PARTS,
    clock: Clock = time.perf_counter,
) -> None:
    """Questions at every size; how each side grows, and where Spark would overtake one machine's DuckDB."""
    with tempfile.TemporaryDirectory(prefix="sulq-spark-") as name:
        folder = Path(name)
        spark = session(folder)
        try:
            found: dict[int, dict[str, dict[str, Timing]]] = {rows: {} for rows in sizes}
            for rows in sizes:
                for part in parts:
                    found[rows] |= part(report, spark, folder, rows, Turns(rounds, clock))
        finally:
            spark.stop()
    group = "Spark, local[2], against plain Spark over its own cached rows"
    low, high = min(sizes), max(sizes)
    for what in found[low]:
        fixed, slope = {}, {}
        for side in ("ours", "plain", "duck"):
            ends = [found[rows][what][side].median for rows in (low, high)]
            slope[side] = max(ends[1] - ends[0], 0.0) / max(high - low, 1)
            fixed[side] = ends[0] - slope[side] * low
        words = ", ".join(
            f"{name} {fixed[side] * 1000:.0f} ms + {slope[side] * 1e9:.1f} ns a row"
            for side, name in (("ours", "Spark"), ("plain", "plain Spark"), ("duck", "DuckDB"))
        )
        report.note(group, f"{what}: {words}; {_overtakes(fixed, slope)}.")


def _overtakes(fixed: dict[str, float], slope: dict[str, float]) -> str:
    """From how many rows on a cluster of so many times the cores answers before DuckDB on this machine."""
    told = []
    for times in (4, 16, 64):
        gain = slope["duck"] - slope["ours"] / times
        rows = (fixed["ours"] - fixed["duck"]) / gain if gain > 0 else 0
        told.append(f"{times}x the cores: " + ("never" if gain <= 0 else f"from {max(rows, 0) / 1e6:.0f}M rows"))
    return "Spark overtakes DuckDB with " + ", ".join(told)


def main() -> None:
    """Measure and print."""
    told = argparse.ArgumentParser(prog="python -m benchmarks.spark_queries")
    told.add_argument("--rows", type=int, nargs="*", default=ROWS)
    told.add_argument("--rounds", type=int, default=ROUNDS)
    told.add_argument("--parts", nargs="*", choices=[part.__name__ for part in PARTS], default=None)
    told.add_argument("--processor", action="store_true")
    given = told.parse_args()
    parts = [part for part in PARTS if given.parts is None or part.__name__ in given.parts]
    measured(Report(), given.rows, given.rounds, parts, processor_seconds if given.processor else time.perf_counter)


if __name__ == "__main__":
    main()
