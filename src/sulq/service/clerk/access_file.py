"""The file of the access store: created whole, and brought to the present form where an earlier version wrote it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import apsw

from sulq.errors import SetupError
from sulq.kernel.entropy import random_bytes

LOCK_MILLISECONDS: Final = 5000  # milliseconds for the file's lock
SCHEMA: Final = (
    """CREATE TABLE principals (
    name TEXT PRIMARY KEY COLLATE NOCASE, role TEXT NOT NULL, datasets TEXT, created INTEGER NOT NULL, revoked INTEGER
) STRICT""",
    """CREATE TABLE tokens (
    made INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, name TEXT NOT NULL COLLATE NOCASE,
    created INTEGER NOT NULL, expires INTEGER NOT NULL
) STRICT""",
    """CREATE TABLE sessions (
    hash TEXT PRIMARY KEY, token TEXT NOT NULL, created INTEGER NOT NULL, used INTEGER NOT NULL
) STRICT""",
)
# Of version 0.1.0: a name had one token, and its row held it.
EARLIER: Final = """CREATE TABLE principals (
    name TEXT PRIMARY KEY COLLATE NOCASE, role TEXT NOT NULL, datasets TEXT, token TEXT NOT NULL UNIQUE,
    created INTEGER NOT NULL, expires INTEGER NOT NULL, revoked INTEGER
) STRICT"""
UPGRADE: Final = (
    "ALTER TABLE principals RENAME TO earlier",
    *SCHEMA,
    "INSERT INTO principals SELECT name, role, datasets, created, revoked FROM earlier",
    "INSERT INTO tokens SELECT NULL, token, name, created, expires FROM earlier ORDER BY created",
    "DROP TABLE earlier",
)


def create(path: Path) -> None:
    """Write the empty store whole beside its place, then link it there: no half store ever bears the name."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{random_bytes(8).hex()}.new")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        db = apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READWRITE)
        db.pragma("synchronous", "EXTRA")
        for table in SCHEMA:
            db.execute(table)
        db.close()
        try:
            os.link(draft, path)
        except FileExistsError:  # another process was first; theirs is as good
            return
    finally:
        draft.unlink(missing_ok=True)


def opened(path: Path) -> apsw.Connection:
    """A connection to a store; one of an earlier version is brought to this one, in one transaction."""
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        db.set_busy_timeout(LOCK_MILLISECONDS)
        db.pragma("synchronous", "EXTRA")  # a token that was shown, or ended, is so after a power cut too
        db.pragma("trusted_schema", "OFF")
        if _tables(db) == (EARLIER,):
            _upgrade(db)
        if _tables(db) == tuple(sorted(SCHEMA)):
            return db
        db.close()
    except (apsw.Error, ValueError) as error:
        raise damaged(path) from error
    raise damaged(path)


def damaged(path: Path) -> SetupError:
    """The error for a file that is no store."""
    return SetupError("access-damaged", f"The access store {path} cannot be read.")


def _tables(db: apsw.Connection) -> tuple[str, ...]:
    """The definitions of the file's tables, in order of their texts."""
    return tuple(sorted(str(sql) for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")))


def _upgrade(db: apsw.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    if _tables(db) == (EARLIER,):  # no other process was first
        for statement in UPGRADE:
            db.execute(statement)
    db.execute("COMMIT")
