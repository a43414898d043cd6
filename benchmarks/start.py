"""`sulq query` on a prepared file, from the start of its process; and the first answer of a file that is not."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.csv
import pyarrow.parquet

import sulq
from benchmarks import data
from benchmarks.report import Line, Report
from benchmarks.timing import interleave
from sulq import Epsilon

GROUP = "Start: a process that asks one question of a prepared file of 1M rows"
ROWS = 1_000_000
ROUNDS = 9
BAR = 3.0
SQL = "SELECT AVG(income) FROM survey WHERE age > 40"
COLUMNS = {"age": sulq.Int(0, 120), "income": sulq.Real(0, 200_000)}
CONFIG = """[dataset]
data = "survey.parquet"
budget = { epsilon = 900 }
[dataset.columns]
age = { int = [0, 120] }
income = { real = [0, 200000] }
"""
PROGRAM = f"""import sulq
columns = {{"age": sulq.Int(0, 120), "income": sulq.Real(0, 200_000)}}
with sulq.connect("survey.parquet", columns=columns, budget=sulq.Epsilon(900)) as db:
    print(db.sql({SQL!r}, spend=sulq.Epsilon(0.001), fresh=True))
"""
COMMAND = "from sulq.cli import main; main()"


def started(report: Report, folder: Path) -> None:
    """The command against `import sulq`, connecting and asking in one process; beside it, what asking itself takes."""
    home = folder / "start"
    home.mkdir()
    path = data.survey(home / "survey.parquet", ROWS)
    (home / "survey.sulq.toml").write_text(CONFIG, encoding="utf-8")
    words = ["query", path.name, SQL, "--epsilon", "0.001", "--fresh"]
    with sulq.connect(path, columns=COLUMNS, budget=Epsilon(900)) as db:
        db.prepare()
    found = interleave(
        {
            "ours": process(home, COMMAND, *words),
            "program": process(home, PROGRAM),
            "import": process(home, "import sulq"),
        },
        ROUNDS,
    )
    report.add(GROUP, Line("`sulq query`, against import, connect and ask", found["ours"], found["program"], BAR))
    with sulq.connect(path, columns=COLUMNS, budget=Epsilon(900)) as db:
        asked = interleave({"ask": lambda: db.sql(SQL, spend=Epsilon(0.001), fresh=True)}, ROUNDS)["ask"]
    least = found["import"].median + asked.median
    report.note(
        GROUP,
        f"Of this `import sulq` alone takes {found['import']} and the question, once the file is open, {asked}: "
        f"the command takes {found['ours'].median / least:.1f} times both. The rest loads the parser of SQL, DuckDB "
        "and the command line, opens and checks the ledger and the copy, and makes the debit durable.",
    )


FRESH = "Start: connecting to a fresh table of 10M rows and asking once, against a new DuckDB and the plain query"
FIRST = {
    "filtered count": "SELECT COUNT(*) FROM survey WHERE age > 40",
    "sum and mean": "SELECT SUM(income), AVG(income) FROM survey",
    "50 groups": "SELECT region, COUNT(*), AVG(income) FROM survey GROUP BY region",
}
SLOW_ROWS = 1_000_000


def first_answers(report: Report, folder: Path) -> None:
    """Straight from Parquet and Arrow while the copy is made aside; people and CSV wait for theirs."""
    home = folder / "fresh"
    home.mkdir()
    path = data.survey(home / "fresh.parquet")
    table, numbers = pyarrow.parquet.read_table(path), itertools.count()

    def ours(source: object, sql: str, **more: object) -> Callable[[], object]:
        def run() -> None:
            own = home / str(next(numbers))
            own.mkdir()
            given = {"columns": data.COLUMNS, "budget": Epsilon(900), "ledger": own / "l.ledger"} | more
            with sulq.connect(source, table="survey", **given) as db:
                db.sql(sql, spend=Epsilon(0.1))
            shutil.rmtree(own)

        return run

    def plain(sql: str, *, arrow: bool) -> Callable[[], object]:
        def run() -> None:
            with duckdb.connect() as raw:
                if arrow:
                    raw.register("survey", table)
                text = sql if arrow else sql.replace("FROM survey", f"FROM read_parquet('{path}')")
                raw.execute(text).fetchall()

        return run

    for what, sql in FIRST.items():
        for kind, source in (("Parquet", path), ("Arrow", table)):
            both = {"ours": ours(source, sql), "raw": plain(sql, arrow=kind == "Arrow")}
            found = interleave(both, ROUNDS)
            report.add(FRESH, Line(f"{kind}, {what}", found["ours"], found["raw"], BAR))
    people, written = data.visits(home / "visits.parquet", SLOW_ROWS // 5, 5), home / "survey.csv"
    pyarrow.csv.write_csv(table.slice(0, SLOW_ROWS), written)
    columns = {name: column for name, column in data.COLUMNS.items() if name != "smoker"}
    waits = {
        "people (rows=5)": ours(people, FIRST["50 groups"], columns=columns, unit=sulq.Unit("person", rows=5)),
        "CSV": ours(written, FIRST["50 groups"]),
    }
    took = []
    for name, run in waits.items():
        begun = time.perf_counter()
        run()
        took.append(f"{name} {time.perf_counter() - begun:.1f} s")
    report.note(FRESH, f"Where 1M rows are prepared first, with progress on a terminal: {', '.join(took)}.")


def process(folder: Path, code: str, *words: str) -> Callable[[], object]:
    """A run of Python in a folder, with compiled modules at hand as where the package is installed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    command = [sys.executable, "-c", code, *words]
    return lambda: subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """This part by itself."""
    with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name:
        report = Report()
        started(report, Path(name))
        first_answers(report, Path(name))


if __name__ == "__main__":
    main()
