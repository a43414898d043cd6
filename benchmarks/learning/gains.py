"""What the tight calibrations gain over the paper's constants, on the rows of the tests (SPEC section 10)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sulq import Epsilon, EpsilonDelta
from sulq.answers.oracle import SpendPlan
from sulq.learn import PCA, min_n
from sulq.learn.features import Features
from sulq.learn.unsupervised.kmeans import KMeansTask
from sulq.learn.unsupervised.space import ColumnSpace
from tests.learn.cases import exact, opened
from tests.learn.matrices import DELTA, EPSILON, captured, cube, mirrored, theorem_1, top
from tests.learn.unsupervised.test_components import NAMES, UNIT, table
from tests.learn.unsupervised.test_kmeans import PLACES, SQUARE, TWO, square

SPEND = EpsilonDelta(EPSILON, DELTA)


@dataclass(frozen=True)
class Gain:
    """One line: what the paper's constants give, what there is now, and the least that is asked for."""

    what: str
    paper: str
    now: str
    value: float
    least: float

    @property
    def met(self) -> bool:
        """Whether it is as much as asked for."""
        return self.value >= self.least


def variance(runs: int = 20) -> Gain:
    """Captured variance, n = 10,000, d = 10, k = 3 at (1, 1e-6): 65 queries by Theorem 1, and a PCA of today."""
    points = cube(10_000)
    rng = np.random.default_rng(3)
    matrix, noise = np.cov(points.T, bias=True), theorem_1(65)
    paper, now = [], []
    for _ in range(runs):
        off = rng.normal(0, np.sqrt(noise) / len(points), 10).clip(-0.5, 0.5)
        noisy = matrix + np.outer(off, off) + mirrored(rng, 10, noise) / len(points)
        paper.append(captured(top(noisy, 3), matrix))
        with opened(UNIT, table(points), SPEND) as db:
            now.append(captured(PCA(3).fit(db[NAMES], spend=SPEND).components_, matrix))
    mean = float(np.mean(now))
    what = f"PCA: captured variance, n = 10,000, d = 10, k = 3, mean of {runs}"
    return Gain(what, f"{np.mean(paper):.2f}", f"{mean:.3f}", mean, 0.94)


def rounds() -> Gain:
    """The noise of five plain Lloyd rounds, k = 4, d = 2: T = 60 by Theorem 1, and the largest of the sums today."""
    with opened(SQUARE, table(square(500)), SPEND) as db:
        X = exact(db)[TWO]
        spending = SpendPlan(X.oracle, SPEND)
        task = KMeansTask(ColumnSpace(Features.of(X), scale=False), spending, 4)
        asked, centres, parts, _ = task.plain(PLACES, 5, inertia=False)
        found = asked.ask(centres, parts[0])
    paper, now = float(np.sqrt(theorem_1(60))), max(found.blur, float(found.errors.max()))
    what = "k-means: noise of each sum in five plain rounds of Lloyd's from given centres (no sketch), k = 4, d = 2"
    return Gain(what, f"{paper:.0f}", f"{now:.1f} (÷{paper / now:.1f})", paper / now, 15)


def rows() -> Gain:
    """The rows a monotone conjunction of twelve columns needs for an error of .1 at epsilon 1."""
    tolerance = 0.1 / 24
    paper = min_n(12, tolerance, spend=Epsilon(1), method="split", population=True, paper=True)
    now = min_n(12, tolerance, spend=Epsilon(1), population=True)
    what = "Monotone conjunction: rows needed, 12 columns, error .1, epsilon 1"
    return Gain(what, f"{paper:,}", f"{now:,} (÷{paper / now:.0f})", paper / now, 10)


def gains(runs: int = 20) -> list[Gain]:
    """The table of the page."""
    return [variance(runs), rounds(), rows()]
