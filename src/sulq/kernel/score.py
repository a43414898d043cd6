"""Scores of candidates: a closed list of functions of exact sums and public integers.

No callable and no stated sensitivity: the plan works out from the unit how far
one person moves a score (SR5). The last key of the counts divides rows into m
cells of w sums each; a matrix has a row for each candidate and m*w columns, the
sums of a cell side by side (of a `Contrast`: m columns).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sulq.errors import QuestionError

LARGEST_ENTRY: Final = 2**31
MOST_ENTRIES: Final = 2**20
LARGEST_SHIFT: Final = 2**40
LARGEST_BIAS: Final = 2**60
_INT: Final = frozenset({int})


@dataclass(frozen=True, slots=True)
class Rank:
    """How far a cell is from holding the quantile numerator/denominator; the candidates are the cells, in order.

    With N the whole count, B the count before a cell and E that up to its end,
    the target t = numerator*N + shift and d the denominator, the score is minus
    the distance of t from the interval [d B, d E]: zero for the cell that holds the
    row of that rank. A chosen cell of score -s holds the quantile whose rank is at
    most s/d rows away. `shift` moves the rank by shift/d rows: what is asked of
    minima and maxima, whose own rank is at the very edge.
    """

    numerator: int
    denominator: int
    shift: int = 0

    def __post_init__(self) -> None:
        whole = all(type(n) is int for n in (self.numerator, self.denominator, self.shift))
        if not whole or not 0 <= self.numerator <= self.denominator <= LARGEST_ENTRY or self.denominator < 1:
            raise QuestionError("bad-literal", "A rank is a fraction from 0 to 1 of whole numbers.")
        if abs(self.shift) > LARGEST_SHIFT:
            raise QuestionError("too-large", "A rank is shifted by at most 2^40.")


@dataclass(frozen=True, slots=True)
class Linear:
    """Candidate c scores the sum over the sums s of matrix[c][s] times the sum."""

    matrix: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        check(self.matrix)


@dataclass(frozen=True, slots=True)
class NegAbs:
    """Candidate c scores minus the absolute value of the sum over the sums s of matrix[c][s] times the sum."""

    matrix: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        check(self.matrix)


@dataclass(frozen=True, slots=True)
class Diagonal:
    """Candidate c scores factors[c] times the c-th sum, or with `folded` minus the absolute value of that.

    What `Linear`, or `NegAbs`, scores by a matrix of these factors on its diagonal and zeros elsewhere:
    a candidate for each sum, without a number for each pair of them.
    """

    factors: tuple[int, ...]
    folded: bool = False

    def __post_init__(self) -> None:
        if not _nested(self.factors, 1) or not self.factors or type(self.folded) is not bool:
            raise QuestionError("bad-question", "A diagonal score has a factor for each sum, and is folded or not.")
        if len(self.factors) > MOST_ENTRIES:
            raise QuestionError("too-large", f"A score has at most {MOST_ENTRIES} factors.")
        _whole(self.factors, LARGEST_ENTRY, "A factor", "2^31")


@dataclass(frozen=True, slots=True)
class Contrast:
    """Which sums differ most between the last key's cells: a difference weighed by public integers, either way.

    `weights`: for each choice a matrix with a row for each contrast and a column for each of the m cells.
    Of w sums a cell, candidate g*w + j scores |sum over the cells of weights[choice][g][cell] times their
    j-th sum|: all sums are looked at in all contrasts.
    """

    weights: tuple[tuple[tuple[int, ...], ...], ...]

    def __post_init__(self) -> None:
        if not _nested(self.weights, 3) or not self.weights or len({len(matrix) for matrix in self.weights}) != 1:
            raise QuestionError("bad-question", "Every choice has as many contrasts.")
        check(tuple(row for matrix in self.weights for row in matrix))


@dataclass(frozen=True, slots=True)
class NegMaxAbs:
    """Minus the farthest of some statistics from where a candidate says they are (S3.29).

    Statistic h is x_h = sum over the sums s of matrix[h][s] times the sum. Candidate c
    scores -max over h of |x_h - targets[c][h] * b|. Without a `base` b is one: targets are
    whole numbers of the statistics' own unit. With one, b is the sum over s of
    base[s] times the sum: of ones and counts the secret number of rows, so that targets
    are fractions of the table, and nobody needs to know how large it is (SR6).
    """

    matrix: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]
    base: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _aimed(self.matrix, self.targets, self.base)


@dataclass(frozen=True, slots=True)
class NegL1:
    """Minus how far some statistics are, all together, from where a candidate says they are.

    As `NegMaxAbs`, but candidate c scores -sum over h of |x_h - targets[c][h] * b|.
    """

    matrix: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]
    base: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _aimed(self.matrix, self.targets, self.base)


@dataclass(frozen=True, slots=True)
class Distance:
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

    def __post_init__(self) -> None:
        listed = _nested(self.targets, 2) and _nested(self.weights, 1) and _nested(self.biases, 1)
        if not listed or not len(self.targets) == len(self.weights) == len(self.biases) or not all(self.targets):
            raise QuestionError("bad-question", "Every group has targets, a weight and a bias.")
        if not self.targets or sum(map(len, self.targets)) > MOST_ENTRIES:
            raise QuestionError("too-large", f"A score has 1 to {MOST_ENTRIES} targets.")
        _whole((n for group in self.targets for n in group), LARGEST_SHIFT, "A target", "2^40")
        _whole(self.weights, LARGEST_ENTRY, "A weight", "2^31")
        _whole(self.biases, LARGEST_BIAS, "A bias", "2^60")


def _aimed(matrix: tuple[tuple[int, ...], ...], targets: tuple[tuple[int, ...], ...], base: tuple[int, ...]) -> None:
    """Insist on a target for each candidate and statistic, and a base that goes with the sums or is left out."""
    check(matrix)
    if (
        not _nested(targets, 2)
        or not _nested(base, 1)
        or not targets
        or any(len(row) != len(matrix) for row in targets)
    ):
        raise QuestionError("bad-question", "Every candidate has a target for each row of the score's matrix.")
    if len(targets) * len(matrix) > MOST_ENTRIES:
        raise QuestionError("too-large", f"A score has at most {MOST_ENTRIES} targets.")
    _whole((n for row in targets for n in row), LARGEST_SHIFT, "A target", "2^40")
    if base:
        check((base,))
    if len(base) not in (0, len(matrix[0])):
        raise QuestionError("bad-question", "A score's base has a number for each column of its matrix.")


def _nested(value: object, depth: int) -> bool:
    """Whether a value is a tuple, or list, of tuples of so many levels."""
    return isinstance(value, (tuple, list)) and (depth == 1 or all(_nested(item, depth - 1) for item in value))


def _whole(numbers: Iterable[int], largest: int, what: str, most: str) -> None:
    if any(type(n) is not int or abs(n) > largest for n in numbers):
        raise QuestionError("bad-literal", f"{what} is a whole number of at most {most}.")


def check(matrix: tuple[tuple[int, ...], ...]) -> None:
    """Insist on a rectangle of whole numbers, not too many and none too large."""
    if not _nested(matrix, 2) or not matrix or not matrix[0] or any(len(row) != len(matrix[0]) for row in matrix):
        raise QuestionError("bad-question", "A score's matrix has a row for each candidate, all of one length.")
    if len(matrix) * len(matrix[0]) > MOST_ENTRIES:
        raise QuestionError("too-large", f"A score's matrix holds at most {MOST_ENTRIES} numbers.")
    whole = _INT.issuperset(map(type, itertools.chain.from_iterable(matrix)))  # a million numbers, so not one by one
    if not whole or max(map(max, matrix)) > LARGEST_ENTRY or min(map(min, matrix)) < -LARGEST_ENTRY:
        raise QuestionError("bad-literal", "A score's matrix holds whole numbers of at most 2^31.")


Aimed = NegMaxAbs | NegL1
Score = Rank | Linear | NegAbs | Diagonal | Contrast | NegMaxAbs | NegL1 | Distance
SCORES: Final = (Rank, Linear, NegAbs, Diagonal, Contrast, NegMaxAbs, NegL1, Distance)
