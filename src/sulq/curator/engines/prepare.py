"""The prepared copy: the kept rows as integers, built once, in a private file or in memory."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from sulq.curator.engines import kept
from sulq.curator.engines.connection import Connection
from sulq.curator.engines.source import Registered
from sulq.errors import SetupError
from sulq.version import __version__

FORMAT: Final = "2"
ABANDONED: Final = 3600.0  # seconds after which a folder without a lock belongs to nobody
UNWRITABLE: Final = ("FileNotFoundError", "IOException", "NotADirectoryError", "OSError", "PermissionError")
Progress = Callable[[float], None]

_log = logging.getLogger("sulq")


def facts(registered: Registered) -> dict[str, str]:
    """What a prepared copy records of where it came from."""
    origin, unit = registered.origin, registered.unit
    declared = [[name, repr(column)] for name, column in registered.schema.columns]
    read = {name: [cell, sql] for name, (cell, sql) in registered.source.columns.items()}
    return {
        "format": FORMAT,
        "sulq": __version__,
        "duckdb": duckdb.__version__,
        "source": str(origin.path),
        "size": str(origin.size),
        "modified": str(origin.modified),
        "schema": json.dumps(read, sort_keys=True),
        "declarations": hashlib.sha256(json.dumps([declared, repr(unit)]).encode()).hexdigest(),
        "space": registered.space,
        "key": hashlib.sha256(b"sulq kept rows" + registered.key).hexdigest(),
    }


def read(path: Path) -> dict[str, str] | None:
    """What a prepared copy records; None where the file is no prepared copy."""
    connection = Connection(threads=1)
    try:
        connection.attach(path, "data")
        return {str(name): str(value) for name, value in connection.root.execute("SELECT * FROM data.facts").fetchall()}
    except (duckdb.Error, ValueError):
        return None
    finally:
        connection.close()


def usable(path: Path, wanted: dict[str, str], *, renew: bool) -> bool:
    """Whether the prepared copy at a path is the one wanted; a changed source stops the owner (SR12)."""
    if not path.exists():
        return False
    found = read(path)
    if found is None:
        if renew:
            return False
        raise SetupError("prepared-unusable", f"{path.name!r} is not a prepared copy.")
    if any(found.get(name) != wanted[name] for name in ("size", "modified")):
        if renew:
            return False
        raise SetupError("source-changed", f"The data changed since {path.name!r} was prepared from it.")
    return all(found.get(name) == value for name, value in wanted.items() if name != "source")


def fill(
    connection: Connection, registered: Registered, *, into: str, progress: Progress | None, spell: bool = False
) -> None:
    """Read the source into a table of kept rows; `spell` where it is compressed, which makes dictionaries of texts."""
    rows = kept.select(registered, stored=True, spell=spell)
    open_source(connection, registered)
    cursor = connection.cursor()
    if rows.frame is not None:
        cursor.register("source", rows.frame)
    with _told(cursor, progress):
        cursor.execute(f"CREATE TABLE {into} AS SELECT * FROM {rows.relation}", rows.parameters)
    cursor.close()


def open_source(connection: Connection, registered: Registered) -> None:
    """Make ready what the SELECT of kept rows refers to: categories as types, a DuckDB file attached."""
    for name, values in kept.types(registered.schema):
        connection.root.register("listed", pa.table({"place": range(len(values)), "item": values}))
        connection.root.execute(f"CREATE TYPE {name} AS ENUM (SELECT item FROM listed ORDER BY place)")
        connection.root.unregister("listed")
    if registered.source.attach is not None:
        connection.attach(registered.source.attach, "origin")


def build(path: Path, registered: Registered, *, recorded: dict[str, str], progress: Progress | None) -> None:
    """Build the prepared copy beside its place and move it there whole (mode 0600)."""
    failed = ""
    try:
        with _folder(path) as folder:
            made = folder / "prepared"
            connection = Connection(folder=folder)
            try:
                connection.attach(made, "data", writable=True)
                fill(connection, registered, into="data.kept", progress=progress, spell=True)
                connection.root.register(
                    "recorded", pa.table({"name": list(recorded), "value": list(recorded.values())})
                )
                connection.root.execute("CREATE TABLE data.facts AS SELECT * FROM recorded")
                connection.root.execute("DETACH data")
            finally:
                connection.close()
            registered.origin.unchanged()
            made.chmod(0o600)
            made.replace(path)
    except (duckdb.Error, OSError) as error:
        failed = type(error).__name__
        _log.error("preparing failed: %s", failed)  # its text may hold a cell (T31)
    if failed in UNWRITABLE:
        raise SetupError(
            "prepared-unusable", f"The prepared copy {path.name!r} cannot be written.", "Check the folder and the disk."
        )
    if failed:
        raise SetupError("unreadable-data", "The data could not be read to its end.")


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[Path]:
    """A private folder beside the prepared copy; those of crashed runs are removed, those of running ones are not."""
    prefix = f".{path.name}.preparing-"
    for stale in path.parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError), (stale / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(stale, ignore_errors=True)
        with contextlib.suppress(OSError):
            if not (stale / "lock").exists() and time.time() - stale.stat().st_mtime > ABANDONED:
                shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=path.parent))
    try:
        with (folder / "lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _told(cursor: duckdb.DuckDBPyConnection, progress: Progress | None) -> Iterator[None]:
    """Tell how far a long statement has come, about four times a second."""
    if progress is None:
        yield
        return
    cursor.execute("SET enable_progress_bar = true")
    cursor.execute("SET enable_progress_bar_print = false")
    done = threading.Event()

    def tell() -> None:
        while not done.wait(0.25):
            progress(min(max(cursor.query_progress(), 0.0), 100.0) / 100.0)

    teller = threading.Thread(target=tell, daemon=True)
    progress(0.0)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
    progress(1.0)
