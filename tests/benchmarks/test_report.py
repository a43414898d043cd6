"""What decides on the page: laws of growth that can fail, counts that are rows, and what one row more takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import doors, growth, ledgers, preparing, release_aim, row_memory, spark_queries
from benchmarks.report import Law, Line, Report
from benchmarks.timing import Timing


def test_a_law_fails_where_more_rows_take_more_than_their_number_of_times() -> None:
    """What an ask takes anyway hides a square at small sizes. Control: less that, it is a square; a line is none."""
    fixed, sizes = 0.006, growth.ROWS
    square = {size: fixed + 4 * (size / sizes[-1]) ** 2 * fixed for size in sizes}
    line = {size: fixed + 5e-9 * size for size in sizes}
    assert Law("all", square, growth.LINEAR).met
    assert not Law("less", growth.beyond(fixed, square), growth.LINEAR).met
    assert Law("less", growth.beyond(fixed, square), growth.LINEAR).slope == pytest.approx(2)
    assert Law("less", growth.beyond(fixed, line), growth.LINEAR).slope == pytest.approx(1)
    assert not Law("nothing at first", growth.beyond(fixed, line | {sizes[0]: fixed}), growth.LINEAR).met


def test_what_was_a_sentence_decides() -> None:
    """Memory past its bound, a second commit and bytes a row are rows of the page that can be missed."""
    report = Report()
    for line in (
        preparing.memory("few", preparing.MOST_GIGABYTES),
        preparing.memory("many", preparing.MOST_GIGABYTES + 0.01),
        ledgers.committed(1.0),
        ledgers.committed(2.0),
    ):
        report.add("group", line)
    assert [line.what for line in report.missed] == [
        "GB of memory at most, many",
        "commits of an ask, against one",
    ]


def test_memory_of_each_row_is_judged_and_no_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bytes a row are missed, and so is a run that fails, whatever there is at any size; control: none are not."""
    few, many = sizes = (10_000_000, 30_000_000)
    for a_row, missed in ((0.0, 0), (2.0, 1), (float("inf"), 1)):
        taken = {rows: 4_000 + a_row * rows / 2**20 for rows in sizes}
        told = {rows: {"built": 4_000.0, "asked": taken[rows]} for rows in sizes}
        monkeypatch.setattr(row_memory, "measured", lambda _source, rows, told=told: told[rows])
        report = Report()
        row_memory.memory(report, ("PostgreSQL",), (few, many))
        assert len(report.missed) == missed


def test_error_and_time_decide_about_aim() -> None:
    """A larger error or more than twice the time is missed; of a peer that did not end only the time is told."""
    runs = [{"error": error, "computing": 10.0} for error in (0.02, 0.021, 0.022)]
    worse = [run | {"error": run["error"] * 2} for run in runs]
    quick = [run | {"computing": 1.0} for run in runs]
    assert release_aim.verdict(runs, worse, 300).count("met") == 2
    assert "**missed**" in release_aim.verdict(worse, runs, 300)
    assert "**missed**" in release_aim.verdict(runs, quick, 300)
    assert "nothing is said of the error" in release_aim.verdict(runs, [], 300)
    assert "less than 0.03x" in release_aim.verdict(runs, [], 300)


def test_every_door_is_compared_with_the_count_in_process(tmp_path: Path) -> None:
    """At the same door and with `db.count`; a note says what a door adds. Control: a tenfold door is missed."""
    ways = {*doors.AGAINST, *doors.AGAINST.values()}
    assert {*doors.IN_PROCESS, *doors.ADDED.values(), "db.count"} <= ways
    slow = {way: Timing(*[10.0 if way == "console page" else 1.0] * 3) for way in ways}
    line = Line("console page", slow["console page"], slow["db.count"], doors.BAR)
    assert not line.met
    assert "the console's page adds 9.000 s" in doors.added(slow)
    path, columns = doors.written(tmp_path, 50, "categories")
    assert path.exists()
    assert len(columns["k"].values) == 50


def test_where_spark_never_overtakes_it_is_said() -> None:
    """Of 88 ns a row against 4, 16 times the cores are too few, and 64 are enough. Control: of 54, 16 are enough."""
    fixed, three, counts = {"ours": 0.2, "duck": 0.0}, {"ours": 88e-9, "duck": 4e-9}, {"ours": 54e-9, "duck": 4e-9}
    assert "16x the cores: never, 64x the cores: from 76M rows" in spark_queries._overtakes(fixed, three)
    assert "16x the cores: from 320M rows" in spark_queries._overtakes(fixed, counts)
    assert np.isnan(Law("one size", {1: 1.0}, 1.0).slope)
