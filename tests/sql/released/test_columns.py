"""Leaves: the right columns of the right answers, folded and added up, with the noise of what they became."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.answers.readings.estimators import Plain
from sulq.answers.released import Noise, Released
from sulq.language.law import GaussianLaw, LaplaceLaw
from sulq.sql.released.columns import AnswerSlice, StatColumn, coarser

LAW = LaplaceLaw(Fraction(2))
ONE = Fraction(1)
GRID = Released(np.arange(24, dtype=np.int64).reshape(6, 4), (Noise(LAW, ONE, 1), Noise(LAW, ONE, 3)))


def test_a_cut_takes_blocks_folds_cells_and_picks_columns():
    """Blocks by their place, several cells as one group's columns, and some of those."""
    units, noises = AnswerSlice(0, (1,)).columns(GRID)
    assert units[0].tolist() == [1, 2, 3]
    assert noises == [Noise(LAW, ONE, 3)]
    units, noises = AnswerSlice(0, (0,), fold=2).columns(GRID)
    assert units.tolist() == [[0, 4], [8, 12], [16, 20]]
    assert noises == [Noise(LAW, ONE, 2)]
    units, noises = AnswerSlice(0, (0, 1), fold=2, picked=(0, 5)).columns(GRID)
    assert units[0].tolist() == [0, 5]
    assert noises == [Noise(LAW, ONE, 1)] * 2


def test_coarser_groups_are_sums_with_the_noise_of_sums():
    """Keys that go are summed over, keys that stay may change order, and the noise says how many draws it is."""
    found = coarser(GRID, (2, 3), (0,))
    assert found.units[:, 0].tolist() == [0 + 4 + 8, 12 + 16 + 20]
    assert found.noise[0].law.variance() == 3 * LAW.variance()
    turned = coarser(GRID, (2, 3), (1, 0))
    assert turned.units[:, 0].tolist() == [0, 12, 4, 16, 8, 20]
    assert turned.noise == GRID.noise
    wide = Released(GRID.units, (Noise(GaussianLaw(Fraction(8)), ONE, 4),))
    assert isinstance(coarser(wide, (6,), ()).noise[0].law, GaussianLaw)


def test_the_rest_of_a_leaf_is_a_total_less_its_rows_SR14():
    """One row: the total's column minus the sum of the leaf's, with the noise of both."""
    noise = (Noise(GaussianLaw(Fraction(8)), ONE, 1),)
    shown, total = Released(GRID.units[:3, :1], noise, (("a", "b", "c"),)), Released(np.array([[50]]), noise)
    leaf = StatColumn((AnswerSlice(0, (0,)),), Plain())
    left = StatColumn((AnswerSlice(1, (0,)),), Plain(), less=leaf)
    assert left.values([shown, total]).tolist() == [50 - (0 + 4 + 8)]
    assert left.released([shown, total]).noise[0].law.variance() == pytest.approx(4 * 64)
    low, high = left.interval([shown, total], 0.05)
    assert high[0] - low[0] == pytest.approx(2 * 1.96 * 16, abs=2)


def test_a_leaf_is_worked_out_again_for_other_answers():
    """What a leaf keeps belongs to the answers it was worked out from, and to no others."""
    leaf = StatColumn((AnswerSlice(0, (0,)),), Plain())
    first, second = [GRID], [Released(GRID.units + 1, GRID.noise)]
    assert leaf.values(first).tolist() == [0, 4, 8, 12, 16, 20]
    assert leaf.values(second)[0] == 1
    low, high = leaf.interval(second, 0.05)
    assert low[0] < 1 < high[0]
    assert leaf.released(second) is leaf.released(second)
