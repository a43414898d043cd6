"""Blocks to SQL aggregates: which sums a query asks for, and how a block's totals follow from them.

Every coordinate of such a block is a whole linear combination of a few exact
aggregates: a plain count is COUNT(*), the one-sided sums of a mean are SUM and
COUNT, a lookup table meets the counts of its keys. Combining is exact integer
arithmetic after the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from sulq.compile.emit.emitter import Emitter, NotInSql, Piece
from sulq.compile.emit.piece import Keyed
from sulq.kernel.request import Combined
from sulq.language.kinds import Truth
from sulq.language.rowfn import Lit
from sulq.language.rowfn.vectors import Bernstein
from sulq.language.tally import Block

Place = tuple[int, int]
"""Which tally a block is of, and its place there."""


@dataclass(slots=True)
class Query:
    """One SELECT: keys, aggregates with their largest total, and the blocks that follow from them."""

    emitter: Emitter
    keys: list[Keyed]
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
