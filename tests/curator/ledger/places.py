"""Where a ledger may lie: a file, or a schema of the tests' PostgreSQL; and what a restore does to it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sulq.curator.ledger.postgres_place import Address, PostgresPlace
from sulq.curator.ledger.turns import SqliteFile
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.store import Store
from tests.curator.ledger.cases import memory_folder
from tests.postgres import server

STORES = ("sqlite", "postgres")
Place = Path | str
LAID: dict[Path, str] = {}  # paths that stand for schemas, while a test's ledgers are laid into PostgreSQL
COPY = """
CREATE SCHEMA {1};
CREATE TABLE {1}.entries (LIKE {0}.entries INCLUDING ALL); INSERT INTO {1}.entries SELECT * FROM {0}.entries;
CREATE TABLE {1}.head (LIKE {0}.head INCLUDING ALL); INSERT INTO {1}.head SELECT * FROM {0}.head;
"""


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
        PostgresPlace.create(Address.of(place), rows)
    else:
        SqliteFile.create(place, rows)


def store_at(place: Place, wait: float = 5.0) -> Store:
    """Connect to what lies there."""
    if isinstance(place, str):
        return PostgresPlace(Address.of(place), wait=wait)
    return SqliteFile(str(place), wait=wait)


def copied(source: Place, target: Place) -> None:
    """Make one place hold what another holds: a backup, or its restoring."""
    source = _laid(source)
    if isinstance(source, Path):
        shutil.copy(source, target)
    else:
        if isinstance(target, Path):
            target = LAID.setdefault(target.resolve(), f"{source}_of_{target.stem}")
        removed(target)
        _do(source, COPY.format(Address.of(source).ledger, Address.of(target).ledger))


def removed(place: Place) -> None:
    """Take a ledger away, if there is one."""
    place = _laid(place)
    if isinstance(place, Path):
        place.unlink(missing_ok=True)
    else:
        _do(place, f"DROP SCHEMA IF EXISTS {Address.of(place).ledger} CASCADE")


def there(place: Place) -> bool:
    """Whether there is a ledger."""
    place = _laid(place)
    if isinstance(place, Path):
        return place.exists()
    store = PostgresPlace(Address.of(place))
    try:
        return store.exists()
    finally:
        store.close()


def _laid(place: Place) -> Place:
    return place if isinstance(place, str) else LAID.get(place.resolve(), place)


def _do(place: str, text: str) -> None:
    import psycopg

    with psycopg.connect(Address.of(place).url) as db:
        db.execute("SET client_min_messages = warning")
        db.execute(text)
