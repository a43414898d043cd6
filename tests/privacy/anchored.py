"""Processes that are killed while they ask of an anchored ledger, and old copies put back afterwards: run as a script.

    python -m tests.privacy.anchored COUNT SEED WHERE [late]

WHERE is `file` or the postgresql:// URL of a server. Prints one JSON record. `late`: children that acknowledge
a debit before its anchor is written.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import NoReturn

from sulq.curator.ledger.ledger import Ledger, reconcile
from sulq.curator.ledger.postgres_place import is_address
from sulq.errors import BudgetExceeded, SulqError
from sulq.language.privacy import Epsilon, Unit
from tests.curator.ledger.cases import MECHANISMS, memory_folder, pure
from tests.curator.ledger.places import Place, copied

WHERE = sys.argv[3] if sys.argv[3:] else "file"
COST = "0.01"
BUDGET = Epsilon(4)
STEPS = (
    "before-begin", "before-commit", "after-commit", "before-anchor", "anchor-written", "anchor-renamed",
    "after-anchor", "before-ack", "after-ack",
)  # fmt: skip


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def ledger_of(folder: Path) -> Place:
    """Where the ledger of a folder lies: in it, or in a schema of its name."""
    if not is_address(WHERE):
        return folder / "a.ledger"
    return f"{WHERE}_{'_'.join(folder.relative_to(folder.anchor).parts[-3:]).lower()}"


def open_ledger(folder: Path, **options: object) -> Ledger:
    return Ledger.open(
        ledger_of(folder), anchor=folder / "far" / "a.anchor", unit=Unit(), budget=BUDGET, mechanisms=MECHANISMS,
        wait=60.0, **options,
    )  # fmt: skip


def asking(folder: Path, say: int, step: str, draw: random.Random, *, late: bool) -> NoReturn:
    """Ask from one or three threads until killed, saying each acknowledged debit through a pipe."""
    left = [draw.randrange(1, 8)]

    def failpoint(name: str) -> None:
        if name == step:
            left[0] -= 1
            if left[0] <= 0:
                die()

    ledger = open_ledger(folder, failpoint=failpoint)
    advance = ledger._advance
    if late:
        ledger._advance = lambda _: None

    def work(name: str) -> None:
        try:
            while True:
                seq = ledger.debit(pure(COST), question="q", plan_digest="p", analyst=name).seq
                os.write(say, f"{seq}\n".encode())
                failpoint("after-ack")
                if late:
                    advance(seq)
        except BudgetExceeded:
            die()

    names = draw.choice((["ann"], ["ann", "ben", ""]))
    for name in names[1:]:
        threading.Thread(target=work, args=(name,)).start()
    work(names[0])
    raise AssertionError


def spawn(folder: Path, step: str, draw: random.Random, *, late: bool) -> list[int]:
    """Run a child until it is killed; the entries it said were charged."""
    listen, say = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(listen)
            asking(folder, say, step, draw, late=late)
        finally:
            os._exit(1)
    os.close(say)
    with os.fdopen(listen) as pipe:
        said = [int(line) for line in pipe.read().splitlines()]
    status = os.waitpid(child, 0)[1]
    if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
        raise AssertionError(f"a child ended by itself at {step}: {status}")
    return said


def violations(folder: Path, said: list[int]) -> list[str]:
    """What must not be: a ledger that does not open, or an acknowledged debit that the anchor does not know of."""
    noted = json.loads((folder / "far" / "a.anchor").read_bytes())
    found = [f"entry {seq} was acknowledged and is not anchored" for seq in said if seq > noted["seq"]]
    try:
        with open_ledger(folder) as ledger:
            if not {*said} <= {line.seq for line in ledger.transcript()}:
                found.append("an acknowledged debit is lost")
            if ledger.totals.epsilon < noted["whole"]["epsilon"]:
                found.append("the ledger has less than its anchor")
    except SulqError as error:
        found.append(error.code)
    return found


def restored(folder: Path, old: Place, said: list[int]) -> list[str]:
    """Put an old copy back: it must be refused if it lacks an acknowledged debit, and know the spend once mended."""
    with open_ledger(folder) as ledger:
        before = ledger.totals
    trial = folder / "trial"
    shutil.rmtree(trial, ignore_errors=True)
    (trial / "far").mkdir(parents=True)
    shutil.copy(folder / "far" / "a.anchor", trial / "far" / "a.anchor")
    copied(old, ledger_of(trial))
    found = []
    try:
        open_ledger(trial).close()
        if said:
            found.append("an old ledger was taken for the new one")
    except SulqError as error:
        if error.code != "ledger-rolled-back":
            found.append(error.code)
        reconcile(ledger_of(trial), trial / "far" / "a.anchor", mechanisms=MECHANISMS)
    noted = json.loads((folder / "far" / "a.anchor").read_bytes())
    with open_ledger(trial) as ledger:
        if ledger.totals.epsilon < noted["whole"]["epsilon"] or ledger.totals.epsilon > before.epsilon:
            found.append("the burnt gap is not what was lost")
        ledger.verify()
    return found


def kill(number: int, seed: int, *, late: bool) -> dict[str, object]:
    draw = random.Random(seed)
    found: list[str] = []
    hits = dict.fromkeys(STEPS, 0)
    debits = refused = 0
    with memory_folder() as top:
        for cycle in range(number):
            folder = top / str(cycle // 19)
            if cycle % 19 == 0:
                (folder / "far").mkdir(parents=True)
                (folder / "old").mkdir()
                open_ledger(folder).close()
            step = STEPS[cycle % len(STEPS)]
            old = ledger_of(folder / "old")
            copied(ledger_of(folder), old)
            said = spawn(folder, step, random.Random(draw.random()), late=late)
            hits[step] += 1
            debits += len(said)
            refused += bool(said)
            found += violations(folder, said)
            if not late:
                found += restored(folder, old, said)
    return {"kills": number, "hits": hits, "debits": debits, "refused": refused, "violations": found}


if __name__ == "__main__":
    print(json.dumps(kill(int(sys.argv[1]), int(sys.argv[2]), late=sys.argv[4:] == ["late"])))
