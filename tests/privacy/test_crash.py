"""Crash, power loss and race: no answer without a durable debit, no overspend, no debit lost (T42, T43)."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import pytest

from sulq.curator.ledger import checkpoints
from sulq.curator.ledger.opening import verify
from sulq.errors import SulqError
from sulq.language.privacy import Epsilon
from tests import counts
from tests.counts import count
from tests.curator.ledger.cases import ask, memory_folder, opened, pure
from tests.curator.ledger.places import STORES
from tests.postgres import server
from tests.privacy.children import STEPS
from tests.privacy.disks import VolatileDisk

ROOT = Path(__file__).resolve().parents[2]
Record = tuple[int, int, str, int, str]  # begun, ended, granted or refused, place, cost


def start(*words: object) -> subprocess.Popen[str]:
    """Start tests/privacy/children.py."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "tests.privacy.children", *map(str, words)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*words: object) -> dict[str, object]:
    """Run it to its end."""
    with start(*words) as process:
        said, errors = process.communicate()
    assert process.returncode == 0, errors
    return json.loads(said)


def where(kind: str) -> str:
    """Where ledgers lie, as children.py wants it said."""
    return "file" if kind == "sqlite" else server().url()


@pytest.mark.parametrize("kind", STORES)
def test_killed_at_any_step_nothing_is_lost_and_nothing_is_free_T43(kind: str) -> None:
    """Killed at each step of a debit, inside its commit and at random, every acknowledged debit is there (T43)."""
    short = 55 if kind == "sqlite" else 33
    number = count(f"T43 kills, {kind}", short=short, long=5_500)
    found = run("kill", number, random.randrange(2**32), where(kind))
    assert found["violations"] == []
    assert found["kills"] == number
    assert min(found["hits"].values()) >= number // len(STEPS)
    assert found["debits"] > number  # the children did get somewhere before they died


@pytest.mark.parametrize("kind", STORES)
def test_an_answer_before_its_debit_is_noticed_T43(kind: str) -> None:
    """Control: children that answer first and debit afterwards are caught (T43: compute, then debit)."""
    number = len(STEPS) * (3 if kind == "sqlite" else 1)
    found = run("kill", number, random.randrange(2**32), where(kind), "backwards")
    assert any("has no debit" in line for line in found["violations"])


def power_cycle(folder: Path, seed: int, *, honest: bool) -> str:
    """Ask until the power is cut, perhaps cut it again during recovery, and look at what is left."""
    draw = counts.generator(seed)
    path = folder / f"{seed}.ledger"
    opened(path, Epsilon(100)).close()
    acknowledged: dict[int, str] = {}
    answers: dict[str, str] = {}
    for cut in (draw.randrange(1, 120), draw.choice((0, draw.randrange(1, 12)))):
        if cut == 0:
            continue
        disk = VolatileDisk(cut, draw, honest=honest)
        ledger = None
        try:
            ledger = opened(path, Epsilon(100), vfs=disk.name)
            for number in range(100):
                question = f"{cut}-{number}"
                key = question if draw.random() < 0.3 else None
                receipt = ask(ledger, pure("0.01"), question, key=key)
                acknowledged[receipt.seq] = question
                if draw.random() < 0.5:
                    ledger.keep(receipt, "1" * draw.randrange(9000))
                    if key:
                        answers[key] = question
        except SulqError as error:
            if not disk.off:
                return error.code
        finally:
            if ledger is not None:
                try:
                    ledger.close()
                except SulqError:
                    assert disk.off
        assert disk.off
        disk.settle()
        disk.unregister()
    try:
        verify(path)
        with opened(path, Epsilon(100)) as ledger:
            lines = {line.seq: line.question for line in ledger.transcript()}
            if not acknowledged.items() <= lines.items():
                return "lost"
            if any(ask(ledger, pure("0.01"), question, key=key).stored is None for key, question in answers.items()):
                return "answer lost"
            if ledger.totals.events != len(lines):
                return "charged again"
    except SulqError as error:
        return error.code
    return "whole"


def test_a_power_cut_loses_no_acknowledged_debit_T43(monkeypatch: pytest.MonkeyPatch) -> None:
    """With un-synced sectors dropped, torn or out of order, also in recovery, all acknowledged debits stay (T43)."""
    monkeypatch.setattr(checkpoints, "EVERY", 5)
    first = random.randrange(2**32)
    with memory_folder() as folder:
        for seed in range(first, first + count("T43 power cuts", short=100, long=2_000)):
            assert power_cycle(folder, seed, honest=True) == "whole", seed


