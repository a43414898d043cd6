"""Quantiles from a tree of noisy counts: exact without noise, and intervals that hold the quantile with it."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.answers import wire
from sulq.answers.readings.noise_sums import added
from sulq.answers.readings.quantiles import Bed, Picked, Quantile, Quantiles, bed, branching, consistent, nodes
from sulq.answers.released import Noise, Released
from sulq.language.law import FlipLaw, GaussianLaw, LaplaceLaw, Law
from tests.answers.readings.test_estimators import covers
from tests.counts import count
from tests.stub import noise

RUNS = count("coverage of intervals of quantiles", short=2_000, long=20_000)
ONE = Fraction(1)


def tree(values: np.ndarray, bins: Bed, branch: int, sizes: tuple[int, ...]) -> np.ndarray:
    """The exact counts of all levels, the coarsest first."""
    places = ((values - float(bins.start)) // float(bins.width)).astype(int)
    leaves = np.bincount(places, minlength=bins.bins)
    spans = [branch ** (len(sizes) - 1 - level) for level in range(len(sizes))]
    return np.concatenate([np.add.reduceat(leaves, np.arange(0, bins.bins, span)) for span in spans]).astype(np.int64)


def reading(
    values: np.ndarray, ends: tuple[int, int], how: str, q: Fraction, most: int = 2**17
) -> tuple[Quantile, np.ndarray]:
    bins = bed(Fraction(ends[0]), Fraction(ends[1]), ONE, most)
    levels, branch = branching(bins.bins, pure=True)
    sizes = nodes(bins.bins, levels, branch)
    return Quantile(bins, branch, sizes, how, q), tree(values, bins, branch, sizes)


def expected(values: np.ndarray, how: str, q: Fraction) -> float:
    if how in ("min", "max"):
        return float(values.min() if how == "min" else values.max())
    return float(np.quantile(values, float(q), method="inverted_cdf" if how == "disc" else "linear"))


ASKED = [
    ("disc", Fraction(1, 4)),
    ("disc", Fraction(1, 2)),
    ("disc", ONE),
    ("cont", Fraction(0)),
    ("cont", Fraction(1, 2)),
    ("cont", Fraction(9, 10)),
    ("min", Fraction(0)),
    ("max", ONE),
]


@given(
    st.lists(st.integers(-30, 90), min_size=1, max_size=40),
    st.sampled_from(ASKED),
    st.sampled_from([1, 2, 3, 50, 300]),
)
def test_without_noise_a_quantile_is_that_of_the_values(values, asked, most):
    """Exact where a bin is one value, and within one bin where it is more."""
    how, q = asked
    array = np.array(values)
    quantile, counts = reading(array, (-30, 90), how, q, most)
    law = LaplaceLaw(Fraction(3))
    released = Released(counts[None], tuple(Noise(law, ONE, size) for size in quantile.sizes))
    found = quantile.value(released)[0, 0]
    wide = float(quantile.bed.width) if quantile.bed.width > 1 else 1e-9
    assert abs(found - expected(array, how, q)) <= wide
    low, high = (end[0, 0] for end in quantile.interval(released, 0.05))
    assert -30 <= low <= found <= high <= 90


def skewed(size: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.where(rng.random(size) < 0.6, 0, rng.geometric(0.02, size).clip(0, 300))


@pytest.mark.parametrize("law", [LaplaceLaw(Fraction(2)), LaplaceLaw(Fraction(60)), GaussianLaw(Fraction(5))], ids=str)
@pytest.mark.parametrize("asked", [("disc", Fraction(3, 4)), *ASKED[5:]])
def test_the_interval_of_a_quantile_holds_it_T28(law, asked):
    """In runs of noise over the same table the interval covers the table's quantile at its level (T28)."""
    how, q = asked
    for size, spread in ((40, 0), (4000, 50)):
        values = skewed(size) + spread
        quantile, counts = reading(values, (0, 400), how, q)
        released = drawn(law, counts, quantile, np.random.default_rng(17))
        low, high = quantile.interval(released, 0.1)
        truth = expected(values, how, q)
        assert covers(int(((truth < low - 1e-9) | (truth > high + 1e-9)).sum()), RUNS, 0.1)


def drawn(law: Law, counts: np.ndarray, quantile: Quantile, rng: np.random.Generator) -> Released:
    units = counts[None] + noise(law, rng, (RUNS, len(counts)))
    return Released(units, tuple(Noise(law, ONE, size) for size in quantile.sizes))


@pytest.mark.parametrize("law", [LaplaceLaw(Fraction(60)), GaussianLaw(Fraction(60))], ids=str)
def test_a_third_of_the_interval_of_a_quantile_does_not_hold_it_T28(law):
    """Control: the same runs find an interval of a third of the width, around the contrast's own zero, out."""
    values = np.arange(40_000) // 100
    quantile, counts = reading(values, (0, 400), "disc", Fraction(3, 4))
    released = drawn(law, counts, quantile, np.random.default_rng(18))
    low, high = quantile.interval(released, 0.1)
    truth = expected(values, "disc", Fraction(3, 4))
    assert covers(int(((truth < low) | (truth > high)).sum()), RUNS, 0.1)
    middle = (low + high) / 2
    low, high = middle + (low - middle) / 3, middle + (high - middle) / 3
    assert not covers(int(((truth < low) | (truth > high)).sum()), RUNS, 0.1)


