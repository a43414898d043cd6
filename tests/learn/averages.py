"""A learner for tests of the doors: small, of every kind of parameter, and with parts that must be saved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

import sulq
from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.forms.parameters import checked, whole
from sulq.learn.base import Learner
from sulq.learn.features import Attributes, Features, Labels


@dataclass(frozen=True)
class Round:
    """One round's noisy count and sums."""

    count: float
    sums: tuple[float, ...]


class Averages(Learner):
    """The mean of every column, asked in rounds.

    Each round asks for a count and for the sum of every feature.

    Args:
        rounds: how often it is asked,
            at a part of the spend each.
        weight: what a row counts for (a number).
        shrink: pull towards the middle; left open, not at all.
        scale: "own" for the columns' own units, or "unit".
        note: kept and not looked at.
        loud: say more.
        start: where to begin; only from Python.
    """

    parts: ClassVar[tuple[type, ...]] = (Round,)

    def __init__(
        self,
        *,
        rounds: int = 3,
        weight: float = 1.0,
        shrink: float | Literal["auto"] | None = None,
        scale: Literal["own", "unit"] = "own",
        note: str = "",
        loud: bool = False,
        start: np.ndarray | None = None,
    ) -> None:
        self.rounds = rounds
        self.weight = weight
        self.shrink = shrink
        self.scale = scale
        self.note = note
        self.loud = loud
        self.start = start

    def _fit(self, X: ColumnChoice, y: ColumnChoice | None, spending: SpendPlan) -> None:
        rounds = whole(self.rounds, "rounds", 1, 1000)
        checked(math.isfinite(self.weight) and self.weight > 0, "weight is a number above zero.")
        features = Features.of(X)
        question = sulq.Sums((sulq.lit(1), *features.rows))
        spending.plan(rounds, *[question] * rounds)
        self._rounds = []
        for _ in range(rounds):
            found = spending.one(question, Fraction(1, rounds)).released.values()[0]
            self._rounds.append(Round(float(found[0]), tuple(float(value) for value in found[1:])))
        count = max(sum(one.count for one in self._rounds), 1.0)
        means = np.clip(np.array([one.sums for one in self._rounds]).sum(axis=0) / count, -1, 1)
        self.mean_ = features.restore(means) if self.scale == "own" and features.numeric else means
        self.count_ = float(np.mean([one.count for one in self._rounds]))
        self.spread_ = np.outer(means, means)
        self._features = features
        self._attributes = Attributes.of(X, 4)

    def transform(self, X: object) -> np.ndarray:
        self._ready()
        return self._features.transform(X) - np.clip(np.array(self._rounds[0].sums), -1, 1)


class Majority(Learner):
    """The class that most rows have."""

    kind = "classifier"

    def __init__(self, *, tries: int = 1) -> None:
        self.tries = tries

    def _fit(self, X: ColumnChoice, y: ColumnChoice | None, spending: SpendPlan) -> None:
        whole(self.tries, "tries", 1, 10)
        labels = Labels(y)
        question = sulq.Sums((sulq.lit(1),), by=(labels.row,))
        spending.plan(1, question)
        self.class_count_ = np.array(spending.one(question).released.values()).reshape(-1)
        self.classes_ = labels.classes
        self._labels = labels

    def predict(self, X: object) -> np.ndarray:
        self._ready()
        return np.full(len(np.asarray(X)), self.classes_[self.class_count_.argmax()])

    def export_text(self) -> str:
        return f"always {self.classes_[self.class_count_.argmax()]}"
