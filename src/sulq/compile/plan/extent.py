"""Sums of row functions: how far one row, or one row changed into another, can move them.

The largest norm of one row's integer vector (`single`) and of the difference of
two such vectors (`pair`), over everything the block's bounds allow. Boxes are
exact; the structured vectors are bounded by their own identities, stated below.

Privacy: a person's k rows move the sums by at most k times these norms [S3.4, S4.5, X1; SR1].
Source: docs/theory/sensitivity.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from sulq.language.domain import Schema
from sulq.language.kinds import Grid, Integers, Kind
from sulq.language.rowfn import Arith, Bernstein, Lit, Lookup, Outer, RowFn
from sulq.language.rowfn.base import as_number
from sulq.language.rowfn.keys import Value
from sulq.language.rowfn.maths import Maths, Power
from sulq.language.tally import Block

PAIRS = 2**27  # a table's rows are compared pair by pair up to this many differences of numbers
PIECE = 2**18  # of these so many at once
TOTAL = frozenset({"abs", "ceil", "floor", "sign", "trunc"})


@dataclass(frozen=True, slots=True)
class Extent:
    """Norms of one row's vector and of a difference of two, in whole units; L2 norms squared."""

    single_l1: int
    single_l2_squared: int
    single_coordinate: int
    pair_l1: int
    pair_l2_squared: int
    pair_coordinate: int


def extent(block: Block, schema: Schema, *, pairs: bool = True) -> Extent:
    """The extent of a block; where its value can be missing, a row may also count as zero.

    Without `pairs` two rows of a table are not compared, but taken to differ by twice the largest norm at most.
    """
    kind = block.fn.kind(schema)
    nullable = kind.nullable if isinstance(kind, Grid) else as_number(kind, block.fn).nullable
    nullable = nullable or _partial(block.fn, vector=block.vector)
    found = _present(block, kind, pairs=pairs)
    if not nullable:
        return found
    return Extent(
        found.single_l1,
        found.single_l2_squared,
        found.single_coordinate,
        max(found.pair_l1, found.single_l1),
        max(found.pair_l2_squared, found.single_l2_squared),
        max(found.pair_coordinate, found.single_coordinate),
    )


def _partial(fn: RowFn, *, vector: bool) -> bool:
    """Whether a function in it has no value somewhere, and the kernel does not follow that it is never asked there.

    It follows quotients by constants and whole powers of cells, but powers not in vectors; of constants neither.
    """
    match fn:
        case Maths(op, _):
            partial = op not in TOTAL
        case Power():
            partial = vector or fn.whole is None or fn.whole < 0 or _constant(fn)
        case Arith(op, _, _):
            partial = op == "/" and _constant(fn)
        case _:
            partial = isinstance(fn, Value)
    return partial or any(_partial(part, vector=vector) for part in fn.parts())


def _constant(fn: RowFn) -> bool:
    return isinstance(fn, Lit) or (bool(fn.parts()) and all(map(_constant, fn.parts())))


def _present(block: Block, kind: Kind, *, pairs: bool) -> Extent:
    box = _box(block.low, block.high)
    if isinstance(block.fn, Bernstein):
        return _bernstein(box, block.high[0])
    if isinstance(block.fn, Lookup) and block.vector:
        return _table(box, block.fn.units()[0], pairs=pairs)
    if not isinstance(kind, Grid) or (kind.ball is None and kind.l1 is None):
        return box
    length = cast("int", kind.l1 if kind.ball is None else kind.ball)  # of L1 norm c, the L2 norm is at most c too
    return (_outer if isinstance(block.fn, Outer) else _ball)(box, kind, length)


def _box(low: tuple[int, ...], high: tuple[int, ...]) -> Extent:
    """Independent coordinates: every corner of the box can occur."""
    far = [max(abs(a), abs(b)) for a, b in zip(low, high, strict=True)]
    wide = [b - a for a, b in zip(low, high, strict=True)]
    return Extent(sum(far), sum(x * x for x in far), max(far), sum(wide), sum(x * x for x in wide), max(wide))


