"""One SELECT and what comes of it: the groups of one partition, or of several over the same rows that are read once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

import numpy as np

from sulq.curator.engines.aggregate import Query
from sulq.curator.engines.batch import Stored
from sulq.curator.engines.emit import Emitter
from sulq.curator.engines.piece import Keyed, Piece
from sulq.curator.engines.totals import SATURATED, saturate
from sulq.terms.kinds import Integers, Objects, Truths

FEW: Final = 512  # so many cells are fetched as plain numbers, which costs less to set up than Arrow


class Asking(Protocol):
    """A database with the rows of one relation: it writes row functions, and runs what was written."""

    statements: list[str]

    def emitter(self) -> Emitter:
        """Writes row functions over these rows."""
        ...

    def few(self, statement: str, parameters: dict[str, object]) -> list[tuple[object, ...]]:
        """A statement's few rows."""
        ...

    def many(self, statement: str, parameters: dict[str, object]) -> list[Stored]:
        """A statement's many rows, all of whole numbers, as columns."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The groups of a query that occur: each key's codes, -1 where it is missing or unlabelled, and the aggregates."""

    query: Query
    sizes: list[int]
    codes: list[Integers]
    sums: list[Integers | Objects]

    def blocks(self) -> dict[int, Integers]:
        """Each block's totals, worked out from the aggregates, for every cell."""
        cells, totals = self._cells()
        found = {}
        for place, weights in self.query.blocks:
            sums = np.zeros((math.prod(self.sizes), len(weights)), dtype=np.int64)
            for i, weighted in enumerate(weights):
                sums[cells, i] = saturate(combined(totals, self.query.bounds, weighted))
            found[place] = sums
        return found

    def _cells(self) -> tuple[Integers, list[Integers | Objects]]:
        """The cells that occur and the aggregates of each: int64 where they provably fit, else Python integers."""
        index, counted = indexed(self.codes, self.sizes, len(self.sums[0]))
        cells, totals = index[counted], [values[counted] for values in self.sums]  # a NULL sum is filled with 0
        if all(key.places is None for key in self.query.keys):
            return cells, totals
        cells, inverse = np.unique(cells, return_inverse=True)  # several values of a column are one bin
        merged = [cast("Integers | Objects", np.zeros(len(cells), dtype=values.dtype)) for values in totals]
        for sums, values in zip(merged, totals, strict=True):
            np.add.at(sums, inverse, values)
        return cells, merged


def scan(asking: Asking, queries: Sequence[Query], where: Piece | None, sizes: Sequence[list[int]]) -> list[Found]:
    """What each query finds, in one statement: they share an emitter, a condition and the aggregates they ask for."""
    first = queries[0]
    fits = all(bound < SATURATED for bound in first.bounds)
    sums = [first.emitter.narrow(sql) for sql in first.aggregates] if fits else first.aggregates
    keys = first.keys if len(queries) == 1 else list({key.piece.sql: key for q in queries for key in q.keys}.values())
    statement = first.sql(where, sums) if len(queries) == 1 else _together(queries, keys, where, sums)
    asking.statements.append(statement)
    parameters = first.emitter.bound(statement)
    if fits and sum(map(math.prod, sizes)) > FEW:
        columns = asking.many(statement, parameters)
    else:
        marked = len(queries) > 1
        fetched = asking.few(statement, parameters)
        columns = columns_of(fetched, len(keys) + marked + len(sums), np.int64 if fits else object)
    if len(queries) == 1:
        totals = [values for values, _ in columns[len(keys) :]]
        return [Found(first, sizes[0], _codes(columns, first.keys, sizes[0]), totals)]
    place_of = {key.piece.sql: i for i, key in enumerate(keys)}
    mark, *aggregates = (values for values, _ in columns[len(keys) :])
    found = []
    for query, size in zip(queries, sizes, strict=True):
        mine = [place_of[key.piece.sql] for key in query.keys]
        rows = mark == _mark(mine, len(keys))
        own = [(values[rows], None if missing is None else missing[rows]) for values, missing in columns[: len(keys)]]
        codes = _codes([own[i] for i in mine], query.keys, size)
        found.append(Found(query, size, codes, [values[rows] for values in aggregates]))
    return found