def test_a_disk_that_does_not_sync_is_noticed_T43() -> None:
    """Control: on a disk whose sync does nothing the same cycles lose debits or damage the ledger."""
    with memory_folder() as folder:
        outcomes = [power_cycle(folder, seed, honest=False) for seed in range(30)]
    assert sum(outcome != "whole" for outcome in outcomes) >= 5


def cut_once(folder: Path, cut: int, *, key: str | None, honest: bool = True) -> str:
    """Ask one question and cut the power at one write of it; what a later opening finds."""
    path = folder / f"{cut}-{key}.ledger"
    opened(path).close()
    disk = VolatileDisk(cut, counts.generator(cut), honest=honest)
    given: list[str] = []
    try:
        ledger = opened(path, vfs=disk.name)
        receipt = ask(ledger, pure("0.01"), "q", key=key)
        given.append("debit")  # from here on rows are read
        ledger.keep(receipt, '"a"')
        given.append("answer")
        ask(ledger, pure("0.01"), "next")  # which takes the answer along
        given.append("next")
    except SulqError:
        assert disk.off
    if not disk.off:  # the whole of it takes fewer writes
        return "over"
    disk.settle()
    disk.unregister()
    try:
        with opened(path) as ledger:
            lines = {line.question: line for line in ledger.transcript()}
            if "debit" in given and "q" not in lines:
                return "read without a debit"
            if "next" in given and (len(lines) < 2 or lines["q"].answer is None):
                return "lost with a later debit"
            if key is None:
                ask(ledger, pure("0.01"), "q")
                return "new debit" if ledger.totals.events == len(lines) + 1 else "free"
            try:
                again = ask(ledger, pure("0.01"), "q", key=key)
            except SulqError as error:
                return error.code if "answer" not in given else "given and lost"
            charged = ledger.totals.events - len(lines)
            return "stored" if again.stored and not charged else "new debit" if "q" not in lines else "drawn again"
    except SulqError as error:
        return error.code


@pytest.mark.parametrize("key", [None, "k"])
def test_a_power_cut_between_debit_and_answer_SR24_T43(key: str | None) -> None:
    """Cut at every write of an ask: the debit is there before any row is read, and a lost answer is never drawn again.

    Without a key the answer goes with the next debit; lost, the question is a new debit. With a key it is durable
    before it is given; lost before that it is `answer-lost`.
    """
    found: list[str] = []
    with memory_folder() as folder:
        while "over" not in found:
            found.append(cut_once(folder, len(found) + 1, key=key))
    assert len(found) > 20
    assert set(found) == ({"new debit", "over"} if key is None else {"new debit", "answer-lost", "stored", "over"})


def test_a_disk_that_does_not_sync_loses_debits_that_rows_were_read_for_T43() -> None:
    """Control: where syncs do nothing, the same cuts find rows that were read without a debit."""
    with memory_folder() as folder:
        found = {cut_once(folder, cut, key="k", honest=False) for cut in range(10, 60)}
    assert found & {"read without a debit", "ledger-damaged", "given and lost", "lost with a later debit"}


def disorder(records: list[Record], log: list[tuple[int, str]], budget: Fraction) -> list[str]:
    """Check a history of grants and refusals for linearizability, in the four points of THREATS 2.7.

    (a) If A ended before B began, A stands before B. (b) No prefix of the log
    passes the budget. (c) Each grant stands in the log once, and nothing else does.
    (d) Each refusal is justified by some prefix that may have stood when it ended.
    """
    found = []
    granted = sorted((r for r in records if r[2] == "granted"), key=lambda r: r[3])
    sums = list(accumulate(Fraction(cost) for _, cost in log))
    if sums and max(sums) > budget:
        found.append("(b) past the budget")
    if [(r[3], Fraction(r[4])) for r in granted] != [(seq, Fraction(cost)) for seq, cost in log]:
        return [*found, "(c) the log is not the grants"]
    earliest = granted[-1][1] if granted else 0  # when the first of those placed later had ended
    for begun, ended, *_ in reversed(granted):
        if begun > earliest:
            found.append("(a) out of order")
        earliest = min(earliest, ended)
    # The earliest time at which each prefix can have stood: after all of its asks had begun.
    stood = list(accumulate((r[0] for r in granted), max))
    for _, ended, outcome, _, cost in records:
        if outcome == "refused":
            full = bisect_right(sums, budget - Fraction(cost))  # the first prefix on top of which it does not fit
            if full >= len(sums) or stood[full] > ended:
                found.append("(d) refused while there was room")
    return found


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("kind", ["equal", "mixed"])
def test_processes_and_threads_race_for_one_budget_T42(kind: str, store: str) -> None:
    """8 processes of 16 threads get exactly what the budget holds, in an order that makes sense (T42)."""
    asks = 400
    for _ in range(count(f"T42 races, {kind} costs, {store}", short=2 if store == "sqlite" else 1, long=50)):
        found = run("race", 8, 16, asks, random.randrange(2**20), kind, where(store))
        assert found["codes"] == [0] * 8
        records = [tuple(record) for record in found["records"]]
        log = [(seq, cost) for seq, cost in found["log"]]
        assert disorder(records, log, Fraction(found["budget"])) == []
        assert Fraction(found["spent"]) == Fraction(found["budget"])
        if kind == "equal":
            assert sum(record[2] == "granted" for record in records) == asks


