"""Vectors added up by cell are the same integers with scipy and without, and what the row functions mean (SR16)."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from sulq.language.rowfn import RowFn, Vector, col, each, lit, nearest, scaled, within_ball
from sulq.sources.folds import by_cell
from sulq.sources.folds.fold import fold
from sulq.sources.folds.keys import Chosen
from tests import random_tallies
from tests.sources.folds.test_folds import SCHEMA, batches, meant

POINTS = Vector((col("x"), col("n"), col("x") * 2), 11)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("where", [None, col("x") > -20, col("x") > 99.5])  # the last leaves batches without a row
def test_SR16_both_ways_give_the_sums_that_are_meant(
    workers: int, where: RowFn | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that miss their key, weights, balls, and far more cells than rows."""
    (whole,) = batches(300, 0, seed=5)
    ball = within_ball(POINTS, 5e4)
    near = nearest(ball, [[0, 0, 0], [9, 4e4, 3], [-50, 9e3, 9]])
    asked = ((POINTS, col("g")), (ball, near), (scaled(POINTS, col("x") / 100), col("g")), (POINTS, each(col("n"))))
    for fn, key in asked:
        tally = random_tallies.question([lit(1), fn], SCHEMA, where=where, by=(key,))
        want = meant(tally, whole.part(0, whole.size))
        assert np.array(want)[:, 1:].any()
        for installed in (True, False):
            monkeypatch.setattr(by_cell, "installed", lambda there=installed: there)
            cut = [whole.part(a, min(a + 110, whole.size)) for a in range(0, whole.size, 110)]
            assert fold(tally, SCHEMA, cut, workers=workers).tolist() == want


def test_rows_that_do_not_count_add_nothing() -> None:
    """Only chosen rows are added, each to its cell, times its weight."""
    given, adder = np.arange(8.0).reshape(4, 2), by_cell.Adder()
    chosen = Chosen(np.array([1, 3]), np.array([2, 0]), None, 3)
    every = Chosen(None, np.array([0, 0, 1, 2]), None, 3)
    for _ in range(2):  # what one batch leaves behind is nothing to the next
        assert adder.sums(chosen, given, None).tolist() == [[6, 7], [0, 0], [2, 3]]
        assert adder.sums(chosen, given, np.array([9.0, 2.0, 9.0, -1.0])).tolist() == [[-6, -7], [0, 0], [4, 6]]
        assert adder.sums(every, given, None).tolist() == [[2, 4], [4, 5], [6, 7]]
        assert adder.sums(every, given[:4], np.array([0.0, 1.0, 1.0, 2.0])).tolist() == [[2, 3], [4, 5], [12, 14]]
        assert adder.sums(Chosen(None, np.array([1, 0]), None, 2), given[:2], None).tolist() == [[2, 3], [0, 1]]


def test_T30_no_row_and_no_cell_add_nothing() -> None:
    """Where no row of a batch counts there may be no cell either: nothing is written past the end of no sums."""
    none = np.empty(0, dtype=np.int64)
    for cells in (0, 3):
        found = by_cell.Adder().sums(Chosen(none, none, none, cells), np.arange(8.0).reshape(4, 2), None)
        assert found.tolist() == [[0, 0]] * cells


def test_a_scipy_that_does_not_load_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it raises, sums go on without it."""
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    by_cell.installed.cache_clear()
    try:
        assert not by_cell.installed()
    finally:
        monkeypatch.undo()
        by_cell.installed.cache_clear()
    assert by_cell.installed()
