"""Scores read off noisy sums: exact without noise, within their intervals as often as these say with it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from sulq.answers.released import Noise, Released
from sulq.language.law import GaussianLaw, LaplaceLaw
from sulq.learn.evaluation.readings import AreaUnderCurve, ExplainedShare, Part, PartOfCounts
from tests.answers.readings.test_sampling import drawn_from
from tests.counts import count
from tests.stub import noise

LAWS = [LaplaceLaw(Fraction(12)), GaussianLaw(Fraction(12))]
LEVEL = 0.95


def released(exact: np.ndarray, laws: list[tuple[object, int]], rng: np.random.Generator, claim: int = 1) -> Released:
    """Cells of exact counts with noise of each law; `claim`: by how much the noise is said to be smaller than it is."""
    columns, place = [], 0
    for law, width in laws:
        columns.append(exact[:, place : place + width] + noise(law, rng, (len(exact), width)))
        place += width
    kept = tuple(Noise(type(law)(law.scale / claim), Fraction(1), width) for law, width in laws)
    return Released(np.concatenate(columns, axis=1).astype(np.int64), kept)


def missed(reading: object, truth: float, told: Released) -> np.ndarray:
    """Which cells' intervals leave the truth out."""
    low, high = reading.interval(told, 1 - LEVEL)
    return (low[:, 0] > truth + 1e-9) | (high[:, 0] < truth - 1e-9)


def too_many(runs: int) -> int:
    """Misses of so many runs that a level of 95% passes once in ten million times."""
    return int(binom.isf(1e-7, runs, 1 - LEVEL))


@pytest.mark.parametrize("law", LAWS, ids=["laplace", "gaussian"])
@pytest.mark.parametrize(("rest", "y"), [(300, (0.2, 0.5)), (20, (0.5, 0.1)), (4000, (0.4, 0.3))])
def test_r2_lies_in_its_interval(law: object, rest: int, y: tuple[float, float]) -> None:
    """Of models that explain much, nothing, or less; a control that halves the noise it speaks of fails."""
    rng = drawn_from(f"R^2 {law} {rest} {y}")
    values = np.clip(rng.normal(*y, 3000), 0, 1)
    terms = [float((values**2).sum()), float((2 * values * (1 - values)).sum()), float(((1 - values) ** 2).sum())]
    unit = 2**6  # grid units of one squared width
    exact = np.rint(np.array([rest, *terms]) * unit)
    spread = (exact[1] * exact[3] - exact[2] ** 2 / 4) / exact[1:].sum()
    runs = count("intervals of R^2", short=2000, long=200_000)
    reading = ExplainedShare(float(np.sqrt(unit)))
    laws = [(type(law)(law.scale * 30), 1), (type(law)(law.scale * 30), 3)]
    told = released(np.tile(exact, (runs, 1)), laws, rng)
    truth = 1 - exact[0] / spread
    assert reading.value(Released(exact[None].astype(np.int64), told.noise)) == pytest.approx(truth)
    assert missed(reading, truth, told).sum() <= too_many(runs)
    assert missed(reading, truth, released(np.tile(exact, (runs, 1)), laws, rng, claim=4)).sum() > too_many(runs)


def test_r2_of_hardly_any_rows_claims_nothing() -> None:
    """Where noise could be all there is the interval reaches from minus infinity to 1, and the value is no more."""
    told = Released(
        np.array([[3, 1, 2, 1], [0, 0, 0, 0], [-5, -2, 0, -1]]), tuple(Noise(LAWS[0], Fraction(1), w) for w in (1, 3))
    )
    reading = ExplainedShare(1.0)
    low, high = reading.interval(told, 0.05)
    assert (low == -np.inf).all()
    assert (high == 1).all()
    assert (reading.value(told) <= 1).all()
    assert (reading.least(told, 0.05) <= 0).all()
    assert [end.tolist() for end in reading.bounds()] == [[-np.inf], [1.0]]


@pytest.mark.parametrize("law", LAWS, ids=["laplace", "gaussian"])
@pytest.mark.parametrize("counts", [(900, 100), (500, 500), (10, 2000)])
def test_a_part_lies_in_its_interval(law: object, counts: tuple[int, int]) -> None:
    """Of two sums with noise of their own; a control that halves the noise it speaks of fails."""
    rng = drawn_from(f"parts {law} {counts}")
    runs = count("intervals of parts", short=4000, long=400_000)
    exact = np.tile(np.array(counts, dtype=float), (runs, 1))
    truth = counts[0] / sum(counts)
    assert missed(Part(), truth, released(exact, [(law, 1), (law, 1)], rng)).sum() <= too_many(runs)
    assert missed(Part(), truth, released(exact, [(law, 1), (law, 1)], rng, claim=3)).sum() > too_many(runs)


