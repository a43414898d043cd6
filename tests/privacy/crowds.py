"""Processes and threads that use one ledger at once and are killed now and then, noting all they do: run as a script.

    python -m tests.privacy.crowds ACTS SEED WHERE [stale|hasty]

WHERE is `file` or the postgresql:// URL of a server. Prints one JSON record: acts
and chain. The script itself has no threads and no open ledger when it forks.
`stale`: reads that do not look at the file; `hasty`: debits told before they are
written. Both are controls.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import verify
from sulq.curator.ledger.shares import Share
from sulq.errors import BudgetExceeded, SulqError
from sulq.language.privacy import Epsilon
from tests.curator.ledger.cases import memory_folder, pure
from tests.privacy.children import laid, open_ledger

UNIT = Fraction(1, 1000)
PROCESSES, THREADS = 3, 4
SHARES = {"ann": ("0.5", "0.2"), "bob": ("1", "0.1"), "cleo": ("0.3", "0")}
ANALYSTS = (*SHARES, "dan")  # of whom the owner has said nothing
EVENTS = {cost: pure(cost * UNIT) for cost in (1, 2, 3)}


def budget_of(acts: int) -> int:
    """So much that about half of the debits are refused."""
    return max(acts * 35 // 1000, 1) * 10


def key_of(question: str) -> str | None:
    """The idempotency key of a question, if it is one of those that have one."""
    return question.replace("question", "key") if question.startswith("question") else None


class Notes:
    """What one process did, written as it happens, so that a kill loses none of it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._numbers = itertools.count()

    def begin(self, **what: object) -> int:
        """Something is about to be asked."""
        number = next(self._numbers)
        self._write({"pid": os.getpid(), "number": number, "begun": time.monotonic_ns(), **what})
        return number

    def end(self, number: int, outcome: str, **what: object) -> None:
        """It was told."""
        ended = time.monotonic_ns()
        self._write({"pid": os.getpid(), "number": number, "ended": ended, "outcome": outcome, **what})

    def _write(self, record: dict[str, object]) -> None:
        os.write(self._file, json.dumps(record).encode() + b"\n")


class User:
    """One thread that uses the ledger."""

    def __init__(self, ledger: Ledger, notes: Notes, name: str, keys: int) -> None:
        self._ledger, self._notes, self._name, self._keys = ledger, notes, name, keys
        self._draw = random.Random(name)

    def act(self, turn: int) -> None:
        """Read somebody's standing, or ask; with a key many have, or with none."""
        chance = self._draw.random()
        if chance < 0.4:
            self._read(self._draw.choice((None, *ANALYSTS)))
        elif chance < 0.6:
            number = self._draw.randrange(self._keys)
            self._debit(ANALYSTS[number % 4], 1 + number % 3, f"question {number}", key_of(f"question {number}"))
        else:
            self._debit(self._draw.choice(ANALYSTS), self._draw.choice((1, 2, 3)), f"{self._name} {turn}", None)

    def _read(self, analyst: str | None) -> None:
        number = self._notes.begin(what="read", analyst=analyst)
        try:
            _, spent, left = self._ledger.standing(analyst=analyst)
        except SulqError as error:
            self._notes.end(number, error.code)
        else:
            self._notes.end(number, "read", spent=int(spent.amount / UNIT), left=int(left.amount / UNIT))

    def _debit(self, analyst: str, cost: int, name: str, key: str | None) -> None:
        number = self._notes.begin(what="debit", analyst=analyst, cost=cost, name=name, key=key)
        EAGER[0] = number
        try:
            receipt = self._ledger.debit(EVENTS[cost], question=name, plan_digest=name, key=key, analyst=analyst)
        except BudgetExceeded:
            self._notes.end(number, "refused")
        except SulqError as error:
            self._notes.end(number, error.code)
        else:
            if receipt.stored is not None:
                self._notes.end(number, "stored", seq=receipt.seq, answer=receipt.stored)
                return
            self._notes.end(number, "granted", seq=receipt.seq)
            if key is not None or self._draw.random() < 0.2:
                answer = f"answer of {self._name} to {name}"
                kept = self._notes.begin(what="keep", name=name, seq=receipt.seq, answer=answer)
                self._ledger.keep(receipt, answer)
                self._notes.end(kept, "kept")


EAGER = [0]  # the debit under way in a process of one thread


def child(path: Path | str, notes: Path, *, name: str, acts: int, keys: int, kind: str) -> None:
    """Use the ledger from several threads, so often."""
    written = Notes(notes)
    failpoint: Callable[[str], None] = lambda _: None  # noqa: E731
    if kind == "hasty":

        def failpoint(step: str) -> None:
            if step == "after-insert":  # told here, a moment before the commit
                written.end(EAGER[0], "hasty")
                time.sleep(0.002)

    threads = 1 if kind == "hasty" else THREADS
    with open_ledger(path, None, failpoint=failpoint) as ledger:
        if kind == "stale":
            fresh = ledger.standing
            ledger.standing = lambda **more: fresh(**{**more, "fresh": False})

        def work(user: User) -> None:
            for turn in range(acts // threads):
                user.act(turn)

        users = [User(ledger, written, f"{name}-{number}", keys) for number in range(threads)]
        crowd = [threading.Thread(target=work, args=(user,)) for user in users]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()


def forked(work: Callable[[], None]) -> int:
    """A process that does this and ends."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def last_of(notes: Path) -> int:
    """The process that noted something last: it is in the middle of something."""
    said = notes.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[2] if notes.exists() else b""
    return int(json.loads(said)["pid"]) if said else 0


def run(acts: int, seed: int, where: str, kind: str) -> dict[str, object]:
    """Have processes use a new ledger, killing one now and then, until so much was done."""
    draw = random.Random(seed)
    budget = budget_of(acts)
    with memory_folder() as folder:
        path = laid(where, folder, "crowd")
        with open_ledger(path, Epsilon(budget * UNIT)) as ledger:
            for analyst, (share, reserve) in SHARES.items():
                ledger.share(analyst, Share.of(share, reserve))
        notes = folder / "notes"
        keys = max(acts // 25, 4)
        names = (f"{seed}-{number}" for number in itertools.count())

        def start() -> int:
            name, each = next(names), acts // PROCESSES
            return forked(lambda: child(path, notes, name=name, acts=each, keys=keys, kind=kind))

        running = {start() for _ in range(PROCESSES)}
        kills = max(acts // 2000, 2)
        while running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                running.discard(pid)
                if status and not os.WIFSIGNALED(status):
                    raise AssertionError(f"a process ended by itself: {status}")
            elif kills and draw.random() < 0.1 and (busy := last_of(notes)) in running:
                os.kill(busy, signal.SIGKILL)
                kills -= 1
                running.add(start())
            else:
                time.sleep(0.01)
        records = [json.loads(line) for line in notes.read_text().splitlines()]
        verify(path)
        with open_ledger(path, None) as ledger:
            log = [
                [line.seq, line.analyst, int(line.event.epsilon / UNIT), line.question, key_of(line.question)]
                for line in ledger.transcript()
            ]
    return {"records": records, "log": log, "budget": budget}


if __name__ == "__main__":
    number, seed, where, *rest = sys.argv[1:]
    print(json.dumps(run(int(number), int(seed), where, rest[0] if rest else "")))
