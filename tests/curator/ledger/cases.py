"""Events and ledgers for the tests of the ledger."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from sulq.answers.answer import Receipt
from sulq.curator.ledger.ledger import Ledger
from sulq.language.privacy import Budget, Draw, Epsilon, Event, Unit

MECHANISMS = ("laplace", "gaussian", "binomial")


def pure(epsilon: object) -> Event:
    """One count with discrete Laplace noise."""
    loss = Fraction(str(epsilon))
    draw = Draw("laplace", "add_remove", "l1", Fraction(1), 1 / loss if loss else Fraction(1), Fraction(1), 1)
    return Event(loss, loss**2 / 2, draws=(draw,))


def gaussian(rho: object, *, key_delta: object = 0) -> Event:
    """One count with discrete Gaussian noise, perhaps over open keys."""
    loss = Fraction(str(rho))
    draw = Draw("gaussian", "add_remove", "l2", Fraction(1), 1 / (2 * loss), Fraction(1), 1)
    return Event(None, loss, Fraction(str(key_delta)), draws=(draw,))


def queries(number: int) -> Event:
    """A vector of noisy sums under SubLinear."""
    draw = Draw("gaussian", "add_remove", "l2", Fraction(1), Fraction(100), Fraction(1), number)
    return Event(None, Fraction(number, 20_000), queries=number, draws=(draw,))


def opened(path: Path | None = None, budget: Budget | None = None, **options: object) -> Ledger:
    """A ledger that protects single rows."""
    budget = Epsilon(1) if budget is None else budget
    return Ledger.open(path, unit=Unit(), budget=budget, mechanisms=MECHANISMS, **options)


def ask(ledger: Ledger, event: Event, question: str = "how many?", key: str | None = None) -> Receipt:
    """Charge an event."""
    return ledger.debit(event, question=question, plan_digest=f"plan of {question}", key=key)


@contextmanager
def memory_folder() -> Iterator[Path]:
    """An empty folder, in memory where the system has one: syncing a file there costs nothing."""
    shared = Path("/dev/shm")
    where = shared if shared.is_dir() and os.access(shared, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        yield Path(folder)
