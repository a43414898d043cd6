"""`sulq query` on a prepared file, from the start of its process, against the same question in a short program."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

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


def process(folder: Path, code: str, *words: str) -> Callable[[], object]:
    """A run of Python in a folder, with compiled modules at hand as where the package is installed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    command = [sys.executable, "-c", code, *words]
    return lambda: subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """This part by itself."""
    with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name:
        started(Report(), Path(name))


if __name__ == "__main__":
    main()
