"""The numbers to ask for given counts of a small table, by which Gaussian noise leaves them the least error.

Counts are rows of a matrix W over the cells of a table. A strategy is a matrix A whose products with the table are
asked; a row of the table moves them by a column of A, so noise costs the largest diagonal entry of X = A'A, and a count
w then has the variance w X^+ w' for each unit of it. For given weights y of the counts' variances the best X solves
G = X L X, with G = W' diag(y) W and L diagonal: X = L^(-1/2) (L^(1/2) G L^(1/2))^(1/2) L^(-1/2), where L is such that
every diagonal entry of X is one; L <- diag of the root in the middle comes to it from any start.

What is asked is whole: A is a whole matrix times independent rows of W, so every count is read without bias, whatever
rounding does to A; rounding costs a little noise, and what it costs is in the variances.

Source: LMHMR15, section 4 (the matrix mechanism); DMRST22, section 3 (the fixed point); docs/theory/contingency.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.language.kinds import Floats, Integers

STEPS: Final = 150  # of the fixed point, and of the weights between its steps
SINGULAR: Final = 1e-10  # of the largest eigenvalue: what arithmetic leaves of a zero
ENTRY: Final = 2**12  # about the largest entry of a strategy
PRECISE: Final = 1e-4  # of the error: where so many steps gain less, they end
PATIENCE: Final = 8
LEAST: Final = 1e-12  # of eigenvalues and of what a cell counts: below that arithmetic divides by nothing


@dataclass(frozen=True, slots=True, eq=False)
class Strategy:
    """`asked`: a column for each cell, whole numbers. `reads`: counts from the answers, a row for each count."""

    asked: Integers
    reads: Floats

    @property
    def variances(self) -> Floats:
        """Of the counts, where the answers have independent noise of variance one."""
        return np.asarray((self.reads**2).sum(axis=1))


def strategy(counts: Integers, query: Integers, weights: Floats) -> Strategy | None:
    """The best found for the sum over queries of weight times the deviation of the query's noisiest count.

    None where weights are so unlike that, in whole numbers, the answers do not tell all counts.

    `counts`: 0 or 1, a row for each count, a column for each cell. `query`: of each count, the one it belongs to.
    """
    columns, place = np.unique(counts, axis=1, return_inverse=True)
    merged = columns.astype(np.float64)
    rows = _independent(merged)
    basis = merged[rows]
    asked = np.zeros((len(rows), columns.shape[1]))
    live = columns.any(axis=0)
    asked[:, live] = _best(merged[:, live], query, weights, len(rows))
    if not asked.any():
        return None
    mixed = asked @ np.linalg.pinv(basis)
    whole = np.rint(mixed * (ENTRY / np.abs(asked).max())).astype(np.int64)
    if np.linalg.matrix_rank(whole.astype(np.float64)) < len(rows):
        return None
    reads = merged @ np.linalg.pinv(basis) @ np.linalg.inv(whole.astype(np.float64))
    return Strategy((whole @ columns[rows].astype(np.int64))[:, np.ravel(place)], reads)


def _independent(matrix: Floats) -> Integers:
    """Rows that span all others: each the farthest from those before it."""
    left, found = matrix.copy(), []
    for _ in range(min(matrix.shape)):
        far = (left**2).sum(axis=1)
        place = int(far.argmax())
        if far[place] <= SINGULAR * matrix.shape[1]:
            break
        found.append(place)
        unit = left[place] / far[place] ** 0.5
        left -= np.outer(left @ unit, unit)
    return np.array(sorted(found))


def _best(work: Floats, query: Integers, weights: Floats, rank: int) -> Floats:
    """The strategy, not yet whole, of the least error seen on the way; `work` has no cell that no count needs."""
    many = np.bincount(query, minlength=len(weights)).astype(np.float64)
    share, own = 1.0 / many[query], weights / np.sqrt(many)
    dual = np.ones(work.shape[1])
    still, least, best = 0, np.inf, np.zeros((rank, work.shape[1]))
    for _ in range(STEPS):
        root = np.sqrt(dual)
        gram = (work * (own[query] * share)[:, None]).T @ work
        values, vectors = np.linalg.eigh(root[:, None] * gram * root)
        values, vectors = np.sqrt(np.maximum(values[-rank:], LEAST * values[-1])), vectors[:, -rank:]
        asked = np.sqrt(values)[:, None] * vectors.T / root
        price = (asked**2).sum(axis=0).max()
        variance = price * ((work @ (vectors * root[:, None] / np.sqrt(values))) ** 2).sum(axis=1)
        worst = np.zeros(len(weights))
        np.maximum.at(worst, query, variance)
        error = float(weights @ np.sqrt(worst))
        still = still + 1 if error > (1 - PRECISE) * least else 0
        if error < least:
            least, best = error, asked
        if still == PATIENCE:
            break
        share = share * (variance / worst[query]) ** 2
        share /= np.bincount(query, share)[query]
        own = weights / np.sqrt(worst)
        dual = ((vectors**2) * values).sum(axis=1)
        dual = np.maximum(dual / dual.mean(), LEAST)
    return best
