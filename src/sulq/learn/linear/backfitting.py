"""Linear regression column by column: each step asks for one noisy sum of what the others leave unexplained.

Products of all columns two by two are many, and noise grows with their number; a step of one column costs one sum
whatever the number of columns. A number's slope moves by the sum of (x - m) r, with r the clipped residual, a key's
weights by the sums of r over the rows of each label: Newton's step, shrunk by its noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.oracle import SpendPlan
from sulq.language.kinds import Floats
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Bernstein, Lit, RowFn
from sulq.learn.linear.windows import Design, Window
from sulq.learn.noisy_sums import deviations

FOR_KEYS: Final = 0.08  # of the spend: how many rows have each label
CLIP: Final = 1.5  # of residuals, in deviations of y
PRIOR: Final = 0.3  # what a column is taken to move y by, in deviations of it
CLEARNESS_A_ROUND: Final = 14.0  # how far such a column stands out of a step's noise; rounds grow with its root
ROUNDS: Final = (2, 12)
LEAST_SPREAD: Final = 0.05  # of y, in halves of its window


@dataclass(slots=True)
class Backfitting:
    """One fit: `moments` are mean and variance of each number in its window, as far as histograms tell them."""

    design: Design
    y: Window
    known: RowFn
    spending: SpendPlan
    moments: list[tuple[float, float]]
    weights: Floats
    intercept: float = 0.0
    spread: float = 1.0
    total: float = 1.0

    def start(self, for_y: float) -> Together:
        """The first question: number, mean and spread of y, then how many rows have each label of each key."""
        keys = self.design.keys
        counts = [Sums((Lit(1),), self.known, by=(key.row,)) for key in keys]
        shares = (Fraction(for_y), *(Fraction(FOR_KEYS) / len(keys) for _ in keys))
        return Together((Sums((Bernstein(self.y.seen, 2),)), *counts), shares)

    def fewest(self, for_y: float) -> list[Sums | Together]:
        """What is asked in as few rounds as there can be, those of a SubLinear budget; as many queries as in `run`."""
        steps = [Sums((window.row * self.residual(),), self.known) for window in self.design.numbers]
        steps += [Sums((self.residual(),), self.known, by=(key.row,)) for key in self.design.keys]
        return [self.start(for_y), *steps * ROUNDS[0]]

    def clearness(self, left: float) -> float:
        """How far a column that moves y by PRIOR stands out of the noise of a step, were there but one round; free."""
        step = Sums((self.residual(),), self.known)
        noise = float(deviations(self.spending.foresee(step, left / self.columns))[0].max())
        return PRIOR * self.spread * self.total / max(noise, 1e-9)

    @property
    def columns(self) -> int:
        """How many steps a round has."""
        return max(len(self.design.numbers) + len(self.design.keys), 1)

    def run(self, left: float, for_y: float) -> tuple[Floats, float]:
        """The weights of the design's places, and the intercept, in halves of y's window."""
        start = self.start(for_y)
        part = float(sum(start.shares))
        first, *counts = self.spending.several(start, part)
        self._begin(first.released.values()[0], float(first.released.deviations()[0]))
        left -= part
        rounds = int(np.clip(round(math.sqrt(self.clearness(left) / CLEARNESS_A_ROUND)), *ROUNDS))
        if self.spending.sublinear:
            rounds = ROUNDS[0]
        self.spending.plan(2 + rounds * self.columns)
        each, d = left / (rounds * self.columns), len(self.design.numbers)
        moments = self.moments or [(0.0, 1 / 3)] * d
        sizes = [np.maximum(answer.released.values()[:, 0], 0.0) for answer in counts]
        for turn in range(rounds):
            prior = PRIOR * self.spread / math.sqrt(turn + 1)
            for i, (mean, variance) in enumerate(moments):
                self._slope(i, mean, variance, prior / math.sqrt(variance), each)
            at = d
            for key, size in zip(self.design.keys, sizes, strict=True):
                self._labels(key.row, slice(at, at + key.size), size, prior, each)
                at += key.size
        return self.weights, self.intercept

    def _begin(self, sums: Floats, deviation: float) -> None:
        above, between, below = sums
        held = max(above + between + below, deviation)
        self.total = max(held / 4, 1.0)
        self.intercept = float(np.clip((above - below) / held, -1, 1))
        self.spread = math.sqrt(
            float(np.clip((above + below - between) / held - self.intercept**2, LEAST_SPREAD**2, 1))
        )

    def residual(self) -> RowFn:
        """What is not explained of a row yet, clipped."""
        vector = self.design.vector() if self.design.numbers else None
        far = min(CLIP * self.spread, 2.0)
        return (self.y.row - self.design.score(vector, self.weights, self.intercept)).clip(-far, far)

    def _slope(self, i: int, mean: float, variance: float, prior: float, part: float) -> None:
        about = self.design.numbers[i].row - mean
        answer = self.spending.one(Sums((about * self.residual(),), self.known), part).released
        weight, noise = self.total * variance, float(answer.deviations()[0])
        change = float(answer.values()[0, 0]) * weight / (weight**2 + (noise / prior) ** 2)
        self.weights[i] += change
        self.intercept -= change * mean

    def _labels(self, key: RowFn, places: slice, sizes: Floats, prior: float, part: float) -> None:
        answer = self.spending.one(Sums((self.residual(),), self.known, by=(key,)), part).released
        noise = float(answer.deviations()[0])
        self.weights[places] += answer.values()[:, 0] * sizes / np.maximum(sizes**2 + (noise / prior) ** 2, 1e-12)
