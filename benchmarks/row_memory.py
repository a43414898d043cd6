"""Peak memory of the curator's process while it joins tables of PostgreSQL or Spark: `python -m benchmarks.row_memory`.

Each size and source is a process of its own, since a peak is never unlearned; PostgreSQL, Spark's Java and its workers
are other processes. The rows are made there, so that none passes through the process that is measured.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sulq
from benchmarks.report import Line, Report
from benchmarks.timing import Timing
from sulq import EpsilonDelta, Unit
from sulq.sources.duckdb.connection import CORE_MEMORY_MIB, cores

ROWS = (300_000, 1_000_000, 3_000_000, 10_000_000)
SPEND = sulq.Epsilon(0.001)
VISITS = 5  # of a person, most
FIXED_MIB = CORE_MEMORY_MIB * cores()  # what one engine may hold of rows that lie on disk
BAR = 1.2
REGIONS = [f"r{i:02d}" for i in range(50)]
COLUMNS = {
    "people": {"sex": sulq.Int(0, 1), "born": sulq.Int(1900, 2026)},
    "visits": {"age": sulq.Int(0, 120), "income": sulq.Real(0, 200_000), "region": sulq.Int(0, 49)},
    "regions": {"code": sulq.Int(0, 49), "size": sulq.Int(0, 99)},
}
QUERIES = {
    "two private tables": "SELECT p.sex, COUNT(*), SUM(v.income) FROM people p JOIN visits v ON p.person = v.person "
    "GROUP BY p.sex",
    "private with public": "SELECT r.size, COUNT(*), SUM(v.income) FROM visits v JOIN regions r ON v.region = r.code "
    "GROUP BY r.size",
}
MADE = {  # each cell from the row's number, alike in both dialects
    "people": ("{people}", "{i} AS person, CAST({i} % 2 AS int) AS sex, CAST(1920 + {i} % 100 AS int) AS born"),
    "visits": (
        "{visits}",
        "({i} * 7919) % {people} AS person, CAST({i} % 100 AS int) AS age, "  # noqa: ISC004 - one text
        "CAST(({i} * 31) % 180000 AS double precision) AS income, CAST(({i} * 17) % 50 AS int) AS region",
    ),
    "regions": ("50", "CAST({i} AS int) AS code, CAST({i} % 10 AS int) AS size"),
}


def texts(rows: int, number: str) -> dict[str, tuple[int, str]]:
    """How many rows each table has, and its columns in SQL."""
    people = rows // VISITS
    return {
        name: (int(count.format(people=people, visits=rows)), columns.format(i=number, people=people))
        for name, (count, columns) in MADE.items()
    }


def spark_tables(rows: int, folder: Path):
    """A session in this process's own Java, and the tables as Parquet."""
    from benchmarks.spark_queries import session

    made = session(folder)
    found = {}
    for name, (count, columns) in texts(rows, "id").items():
        place = str(folder / name)
        made.range(0, count, 1, 4).selectExpr(*_split(columns)).write.parquet(place)
        found[name] = made.read.parquet(place)
    return found


def _split(columns: str) -> list[str]:
    return [item.replace("double precision", "double") for item in re.split(r", (?=CAST|\()", columns)]


def postgres_tables(rows: int) -> dict[str, str]:
    """The addresses of the tables in a private PostgreSQL."""
    from tests.postgres import server

    place = server()
    found = {}
    for name, (count, columns) in texts(rows, "i").items():
        place.do(
            f"CREATE TABLE {name} AS SELECT {columns} FROM generate_series(0::bigint, {count - 1}::bigint) AS s (i)"
        )
        found[name] = place.url("unused").replace("ledger=unused", f"table={name}")
    return found


def connected(given: object, ledger: Path) -> sulq.Database:
    """The dataset, prepared."""
    db = sulq.connect(
        given,
        columns=COLUMNS,
        keys={"people": "person", "regions": "code"},
        unit=Unit("person", rows=VISITS),
        public=["regions"],
        budget=EpsilonDelta(900, 1e-6),
        ledger=ledger,
    )
    db.prepare()
    return db


def child(source: str, rows: int) -> dict[str, float]:
    """Join; the peak in MiB before the first question and after the last, and seconds of each query."""
    with tempfile.TemporaryDirectory(prefix="sulq-memory-") as name:
        folder = Path(name)
        ledger = folder / "memory.ledger"
        given = spark_tables(rows, folder) if source == "Spark" else postgres_tables(rows)
        if source == "PostgreSQL":  # another process builds the copy: this one opens it, as from the second day on
            command = [sys.executable, "-m", "benchmarks.row_memory", "copy", json.dumps(given), str(ledger)]
            subprocess.run(command, check=True)
        with connected(given, ledger) as db:
            found = {"prepared": peak()}
            for what, sql in QUERIES.items():
                db.sql(sql, spend=SPEND, fresh=True)
                begun = time.perf_counter()
                db.sql(sql, spend=SPEND, fresh=True)
                found[what] = time.perf_counter() - begun
            return found | {"asked": peak()}


def peak() -> float:
    """The most memory this process took, in MiB: what started it is not counted, as getrusage would."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(found[1]) / 1024 if found else 0.0


def measured(source: str, rows: int) -> dict[str, float]:
    """What a process of its own found."""
    command = [sys.executable, "-m", "benchmarks.row_memory", source, str(rows)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(f"{source}, {rows:,} rows: {found}", flush=True)
    return found


def memory(report: Report, sources: tuple[str, ...], sizes: tuple[int, ...] = ROWS) -> None:
    """The peak at the largest number of rows against that at the smallest."""
    for source in sources:
        found = {rows: measured(source, rows) for rows in sizes}
        low, high = found[min(sizes)], found[max(sizes)]
        group = "Memory of the curator's process that joins, by the number of rows (MiB as ms)"
        what = f"{source}, {min(sizes):,} to {max(sizes):,} rows"
        given = [Timing(each["asked"] / 1000, each["prepared"] / 1000, each["asked"] / 1000) for each in (high, low)]
        bar = round(BAR + FIXED_MIB / low["asked"], 2) if source == "PostgreSQL" else BAR
        report.add(group, Line(what, *given, bar))
        slope = (high["asked"] - low["asked"]) * 2**20 / (max(sizes) - min(sizes))
        told = "; ".join(
            f"{rows:,}: {each['prepared']:.0f} prepared, {each['asked']:.0f} asked, "
            + ", ".join(f"{each[name]:.2f} s {name}" for name in QUERIES)
            for rows, each in found.items()
        )
        report.note(group, f"{source}: {told}. Slope: {slope:.1f} bytes a row.")


def main() -> None:
    """One measurement as JSON, or all of them."""
    if sys.argv[1:2] == ["copy"]:
        connected(json.loads(sys.argv[2]), Path(sys.argv[3])).close()
    elif len(sys.argv) == 3:
        print(json.dumps(child(sys.argv[1], int(sys.argv[2]))))
    else:
        memory(Report(), ("PostgreSQL", "Spark"))


if __name__ == "__main__":
    main()
