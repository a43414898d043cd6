"""Preparing: what person-level data, long lists, CSV, many files and wide tables take against the plainest.

`python -m benchmarks.preparing [ROWS]` runs this part alone, with so many rows of people (10 million; FULL=1: 1e8 too).
Time is that of the clock and that of all processors together, which a busy machine changes less.
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb

import sulq
from benchmarks import data
from benchmarks.report import Line, Report
from benchmarks.timing import Count, Timing, interleave
from sulq import Epsilon, Unit

ROUNDS = 3
ASKS = 9
KEPT = 5
TEN_TIMES = 10**1.1  # as much may ten times the rows take: a slope of 1.1
MOST_GIGABYTES = 2.0
GROUP = "Preparing {0:,} rows of people, at most 5 kept each, against the same rows without persons"
GROWTH = "Preparing: growth, and memory at most"
REST = "Preparing: lists, text, parts, width"
COLUMNS = {name: column for name, column in data.COLUMNS.items() if name != "smoker"}
DAY = {"day": sulq.Date("2000-01-01", "2030-01-01")}
PEOPLE = {  # whose each row is, of `n` rows
    "nobody has more": "i // 5",
    "a tenth of the people have 14 rows": "(i // 19) * 10 + CASE WHEN i % 19 < 14 THEN 0 ELSE 1 + i % 9 END",
    "one person has half of the rows": "CASE WHEN i % 2 = 0 THEN -1 ELSE i // 10 END",
    "ids of text, nobody has more": "'person-' || lpad(CAST(i // 5 AS VARCHAR), 9, '0')",
}
PEAK = """import sys, tempfile
from pathlib import Path
from benchmarks import preparing
with tempfile.TemporaryDirectory(dir=Path(sys.argv[1]).parent) as name:
    preparing.prepare(Path(sys.argv[1]), preparing.COLUMNS, Path(name), unit=preparing.unit(sys.argv[2]))()
said = Path("/proc/self/status").read_text(encoding="ascii")
print(int(said.partition("VmHWM:")[2].split()[0]) / 1e6)
"""


def unit(word: str) -> Unit:
    """Persons with at most five rows, or rows alone."""
    return Unit("person", rows=KEPT) if word == "person" else Unit()


def visits(path: Path, rows: int, whose: str) -> Path:
    """Rows of persons, shuffled a little: neighbours in the file are of different people."""
    place = f"CAST((i * 7919) % {rows} AS BIGINT)"
    duckdb.sql(f"""
        COPY (SELECT {whose} AS person, CAST(floor(random() * 100) AS INTEGER) AS age, random() * 180000 AS income,
                     'r' || lpad(CAST(CAST(floor(random() * 50) AS INTEGER) AS VARCHAR), 2, '0') AS region
              FROM (SELECT {place} AS i FROM range({rows}) t(i))) TO '{path}' (FORMAT parquet)""")
    return path


def prepare(
    source: object, columns: Mapping[str, object], folder: Path, *, unit: Unit | None = None
) -> Callable[[], object]:
    """Connect and prepare a copy in a file, from nothing each time."""

    def run() -> None:
        with tempfile.TemporaryDirectory(dir=folder) as name:
            place = {"ledger": Path(name) / "data.ledger", "prepared": Path(name) / "copy"}
            with sulq.connect(
                source, columns=columns, unit=unit or Unit(), budget=Epsilon(9), synthetic=True, table="data", **place
            ) as db:
                db.prepare()

    return run


def peak(path: Path, word: str) -> float:
    """The gigabytes that a process takes which prepares a file and ends."""
    told = subprocess.run([sys.executable, "-c", PEAK, str(path), word], check=True, capture_output=True, text=True)
    return float(told.stdout)


def memory(what: str, gigabytes: float) -> Line:
    """A row of the report: the most memory, against what it may be."""
    most = Count(*[MOST_GIGABYTES] * 3)
    return Line(f"GB of memory at most, {what}", Count(*[round(gigabytes, 3)] * 3), most, 1.0)


def timed(ways: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, dict[str, Timing]]:
    """Of each way the time of the clock and, in the same rounds, that of the processors."""
    spent: dict[str, list[float]] = {name: [] for name in ways}

    def told(name: str) -> Callable[[], None]:
        def run() -> None:
            start = time.process_time()
            ways[name]()
            spent[name].append(time.process_time() - start)

        return run

    wall = interleave({name: told(name) for name in ways}, rounds)
    found = {name: sorted(each[1:]) for name, each in spent.items()}  # the first is the warm-up
    processor = {name: Timing(each[len(each) // 2], each[0], each[-1]) for name, each in found.items()}
    return {"by the clock": wall, "of processors": processor}


def people(report: Report, folder: Path, rows: int) -> dict[str, float]:
    """Person-level preparing against row level, and how much memory both take; of each kind the processors' seconds."""
    seconds = {}
    for what, whose in PEOPLE.items():
        path = visits(folder / "visits.parquet", rows, whose)
        ways = {word: prepare(path, COLUMNS, folder, unit=unit(word)) for word in ("person", "row")}
        for clock, found in timed(ways, ROUNDS if rows <= data.ROWS else 1).items():
            report.add(GROUP.format(rows), Line(f"{what}, {clock}", found["person"], found["row"], 2.0))
            seconds[what] = found["person"].median
        report.add(GROUP.format(rows), memory(f"{what}, {rows:,} rows", peak(path, "person")))
        report.note(GROUP.format(rows), f"Without persons, {what}: {peak(path, 'row'):.2f} GB.")
        path.unlink()
    return seconds


