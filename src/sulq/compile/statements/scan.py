"""One SELECT and how it is read: the groups of one partition, or of several over the same rows that are read once."""

from __future__ import annotations

from collections.abc import Sequence

from sulq.compile.emit.piece import Keyed, Piece
from sulq.compile.statements.aggregate import Query
from sulq.kernel.layout import WORD
from sulq.kernel.request import Key, Looked, Part, Statement


def alone(query: Query, where: Piece | None, sizes: list[int], looked: tuple[Looked, ...] = ()) -> Statement:
    """The statement of one query; keys past those of its partition tell the rows of lookup tables apart."""
    keys = _described(query.keys, range(len(query.keys)), sizes)
    own = min([len(keys), *(place for table in looked for place in table.keys)])
    part = Part(keys, own, None, tuple(query.combined()), looked)
    return Statement(query.emitter.scan(query.sql(where, _sums(query))), len(keys), (part,))


def together(queries: Sequence[Query], where: Piece | None, sizes: Sequence[list[int]]) -> Statement:
    """The one statement of several queries: they share an emitter, a condition and the aggregates they ask for."""
    first = queries[0]
    keys = {key.piece.sql: key for query in queries for key in query.keys}
    place_of = {sql: i for i, sql in enumerate(keys)}
    parts = []
    for query, size in zip(queries, sizes, strict=True):
        mine = [place_of[key.piece.sql] for key in query.keys]
        described = _described(query.keys, mine, size)
        parts.append(Part(described, len(mine), _mark(mine, len(keys)), tuple(query.combined())))
    scan = first.emitter.scan(_together(queries, list(keys), where, _sums(first)))
    return Statement(scan, len(keys), tuple(parts))


def _sums(query: Query) -> list[str]:
    """The aggregates, as 64 bits where these hold them all."""
    fits = all(bound < WORD for bound in query.bounds)
    return [query.emitter.narrow(sql) for sql in query.aggregates] if fits else query.aggregates


def _described(keys: Sequence[Keyed], columns: Sequence[int], sizes: Sequence[int]) -> tuple[Key, ...]:
    """How keys are read from the columns they stand in."""
    return tuple(
        Key(column, size, key.shift, key.places, key.missing)
        for key, column, size in zip(keys, columns, sizes, strict=True)
    )


def _together(queries: Sequence[Query], keys: list[str], where: Piece | None, sums: list[str]) -> str:
    """A SELECT of several partitions, each a grouping set; which one a group belongs to is told beside its keys."""
    name = {sql: f"k{i}" for i, sql in enumerate(keys)}
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
