"""Vectors column by column are what the row functions' own cells are, to the bit, missing rows as zeros."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.language.domain import Category, Int, Real, Schema
from sulq.language.rowfn import Dot, IsMissing, Lookup, Nearest, RowFn, Scaled, Vector, WithinBall, col
from sulq.language.rowfn.base import evaluate
from sulq.language.rowfn.vectors import EXACT, vector_cells
from sulq.sources.folds.batch import Batch
from sulq.sources.folds.coordinates import Vectors
from tests.counts import count

SCHEMA = Schema.of(
    "t",
    {
        "x": Real(-1, 1),
        "y": Real(-3, 5),
        "n": Int(-5, 70_000),
        "far": Int(10**6, 10**6 + 9),
        "c": Category(("a", "b", "c")),
    },
)
WIDTHS = {"x": np.int32, "y": np.int64, "n": np.int32, "far": np.int32, "c": np.int8}


def batch(rng: np.random.Generator, size: int, missing: float = 0.1) -> Batch:
    """Rows of all the ranges, their ends among them, some cells missing and holding anything there."""
    columns = {}
    for name, column in SCHEMA.columns:
        low, high = column.low, column.high
        values = np.where(rng.random(size) < 0.2, rng.choice([low, high], size), rng.integers(low, high + 1, size))
        gone = rng.random(size) < missing
        columns[name] = (values.astype(WIDTHS[name]), gone if missing else None)
    return Batch(SCHEMA, size, columns)


def vectors(rng: np.random.Generator) -> RowFn:
    """A vector of any form that kernels make fast, or do not."""
    items = [
        col("x"),
        col("y"),
        col("n"),
        (col("y") - 1) / 4,
        (col("x") - 0.25) / 0.75,
        col("x") * col("y"),
        col("far"),
    ]
    chosen = [items[i] for i in rng.choice(len(items), rng.integers(1, 5))]
    fn: RowFn = Vector(tuple(chosen), int(rng.integers(1, 16)))
    kind = rng.integers(5)
    if kind == 0:
        fn = Lookup((col("c"),), tuple(tuple(rng.uniform(-9, 9, 3).tolist()) for _ in range(3)))
    if kind >= 3:
        step = float(fn.kind(SCHEMA).step)
        fn = WithinBall(fn, step * float(rng.choice([1, 1.5, 7, 100, 5000, 40_000])))
    return fn


@settings(max_examples=count("vectors column by column", short=150, long=20_000))
@given(st.integers(0, 2**32))
def test_SR16_every_reading_is_the_row_functions_own(seed: int) -> None:
    """Coordinates, inner products, nearest centres and presence, on batches of any size, with cells missing."""
    rng = np.random.default_rng(seed)
    fn = vectors(rng)
    width = fn.kind(SCHEMA).width
    rows = batch(rng, int(rng.choice([0, 1, 2, 700])), float(rng.choice([0, 0.1, 0.9])))
    centres = [rng.uniform(-4, 4, width) * rng.choice([0.1, 1, 1e5]) for _ in range(int(rng.integers(1, 20)))]
    readings = [
        Dot(fn, tuple(rng.normal(size=width).tolist()), int(rng.integers(1, 21))),
        Nearest(fn, tuple(map(tuple, [*centres, *centres[:2]]))),
        IsMissing(fn),
    ]
    made = Vectors(SCHEMA, readings)
    fresh = rows.part(0, rows.size)
    made.prime(rows)
    with np.errstate(all="ignore"):
        wanted, missing = vector_cells(fn, fresh)
        found, none = made.of(fn).units(rows)
        gone = np.zeros(rows.size, dtype=bool) if missing is None else missing
        assert (none is None) == (missing is None)
        assert none is None or none.tolist() == gone.tolist()
        assert found.T.tolist() == np.where(gone[:, None], 0, wanted).tolist()
        for reading in readings:
            assert id(reading) in rows.seen or isinstance(fn, Lookup)
            got, want = evaluate(reading, rows), evaluate(reading, fresh)
            there = ~gone if not isinstance(reading, IsMissing) else slice(None)
            assert got.values[there].tolist() == want.values[there].tolist()
            assert (got.missing is None) == (want.missing is None)


def test_SR16_many_rows_are_cut_into_blocks_and_none_is_lost() -> None:
    """Batches longer than every block, shorter batches after them, in one room: the same as alone."""
    rng = np.random.default_rng(5)
    fn = WithinBall(Vector((col("x"), col("y"), col("n")), 11), 0.9 * 2**10)
    code = Nearest(fn, tuple(tuple(c) for c in rng.uniform(-700, 700, (40, 3)).tolist()))
    made = Vectors(SCHEMA, [code])
    for size in (40_000, 3, 17_000, 0):
        rows = batch(rng, size)
        fresh = rows.part(0, size)
        made.prime(rows)
        there = ~evaluate(fn, fresh).missing
        assert evaluate(code, rows).values[there].tolist() == evaluate(code, fresh).values[there].tolist()


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_SR16_few_or_many_vectors_outside_a_ball(share: float) -> None:
    """None, few, half or all are shortened: by rows or all at once, the same integers, each in the ball."""
    rng = np.random.default_rng(2)
    schema = Schema.of("t", {"a": Int(-900, 900), "b": Int(-900, 900)})
    fn = WithinBall(Vector((col("a"), col("b")), 10), 100)
    long = rng.random(4000) < share
    cells = {name: np.where(long, rng.integers(-900, 901, 4000), rng.integers(-60, 61, 4000)) for name in "ab"}
    rows = Batch(schema, 4000, {name: (values.astype(np.int16), None) for name, values in cells.items()})
    found, _ = Vectors(schema, []).of(fn).units(rows)
    assert found.T.tolist() == evaluate(fn, rows).values.tolist()
    assert ((found**2).sum(axis=0) <= 100**2).all()


def test_SR16_a_quotient_never_reaches_the_whole_number_above() -> None:
    """The shortening's division: quotients just below whole numbers, up to a + b < 2^53; a control past it fails."""
    rng = np.random.default_rng(3)
    norms = rng.integers(1, 2**20, 200_000)
    whole = rng.integers(1, 2**33, 200_000) % (2**53 // norms - 1) + 1
    below = whole * norms - 1
    assert int((below + norms).max()) < EXACT
    assert (np.trunc(below.astype(float) / norms.astype(float)) == whole - 1).all()
    huge = np.array([2**53 - 1]) * np.array([2**9])  # doubles that are no longer all the whole numbers
    assert np.trunc((huge - 1).astype(float) / np.array([2.0**9])) != 2**53 - 2


def test_a_ball_too_wide_for_doubles_is_divided_in_integers() -> None:
    """Where the products come near 2^53 the division is that of whole numbers, with the same result."""
    schema = Schema.of("t", {"c": Category(("a", "b"))})
    table = ((2.0**22, 1.0, -3.0), (-(2.0**22), 2.0**21, 5.0))
    fn = WithinBall(Lookup((col("c"),), table), float(2**22 - 1))
    wide = WithinBall(Lookup((col("c"),), tuple((*row, *row[:1] * 200) for row in table)), 2.0**30)
    rows = Batch(schema, 2, {"c": (np.array([0, 1], dtype=np.int8), None)})
    for each in (fn, wide):
        found, _ = Vectors(schema, []).of(each).units(rows)
        assert found.T.tolist() == evaluate(each, rows).values.tolist()


def test_a_vector_is_made_once_a_batch() -> None:
    """Blocks and keys that share a vector share its matrix; another batch has its own."""
    rng = np.random.default_rng(4)
    fn = Vector((col("x"), col("y")))
    made = Vectors(SCHEMA, [Dot(fn, (1, 2)), Scaled(fn, col("x"))])
    first, second = batch(rng, 5), batch(rng, 5)
    one = made.of(fn).matrix(first)[0]
    assert made.of(fn).matrix(first)[0] is one
    assert one[-1].tolist() == [1.0] * 5
    assert made.of(fn).matrix(second)[0] is not one
