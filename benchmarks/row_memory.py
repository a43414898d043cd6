"""Bytes a row that the curator's process takes for tables of PostgreSQL or Spark: `python -m benchmarks.row_memory`.

Each size and source is a process of its own, since a peak is never unlearned; PostgreSQL, Spark's Java and its workers
are other processes. The rows are made there, so that none passes through the process that is measured but while a copy
of them is built, which is measured too. Whatever DuckDB may take at any number of rows is set so low that the smaller
size fills it: what grows from there to the larger one grows with the rows.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sulq
from benchmarks.report import Line, Report
from benchmarks.timing import Count
from sulq import EpsilonDelta, Unit
from sulq.sources.duckdb import connection, prepare

ROWS = (5_000_000, 10_000_000)
SPEND = sulq.Epsilon(0.001)
VISITS = 5  # of a person, most
CORE_MIB = 32  # that DuckDB may take for each thread of a question, of 256 elsewhere
BUILD_MIB = 384  # while a copy is built, of a gigabyte elsewhere
PERSON_BITS = 16  # of persons that are counted in an array, of 22 elsewhere, which 4 million persons fill
BYTES_A_ROW = 1.0  # a prepared row and its person have more than 15; of DuckDB's own lists of blocks a row has some .1
GROUP = "Memory of the curator's process by the number of rows, bytes a row"
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
    """The peak in MiB of building a copy, before the first question and after the last; and seconds of each query."""
    narrow()
    with tempfile.TemporaryDirectory(prefix="sulq-memory-") as name:
        folder = Path(name)
        ledger = folder / "memory.ledger"
        given = spark_tables(rows, folder) if source == "Spark" else postgres_tables(rows)
        found: dict[str, float] = {}
        if source == "PostgreSQL":  # another process builds the copy: this one opens it, as from the second day on
            command = [sys.executable, "-m", "benchmarks.row_memory", "copy", json.dumps(given), str(ledger)]
            built = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found |= json.loads(built.stdout.splitlines()[-1])
        with connected(given, ledger) as db:
            found["opened" if found else "built"] = peak()
            for what, sql in QUERIES.items():
                db.sql(sql, spend=SPEND, fresh=True)
                begun = time.perf_counter()
                db.sql(sql, spend=SPEND, fresh=True)
                found[what] = time.perf_counter() - begun
            return found | {"asked": peak()}


def narrow() -> None:
    """Let DuckDB take so little that few rows fill it."""
    connection.CORE_MEMORY_MIB, connection.PERSON_BITS = CORE_MIB, PERSON_BITS
    less = BUILD_MIB / prepare.MAX_BUILD_MEMORY_MIB
    for name in ("MAX_PERSONS", "MAX_UNCOUNTED_ROWS", "MAX_ORDERED_ROWS"):  # so many have room in that memory
        setattr(prepare, name, int(less * getattr(prepare, name)))
    prepare.MAX_BUILD_MEMORY_MIB = BUILD_MIB
    with contextlib.suppress(ImportError):  # Spark needs no psycopg
        from sulq.sources.postgres import engine

        engine.READING_MEMORY_MIB = CORE_MIB * connection.cores()


def peak() -> float:
    """The most memory this process took, in MiB: what started it is not counted, as getrusage would."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(found[1]) / 1024 if found else 0.0


def measured(source: str, rows: int) -> dict[str, float]:
    """What a process of its own found."""
    command = [sys.executable, "-m", "benchmarks.row_memory", source, str(rows)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    found: dict[str, float] = {"built": math.inf, "asked": math.inf}  # where that little memory does not do
    if done.returncode == 0:
        found = json.loads(done.stdout.splitlines()[-1])
    else:
        print(done.stderr[-2000:], flush=True)
    print(f"{source}, {rows:,} rows: {found}", flush=True)
    return found


def memory(report: Report, sources: tuple[str, ...], sizes: tuple[int, int] = ROWS) -> None:
    """What each row more takes, of the process that builds the copy and of the one that joins."""
    for source in sources:
        few, many = (measured(source, rows) for rows in sizes)
        for what, name in (("building the copy", "built"), ("two joins", "asked")):
            slope = max(many[name] - few[name], 0.0) * 2**20 / (sizes[1] - sizes[0])
            line = Line(
                f"{source}, {what}, {sizes[0]:,} to {sizes[1]:,} rows, against the most they may",
                Count(*[round(slope, 2)] * 3),
                Count(*[BYTES_A_ROW] * 3),
                1.0,
            )
            report.add(GROUP, line)
        told = "; ".join(
            f"{rows:,}: " + ", ".join(f"{name} {value:.0f} MiB" for name, value in each.items() if name not in QUERIES)
            for rows, each in zip(sizes, (few, many), strict=True)
        )
        report.note(GROUP, f"{source}, the peak, DuckDB allowed {CORE_MIB} MiB a thread: {told}.")


def main() -> None:
    """One measurement as JSON, or all of them."""
    if sys.argv[1:2] == ["copy"]:
        narrow()
        connected(json.loads(sys.argv[2]), Path(sys.argv[3])).close()
        print(json.dumps({"built": peak()}))
    elif len(sys.argv) == 3:
        print(json.dumps(child(sys.argv[1], int(sys.argv[2]))))
    else:
        memory(Report(), ("PostgreSQL", "Spark"))


if __name__ == "__main__":
    main()
