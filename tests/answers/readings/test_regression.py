"""The line of two numbers: without noise SQL's own, with noise covered, and with sampling beside it covered too."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.answers.readings.regression import Determination, Intercept, PairMean, PairProduct, Slope, X, Y
from sulq.answers.readings.sampling import sampled
from sulq.answers.released import Noise, Released
from sulq.language.law import GaussianLaw, LaplaceLaw, Law
from tests.answers.readings.test_estimators import covers, misses, runs
from tests.answers.readings.test_sampling import ROWS, drawn_from, held
from tests.answers.readings.test_sampling import misses as missed_by
from tests.counts import count
from tests.stub import noise

RUNS = count("coverage of a line's statistics", short=400, long=20_000)
MIDDLES, HALVES = (Fraction(40), Fraction(50)), (Fraction(40), Fraction(50))  # y in [0, 80], x in [0, 100]
LINE = (MIDDLES, HALVES)
SCALE = 64
LAWS: list[Law] = [LaplaceLaw(Fraction(20)), GaussianLaw(Fraction(9))]
READINGS = {
    "slope": Slope(*LINE),
    "intercept": Intercept(*LINE),
    "r2": Determination(*LINE),
    "avgx": PairMean(*LINE, Fraction(0), X),
    "avgy": PairMean(*LINE, Fraction(0), Y),
    "sxx": PairProduct(*LINE, Fraction(0), (X, X)),
    "syy": PairProduct(*LINE, Fraction(0), (Y, Y)),
    "sxy": PairProduct(*LINE, Fraction(0), (Y, X)),
}


def pairs(size: int, slope: float, spread: float, rng: np.random.Generator) -> np.ndarray:
    """Scaled whole numbers of y and x."""
    x = np.clip(np.rint(rng.normal(8, 14, size)), -SCALE, SCALE)
    y = np.clip(np.rint(slope * x - 6 + rng.normal(0, spread, size)), -SCALE, SCALE)
    return np.stack([y, x]).astype(np.int64)


def sums(z: np.ndarray) -> list[int]:
    """Count, sums and products, in units of 1, 1/64 and 1/4096."""
    y, x = z
    return [z.shape[1], int(y.sum()), int(x.sum()), int((y * y).sum()), int((y * x).sum()), int((x * x).sum())]


def truths(z: np.ndarray) -> dict[str, float]:
    """Each statistic of the numbers themselves."""
    y, x = z[0] / SCALE * 40 + 40, z[1] / SCALE * 50 + 50
    n, c = len(x), np.cov(y, x, ddof=0)
    slope = c[0, 1] / c[1, 1]
    return {
        "slope": slope, "intercept": y.mean() - slope * x.mean(), "r2": c[0, 1] ** 2 / (c[0, 0] * c[1, 1]),
        "avgx": x.mean(), "avgy": y.mean(), "sxx": n * c[1, 1], "syy": n * c[0, 0], "sxy": n * c[0, 1],
    }  # fmt: skip


def parts(law: Law) -> list[Noise]:
    """The noise of a count, of sums and of products."""
    kind = type(law)
    wide = (law, kind(law.scale * SCALE), kind(law.scale * SCALE**2))
    steps = (Fraction(1), Fraction(1, SCALE), Fraction(1, SCALE**2))
    return [Noise(one, step, width) for one, step, width in zip(wide, steps, (1, 2, 3), strict=True)]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("size", "slope", "spread"), [(3000, 0.6, 8), (3000, -0.2, 3), (200, 0.5, 4)])
def test_lines_are_covered_T28(law: Law, size: int, slope: float, spread: float) -> None:
    """Slope, intercept and what they are made of, few rows or many; a third of an interval is found out (T28)."""
    rng = drawn_from(f"lines {law} {size} {slope}")
    z = pairs(size, slope, spread, rng)
    released, expected = runs(sums(z), parts(law), rng, RUNS), truths(z)
    for name, reading in READINGS.items():
        assert covers(misses(reading, released, expected[name], 0.05), RUNS, 0.05), name
        if size == 3000 and name not in ("intercept", "r2"):
            assert not covers(misses(reading, released, expected[name], 0.05, shrink=0.35), RUNS, 0.05), name


def test_without_noise_they_are_the_statistics_themselves() -> None:
    """Exact sums give the exact statistic; of nothing a slope may be anything."""
    z = pairs(500, 0.7, 5, np.random.default_rng(62))
    released = Released(np.array([sums(z)]), tuple(parts(LAWS[0])))
    for name, expected in truths(z).items():
        assert READINGS[name].value(released)[0, 0] == pytest.approx(expected), name
    nothing = Released(np.zeros((1, 6), dtype=np.int64), tuple(parts(LAWS[0])))
    for name in ("slope", "intercept"):
        low, high = READINGS[name].interval(nothing, 0.05)
        assert (low[0, 0], high[0, 0]) == (-np.inf, np.inf)
    assert READINGS["slope"].value(nothing)[0, 0] == 0


def test_lines_of_a_population_are_covered() -> None:
    """Slope and intercept of a linear model from 94% to 96.5% at 95%; those of the noise alone are found out."""
    rng, size = drawn_from("sampled lines"), min(RUNS, 20_000)
    exact = np.concatenate([_samples(min(200, size - first), rng) for first in range(0, size, 200)])
    for scale in (8, 1):
        noises = parts(LaplaceLaw(Fraction(scale)))
        drawn = [noise(one.law, rng, (size, one.width)) for one in noises]
        released = Released(exact + np.concatenate(drawn, axis=1), tuple(noises))
        for name, truth in (("slope", 0.4), ("intercept", 20.0)):
            missed = missed_by(*sampled(READINGS[name], released, 0.05, factor=1.0), truth)
            assert held(missed, size, 0.94, 0.965 if scale == 1 and name == "slope" else 1.0), (name, 1 - missed / size)
    assert not held(missed_by(*READINGS["slope"].interval(released, 0.05), 0.4), size, 0.94, 1.0)


def _samples(size: int, rng: np.random.Generator) -> np.ndarray:
    """Sums of samples of 5,000 of y = x/2 and an error, in units of 1/64."""
    x = rng.normal(0, 14, (size, ROWS)).round()
    y = (x / 2 + rng.normal(0, 8, (size, ROWS))).round()
    return np.stack(
        [np.full(size, ROWS), y.sum(1), x.sum(1), (y * y).sum(1), (y * x).sum(1), (x * x).sum(1)], axis=1
    ).astype(np.int64)
