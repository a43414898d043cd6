"""Opening a ledger of many debits from its last checkpoint, against reading all of it; and what one ask commits.

The same file is opened both ways in turn: `whole=True` is what every opening did before there were checkpoints. The
laws of growth are by debits.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import sulq
from benchmarks.report import Law, Line, Report
from benchmarks.timing import Count, Timing, interleave
from sulq.curator.ledger import notes
from sulq.curator.ledger.history import pending
from sulq.curator.ledger.ledger import Ledger, verify
from sulq.curator.ledger.opening import covers_in
from sulq.kernel.ledger.entries import Draft
from sulq.kernel.ledger.sqlite import SqliteStore
from tests.curator.ledger.cases import pure

GROUP = "The ledger: debits, each with its answer, of 32 analysts"
SIZES = (1_000, 10_000, 100_000)
ROUNDS = 3
BATCH = 250  # debits written in one transaction; a checkpoint comes with the first after 1,000 entries
BAR = 0.1
VERIFIED = 2.0  # times an opening that reads all entries: both look at each of them
COMMITS = 1
LAWS = {
    "checkpoint": ("ledger entries, opened at a checkpoint, and a debit", 0.3),
    "whole": ("ledger entries, opened by reading all, and a debit", 1.1),
    "verify": ("ledger entries, `sulq ledger verify`", 1.1),
    "covers": ("ledger entries, what a ledger covers", 0.3),
}
MECHANISMS = ("laplace",)
BUDGET = sulq.Epsilon(900)


def built(path: Path, number: int, *, synthetic: bool = False) -> Path:
    """A ledger of so many debits with their answers, written as asks write them."""
    event, asked = pure("0.001"), iter(range(number))

    def propose(draft: Draft) -> None:
        for _ in range(BATCH):
            place = next(asked)
            question = json.dumps({"kind": "Sums", "place": place, "text": "x" * 400})
            digest, analyst = hashlib.sha256(question.encode()).hexdigest(), f"analyst-{place % 32}"
            accounts = pending(draft).charged(draft, analyst, event)
            told = {"question": question, "question_digest": digest, "asked": digest, "version": 1, "key": None}
            seq = draft.debit(event, plan_digest=digest, **told, time="t", analyst=analyst, dataset="survey")
            pending(draft).accounts = accounts
            draft.note(notes.answer(seq, "y" * 300, time="t"))

    with Ledger.open(path, unit=sulq.Unit(), budget=BUDGET, synthetic=synthetic, mechanisms=MECHANISMS) as ledger:
        for _ in range(number // BATCH):
            ledger._writer.take(propose)
    return path


def opening(path: Path, *, whole: bool) -> Callable[[], object]:
    """Open it, take one debit, and close it."""

    def work() -> None:
        with Ledger.open(path, mechanisms=MECHANISMS, whole=whole) as ledger:
            ledger.debit(pure("0.001"), question="q", plan_digest="p")

    return work


def opened(report: Report, folder: Path, sizes: tuple[int, ...] = SIZES) -> None:
    """Opening at a checkpoint against reading all entries, and how both grow."""
    laws: dict[str, dict[int, float]] = {"checkpoint": {}, "whole": {}, "verify": {}, "covers": {}}
    for number in sizes:
        home = folder / f"ledger-{number}"
        home.mkdir()
        path = built(home / "a.ledger", number)
        ways = {"checkpoint": opening(path, whole=False), "whole": opening(path, whole=True)}
        found: dict[str, Timing] = interleave(ways, ROUNDS)
        more = {"verify": lambda path=path: verify(path), "covers": lambda home=home: covers_in([home])}
        found |= interleave(more, 1)
        what = f"`sulq ledger verify`, {number:,} debits, against an opening that reads all entries"
        report.add(GROUP, Line(what, found["verify"], found["whole"], VERIFIED))
        for name, timing in found.items():
            laws[name][number] = timing.median
        bar = BAR if number == max(sizes) else 1.5
        what = f"open and debit at the last checkpoint, {number:,} debits, against reading all entries"
        report.add(GROUP, Line(what, found["checkpoint"], found["whole"], bar))
        with Ledger.open(path, mechanisms=MECHANISMS) as ledger:
            begun = time.perf_counter()
            ledger.verify()
            first = Timing(*[time.perf_counter() - begun] * 3)
            again = interleave({"again": ledger.verify}, ROUNDS)["again"]
        report.add(GROUP, Line(f"`db.verify()` again, {number:,} debits, against the first time", again, first, bar))
    for name, (what, bar) in LAWS.items():
        report.law(Law(what, laws[name], bar))
    report.note(
        GROUP,
        "`sulq ledger verify` always reads all entries, `db.verify()` the first time in a process; an opening at a "
        "checkpoint has the entries before it read aside, beginning two seconds later.",
    )


def commits(report: Report, folder: Path) -> None:
    """Commits and syncs of a named ask: its answer goes with the next debit."""
    data = folder / "few.csv"
    data.write_text("x\n" + "1\n" * 10, encoding="utf-8")
    found, commit = [0], SqliteStore.commit

    def counted(store: SqliteStore) -> None:
        found[0] += 1
        commit(store)

    with sulq.connect(data, columns={"x": sulq.Int(0, 9)}, budget=BUDGET) as db:
        asks = [lambda: db.count(spend=sulq.Epsilon(0.001), fresh=True)] * 50
        asks[0]()
        keep = Ledger.keep

        def twice(ledger: Ledger, receipt: object, answer: str, **more: object) -> None:
            keep(ledger, receipt, answer, **{**more, "at_once": True})

        def run(*, at_once: bool) -> None:
            Ledger.keep = twice if at_once else keep
            try:
                for ask in asks:
                    ask()
            finally:
                Ledger.keep = keep

        SqliteStore.commit = counted
        try:
            found[0] = 0
            run(at_once=False)
            once = found[0] / len(asks)
            found[0] = 0
            run(at_once=True)
            before = found[0] / len(asks)
        finally:
            SqliteStore.commit = commit
        taken = interleave({"once": lambda: run(at_once=False), "twice": lambda: run(at_once=True)}, ROUNDS)
    report.add(GROUP, committed(once))
    report.add(GROUP, Line("50 asks, an answer with the next debit, against at once", taken["once"], taken["twice"], 1))
    report.note(GROUP, f"With each answer written at once, as before, an ask has {before:.2f} commits.")


def committed(commits: float) -> Line:
    """Commits of an ask, as a row of the report."""
    return Line("commits of an ask, against one", Count(*[commits] * 3), Count(*[COMMITS] * 3), 1.0)


def ledgers(report: Report, folder: Path, sizes: tuple[int, ...] = SIZES) -> None:
    """Both."""
    opened(report, folder, sizes)
    commits(report, folder)


def main() -> None:
    """This part by itself; sizes may be named."""
    sizes = tuple(map(int, os.environ.get("SIZES", "").split())) or SIZES
    with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name:
        ledgers(Report(), Path(name), sizes)


if __name__ == "__main__":
    main()
