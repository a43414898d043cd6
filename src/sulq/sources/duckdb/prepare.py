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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from sulq.data_files import Files
from sulq.errors import SetupError
from sulq.language.rowfn.writer import KeptRows
from sulq.language.shape import MAX_STORED_ROWS
from sulq.sources.decode import files, frames
from sulq.sources.duckdb import kept_persons, kept_rows
from sulq.sources.duckdb.connection import Connection, Stop
from sulq.sources.duckdb.kept_persons import Part
from sulq.sources.duckdb.listed_tables import put_erased, put_table
from sulq.sources.erasure import without_erased
from sulq.sources.origin import Origin, suffix
from sulq.sources.source import RegisteredTable, joined, plain, whom
from sulq.sources.tables import inexact, not_own, not_unique
from sulq.version import __version__

FORMAT: Final = "5"
MAX_BUILD_MEMORY_MIB: Final = 1280  # of DuckDB's own while a copy is built; what has no room is spilled beside it
MAX_PERSONS: Final = 6_000_000  # whose rows are kept at once: so many have room in that
MAX_UNCOUNTED_ROWS: Final = 2 * MAX_PERSONS  # of no more rows than these the persons are not counted first
MAX_ORDERED_ROWS: Final = 500_000  # put in order at once
NOTED: Final = "noted"  # how many persons of each part have more rows than are kept
ABANDONED_SECONDS: Final = 3600.0  # seconds after which a folder without a lock belongs to nobody
UNWRITABLE: Final = ("FileNotFoundError", "IOException", "NotADirectoryError", "OSError", "PermissionError")
Progress = Callable[[float], None]

_log = logging.getLogger("sulq")


def facts(tables: Sequence[RegisteredTable]) -> dict[str, str]:
    """What a prepared copy records of where it came from, each table under its name."""
    first = tables[0]
    declared = [
        [
            item.schema.table,
            [[name, repr(column)] for name, column in item.schema.columns],
            # Copies of ledgers from before a unit said `fold` are found under their old name, and made anew.
            repr(item.unit).replace(", fold='spelling'", ""),
            item.unique,
            *([list(item.references)] if item.references else []),
        ]
        for item in tables
    ]
    read = {
        item.schema.table: {name: [cell, sql] for name, (cell, sql) in item.source.columns.items()}
        | {"": item.source.person}
        for item in tables
    }
    return {
        "format": FORMAT,
        "sulq": __version__,
        "duckdb": duckdb.__version__,
        "source": json.dumps({item.schema.table: str(item.origin.path) for item in tables}),
        "size": json.dumps({item.schema.table: item.origin.size for item in tables}),
        "modified": json.dumps({item.schema.table: item.origin.modified for item in tables}),
        "schema": json.dumps(read, sort_keys=True),
        "declarations": hashlib.sha256(json.dumps(declared).encode()).hexdigest(),
        "space": first.space,
        "key": hashlib.sha256(b"sulq kept rows" + first.key).hexdigest(),
    } | ({"erased": hashlib.sha256("".join(first.erased).encode()).hexdigest()} if first.erased else {})


def read(connection: Connection, path: Path) -> dict[str, str] | None:
    """What a prepared copy records; None where the file is none. A copy stays attached to the connection as `data`."""
    try:
        connection.attach(path, "data")
        found = connection.root.execute("SELECT * FROM data.facts").fetchall()
        return {str(name): str(value) for name, value in found}
    except (duckdb.Error, ValueError):
        return None


def usable(connection: Connection, path: Path, wanted: dict[str, str], *, renew: bool) -> bool:
    """Whether the prepared copy at a path is the one wanted; a changed source stops the owner (SR12)."""
    if not path.exists():
        return False
    found = read(connection, path)
    if found is None:
        if renew:
            return False
        raise SetupError("prepared-unusable", f"{path.name!r} is not a prepared copy.")
    if found.get("format") != FORMAT:
        return False
    changed = any(_changed(found.get(name, ""), wanted[name]) for name in ("size", "modified"))
    if changed and not renew:
        raise SetupError("source-changed", f"The data changed since {path.name!r} was prepared from it.")
    return not changed and all(found.get(name) == value for name, value in wanted.items() if name != "source")


