"""Where a ledger may lie: a file, or a schema of the tests' PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sulq.curator.ledger.chain import Row
from sulq.curator.ledger.postgres import Address, PostgresStore
from sulq.curator.ledger.sqlite import SqliteStore
from sulq.curator.ledger.store import Store
from tests.curator.ledger.cases import memory_folder
from tests.postgres import server

STORES = ("sqlite", "postgres")
Place = Path | str


@contextmanager
def empty(kind: str) -> Iterator[Place]:
    """A place with no ledger yet."""
    if kind == "postgres":
        url = server().url()
        yield url
        server().do(f"DROP SCHEMA IF EXISTS {Address.of(url).ledger} CASCADE")
        return
    with memory_folder() as folder:
        yield folder / "a.ledger"


def create(place: Place, rows: Sequence[Row]) -> None:
    """Begin a ledger with these rows."""
    if isinstance(place, str):
        PostgresStore.create(Address.of(place), rows)
    else:
        SqliteStore.create(place, rows)


def store_at(place: Place, wait: float = 5.0) -> Store:
    """Connect to what lies there."""
    if isinstance(place, str):
        return PostgresStore(Address.of(place), wait=wait)
    return SqliteStore(str(place), wait=wait)