def growth(report: Report, found: Mapping[int, Mapping[str, float]]) -> None:
    """What ten times the rows of people take: the slope of the logarithm of time over that of rows."""
    sizes = sorted(found)
    for few, many in itertools.pairwise(sizes):
        for what, taken in found[many].items():
            own, before = (Timing(each, each, each) for each in (taken, found[few][what]))
            steep = math.log(taken / found[few][what]) / math.log(many / few)
            report.add(GROWTH, Line(f"{what}, {many:,} rows against {few:,}", own, before, TEN_TIMES))
            report.note(GROWTH, f"Slope, {what}, from {few:,} to {many:,} rows: {steep:.2f}.")


def listed(report: Report, folder: Path, rows: int = 5_000_000) -> None:
    """Lists of 60,000 and of a million categories against one of ten, two cells of five unlisted in all."""
    ways = {}
    for number in (60_000, 1_000_000, 10):
        path = folder / f"listed{number}.parquet"
        cell = f"CASE WHEN i % 5 < 2 THEN 'other' ELSE 'v' END || CAST(hash(i) % {number} AS VARCHAR)"
        duckdb.sql(f"COPY (SELECT {cell} AS c FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)")
        columns = {"c": sulq.Category([f"v{i}" for i in range(number)])}
        ways[f"{number:,}"] = prepare(path, columns, folder)
    for clock, found in timed(ways).items():
        for number in ("60,000", "1,000,000"):
            what = f"{rows:,} cells of {number} categories, 40% unlisted, against 10 categories, {clock}"
            report.add(REST, Line(what, found[number], found["10"], 1.5))


SURVEY = """SELECT CAST(floor(random() * 100) AS INTEGER) AS age, round(random() * 180000, 2) AS income,
    'r' || lpad(CAST(CAST(floor(random() * 50) AS INTEGER) AS VARCHAR), 2, '0') AS region,
    DATE '2001-01-01' + CAST(floor(random() * 9000) AS INTEGER) AS day"""
TYPES = {"age": "INTEGER", "income": "DOUBLE", "region": "VARCHAR", "day": "DATE"}
REAL, YEARS = sulq.Real(0, 1_000_000), ("2000-01-01", "2040-01-01")
TEXTS: dict[str, tuple[str, str, dict[str, str], Mapping[str, object]]] = {  # rows, options, types, declarations
    "four columns": (SURVEY, "", TYPES, COLUMNS | DAY),
    "four columns, quotes": (SURVEY, ", FORCE_QUOTE (region, day)", TYPES, COLUMNS | DAY),
    "four columns, gzipped": (SURVEY, ", COMPRESSION gzip", TYPES, COLUMNS | DAY),
    "texts": (
        "SELECT 'text number ' || CAST(hash(i) AS VARCHAR) AS t, 'r' || CAST(i % 50 AS VARCHAR) AS region", "",
        {"t": "VARCHAR", "region": "VARCHAR"},
        {"t": sulq.Text(), "region": sulq.Category([f"r{i}" for i in range(50)])},
    ),
    "moments and days": (
        ("SELECT TIMESTAMP '2001-01-01' + to_seconds(CAST(floor(random() * 9e8) AS INTEGER)) AS moment, "
        "DATE '2001-01-01' + CAST(floor(random() * 9000) AS INTEGER) AS day"), "",
        {"moment": "TIMESTAMP", "day": "DATE"}, {"moment": sulq.Timestamp(*YEARS), "day": sulq.Date(*YEARS)},
    ),
    "decimals": (
        "SELECT CAST(random() * 1e6 AS DECIMAL(12, 3)) AS a, CAST(random() * 1e6 AS DECIMAL(12, 3)) AS b", "",
        {"a": "DECIMAL(12, 3)", "b": "DECIMAL(12, 3)"}, {"a": REAL, "b": REAL},
    ),
}  # fmt: skip


def text_file(path: Path, rows: int, select: str = SURVEY, options: str = "") -> Path:
    """A CSV file of so many such rows."""
    duckdb.sql(f"COPY ({select} FROM range({rows}) t(i)) TO '{path}' (FORMAT csv, HEADER{options})")
    return path


