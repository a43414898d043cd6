"""How wide intervals are: width at 95% over the standard deviation of the estimate, and how often they hold the truth.

The exact sums of a made-up table and the laws of a real plan, and many draws of the noise at once, read as an answer
would be.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa

import sulq
from benchmarks.epsilon.bars import Bar, Section
from sulq import Epsilon, Rho
from sulq.answers.readings.joint import Correlation
from sulq.answers.readings.regions import ratios
from sulq.answers.released import Noise, Released
from sulq.language.law import LaplaceLaw, Law
from sulq.sql.released.cells import GroupCells
from sulq.sql.released.ratios import Ratio

DRAWS: Final = 4000
MOST: Final = 6.0
GROUPS: Final = 10_000
QUERIES: Final = {
    "variance": "VAR_POP(x)",
    "deviation": "STDDEV_POP(x)",
    "covariance": "COVAR_POP(x, y)",
    "correlation": "CORR(x, y)",
    "ratio": "SUM(x) / SUM(y)",
    "share": "100.0 * COUNT(*) FILTER (WHERE x > 40) / COUNT(*)",
}
NOTE: Final = (
    f"Median width of 95% intervals over the standard deviation of the estimate, {DRAWS:,} draws a cell, from the laws "
    "of the plans of `SELECT` of one statistic. A row is the widest over three tables of 1,000 and 20,000 rows: one "
    "ordinary, one skewed, one nearly constant, on none of which a constant was chosen; that the ratio of variances "
    "below a correlation has its own part of beta was prompted by them, the part chosen on another. A normal law has "
    "3.92, a Laplace law 4.24. Where most intervals are the whole range, noise drowns the statistic, and the table is "
    "named but not measured. Boxes of separate intervals gave 5 to 15. What is missed: where a mean, or a variance "
    "below a correlation, is known to a fifth of its range only, the ranges of these unknowns add up "
    "([intervals](theory/intervals.md))."
)
Ends = tuple[np.ndarray, np.ndarray, np.ndarray]  # value, low and high of each draw


def _tables(rows: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(230)
    x = rng.gamma(9.0, 5.0, rows)
    yield "ordinary", x, 0.7 * x + rng.gamma(4.0, 5.0, rows)
    skewed = rng.pareto(2.5, rows) * 9
    yield "skewed", skewed, skewed * rng.uniform(0.2, 0.6, rows) + rng.exponential(3.0, rows)
    rare = rng.random(rows) < 0.02
    yield "nearly constant", np.where(rare, 44.0, 38.0), np.where(rng.random(rows) < 0.03, 61.0, 66.0)


def _draws(law: Law, rng: np.random.Generator) -> np.ndarray:
    scale = float(law.scale)  # type: ignore[union-attr]
    if isinstance(law, LaplaceLaw):
        p = -np.expm1(-1.0 / scale)
        return rng.geometric(p, DRAWS) - rng.geometric(p, DRAWS)
    if scale > 1000:  # the rounded normal is the same to any count of draws
        return np.rint(rng.normal(0, scale, DRAWS)).astype(np.int64)
    z = np.arange(-int(10 * scale) - 2, int(10 * scale) + 3)
    mass = np.exp(-0.5 * (z / scale) ** 2)
    return rng.choice(z, DRAWS, p=mass / mass.sum())


def _column(cell: GroupCells, answers: list[Released], rng: np.random.Generator) -> Ends:
    exact, reading = cell.column.released(answers), cell.column.reading
    noises = [noise for noise in exact.noise for _ in range(noise.width)]
    units = np.stack(
        [int(total) + _draws(noise.law, rng) for total, noise in zip(exact.units[0], noises, strict=True)], 1
    )
    drawn = Released(units, exact.noise)
    low, high = reading.interval(drawn, 0.05)
    return reading.value(drawn)[:, 0], low[:, 0], high[:, 0]


def _ratio(ratio: Ratio, rng: np.random.Generator) -> Ends:
    joint = ratio.joint
    noise = np.stack([_draws(each.law, rng) * float(each.step) for each in joint.noises], 1)
    above, below = (
        side[0] + noise @ weight for side, weight in zip((joint.above, joint.below), joint.weights, strict=True)
    )
    low, high, _ = ratios(above, below, joint.weights, joint.noises, 0.05, bounds=joint.bounds)
    value = above / below
    return value if joint.bounds is None else np.clip(value, *joint.bounds), low, high


def _cells(rows: int) -> Iterator[tuple[str, str, str, float, float, float]]:
    """Table, statistic, spend, width over deviation, part of draws held, part of intervals that are the whole range."""
    rng = np.random.default_rng(231)
    for name, x, y in _tables(rows):
        table = pa.table({"x": x.clip(0, 100), "y": y.clip(0, 100)})
        for spend in (Epsilon(0.1), Rho(0.005), Epsilon(1), Rho(0.5)):
            columns = {"x": sulq.Real(0, 100), "y": sulq.Real(0, 100)}
            with sulq.connect(table, columns=columns, budget=type(spend)(50), synthetic=True) as db:
                exact = sulq.testing.exact(db)
                for what, text in QUERIES.items():
                    answer = exact.sql(f"SELECT {text} AS v FROM data", spend=spend)
                    (figure,), released = answer.table.rows[0], [one.released for one in answer.answers]
                    origin = figure.origin
                    found = _ratio(origin, rng) if isinstance(origin, Ratio) else _column(origin, released, rng)
                    yield (f"{name}, {rows:,} rows", what, str(spend), *_summary(*found, float(figure.value), origin))


def _summary(value: np.ndarray, low: np.ndarray, high: np.ndarray, truth: float, origin: object) -> tuple[float, ...]:
    finite = np.isfinite(low) & np.isfinite(high)
    whole = ~finite
    bounds = origin.joint.bounds if isinstance(origin, Ratio) else tuple(e[0] for e in origin.column.reading.bounds())
    if bounds is not None:
        whole |= high - low >= 0.99 * (bounds[1] - bounds[0])
    slip = 1e-9 * max(abs(truth), 1.0)
    held = float(((low <= truth + slip) & (truth - slip <= high)).mean())
    middle = np.abs(value - truth) <= np.quantile(
        np.abs(value - truth), 0.999
    )  # a divisor near nought has no deviation
    width = float(np.median((high - low)[finite]) / value[middle].std()) if finite.any() else np.inf
    return width, held, float(whole.mean())


def _seconds() -> float:
    """Intervals of ten thousand correlations, the slowest of them."""
    law = [LaplaceLaw(Fraction(2**k)) for k in (3, 14, 24)]
    parts = (Noise(law[0], Fraction(1), 1), Noise(law[1], Fraction(1, 2**10), 2), Noise(law[2], Fraction(1, 2**20), 3))
    units = np.tile(np.array([900, 2**14, -(2**13), 2**28, 2**27, 2**28]), (GROUPS, 1))
    units += np.random.default_rng(232).integers(-9, 9, units.shape)
    start = time.process_time()
    Correlation((Fraction(1), Fraction(1))).interval(Released(units, parts), 0.05)
    return time.process_time() - start


def run() -> Section:
    """One bar a statistic and spend: its widest interval over the tables; then coverage and time."""
    found = [cell for rows in (1000, 20_000) for cell in _cells(rows)]
    bars = []
    for what in QUERIES:
        for spend in dict.fromkeys(cell[2] for cell in found):
            own = [cell for cell in found if cell[1] == what and cell[2] == spend]
            told = [cell for cell in own if cell[5] < 0.5]
            drowned = [cell[0] for cell in own if cell[5] >= 0.5]
            worst = max(told, key=lambda cell: cell[3], default=None)
            beside = "" if worst is None else f"worst: {worst[0]}"
            beside += f"; the whole range: {'; '.join(drowned)}" if drowned else ""
            ours = "-" if worst is None else f"{worst[3]:.2f}"
            bars.append(Bar(f"{what}, {spend}", ours, beside, f"at most {MOST:g}", worst is None or worst[3] <= MOST))
    least = min(found, key=lambda cell: cell[4])
    slack = 5 * (0.05 * 0.95 / DRAWS) ** 0.5
    where = f"{least[1]}, {least[2]}, {least[0]}"
    bars.append(
        Bar(
            "held by 95% intervals, least of all",
            f"{least[4]:.1%}",
            where,
            f"95%, less 5 deviations of {DRAWS:,} draws",
            least[4] >= 0.95 - slack,
        )
    )
    took = _seconds()
    bars.append(Bar(f"{GROUPS:,} correlations", f"{took:.2f} s of CPU", "0.02 s by the box", "at most 2 s", took <= 2))
    return Section("Intervals", bars, (NOTE,))
