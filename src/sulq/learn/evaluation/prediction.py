"""What a fitted model says of a row, as row functions: its public weights, tables and trees meet the row there.

Nothing callable crosses the Oracle. Weights and centres are whole numbers on a public grid before they meet a row
(SR16), so a row whose two best scores are nearer than that grid may be told otherwise than by `predict` on an ordinary
array (docs/guide/learn/evaluate.md has the measured shares).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from sulq.errors import QuestionError
from sulq.language.kinds import Floats
from sulq.language.rowfn import Bins, Choice, Compare, Greatest, Lit, Lookup, Relabel, RowFn

# Log-odds that grades are cut at, on either side of 0: fine where most scores lie, coarse in the tails.
STEPS: Final = (*(i / 5 for i in range(1, 16)), *(3 + i / 2 for i in range(1, 7)), 8.0, 11.0, 16.0, 24.0)
CALIBRATED: Final = 10  # equal parts of the probability, of a calibration curve


@dataclass(frozen=True, slots=True, eq=False)
class ClassPrediction:
    """The class a row is told to have: `places[c]`, by its number, for a row in cell `c` of `key`.

    Every row is in a cell. Of two classes either `odds` says how likely the second is, on a logarithmic scale with
    `unit` as one, or `shares` does, for each cell; of a rule that knows yes and no alone neither.
    """

    key: RowFn
    places: tuple[int, ...]
    odds: RowFn | None = None
    shares: tuple[float, ...] = ()
    unit: float = 1.0
    calibrated: bool = True  # whether odds mean a probability

    @classmethod
    def of_odds(cls, odds: RowFn, unit: float = 1.0, *, calibrated: bool = True) -> ClassPrediction:
        """Two classes: the second where its log-odds are positive."""
        key = Choice(((Compare(">", odds, Lit(0)), 1),), (0, 1), 0)
        return cls(key, (0, 1), odds, unit=unit, calibrated=calibrated)

    @classmethod
    def of(cls, scores: Sequence[RowFn], classes: int) -> ClassPrediction:
        """The log-odds of two classes, or a score for each of any other number."""
        return cls.of_odds(scores[0]) if classes == 2 else cls.of_scores(scores)

    @classmethod
    def of_scores(cls, scores: Sequence[RowFn]) -> ClassPrediction:
        """The class of the highest score, the first of equal ones."""
        several = len(scores)
        # Where no class before is the highest, one that no later score passes is.
        branches = tuple((Compare(">=", one, Greatest(tuple(scores[i + 1 :]))), i) for i, one in enumerate(scores[:-1]))
        key = Choice(branches or ((Lit(True), 0),), tuple(range(several)), several - 1)
        return cls(key, tuple(range(several)))

    @classmethod
    def of_rule(cls, rule: RowFn) -> ClassPrediction:
        """The second of two classes where a condition holds."""
        return cls(Choice(((rule, 1),), (0, 1), 0), (0, 1))

    @property
    def predicted(self) -> RowFn:
        """The number of the predicted class as a key; classes that are never predicted are no labels of it."""
        return Relabel(self.key, self.places)

    @property
    def told(self) -> tuple[int, ...]:
        """The numbers of the classes that may be predicted, in the order of that key."""
        return tuple(sorted(set(self.places)))

    def named(self, classes: Sequence[object]) -> RowFn:
        """The predicted class as a key, by its own name."""
        return Relabel(self.key, tuple(_plain(classes[place]) for place in self.places))

    def right(self, label: RowFn, size: int) -> RowFn:
        """1 where the label is the predicted class, 0 where it is another; missing where there is no label."""
        table = tuple((int(place == own),) for own in range(size) for place in self.places)
        return Lookup((label, self.key), table)

    def grades(self, cuts: Literal["odds", "parts"]) -> tuple[RowFn, Floats]:
        """Cells by how likely the second class is, and the probability in the middle of each.

        `cuts`: "odds" are many, finest about even odds and none equal; "parts" are ten equal parts of the probability.
        """
        if self.odds is None:
            shares = self.shares or tuple(float(place) for place in self.places)
            if cuts == "odds":
                ranked = sorted(set(shares))
                return Relabel(self.key, tuple(ranked.index(share) for share in shares)), np.array(ranked)
            parts = tuple(min(int(share * CALIBRATED), CALIBRATED - 1) for share in shares)
            return Relabel(self.key, parts), (np.array(sorted(set(parts))) + 0.5) / CALIBRATED
        if cuts == "odds":
            inner = self.unit * np.array([*(-step for step in reversed(STEPS)), 0.0, *STEPS])
        else:
            chance = np.arange(1, CALIBRATED) / CALIBRATED
            inner = self.unit * np.log(chance / (1 - chance))
        end = 2 * float(inner[-1])
        edges = (-end, *inner.tolist(), end)
        middles = (np.array(edges[1:]) + np.array(edges[:-1])) / (2 * self.unit)
        chance = 1 / (1 + np.exp(-middles))
        if cuts == "parts":
            chance = (np.arange(CALIBRATED) + 0.5) / CALIBRATED
        return Bins(self.odds.clip(-end, end), edges), chance


@dataclass(frozen=True, slots=True, eq=False)
class NumberPrediction:
    """The number that a row is told to have, within public bounds; and from where to where the model knows y to lie.

    Judged is y as far as it lies there: what is beyond counts as the end, so that bounds far wider than the rows do
    not drown a score in noise.
    """

    value: RowFn
    window: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class ClusterPrediction:
    """The cluster a row is told to be in, and its squared distance from that cluster's centre."""

    key: RowFn
    distance: RowFn


@dataclass(frozen=True, slots=True, eq=False)
class HeldPart:
    """Of a row's squared distance from a point what some directions hold, and what they do not."""

    held: RowFn
    rest: RowFn


Prediction = ClassPrediction | NumberPrediction | ClusterPrediction | HeldPart


def two_classes(prediction: ClassPrediction, classes: Sequence[object], what: str) -> None:
    """Refuse what is told of two classes alone.

    Raises:
        QuestionError: `wrong-kind`: there are other than two.
    """
    if len(classes) != 2 or (prediction.odds is None and set(prediction.places) - {0, 1}):
        raise QuestionError(
            "wrong-kind",
            f"{what} is of two classes; this model has {len(classes)}.",
            "Ask for its confusion matrix: model.confusion(X, y, spend=...).",
        )


def added(terms: Sequence[RowFn]) -> RowFn:
    """Terms added up two by two, so that even of hundreds no expression is deep."""
    found = list(terms)
    while len(found) > 1:
        found = [a + b for a, b in zip(found[::2], found[1::2], strict=False)] + found[len(found) & ~1 :]
    return found[0]


def _plain(label: object) -> int | float | str | bool:
    found = label.item() if isinstance(label, np.generic) else label
    assert isinstance(found, (bool, int, float, str))  # noqa: S101 - a declared class is nothing else
    return found
