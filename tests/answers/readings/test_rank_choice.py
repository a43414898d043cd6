"""Quantiles and extremes by chosen bins: their intervals hold, by the exact law of every choice and by draws of it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.epsilon.quantiles import pmf
from sulq.answers.readings.quantiles import Bed
from sulq.answers.readings.rank_choice import (
    WHOLE_RANGE,
    ChosenExtreme,
    ChosenQuantile,
    CountedFirst,
    RankForecast,
    SeveralQuantiles,
    gap_of,
    notes,
    rank_of,
)
from sulq.answers.released import Noise, Released
from sulq.kernel.mechanisms import release
from sulq.kernel.private import Private
from sulq.kernel.scores import scores
from sulq.language.law import ExponentialLaw, FlipLaw, LaplaceLaw, Law
from tests.answers.readings.test_estimators import covers
from tests.counts import count

ONE = Fraction(1)
BINS = 300
BED = Bed(Fraction(0), ONE, Fraction(0), Fraction(BINS - 1), BINS)
RUNS = count("coverage of intervals of chosen quantiles", short=1_000, long=20_000)
rng = np.random.default_rng(23)
TABLES = {
    "skewed": np.clip(rng.lognormal(3, 1, 2_000), 0, BINS - 1).astype(int),
    "tied": rng.choice([3, 40, 41, 250], 900, p=(0.3, 0.3, 0.3, 0.1)),
    "half here, half there": np.repeat([2, BINS - 3], 500),
    "constant": np.full(500, 17),
    "at the ends": np.repeat([0, BINS - 1], (5, 60)),
    "one row": np.array([120]),
    "tiny": np.array([0, 5, 299]),
    "few": rng.integers(0, BINS, 25),
}
ASKED = [(how, Fraction(q)) for how in ("disc", "cont") for q in ("1/2", "9/10", "99/100")]
KINDS = (FlipLaw, ExponentialLaw)


def law_of(kind: type[Law], per_row: int, rows: float = 0.5) -> Law:
    """A choice whose scale is so many rows."""
    return kind(Fraction(per_row) * Fraction(rows), BINS)


def scored(values: np.ndarray, rank: object) -> np.ndarray:
    counts = np.bincount(values, minlength=BINS).astype(np.int64)
    return scores(rank, counts.reshape(1, -1, 1))[0]


def truth(values: np.ndarray, how: str, q: Fraction) -> float:
    if how in ("min", "max"):
        return float(values.min() if how == "min" else values.max())
    return float(np.quantile(values, float(q), method="inverted_cdf" if how == "disc" else "linear"))


def missed(values: np.ndarray, how: str, q: Fraction, law: Law, gap: int) -> float:
    """The probability that an end is on the wrong side, each end's by its exact law."""
    exact, flip = truth(values, how, q), isinstance(law, FlipLaw)
    low, high = (pmf(scored(values, rank_of(how, q, sign * gap)), float(law.scale), flip=flip) for sign in (-1, 1))
    place = np.arange(BINS)
    return float(low[place > exact].sum() + high[place < exact].sum())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("how", "q"), ASKED, ids=str)
