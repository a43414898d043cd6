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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from sulq.errors import QuestionError
from sulq.kernel.arrays import Integers, Objects
from sulq.kernel.score import Aimed, Contrast, Diagonal, Distance, Linear, NegAbs, NegMaxAbs, Rank, Score
from sulq.kernel.wide import Wide

LIMIT: Final = 2**61  # scores are clamped to this on either side: their gaps fit 64 bits
MOST_GAPS: Final = 2**24  # distances from targets that all choices of a question look at together
MOST_WORK: Final = 2**30  # products of a weight and a sum, of all choices of a question
PIECE: Final = 2**18  # numbers reckoned at once
Whole = Integers | Objects  # whole numbers of 64 bits, or Python's own


class Bounded(Protocol):
    """A block of sums: what one row adds to each coordinate; where it adds a row of a public table, the table."""

    @property
    def low(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def high(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def vectors(self) -> Integers | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Span:
    """How far apart one row moves two scores: as it comes or goes, and as it is exchanged for another."""

    single: int
    pair: int


def candidates(score: Score, blocks: Sequence[Bounded], cells: int, choices: int = 1) -> int:
    """How many there are to choose from in each choice; refuses a score that does not fit the sums."""
    width = sum(len(block.low) for block in blocks)
    if isinstance(score, Rank):
        if width != 1:
            raise QuestionError("bad-question", "A rank is of one count.")
        return cells
    if isinstance(score, Contrast):
        if (len(score.weights), len(score.weights[0][0])) != (choices, cells):
            raise QuestionError("bad-question", f"The contrasts must be of {choices} choices and {cells} cells.")
        _bearable(choices * len(score.weights[0]) * cells * width)
        return len(score.weights[0]) * width
    if isinstance(score, Distance):
        aimed = sum(map(len, score.targets))
        if aimed != cells * width:
            raise QuestionError("bad-question", f"The score has {aimed} targets for {cells * width} sums.")
        return len(score.targets)
    if isinstance(score, Diagonal):
        if len(score.factors) != cells * width:
            raise QuestionError("bad-question", f"The score has {len(score.factors)} factors for {cells * width} sums.")
        return len(score.factors)
    if len(score.matrix[0]) != cells * width:
        raise QuestionError(
            "bad-question", f"The score's matrix has {len(score.matrix[0])} columns for {cells * width} sums."
        )
    _bearable(choices * len(score.matrix) * cells * width)
    if isinstance(score, Aimed):
        if choices * len(score.targets) * len(score.matrix) > MOST_GAPS:
            raise QuestionError("too-large", f"The choices would look at more than {MOST_GAPS} distances.")
        return len(score.targets)
    return len(score.matrix)


def _bearable(work: int) -> None:
    if work > MOST_WORK:
        raise QuestionError("too-large", f"The scores would take {work:,} products, more than {MOST_WORK:,}.")


def span(score: Score, blocks: Sequence[Bounded], cells: int) -> Span:
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
    if isinstance(score, Distance):
        return _distance(score, blocks, cells)
    if isinstance(score, Diagonal):
        return _diagonal(score, np.array(low, dtype=object), np.array(high, dtype=object), cells)
    shape = (len(score.matrix), cells, len(low))
    matrix = np.array(score.matrix, dtype=np.int64).reshape(shape)
    far = [max(-a, b) for a, b in zip(low, high, strict=True)]
    # In 64 bits where no number below can leave them: none is more than twice the largest products of a cell's values.
    fits = not isinstance(score, Aimed) and 2 * int(np.abs(matrix).max()) * sum(far) < LIMIT
    whole: Whole = matrix if fits else matrix.astype(object)
    ends = _numbers(low, fits=fits), _numbers(high, fits=fits)
    if isinstance(score, Linear):
        single = _linear(whole, *ends, _numbers(far, fits=fits))
        return Span(single, 2 * single)
    return _aimed(score, whole, *ends) if isinstance(score, Aimed) else _neg_abs(whole, *ends)


def _numbers(numbers: list[int], *, fits: bool) -> Whole:
    return np.array(numbers, dtype=np.int64) if fits else np.array(numbers, dtype=object)


def _linear(matrix: Whole, low: Whole, high: Whole, far: Whole) -> int:
    """Two bounds of a row's span in each cell, of which the lower holds.

    Value by value: |v| times how far apart the candidates' entries are, zero among them. All
    together: the most that any candidate can rise plus the most that any can fall. The first is
    exact for one value, the second where all candidates move the same way (errors, counts of conditions).
    """
    zero = np.zeros_like(matrix[0])
    apart = np.maximum(matrix.max(axis=0), zero) - np.minimum(matrix.min(axis=0), zero)
    most, least = (end(matrix * low, matrix * high).sum(axis=2) for end in (np.maximum, np.minimum))
    return int(np.minimum((apart * far).sum(axis=1), most.max(axis=0) - least.min(axis=0)).max())


def _neg_abs(matrix: Whole, low: Whole, high: Whole) -> Span:
    """|x| moves by at most |x's own move|, up for one candidate and down for another."""
    most = np.maximum(matrix * low, matrix * high).sum(axis=2)
    least = np.minimum(matrix * low, matrix * high).sum(axis=2)
    single = int(max(most.max(), -least.min()))
    pair = int((most.max(axis=1) - least.min(axis=1)).max())
    return Span(2 * single, 2 * pair)


def _diagonal(score: Diagonal, low: Objects, high: Objects, cells: int) -> Span:
    """A row moves the candidates of its own cell's sums alone, each by its factor times the value.

    The largest rise plus the largest fall is at most all of these moves together, and at most the largest rise
    and the largest fall that any candidate of the cell can have: the lower holds. Folded, |x| moves by at most
    |x's move|, either way; exchanged for another, a row moves x by the width of its interval at most.
    """
    factors = np.array(score.factors, dtype=object).reshape(cells, len(low))
    most, least = (end(factors * low, factors * high) for end in (np.maximum, np.minimum))  # zero is among low, high
    moved = np.maximum(most, -least)
    either = 2 * moved.max(axis=1) if score.folded else most.max(axis=1) - least.min(axis=1)
    single = int(np.minimum(moved.sum(axis=1), either).max())
    return Span(single, min(2 * single, 2 * int((most - least).max())) if score.folded else 2 * single)


def _aimed(score: Aimed, matrix: Whole, low: Whole, high: Whole) -> Span:
    """Of gaps x_h - t*b from a target t: |gap| moves by no more than the gap, and so do a maximum and a sum.

    How far a row moves a gap up, or down, or exchanged for another, is a maximum of functions
    linear in t, so convex: of all candidates' targets for a statistic the least or the largest has it.
    """
    base = np.array(score.base or (0,) * len(score.matrix[0]), dtype=object).reshape(matrix.shape[1:])
    targets = np.array(score.targets, dtype=object)
    singles, pairs = [], []
    for target in (targets.min(axis=0), targets.max(axis=0)):
        move = matrix - target[:, None, None] * base
        most, least = (end(move * low, move * high).sum(axis=2) for end in (np.maximum, np.minimum))
        singles.append(np.maximum(most, -least))  # by statistic and cell
        pairs.append(most.max(axis=1) - least.min(axis=1))  # by statistic
    single, pair = np.maximum(*singles), np.maximum(*pairs)
    if isinstance(score, NegMaxAbs):
        return Span(2 * int(single.max()), 2 * int(pair.max()))
    one = int(single.sum(axis=0).max())
    return Span(2 * one, 2 * min(int(pair.sum()), 2 * one))


def _distance(score: Distance, blocks: Sequence[Bounded], cells: int) -> Span:
    """A row is in one cell: a group's distance moves by at most the L1 norm of those of its values in the group.

    The largest rise plus the largest fall is at most twice the largest such move, and at most all of them together.
    Of a single cell the first is taken, so that a price does not depend on how many groups are compared.
    """
    starts = np.cumsum([0, *map(len, score.targets)])
    norms = [_norms(block) for block in blocks]
    most, left = 0, 0
    for _ in range(cells):
        moved = [0] * len(score.targets)
        for block, norm in zip(blocks, norms, strict=True):
            first = int(np.searchsorted(starts, left, side="right")) - 1
            past = int(np.searchsorted(starts, left + len(block.low), side="left"))
            for group in range(first, past):
                start, stop = np.clip(starts[group : group + 2] - left, 0, len(block.low))
                moved[group] += int((norm[:, stop] - norm[:, start]).max())
            left += len(block.low)
        moves = [abs(weight) * move for weight, move in zip(score.weights, moved, strict=True)]
        most = max(most, 2 * max(moves) if cells == 1 else min(2 * max(moves), sum(moves)))
    return Span(most, 2 * most)


def _norms(block: Bounded) -> Whole:
    """For each vector a block may give, the L1 norms of its first 0, 1, 2, ... coordinates.

    A public table gives its own rows; any other value, at worst, the coordinates farthest from zero.
    """
    far = [max(-a, b, 0) for a, b in zip(block.low, block.high, strict=True)]
    rows = _numbers(far, fits=sum(far) < LIMIT)[None] if block.vectors is None else np.abs(block.vectors)
    return np.cumsum(np.pad(rows, ((0, 0), (1, 0))), axis=1)


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
    flat = sums.reshape(len(sums), -1)
    if isinstance(score, Distance):
        step = _step(flat.shape[1])
        return np.concatenate([_distances(score, flat[i : i + step]) for i in range(0, len(flat), step)])
    if isinstance(score, Diagonal):
        step, factors = _step(flat.shape[1]), np.array(score.factors, dtype=np.int64)
        each = [Wide.of(flat[i : i + step]).times(factors).clamped(LIMIT) for i in range(0, len(flat), step)]
        found = np.concatenate(each)
        return -np.abs(found) if score.folded else found
    matrix = np.array(score.matrix, dtype=np.int64)
    if isinstance(score, Aimed):
        return np.stack([_gaps(score, matrix, own[:, None]) for own in flat])
    found = np.empty((len(sums), len(matrix)), dtype=np.int64)
    step = _step(max(matrix.shape))
    for i in range(0, len(sums), step):
        found[i : i + step] = Wide.dot(matrix, flat[i : i + step].T).clamped(LIMIT).T
    return -np.abs(found) if isinstance(score, NegAbs) else found


def _gaps(score: Aimed, matrix: Integers, sums: Integers) -> Integers:
    """Minus the largest gap, or all gaps together, of each candidate."""
    statistics = Wide.dot(matrix, sums)[:, 0]
    base = Wide.dot(np.array([score.base], dtype=np.int64), sums)[:, 0] if score.base else Wide.of(np.ones(1, np.int64))
    targets = np.array(score.targets, dtype=np.int64)
    found = np.empty(len(targets), dtype=np.int64)
    step = _step(len(matrix))
    for i in range(0, len(targets), step):
        gaps = np.abs((statistics[None, :] - base[None, :].times(targets[i : i + step])).clamped(2 * LIMIT))
        together = gaps.max(axis=1) if isinstance(score, NegMaxAbs) else Wide.of(gaps).total().clamped(LIMIT)
        found[i : i + step] = -np.minimum(together, LIMIT)
    return found


def _distances(score: Distance, flat: Integers) -> Integers:
    """Each group's distance from its targets, weighed and shifted."""
    targets = np.array([n for group in score.targets for n in group], dtype=np.int64)
    starts = np.cumsum([0, *map(len, score.targets)])[:-1]
    weights, biases = (np.array(numbers, dtype=np.int64) for numbers in (score.weights, score.biases))
    totals = Wide(np.add.reduceat(Wide.of(np.abs(flat - targets)).digits, starts, axis=-1))
    return (totals.times(weights) + Wide.of(biases[None])).clamped(LIMIT)


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
