"""The reference adds exactly, whatever the sizes of parts, terms and totals (T4, T5, SR16)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.answers import wire
from sulq.language.domain import Category, Int, Real, Schema
from sulq.language.relation import Table
from sulq.language.rowfn import (
    Vector,
    bins,
    col,
    dot,
    each,
    lit,
    lookup,
    nearest,
    outer,
    route,
    scaled,
    vector,
    within_ball,
)
from sulq.language.rowfn.base import evaluate
from sulq.language.rowfn.vectors import to_grid, vector_cells
from sulq.language.tally import Block, Key, Tally
from sulq.sources.fold import EXACT, RowBatch, fold, reach
from tests import random_tallies
from tests.counts import count

SCHEMA = Schema.of(
    "data", {"x": Real(-100, 100), "n": Int(-5, 70_000), "big": Int(-(2**53), 2**53), "g": Category(("a", "b", "c"))}
)


def batch(size: int, *, seed: int = 0, width: type = np.int32) -> RowBatch:
    """Rows with some cells missing."""
    rng = np.random.default_rng(seed)
    whole = {}
    for name, column in SCHEMA.columns:
        kind = np.int64 if name == "big" else width
        values = rng.integers(column.low, column.high, size, endpoint=True).astype(kind)
        whole[name] = (values, rng.random(size) < 0.1)
    return RowBatch(SCHEMA, size, whole)


def plain(tally: Tally, rows: RowBatch) -> list[list[int]]:
    """The sums in Python integers, term by term."""
    totals = [[0] * tally.width for _ in range(tally.cells)]
    for i in range(rows.size):
        one = rows.part(i, i + 1)
        cell = 0
        for key in tally.by:
            cells = key.fn.cells(one)
            cell = None if cell is None or cells.missing[0] else cell * len(key.labels) + int(cells.values[0])
        start = 0
        for block in tally.blocks:
            values, missing = vector_cells(block.fn, one)
            if cell is not None and (missing is None or not missing[0]):
                for j, term in enumerate(values[0].tolist()):
                    totals[cell][start + j] += term
            start += block.width
    return totals


@pytest.mark.parametrize("width", [np.int32, np.int64, np.float64])
@pytest.mark.parametrize("bits", [1, 11, 15])
def test_vectors_and_products_are_exact_in_any_parts_SR16(bits: int, width: type) -> None:
    """Stored integers of any width, in parts of any size, give what the row functions mean."""
    vector = Vector((col("x"), col("n"), col("x") * 2), bits)
    asked = [vector, outer(vector), lookup(col("g"), [[1, -2], [3.5, 4], [5, 2**22]])]
    for by in ((), (col("g"),)):
        tally = random_tallies.question(asked, SCHEMA, by=by)
        rows = batch(count("rows folded", short=60, long=1_000), seed=bits, width=width)
        want = plain(tally, rows)
        for size in (1, 7, 2**16):
            assert fold(tally, rows, part_rows=size).tolist() == want


def test_parts_change_no_bit_T4() -> None:
    """One part or a thousand: the same integers."""
    tally = random_tallies.question([outer([col("x"), col("n")]), col("n"), lit(1)], SCHEMA, by=(col("g"),))
    rows = batch(5_000)
    want = fold(tally, rows).tolist()
    for parts in (1, 7, 1_000):
        assert fold(tally, rows, part_rows=5_000 // parts + 1).tolist() == want


def test_float_sums_would_not_agree_T4() -> None:
    """Control: the same terms as doubles, with their fractions, give other bits in another order (trap 8)."""
    rng = np.random.default_rng(4)
    terms = rng.random(5_000) * 1e3
    assert len({float(np.cumsum(rng.permutation(terms))[-1]) for _ in range(20)}) > 1


def test_totals_beyond_64_bits_saturate_and_never_wrap_T5() -> None:
    """Terms of 2^53 added past 2^62, and past 2^63, end at the clamp; below it they are exact."""
    block = Block(col("big"), Fraction(1), (-(2**53),), (2**53,), vector=False)
    tally = Tally(Table(), (block,), None, (), 1)
    for rows, want in ((3, 3 * 2**53), (511, 511 * 2**53), (512, 2**62), (2_000, 2**62)):
        values = np.full(rows, 2**53, dtype=np.int64)
        assert fold(tally, RowBatch(SCHEMA, rows, {"big": (values, None)})).tolist() == [[want]]
        assert fold(tally, RowBatch(SCHEMA, rows, {"big": (-values, None)})).tolist() == [[-want]]


def test_a_term_outside_the_exact_integers_is_refused() -> None:
    """No sum is attempted where a single term could round."""
    block = Block(col("big"), Fraction(1), (-EXACT - 1,), (EXACT + 1,), vector=False)
    assert reach(block) == EXACT + 1
    with pytest.raises(OverflowError):
        fold(Tally(Table(), (block,), None, (), 1), batch(0))


def test_no_rows_are_zero() -> None:
    """Of no rows every sum is zero."""
    tally = random_tallies.question([col("x"), outer([col("x")])], SCHEMA, by=(col("g"),))
    assert fold(tally, batch(0)).tolist() == [[0, 0]] * 3


def test_many_empty_cells_cost_no_rows() -> None:
    """With far more cells than rows, sums land in their own cells and nowhere else."""
    tally = random_tallies.question([lit(1), outer([col("n")])], SCHEMA, by=(each(col("n")),))
    assert isinstance(tally.by[0], Key)
    found = fold(tally, RowBatch(SCHEMA, 3, {"n": (np.array([-5, 7, 7]), None)}))
    want = {0: 1, 12: 2}
    assert {int(i): int(found[i, 0]) for i in np.flatnonzero(found[:, 0])} == want


def meant(tally: Tally, rows: RowBatch) -> list[list[int]]:
    """The sums by the row functions' own cells, row after row in Python integers."""
    totals = [[0] * tally.width for _ in range(tally.cells)]
    with np.errstate(all="ignore"):
        keys = [evaluate(key.fn, rows) for key in tally.by]
        where = None if tally.where is None else evaluate(tally.where, rows)
        blocks = []
        for block in tally.blocks:
            cells = evaluate(block.fn, rows)
            terms = (
                cells.values if block.vector else to_grid(cells.values, block.step, *block.low, *block.high)[:, None]
            )
            blocks.append((terms.tolist(), cells.missing))
    for i in range(rows.size):
        if where is not None and (not where.values[i] or (where.missing is not None and where.missing[i])):
            continue
        if any(key.missing is not None and key.missing[i] for key in keys):
            continue
        cell = 0
        for key, cells in zip(tally.by, keys, strict=True):
            cell = cell * len(key.labels) + int(cells.values[i])
        start = 0
        for terms, missing in blocks:
            for j, term in enumerate(terms[i]):
                totals[cell][start + j] += 0 if missing is not None and missing[i] else int(term)
            start += len(terms[i])
    return totals


