"""Tallies asked of DuckDB: what SQL can sum is summed there, the rest is folded over batches, all in one pass."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, cast

import duckdb
import numpy as np

from sulq.curator.engines import aggregate, arrow
from sulq.curator.engines.aggregate import Query
from sulq.curator.engines.batch import Batch, Stored
from sulq.curator.engines.connection import cores
from sulq.curator.engines.emit import PARAMETER, Emitter, NotInSql, Piece
from sulq.curator.engines.fold import fold_all
from sulq.curator.engines.group import assembled, group
from sulq.curator.engines.kept import OWNER, PERSON, PLACE, Rows
from sulq.curator.engines.kernels import DENSE, weighed
from sulq.curator.engines.needed import Needed, needed
from sulq.curator.engines.piece import Keyed
from sulq.curator.engines.read_sql import whole
from sulq.curator.engines.resident import Resident
from sulq.curator.engines.scan import Found, columns_of, combined, indexed, scan
from sulq.curator.engines.shared import shared
from sulq.curator.engines.totals import saturate
from sulq.curator.engines.unite import unite
from sulq.terms import wire
from sulq.terms.domain import Schema
from sulq.terms.engine import Groups, Tally
from sulq.terms.kinds import Code, Integers, Objects, Scalar, Truth, Truths, Words
from sulq.terms.rowfn.scalar import RowFn
from sulq.terms.rowfn.vectors import Lookup

BATCH: Final = 32_768  # rows of ten numbers stay near the cores; with fewer, two threads wait for the interpreter
TOGETHER: Final = 2**17  # so many combinations of keys are counted once for several lookup tables
WORKERS: Final = min(4, cores())
_log = logging.getLogger(__name__)


class Question:
    """One tally on one cursor."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection | None,
        schema: Schema,
        rows: Rows,
        tally: Tally,
        *,
        batch: int = BATCH,
        owned: bool = False,
        resident: Resident | None = None,
    ) -> None:
        self.cursor = cast("duckdb.DuckDBPyConnection", cursor)  # an engine with sessions of its own has none
        self.schema = schema
        self.rows = rows
        self.tally = tally
        self.batch = batch
        self.owned = owned  # whether each row has its owner beside it
        self.resident = resident  # where columns are kept in memory, if these rows are stored
        self.statements: list[str] = []

    def sums(self) -> Integers:
        """The exact sums, saturated."""
        return together([self])[0]

    def summed(self, known: dict[int, Integers]) -> tuple[dict[int, Integers], list[int]]:
        """The sums of the blocks that SQL can sum, by place, some of them known, and the places of those it cannot."""
        blocks = dict(known)
        left: list[int] = []
        tables: list[int] = []
        asked = [place for place in range(len(self.tally.blocks)) if place not in known]
        main = self._query() if asked else None
        for place in asked:
            block = self.tally.blocks[place]
            try:
                if main is None:
                    raise NotInSql
                aggregate.add(main[0], place, block)
            except NotInSql:
                (tables if main is not None and isinstance(block.fn, Lookup) and block.vector else left).append(place)
        if main is not None and main[0].blocks:
            blocks |= self._scanned(*main, [len(key.labels) for key in self.tally.by]).blocks()
        read = self._read_tables(tables)
        return blocks | read, sorted([*left, *(place for place in tables if place not in read)])

    def groups(self) -> Groups:
        """The groups that occur, in the order of their keys; where SQL does not say a part, grouped by hand."""
        emitter = self.emitter()
        keys = [key.fn for key in self.tally.by]
        query = Query(emitter, [])
        try:
            where = None if self.tally.where is None else emitter.truth(self.tally.where)
            query.keys = [Keyed(_key(emitter, fn)) for fn in keys]
            for place, block in enumerate(self.tally.blocks):
                aggregate.add(query, place, block)
        except NotInSql:
            return group(self.tally, self._all(needed(self.tally)))
        persons = query.aggregate(f"count(DISTINCT {OWNER})" if self.owned else "count(*)", 0)
        statement = query.sql(where)
        self.statements.append(statement)
        table = self.few(statement, emitter.bound(statement))
        if not keys and table[0][persons] == 0:  # without keys SQL gives one row even of nothing
            table = []
        totals = columns_of([row[len(keys) :] for row in table], len(query.aggregates), object)
        sums = [np.zeros((len(table), block.width), dtype=np.int64) for block in self.tally.blocks]
        for place, weights in query.blocks:
            for i, weighted in enumerate(weights):
                sums[place][:, i] = saturate(combined([values for values, _ in totals], query.bounds, weighted))
        columns = [_cells([row[i] for row in table]) for i in range(len(keys))]
        counts = totals[persons][0].astype(np.int64)
        empty = np.zeros((len(table), 0), dtype=np.int64)
        return assembled(keys, self.schema, columns, np.concatenate([empty, *sums], axis=1), counts)

    def emitter(self) -> Emitter:
        """Writes row functions over these rows."""
        return Emitter(self.schema, self.rows)

    def few(self, statement: str, parameters: dict[str, object]) -> list[tuple[object, ...]]:
        """A statement's few rows."""
        return self.cursor.execute(statement, parameters).fetchall()

    def many(self, statement: str, parameters: dict[str, object]) -> list[Stored]:
        """A statement's many rows, all of whole numbers, as columns."""
        return [arrow.numpy_column(column) for column in arrow.table(self.cursor, statement, parameters).columns]

    def _all(self, wanted: Needed) -> Batch:
        """All rows in memory."""
        return fetched(self.cursor, self.schema, self.rows, wanted, owned=self.owned)

    def _query(self, *hidden: RowFn) -> tuple[Query, Piece | None] | None:
        """A SELECT of the tally's partition, with hidden keys beside its own; None where a part is not in SQL."""
        emitter = self.emitter()
        try:
            where = None if self.tally.where is None else emitter.truth(self.tally.where)
            asked = [*(key.fn for key in self.tally.by), *hidden]
            keys = [emitter.key(key, alone=len(asked) == 1) for key in asked]
        except NotInSql:
            return None
        return Query(emitter, keys), where

    def _scanned(self, query: Query, where: Piece | None, sizes: list[int]) -> Found:
        return scan(self, [query], where, [sizes])[0]

    def _read_tables(self, places: list[int]) -> dict[int, Integers]:
        """The sums of lookup tables, by place, from the counts of their keys; none for one whose keys SQL cannot say.

        Where all their keys together have few combinations these are counted once, for all tables. A row that lacks
        a key counts for the tables that do not read it: a count belongs to a table if that table's own keys are there.
        """
        tally = self.tally if len(places) < 2 else unite((self.tally,))[0]
        lookups = {place: cast("Lookup", tally.blocks[place].fn) for place in places}
        keys = {id(key): key for lookup in lookups.values() for key in lookup.keys}
        size = math.prod(cast("Code", key.kind(self.schema)).size for key in keys.values())
        shared = len(places) > 1 and size * tally.cells <= TOGETHER
        found = self._counted(lookups) if shared else {}
        for place, lookup in lookups.items():
            if place not in found:
                found |= self._counted({place: lookup})
        return found

    def _counted(self, lookups: dict[int, Lookup]) -> dict[int, Integers]:
        """The sums of lookup tables from one count of all their keys."""
        keys = {id(key): key for lookup in lookups.values() for key in lookup.keys}
        asked = self._query(*keys.values())
        if asked is None:
            return {}
        query, where = asked
        query.aggregate("count(*)", aggregate.rows_at_most(query.emitter))
        own = [len(key.labels) for key in self.tally.by]
        sizes = own + [cast("Code", key.kind(self.schema)).size for key in keys.values()]
        counted_ = self._scanned(query, where, sizes)
        codes, counts = counted_.codes, counted_.sums[0]
        place_of = {name: len(own) + i for i, name in enumerate(keys)}
        whole: Integers | None = None
        if len(lookups) > 1 and all(len(set(map(id, lookup.keys))) == len(lookup.keys) for lookup in lookups.values()):
            whole, left = _table(codes, counts.astype(np.int64), sizes)
            codes, counts = [code[left] for code in codes], counts[left]
        found = {}
        for place, lookup in lookups.items():
            mine = [*range(len(own)), *(place_of[id(key)] for key in lookup.keys)]
            index, counted = indexed([codes[i] for i in mine], [sizes[i] for i in mine], len(counts))
            base = None if whole is None else _summed(whole, sizes, mine)
            found[place] = self._weighed(index[counted], counts[counted], lookup, base)
        return found

    def _weighed(self, index: Integers, counts: Integers | Objects, lookup: Lookup, base: Integers | None) -> Integers:
        """Counts of (cell, table row) pairs, each perhaps in several parts, on top of the base, times the table."""
        units = lookup.units()[0]
        if base is not None or self.tally.cells * len(units) <= DENSE:
            dense = np.zeros(self.tally.cells * len(units), dtype=np.int64) if base is None else base
            np.add.at(dense, index, counts.astype(np.int64))
            return saturate(weighed(dense.reshape(self.tally.cells, len(units)), units))
        cells, entries = index // len(units), index % len(units)
        sums = np.zeros((self.tally.cells, units.shape[1]), dtype=np.int64)
        step = max(1, DENSE // units.shape[1])
        for start in range(0, len(index), step):
            part = slice(start, start + step)
            np.add.at(sums, cells[part], counts[part, None] * units[entries[part]])
        return saturate(sums)

    def fold(self, tallies: Sequence[Tally]) -> tuple[Integers, ...]:
        """Fold tallies over batches of just the columns they need: from memory, or streamed."""
        found = None if self.resident is None else self._from_memory(self.resident, tallies)
        if found is not None:
            return found
        emitter = Emitter(self.schema, self.rows)
        condition = ""
        where = tallies[0].where
        if len(tallies) == 1 and where is not None:
            try:
                condition = f" WHERE {emitter.truth(where).sql}"
                tallies = (replace(tallies[0], where=None),)
            except NotInSql:
                emitter = Emitter(self.schema, self.rows)
        wanted = needed(*tallies)
        names = [name for name in self.schema.names if name in wanted.columns]
        columns = [unshifted(self.rows, name) for name in names]
        columns += [PERSON] if wanted.person else []
        columns += [PLACE] if wanted.place else []
        statement = f"SELECT {', '.join(columns) or '1'} FROM {emitter.relation()}{condition}"
        self.statements.append(statement)
        streamed = self._stream(statement, emitter.bound(statement), names, person=wanted.person, place=wanted.place)
        return fold_all(tallies, self.schema, streamed, workers=WORKERS)

    def _from_memory(self, resident: Resident, tallies: Sequence[Tally]) -> tuple[Integers, ...] | None:
        """Fold over columns in memory; None where they are not there, or fail to be: that must not be an outcome."""
        try:
            with resident.read(self.cursor, self.schema, self.rows, tallies, self.batch) as batches:
                return None if batches is None else fold_all(tallies, self.schema, batches, workers=WORKERS)
        except Exception as error:  # noqa: BLE001 - how much memory is left depends on the rows; streaming does not (T30)
            _log.error("streamed: %s", type(error).__name__)
        resident.clear()
        return None

    def _stream(
        self, statement: str, parameters: dict[str, object], names: list[str], *, person: bool, place: bool
    ) -> Iterator[Batch]:
        for columns, size in arrow.streamed(self.cursor, statement, parameters, self.batch):
            stored: dict[str, Stored] = dict(zip(names, columns, strict=False))
            rest = [values.astype(np.int64) for values, _ in columns[len(names) :]]
            yield Batch(
                self.schema,
                size,
                stored,
                person=rest[0] if person else None,
                position=rest[-1] if place else None,
            )


def alike(tallies: Sequence[Tally]) -> list[list[int]]:
    """The places of tallies over the same relation."""
    found: dict[str, list[int]] = {}
    for i, tally in enumerate(tallies):
        found.setdefault(wire.encode(tally.over), []).append(i)
    return list(found.values())


def together(questions: Sequence[Question]) -> list[Integers]:
    """The exact sums of questions over the same rows: what SQL does not sum of any of them takes one pass for all."""
    first = questions[0]
    known: list[dict[int, Integers]] = [{} for _ in questions]
    if len(questions) > 1:
        tallies = [question.tally for question in questions]
        known = shared(first, tallies)
    found = [question.summed(done) for question, done in zip(questions, known, strict=True)]
    open_ = [(question, left) for question, (_, left) in zip(questions, found, strict=True) if left]
    if open_:
        tallies = [
            replace(question.tally, blocks=tuple(question.tally.blocks[place] for place in left))
            for question, left in open_
        ]
        folded = iter(open_[0][0].fold(tallies))
    sums = []
    for question, (blocks, left) in zip(questions, found, strict=True):
        if left:
            widths = [question.tally.blocks[place].width for place in left]
            parts = np.split(next(folded), np.cumsum(widths)[:-1], axis=1)
            blocks |= dict(zip(left, parts, strict=True))
        sums.append(np.concatenate([blocks[place] for place in range(len(question.tally.blocks))], axis=1))
    return sums


def _table(codes: list[Integers], counts: Integers, sizes: list[int]) -> tuple[Integers, Truths]:
    """The counts of groups whose keys are all there, an axis for each key of several codes; and which are left."""
    index, there = indexed(codes, sizes, len(counts))
    found = np.zeros(math.prod(sizes), dtype=np.int64)
    np.add.at(found, index[there], counts[there])
    return found.reshape([size for size in sizes if size > 1]), ~there


def _summed(table: Integers, sizes: list[int], mine: list[int]) -> Integers:
    """Such a table's sums for some of its keys, in their order, as one column.

    The first axes are summed over first: what is added then lies side by side.
    """
    kept = [place for place in mine if sizes[place] > 1]
    axis = 0
    for place, size in enumerate(sizes):
        if place in kept:
            axis += 1
        elif size > 1:
            table = table.sum(axis=axis)
    there = sorted(kept)
    return table.transpose([there.index(place) for place in kept]).flatten()


def fetched(cursor: duckdb.DuckDBPyConnection, schema: Schema, rows: Rows, wanted: Needed, *, owned: bool) -> Batch:
    """All rows of a relation in memory: what is wanted of them, and whose each row is."""
    names = [name for name in schema.names if name in wanted.columns]
    beside = [name for name, asked in ((PERSON, wanted.person), (PLACE, wanted.place), (OWNER, owned)) if asked]
    columns = [unshifted(rows, name) for name in names] + beside
    statement = f"SELECT {', '.join(columns) or '1'} FROM {rows.relation}"
    parameters = {name: rows.parameters[name] for name in set(PARAMETER.findall(statement))}
    table = arrow.table(cursor, statement, parameters)
    found = [arrow.numpy_column(column) for column in table.columns]
    stored: dict[str, Stored] = {name: _whole(column) for name, column in zip(names, found, strict=False)}
    numbers = {name: values for name, (values, _) in zip(beside, found[len(names) :], strict=False)}
    person, place = (numbers[name].astype(np.int64) if name in numbers else None for name in (PERSON, PLACE))
    return Batch(schema, table.num_rows, stored, person=person, position=place, owner=numbers.get(OWNER))


def _whole(column: Stored) -> Stored:
    values, missing = column
    return (values if values.dtype == object else values.astype(np.int64)), missing


def unshifted(rows: Rows, name: str) -> str:
    """A column with its codes counted from 0."""
    column = rows.names[name]
    shift = rows.shifts.get(column, 0)
    return f"{column} - {whole(shift)} AS {column}" if shift else column


def _key(emitter: Emitter, fn: RowFn) -> Piece:
    """A key that is not listed in advance: a code, a truth value, a number or a text."""
    kind = fn.kind(emitter.schema)
    if isinstance(kind, Code):
        code = emitter.named(emitter.code(fn))
        there = f"{code.sql} >= 0 AND {code.sql} < {kind.size}"
        # A key must be told by its label alone: what has no label is one group, however it came about (T30).
        unnamed = sorted(set(range(kind.size)) - set(kind.named))
        there += "".join(f" AND {code.sql} <> {i}" for i in unnamed)
        return Piece(f"CASE WHEN {there} THEN {code.sql} END", code.layer)
    if isinstance(kind, Truth):
        return emitter.truth(fn)
    if isinstance(kind, Words):
        return emitter.words(fn)
    if isinstance(kind, Scalar):
        return emitter.number(fn)
    raise NotInSql(type(fn).__name__)


def _cells(values: list[object]) -> Stored:
    missing = np.array([value is None for value in values], dtype=np.bool_)
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells, missing
