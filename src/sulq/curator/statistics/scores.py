"""Scores of candidates, exact, and how far one row moves them apart.

A choice depends on scores only through their differences, so what counts is the
span of a move: the largest rise of any candidate's score plus the largest fall of
any, either at least zero. A span is sublinear in the move: k rows span at most
k times what one row does, and rows of different cells move different choices.

Privacy: the spans of one row, and of one row exchanged for another, are at most
those given here, whatever cell and value within its bounds, zero included, a row has.
Source: docs/theory/choose.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.curator.statistics.wide import Wide
from sulq.errors import QuestionError
from sulq.terms.engine import Block
from sulq.terms.kinds import Integers, Objects
from sulq.terms.score import Contrast, Linear, NegAbs, Rank, Score

LIMIT: Final = 2**61  # scores are clamped to this on either side: their gaps fit 64 bits
MOST_WORK: Final = 2**30  # products of a weight and a sum, of all choices of a question
PIECE: Final = 2**18  # numbers reckoned at once


@dataclass(frozen=True, slots=True)
class Span:
    """How far apart one row moves two scores: as it comes or goes, and as it is exchanged for another."""

    single: int
    pair: int


def candidates(score: Score, blocks: tuple[Block, ...], cells: int, choices: int = 1) -> int:
    """How many there are to choose from in each choice; refuses a score that does not fit the sums."""
    width = sum(block.width for block in blocks)
    if isinstance(score, Rank):
        if width != 1:
            raise QuestionError("bad-question", "A rank is of one count.")
        return cells
    if isinstance(score, Contrast):
        if (len(score.weights), len(score.weights[0][0])) != (choices, cells):
            raise QuestionError("bad-question", f"The contrasts must be of {choices} choices and {cells} cells.")
        _bearable(choices * len(score.weights[0]) * cells * width)
        return len(score.weights[0]) * width
    if len(score.matrix[0]) != cells * width:
        raise QuestionError(
            "bad-question", f"The score's matrix has {len(score.matrix[0])} columns for {cells * width} sums."
        )
    _bearable(choices * len(score.matrix) * cells * width)
    return len(score.matrix)


def _bearable(work: int) -> None:
    if work > MOST_WORK:
        raise QuestionError("too-large", f"The scores would take {work:,} products, more than {MOST_WORK:,}.")


def span(score: Score, blocks: tuple[Block, ...], cells: int) -> Span:
    """The span of one row. A row may also count as zero: filtered, missing or clamped (SR1)."""
    low = [min(n, 0) for block in blocks for n in block.low]
    high = [max(n, 0) for block in blocks for n in block.high]
    if isinstance(score, Rank):
        # A row of value v moves d*E - t (d*B - t) by (d - numerator)*v where E (B) counts it, else by -numerator*v.
        up = max((score.denominator - score.numerator) * high[0], -score.numerator * low[0])
        down = min((score.denominator - score.numerator) * low[0], -score.numerator * high[0])
        return Span(2 * max(up, -down), 2 * (up - down))
    if isinstance(score, Contrast):
        # A row is in one cell: |x| moves by at most |weight * value|, up for one candidate and down for another.
        far_out = max(abs(n) for matrix in score.weights for row in matrix for n in row)
        single = 2 * far_out * max(max(-a, b) for a, b in zip(low, high, strict=True))
        return Span(single, 2 * single)
    shape = (len(score.matrix), cells, len(low))
    matrix = np.array(score.matrix, dtype=object).reshape(shape)
    far = np.array([max(-a, b) for a, b in zip(low, high, strict=True)], dtype=object)
    if isinstance(score, Linear):
        zero = np.zeros_like(matrix[0])
        apart = np.maximum(matrix.max(axis=0), zero) - np.minimum(matrix.min(axis=0), zero)
        single = int((apart * far).sum(axis=1).max())
        return Span(single, 2 * single)
    return _neg_abs(matrix, np.array(low, dtype=object), np.array(high, dtype=object))


def _neg_abs(matrix: Objects, low: Objects, high: Objects) -> Span:
    """|x| moves by at most |x's own move|, up for one candidate and down for another."""
    most = np.maximum(matrix * low, matrix * high).sum(axis=2)
    least = np.minimum(matrix * low, matrix * high).sum(axis=2)
    single = int(max(most.max(), -least.min()))
    pair = int((most.max(axis=1) - least.min(axis=1)).max())
    return Span(2 * single, 2 * pair)


def scores(score: Score, sums: Integers) -> Integers:
    """The candidates' scores for each choice, from sums of shape (choices, cells, width), clamped to +-2^61.

    Exact, and the same work whatever the sums are (T34).
    """
    if isinstance(score, Rank):
        step = _step(min(sums.shape[1], PIECE))
        return np.concatenate([_rank(score, sums[i : i + step, :, 0]) for i in range(0, len(sums), step)])
    if isinstance(score, Contrast):
        several = zip(np.array(score.weights, dtype=np.int64), sums, strict=True)
        return np.stack([np.abs(Wide.dot(weights, own).clamped(LIMIT)).ravel() for weights, own in several])
    matrix, flat = np.array(score.matrix, dtype=np.int64), sums.reshape(len(sums), -1)
    found = np.empty((len(sums), len(matrix)), dtype=np.int64)
    step = _step(max(matrix.shape))
    for i in range(0, len(sums), step):
        found[i : i + step] = Wide.dot(matrix, flat[i : i + step].T).clamped(LIMIT).T
    return -np.abs(found) if isinstance(score, NegAbs) else found


def _rank(score: Rank, counts: Integers) -> Integers:
    """Piece by piece of the cells, the running total going from one to the next."""
    starts = range(0, counts.shape[1], PIECE)
    whole = Wide.of(np.zeros((len(counts), 1), dtype=np.int64))
    for i in starts:
        whole = whole + Wide.of(counts[:, i : i + PIECE]).totals()[:, -1:]
    target = whole.times(score.numerator) + Wide.of(np.full((1, 1), score.shift))
    before = Wide.of(np.zeros((len(counts), 1), dtype=np.int64))
    found = np.empty_like(counts)
    for i in starts:
        own = Wide.of(counts[:, i : i + PIECE])
        upto = own.totals() + before
        short = (target - upto.times(score.denominator)).clamped(LIMIT)
        past = ((upto - own).times(score.denominator) - target).clamped(LIMIT)
        found[:, i : i + PIECE] = -np.maximum(np.maximum(short, past), 0)
        before = upto[:, -1:]
    return found


def _step(each: int) -> int:
    """How many choices are reckoned at once: what is in memory does not grow with their number."""
    return max(1, PIECE // max(1, each))