@pytest.mark.parametrize("law", LAWS, ids=["laplace", "gaussian"])
def test_parts_of_a_matrix_lie_in_their_intervals(law: object) -> None:
    """Accuracy, a precision and a recall of three classes, in rare and in frequent classes; with a control."""
    rng = drawn_from(f"matrix parts {law}")
    exact = np.array([[700, 40, 9, 60, 300, 20, 5, 30, 90]], dtype=float)
    runs = count("intervals of matrix parts", short=60, long=20_000)
    cells = [((0, 4, 8), tuple(range(9))), ((8,), (2, 5, 8)), ((8,), (6, 7, 8)), ((0,), (0, 1, 2))]
    misses, control = 0, 0
    for _ in range(runs // 2):
        for above, below in cells:
            truth = exact[0, list(above)].sum() / exact[0, list(below)].sum()
            misses += missed(PartOfCounts(above, below), truth, released(exact, [(law, 9)], rng)).sum()
            control += missed(PartOfCounts(above, below), truth, released(exact, [(law, 9)], rng, claim=4)).sum()
    assert misses <= too_many(2 * runs)
    assert control > too_many(2 * runs)


def test_a_part_of_nothing_is_unknown() -> None:
    """A class that nobody has, or noise that hides it: a half, from 0 to 1, and `least` says that there may be none."""
    told = Released(np.array([[4, -7, 3, 2]]), (Noise(LAWS[0], Fraction(1), 4),))
    for above, below in (((0,), (0, 1)), ((), (0,)), ((), ())):
        reading = PartOfCounts(above, below)
        low, high = reading.interval(told, 0.05)
        assert (low[0, 0], high[0, 0]) == (0, 1)
        assert reading.least(told, 0.05)[0] <= 0
    assert Part().value(Released(np.array([[-4, 1]]), (Noise(LAWS[0], Fraction(1), 2),))).tolist() == [[0.5]]
    assert [end.tolist() for end in PartOfCounts((), ()).bounds()] == [[0.0], [1.0]]


@pytest.mark.parametrize("law", LAWS, ids=["laplace", "gaussian"])
@pytest.mark.parametrize(("positive", "apart", "grades"), [(4000, 1.0, 50), (300, 2.0, 50), (2000, 0.0, 12)])
def test_an_area_lies_in_its_interval(law: object, positive: int, apart: float, grades: int) -> None:
    """Of many rows, few, and of a score that tells nothing; a control that halves the noise it speaks of fails."""
    rng = drawn_from(f"areas {law} {positive} {apart}")
    edges = np.linspace(-4, 5, grades + 1)
    one = np.histogram(rng.normal(apart, 1, positive), edges)[0]
    other = np.histogram(rng.normal(0, 1, 6000), edges)[0]
    exact = np.concatenate([other, one])[None].astype(float)
    wins = np.tril(np.ones((grades, grades)), -1) + np.eye(grades) / 2
    truth = float(one @ wins @ other / (one.sum() * other.sum()))
    reading = AreaUnderCurve(grades)
    assert reading.value(Released(exact.astype(np.int64), (Noise(law, Fraction(1), 2 * grades),)))[0, 0] == truth
    runs = count("intervals of areas", short=250, long=20_000)
    misses = sum(int(missed(reading, truth, released(exact, [(law, 2 * grades)], rng))[0]) for _ in range(runs))
    control = sum(
        int(missed(reading, truth, released(exact, [(law, 2 * grades)], rng, claim=4))[0]) for _ in range(runs)
    )
    assert misses <= too_many(runs)
    assert control > too_many(runs)


def test_an_area_with_hardly_any_noise_has_an_interval_of_some_width() -> None:
    """Noise so small that no area looked at is held: the interval reaches beyond the value, and holds the area."""
    rng = drawn_from("small areas")
    exact = rng.poisson(2000, (1, 40)).astype(float)
    other, one = exact[0, :20], exact[0, 20:]
    wins = np.tril(np.ones((20, 20)), -1) + np.eye(20) / 2
    truth, reading, law = (
        float(one @ wins @ other / (one.sum() * other.sum())),
        AreaUnderCurve(20),
        LaplaceLaw(Fraction(1, 5)),
    )
    for told in (released(exact, [(law, 40)], rng) for _ in range(100)):
        low, high = reading.interval(told, 1 - LEVEL)
        assert low[0, 0] < reading.value(told)[0, 0] < high[0, 0] <= low[0, 0] + 0.0021
        assert not missed(reading, truth, told).any()
    apart = Released(np.array([[1000] * 5 + [0] * 5 + [0] * 5 + [1000] * 5]), (Noise(law, Fraction(1), 20),))
    low, high = AreaUnderCurve(10).interval(apart, 1 - LEVEL)
    assert low[0, 0] < high[0, 0] == 1


def test_an_area_of_a_class_that_may_be_absent_is_unknown() -> None:
    """Its interval is all there is, and the value a half where a class is not to be seen."""
    told = Released(np.array([[40, 50, 60, -3, 2, -4]]), (Noise(LAWS[0], Fraction(1), 6),))
    reading = AreaUnderCurve(3)
    assert reading.value(told).tolist() == [[0.5]]
    assert [end.tolist() for end in reading.interval(told, 0.05)] == [[[0.0]], [[1.0]]]
    assert reading.least(told, 0.05)[0] <= 0
    assert [end.tolist() for end in reading.bounds()] == [[0.0], [1.0]]