def test_chosen_ends_hold_the_quantile_at_99_percent_T28(kind, how, q):
    """By the exact law, whatever the rows are: skewed, tied, constant or hardly any (T28).

    Control: half the shift does not hold a table of two heaps.
    """
    law = law_of(kind, rank_of(how, q).denominator)
    gap = gap_of(law, 1, 2)
    found = {name: missed(values, how, q, law, gap) for name, values in TABLES.items()}
    assert max(found.values()) <= 0.01 + 1e-9
    heaps = np.repeat([2, BINS - 3], [round(1000 * q), 1000 - round(1000 * q)])
    assert missed(heaps, how, q, law, gap) <= 0.01 + 1e-9
    assert missed(heaps, how, q, law, gap // 2) > 0.05


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["min", "max"])
def test_an_inner_bin_is_not_beyond_the_extreme_T28(kind, how):
    """By the exact law: the bin inside is beyond all rows with probability 1% at most. Control: half the shift."""
    law, far = law_of(kind, 2), np.full(200, 150)

    def beyond(values: np.ndarray, gap: int) -> float:
        chances = pmf(scored(values, rank_of(how, ONE, gap)), float(law.scale), flip=kind is FlipLaw)
        place, exact = np.arange(BINS), truth(values, how, ONE)
        return float(chances[place > exact if how == "max" else place < exact].sum())

    gap = gap_of(law, 1, 1)
    assert max(beyond(values, gap) for values in (*TABLES.values(), far)) <= 0.01 + 1e-9
    assert beyond(far, gap // 2) > 0.05


@pytest.mark.parametrize("how", ["disc", "cont"])
def test_a_quantile_next_to_an_extreme_is_not_beyond_all_rows(how: str) -> None:
    """Fractions that five digits round to 0 or 1 have their best bin at the first or last row.

    Control: 0 itself as PERCENTILE_DISC's has every bin before the rows.
    """
    values = np.full(500, 150)
    for q in (Fraction(1, 10**13), Fraction(1, 10**7), 1 - Fraction(1, 10**7), 1 - Fraction(1, 10**13)):
        found = scored(values, rank_of(how, q))
        assert np.flatnonzero(found == found.max()).tolist() == [150], q
    outside = scored(values, rank_of("disc", Fraction(0)))
    assert 0 in np.flatnonzero(outside == outside.max())


def drawn(values: np.ndarray, ranks: list[object], law: Law) -> Released:
    """RUNS releases by the kernel's own mechanism."""
    units = [release(law, Private(np.tile(scored(values, rank), (RUNS, 1)))) for rank in ranks]
    return Released(np.concatenate(units, axis=1), tuple(Noise(law, ONE, 1) for _ in ranks))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("how", "q"), [("disc", Fraction(9, 10)), ("cont", Fraction(1, 2)), ("max", ONE)], ids=str)
def test_the_interval_of_a_chosen_quantile_holds_it_T28(name, how, q):
    """In runs of the kernel's mechanism the interval covers the table's quantile at its level (T28)."""
    values, per_row = TABLES[name], rank_of(how, q).denominator
    law = law_of(FlipLaw, per_row)
    if how == "max":
        gap = gap_of(law, 1, 1)
        reading, ranks = ChosenExtreme(BED, True, gap), [rank_of(how, q), rank_of(how, q, gap)]
    else:
        gap = gap_of(law, 1, 2)
        reading = ChosenQuantile(BED, per_row, gap)
        ranks = [rank_of(how, q), rank_of(how, q, -gap), rank_of(how, q, gap)]
    released = drawn(values, ranks, law)
    low, high = reading.interval(released, 0.01)
    exact, value = truth(values, how, q), reading.value(released)
    assert covers(int(((exact < low - 1e-9) | (exact > high + 1e-9)).sum()), RUNS, 0.01)
    assert (low <= value).all()
    assert (value <= high).all()


def test_half_the_shift_does_not_hold_it_T28():
    """Control: the same runs find an interval of half the shift out."""
    values, law = TABLES["half here, half there"], law_of(FlipLaw, 4)
    gap = gap_of(law, 1, 2) // 2
    half = Fraction(1, 2)
    released = drawn(values, [rank_of("disc", half), rank_of("disc", half, -gap), rank_of("disc", half, gap)], law)
    low, high = BED.low(released.units[:, 1]), BED.high(released.units[:, 2])
    assert not covers(int(((low > 2) | (high < 2)).sum()), RUNS, 0.01)


