"""DuckDB connections: private, without network or extensions, and locked before the first question (T69, T72, T73)."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import resource
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Final, cast

import duckdb
import numpy as np
import pyarrow as pa

from sulq.compile.statements import kept_table
from sulq.compile.statements.kept_table import OWNER, PERSON
from sulq.errors import AccessDenied
from sulq.kernel.private import Objects, Truths
from sulq.language.domain import Schema
from sulq.sources.decode.files import literal

MEMORY_FRACTION: Final = 0.3  # of the machine's memory that one engine may take before it spills: there may be others

PERSON_BITS: Final = 22  # of numbers that are counted in an array: 160 MiB a thread with three sums of each
ASKED_BITS: Final = 12  # DuckDB's own
CORE_MEMORY_MIB: Final = 256  # where rows lie on disk, for each thread: pages that are looked at, what a join holds


def memory() -> int:
    """How many MiB one engine may take."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:  # what a worker may address holds the program too
        whole = min(whole, limit * 2 // 3)
    return max(256, int(MEMORY_FRACTION * (whole >> 20)))


def _limit(most: int | None) -> str:
    return f"{memory() if most is None else min(most, memory())}MiB"


def cores() -> int:
    """Usable CPUs: those of this process's affinity, where the system tells it (macOS does not)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Stop:
    """An end to what is prepared: statements under way fail, and no other begins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()
        self._set = False

    def take(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Let a cursor's statements be ended by this."""
        with self._lock:
            self._under_way.add(cursor)
        self.check()

    def check(self) -> None:
        """Stop here once it is set."""
        if self._set:
            raise AccessDenied("closed", "The rows were let go of.")

    def set(self) -> None:
        """End all that is under way."""
        with self._lock:
            self._set = True
            for cursor in self._under_way:
                with contextlib.suppress(duckdb.Error):  # one that was closed meanwhile
                    cursor.interrupt()


class Connection:
    """One DuckDB instance in memory, with its own folder for what it spills, removed with it.

    `most`: how many MiB it may take, if that is less than an engine may. `on_disk`: rows that are put into it lie in
    that folder, and the memory it may take is the same however many they are. `stop`: what ends its statements.
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        folder: Path | None = None,
        most: int | None = None,
        on_disk: bool = False,
        stop: Stop | None = None,
    ) -> None:
        self.stop = stop
        self._cursors: weakref.WeakKeyDictionary[duckdb.DuckDBPyConnection, int] = weakref.WeakKeyDictionary()
        self._counting = threading.Lock()  # of these, by the threads that took them
        self.folder = Path(tempfile.mkdtemp(prefix="sulq-", dir=folder))  # mode 0700
        self._forget = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        working = cores() if threads is None else threads
        self._most = _limit(CORE_MEMORY_MIB * working if on_disk else most)
        config: dict[str, str | bool | int | float | list[str]] = {
            "allow_community_extensions": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "ieee_floating_point_ops": "true",
            "memory_limit": self._most,
            "preserve_insertion_order": "true",
            "python_enable_replacements": "false",
            "temp_directory": str(self.folder),
            "threads": working,
        }
        spilled, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if spilled != resource.RLIM_INFINITY:  # a worker's: what one file may take, all that is spilled may
            config["max_temp_directory_size"] = f"{spilled >> 20}MiB"
        self.root = duckdb.connect(str(self.folder / "rows.duckdb") if on_disk else ":memory:", config=config)
        try:
            self.root.execute("SET GLOBAL TimeZone = 'UTC'")
            if stop is not None:
                stop.take(self.root)
        except BaseException:
            self.close()
            raise

    def hold(self, most: int | None = None) -> None:
        """Let it take no more than so many MiB from now on, or as many as it was opened with."""
        self.root.execute(f"SET memory_limit = '{self._most if most is None else _limit(most)}'")

    def count_persons(self, *, begin: bool) -> None:
        """Count whole numbers that lie close together in plain arrays, as persons are, or no more than DuckDB does.

        An array has room for all sums of each number: few while rows are kept, any number in a question.
        """
        self.root.execute(f"SET GLOBAL perfect_ht_threshold = {PERSON_BITS if begin else ASKED_BITS}")

    def attach(self, path: Path, name: str, *, writable: bool = False) -> None:
        """Open a DuckDB file beside the memory."""
        self.root.execute(f"ATTACH {literal(str(path))} AS {name}{'' if writable else ' (READ_ONLY)'}")

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Write in one transaction: then rows go to the disk as they come, once."""
        self.root.execute("BEGIN")
        yield
        self.root.execute("COMMIT")

    def lock(self, files: Iterable[Path] = ()) -> None:
        """Close every way out: no file but these, no setting, no extension from here on."""
        paths = ", ".join(literal(str(path)) for path in files)
        if paths:
            self.root.execute(f"SET allowed_paths = [{paths}]")
        self.root.execute("SET enable_external_access = false")
        self.root.execute("SET lock_configuration = true")

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A fresh connection to the same rows: a question leaves nothing behind for the next (T38)."""
        cursor = self.root.cursor()
        if self.stop is not None:
            try:
                self.stop.take(cursor)
            except AccessDenied:
                cursor.close()
                raise
        with self._counting:
            self._cursors[cursor] = threading.get_ident()
        return cursor

    def interrupt(self, threads: Collection[int]) -> None:
        """Make the statements fail that are under way on cursors of these threads."""
        with self._counting:
            cursors = [cursor for cursor, thread in self._cursors.items() if thread in threads]
        for cursor in cursors:
            with contextlib.suppress(duckdb.Error):  # one that was closed meanwhile
                cursor.interrupt()

    def use(self, threads: int | None) -> None:
        """Run statements by so many threads from now on, or as many as there are cores."""
        self.root.execute(f"SET threads = {cores() if threads is None else threads}")

    def close(self) -> None:
        """Let go of the memory and the folder."""
        self.root.close()
        self._forget()


_lock = threading.Lock()
_inside = 0
_before = 1


@functools.cache
def _switches() -> tuple[Callable[[], int], Callable[[int], object]] | None:
    """The thread count of the OpenBLAS that NumPy carries; None for another BLAS, which is left alone."""
    for library in sorted((Path(np.__file__).parent.parent / "numpy.libs").glob("libscipy_openblas64_*.so*")):
        with contextlib.suppress(OSError, AttributeError):
            blas = ctypes.CDLL(str(library))
            return blas.scipy_openblas_get_num_threads64_, blas.scipy_openblas_set_num_threads64_
    return None


@contextlib.contextmanager
def one_thread() -> Iterator[bool]:
    """Hold BLAS to one thread; says whether that could be done. Several may hold it at once; the last lets go."""
    global _inside, _before  # noqa: PLW0603 - the setting itself is one for the whole process
    switches = _switches()
    if switches is None:
        yield False
        return
    get, put = switches
    with _lock:
        if _inside == 0:
            _before = get()
            put(1)
        _inside += 1
    try:
        yield True
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                put(_before)


def numpy_column(column: pa.ChunkedArray | pa.Array) -> tuple[np.ndarray, Truths | None]:
    """A column's values and where they are missing (None: nowhere); numbers keep their type, text is objects.

    So are whole numbers of 128 bits, which Arrow has as decimals: Python's own.
    """
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        return column.to_numpy(zero_copy_only=False), missing
    if pa.types.is_decimal128(column.type) and column.type.scale == 0:
        return _wide(column)
    if not column.null_count:
        return column.to_numpy(zero_copy_only=False), None
    filled = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
    return filled.to_numpy(zero_copy_only=False), column.is_null().to_numpy(zero_copy_only=False)


def _wide(column: pa.ChunkedArray | pa.Array) -> tuple[Objects, Truths | None]:
    """Whole numbers of 128 bits, two words each, the lower first."""
    array = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
    missing = array.is_null().to_numpy(zero_copy_only=False)
    words = np.frombuffer(array.buffers()[1] or b"", dtype="<u8")[2 * array.offset :][: 2 * len(array)]
    words = np.where(missing.repeat(2), np.uint64(0), words)
    high = words[1::2].astype(np.int64).astype(object)
    return (high << 64) + words[::2].astype(object), missing


def arrow_table(cursor: object, statement: str, parameters: dict[str, object], order: Iterable[int] = ()) -> pa.Table:
    """A statement's whole result, in the order of columns at these places."""
    asked, by = _asked(cursor, statement, parameters), ", ".join(str(place + 1) for place in order)
    return (asked.order(by) if by else asked).to_arrow_table()


def streamed(
    cursor: object, statement: str, parameters: dict[str, object], size: int
) -> Iterator[tuple[list[tuple[np.ndarray, Truths | None]], int]]:
    """A statement's result in batches, never whole in memory."""
    for batch in _asked(cursor, statement, parameters).to_arrow_reader(size):
        yield [numpy_column(column) for column in batch.columns], batch.num_rows


def record_batches(cursor: object, statement: str, size: int) -> Iterator[pa.RecordBatch]:
    """A statement's result in batches of Arrow's."""
    yield from _asked(cursor, statement, {}).to_arrow_reader(size)


def _asked(cursor: object, statement: str, parameters: dict[str, object]) -> pa.Table:
    return cast("pa.Table", cursor).sql(statement, params=parameters or None)


def stored_columns(schema: Schema, *, owned: bool, owner: str = "BIGINT") -> dict[str, str]:
    """The columns of a table of kept rows, and their types; `owner`: that of the column which says whose a row is."""
    names = kept_table.names(schema)
    found = {names[name]: kept_table.smallest(column) for name, column in schema.columns}
    return found | ({PERSON: "BIGINT", OWNER: owner} if owned else {})


def create_table(connection: Connection, into: str, columns: dict[str, str]) -> None:
    """An empty table."""
    connection.root.execute(f"CREATE TABLE {into} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")


def insert_page(connection: Connection, into: str, page: pa.Table) -> None:
    """Add a page's rows; a number that its column's type does not hold fails. Other columns are left missing."""
    names = ", ".join(page.column_names)
    connection.root.register("page", page)
    connection.root.execute(f"INSERT INTO {into} ({names}) SELECT {names} FROM page")
    connection.root.unregister("page")


def insert_batches(
    connection: Connection, statement: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> None:
    """Run a statement that reads `page`, which are these batches as they come; what fails in them is raised as it was.

    One statement for all: of each that ends within a transaction DuckDB holds several hundred KiB until that ends too.
    """
    said: list[Exception] = []

    def told() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Exception as error:
            said.append(error)
            raise

    connection.root.register("page", pa.RecordBatchReader.from_batches(schema, told()))
    try:
        connection.root.execute(statement)
    except (duckdb.Error, pa.ArrowException):
        if not said:
            raise
    if said:
        raise said[0]
    connection.root.unregister("page")