def _bernstein(box: Extent, whole: int) -> Extent:
    """Terms that are non-negative and sum to `whole`: a scaled point of the simplex.

    L1 is exactly `whole`, L2 at most `whole` (at a corner); two points of the
    simplex differ by at most 2*whole in L1 and sqrt(2)*whole in L2.
    """
    return Extent(whole, whole * whole, box.single_coordinate, 2 * whole, 2 * whole * whole, box.pair_coordinate)


def _ball(box: Extent, kind: Grid, ball: int) -> Extent:
    """Vectors of L2 norm at most `ball`: L1 at most sqrt(width)*ball, or what is enforced; differences twice that.

    Where the signs of coordinates are known two vectors are at most a right angle apart: sqrt(2)*ball in L2.
    """
    l1 = _root_up(kind.width * ball * ball) if kind.l1 is None else kind.l1
    angle = 4 if any(a < 0 < b for a, b in zip(kind.low, kind.high, strict=True)) else 2
    return Extent(
        min(box.single_l1, l1),
        min(box.single_l2_squared, ball * ball),
        min(box.single_coordinate, ball),
        min(box.pair_l1, 2 * l1),
        min(box.pair_l2_squared, angle * ball * ball),
        min(box.pair_coordinate, 2 * ball),
    )


def _outer(box: Extent, kind: Grid, square: int) -> Extent:
    """Upper triangles of x x^T with |x|^2 at most `square`.

    The triangle is part of the whole matrix, whose Frobenius norm is |x|^2; two
    of them differ by at most sqrt(2)*square, since |xx^T - yy^T|^2 = |x|^4 + |y|^4 -
    2(x.y)^2. In L1 the triangle is (|x|_1^2 + |x|_2^2)/2 <= (d + 1)/2 * square; where |x|_1 is at
    most c it is at most (c^2 + square)/2, free of d [S4.10].
    """
    d = (math.isqrt(8 * kind.width + 1) - 1) // 2
    l1 = (d + 1) * square // 2 + 1 if kind.l1 is None else (kind.l1 + square) // 2
    return Extent(
        min(box.single_l1, l1),
        min(box.single_l2_squared, square * square),
        min(box.single_coordinate, square),
        min(box.pair_l1, 2 * l1),
        min(box.pair_l2_squared, 2 * square * square),
        min(box.pair_coordinate, 2 * square),
    )


def _table(box: Extent, units: Integers, *, pairs: bool) -> Extent:
    """The rows of a public table: nothing else can occur, so their norms are taken one by one.

    Entries are at most 2^22 units: squares of differences of 2^16 of them fit 64 bits.
    """
    whole = units.astype(object) if units.shape[1] > 2**16 else units
    l1 = int(np.abs(whole).sum(axis=1).max())
    l2 = int((whole * whole).sum(axis=1).max())
    pair_l1, pair_l2 = min(box.pair_l1, 2 * l1), min(box.pair_l2_squared, 4 * l2)
    distinct = np.unique(units, axis=0) if pairs else units
    if pairs and units.shape[1] <= 2**16 and distinct.size * len(distinct) <= PAIRS:
        step = max(1, PIECE // distinct.size)
        farthest = [_farthest(distinct, distinct[i : i + step]) for i in range(0, len(distinct), step)]
        pair_l1, pair_l2 = (max(norms) for norms in zip(*farthest, strict=True))
    return Extent(l1, l2, box.single_coordinate, pair_l1, pair_l2, box.pair_coordinate)


def _farthest(rows: Integers, some: Integers) -> tuple[int, int]:
    """The largest L1 norm, and the largest squared L2 norm, of a difference of one of the rows and one of some."""
    gaps = np.abs(rows[:, None] - some[None, :])
    return int(gaps.sum(axis=2).max()), int(np.einsum("ijk,ijk->ij", gaps, gaps).max())


def _root_up(square: int) -> int:
    root = math.isqrt(square)
    return root if root * root == square else root + 1