def test_a_history_out_of_order_is_noticed_T42() -> None:
    """Control: histories that overspend, lose, reorder or refuse too early are each found."""
    log = [(2, "0.4"), (3, "0.4")]
    records: list[Record] = [(0, 10, "granted", 2, "0.4"), (20, 30, "granted", 3, "0.4"), (25, 40, "refused", 0, "0.4")]
    one = Fraction(1)
    assert disorder(records, log, one) == []
    assert disorder(records, log, Fraction(1, 2)) == ["(b) past the budget"]
    assert disorder(records[1:], log, one) == ["(c) the log is not the grants"]
    swapped: list[Record] = [(0, 10, "granted", 3, "0.4"), (20, 30, "granted", 2, "0.4")]
    assert disorder(swapped, log, one) == ["(a) out of order"]
    early: list[Record] = [*records[:2], (1, 15, "refused", 0, "0.4")]
    assert disorder(early, log, one) == ["(d) refused while there was room"]
    never: list[Record] = [*records[:2], (1, 45, "refused", 0, "0.1")]
    assert disorder(never, log, one) == ["(d) refused while there was room"]


def restarted(times: int, *words: str) -> list[str]:
    """Restart PostgreSQL again and again under load of four processes; what must not be.

    Nothing acknowledged is lost, nothing is charged twice or charged where the ask said that nothing was spent, and
    asks are granted again by themselves afterwards.
    """
    running, url = server(), server().url()
    draw = counts.generator(random.randrange(2**32))
    opened(url, Epsilon(1000)).close()
    with memory_folder() as folder, start("load", folder, 4, 4, url, *words) as process:
        try:
            while len(list(folder.glob("*.log"))) < 16 and process.poll() is None:
                time.sleep(0.05)
            for number in range(times):
                time.sleep(draw.uniform(0.3, 0.8))
                running.restart(("fast", "immediate")[number % 2])
            last = time.monotonic()
            time.sleep(1.5)
        finally:
            (folder / "stop").touch()
            _, errors = process.communicate()
        if errors:
            return [errors]
        said = [line.split() for path in folder.glob("*.log") for line in path.read_text().splitlines()]
        found = [f"{path.name}: {path.read_text()}" for path in folder.glob("*.error")]
    try:
        verify(url)
        with opened(url, Epsilon(1000)) as ledger:
            lines = ledger.transcript()
    except SulqError as error:
        return [*found, str(error)]
    places = {line.question: line.seq for line in lines}
    if len(places) != len(lines):
        found.append("a question was charged twice")
    outcomes = {name: code for code, name, _, _ in said}
    for code, name, seq, _ in said:
        if code == "granted" and places.get(name) != int(seq):
            found.append(f"{name} has no debit, or another's")
        if code not in {"granted", "ledger-failed"} and name in places:
            found.append(f"{name} was told {code} and is charged")
        if code not in {"granted", "ledger-failed", "ledger-busy"}:
            found.append(f"{name}: {code}")
    found += [f"{name} is charged and was never asked" for name in places.keys() - outcomes.keys()]
    for process_number in range(4):
        after = [x for x in said if x[0] == "granted" and x[1].startswith(f"{process_number}-") and float(x[3]) > last]
        if not after:
            found.append(f"process {process_number} did not come back")
    return found


def test_postgresql_restarted_in_the_middle_of_debits_loses_nothing_T43() -> None:
    """Stopped in order and by a crash under load: no answer without a debit, none lost, none twice, back by itself."""
    assert restarted(count("T43 restarts of PostgreSQL", short=2, long=200)) == []


def test_a_commit_that_does_not_wait_for_the_disk_is_noticed_T43() -> None:
    """Control: with `synchronous_commit` off the same restarts lose debits that were acknowledged."""
    assert any(restarted(2, "hasty") for _ in range(3))
