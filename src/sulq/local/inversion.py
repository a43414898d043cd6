"""Reports back to counts: for each method the unbiased estimator and the variance it has, cell by cell.

This half sees reports alone: a mistake here can cost accuracy and never privacy (S0.29). Every
method's estimate of a sum of f over the people is a sum over reports of a number A(report) whose
mean is f(x) for a person of cell x; `variances` is that of A for each x.

Accuracy: unbiased, with exactly these variances [S4.19]; in closed form for one value in docs/theory/local.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError
from sulq.language.kinds import Floats, Integers
from sulq.local.methods import BitwiseResponse, HadamardResponse, KaryResponse, Response, UnaryResponse


class Inversion:
    """What a collector does with the reports of one method: p and q are those of `response.probabilities`."""

    def __init__(self, response: Response) -> None:
        p, q = response.probabilities
        self._outcomes = response.outcomes
        self._p, self._q, self._gap = float(p), float(q), float(p - q)

    def tally(self, reports: npt.NDArray[Any]) -> Integers:
        """All that estimates need of reports, how often each was given; tallies of different people add up."""
        return np.bincount(reports, minlength=self._outcomes)

    def counts(self, tally: Integers, reports: int) -> Floats:
        """Unbiased estimates of how many people are in each cell: (c - q n)/(p - q) for one reported c times."""
        return (tally.astype(np.float64) - self._q * reports) / self._gap

    def spread(self, table: Floats) -> tuple[Floats, Floats]:
        """Of a function a column: the variance of A for each cell, and how far a summand may be from its mean."""
        raise NotImplementedError


class KaryInversion(Inversion):
    """A(y) = (f(y) - q sum f)/(p - q)."""

    def spread(self, table: Floats) -> tuple[Floats, Floats]:
        """From the first two moments of f(y), y the reported cell."""
        first = self._q * table.sum(axis=0) + self._gap * table
        second = self._q * (table**2).sum(axis=0) + self._gap * table**2
        values = (table - self._q * table.sum(axis=0)) / self._gap
        return np.maximum(second - first**2, 0.0) / self._gap**2, _apart(values, table)


class UnaryInversion(Inversion):
    """A(b) = sum over cells v of f(v) (b_v - q)/(1/2 - q): bits are independent, and each is a summand."""

    def tally(self, reports: npt.NDArray[Any]) -> Integers:
        """How often each bit was set."""
        return np.asarray(reports.astype(np.bool_, copy=False).sum(axis=0, dtype=np.int64))

    def spread(self, table: Floats) -> tuple[Floats, Floats]:
        """The own bit has variance 1/4, every other q(1 - q)."""
        squares = table**2
        lies = self._q * (1 - self._q)
        variances = (lies * (squares.sum(axis=0) - squares) + squares / 4) / self._gap**2
        return np.maximum(variances, 0.0), np.abs(table).max(axis=0) * (1 - self._q) / self._gap


class HadamardInversion(Inversion):
    """A(y) = W(y)/(2p - 1), W the Walsh-Hadamard transform of f, whose cells are numbered from 1."""

    def __init__(self, response: HadamardResponse) -> None:
        super().__init__(response)
        self._cells = response.cells

    def counts(self, tally: Integers, reports: int) -> Floats:
        """One transform for all cells: the sum of signs of a cell's row, over 2p - 1."""
        signs = transformed(tally.astype(np.float64)[:, None])[:, 0]
        return signs[1 : self._cells + 1] / self._gap

    def spread(self, table: Floats) -> tuple[Floats, Floats]:
        """A place has probability (1 + (2p - 1) sign)/2^m, so the mean square is two terms of a transform."""
        rows = np.zeros((self._outcomes, table.shape[1]))
        rows[1 : self._cells + 1] = table
        values = transformed(rows)
        squares = transformed(values**2) / self._outcomes
        second = squares[0] + self._gap * squares[1 : self._cells + 1]
        return np.maximum(second / self._gap**2 - table**2, 0.0), _apart(values / self._gap, table)


class BitwiseInversion(Inversion):
    """A = f with every bit's flip undone: (1/(p - q)) ((p, -q), (-q, p)) along each bit."""

    def __init__(self, response: BitwiseResponse) -> None:
        super().__init__(response)
        self._bits = response.bits
        self._written = response.written(np.arange(math.prod(response.sizes), dtype=np.int64))

    def counts(self, tally: Integers, reports: int) -> Floats:
        """The flips undone, at the words that are records."""
        return np.asarray(self._undone(tally.astype(np.float64)[:, None])[self._written, 0])

    def spread(self, table: Floats) -> tuple[Floats, Floats]:
        """The mean square for a cell is the square as the flips would mix it."""
        rows = np.zeros((self._outcomes, table.shape[1]))
        rows[self._written] = table
        values = self._undone(rows)
        second = _along(values**2, self._bits, self._p, self._q)[self._written]
        return np.maximum(second - table**2, 0.0), _apart(values, table)

    def _undone(self, rows: Floats) -> Floats:
        return _along(rows, self._bits, self._p / self._gap, -self._q / self._gap)


def inversion(response: Response) -> Inversion:
    """The inversion of a randomiser."""
    match response:
        case KaryResponse():
            return KaryInversion(response)
        case BitwiseResponse():
            return BitwiseInversion(response)
        case UnaryResponse():
            return UnaryInversion(response)
        case HadamardResponse():
            return HadamardInversion(response)


def transformed(rows: Floats) -> Floats:
    """The Walsh-Hadamard transform of each column: signs (-1)^(bits in common), added up."""
    return _along(rows, rows.shape[0].bit_length() - 1, 1.0, 1.0, -1.0)


def _along(rows: Floats, bits: int, same: float, other: float, last: float | None = None) -> Floats:
    """The matrix ((same, other), (other, last or same)) applied along every bit of the rows' numbers."""
    last = same if last is None else last
    found, width = rows, rows.shape[1]
    for place in range(bits):
        pairs = found.reshape(-1, 2, 2**place * width)
        mixed = np.empty_like(pairs)
        mixed[:, 0] = same * pairs[:, 0] + other * pairs[:, 1]
        mixed[:, 1] = other * pairs[:, 0] + last * pairs[:, 1]
        found = mixed.reshape(rows.shape)
    return found


def _apart(values: Floats, table: Floats) -> Floats:
    """The farthest that A of any report lies from f of any cell."""
    return np.asarray(np.maximum(values.max(axis=0) - table.min(axis=0), table.max(axis=0) - values.min(axis=0)))


def shaped(reports: object, randomiser: Response) -> npt.NDArray[Any]:
    """Reports as a collector takes them: whole numbers below `outcomes`, or rows of truth values; else refused."""
    found = np.asarray(reports)
    wide = randomiser.shape
    if found.shape == wide:
        found = found[None]
    good = found.dtype.kind in "biu" and found.shape[1:] == wide and found.ndim == 1 + len(wide)
    limit = 2 if wide else randomiser.outcomes
    if not good or (found.size and not (int(found.min()) >= 0 and int(found.max()) < limit)):
        kind = f"rows of {wide[0]} truth values" if wide else f"whole numbers below {limit:,}"
        raise QuestionError("bad-reports", f"These are no reports of this method: they are {kind}.")
    return found
