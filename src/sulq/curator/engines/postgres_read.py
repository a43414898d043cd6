"""Kept rows of a copy in PostgreSQL as batches of NumPy columns: a few hundred pages at a time, each one statement.

A statement packs each column of its pages into one string of bytes, so that a row
costs the client nothing. All aggregates of a statement take the rows in the same
order, whichever that is. All statements of a pass see one snapshot: whatever is
done to the copy meanwhile, its pages are the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, cast

import numpy as np
import psycopg

from sulq.curator.engines.batch import Batch, Stored
from sulq.curator.engines.kept import OWNER, PERSON, Rows
from sulq.curator.engines.needed import Needed
from sulq.terms.domain import Schema, Text
from sulq.terms.engine import BLANK
from sulq.terms.kinds import Integers

PAGES: Final = 512  # read by one statement: about 4 MiB of the copy
PAGES_OF_TEXT: Final = 16  # where there are texts: of these a page can name 12 MB, and no value may pass 1 GB (T30)


def by_pages(rows: Rows) -> Rows:
    """The same rows, of some pages, which are bound."""
    pages = "ctid >= CAST(%(first)s AS tid) AND ctid < CAST(%(last)s AS tid)"
    return replace(rows, relation=f"(SELECT * FROM {rows.relation} WHERE {pages}) AS pages")


class Reader:
    """Reads some columns of a table of the copy."""

    def __init__(self, schema: Schema, rows: Rows, pages: int, wanted: Needed, *, owned: bool = False) -> None:
        self._schema = schema
        self._names = [name for name in schema.names if name in wanted.columns]
        beside = ((PERSON, wanted.person), (OWNER, owned))
        self._beside = [name for name, asked in beside if asked]
        self._rows = rows
        self._pages = pages

    def statement(self, relation: str, condition: str = "") -> str:
        """The statement that reads some pages of a relation of the table's rows."""
        columns = ["count(*)"]
        for name in self._names:
            stored = self._rows.names[name]
            columns.append(f"array_agg({stored})" if self._text(name) else _packed(stored))
        columns += [_packed(name) for name in self._beside]
        return f"SELECT {', '.join(columns)} FROM {relation}{condition}"

    def batches(
        self, db: psycopg.Connection, statement: str, parameters: dict[str, object], size: int
    ) -> Iterator[Batch]:
        """The rows, at most `size` of them at a time, all of one snapshot.

        A session that is left in the middle is in a transaction, so it is not used again.
        """
        cursor = db.cursor(binary=True)
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        step = PAGES_OF_TEXT if any(map(self._text, self._names)) else PAGES
        for first in range(0, self._pages, step):
            pages = {"first": f"({first},0)", "last": f"({min(first + step, self._pages)},0)"}
            row = cursor.execute(statement, parameters | pages).fetchone()
            if row is None or not row[0]:
                continue
            batch = self._batch(int(row[0]), row[1:])
            for start in range(0, batch.size, size):
                yield batch if batch.size <= size else batch.part(start, min(start + size, batch.size))
        cursor.execute("COMMIT")
        cursor.close()

    def _batch(self, size: int, cells: Sequence[object]) -> Batch:
        stored: dict[str, Stored] = dict(zip(self._names, map(_unpacked, cells), strict=False))
        rest = [cast("Integers", _unpacked(item)[0]) for item in cells[len(self._names) :]]
        beside = dict(zip(self._beside, rest, strict=True))
        return Batch(
            self._schema,
            size,
            stored,
            person=beside.get(PERSON),
            owner=beside.get(OWNER),
        )

    def whole(self, db: psycopg.Connection) -> Batch:
        """All rows in memory."""
        batches = list(self.batches(db, self.statement(by_pages(self._rows).relation), {}, 2**62))
        columns = {name: _joined([batch.stored(name) for batch in batches], self._text(name)) for name in self._names}
        beside: dict[str, Integers] = {}
        for name in self._beside:
            parts = [_beside(batch, name) for batch in batches]
            beside[name] = np.concatenate([np.empty(0, dtype=np.int64), *parts])
        return Batch(
            self._schema,
            sum(batch.size for batch in batches),
            columns,
            person=beside.get(PERSON),
            owner=beside.get(OWNER),
        )

    def _text(self, name: str) -> bool:
        return isinstance(self._schema.find(name), Text)


def _packed(item: str) -> str:
    """A column of whole numbers as eight bytes each; one that is missing as the number no column holds."""
    return f"string_agg(int8send(coalesce(CAST({item} AS bigint), {BLANK + 1} - 1)), ''::bytea)"


def _unpacked(cells: object) -> Stored:
    if isinstance(cells, list):
        values = np.empty(len(cells), dtype=object)
        values[:] = cells
        missing = np.array([cell is None for cell in cells], dtype=np.bool_)
    else:
        values = np.frombuffer(cast("bytes", cells), dtype=">i8").astype(np.int64)
        missing = values == BLANK
        values[missing] = 0
    return values, missing if missing.any() else None


def _joined(parts: Sequence[Stored], text: bool) -> Stored:  # noqa: FBT001 - what it is a column of
    values = np.concatenate([np.empty(0, dtype=object if text else np.int64), *(values for values, _ in parts)])
    gone = [np.zeros(len(values), dtype=np.bool_) if mask is None else mask for values, mask in parts]
    missing = np.concatenate([np.empty(0, dtype=np.bool_), *gone])
    return values, missing if missing.any() else None


def _beside(batch: Batch, name: str) -> Integers:
    return cast("Integers", batch.owner) if name == OWNER else batch.person()
