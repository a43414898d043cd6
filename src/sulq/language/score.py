"""Scores of candidates that `Choose` may ask for: a closed list of whole numbers, checked when they are written down.

Each says its scores and gives them as the kernel has them (`form`): ranks, or weighted combinations of sums.
The kernel checks that form and works out how far one person moves the scores (SR5).
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sulq.errors import QuestionError
from sulq.kernel.scores import BITS, LARGEST_ENTRY, LARGEST_SHIFT, MOST_ENTRIES, Rank, Weighted
from sulq.language.kinds import Integers

__all__ = [
    "SCORES", "Contrast", "Diagonal", "Distance", "Linear", "NegAbs", "NegL1", "NegMaxAbs", "Rank", "Score",
    "form",
]  # fmt: skip

_INT: Final = frozenset({int})
_LARGEST_BIAS: Final = 2 ** BITS["biases"]
_NONE, _ZERO, _ONE = (np.array(numbers, dtype=np.int64) for numbers in ((), (0,), (1,)))
_PLAIN: Final = {"matrices": _NONE.reshape(1, 0, 0), "targets": _NONE, "sizes": _NONE, "base": _NONE, "weights": _ONE}


class _Combined(ABC):
    """A score of weighted combinations of sums; the kernel's form is made once, when the score is written down."""

    __slots__ = ("_form",)
    _form: Weighted

    def __post_init__(self) -> None:
        usual: dict[str, Any] = {**_PLAIN, "biases": _ZERO, "folded": False, "farthest": False}
        object.__setattr__(self, "_form", Weighted(**(usual | self.weighted())))

    @property
    def form(self) -> Weighted:
        """The score as the kernel has it."""
        if not hasattr(self, "_form"):  # a copy of a score has its fields alone
            self.__post_init__()
        return self._form

    @abstractmethod
    def weighted(self) -> dict[str, Any]:
        """The parts of the kernel's form that this score has, its numbers checked."""


@dataclass(frozen=True, slots=True)
class Linear(_Combined):
    """Candidate c scores the sum over the sums s of matrix[c][s] times the sum."""

    matrix: tuple[tuple[int, ...], ...]

    def weighted(self) -> dict[str, Any]:
        """A statistic for each candidate."""
        return {"matrices": _matrix(self.matrix)[None]}


@dataclass(frozen=True, slots=True)
class NegAbs(_Combined):
    """Candidate c scores minus the absolute value of the sum over the sums s of matrix[c][s] times the sum."""

    matrix: tuple[tuple[int, ...], ...]

    def weighted(self) -> dict[str, Any]:
        """A statistic for each candidate, folded."""
        return {"matrices": _matrix(self.matrix)[None], "weights": -_ONE, "folded": True}


@dataclass(frozen=True, slots=True)
class Diagonal(_Combined):
    """Candidate c scores factors[c] times the c-th sum, or with `folded` minus the absolute value of that.

    What `Linear`, or `NegAbs`, scores by a matrix of these factors on its diagonal and zeros elsewhere:
    a candidate for each sum, without a number for each pair of them.
    """

    factors: tuple[int, ...]
    folded: bool = False

    def weighted(self) -> dict[str, Any]:
        """The sums themselves, weighted."""
        if type(self.folded) is not bool:
            raise QuestionError("bad-question", "A diagonal score is folded or not.")
        factors = _numbers((self.factors,))
        return {"weights": -np.abs(factors) if self.folded else factors, "folded": self.folded}


@dataclass(frozen=True, slots=True)
class Contrast(_Combined):
    """Which sums differ most between the last key's cells: a difference weighed by public integers, either way.

    `weights`: for each choice a matrix with a row for each contrast and a column for each of the m cells; or one
    matrix for all choices. Of w sums a cell, candidate g*w + j scores |sum over the cells of weights[choice][g][cell]
    times their j-th sum|: all sums are looked at in all contrasts.
    """

    weights: tuple[tuple[tuple[int, ...], ...], ...]

    def weighted(self) -> dict[str, Any]:
        """A matrix for each choice, of sums in a row for each cell."""
        if not _nested(self.weights, 3) or len({len(matrix) for matrix in self.weights}) != 1:
            raise QuestionError("bad-question", "Every choice has as many contrasts.")
        rows = _matrix(tuple(itertools.chain.from_iterable(self.weights)))
        return {"matrices": rows.reshape(len(self.weights), -1, rows.shape[1]), "folded": True}


