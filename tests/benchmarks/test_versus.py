"""The benchmark beside every peer: contenders are spoken to, none is dropped in silence, and the page tells it all."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchmarks.kept import Kept
from benchmarks.report import Line as ReportLine
from benchmarks.report import Report
from benchmarks.timing import Timing
from benchmarks.versus import child, environments, measure, parts, tables
from benchmarks.versus.cast import OTHERS, OURS, RAW, Contender
from benchmarks.versus.page import page, write
from benchmarks.versus.verdicts import LARGE, beyond, compared, optimum, ratio, slope, wrong

SCRIPT = """
import time
from loop import Unsupported, serve
def prepare(told):
    {prepare}
    def run():
        {run}
    return run, "1", ""
serve(prepare)
"""
WAYS = {
    "quick": ("pass", "return [100.0]"),
    "hangs": ("pass", "time.sleep(60)"),
    "never": ("time.sleep(60)", "pass"),
    "fails": ("pass", "return [1 / 0]"),
    "cannot": ("raise Unsupported('no such question')", "pass"),
    "dies": ("import os; os._exit(3)", "pass"),
    "leaves": ("import os; os.fork() or os._exit(0)", "return [100.0]"),  # a child nobody waits for
    "noisy": ("print('a library speaks')", "print('again'); return [100.0]"),
}


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Contenders that behave in every way there is, run by this Python."""
    shutil.copy(child.HERE / "loop.py", tmp_path)
    for name, (prepare, run) in WAYS.items():
        (tmp_path / f"{name}.py").write_text(SCRIPT.format(prepare=prepare, run=run), encoding="utf-8")
    monkeypatch.setattr(child, "HERE", tmp_path)
    monkeypatch.setattr(environments, "python", lambda _name: Path(sys.executable))
    return tmp_path


def contender(way: str) -> Contender:
    return Contender(way, "main", way, "A")


def together(bench: measure.Bench, ways: list[str]) -> dict[str, dict[str, Any]]:
    told = {"part": "A", "question": "groups"}
    with bench.opened(contender("quick"), told) as (ours, _ready):
        return {way: measure.beside(bench, ["A", "groups", 10], contender(way), told, ours) for way in ways}


def test_a_contender_that_fails_or_hangs_is_told_of(scripts: Path) -> None:
    """Whatever becomes of it there is a line with the reason, and those after it are measured all the same."""
    bench = measure.Bench(Kept(scripts / "keep"), seconds=0.5, rounds=2)
    found = together(bench, list(WAYS))
    outcomes = {way: line["outcome"] for way, line in found.items()}
    assert outcomes == {
        "hangs": "did not finish", "never": "did not finish", "fails": "failed", "cannot": "unsupported",
        "dies": "failed", "leaves": "answered", "noisy": "answered", "quick": "answered",
    }  # fmt: skip
    assert "ZeroDivisionError" in found["fails"]["why"]
    assert (found["hangs"]["why"], found["never"]["why"]) == ("no answer in 0.5 s", "not ready in 0.5 s")
    assert "code 3" in found["dies"]["why"]
    assert len(found["quick"]["scores"]) == len(found["quick"]["ours"]) == 2
    assert found["quick"]["memory"] > 1 << 20
    for way in ("hangs", "never"):
        assert (found[way]["scores"], ratio(found[way]) > 1) == ([], True)
    assert len(Kept(scripts / "keep").lines) == 8  # a second run would measure none of them again


