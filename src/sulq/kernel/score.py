"""Scores of candidates: a closed list of functions of exact sums and public integers.

No callable and no stated sensitivity: the plan works out from the unit how far
one person moves a score (SR5). The last key of the counts divides rows into m
cells of w sums each; a matrix has a row for each candidate and m*w columns, the
sums of a cell side by side (of a `Contrast`: m columns).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
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
class _Weighed:
    """Candidates that are weighed by the rows of a matrix."""

    matrix: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        check(self.matrix)


@dataclass(frozen=True, slots=True)
class Linear(_Weighed):
    """Candidate c scores the sum over the sums s of matrix[c][s] times the sum."""


@dataclass(frozen=True, slots=True)
class NegAbs(_Weighed):
    """Candidate c scores minus the absolute value of the sum over the sums s of matrix[c][s] times the sum."""


@dataclass(frozen=True, slots=True)
class Diagonal:
    """Candidate c scores factors[c] times the c-th sum, or with `folded` minus the absolute value of that.

    What `Linear`, or `NegAbs`, scores by a matrix of these factors on its diagonal and zeros elsewhere:
    a candidate for each sum, without a number for each pair of them.
    """

    factors: tuple[int, ...]
    folded: bool = False

    def __post_init__(self) -> None:
        check((self.factors,))
        if type(self.folded) is not bool:
            raise QuestionError("bad-question", "A diagonal score is folded or not.")


@dataclass(frozen=True, slots=True)
class Contrast:
    """Which sums differ most between the last key's cells: a difference weighed by public integers, either way.

    `weights`: for each choice a matrix with a row for each contrast and a column for each of the m cells.
    Of w sums a cell, candidate g*w + j scores |sum over the cells of weights[choice][g][cell] times their
    j-th sum|: all sums are looked at in all contrasts.
    """

    weights: tuple[tuple[tuple[int, ...], ...], ...]

    def __post_init__(self) -> None:
        if not _nested(self.weights, 3) or len({len(matrix) for matrix in self.weights}) != 1:
            raise QuestionError("bad-question", "Every choice has as many contrasts.")
        check(tuple(itertools.chain.from_iterable(self.weights)))


@dataclass(frozen=True, slots=True)
class Aimed:
    """Some statistics of the sums, and where each candidate says they are: `NegMaxAbs` says how."""

    matrix: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]
    base: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check(self.matrix)
        check(self.targets, LARGEST_SHIFT, length=len(self.matrix))
        check((self.base or self.matrix[0],), length=len(self.matrix[0]))


@dataclass(frozen=True, slots=True)
class NegMaxAbs(Aimed):
    """Minus the farthest of some statistics from where a candidate says they are (S3.29).

    Statistic h is x_h = sum over the sums s of matrix[h][s] times the sum. Candidate c
    scores -max over h of |x_h - targets[c][h] * b|. Without a `base` b is one: targets are
    whole numbers of the statistics' own unit. With one, b is the sum over s of
    base[s] times the sum: of ones and counts the secret number of rows, so that targets
    are fractions of the table, and nobody needs to know how large it is (SR6).
    """


@dataclass(frozen=True, slots=True)
class NegL1(Aimed):
    """Minus how far some statistics are, all together, from where a candidate says they are.

    As `NegMaxAbs`, but candidate c scores -sum over h of |x_h - targets[c][h] * b|.
    """


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
        check(self.targets, LARGEST_SHIFT, ragged=True)
        check((self.weights,), length=len(self.targets))
        check((self.biases,), LARGEST_BIAS, length=len(self.targets))


def _nested(value: object, depth: int) -> bool:
    """Whether a value is a tuple, or list, of tuples of so many levels."""
    return isinstance(value, (tuple, list)) and (depth == 1 or all(_nested(item, depth - 1) for item in value))


def check(
    rows: Sequence[Sequence[int]], largest: int = LARGEST_ENTRY, *, length: int | None = None, ragged: bool = False
) -> None:
    """Insist on rows of whole numbers, of one length unless ragged, not too many numbers and none too large."""
    if not _nested(rows, 2) or not rows or not all(rows):
        raise QuestionError("bad-question", "A score has rows of whole numbers, none of them empty.")
    if not ragged and any(len(row) != (length or len(rows[0])) for row in rows):
        raise QuestionError("bad-question", "The rows of a score's numbers must be as long as what they are for.")
    if sum(map(len, rows)) > MOST_ENTRIES:
        raise QuestionError("too-large", f"A score holds at most {MOST_ENTRIES} numbers.")
    whole = _INT.issuperset(map(type, itertools.chain.from_iterable(rows)))  # a million numbers, so not one by one
    if not whole or max(map(max, rows)) > largest or min(map(min, rows)) < -largest:
        raise QuestionError("bad-literal", f"A number of this score is whole and at most {largest} from zero.")


Score = Rank | Linear | NegAbs | Diagonal | Contrast | NegMaxAbs | NegL1 | Distance
SCORES: Final = (Rank, Linear, NegAbs, Diagonal, Contrast, NegMaxAbs, NegL1, Distance)