def learned(centres: int) -> list[Tally]:
    """What learners ask: nearest-centre sums, gradients, signed misclassified rows, levels of a tree, X'X."""
    rng = np.random.default_rng(centres)
    ball = within_ball(vector(["x", (col("n") - 35_000) / 350], bits=9), 60.0)
    near = nearest(ball, rng.uniform(-100, 100, (centres, 2)).tolist())
    margin = bins(dot(ball, [0.1, -0.07]).clip(-9, 9), np.linspace(-9, 9, 33).tolist())
    slope = lookup(margin, np.linspace(0, 1, 32).tolist()) - (col("g") == "b")
    sign = lookup("g", [-1, 0, 1])
    leaf = route(["g", each(col("x") > 0)], [[0, 1, -1, None], [1, -2, -3]])
    return [
        random_tallies.question([lit(1), ball, lit(-0.3)], SCHEMA, by=(near,)),
        random_tallies.question([scaled(ball, slope), ball], SCHEMA),
        random_tallies.question([scaled(ball, slope), lit(1)], SCHEMA, where=col("x") > 3, by=(near,)),
        random_tallies.question(
            [scaled(vector(["x", "n"]), sign), lit(1)], SCHEMA, where=dot(["x", "n"], [1, -1]) * sign <= 0
        ),
        random_tallies.question([lit(1), vector(["x", "n"])], SCHEMA, by=(leaf, col("g"))),
        random_tallies.question([ball.is_missing(), outer(ball)], SCHEMA, where=~ball.is_missing()),
        random_tallies.question([outer(ball), col("x")], SCHEMA, by=(leaf,)),
    ]


@pytest.mark.parametrize("centres", [1, 2, 16, 150])
def test_what_learners_ask_is_exact_in_any_parts_SR16(centres: int) -> None:
    """Few cells and many, weights, balls, conditions, missing cells: the sums the row functions mean."""
    rows = batch(count("rows learned from", short=400, long=4_000), seed=centres)
    for tally in learned(centres):
        want = meant(tally, rows.part(0, rows.size))
        for size in (7, 150, rows.size):
            assert fold(tally, rows, part_rows=size).tolist() == want
        sent = wire.decode(wire.encode(tally))  # where a vector is written twice it is two objects
        assert fold(sent, rows).tolist() == want


def test_the_meaning_notices_a_row_in_the_wrong_cell() -> None:
    """Control: one row's coordinate moved by one unit is another sum."""
    tally = learned(2)[0]
    whole = batch(300)
    want = meant(tally, whole.part(0, 300))
    values, missing = whole.stored("n")
    values = values.copy()
    values[int(np.flatnonzero(~missing & ~whole.stored("x")[1])[0])] -= 20_000
    moved = RowBatch(SCHEMA, 300, {name: whole.stored(name) for name in SCHEMA.names} | {"n": (values, missing)})
    assert fold(tally, moved).tolist() != want
    assert fold(tally, whole).tolist() == want