def _changed(found: str, wanted: str) -> bool:
    """Whether a table that was prepared before is another file now; tables may be added and left out."""
    try:
        before, now = json.loads(found), json.loads(wanted)
        return any(before[name] != now[name] for name in before.keys() & now.keys())
    except (ValueError, AttributeError, KeyError):
        return True


def fill(
    connection: Connection,
    tables: Sequence[RegisteredTable],
    *,
    into: str,
    progress: Progress | None,
    spell: bool = False,
) -> None:
    """Read the sources into tables of kept rows; `spell` where they are compressed, which makes dictionaries of texts.

    Whether ids are exact and a column declared unique is unique is looked at first, over all rows.
    """
    connection.count_persons(begin=True)
    open_sources(connection, tables)
    counted = [item for item in tables if not _keeps_every_row(item) and not kept_persons.slow(item)]
    check(connection, [item if item in counted else replace(item, records=None) for item in tables])
    read = [_coded(connection, item) if kept_persons.slow(item) else item for item in tables]
    public = [item for item in read if item.unit.column is None]
    parts = _parts(connection, read)
    steps = len(public) + len(parts) * (len(read) - len(public))
    told = (None if progress is None else _part(progress, i, steps) for i in range(steps))
    for registered in public:
        rows = kept_rows.select(registered, stored=True, spell=spell)
        _create(connection, f"{into}{registered.kept}", rows, progress=next(told))
        if _keeps_every_row(registered):
            _check_records(connection, registered, f"{into}{registered.kept}")
    for part in parts:
        _create(connection, kept_persons.EVERYONE, kept_persons.everyone(part), progress=None)
        noted = KeptRows(f"({kept_rows.heavy(read, kept_persons.EVERYONE)})")
        _create(connection, NOTED, noted, progress=None, more=part.place > 0)
        for registered in read:
            if registered.unit.column is not None:
                _keep(connection, registered, part, into=into, spell=spell, progress=next(told))
        connection.root.execute(f"DROP TABLE {kept_persons.EVERYONE}")
    if parts:
        sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in ("heavy", "others"))
        connection.root.execute(f"CREATE TABLE {into}{kept_rows.HEAVY} AS SELECT t, {sums} FROM {NOTED} GROUP BY t")
        connection.root.execute(f"DROP TABLE {NOTED}")
    for registered in read:
        check_number(registered, _number(connection, KeptRows(f"{into}{registered.kept}")), MAX_STORED_ROWS)
        if registered.source.coded:
            connection.root.execute(f"DROP TABLE {registered.source.relation}")


def _coded(connection: Connection, registered: RegisteredTable) -> RegisteredTable:
    """The same table, its records read into codes in memory; of a CSV file they are counted there."""
    name = f"read{registered.number}"
    _create(connection, name, kept_persons.codes(registered), progress=None)
    _check_records(connection, registered, name)
    return kept_persons.coded(registered, name, _number(connection, KeptRows(name)))


