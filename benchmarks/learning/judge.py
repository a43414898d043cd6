"""Verdicts over cells: one learner on one table at one epsilon, ours beside a peer's."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

LIMIT = 2.0  # standard errors of the difference, past which a cell is lost
SHARE = 0.8  # of the cells at epsilon 1 that are strictly better
ROUNDING = 5e-4  # of a score: half of the last digit that the page tells
FEWEST = 5  # runs on either side, below which a cell cannot be won


@dataclass(frozen=True)
class Scores:
    """One contender's scores in one cell; more is better."""

    who: str
    runs: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.runs))

    @property
    def slack(self) -> float:
        """Its standard error; of a single run nothing is known, so none is granted."""
        return float(np.std(self.runs, ddof=1) / np.sqrt(len(self.runs))) if len(self.runs) > 1 else 0.0


@dataclass(frozen=True)
class Cell:
    """Ours, the peers' (none: no run of theirs ended in time) and what there is without privacy."""

    task: str
    table: str
    epsilon: float
    ours: Scores
    peers: tuple[Scores, ...]
    exact: float

    @property
    def best(self) -> Scores | None:
        """The best peer."""
        return max(self.peers, key=lambda scores: scores.mean, default=None)

    @property
    def gain(self) -> float:
        """How much better ours is than the best peer; infinite where that has no result."""
        return self.ours.mean - self.best.mean if self.best else float("inf")

    @property
    def errors(self) -> float:
        """The gain in standard errors of a difference."""
        if self.best is None:
            return float("inf")
        slack = float(np.hypot(self.ours.slack, self.best.slack))
        return self.gain / slack if slack > 0 else float(np.sign(self.gain)) * float("inf") if self.gain else 0.0

    @property
    def lost(self) -> bool:
        """Whether ours is worse by more than the limit."""
        return self.errors < -LIMIT

    @property
    def few(self) -> bool:
        """Whether either side has too few runs, or the peers none."""
        return min(len(self.ours.runs), len(self.best.runs) if self.best else 0) < FEWEST

    @property
    def counts(self) -> bool:
        """Whether it has a say: of few runs only against us, so that a slow peer is no win."""
        return not self.few or self.gain < 0


@dataclass(frozen=True)
class Verdict:
    """What all cells together say."""

    lost: tuple[Cell, ...]
    behind: tuple[Cell, ...]  # the peer's mean is ahead, by no more than the limit
    idle: int  # cells without a say
    medians: dict[float, float]  # of the gains, at each epsilon
    sizes: dict[float, int]  # cells that have a say
    shares: dict[float, float]  # of these, the cells that are strictly better
    falls: tuple[tuple[Cell, Cell], ...] = ()  # ours at an epsilon and, worse, at the next: by more than the limit
    steps: int = 0  # pairs of neighbouring epsilons

    @property
    def met(self) -> dict[str, bool]:
        """The demands, and whether each is met."""
        return {
            f"no cell worse by more than {LIMIT:g} standard errors": not self.lost,
            "better in the median cell at every epsilon": all(median > 0 for median in self.medians.values()),
            f"strictly better in {SHARE:.0%} of the cells at epsilon 1": self.shares.get(1.0, 0.0) >= SHARE,
            f"every learner monotone in epsilon on every table, within {LIMIT:g} standard errors": not self.falls,
        }


def fall(low: Cell, high: Cell) -> float:
    """By how many standard errors ours is worse at the larger epsilon; what the page rounds off is no difference."""
    gap = low.ours.mean - high.ours.mean
    slack = float(np.hypot(low.ours.slack, high.ours.slack))
    return 0.0 if gap <= ROUNDING else gap / slack if slack > 0 else float("inf")


def judge(cells: Iterable[Cell]) -> Verdict:
    """Cells of few runs cannot be won, but be lost: ahead there, or without a peer's result, nothing is decided."""
    cells = list(cells)
    counted = sorted((cell for cell in cells if cell.counts), key=lambda cell: cell.errors)
    epsilons = sorted({cell.epsilon for cell in counted})
    ordered = sorted(cells, key=lambda cell: (cell.task, cell.table, cell.epsilon))
    steps = [
        pair for pair in itertools.pairwise(ordered) if (pair[0].task, pair[0].table) == (pair[1].task, pair[1].table)
    ]
    gains = {epsilon: [cell.gain for cell in counted if cell.epsilon == epsilon] for epsilon in epsilons}
    return Verdict(
        tuple(cell for cell in counted if cell.lost),
        tuple(cell for cell in counted if cell.gain < 0 and not cell.lost),
        len(cells) - len(counted),
        {epsilon: statistics.median(found) for epsilon, found in gains.items()},
        {epsilon: len(found) for epsilon, found in gains.items()},
        {epsilon: sum(gain > 0 for gain in found) / len(found) for epsilon, found in gains.items()},
        tuple(pair for pair in steps if fall(*pair) > LIMIT),
        len(steps),
    )
