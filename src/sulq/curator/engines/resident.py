"""Columns of the prepared copy kept in memory: a learner reads the same ones ten times over.

A fold reads its columns from DuckDB the first time, into the narrow integers
they are stored as; the next finds them here, and with them the vectors that were
made of them. What does not fit is streamed, as is text. Which of the two happens
changes no bit of any sum and is never told: not by an error, not by a shape
(T30, T31).
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

import duckdb
import numpy as np

from sulq.curator.engines import arrow, grammar
from sulq.curator.engines.batch import Batch, Stored
from sulq.curator.engines.connection import memory
from sulq.curator.engines.kept import PERSON, PLACE, Rows
from sulq.curator.engines.matrix import Matrix, kept_as
from sulq.curator.engines.matrix import size as matrix_size
from sulq.curator.engines.needed import Needed, by_rows, needed, vectors
from sulq.terms.domain import Schema, Text
from sulq.terms.engine import Tally
from sulq.terms.kinds import Integers, Truths
from sulq.terms.rowfn.vectors import grid_vector

LARGEST: Final = 2**30
SHARE: Final = 4  # of an engine's memory one part in so many is for columns kept here
READ: Final = 65_536  # rows read at a time
BYTES: Final = {"TINYINT": 1, "SMALLINT": 2, "INTEGER": 4, "BIGINT": 8}


def limit() -> int:
    """How many bytes of columns one engine keeps: a gibibyte, or less where its memory is small."""
    return min(LARGEST, (memory() << 20) // SHARE)


@dataclass
class _Ask:
    """One ask under way: when it began, what it has room for beside what is held, and what it uses of that."""

    age: int
    taken: int = 0
    used: set[tuple[str, str]] = field(default_factory=set)


class Resident:
    """Columns of an engine's tables and vectors made of them, those not used for longest let go of first.

    What is held, and what asks under way have room for, never pass the limit together.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[tuple[str, str], _Column | Matrix] = {}
        self._numbers: dict[str, int] = {}  # of the rows of each table, which stay as they are
        self._taken = 0  # bytes that asks under way have room for
        self._used: Counter[tuple[str, str]] = Counter()  # what they use of what is held: it is not let go of
        self._age = 0  # how often everything was let go of: whoever began before keeps nothing
        self._lock = threading.Lock()  # of the fields above, never while rows are read
        self._reading = threading.Lock()  # of asks that come at once, one reads a column

    def clear(self, *, for_good: bool = False) -> None:
        """Let go of everything, and of what a fold under way is making; for good: and of all that comes after."""
        with self._lock:
            self._held.clear()
            self._numbers.clear()
            self._age += 1
            self._most = -1 if for_good else self._most

    @contextlib.contextmanager
    def read(
        self, cursor: duckdb.DuckDBPyConnection, schema: Schema, rows: Rows, tallies: Sequence[Tally], size: int
    ) -> Iterator[Iterator[Batch] | None]:
        """What tallies over a stored table look at, in batches; None where it is to be streamed.

        The vectors that were made of them meanwhile are kept for those who come after.
        """
        ask = _Ask(self._age)
        try:
            found = self._whole(ask, cursor, schema, rows, tallies)
            if found is None:
                yield None
                return
            whole, columns, wanted = found
            yield _cut(whole, columns, wanted, size)
            made = {
                (rows.relation, text): matrix for text, matrix in whole.kept.items() if matrix.ready or matrix.end()
            }
            self._keep(ask, made)
        finally:
            with self._lock:
                self._taken -= ask.taken
                self._used -= Counter(ask.used)

    def _whole(
        self, ask: _Ask, cursor: duckdb.DuckDBPyConnection, schema: Schema, rows: Rows, tallies: Sequence[Tally]
    ) -> tuple[Batch, dict[str, _Column], Needed] | None:
        """All rows of the columns that are wanted; None where they do not fit, or are texts."""
        count, asked, rowwise = self._number(cursor, rows.relation), vectors(tallies), by_rows(tallies)
        names = {text: kept_as(text, by_rows=text in rowwise) for text in asked}
        made = {name: known for name in names.values() if isinstance(known := self._find(ask, rows, name), Matrix)}
        wanted = needed(*tallies, known=[text for text, name in names.items() if name in made and made[name].ready])
        if any(isinstance(schema.find(name), Text) for name in wanted.columns):
            return None
        widths = _widths(schema, rows, wanted)
        absent = [name for name in widths if self._find(ask, rows, name) is None]
        if not self._take(ask, count * sum(widths[name] for name in absent)):
            return None
        for text, fn in asked.items():
            kind = grid_vector(fn, schema)
            if names[text] not in made and self._take(ask, matrix_size(kind, count, by_rows=text in rowwise)):
                made[names[text]] = Matrix(kind, count, by_rows=text in rowwise)
        return Batch(schema, count, {}, kept=made), self._columns(ask, cursor, rows, list(widths)), wanted

    def _number(self, cursor: duckdb.DuckDBPyConnection, relation: str) -> int:
        """How many rows a table has: it says how much memory they take, and is written into no question."""
        if relation not in self._numbers:
            self._numbers[relation] = int(cursor.execute(f"SELECT count(*) FROM {relation}").fetchall()[0][0])
        return self._numbers[relation]

    def _columns(
        self, ask: _Ask, cursor: duckdb.DuckDBPyConnection, rows: Rows, names: list[str]
    ) -> dict[str, _Column]:
        """Columns by name, read if need be."""
        known = {name: self._find(ask, rows, name) for name in names}
        if None in known.values():
            with self._reading:
                known = {name: self._find(ask, rows, name) for name in names}  # another may have read it meanwhile
                absent = [name for name, column in known.items() if column is None]
                known |= _read(cursor, rows.relation, absent, self._number(cursor, rows.relation)) if absent else {}
                self._keep(ask, {(rows.relation, name): cast("_Column", column) for name, column in known.items()})
        return cast("dict[str, _Column]", known)

    def _find(self, ask: _Ask, rows: Rows, name: str) -> _Column | Matrix | None:
        """What is held already; it stays until this ask is over."""
        key = (rows.relation, name)
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._uses(ask, key)
            return found

    def _uses(self, ask: _Ask, key: tuple[str, str]) -> None:
        self._used[key] += key not in ask.used
        ask.used.add(key)

    def _take(self, ask: _Ask, size: int) -> bool:
        """Make room for more by letting go of what was not used for longest; whether there is any."""
        with self._lock:
            held = sum(item.bytes for item in self._held.values())
            for key in list(self._held):
                if held + self._taken + size > self._most and not self._used[key]:
                    held -= self._held.pop(key).bytes
            fits = held + self._taken + size <= self._most
            self._taken += size * fits
            ask.taken += size * fits
        return fits

    def _keep(self, ask: _Ask, used: Mapping[tuple[str, str], _Column | Matrix]) -> None:
        """Put what was used last; room that was taken for it is then held. Not where all was let go of meanwhile."""
        with self._lock:
            if ask.age != self._age:
                return
            for key, item in used.items():
                size = 0 if self._held.pop(key, None) is item else min(item.bytes, ask.taken)
                self._held[key] = item
                self._taken -= size
                ask.taken -= size
                self._uses(ask, key)


