"""A child process that is sent SIGINT at random moments of its asks, and looks at its ledger after each.

    python -m tests.privacy.interrupted FOLDER TRIALS SEED [untold]

`untold`: calls do not hear of their debits, which must be noticed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sulq
from sulq import Epsilon, col
from sulq.curator import curator

SPEND = Epsilon(Fraction(1, 1000))
LONGEST_SECONDS = 30.0


def data(folder: Path, rows: int) -> Path:
    """A file of made-up rows."""
    rng = np.random.default_rng()
    path = folder / "survey.parquet"
    pq.write_table(pa.table({"age": rng.integers(0, 100, rows), "pay": rng.integers(0, 1000, rows)}), path)
    return path


def opened(folder: Path) -> sulq.api.database.Database:
    """The database, with its ledger on the disk."""
    columns = {"age": sulq.Int(0, 100), "pay": sulq.Int(0, 1000)}
    return sulq.connect(folder / "survey.parquet", columns=columns, budget=Epsilon(1000))


@contextlib.contextmanager
def untold() -> Iterator[Callable[..., None]]:
    """A debit that the call does not hear of: then it says that nothing was spent where something was."""
    yield lambda *_: None


def works(db: sulq.api.database.Database) -> dict[str, Callable[[int], object]]:
    """What is interrupted, by name; the number makes each question another one."""
    return {
        "count": lambda i: db.count(col("age") > i % 100, spend=SPEND),
        "fresh": lambda _: db.mean("pay", spend=SPEND, fresh=True),
        "several": lambda i: db.sql(f"SELECT COUNT(*), AVG(pay) FROM survey WHERE age > {i % 90}", spend=SPEND),
        "fit": lambda _: sulq.learn.KMeans(2, max_iter=4).fit(db[["age", "pay"]], spend=Epsilon(1)),
        "release": lambda _: sulq.release.mwem(db, ["age"], bins=4, rounds=2, spend=Epsilon(1)),
        "timeout": lambda i: db.count(col("pay") > i, spend=SPEND, timeout=20.0),
    }


def charges(db: sulq.api.database.Database) -> list[int]:
    """The receipts of all debits; what is spent is their sum."""
    lines = db.transcript()
    assert db.spent.amount == sum((line["event"].epsilon for line in lines), start=Fraction(0))
    return [line["seq"] for line in lines]


def interrupt(work: Callable[[], object], delay: float) -> BaseException | None:
    """Do some work, and be sent a real SIGINT after so many seconds; what it raised."""
    sent = threading.Event()

    def send() -> None:
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGINT)
        sent.set()

    raised: BaseException | None = None
    begun = False
    while True:
        try:
            if not begun:
                begun = True
                threading.Thread(target=send).start()
                work()
            while not sent.wait(0.001):
                pass
            time.sleep(0.002)
        except KeyboardInterrupt as error:
            raised = raised or error
        else:
            return raised


def trial(db: sulq.api.database.Database, name: str, work: Callable[[], object], delay: float) -> str:
    """One interrupt, and what was said of it against what the ledger has; returns what became of it."""
    before = charges(db)
    error = interrupt(work, delay)
    db._waits.cancel(lambda _: None)  # waits for what runs aside; nothing is interrupted in the engine
    made = sorted(set(charges(db)) - set(before))
    told = str(error) if error is not None else "no interrupt"
    if "Nothing was spent" in told:
        assert made == [], f"{name}: {made} were charged and it said: {told}"
    elif "charged" in told:
        said = [int(number) for number in re.findall(r"\d+", re.search(r"receipts? ([\d,. ]+)", told)[1])]
        assert said == made[-len(said) :], f"{name}: {made} were charged and it said: {told}"
        assert "may be" not in told, told
    count = len(charges(db))
    db.count(spend=SPEND, fresh=True)  # and the next ask is answered, and charged once
    assert len(charges(db)) == count + 1
    return "free" if "Nothing" in told else "charged" if "charged" in told else "outside" if error else "over"


def main(folder: Path, trials: int, seed: str) -> None:
    """All trials, and one line of JSON that says what became of them."""
    drawn = random.Random(seed)
    data(folder, 200_000)
    found: dict[str, int] = {}
    with opened(folder) as db:
        db.prepare()
        several = works(db)
        typical = {}
        for name, work in several.items():
            work(1000)
            start = time.monotonic()
            work(1001)
            typical[name] = time.monotonic() - start
        for i in range(trials):
            name = sorted(several)[i % len(several)]
            work = several[name]
            start = time.monotonic()
            outcome = trial(db, name, lambda work=work, i=i: work(i), drawn.random() * 1.2 * typical[name])
            assert time.monotonic() - start < LONGEST_SECONDS, name
            found[outcome] = found.get(outcome, 0) + 1
        db.verify(whole=True)
    print(json.dumps(found))


if __name__ == "__main__":
    if "untold" in sys.argv:
        curator.debit = untold
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