def test_of_an_empty_table_the_ends_are_those_of_the_range():
    """No row, no rank: the outer bins are chosen for the ends, and the interval says that nothing is known."""
    law, half = law_of(FlipLaw, 4), Fraction(1, 2)
    gap = gap_of(law, 1, 2)
    empty = np.array([], dtype=int)
    released = drawn(empty, [rank_of("disc", half), rank_of("disc", half, -gap), rank_of("disc", half, gap)], law)
    low, high = ChosenQuantile(BED, 4, gap).interval(released, 0.01)
    assert covers(int(((low > 0) | (high < BINS - 1)).sum()), RUNS, 0.01)


def test_an_interval_that_was_not_bought_is_the_whole_range():
    """At a level past the ends' own, and without ends, from the first bin to the last; a note tells the rank."""
    law = law_of(FlipLaw, 4)
    gap = gap_of(law, 1, 2)
    units = np.array([[5, 3, 9]])
    released = Released(units, tuple(Noise(law, ONE, 1) for _ in range(3)))
    reading = ChosenQuantile(BED, 4, gap)
    assert [end.item() for end in reading.interval(released, 0.05)] == [3, 9]
    assert [end.item() for end in reading.interval(released, 0.001)] == [0, BINS - 1]
    alone = Released(units[:, :1], released.noise[:1])
    assert [end.item() for end in ChosenQuantile(BED, 4).interval(alone, 0.5)] == [0, BINS - 1]
    (told,) = notes([(CountedFirst(ChosenQuantile(BED, 4)), Released(units[:, :2], released.noise[:2]))])
    assert f"{math.ceil(law.accuracy(0.05) / 4)} rows" in told
    assert notes([(reading, released)]) == ()
    assert notes([(ChosenQuantile(BED, 4, 1), released)]) == (WHOLE_RANGE,)  # a shift that does not hold at 95%
    outer = Released(np.array([[5, 3, 9], [5, 0, BINS - 1]]), released.noise)
    assert notes([(reading, outer)]) == (WHOLE_RANGE,)
    other = Released(released.units, tuple(Noise(LaplaceLaw(ONE), ONE, 1) for _ in range(3)))
    assert [end.item() for end in reading.interval(other, 0.5)] == [0, BINS - 1]  # no choice's law: nothing is said


def test_a_value_lies_within_its_ends():
    """A bin chosen outside of ends in order is moved to the nearer one; ends out of order move nothing."""
    law = law_of(FlipLaw, 4)
    reading = ChosenQuantile(BED, 4, gap_of(law, 1, 2))
    released = Released(np.array([[50, 3, 9], [1, 3, 9], [50, 9, 3]]), tuple(Noise(law, ONE, 1) for _ in range(3)))
    assert reading.value(released).ravel().tolist() == [9, 3, 50]
    low, high = reading.interval(released, 0.05)
    assert low.ravel().tolist() == [3, 3, 3]
    assert high.ravel().tolist() == [9, 9, 50]


def test_an_extreme_far_beyond_what_is_inside_is_not_believed():
    """An empty range draws a maximum into it: past TAIL times the inner bin's own distance that bin is told."""
    law = law_of(FlipLaw, 2)
    gap = gap_of(law, 1, 1)
    largest, smallest = ChosenExtreme(BED, True, gap), ChosenExtreme(BED, False, gap)
    units = np.array([[200, 100], [299, 5], [299, 0], [90, 100]])
    released = Released(units, (Noise(law, ONE, 1),) * 2)
    assert largest.value(released).ravel().tolist() == [200, 5, 299, 100]
    low, high = largest.interval(released, 0.05)
    assert low.ravel().tolist() == [100, 5, 0, 100]
    assert (high == BINS - 1).all()
    turned = Released(BINS - 1 - units, released.noise)
    assert smallest.value(turned).ravel().tolist() == [99, 294, 0, 199]
    sharp = Released(units[:1], (Noise(FlipLaw(Fraction(1, 100), BINS), ONE, 1),) * 2)
    low, high = ChosenExtreme(BED, True, 1).interval(sharp, 0.05)
    assert (low.item(), high.item()) == (100, 200)  # the inner bin holds it, and the value is told


