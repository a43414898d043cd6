"""Made-up people for the attacks: a seat everybody knows, and a bit nobody should."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

import sulq
from sulq import Bool, Epsilon, Int, Unit
from sulq.answers.oracle import Oracle
from sulq.api.database import Database
from sulq.language.privacy import Budget

SEAT, SECRET = sulq.each("seat"), sulq.col("secret")
REPLACED = Unit(neighbors="replace_one")


def bits(people: int, seed: int) -> np.ndarray:
    """A fair bit for everybody."""
    return np.random.default_rng(seed).random(people) < 0.5


def people(secrets: np.ndarray, budget: Budget, unit: Unit = REPLACED) -> Database:
    """A database of people with secrets, declared synthetic so that controls may leave the noise out."""
    seats = len(secrets)
    table = pa.table({"seat": np.arange(seats), "secret": secrets})
    columns = {"seat": Int(0, seats - 1), "secret": Bool()}
    return sulq.connect(table, columns=columns, unit=unit, budget=budget, synthetic=True)


def ones(count: int, seen: Callable[[Database], Oracle] = lambda db: db) -> Callable[..., object]:
    """How to open a database of so many people, again and again."""

    @contextlib.contextmanager
    def opened() -> Iterator[Oracle]:
        table = pa.table({"x": np.ones(count, dtype=np.int64)})
        with sulq.connect(table, columns={"x": Int(0, 1)}, budget=Epsilon(1000), synthetic=True) as db:
            yield seen(db)

    return opened
