"""Quantiles and extremes beside OpenDP's `make_private_quantile` on the same grid: median absolute error.

No error is drawn where it can be worked out: the question, its shares and scales are those that the database lays out,
the scores those of the kernel, or OpenDP's own, and the probability of every candidate follows from scores and scale.
OpenDP's noisy maximum of exponential noise is permute-and-flip. `python -m benchmarks.epsilon quantiles`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

import sulq
from benchmarks.epsilon.bars import Bar, Section
from sulq.answers.readings.quantiles import Bed, Picked
from sulq.answers.readings.rank_choice import ChosenExtreme, ChosenQuantile
from sulq.answers.released import Noise, Released
from sulq.kernel.laws import ExponentialLaw, FlipLaw
from sulq.kernel.scores import Rank, scores
from sulq.language.privacy import Epsilon, Loss
from sulq.language.question import WHOLE
from sulq.language.rowfn import Col
from sulq.sql.released.columns import RowGroups, StatColumn, collect
from sulq.sql.released.program import Stat
from sulq.sql.released.questions import columns_of

FOLDER: Final = Path(os.environ.get("SULQ_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data") / "tabular"
SIZES: Final = (2_000, 20_000)
EPSILONS: Final = (0.1, 1.0)
ASKED: Final = {"median": "0.5", "p90": "0.9", "p99": "0.99"}
EXTREMES: Final = {"min": "0", "max": "1"}
HIGH: Final = 500_000
WIDE: Final = 50_000_000
DRAWS: Final = 20_000  # of an interval's three choices together
TABLES: Final = {"pums": ("income", HIGH), "adult-train": ("capital_gain", 99_999)}


def pmf(scores_: np.ndarray, scale: float, *, flip: bool = True) -> np.ndarray:
    """The probability of every candidate: of the exponential choice, or of permute-and-flip.

    Permute-and-flip: with U_c uniform the place of candidate c in the order, and h_j the probability of its heads,
    c wins at place t if it shows heads and no other one does before: h_c times the integral over t of the product of
    1 - t h_j over all others; by Gauss-Legendre in pieces that halve towards 0.
    """
    heads = np.exp(-(scores_.max() - scores_) / scale)
    if not flip:
        return heads / heads.sum()
    levels, many = np.unique(heads, return_counts=True)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    found = np.zeros(len(levels))
    high = 1.0
    while high > 1e-9:
        low = 0.0 if high < 2e-9 else high / 2
        for node, weight in zip(nodes, weights, strict=True):
            t = (low + high) / 2 + (high - low) / 2 * node
            with np.errstate(divide="ignore"):
                logs = np.log1p(-t * levels)
            found += weight * (high - low) / 2 * np.exp(logs @ many - logs)
        high = low
    each = levels * found
    return each[np.searchsorted(levels, heads)]


def error(values: np.ndarray, chances: np.ndarray, truth: float) -> float:
    """The median absolute error of a value that is chosen with these chances."""
    off = np.abs(values - truth)
    order = np.argsort(off, kind="stable")
    return float(off[order][np.searchsorted(np.cumsum(chances[order]), 0.5 * chances.sum())])


@dataclass(frozen=True)
class Table:
    """A column of whole numbers in its bounds, as the database has it."""

    name: str
    cells: np.ndarray
    high: int

    def database(self, budget: Loss | None = None) -> sulq.Database:
        """The table as it is asked."""
        frame = pd.DataFrame({"x": self.cells})
        columns = {"x": sulq.Int(0, self.high, missing=False)}
        return sulq.connect(
            frame, table="t", columns=columns, unit=sulq.Unit(), budget=budget or Epsilon(900), synthetic=True
        )

    def truth(self, q: Fraction) -> float:
        """The table's quantile."""
        return float(np.quantile(self.cells, float(q), method="inverted_cdf"))


def stat(q: Fraction) -> Stat:
    """PERCENTILE_DISC, or the extreme."""
    return Stat({0: "min", 1: "max"}.get(int(q) if q.denominator == 1 else -1, "quantile_disc"), (Col("x"),), q=q)


def laid_out(
    db: sulq.Database, q: Fraction, spend: Loss, *, interval: bool
) -> tuple[StatColumn, list[tuple[Rank, FlipLaw | ExponentialLaw]]]:
    """What the database asks for a quantile: its column, and each choice's score with its law."""
    question, (column,) = collect(
        db.facts,
        spend,
        lambda asking: columns_of(asking, RowGroups(WHOLE, None, ()), [stat(q)]),
        lambda asked, paid: db.foresee(asked, spend=paid),
        interval=interval,
    )
    assert question is not None
    parts = db.foresee(question, spend=spend).parts
    asked = [parts[piece.question] for piece in column.slices]
    return column, [(part.score, part.laws[0]) for part in asked if isinstance(part.score, Rank)]  # type: ignore[misc]