def test_an_environment_that_cannot_be_made_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With pip's reason."""
    monkeypatch.setenv("SULQ_PEERS_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(environments, "FILES", tmp_path)
    (tmp_path / "nowhere.txt").write_text("nothing==1\n", encoding="ascii")
    said = "WARNING: slow\nERROR: No matching distribution found for nothing==1\n"
    failed = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(environments.subprocess, "run", lambda *_words, **_rest: failed)
    line = measure.alone(measure.Bench(Kept()), ["B", "count", 1], Contender("x", "nowhere", "x", "B"), {"draws": 1})
    assert (line["outcome"], line["scores"]) == ("not installed", [])
    assert line["why"] == "ERROR: No matching distribution found for nothing==1"


def test_when_it_is_late() -> None:
    """Once it has had its seconds of clock and processor; or four times that by the clock alone."""
    assert child.late(10, 10, 10)
    assert not child.late(10, 5, 10)
    assert not child.late(5, 10, 10)
    assert child.late(40, 0, 10)


def test_ours_beside_raw_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small table, two questions: both answer, and the answers are near."""
    monkeypatch.setenv("SULQ_BENCH_DATA", str(tmp_path))
    monkeypatch.setattr(environments, "python", lambda _name: Path(sys.executable))
    monkeypatch.setattr(parts, "QUESTIONS", ("groups", "person groups"))
    kept = Kept()
    parts.queries(measure.Bench(kept, rounds=2, only=(RAW.name,), scratch=str(tmp_path)), 50_000)
    assert [line["key"] for line in kept.lines] == [
        ["A", question, 50_000, RAW.name] for question in ("groups", "person groups")
    ]
    for line in kept.lines:
        assert (line["outcome"], line["why"]) == ("answered", "")
        assert len(line["scores"]) == len(line["ours"]) == 2
        assert not wrong(line)
    assert 0 < kept.lines[0]["off"] < 0.05 < kept.lines[1]["off"]  # noise; rows that a person has too many of


def test_tables_of_other_shapes_beside_raw_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many keys, many columns, text: both answer, and the answers are near."""
    monkeypatch.setenv("SULQ_BENCH_DATA", str(tmp_path))
    monkeypatch.setattr(environments, "python", lambda _name: Path(sys.executable))
    kept = Kept()
    sizes = {"keys": 2_000, "rows": 50_000, "width": 30, "wide": 20_000, "text": 20_000}
    parts.shapes(measure.Bench(kept, rounds=1, only=(RAW.name,), scratch=str(tmp_path)), sizes)
    assert [line["key"][1] for line in kept.lines] == list(parts.SHAPES)
    for line in kept.lines:
        assert (line["outcome"], line["why"]) == ("answered", "")
        assert line["off"] < 0.05
        assert compared(line).bar
    text, verdicts = page(kept.lines)
    assert len(verdicts) == len(parts.SHAPES)
    assert "## I. Many keys, many columns, text" in text


def test_tables_are_the_same_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever machine writes them; other rows give another table."""
    found = []
    for name in ("a", "b"):
        monkeypatch.setenv("SULQ_BENCH_DATA", str(tmp_path / name))
        monkeypatch.setattr(tables, "PIECE", 1000)
        found.append(pq.read_table(tables.survey(2500)))
    assert found[0].equals(found[1])
    assert found[0].num_rows == 2500
    assert not found[0].slice(0, 1000).equals(found[0].slice(1000, 1000))
    assert set(found[0]["region"].to_pylist()) == set(tables.REGIONS)
    assert pq.read_table(tables.matrix(30, 3)).shape == (30, 3)


def test_every_contender_has_a_script_and_a_pinned_environment() -> None:
    """Exact versions only, and no script of a peer knows sulq."""
    for who in OTHERS:
        text = (child.HERE / f"{who.script}.py").read_text(encoding="utf-8")
        assert "sulq" not in text
        wanted = (environments.FILES / f"{who.environment}.txt").read_text(encoding="utf-8").splitlines()
        assert all("==" in line for line in wanted if not line.startswith("#"))


def line(*key: object, scores: tuple[float, ...] = (), **rest: object) -> dict[str, Any]:
    return measure.line(list(key), scores=list(scores), **rest)


def timed(question: str, who: str, theirs: float, ours: float = 1.0, part: str = "A", **rest: object) -> dict[str, Any]:
    facts = {"off": 0.01, "memory": 3 << 20, "ours_memory": 2 << 20, "version": "9", "note": ""}
    return line(part, question, LARGE, who, scores=(theirs,) * 5, ours=[ours] * 5, **facts | rest)


def test_ratios_and_bars() -> None:
    """Raw: ours over theirs, at most; peers: theirs over ours, at least; who did not finish, at least its seconds."""
    assert compared(timed("groups", RAW.name, 1.0)).met
    assert not compared(timed("groups", RAW.name, 0.9)).met
    assert compared(line("A", "groups", 100, RAW.name, scores=(0.9,), ours=[1.0])).bar == ""  # a small table
    assert compared(timed("groups", "diffprivlib", 0.1)).figure == "10x slower"
    assert compared(timed("person groups", RAW.name, 0.9)).met
    assert compared(timed("groups", "OpenDP", 5.0)).met
    assert not compared(timed("groups", "OpenDP", 4.9)).met
    assert compared(timed("groups", "SmartNoise SQL", 1.0)).met
    assert compared(timed("groups", "diffprivlib", 0.1)).bar == ""
    assert not compared(timed("laplace", "OpenDP", 9.0, part="E")).met
    never = line("A", "groups", LARGE, "Tumult", ours=[2.0], outcome="did not finish", why="no answer in 90 s")
    assert ratio(never) == 45
    assert compared(never).figure == "over 45x faster"
    assert wrong(timed("groups", "Tumult", 9.0, off=0.4))
    assert compared(timed("groups", "Tumult", 9.0, off=0.4)).met is None
    assert wrong(timed("groups", "Tumult", 9.0, off=math.nan))


def test_the_optimum_of_each_answer() -> None:
    """Discrete Laplace at epsilon 1 has a deviation of 1.357; a mean is best in the middle of its bounds."""
    assert math.sqrt(optimum("count", epsilon=1, rows=1, part=0.5)) == pytest.approx(1.357, abs=1e-3)
    assert optimum("sum", epsilon=1, rows=1, part=0.5) == 2 * 200_000.0**2
    middle, edge = (optimum("mean", epsilon=1, rows=100_000, part=part) for part in (0.5, 1.0))
    assert (math.sqrt(middle), edge) == (pytest.approx(2.0), pytest.approx(2 * middle))


def accurate(variance: float, drawn: float, peer: float) -> list[dict[str, Any]]:
    note = f'{{"variance": {variance}, "part": 0.5}}'
    return [
        line("B", "count", 100_000, OURS.name, scores=(drawn,), slack=0.005, draws=10**5, note=note),
        line("B", "count", 100_000, "OpenDP", scores=(peer,), slack=0.005, draws=10**5, bias=-0.5, note=""),
        line("B", "count", 100_000, "Tumult", outcome="failed", why="no Java"),
    ]


def test_the_page_tells_everything() -> None:
    """Met and missed, lost and why, wrong and failed; a part that was not run says so."""
    lines = [
        timed("groups", RAW.name, 0.5),
        timed("groups", "OpenDP", 50.0),
        timed("groups", "diffprivlib", 0.25),
        timed("histogram", "Tumult", 9.0, off=1.0),
        line("A", "groups", LARGE, "PipelineDP", outcome="failed", why="out of memory", ours=[1.0]),
        line("A", "groups", 10, "PipelineDP", outcome="failed", why="of a smaller table", ours=[1.0]),
        *accurate(1.8413, 1.357, 1.2),
    ]
    text, verdicts = page(lines)
    assert "- Missed: groups, against raw DuckDB: 2.00x (bar: at most 1x). Not explained yet." in text
    assert "- Missed: error of a count: 1.357" in text
    assert "OpenDP 1.2 ± 0.005, bias -0.5" in text
    assert "- diffprivlib: noise and sums of doubles" in text
    assert "| groups | OpenDP | 1 s (1..1) | 50 s (50..50) | 50x faster | at least 5x faster | met | 3 (2) |" in text
    assert "- diffprivlib: groups (4x): its rows are NumPy arrays" in text
    assert "failed: out of memory" in text
    assert "smaller table" not in text
    assert "- B, all or some of it: SmartNoise SQL, diffprivlib, PipelineDP." in text
    assert "wrong answers" in text
    assert "- Tumult, count: failed: no Java" in text
    assert "## C. Learning\n\nNot measured." in text
    assert sum(1 for each in verdicts if each.bar and not each.met) == 2
    assert "no peer better" not in page(accurate(1.8413, 1.357, 1.36))[0].split("## A")[0]
    assert "- Missed: variance" in page(accurate(1.9, 1.378, 1.4))[0]


def test_spark_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own lines and bars where it is there; a failure is told; without it, that it was not measured."""
    few = line("G", "groups", 10, 1, RAW.name, scores=(1.0,), ours=[1.0])
    kept = Kept(lines=[few])
    monkeypatch.setattr(parts.importlib.util, "find_spec", lambda _name: None)
    parts.spark(measure.Bench(kept))
    assert "On Spark: not measured." in page(kept.lines)[0]

    def measured(_rows: int, _rounds: int, report: Report) -> None:
        report.add("Spark", ReportLine("X'X", Timing(1.4, 1, 2), Timing(1.0, 1, 1), 1.3))
        raise OSError("the cluster went away")

    monkeypatch.setattr(parts.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(parts.importlib, "import_module", lambda _name: SimpleNamespace(measured=measured))
    parts.spark(measure.Bench(kept))
    parts.spark(measure.Bench(kept))
    assert len(kept.lines) == 3
    text = page(kept.lines)[0]
    assert "- X'X on Spark: 1.40x (at most 1.3x): **missed**" in text
    assert "- failed: OSError: the cluster went away" in text


def test_growth_and_the_plots(tmp_path: Path) -> None:
    """A slope of 1 is met, one of 1.2 is not; both plots are drawn."""

    def grown(factor: float) -> list[dict[str, Any]]:
        facts = {"memory": 1 << 30, "ours_memory": 1 << 30, "off": 0.0, "version": "9"}
        return [
            line("G", "growth", 10**8, 1, OURS.name, scores=(factor,), ours=[1.0]),
            *(line("G", "groups", rows, 1, RAW.name, scores=(2.0,), ours=[1.0], **facts) for rows in (10**7, 10**8)),
        ]

    assert slope(grown(10.0), 1) == pytest.approx(1)
    assert slope(grown(10.0), 2) is None
    assert "slope of time from 1e7 to 1e8 rows, 1 thread: 1.000 (0.9 to 1.1): met" in page(grown(10.0))[0]
    assert "Missed: slope" in page(grown(16.0))[0]
    flat = [*grown(7.0), line("G", "groups", 10**5, 1, RAW.name, scores=(0.1,), ours=[1 / 3])]
    assert slope(flat, 1) == pytest.approx(0.845, abs=1e-3)  # a third of the less time is the same for any rows
    assert beyond(flat, 1) == pytest.approx(1)
    assert "whatever it reads, it is 1.00." in page(flat)[0]
    write([*grown(10.0), timed("groups", "OpenDP", 5.0)], tmp_path / "page.md")
    assert "10,000,000 rows" in (tmp_path / "page" / "queries.svg").read_text(encoding="utf-8")
    assert (tmp_path / "page" / "scaling.svg").exists()


def test_preparing_persons_is_measured_beside_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most twice the time of rows without persons is met, more is not; raw DuckDB decides nothing."""
    monkeypatch.setenv("SULQ_BENCH_DATA", str(tmp_path))
    monkeypatch.setattr(parts, "PREPARING_ROUNDS", 1)
    kept = Kept()
    parts.persons(measure.Bench(kept, only=(OURS.name,), scratch=str(tmp_path)), (1000,))
    (found,) = kept.lines
    assert (found["key"], found["outcome"]) == (["G", "preparing rows", 1000, OURS.name], "answered")
    assert found["found"] == [1000]
    assert 5 <= found["ours_found"][0] < 1000  # of random persons some have more than five rows

    def told(over: float) -> str:
        facts = {"ours": [over], "ours_memory": 1 << 30, "memory": 1 << 30, "off": 0.0, "version": "9"}
        few = line("G", "groups", 10, 1, RAW.name, scores=(1.0,), ours=[1.0])
        beside = [("rows", OURS.name), ("persons", RAW.name)]
        return page([few, *(line("G", f"preparing {what}", 10, who, scores=(1.0,), **facts) for what, who in beside)])[
            0
        ]

    bar = "preparing 10 rows of persons, beside sulq, rows without persons"
    assert f"- Missed: {bar}: 2.10x (bar: at most 2x)." in told(2.1)
    assert f"- Missed: {bar}" not in told(1.9)
    assert "| 10 | raw DuckDB | 1.9 s (1.9..1.9) | 1 s (1..1) | 1.90x |" in told(1.9)