def test_several_are_columns_of_their_own():
    """Each is read from its own blocks; the least count is that of any."""
    law, half = law_of(FlipLaw, 4), LaplaceLaw(ONE)
    wanted = (CountedFirst(ChosenQuantile(BED, 4)), ChosenExtreme(BED, True))
    noise = (Noise(half, ONE, 1), Noise(law, ONE, 1), Noise(law, ONE, 1))
    released = Released(np.array([[90, 7, 250]]), noise)
    both = SeveralQuantiles(wanted, (2, 1))
    assert both.value(released).tolist() == [[7, 250]]
    assert (
        both.least(released, 0.05).tolist()
        == wanted[0].least(Released(np.array([[90, 7]]), noise[:2]), 0.05).clip(max=1).tolist()
    )
    assert [end.tolist() for end in both.bounds()] == [[0, 0], [BINS - 1, BINS - 1]]
    assert both.interval(released, 0.05)[1].tolist() == [[BINS - 1, BINS - 1]]
    assert notes([(both, released)])


def test_what_is_foreseen_follows_from_public_numbers():
    """Few quantiles of many bins are chosen, many are read from the tree; the shares are all of the spend."""
    for pure, interval, number in itertools.product((True, False), (True, False), (1, 2, 3, 40)):
        forecast = RankForecast(*((4, 14) if pure else (5, 8)), 31_251, pure=pure)
        found = forecast.layout([(i + 1) / (number + 1) for i in range(number)], interval=interval)
        assert number * (found.choice + 2 * found.end) + found.tree == 1
        assert bool(found.choice) == (number < 40)
        assert not interval or number > 3 or found.choice * number >= (Fraction(3, 4) if pure else Fraction(1, 2))


@pytest.mark.parametrize(("kind", "pure"), [(FlipLaw, True), (ExponentialLaw, False)])
@pytest.mark.parametrize("groups", [1, 10, 300])
def test_an_end_is_foreseen_as_far_away_as_it_is_bought(kind, pure, groups):
    """At 99% for all groups at once, by the law of such a choice; so where groups are many a tree is taken instead."""
    forecast = RankForecast(*((4, 14) if pure else (5, 8)), 31_251, pure=pure, groups=groups)
    law = kind(Fraction(4) * (1 if pure else Fraction(1, 10)), 31_251)
    scale = float(law.scale) / 4 / ((2.0 if pure else 0.7072) * 0.5)  # in rows, of one at a spend of 1
    assert forecast.end(0.5, 1.0) * scale * 4 == pytest.approx(gap_of(law, groups, 2), rel=0.15)
    few = RankForecast(2, 19, 327, pure=True, groups=groups).layout([0.5], interval=True)
    assert few.choice
    assert few.tree
    assert bool(RankForecast(3, 15, 3_276, pure=True, groups=groups).layout([0.5], interval=True).tree) == (groups > 1)


@pytest.mark.parametrize("q", [2 / 3, 1 / 3, 0.123456, 0.9999999, 1e-7, *rng.random(5).tolist()])
@pytest.mark.parametrize("how", ["disc", "cont"])
def test_a_rank_of_many_digits_has_ends_in_its_own_units(how, q):
    """The centre and both ends have one denominator, and the ends' fractions are no nearer than the one asked."""
    exact = Fraction(repr(q))
    low, centre, high = (rank_of(how, exact, gap) for gap in (-7, 0, 7))
    assert low.denominator == centre.denominator == high.denominator
    at = [Fraction(rank.numerator, rank.denominator) for rank in (low, centre, high)]
    assert at[0] - Fraction(1, 10**12) <= exact <= at[2] + Fraction(1, 10**12)
    assert at[2] - at[0] <= Fraction(1, 10**5)
    simple = {2 / 3: Fraction(2, 3), 1 / 3: Fraction(1, 3)}.get(q)
    assert simple is None or centre == rank_of(how, simple)