def _together(queries: Sequence[Query], keys: list[Keyed], where: Piece | None, sums: list[str]) -> str:
    """A SELECT of several partitions, each a grouping set; which one a group belongs to is told beside its keys."""
    name = {key.piece.sql: f"k{i}" for i, key in enumerate(keys)}
    condition = "" if where is None else f" WHERE {where.sql}"
    named = "".join(f", {sql} AS {alias}" for sql, alias in name.items())
    emitter = queries[0].emitter
    rows = f"(SELECT *{named} FROM {emitter.relation()}{condition}) AS keyed"
    every = ", ".join(name.values())
    columns = [every, f"{emitter.grouping}({every}) AS g", *(f"{sql} AS s{i}" for i, sql in enumerate(sums))]
    # Each set once, in whatever order its keys are asked for: a set given twice would be found twice.
    sets = {tuple(sorted({name[key.piece.sql] for key in query.keys})) for query in queries}
    grouped = ", ".join(f"({', '.join(each)})" for each in sorted(sets))
    return f"SELECT {', '.join(columns)} FROM {rows} GROUP BY GROUPING SETS ({grouped})"


def _mark(mine: list[int], keys: int) -> int:
    """What a database says of a set: a bit for each key that is not in it, the first key highest."""
    return sum(1 << (keys - 1 - i) for i in range(keys) if i not in mine)


def _codes(columns: Sequence[Stored], keys: Sequence[Keyed], sizes: list[int]) -> list[Integers]:
    """Codes of keys from the columns that hold them."""
    codes = []
    for (values, missing), size, key in zip(columns, sizes, keys, strict=False):
        if values.dtype == object and missing is not None:
            values = np.where(missing, 0, values)  # noqa: PLW2901 - texts of digits, which None is not
        code = values.astype(np.int64) - key.shift
        last = size if key.missing is None else key.missing
        there = (code >= 0) & (code < (last if key.places is None else len(key.places)))
        there &= True if missing is None else ~missing
        if key.places is not None:
            code = key.places[np.where(there, code, 0)]
        code = np.where(there, code, -1)
        codes.append(code if key.missing is None or missing is None else np.where(missing, key.missing, code))
    return codes


def indexed(codes: list[Integers], sizes: list[int], length: int) -> tuple[Integers, Truths]:
    """Each group's place among all combinations, the last key fastest, and whether all its keys are there."""
    index = np.zeros(length, dtype=np.int64)
    counted = np.ones(length, dtype=np.bool_)
    for code, size in zip(codes, sizes, strict=True):
        counted &= code >= 0
        index = index * size + code
    return index, counted


def combined(totals: list[Integers | Objects], bounds: list[int], weights: dict[int, int]) -> Integers | Objects:
    """A whole linear combination of aggregates, in Python integers where 64 bits might not hold it."""
    wide = sum(abs(weight) * max(bounds[i], 1) for i, weight in weights.items()) >= SATURATED
    parts = [(totals[i].astype(object) if wide else totals[i]) * weight for i, weight in weights.items()]
    return cast("Integers | Objects", sum(parts[1:], start=parts[0]))


def columns_of(rows: list[tuple[object, ...]], width: int, kind: type = np.int64) -> list[Stored]:
    """Fetched rows as columns of whole numbers."""
    columns: list[Stored] = []
    for i in range(width):
        missing = np.array([row[i] is None for row in rows], dtype=np.bool_)
        values: np.ndarray = np.array([0 if row[i] is None else int(cast("int", row[i])) for row in rows], dtype=kind)
        columns.append((values, missing))
    return columns
