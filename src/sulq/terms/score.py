"""Scores of candidates: a closed list of functions of exact sums and public integers.

No callable and no stated sensitivity: the plan works out from the unit how far
one person moves a score (SR5). The last key of the counts divides rows into m
cells of w sums each; a matrix has a row for each candidate and m*w columns, the
sums of a cell side by side (of a `Contrast`: m columns).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sulq.errors import QuestionError

LARGEST_ENTRY: Final = 2**31
MOST_ENTRIES: Final = 2**20
LARGEST_SHIFT: Final = 2**40


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
class Contrast:
    """Which sums differ most between the last key's cells: a difference weighed by public integers, either way.

    `weights`: for each choice a matrix with a row for each contrast and a column for each of the m cells.
    Of w sums a cell, candidate g*w + j scores |sum over the cells of weights[choice][g][cell] times their
    j-th sum|: all sums are looked at in all contrasts.
    """

    weights: tuple[tuple[tuple[int, ...], ...], ...]

    def __post_init__(self) -> None:
        if not self.weights or len({len(matrix) for matrix in self.weights}) != 1:
            raise QuestionError("bad-question", "Every choice has as many contrasts.")
        check(tuple(row for matrix in self.weights for row in matrix))


def check(matrix: tuple[tuple[int, ...], ...]) -> None:
    """Insist on a rectangle of whole numbers, not too many and none too large."""
    if not matrix or not matrix[0] or any(len(row) != len(matrix[0]) for row in matrix):
        raise QuestionError("bad-question", "A score's matrix has a row for each candidate, all of one length.")
    if len(matrix) * len(matrix[0]) > MOST_ENTRIES:
        raise QuestionError("too-large", f"A score's matrix holds at most {MOST_ENTRIES} numbers.")
    if any(type(n) is not int or abs(n) > LARGEST_ENTRY for row in matrix for n in row):
        raise QuestionError("bad-literal", "A score's matrix holds whole numbers of at most 2^31.")


Score = Rank | Linear | NegAbs | Contrast
SCORES: Final = (Rank, Linear, NegAbs, Contrast)