def chances(values: np.ndarray, bed: Bed, choices: Sequence[tuple[Rank, FlipLaw | ExponentialLaw]]) -> list[np.ndarray]:
    """The probability of every bin in each choice."""
    places = ((values - float(bed.start)) // float(bed.width)).astype(np.int64)
    counts = np.bincount(places, minlength=bed.bins).astype(np.int64).reshape(1, -1, 1)
    return [pmf(scores(rank, counts)[0], float(law.scale), flip=isinstance(law, FlipLaw)) for rank, law in choices]


def drawn(found: Sequence[np.ndarray], noise: tuple[Noise, ...], draws: int, seed: int) -> Released:
    """Independent draws of all choices of a column."""
    rng = np.random.default_rng(seed)
    units = [np.minimum(np.searchsorted(np.cumsum(one), rng.random(draws) * one.sum()), len(one) - 1) for one in found]
    return Released(np.stack(units, axis=1).astype(np.int64), noise)


def ours(table: Table, q: Fraction, epsilon: float, *, interval: bool) -> tuple[float, Bed]:
    """Our median absolute error, and the grid."""
    db = table.database()
    column, choices = laid_out(db, q, Epsilon(epsilon), interval=interval)
    reading = column.reading
    assert isinstance(reading, (ChosenQuantile, ChosenExtreme, Picked)), reading
    bed = reading.tree.bed if isinstance(reading, Picked) else reading.bed  # a tree beside it gives its interval alone
    found = chances(table.cells, bed, choices)
    values = bed.middle(np.arange(bed.bins))
    if len(found) == 1:
        return error(values, found[0], table.truth(q)), bed
    laws = tuple(Noise(law, Fraction(1), 1) for _, law in choices)
    released = drawn(found, laws, DRAWS, seed=7)
    return float(np.median(np.abs(reading.value(released)[:, 0] - table.truth(q)))), bed


def opendp(table: Table, q: Fraction, epsilon: float, bed: Bed) -> float:
    """OpenDP's, with its own scores and the scale that its privacy map asks for, on the middles of the same bins."""
    from opendp import domains, measurements, measures, metrics, transformations
    from opendp.mod import binary_search_param, enable_features

    enable_features("contrib")
    space = domains.vector_domain(domains.atom_domain(T="i32")), metrics.symmetric_distance()
    candidates = bed.middle(np.arange(bed.bins)).astype(int).tolist()
    alpha = float(q)
    made = transformations.make_quantile_score_candidates(*space, candidates, alpha)
    rows = np.array(made(table.cells.tolist()), dtype=np.float64) * max(alpha, 1 - alpha) / made.map(1)
    scale = binary_search_param(
        lambda s: measurements.make_private_quantile(*space, measures.max_divergence(), candidates, alpha, s),
        d_in=1, d_out=epsilon, T=float,
    )  # fmt: skip
    return error(np.array(candidates), pmf(-rows, scale), table.truth(q))


def tables() -> tuple[list[Table], list[str]]:
    """Made-up skewed incomes of both sizes; real columns as a check, where there are any."""
    rng = np.random.default_rng(23)
    made = [
        Table(f"{size:,} incomes", np.clip(np.exp(rng.normal(10.5, 0.8, size)), 0, HIGH).astype(int), HIGH)
        for size in SIZES
    ]
    made.append(Table(f"{SIZES[1]:,} incomes in bounds to {WIDE:,}", made[1].cells, WIDE))
    missing = []
    for name, (column, high) in TABLES.items():
        path = FOLDER / f"{name}.csv"
        if not path.exists():
            missing.append(f"{name}: not in $SULQ_DATA or ../shared/data, left out.")
            continue
        values = pd.read_csv(path)[column].to_numpy().astype(int).clip(0, high)
        made.append(Table(f"{column} of {name} ({len(values):,})", values, high))
    return made, missing


def run() -> Section:
    """Every cell beside its bar: 1.1 times OpenDP's error without an interval, 1.5 times with one."""
    bars = []
    made, missing = tables()
    for table, epsilon, (name, text) in itertools.product(made, EPSILONS, (ASKED | EXTREMES).items()):
        q = Fraction(text)
        (plain, bed), (wide, _) = (ours(table, q, epsilon, interval=one) for one in (False, True))
        peer = opendp(table, q, epsilon, bed)
        for found, most, how in ((plain, 1.1, ""), (wide, 1.5, ", with interval")):
            what = f"{name}, {table.name}, epsilon {epsilon:g}{how}"
            met = found <= max(most * peer, peer + float(bed.width))
            bars.append(Bar(what, f"{found:,.0f}", f"OpenDP {peer:,.0f}", f"{most:g}x", met))
            print(bars[-1].line(), flush=True)
    notes = [
        (
            "Median absolute error of PERCENTILE_DISC, MIN and MAX, one row a person, add or remove, the same bins for "
            "both. Errors are worked out from the probability of every candidate, with each library's own scores and "
            f"scale; beside an interval from {DRAWS:,} draws of these. A difference below the width of a bin counts "
            "as none. OpenDP's minimum and maximum are its quantiles 0 and 1. The incomes in wide bounds, and the real "
            "columns, are a check: nothing was chosen by them."
        ),
        (
            "What is missed lies past the brink at which empty bins outweigh the rows for three quarters of the spend. "
            "OpenDP's maximum of 20,000 incomes is right with a chance just above one half, as ours is with 99% of the "
            "spend and is not with 97%: no division that buys an interval keeps it. Nine tenths for the value would "
            "meet two more of these cells, and make the interval of every quantile 2.5 times as wide."
        ),
        *missing,
    ]
    return Section("Quantiles and extremes", bars, notes)