@dataclass(frozen=True, slots=True)
class _Aimed(_Combined):
    """Some statistics of the sums, and where each candidate says they are: `NegMaxAbs` says how."""

    matrix: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]
    base: tuple[int, ...] = ()

    def weighted(self) -> dict[str, Any]:
        """All gaps of a candidate, the farthest of them or all together."""
        matrix = _matrix(self.matrix)
        targets = _matrix(self.targets, LARGEST_SHIFT, len(matrix))
        base = _matrix((self.base,), length=matrix.shape[1])[0] if self.base else _NONE
        sizes = np.full(len(targets), len(matrix), dtype=np.int64)
        return {
            "matrices": matrix[None],
            "targets": targets.ravel(),
            "sizes": sizes,
            "base": base,
            "weights": -_ONE,
            "folded": True,
            "farthest": isinstance(self, NegMaxAbs),
        }


@dataclass(frozen=True, slots=True)
class NegMaxAbs(_Aimed):
    """Minus the farthest of some statistics from where a candidate says they are (S3.29).

    Statistic h is x_h = sum over the sums s of matrix[h][s] times the sum. Candidate c
    scores -max over h of |x_h - targets[c][h] * b|. Without a `base` b is one: targets are
    whole numbers of the statistics' own unit. With one, b is the sum over s of
    base[s] times the sum: of ones and counts the secret number of rows, so that targets
    are fractions of the table, and nobody needs to know how large it is (SR6).
    """


@dataclass(frozen=True, slots=True)
class NegL1(_Aimed):
    """Minus how far some statistics are, all together, from where a candidate says they are.

    As `NegMaxAbs`, but candidate c scores -sum over h of |x_h - targets[c][h] * b|.
    """


@dataclass(frozen=True, slots=True)
class Distance(_Combined):
    """Which group of sums is farthest from its public targets: what an estimate explains worst.

    The sums of all cells, side by side, are divided into consecutive groups: the first
    len(targets[0]) of them are group 0, and so on. Candidate g scores
    weights[g] * (sum over its sums j of |sum_j - targets[g][j]|) + biases[g]. One value of the
    counts for each group, a `Lookup` with a single one in each row, makes a group a
    marginal, which one row moves by one however many cells it has.
    """

    targets: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]
    biases: tuple[int, ...]

    def weighted(self) -> dict[str, Any]:
        """The sums themselves, in groups."""
        targets = _numbers(self.targets, LARGEST_SHIFT)
        sizes = np.fromiter(map(len, self.targets), dtype=np.int64)
        weights = _matrix((self.weights,), length=len(sizes))[0]
        biases = _matrix((self.biases,), _LARGEST_BIAS, len(sizes))[0]
        return {"targets": targets, "sizes": sizes, "weights": weights, "biases": biases, "folded": True}


Score = Rank | Linear | NegAbs | Diagonal | Contrast | NegMaxAbs | NegL1 | Distance
SCORES: Final = (Rank, Linear, NegAbs, Diagonal, Contrast, NegMaxAbs, NegL1, Distance)


def form(score: Score) -> Rank | Weighted:
    """A score as the kernel has it."""
    return score if isinstance(score, Rank) else score.form


def _nested(value: object, depth: int) -> bool:
    """Whether a value is a tuple, or list, of tuples of so many levels."""
    return isinstance(value, (tuple, list)) and (depth == 1 or all(_nested(item, depth - 1) for item in value))


def _numbers(rows: Sequence[Sequence[int]], largest: int = LARGEST_ENTRY) -> Integers:
    """The whole numbers of some rows, one after the other: not too many, and none too large."""
    if not _nested(rows, 2) or not rows or not all(rows):
        raise QuestionError("bad-question", "A score has rows of whole numbers, none of them empty.")
    if sum(map(len, rows)) > MOST_ENTRIES:
        raise QuestionError("too-large", f"A score holds at most {MOST_ENTRIES} numbers.")
    whole = _INT.issuperset(map(type, itertools.chain.from_iterable(rows)))  # a million numbers, so not one by one
    if not whole or max(map(max, rows)) > largest or min(map(min, rows)) < -largest:
        raise QuestionError("bad-literal", f"A number of this score is whole and at most {largest} from zero.")
    return np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64)


def _matrix(rows: Sequence[Sequence[int]], largest: int = LARGEST_ENTRY, length: int | None = None) -> Integers:
    """Rows of whole numbers that are as long as each other, or as long as told."""
    if not _nested(rows, 2) or any(len(row) != (length or len(rows[0])) for row in rows):
        raise QuestionError("bad-question", "The rows of a score's numbers must be as long as what they are for.")
    return _numbers(rows, largest).reshape(len(rows), -1)