def _parts(connection: Connection, tables: Sequence[RegisteredTable]) -> list[Part]:
    """The parts of all persons, so few that those of one have room in memory; none where rows have no persons."""
    private = [item for item in tables if item.unit.column is not None]
    most = sum(MAX_UNCOUNTED_ROWS + 1 if item.source.rows is None else item.source.rows for item in private)
    of = 1
    if most > MAX_UNCOUNTED_ROWS:
        persons = kept_persons.about(tables)
        with _reading(connection, persons) as cursor:
            (found,) = cursor.execute(f"SELECT n FROM {persons.relation}").fetchone() or (most,)
        of = max(1, -(-int(found) // MAX_PERSONS))
    return [Part(tuple(tables), place, of) for place in range(of if private else 0)]


def _keep(
    connection: Connection,
    registered: RegisteredTable,
    part: Part,
    *,
    into: str,
    spell: bool,
    progress: Progress | None,
) -> None:
    """Write the kept rows of one part's persons: those of persons with few as they come, then those of the others."""
    made, more = f"{into}{registered.kept}", part.place > 0
    _create(connection, made, kept_persons.light(registered, part, spell=spell), progress=progress, more=more)
    if _number(
        connection, KeptRows(f"{kept_persons.EVERYONE} WHERE n{part.tables.index(registered)} > {registered.unit.rows}")
    ):
        _create(connection, kept_persons.CANDIDATES, kept_persons.candidates(registered, part), progress=None)
        _choose(connection, made, registered, part, spell=spell)


def _choose(connection: Connection, made: str, registered: RegisteredTable, part: Part, *, spell: bool) -> None:
    """Add the kept rows of persons who have more than are kept; only where hashes begin alike are rows put in order."""
    _create(connection, kept_persons.LASTS, KeptRows(kept_persons.lasts(registered)), progress=None)
    _create(connection, made, kept_persons.untied(registered, spell=spell), progress=None, more=True)
    _create(connection, kept_persons.LEAST, kept_persons.tied(), progress=None)
    tied = _number(connection, KeptRows(kept_persons.LEAST))
    connection.root.execute(f"CREATE TABLE {kept_persons.PEOPLE} AS {kept_persons.undecided(part)}")
    parts = -(-tied // MAX_ORDERED_ROWS)
    for i in range(parts):
        rows = kept_persons.chosen(registered, spell=spell, part=i, of=parts)
        _create(connection, made, rows, progress=None, more=True)
    for name in (kept_persons.PEOPLE, kept_persons.LEAST, kept_persons.LASTS, kept_persons.CANDIDATES):
        connection.root.execute(f"DROP TABLE {name}")


@contextlib.contextmanager
def _reading(connection: Connection, rows: KeptRows) -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor that knows the frames which a SELECT reads."""
    with contextlib.closing(connection.cursor()) as cursor:
        for frame, data in rows.frames.items():
            cursor.register(frame, data)
        yield cursor


def _create(
    connection: Connection, name: str, rows: KeptRows, *, progress: Progress | None, more: bool = False
) -> None:
    """Make a table of rows, or add `more` to it."""
    with _reading(connection, rows) as cursor, _told(cursor, progress):
        how = f"INSERT INTO {name}" if more else f"CREATE TABLE {name} AS"
        cursor.execute(f"{how} SELECT * FROM {rows.relation}", rows.parameters)


def _part(progress: Progress, done: int, of: int) -> Progress:
    return lambda part: progress((done + part) / of)


def check(connection: Connection, tables: Sequence[RegisteredTable]) -> None:
    """Refuse ids that are not exact, a unique column that is not, and references to another person's rows (SR15, SR25).

    And a CSV file in which DuckDB finds more or fewer records than there are. This is between the owner and all of
    the owner's rows.
    """
    for registered in tables:
        _check_records(connection, registered, registered.source.relation)
    for registered in tables:
        if _some(connection, kept_rows.inexact(registered)):
            raise inexact(registered.schema.table, registered.unit.column or "", kept_rows.form(registered))
    for registered in tables:
        if _some(connection, kept_rows.twice(registered)):
            not_unique(registered.schema.table, registered.unique or "")
    for registered in tables:
        for column, name in registered.references:
            other = next(item for item in tables if item.schema.table == name)
            if _some(connection, kept_rows.astray(registered, column, other)):
                not_own(registered.schema.table, column, name)


def check_number(registered: RegisteredTable, number: int, most: int) -> None:
    """Refuse more rows than every statement is written for: how many there are chooses no word of any (SR17)."""
    if number > most:
        why = f"The table {registered.schema.table!r} has more than 2^{most.bit_length() - 1} rows."
        raise SetupError("unreadable-data", why, "Split the table, or prepare a copy, which may hold 2^40.")


def _keeps_every_row(registered: RegisteredTable) -> bool:
    """Whether each record becomes one kept row, so that counting the kept rows counts the records."""
    return registered.unit.column is None and registered.unit.neighbors != "zero_out"


def _check_records(connection: Connection, registered: RegisteredTable, relation: str) -> None:
    """Refuse a CSV file of which DuckDB reads another number of records than RFC 4180 says."""
    path, records = registered.origin.path, registered.records
    if path is None or records is None or registered.source.frame is not None:
        return
    if _number(connection, KeptRows(registered.source.whole or relation)) != records:
        why = f"The records of {path.name!r} are not read as RFC 4180 says."
        raise SetupError("unreadable-data", why, "Store it as Parquet, and report this CSV file's first line.")


def _some(connection: Connection, asked: KeptRows | None) -> bool:
    """Whether there is any row."""
    return asked is not None and _number(connection, asked) != 0


def _number(connection: Connection, rows: KeptRows) -> int:
    """How many rows there are."""
    with _reading(connection, rows) as cursor:
        found = cursor.execute(f"SELECT count(*) FROM {rows.relation}", rows.parameters).fetchone()
        return -1 if found is None else int(found[0])


def open_sources(connection: Connection, tables: Sequence[RegisteredTable]) -> None:
    """Make ready what the SELECTs of kept rows refer to: long lists of categories, DuckDB files attached."""
    for registered in tables:
        for name, values in kept_rows.lists(registered):
            places = pa.array(range(len(values)), pa.int32())
            put_table(connection, name, pa.table({"item": values, "code": places}))
    put_erased(connection, tables[0].erased)
    for name, path in dict.fromkeys(item.source.attach for item in tables if item.source.attach is not None):
        connection.attach(path, name)


def build(
    path: Path,
    tables: Sequence[RegisteredTable],
    *,
    recorded: dict[str, str],
    progress: Progress | None,
    threads: int | None = None,
    stop: Stop | None = None,
) -> None:
    """Build the prepared copy beside its place and move it there whole (mode 0600)."""

    def write(made: Path, tables: Sequence[RegisteredTable]) -> None:
        connection = Connection(folder=made.parent, most=MAX_BUILD_MEMORY_MIB, threads=threads, stop=stop)
        _write(connection, made, tables, recorded=recorded, progress=progress)

    failed = ""
    try:
        with _folder(path) as folder:
            made = folder / "prepared"
            read = False
            with contextlib.suppress(duckdb.Error):
                write(made, tables)
                read = True
            if stop is not None:
                stop.check()
            if not read:  # a cell that Arrow may read
                made.unlink(missing_ok=True)
                write(made, rewrite(tables, folder))
            for registered in tables:
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


def _write(
    connection: Connection,
    made: Path,
    tables: Sequence[RegisteredTable],
    *,
    recorded: dict[str, str],
    progress: Progress | None,
) -> None:
    # Rows have no order but where places are public: each thread fills its own row groups, and none is written twice.
    ordered = any(item.unit.positions_are_public for item in tables)
    try:
        connection.root.execute(f"SET GLOBAL preserve_insertion_order = {str(ordered).lower()}")
        connection.attach(made, "data", writable=True)
        fill(connection, tables, into="data.", progress=progress, spell=True)
        connection.root.register("recorded", pa.table({"name": list(recorded), "value": list(recorded.values())}))
        connection.root.execute("CREATE TABLE data.facts AS SELECT * FROM recorded")
        connection.root.execute("DETACH data")
    finally:
        connection.close()


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[Path]:
    """A private folder beside the prepared copy; those of crashed runs are removed, those of running ones are not."""
    prefix = f".{path.name}.preparing-"
    for stale in path.parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError), (stale / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(stale, ignore_errors=True)
        with contextlib.suppress(OSError):
            if not (stale / "lock").exists() and time.time() - stale.stat().st_mtime > ABANDONED_SECONDS:
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


def rewrite(tables: Sequence[RegisteredTable], folder: Path) -> tuple[RegisteredTable, ...]:
    """The same tables, those in Parquet files read from copies of their needed columns in a private folder.

    Raises:
        SetupError: `unreadable-data`: Arrow cannot read them either.
    """
    return tuple(_rewritten(item, folder) if _parquet(item) else item for item in tables)


def _parquet(registered: RegisteredTable) -> bool:
    path = registered.origin.path
    return path is not None and suffix(path) == ".parquet"


def _rewritten(registered: RegisteredTable, folder: Path) -> RegisteredTable:
    """A table from copies of its files: all of them, so that parts are read by the same words."""
    schema, unit, found = registered.schema, registered.unit, registered.origin.data
    beside = found.names if isinstance(found, Files) else ()
    own = replace(schema, columns=tuple(item for item in schema.columns if item[0] not in beside))
    sources, kept = [], []
    for i, path in enumerate(registered.origin.files):
        made = folder / f"source{registered.number}.{i}.parquet"
        table, kinds, named = frames.rewrite(path, made, list(own.names), unit.column, unit.fold)
        kept = table.schema.names
        sources.append(
            replace(
                registered.source,
                relation=files.parquet_records(made, kept, places=unit.positions_are_public),
                columns=plain(kinds, own),
                rows=Origin.of(made).parquet().rows,
                files=(made,),
                person=whom(named, own, unit),
            )
        )
    source = joined(found, sources, kept, schema, unit) if isinstance(found, Files) else sources[0]
    return replace(registered, source=without_erased(source, registered.key) if registered.erased else source)