def test_the_interval_of_groups_added_up_holds_their_quantile_T28():
    """Trees of groups that were added after release have the noise of the sum, and still cover."""
    values = skewed(900)
    quantile, counts = reading(values, (0, 400), "disc", Fraction(7, 10))
    law = LaplaceLaw(Fraction(5))
    rng = np.random.default_rng(19)
    units = counts[None] + sum(noise(law, rng, (RUNS, len(counts))) for _ in range(4))
    released = Released(units, tuple(Noise(added(law, 4), ONE, size) for size in quantile.sizes))
    low, high = quantile.interval(released, 0.1)
    truth = expected(values, "disc", Fraction(7, 10))
    assert covers(int(((truth < low) | (truth > high)).sum()), RUNS, 0.1)


def test_the_fitted_leaves_are_the_least_squares_ones():
    """The two passes give the weighted least squares estimate, also of a tree with missing branches."""
    bins, branch = 11, 3
    sizes = nodes(bins, 3, branch)
    rows = []
    for level, size in enumerate(sizes):
        span = branch ** (2 - level)
        rows += [[float(i // span == node) for i in range(bins)] for node in range(size)]
    design = np.array(rows)
    seen = np.random.default_rng(4).normal(0, 10, (5, len(rows)))
    best = np.linalg.lstsq(design, seen.T, rcond=None)[0].T
    starts = np.cumsum((0, *sizes))
    found = consistent([seen[:, a:b] for a, b in itertools.pairwise(starts)], branch)
    assert np.allclose(found, best)


def test_bins_cover_the_bounds():
    """One bin a value where they suffice; else equal bins of a power of two of them; moments and numbers alike."""
    assert bed(Fraction(3), Fraction(9), ONE, 100) == Bed(Fraction(3), ONE, Fraction(0), Fraction(9), 7)
    coarse = bed(Fraction(0), Fraction(1000), ONE, 100)
    assert (coarse.bins, coarse.width, coarse.inner) == (63, 16, 15)
    free = bed(Fraction(0), Fraction(1), None, 64)
    assert free.bins <= 64
    assert free.width == free.inner
    assert free.end == 1
    single = bed(Fraction(5), Fraction(5), ONE, 10)
    assert (single.bins, single.start) == (1, 5)


@pytest.mark.parametrize("bins", [1, 2, 7, 121, 5000, 100_000])
@pytest.mark.parametrize("pure", [True, False])
def test_the_tree_holds_all_bins(bins, pure):
    """The chosen tree has room for every bin, and its last level is the bins."""
    levels, branch = branching(bins, pure=pure)
    assert branch**levels >= bins
    sizes = nodes(bins, levels, branch)
    assert sizes[-1] == bins
    assert len(sizes) == levels


@given(st.lists(st.integers(0, 60), min_size=1, max_size=30), st.sampled_from(["disc", "cont"]), st.integers(1, 9))
def test_a_chosen_bin_is_the_value_and_the_tree_its_interval(values, how, tenths):
    """Without noise a chosen bin gives the table's quantile; a bin chosen elsewhere is shown, inside the interval."""
    array, q = np.array(values), Fraction(tenths, 10)
    quantile, counts = reading(array, (0, 60), how, q)
    truth = expected(array, how, q)
    right = int(np.quantile(array, float(q), method="inverted_cdf" if how == "disc" else "lower"))
    noises = (*(Noise(LaplaceLaw(Fraction(2)), ONE, size) for size in quantile.sizes), Noise(FlipLaw(ONE, 61), ONE, 1))
    picked = Picked(quantile)
    for chosen in (right, 60, 0):
        released = Released(np.append(counts, chosen)[None].astype(np.int64), noises)
        found = picked.value(released)[0, 0]
        assert found in (pytest.approx(truth), float(chosen))
        if chosen == right:
            assert found == pytest.approx(truth)
        low, high = (end[0, 0] for end in picked.interval(released, 0.05))
        assert low <= min(found, truth)
        assert max(found, truth) <= high
    assert wire.decode(wire.encode(picked)) == picked


def test_several_quantiles_cross_the_wire():
    """Several quantiles of one tree are columns side by side, and a reading reads back as itself."""
    values = skewed(300)
    quantile, counts = reading(values, (0, 400), "disc", Fraction(1, 2))
    both = Quantiles((quantile, Quantile(quantile.bed, quantile.branch, quantile.sizes, "max", ONE)))
    released = Released(counts[None], tuple(Noise(LaplaceLaw(ONE), ONE, size) for size in quantile.sizes))
    assert both.value(released).tolist() == [[float(np.median(values)), float(values.max())]]
    low, high = both.interval(released, 0.05)
    assert low.shape == high.shape == (1, 2)
    assert wire.decode(wire.encode(both)) == both
