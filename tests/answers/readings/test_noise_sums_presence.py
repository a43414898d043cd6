"""Whether a group has rows, judged from released numbers alone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sulq.answers.readings.estimators import CentredMean, Covariance, Mean, Plain, Spread
from sulq.answers.readings.joint import Correlation, PairCovariance, PublicNumber, SpreadMean
from sulq.answers.readings.noise_sums import LEVEL, Counted, added, beta_of, unknown
from sulq.answers.readings.quantiles import Bed, Picked, Quantile, Quantiles
from sulq.answers.readings.rank_choice import ChosenExtreme, ChosenQuantile, CountedFirst
from sulq.answers.released import Noise, Released
from sulq.language.law import GaussianLaw, LaplaceLaw
from tests.counts import count

RUNS = count("groups without rows taken for groups", short=600, long=100_000)
ZERO, ONE, TEN = Fraction(0), Fraction(1), Fraction(10)
TREE = Quantile(Bed(ZERO, ONE, ZERO, Fraction(8), 9), 3, (3, 9), "cont", Fraction(1, 2))
READINGS = {  # a reading, its columns, those that count, and what a row adds to them
    "mean": (Mean(ZERO, TEN), 2, 2, 10),
    "centred mean": (CentredMean(ZERO, TEN, Fraction(5)), 2, 1, 1),
    "spread": (Spread(TEN), 3, 3, 100),
    "mean beside a spread": (SpreadMean(ZERO, TEN), 3, 3, 100),
    "covariances": (Covariance((ONE, ONE)), 6, 1, 1),
    "covariance": (PairCovariance((ONE, ONE)), 6, 1, 1),
    "correlation": (Correlation((ONE, ONE)), 6, 1, 1),
    "constant": (PublicNumber(ONE), 1, 1, 1),
    "quantile": (TREE, 12, 3, 1),
    "chosen quantile": (Picked(TREE), 13, 3, 1),
    "quantiles": (Quantiles((TREE, TREE)), 12, 3, 1),
    "counted choice": (CountedFirst(ChosenQuantile(TREE.bed, 4, 9)), 4, 1, 1),
    "counted extreme": (CountedFirst(ChosenExtreme(TREE.bed, True, 9)), 3, 1, 1),
    "counted tree": (CountedFirst(TREE), 13, 1, 1),
}


def told(units: np.ndarray, scale: int, *, exact: bool = False) -> Released:
    return Released(units, (Noise(LaplaceLaw(Fraction(scale)), ONE, 1),) * units.shape[1], None, exact)


@pytest.mark.parametrize("name", READINGS)
@settings(max_examples=20)
@given(data=st.data(), scale=st.sampled_from((1, 7, 30)), groups=st.sampled_from((1, 6)))
def test_a_group_is_unknown_where_its_count_reaches_0_SR18_T28(name, data, scale, groups):
    """For every reading: unknown if and only if the released count's interval, at the fixed level, reaches 0 (T28)."""
    reading, width, counted, row = READINGS[name]
    units = np.array(data.draw(st.lists(st.lists(st.integers(-40, 200), min_size=width, max_size=width),
                                        min_size=groups, max_size=groups)))  # fmt: skip
    away = added(LaplaceLaw(Fraction(scale)), counted).accuracy((1 - LEVEL) / groups)
    reaches = units[:, :counted].sum(axis=1) - max(away, row / 2) <= 0
    assert isinstance(reading, Counted)
    assert unknown(reading, told(units, scale)).tolist() == reaches.tolist()
    low, high = reading.bounds()
    assert (low <= high).all()
    within = reading.interval(told(units, scale), 1e-6)
    assert (within[0] >= low - 1e-9).all()
    assert (within[1] <= high + 1e-9).all()


def test_counts_and_sums_are_never_unknown():
    """A sum of nothing is 0 and noise."""
    assert not isinstance(Plain(), Counted)
    assert not unknown(Plain(), told(np.zeros((3, 1), dtype=np.int64), 5)).any()


def test_groups_without_rows_are_seldom_taken_for_groups_SR18():
    """Over all empty groups of an answer at once: at most 5% of the answers have one that passes for a group.

    Control: judged one by one at that level, nearly all answers have.
    """
    rng, groups, scale = np.random.default_rng(18), 100, 40.0
    noise = np.rint(rng.laplace(0, scale, (RUNS, groups, 2))).astype(np.int64)
    reading = Mean(ZERO, ONE)
    wrong = sum(not unknown(reading, told(run, 40)).all() for run in noise)
    bar = binom.isf(1e-8, RUNS, 1 - LEVEL)
    assert wrong <= bar
    alone = sum((reading.least(told(run, 40), 1 - LEVEL) > 0).any() for run in noise[:200])
    assert alone > binom.isf(1e-8, 200, 1 - LEVEL)
    assert beta_of(groups) == (1 - LEVEL) / groups


def test_without_noise_a_group_has_rows_or_none():
    """What is exact has no interval, whatever law it would have had; Gaussian noise is judged alike."""
    units = np.array([[0, 0], [1, 0], [4, 6]])
    assert unknown(Mean(ZERO, ONE), told(units, 50, exact=True)).tolist() == [True, False, False]
    gaussian = Released(units, (Noise(GaussianLaw(Fraction(50)), ONE, 2),))
    assert unknown(Mean(ZERO, ONE), gaussian).all()