def _beside(wanted: Needed) -> list[str]:
    return [name for name, asked in ((PERSON, wanted.person), (PLACE, wanted.place)) if asked]


def _widths(schema: Schema, rows: Rows, wanted: Needed) -> dict[str, int]:
    """How many bytes a cell of each stored column takes at most; in the order in which batches are cut."""
    columns = [(rows.names[name], column) for name, column in schema.columns if name in wanted.columns]
    found = {name: BYTES[grammar.smallest(column)] + 1 for name, column in columns if not isinstance(column, Text)}
    return found | dict.fromkeys(_beside(wanted), BYTES["BIGINT"] + 1)


class _Column:
    """One column: its values and where they are missing, filled from the rows' own numbers, then only read."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._values: np.ndarray = np.empty(0, dtype=np.int64)
        self._missing: Truths | None = None

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return self._values.nbytes + (0 if self._missing is None else self._missing.nbytes)

    def put(self, rows: Integers | slice, values: np.ndarray, missing: Truths | None) -> None:
        """Take in the cells of some rows."""
        if len(self._values) < self._count:
            self._values = np.empty(self._count, dtype=values.dtype)
        self._values[rows] = values
        if missing is not None:
            if self._missing is None:
                self._missing = np.zeros(self._count, dtype=np.bool_)
            self._missing[rows] = missing

    def part(self, start: int, stop: int) -> Stored:
        """Some consecutive rows."""
        return self._values[start:stop], None if self._missing is None else self._missing[start:stop]


def _read(cursor: duckdb.DuckDBPyConnection, relation: str, names: list[str], count: int) -> dict[str, _Column]:
    """Columns of a table, each cell at its row's number: columns read at different times have the same order of rows.

    The numbers of the rows of a stored table run from 0 without a gap, as no row of it was ever taken away.
    """
    columns = [_Column(count) for _ in names]
    read = 0
    statement = f"SELECT rowid, {', '.join(names)} FROM {relation}"
    for ((numbers, _), *cells), size in arrow.streamed(cursor, statement, {}, READ):
        rows: Integers | slice = slice(read, read + size)
        if not np.array_equal(numbers, np.arange(read, read + size)):
            rows = numbers.astype(np.int64)
        for column, (values, missing) in zip(columns, cells, strict=True):
            column.put(rows, values, missing)
        read += size
    if read != count:
        raise LookupError("the stored rows changed")
    return dict(zip(names, columns, strict=True))


def _cut(whole: Batch, columns: dict[str, _Column], wanted: Needed, size: int) -> Iterator[Batch]:
    """Whole columns in batches; nothing is copied."""
    declared = [name for name in whole.schema.names if name in wanted.columns]
    for start in range(0, whole.size, size):
        stop = min(start + size, whole.size)
        parts = {name: column.part(start, stop) for name, column in columns.items()}
        stored = dict(zip(declared, parts.values(), strict=False))
        person = parts[PERSON][0] if wanted.person else None
        place = parts[PLACE][0] if wanted.place else None
        yield Batch(whole.schema, stop - start, stored, person=person, position=place, kept=whole.kept, start=start)
