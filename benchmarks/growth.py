"""How the processor's time of asks and preparing grows with rows, and of a Together with its parts.

What an ask takes whatever it reads is measured with a tiny table in the same rounds and subtracted: else it would hide
how the rest grows. Groups, keys and entries of a ledger have their laws where they are timed.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from pathlib import Path

import sulq
from benchmarks import data, preparing
from benchmarks.report import Law, Report
from benchmarks.timing import interleave
from sulq import Epsilon, Sums, Together, Unit, col, lit

ROUNDS = 3
ROWS = (2_000_000, 6_000_000, 18_000_000)
TINY = 1_000  # rows; what reading them takes is lost in what an ask takes anyway
LEAST = 1e-4  # seconds: less is not told from what an ask takes anyway, and makes the law steep
PREPARED = (250_000, 1_000_000, 4_000_000)
PARTS = (4, 16, 64, 256)
LINEAR = 1.1
SPEND = Epsilon(0.001)
GROUPED = "SELECT region, COUNT(*), SUM(income), AVG(income) FROM survey GROUP BY region"


def beyond(fixed: float, seconds: dict[int, float]) -> dict[int, float]:
    """The seconds past those that an ask takes whatever it reads: a little more than none where no more were seen."""
    return {size: max(taken - fixed, LEAST) for size, taken in seconds.items()}


def by_rows(report: Report, folder: Path, sizes: tuple[int, ...] = ROWS) -> None:
    """One query of 50 groups from prepared copies of several sizes, in turns, less what it takes of a tiny one."""
    ways, opened = {}, []
    for size in (TINY, *sizes):
        path = data.survey(folder / f"survey{size}.parquet", size)
        db = sulq.connect(
            path, table="survey", columns=data.COLUMNS, budget=Epsilon(900), synthetic=True,
            ledger=folder / f"survey{size}.ledger",
        )  # fmt: skip
        db.prepare()
        opened.append(db)
        ways[str(size)] = lambda db=db: db.sql(GROUPED, spend=SPEND, fresh=True)
    found = interleave(ways, ROUNDS, time.process_time)
    for db in opened:
        db.close()
    fixed = found[str(TINY)].low
    taken = beyond(fixed, {size: found[str(size)].low for size in sizes})
    report.law(Law(f"rows, a query of 50 groups, less the {fixed * 1000:.1f} ms of {TINY:,} rows", taken, LINEAR))


def by_prepared_rows(report: Report, folder: Path, sizes: tuple[int, ...] = PREPARED) -> None:
    """Preparing rows of people, at most five kept of each."""
    ways = {}
    for size in sizes:
        path = preparing.visits(folder / f"visits{size}.parquet", size, preparing.PEOPLE["nobody has more"])
        ways[str(size)] = preparing.prepare(path, preparing.COLUMNS, folder, unit=Unit("person", rows=preparing.KEPT))
    found = interleave(ways, 1, time.process_time)
    report.law(Law("rows of people, prepared", {size: found[str(size)].median for size in sizes}, LINEAR))


def by_parts(report: Report, folder: Path, sizes: tuple[int, ...] = PARTS, rows: int = 100_000) -> None:
    """Counts in 50 groups, each of other rows, asked together."""
    path = data.survey(folder / "parts.parquet", rows)
    with sulq.connect(path, columns=data.COLUMNS, budget=Epsilon(900), synthetic=True) as db:
        db.prepare()
        turns = itertools.count()  # each is asked once: certificates and plans of more than 128 are not remembered
        ways = {str(size): lambda size=size: db.ask(_together(size, next(turns)), spend=SPEND) for size in sizes}
        found = interleave(ways, ROUNDS, time.process_time)
    what = f"parts of a Together, {rows:,} rows"
    report.law(Law(what, {size: found[str(size)].median for size in sizes}, LINEAR))


def _together(parts: int, turn: int) -> Together:
    least = (500 * part + turn for part in range(parts))
    return Together(tuple(Sums((lit(1),), col("income") > income, by=(col("region"),)) for income in least))


def growth(report: Report, folder: Path) -> None:
    """All of it."""
    home = folder / "growth"
    home.mkdir()
    by_rows(report, home)
    by_prepared_rows(report, home)
    by_parts(report, home)


def main() -> None:
    """This part by itself."""
    with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name:
        growth(Report(), Path(name))


if __name__ == "__main__":
    main()
