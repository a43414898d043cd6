"""Processes that are killed while they ask, and processes that race: run as a script, since it forks.

    python -m tests.privacy.children kill COUNT SEED WHERE [backwards]
    python -m tests.privacy.children race PROCESSES THREADS ASKS SEED equal|mixed WHERE
    python -m tests.privacy.children load FOLDER PROCESSES THREADS URL [hasty]

WHERE is `file` or the postgresql:// URL of a server. The first two print one JSON
record. The script itself has no threads and no open ledger when it forks.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

from sulq.curator.ledger import checkpoints, opening
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import verify
from sulq.curator.ledger.postgres_place import Address, PostgresPlace, is_address
from sulq.errors import BudgetExceeded, SulqError
from sulq.language.privacy import Budget, Epsilon, Unit
from tests.curator.ledger.cases import MECHANISMS, memory_folder, pure
from tests.privacy.disks import Disk

Place = Path | str
COST = "0.01"
BUDGET = Epsilon(3)
STEPS = (
    "before-begin", "after-begin", "after-insert", "before-commit", "after-commit", "before-ack",
    "after-ack", "before-keep", "after-keep", "inside", "timer",
)  # fmt: skip


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


class KillingDisk(Disk):
    """Kills the process at its n-th change of a file."""

    def __init__(self, at: int) -> None:
        self._left = at
        super().__init__()

    def before(self, act: str, path: str, offset: int = 0, data: bytes = b"") -> None:
        self._left -= 1
        if self._left == 0:
            die()


def open_ledger(path: Place, budget: Budget = BUDGET, wait: float = 60.0, **options: object) -> Ledger:
    return Ledger.open(path, unit=Unit(), budget=budget, mechanisms=MECHANISMS, wait=wait, **options)


def laid(where: str, folder: Path, name: str) -> Place:
    """Where a ledger of this name lies."""
    if is_address(where):
        return f"{where}_{folder.name.lower()}_{name.replace('-', '_')}"
    return folder / f"{name}.ledger"


def begun(path: Place) -> bool:
    """Whether there is a ledger already."""
    if isinstance(path, Path):
        return path.exists()
    store = PostgresPlace(Address.of(path))
    try:
        return store.exists()
    finally:
        store.close()


def asking(path: Place, say: int, step: str, draw: random.Random, cycle: int, *, backwards: bool) -> NoReturn:
    """Ask until killed, saying each debit (A), answer (R) and kept answer (K) through a pipe."""
    left = [draw.randrange(1, 6)]

    def failpoint(name: str) -> None:
        if name == step:
            left[0] -= 1
            if left[0] <= 0:
                die()
        if name == "before-commit" and step == "inside" and isinstance(path, str):
            left[0] -= 1
            if left[0] == 0:  # at any moment of the statement that is sent next
                threading.Timer(draw.uniform(0, 0.002), die).start()

    disk = KillingDisk(draw.randrange(1, 120)) if step == "inside" and isinstance(path, Path) else None
    ledger = open_ledger(path, failpoint=failpoint, vfs=disk.name if disk else "")
    threads = draw.choice((1, 1, 3))

    def work(number: int) -> None:
        for i in range(40):
            name = f"{cycle}-{number}-{i}"
            key = name if draw.random() < 0.5 else None
            if backwards:
                os.write(say, f"R {name} 0\n".encode())
            try:
                receipt = ledger.debit(pure(COST), question=name, plan_digest=name, key=key)
            except BudgetExceeded:
                return
            os.write(say, f"A {name} {receipt.seq}\n".encode())
            failpoint("after-ack")
            if not backwards:
                os.write(say, f"R {name} {receipt.seq}\n".encode())
            failpoint("before-keep")
            ledger.keep(receipt, f"answer to {name}")
            if key is not None:
                os.write(say, f"K {name} {receipt.seq}\n".encode())
            failpoint("after-keep")

    helpers = [threading.Thread(target=work, args=(number,)) for number in range(1, threads)]
    for helper in helpers:
        helper.start()
    work(0)
    for helper in helpers:
        helper.join()
    die()


def spawn(path: Place, step: str, draw: random.Random, cycle: int, *, backwards: bool) -> list[list[str]]:
    """Run a child until it is killed; what it said before."""
    listen, say = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(listen)
            asking(path, say, step, draw, cycle, backwards=backwards)
        finally:
            os._exit(1)
    os.close(say)
    if step == "timer":
        time.sleep(draw.uniform(0, 0.02 if isinstance(path, Path) else 0.1))
        os.kill(child, signal.SIGKILL)
    with os.fdopen(listen) as pipe:
        said = [line.split() for line in pipe.read().splitlines()]
    status = os.waitpid(child, 0)[1]
    if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
        raise AssertionError(f"a child ended by itself at {step}: {status}")
    return said


def violations(path: Place, said: list[list[str]]) -> list[str]:
    """What must not be: a lost debit, an answer without one, an overspend, a broken chain, a second charge."""
    if not begun(path):  # killed while it was being created
        return [f"{line} without a ledger" for line in said]
    try:
        verify(path)
        with open_ledger(path) as ledger:
            lines = ledger.transcript()
            places = {line.question: line.seq for line in lines}
            found = [f"{kind} {name} has no debit" for kind, name, _ in said if name not in places]
            found += [f"{name} moved" for kind, name, seq in said if kind == "A" and places.get(name) != int(seq)]
            if len(places) != len(lines):
                found.append("a question was charged twice")
            if ledger.spent.amount > BUDGET.exact:
                found.append("the budget is exceeded")
            for kind, name, _ in said:
                if kind == "K":
                    again = ledger.debit(pure(COST), question=name, plan_digest=name, key=name)
                    if again.stored != f"answer to {name}":
                        found.append(f"{name} has another answer")
            if len(ledger.transcript()) != len(lines):
                found.append("a retry was charged")
            return found
    except SulqError as error:
        return [str(error)]


def kill(number: int, seed: int, where: str, *, backwards: bool) -> dict[str, object]:
    draw = random.Random(seed)
    found: list[str] = []
    hits = dict.fromkeys(STEPS, 0)
    debits = 0
    with memory_folder() as folder:
        for cycle in range(number):
            step = STEPS[cycle % len(STEPS)]
            # A prime: every step meets ledgers of every age; the timer also strikes while one is created.
            path = laid(where, folder, f"new-{cycle}" if step == "timer" else f"{cycle // 23}")
            said = spawn(path, step, random.Random(draw.random()), cycle, backwards=backwards)
            hits[step] += 1
            debits += sum(line[0] == "A" for line in said)
            found += violations(path, said)
        left = [str(file) for file in folder.rglob("*.new*")]
    return {"kills": number, "hits": hits, "debits": debits, "violations": found, "drafts": len(left)}


def racing(path: Place, budget: Budget, log: Path, *, start: float, threads: int, seed: int, costs: list[str]) -> None:
    """Ask from several threads until refused, noting when each ask began and ended and what came of it."""
    records: list[tuple[int, int, str, int, str]] = []

    def work(number: int) -> None:
        draw = random.Random(f"{seed}-{number}")
        time.sleep(max(start - time.monotonic(), 0))
        refusals = 0
        while refusals < 2:
            cost = draw.choice(costs)
            begun = time.monotonic_ns()
            try:
                seq = ledger.debit(pure(cost), question="q", plan_digest="p").seq
                outcome = "granted"
            except BudgetExceeded:
                seq, outcome = 0, "refused"
                refusals += cost == "0.001"
            records.append((begun, time.monotonic_ns(), outcome, seq, cost))

    with open_ledger(path, budget) as ledger:
        crowd = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
    log.write_text(json.dumps(records), encoding="utf-8")


def race(processes: int, threads: int, asks: int, seed: int, *, kind: str, where: str) -> dict[str, object]:
    budget = Epsilon(asks / 1000)
    costs = ["0.001"] if kind == "equal" else ["0.001", "0.001", "0.003"]
    with memory_folder() as folder:
        path = laid(where, folder, "race")
        open_ledger(path, budget).close()
        start = time.monotonic() + 1.0
        children = []
        for number in range(processes):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    racing(
                        path, budget, folder / f"{number}.json", start=start, threads=threads,
                        seed=seed * 1000 + number, costs=costs,
                    )  # fmt: skip
                    code = 0
                finally:
                    os._exit(code)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        records = [r for number in range(processes) for r in json.loads((folder / f"{number}.json").read_text())]
        report = verify(path)
        with open_ledger(path, budget) as ledger:
            log = [(line.seq, str(line.event.epsilon)) for line in ledger.transcript()]
        return {
            "codes": codes, "records": records, "log": log, "budget": str(budget.exact),
            "spent": str(report.spent.amount),
        }  # fmt: skip


class Hasty(PostgresPlace):
    """Says that a debit is made before it is on disk."""

    def _connect(self) -> None:
        super()._connect()
        assert self._db is not None
        self._db.execute("SET synchronous_commit = off")


def loading(url: str, folder: Path, *, threads: int, number: int) -> None:
    """Ask from several threads until told to stop, noting what came of each ask; some wait long and some do not."""
    wait = (60.0, 0.05)[number % 2]

    def work(place: int) -> None:
        asks = 0
        with (folder / f"{number}-{place}.log").open("a", encoding="utf-8") as lines:
            while not (folder / "stop").exists():
                asks += 1
                name = f"{number}-{place}-{asks}"
                try:
                    receipt = ledger.debit(pure("0.0001"), question=name, plan_digest=name)
                    lines.write(f"granted {name} {receipt.seq} {time.monotonic()}\n")
                except SulqError as error:
                    lines.write(f"{error.code} {name} 0 {time.monotonic()}\n")
                    if error.code == "ledger-damaged":
                        return
                    time.sleep(0.01)
                lines.flush()

    with open_ledger(url, Epsilon(1000)) as ledger:
        ledger._writer._store.wait = wait
        crowd = [threading.Thread(target=work, args=(place,)) for place in range(threads)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()


def load(folder: Path, processes: int, threads: int, url: str, *, hasty: bool) -> None:
    """Keep a ledger in PostgreSQL under load until a file `stop` is there."""
    if hasty:
        opening.PostgresPlace = Hasty
    children = []
    for number in range(processes):
        child = os.fork()
        if child == 0:
            try:
                loading(url, folder, threads=threads, number=number)
            except SulqError as error:
                (folder / f"{number}.error").write_text(error.code, encoding="utf-8")
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    checkpoints.EVERY = 20  # so that children die around checkpoints too
    match sys.argv[1:]:
        case ["kill", number, seed, where, *rest]:
            print(json.dumps(kill(int(number), int(seed), where, backwards=rest == ["backwards"])))
        case ["race", processes, threads, asks, seed, kind, where]:
            print(json.dumps(race(int(processes), int(threads), int(asks), int(seed), kind=kind, where=where)))
        case ["load", folder, processes, threads, url, *rest]:
            load(Path(folder), int(processes), int(threads), url, hasty=rest == ["hasty"])
