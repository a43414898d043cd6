"""Blocks to SELECTs: which sums a query asks for, how a block's totals follow from them, and which share a scan.

Every coordinate of such a block is a whole linear combination of a few exact
aggregates: a plain count is COUNT(*), the one-sided sums of a mean are SUM and
COUNT, a lookup table meets the counts of its keys. Combining is exact integer
arithmetic after the query.

Tallies with one condition are summed together: those of one partition are one
grouping, and partitions that ask for the same aggregates are the grouping sets
of one SELECT. Tallies with different conditions are not: DuckDB skips what a
condition leaves out, and as FILTERs of one SELECT they took twice as long and more
(docs/decisions/0010-engines.md). All of this is chosen by the questions, never by the rows.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sulq.compile.statements.emitter import Emitter, Keyed
from sulq.compile.statements.tally_functions import unite
from sulq.kernel.layout import WORD
from sulq.kernel.request import Combined, Key, Looked, Part, Statement
from sulq.language.kinds import Truth
from sulq.language.rowfn import Lit
from sulq.language.rowfn.piece import NotInSql, Piece
from sulq.language.rowfn.vectors import Bernstein
from sulq.language.tally import Block, Tally

Place = tuple[int, int]
"""Which tally a block is of, and its place there."""


@dataclass(slots=True)
class Query:
    """One SELECT: keys and their numbers of labels, aggregates with their largest total, and the blocks that follow."""

    emitter: Emitter
    keys: list[Keyed]
    sizes: list[int]
    aggregates: list[str] = field(default_factory=list)
    bounds: list[int] = field(default_factory=list)  # the largest total of each aggregate
    blocks: list[tuple[Place, list[dict[int, int]]]] = field(default_factory=list)  # and each coordinate's weights

    def aggregate(self, sql: str, bound: int) -> int:
        """The place of an aggregate, each asked once."""
        if sql not in self.aggregates:
            self.aggregates.append(sql)
            self.bounds.append(bound)
        return self.aggregates.index(sql)

    def combined(self) -> Iterator[Combined]:
        """The blocks as a proposal has them."""
        for at, weights in self.blocks:
            yield Combined(at, tuple(tuple(each.items()) for each in weights))

    def sql(self, where: Piece | None, sums: list[str] | None = None) -> str:
        """The whole SELECT, of the aggregates as they are or as they are written in `sums`."""
        columns = [f"{key.piece.sql} AS k{i}" for i, key in enumerate(self.keys)]
        columns += [f"{sql} AS s{i}" for i, sql in enumerate(self.aggregates if sums is None else sums)]
        condition = "" if where is None else f" WHERE {where.sql}"
        groups = f" GROUP BY {', '.join(f'k{i}' for i in range(len(self.keys)))}" if self.keys else ""
        return f"SELECT {', '.join(columns)} FROM {self.emitter.relation()}{condition}{groups}"


def add(query: Query, place: Place, block: Block) -> None:
    """Ask for what a block needs, or leave it to the batch path."""
    emitter = query.emitter
    if block.vector:
        if not isinstance(block.fn, Bernstein):
            raise NotInSql(type(block.fn).__name__)
        query.blocks.append((place, _bernstein(query, block.fn)))
        return
    count = emitter.rows.most
    if isinstance(block.fn, Lit) and not isinstance(block.fn.value, str):
        units = float(np.floor(float(block.fn.value) * float(1 / block.step) + 0.5))
        units = int(min(max(units, block.low[0]), block.high[0]))
        query.blocks.append((place, [{query.aggregate("count(*)", count): units}]))
    elif isinstance(block.fn.kind(emitter.schema), Truth) and block.step == 1 and block.low[0] <= 0 < block.high[0]:
        held = emitter.truth(block.fn)
        query.blocks.append((place, [{query.aggregate(f"count(CASE WHEN {held.sql} THEN 1 END)", count): 1}]))
    else:
        piece, integer = emitter.units(block)
        most = max(abs(block.low[0]), abs(block.high[0]))
        query.blocks.append((place, [{_sum(query, piece, most, integer=integer): 1}]))


def _sum(query: Query, piece: Piece, most: int, *, integer: bool) -> int:
    """An exact SUM, asked once."""
    total = query.emitter.rows.most * most
    return query.aggregate(query.emitter.total(piece, total, integer=integer), total)


def _bernstein(query: Query, fn: Bernstein) -> list[dict[int, int]]:
    """The sums of (x - a), (b - x) and of their products, from COUNT, SUM and the sum of squares."""
    emitter = query.emitter
    step, low, high = fn.span(emitter.schema)
    piece, integer = emitter.units(Block(fn.item, step, (low,), (high,), vector=False))
    n = query.aggregate(f"count({piece.sql})", emitter.rows.most)
    last: list[dict[int, int]] = []
    if fn.missing:
        every = query.aggregate("count(*)", emitter.rows.most)
        whole = (high - low) ** fn.degree
        last = [{every: whole, n: -whole}]
    if fn.degree == 1:
        s = _sum(query, piece, max(abs(low), abs(high)), integer=integer)
        return [{s: 1, n: -low}, {s: -1, n: high}, *last]
    # With u = x - low and w = high - low: u^2, 2u(w - u) and (w - u)^2.
    width = high - low
    above, integer = emitter.above(piece, low, high)
    u = emitter.named(above)
    s = _sum(query, u, width, integer=integer)
    q = _sum(query, Piece(f"({u.sql} * {u.sql})", u.layer), width * width, integer=integer)
    return [{q: 1}, {s: 2 * width, q: -2}, {q: 1, s: -2 * width, n: width * width}, *last]


def alone(query: Query, where: Piece | None, looked: tuple[Looked, ...] = ()) -> Statement:
    """The statement of one query; keys past those of its partition tell the rows of lookup tables apart."""
    keys = _described(query, range(len(query.keys)))
    own = min([len(keys), *(place for table in looked for place in table.keys)])
    part = Part(keys, own, None, tuple(query.combined()), looked)
    return Statement(query.emitter.scan(query.sql(where, _sums(query))), len(keys), (part,))


def together(queries: Sequence[Query], where: Piece | None) -> Statement:
    """The one statement of several queries: they share an emitter, a condition and the aggregates they ask for."""
    first = queries[0]
    keys = {key.piece.sql: key for query in queries for key in query.keys}
    place_of = {sql: i for i, sql in enumerate(keys)}
    parts = []
    for query in queries:
        mine = [place_of[key.piece.sql] for key in query.keys]
        parts.append(Part(_described(query, mine), len(mine), _mark(mine, len(keys)), tuple(query.combined())))
    scan = first.emitter.scan(_together(queries, list(keys), where, _sums(first)))
    return Statement(scan, len(keys), tuple(parts))


def _sums(query: Query) -> list[str]:
    """The aggregates, as 64 bits where these hold them all."""
    fits = all(bound < WORD for bound in query.bounds)
    return [query.emitter.narrow(sql) for sql in query.aggregates] if fits else query.aggregates


def _described(query: Query, columns: Sequence[int]) -> tuple[Key, ...]:
    """How keys are read from the columns they stand in."""
    return tuple(
        Key(column, size, key.shift, key.places, key.missing)
        for key, column, size in zip(query.keys, columns, query.sizes, strict=True)
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


SETS: Final = 32  # partitions of one SELECT: each has its own table of groups in memory
CELLS: Final = 2**18  # and so many cells of them all


def shared(write: Callable[[], Emitter], tallies: Mapping[int, Tally]) -> list[Statement]:
    """The statements of the blocks that SQL sums of tallies; `write` gives writers of row functions over their rows."""
    found: list[Statement] = []
    united = dict(zip(tallies, unite(tuple(tallies.values())), strict=True))
    alike: dict[int, list[int]] = {}
    for i, tally in united.items():
        alike.setdefault(id(tally.where), []).append(i)
    for places in alike.values():
        emitter = write()
        condition = united[places[0]].where
        try:
            where = None if condition is None else emitter.truth(condition)
        except NotInSql:
            continue
        packed = _packed(_partitions(emitter, {i: united[i] for i in places}))
        found += [alone(pack[0], where) if len(pack) == 1 else together(pack, where) for pack in packed]
    return found


def _partitions(emitter: Emitter, tallies: dict[int, Tally]) -> list[Query]:
    """The partitions of tallies, each with all blocks that SQL sums for it; what SQL cannot say is left out."""
    found: dict[tuple[tuple[int, int], ...], Query] = {}
    for i, tally in tallies.items():
        name = tuple((id(key.fn), len(key.labels)) for key in tally.by)
        if name not in found:
            try:
                keys = [emitter.key(key.fn, alone=len(tally.by) == 1) for key in tally.by]
            except NotInSql:
                continue
            found[name] = Query(emitter, keys, [len(key.labels) for key in tally.by])
        for place, block in enumerate(tally.blocks):
            with contextlib.suppress(NotInSql):
                add(found[name], (i, place), block)
    return [query for query in found.values() if query.blocks]


def _packed(queries: list[Query]) -> Iterator[list[Query]]:
    """Partitions that one SELECT sums: such as ask for the same aggregates, and not too many at a time."""
    alike: dict[tuple[str, ...], list[Query]] = {}
    for query in queries:
        alike.setdefault(tuple(query.aggregates), []).append(query)
    for same in alike.values():
        pack: list[Query] = []
        for query in same:
            cells = sum(math.prod(one.sizes) for one in [*pack, query])
            keys = {key.piece.sql for one in [*pack, query] for key in one.keys}
            if pack and (len(pack) == SETS or cells > CELLS or len(keys) > query.emitter.grouped_keys):
                yield pack
                pack = []
            pack.append(query)
        yield pack
