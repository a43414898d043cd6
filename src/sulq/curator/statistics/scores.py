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

from sulq.errors import QuestionError
from sulq.terms.engine import Block
from sulq.terms.kinds import Integers, Objects
from sulq.terms.score import Linear, NegAbs, Rank, Score

LIMIT: Final = 2**61  # scores are clamped to this on either side: their gaps fit 64 bits


@dataclass(frozen=True, slots=True)
class Span:
    """How far apart one row moves two scores: as it comes or goes, and as it is exchanged for another."""

    single: int
    pair: int


def candidates(score: Score, blocks: tuple[Block, ...], cells: int) -> int:
    """How many there are to choose from; refuses a score that does not fit the sums."""
    width = sum(block.width for block in blocks)
    if isinstance(score, Rank):
        if width != 1:
            raise QuestionError("bad-question", "A rank is of one count.")
        return cells
    if len(score.matrix[0]) != cells * width:
        raise QuestionError(
            "bad-question", f"The score's matrix has {len(score.matrix[0])} columns for {cells * width} sums."
        )
    return len(score.matrix)


def span(score: Score, blocks: tuple[Block, ...], cells: int) -> Span:
    """The span of one row. A row may also count as zero: filtered, missing or clamped (SR1)."""
    low = [min(n, 0) for block in blocks for n in block.low]
    high = [max(n, 0) for block in blocks for n in block.high]
    if isinstance(score, Rank):
        # A row of value v moves d*E - t (d*B - t) by (d - numerator)*v where E (B) counts it, else by -numerator*v.
        up = max((score.denominator - score.numerator) * high[0], -score.numerator * low[0])
        down = min((score.denominator - score.numerator) * low[0], -score.numerator * high[0])
        return Span(2 * max(up, -down), 2 * (up - down))
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

    In 64 bits where that is exact for these sums, else in whole numbers of any size.
    """
    if isinstance(score, Rank):
        return _clamped(_rank(score, _wide(sums[:, :, 0], 3 * score.denominator, abs(score.shift))))
    flat = sums.reshape(len(sums), -1)
    largest = max(abs(n) for row in score.matrix for n in row)
    wide = _wide(flat, largest, 0)
    found = wide @ np.array(score.matrix, dtype=wide.dtype).T
    return _clamped(-np.abs(found) if isinstance(score, NegAbs) else found)


def _rank(score: Rank, counts: Integers) -> Integers:
    upto = np.cumsum(counts, axis=1)
    target = score.numerator * upto[:, -1:] + score.shift
    short = target - score.denominator * upto
    past = score.denominator * (upto - counts) - target
    found: Integers = -np.maximum(np.maximum(short, past), 0)
    return found


def _wide(sums: Integers, factor: int, more: int) -> Integers:
    """The sums in a type that holds their weighted total exactly."""
    total = int(np.abs(sums.astype(np.float64)).sum(axis=1).max(initial=0.0) * 1.01) + 1
    return sums if total * factor + more < LIMIT else sums.astype(object)


def _clamped(found: Integers) -> Integers:
    return np.clip(found, -LIMIT, LIMIT).astype(np.int64)