def text(report: Report, folder: Path, con: duckdb.DuckDBPyConnection, rows: int = 3_000_000) -> None:
    """CSV files against DuckDB's own strict reader with the types told, into a table in a file."""
    for what, (select, options, kinds, columns) in TEXTS.items():
        path = text_file(folder / f"text.csv{'.gz' if 'gzip' in options else ''}", rows, select, options)
        reader = f"read_csv('{path}', columns = {kinds}, auto_detect = false, header = true, strict_mode = true)"

        def raw(reader: str = reader) -> None:
            con.execute(f"ATTACH '{folder}/raw.duckdb' AS raw")
            con.execute(f"CREATE OR REPLACE TABLE raw.t AS SELECT * FROM {reader}")
            con.execute("DETACH raw")

        size = path.stat().st_size / 1e6
        for clock, found in timed({"ours": prepare(path, columns, folder), "raw": raw}).items():
            said = f"CSV of {size:.0f} MB, {what}, against DuckDB's own read_csv with strict reading, {clock}"
            report.add(REST, Line(said, found["ours"], found["raw"], 4 / 3))
        path.unlink()


def parts(report: Report, folder: Path, rows: int = 5_000_000, number: int = 8) -> None:
    """Eight files against one of the same rows."""
    whole, several = visits(folder / "whole.parquet", rows, "i // 5"), folder / "several"
    several.mkdir()
    for i in range(number):
        visits(several / f"part{i}.parquet", rows // number, "i // 5")
    ways = {name: prepare(given, COLUMNS, folder) for name, given in (("ours", several), ("one", whole))}
    found = interleave(ways | {"core": lambda: _on_one_core(ways["ours"])}, ROUNDS)
    report.add(REST, Line(f"{number} files side by side, against one core", found["ours"], found["core"], 0.75))
    report.add(REST, Line(f"{number} files of {rows:,} rows together, against one", found["ours"], found["one"], 1.2))


def _on_one_core(run: Callable[[], object]) -> None:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        run()
    finally:
        os.sched_setaffinity(0, cores)


def wide(report: Report, folder: Path, con: duckdb.DuckDBPyConnection, rows: int = 1_000_000, width: int = 200) -> None:
    """One sum of a wide table, from its copy and without one, against the same table with that column alone."""
    path = data.matrix(folder / "wide.parquet", rows, width)
    columns = {f"x{j}": sulq.Real(-1, 1) for j in range(width)}

    def opened(name: str, declared: Mapping[str, object], *, copied: bool) -> sulq.Database:
        return sulq.connect(
            path, columns=declared, budget=Epsilon(900), synthetic=True, ledger=folder / f"{name}.ledger",
            prepared=folder / name if copied else False, new_people=not (folder / f"{name}.ledger").exists(),
        )  # fmt: skip

    def asked(db: sulq.Database) -> Callable[[], object]:
        return lambda: db.sum("x7", spend=Epsilon(0.001), fresh=True)

    def first(name: str, declared: Mapping[str, object]) -> Callable[[], None]:
        def run() -> None:
            with opened(name, declared, copied=True) as db:
                asked(db)()

        return run

    own = {"x7": columns["x7"]}
    what = f"one sum of {width} columns, {rows:,} rows"
    for copied in (True, False):
        names = ("wide", "narrow") if copied else ("wide-anew", "narrow-anew")
        with opened(names[0], columns, copied=copied) as db, opened(names[1], own, copied=copied) as narrow:
            sql = f"SELECT sum(x7) FROM '{path}'"
            ways = {"ours": asked(db), "narrow": asked(narrow), "raw": lambda sql=sql: con.execute(sql).fetchall()}
            how = "from its copy" if copied else "without a copy"
            for clock, found in timed(ways, ASKS).items():
                for other, said in (("raw", "raw DuckDB"), ("narrow", "that column alone")):
                    line = Line(f"{what}, {how}, against {said}, {clock}", found["ours"], found[other], 1.2)
                    report.add(REST, line)
    for clock, found in timed({"wide": first("wide", columns), "narrow": first("narrow", own)}).items():
        line = Line(
            f"{what}, connected and asked once, against that column alone, {clock}", found["wide"], found["narrow"], 1.2
        )
        report.add(REST, line)


def preparing(report: Report, folder: Path, con: duckdb.DuckDBPyConnection, rows: int = data.ROWS) -> None:
    """All of it."""
    home = folder / "preparing"
    home.mkdir()
    sizes = (rows // 10, rows, *([10 * rows] if os.environ.get("FULL") else []))
    growth(report, {size: people(report, home, size) for size in sizes})
    listed(report, home)
    text(report, home, con)
    parts(report, home)
    wide(report, home, con)


def main() -> None:
    """This part by itself."""
    con = duckdb.connect()
    con.execute("SET threads = 2")
    with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name:
        preparing(Report(), Path(name), con, *map(int, sys.argv[1:2]))


if __name__ == "__main__":
    main()
