"""Asks beside jobs: what four long jobs of one analyst cost another's asks, and how soon another's job starts.

    python -m benchmarks.jobs [seconds]

Two long releases run, `mwem` and `aim`, twice each, by one analyst; another asks over HTTP, one ask at a time, every
one distinct, alone and beside them in turn; a third starts a job of one query each round. The bars: an ask takes at
most 1.3 times as long beside the jobs, by the median and by the 99th part of 100; a job starts within a second.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from benchmarks import data
from benchmarks.report import Line, Report
from benchmarks.server import ROOT, ROWS, Served, logged, served
from benchmarks.timing import Timing

ROUNDS = 5
SECONDS = 4.0
BAR, START_SECONDS = 1.3, 1.0
MAKER, ASKER, OTHER = range(3)  # of the analysts
COLUMNS = ["age", "income", "region", "smoker"]
LONG = {"columns": COLUMNS, "bins": 30, "rounds": 200, "spend": {"epsilon": 1}}
QUERY = {"queries": ["SELECT COUNT(*) FROM survey"], "spends": [{"epsilon": 0.001}]}
MANY = {"queries": [f"SELECT COUNT(*) FROM survey WHERE age > {i % 100} AND income > {i}" for i in range(256)]}
POLL_SECONDS = 0.005


@dataclass
class Analyst:
    """One analyst's calls about jobs."""

    port: int
    token: str

    def call(self, method: str, path: str, body: object = None) -> dict:
        """One call over a connection of its own."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        sent = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/{path}", sent, headers, method=method)
        with urllib.request.urlopen(asked, timeout=60) as reply:
            return json.loads(reply.read())

    def start(self, kind: str, parameters: object) -> str:
        """Start a job."""
        return self.call("POST", "datasets/survey/jobs", {"kind": kind, "parameters": parameters})["id"]

    def until(self, key: str, *states: str) -> None:
        """Wait for a job to come so far."""
        while self.call("GET", f"jobs/{key}")["state"] not in states:
            time.sleep(POLL_SECONDS)


def asked(run: Served, seconds: float, first: int) -> list[float]:
    """Seconds of each ask of one analyst."""
    words = [sys.executable, "-m", "benchmarks.crowd", str(run.port), str(seconds), str(first)]
    done = subprocess.run(
        words, input=json.dumps([run.tokens[ASKER]]), capture_output=True, text=True, check=True, cwd=ROOT
    )
    told = json.loads(done.stdout)
    if set(told["outcomes"]) != {"200"}:
        raise RuntimeError(f"asks were refused: {told['outcomes']}")
    return told["taken"]


def started(analyst: Analyst) -> tuple[float, float]:
    """Seconds until a job of one query runs, and until it is done."""
    begun = time.perf_counter()
    key = analyst.start("queries", QUERY)
    analyst.until(key, "running", "done")
    runs = time.perf_counter() - begun
    analyst.until(key, "done")
    return runs, time.perf_counter() - begun


def of(found: list[list[float]], part: float) -> Timing:
    """So many of each round's asks took at most so long: the median round, the lowest and the highest."""
    each = [sorted(taken)[min(int(part * len(taken)), len(taken) - 1)] for taken in found]
    return Timing(statistics.median(each), min(each), max(each))


def beside(run: Served, kinds: list[tuple[str, object]], seconds: float, rounds: int) -> tuple[list, list, list]:
    """Rounds of asks alone and beside these jobs, and what a job of another's took each time."""
    maker, other = (Analyst(run.port, run.tokens[number]) for number in (MAKER, OTHER))
    alone: list[list[float]] = []
    busy: list[list[float]] = []
    starts: list[tuple[float, float]] = []
    for _ in range(rounds):
        run.asked += 2
        alone.append(asked(run, seconds, run.asked * 10**4))
        keys = [maker.start(kind, parameters) for kind, parameters in kinds]
        for key in keys:
            maker.until(key, "running")
        starts.append(started(other))
        busy.append(asked(run, seconds, (run.asked + 1) * 10**4))
        states = [maker.call("GET", f"jobs/{key}")["state"] for key in keys]
        if states != ["running"] * len(keys):
            raise RuntimeError(f"the jobs were not as long as the asks: {states}")
        for key in keys:
            maker.call("DELETE", f"jobs/{key}")
    return alone, busy, starts


def jobs(report: Report, folder: Path, seconds: float = SECONDS, rounds: int = ROUNDS) -> None:
    """The rows of the report."""
    path = data.survey(folder / "jobs.parquet", ROWS)
    group = f"Jobs: one analyst's asks over HTTP beside another's four long jobs, {ROWS:,} rows"
    cases = {
        "two mwem and two aim": [("mwem", LONG), ("aim", LONG)] * 2,
        "four of 256 queries each": [("queries", MANY | {"spends": [{"epsilon": 0.0001}] * 256})] * 4,
    }
    with logged(folder / "log"), served(folder / "jobs", path) as run:
        for key in [Analyst(run.port, run.tokens[OTHER]).start("queries", QUERY) for _ in range(3)]:
            Analyst(run.port, run.tokens[OTHER]).until(key, "done")
        for what, kinds in cases.items():
            alone, busy, starts = beside(run, kinds, seconds, rounds)
            report.add(group, Line(f"an ask beside {what}, against alone", of(busy, 0.5), of(alone, 0.5), BAR))
            report.add(group, Line("of 100 asks all but one, likewise", of(busy, 0.99), of(alone, 0.99), BAR))
            runs, done = zip(*starts, strict=True)
            second = Timing(*[START_SECONDS] * 3)
            report.add(group, Line("a job of one query starts beside them", of([[r] for r in runs], 0.5), second, 1.0))
            report.note(group, f"That job was done after {statistics.median(done):.2f} s, at most {max(done):.2f} s.")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name:
        jobs(Report(), Path(name), *map(float, sys.argv[1:]))
