"""Spreads of a public number of values from two sums: what they are, and an interval that holds them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, Queries, Rho, SubLinear, Unit
from sulq.answers.readings.sized import SPREAD_SHARES, SizedSpread
from sulq.answers.released import Noise, Released
from sulq.language.law import LaplaceLaw

N, B = 1000, 10.0
SHAPES = {
    "spread": np.linspace(0, B, N),
    "at one end": np.linspace(0, B, N) ** 3 / B**2,
    "at both ends": np.repeat([0.0, B], N // 2),
    "in the middle": np.full(N, B / 2),
}


def opened(values: np.ndarray, budget: object, *, missing: bool = False) -> object:
    """A table of n values."""
    return sulq.connect(
        pa.table({"x": values}),
        columns={"x": sulq.Real(0, B, missing=missing)},
        unit=Unit(neighbors="replace_one"),
        budget=budget,
        size=N,
        synthetic=True,
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_without_noise_it_is_the_textbooks_S2_3(shape: str) -> None:
    """Variances and deviations, of a whole population and of a sample, by name and in SQL."""
    values = SHAPES[shape]
    with opened(values, Epsilon(1)) as db:
        exact = sulq.testing.exact(db)
        for ddof, suffix in ((0, "POP"), (1, "SAMP")):
            found = [
                exact.variance("x", ddof=ddof, spend=Epsilon(1)).value,
                exact.std("x", ddof=ddof, spend=Epsilon(1)).value ** 2,
                exact.sql(f"SELECT VAR_{suffix}(x) AS v FROM data", spend=Epsilon(1)).to_dict()["v"][0],
                exact.sql(f"SELECT STDDEV_{suffix}(x) AS v FROM data", spend=Epsilon(1)).to_dict()["v"][0] ** 2,
            ]
            assert found == pytest.approx([values.var(ddof=ddof)] * 4, abs=1e-3)


def test_a_spread_is_two_queries_and_less_noise_S2_3() -> None:
    """Where three sums are three, of a column that may be missing; a mean beside it keeps them."""
    budget = SubLinear(epsilon=1, delta=1e-6, queries=100)
    for missing, queries in ((False, 2), (True, 3)):
        with opened(SHAPES["spread"], budget, missing=missing) as db:
            assert db.variance("x").spent == db.std("x", fresh=True).spent == Queries(queries)
            assert db.sql("SELECT VAR_POP(x), STDDEV_POP(x) FROM data", fresh=True).spent == Queries(queries)
            assert db.sql("SELECT AVG(x), VAR_POP(x) FROM data", fresh=True).spent == Queries(3)


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.5)])
@pytest.mark.parametrize("shape", SHAPES)
def test_its_error_is_no_larger_than_that_of_three_sums(shape: str, spend: object) -> None:
    """By the laws that are drawn: to first order the error of Q - 2m S beside that of the terms p, q and r."""
    t = SHAPES[shape] / B
    p, q, r = (t**2).mean(), (2 * t * (1 - t)).mean(), ((1 - t) ** 2).mean()
    v = t.var()
    slopes = {True: (r - 2 * v, -q / 2 - 2 * v, p - 2 * v), False: (-2 * (t.mean() - 0.5), 1.0)}
    error = {}
    for missing, slope in slopes.items():
        with opened(SHAPES[shape], Rho(9) if isinstance(spend, Rho) else Epsilon(9), missing=missing) as db:
            plan = db.explain("SELECT VAR_POP(x) FROM data", spend=spend).plan
        (part,) = plan.parts
        deviation = [n.law.variance() ** 0.5 * float(n.step) for n in part.noise for _ in range(n.width)]
        units = (B**2,) * 3 if missing else (B, B**2)
        error[missing] = math.hypot(*(a * b / u for a, b, u in zip(slope, deviation, units, strict=True)))
    assert error[False] < 1.01 * error[True]
    assert shape == "at one end" or error[False] < 0.85 * error[True]


def test_its_interval_holds_it_T28() -> None:
    """Except with probability beta, at any place of the mean; half of it does not (the control)."""
    rng, law, truth = np.random.default_rng(9), LaplaceLaw(Fraction(40)), {}
    draws = rng.laplace(scale=40, size=(4000, 2)).round().astype(np.int64)
    for mean in (0.0, 0.9):
        squares = mean**2 + 0.05
        units = np.array([round(500 * mean), round(500 * squares)]) + draws
        released = Released(units, (Noise(law, Fraction(1), 1),) * 2)
        low, high = SizedSpread(500, Fraction(1)).interval(released, 0.2)
        held = ((low <= 0.05 + 1e-3) & (high >= 0.05 - 1e-3)).mean()
        middle, half = (low + high) / 2, (high - low) / 8
        truth[mean] = held, (np.abs(middle - 0.05) <= half).mean()
    assert all(held > 0.8 for held, _ in truth.values())
    assert all(quarter < 0.75 for _, quarter in truth.values())


@pytest.mark.parametrize("pure", [True, False])
def test_the_shares_make_the_error_smallest_on_average(*, pure: bool) -> None:
    """Over means anywhere in the bounds: no other shares do better."""

    def error(share: float) -> float:
        power = 2 if pure else 1
        return 1 / share**power + (16 / 3) / (1 - share) ** power

    least = min(np.linspace(0.05, 0.95, 1801), key=error)
    assert float(SPREAD_SHARES[pure][1]) == pytest.approx(least, abs=2e-3)
    assert sum(SPREAD_SHARES[pure]) == 1
