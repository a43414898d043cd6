"""Scores of candidates, exact, and how far one row moves them apart.

A choice depends on scores only through their differences, so what counts is the span of a move: the largest rise of any
candidate's score plus the largest fall of any, either at least zero. k rows span at most k times what one row does.
Every total takes the same steps whatever the sums are, so that time tells nothing of them (`Wide`, T34).
Privacy: the spans of one row, and of one row exchanged for another, are at most those given here, whatever cell and
value within its bounds, zero included, a row has (docs/theory/choose.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError
from sulq.kernel.private import Integers

LARGEST_ENTRY: Final = 2**31
LARGEST_SHIFT: Final = 2**40
MOST_ENTRIES: Final = 2**20
MOST_GAPS: Final = 2**24  # distances from targets that all choices of a question look at together
MOST_WORK: Final = 2**30  # products of a weight and a sum, of all choices of a question
LIMIT: Final = 2**61  # scores are clamped to this on either side: their gaps fit 64 bits
PIECE: Final = 2**18  # numbers reckoned at once
DIGIT: Final = 31
MASK: Final = (1 << DIGIT) - 1
PLACES: Final = 5  # 155 bits and a sign: 2^20 products of a sum of 2^62 and a weight of 2^31, times a target of 2^40
MOST_TERMS: Final = 2**21  # so many products of two numbers of 16 bits are exact in a double
BITS: Final = {"matrices": 31, "targets": 40, "sizes": 20, "base": 31, "weights": 31, "biases": 60}
Whole = npt.NDArray[Any]  # whole numbers of 64 bits, or Python's own


@dataclass(frozen=True, slots=True)
class Rank:
    """How far a cell is from holding the quantile numerator/denominator; the candidates are the cells, in order.

    With N the whole count, B the count before a cell and E that up to its end, and d the denominator, the score is
    minus the distance of numerator*N + shift from [d B, d E]: zero for the cell that holds the row of that rank. A cell
    of score -s holds a rank at most s/d rows away. Ranks past an end, by a `shift`, are in the first or last cell.
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


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """Candidates that are scored by public combinations of the sums: all scores but a rank.

    Statistics x are the sums of a choice, cell by cell. With `matrices`, one for all choices or one for each, they are
    the product of the choice's matrix and its sums: all in one column, or a row for each cell. Without `targets` each
    statistic is the gap of a candidate of its own. Else the next sizes[c] targets t are candidate c's, one for each
    sum, or of a matrix for each statistic: its gaps are x - t, or with a `base` x - t*b, b being base times sums. A
    score is the candidate's weight times all its gaps together, or with `farthest` times the largest, plus its bias;
    `folded` gaps are absolute values. One weight or bias may be for all candidates.
    """

    matrices: Integers
    targets: Integers
    sizes: Integers
    base: Integers
    weights: Integers
    biases: Integers
    folded: bool
    farthest: bool

    def __post_init__(self) -> None:
        good = type(self.folded) is type(self.farthest) is bool
        for name, bits in BITS.items():
            given, most = getattr(self, name), 2**bits
            good = good and type(given) is np.ndarray and given.dtype == np.int64 and given.size <= MOST_ENTRIES
            good = good and given.ndim == (3 if name == "matrices" else 1)
            if not good or not -most <= given.min(initial=0) <= given.max(initial=0) <= most:
                raise QuestionError("bad-question", "A score is of whole numbers, not too many and none too large.")
            own = given.copy()  # what runs is what was priced, whatever becomes of the array that was given
            own.flags.writeable = False
            object.__setattr__(self, name, own)
        empty = self.matrices.size or self.matrices.shape == (1, 0, 0)  # one way to say that there is none
        if not empty or self.sizes.min(initial=1) < 1 or self.sizes.sum() != self.targets.size:
            raise QuestionError("bad-question", "Every target is a candidate's, and a matrix has numbers or no rows.")


Score = Rank | Weighted


class Bounded(Protocol):
    """A block of sums: what one row adds to each coordinate; where it adds a row of a public table, the table."""

    @property
    def low(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def high(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def vectors(self) -> Integers | None: ...  # noqa: D102


class Span(NamedTuple):
    """How far apart one row moves two scores: as it comes or goes, and as it is exchanged for another."""

    single: int
    pair: int


def candidates(score: Score, blocks: Sequence[Bounded], cells: int, choices: int = 1) -> int:
    """How many there are to choose from in each choice; refuses a score that does not fit the sums."""
    width = sum(len(block.low) for block in blocks)
    sums, work, gaps = cells * width, 0, 0
    fits, found = type(score) is Rank and width == 1, cells
    if type(score) is Weighted:
        (several, rows, columns), base = score.matrices.shape, score.base.size
        work, gaps, statistics, fits = rows * sums, score.targets.size, sums, several in (1, choices)
        if not score.matrices.size:
            fits = fits and gaps in (0, sums) and not base
        elif gaps:
            statistics, fits = rows, (several, columns) == (1, sums) and base in (0, sums) and score.folded
            fits = fits and bool((score.sizes == rows).all())
        else:
            statistics = rows * (sums // columns)
            fits = fits and not base and columns in ((cells, sums) if score.folded else (sums,))
        found = score.sizes.size or statistics
        fits = fits and score.weights.size in ((1,) if rows else (1, found)) and score.biases.size in (1, found)
    if not fits:
        raise QuestionError("bad-question", f"The score is not one of {choices} choices, {cells} cells, {sums} sums.")
    if choices * work > MOST_WORK or choices * gaps > MOST_GAPS:
        raise QuestionError("too-large", f"The scores take over {MOST_WORK:,} products or {MOST_GAPS:,} distances.")
    return found


def span(score: Score, blocks: Sequence[Bounded], cells: int) -> Span:
    """The span of one row. A row may also count as zero: filtered, missing or clamped (SR1)."""
    least = [min(n, 0) for block in blocks for n in block.low]
    most = [max(n, 0) for block in blocks for n in block.high]
    if isinstance(score, Rank):
        # A row of value v moves d*E - t (d*B - t) by (d - numerator)*v where E (B) counts it, else by -numerator*v.
        up = max((score.denominator - score.numerator) * most[0], -score.numerator * least[0])
        down = min((score.denominator - score.numerator) * least[0], -score.numerator * most[0])
        return Span(2 * max(up, -down), 2 * (up - down))
    parts = score.matrices, score.base, score.targets, score.weights
    matrix, base, targets, weights = (int(np.abs(numbers).max(initial=1)) for numbers in parts)
    # In 64 bits where no number below can leave them: all that is added up, at its largest.
    terms = 2 * (score.matrices.shape[1] + 1) * cells * (sum(most) - sum(least))
    kind = np.int64 if (matrix + base * targets) * weights * terms < LIMIT else object
    low, high = np.array(least, dtype=kind), np.array(most, dtype=kind)
    moves = _combined(score, cells, low, high) if score.matrices.size else _own(score, blocks, cells, low, high)
    return Span(moves[0], 2 * min(moves))


def _combined(score: Weighted, cells: int, low: Whole, high: Whole) -> tuple[int, int]:
    """The span of a row for statistics of a matrix; how far any score moves as a row is exchanged for another.

    As they are, the lower of two bounds in each cell: value by value, |v| times how far apart the candidates' entries
    are, zero among them; or the most that any candidate rises plus the most that any falls. Folded, |x - t*b| moves by
    no more than x - t*b, so do a maximum and a sum of such, and one candidate's may rise as another's falls; how far it
    moves is convex in t, so of all targets for a statistic the least or the largest has the largest move.
    """
    rows, columns = score.matrices.shape[1:]
    if columns < cells * len(low):  # a row for each cell: a statistic is of one value, which lies within this
        low, high = low.min(keepdims=True), high.max(keepdims=True)
    moves: Whole = score.matrices.reshape(1, -1, cells, len(low)).astype(low.dtype)
    if score.base.size:
        targets = score.targets.reshape(-1, rows).astype(low.dtype)
        ends = np.stack([targets.min(axis=0), targets.max(axis=0)])
        moves = moves - ends[..., None, None] * score.base.reshape(cells, -1)
    most, least = (end(moves * low, moves * high).sum(axis=-1) for end in (np.maximum, np.minimum))
    moved = np.maximum(most, -least).max(axis=0)  # by statistic and cell
    exchanged = (most.max(axis=-1) - least.min(axis=-1)).max(axis=0)  # by statistic
    weight = abs(int(score.weights[0]))
    if score.folded:
        together = np.add if score.sizes.size and not score.farthest else np.maximum
        return 2 * weight * int(together.reduce(moved).max()), weight * int(together.reduce(exchanged))
    apart = np.maximum(moves[0].max(axis=0), 0) - np.minimum(moves[0].min(axis=0), 0)
    each, either = (apart * np.maximum(-low, high)).sum(axis=1), most[0].max(axis=0) - least[0].min(axis=0)
    return weight * int(np.minimum(each, either).max()), weight * int(exchanged.max())


def _own(score: Weighted, blocks: Sequence[Bounded], cells: int, low: Whole, high: Whole) -> tuple[int, int]:
    """The same for the sums themselves. A row moves those of its own cell alone.

    Folded, a candidate moves by at most the L1 norm of those of the row's values that are its own: of a public table
    the largest of any row of it, else the values farthest from zero. The largest rise plus the largest fall is at most
    what any candidate can rise plus what any can fall, and at most all moves together: the lower holds. Of groups in a
    single cell the first is taken, so that a price does not depend on how many groups are compared.
    """
    sums = cells * len(low)
    firsts = np.arange(0, sums, len(low))  # of cells
    sizes = score.sizes if score.sizes.size else np.ones(sums, dtype=np.int64)
    owner, starts = np.repeat(np.arange(len(sizes)), sizes), np.cumsum(sizes) - sizes
    most, least = np.tile(high, cells), np.tile(low, cells)
    weights = np.broadcast_to(score.weights, sizes.shape)[owner].astype(low.dtype)
    exchanged = np.add.reduceat(np.abs(weights) * (most - least), starts).max()
    if score.folded:
        most, place = np.maximum(most, -least), 0
        for block in blocks:
            place += len(block.low)
            if block.vectors is not None:
                table = np.abs(block.vectors.astype(low.dtype))
                for stop in firsts + place:
                    own = slice(stop - len(block.low), stop)
                    cuts = np.flatnonzero(np.diff(owner[own], prepend=-1))
                    most[own] = 0
                    most[own][cuts] = np.add.reduceat(table, cuts, axis=1).max(axis=0)
        least = -most
    least, most = (end(weights * least, weights * most) for end in (np.minimum, np.maximum))
    places = np.flatnonzero((np.arange(sums) % len(low) == 0) | (np.diff(owner, prepend=-1) > 0))
    least, most = (np.add.reduceat(ends, places) for ends in (least, most))  # by candidate and cell
    firsts = np.searchsorted(places, firsts)
    each = np.add.reduceat(np.maximum(most, -least), firsts)
    either = np.maximum.reduceat(most, firsts) - np.minimum.reduceat(least, firsts)
    return int((either if cells == 1 and score.sizes.size else np.minimum(each, either)).max()), int(exchanged)


def scores(score: Score, sums: Integers) -> Integers:
    """The candidates' scores for each choice, from sums of shape (choices, cells, width), clamped to +-2^61.

    Exact, and the same work whatever the sums are (T34).
    """
    flat = sums.reshape(len(sums), -1)
    if isinstance(score, Rank):
        return np.concatenate([_rank(score, flat[some]) for some in _pieces(len(flat), flat.shape[1])])
    several, rows, columns = score.matrices.shape
    pieces = _pieces(len(flat), max(flat.shape[1], score.targets.size, rows * flat.shape[1] // max(1, columns)))
    owned = ((score.matrices[some] if several > 1 else score.matrices, flat[some]) for some in pieces)
    return np.concatenate([_weighted(score, *each) for each in owned])


def _pieces(count: int, each: int) -> list[slice]:
    """So many at once that what is in memory does not grow with their number."""
    step = max(1, PIECE // each)
    return [slice(i, i + step) for i in range(0, count, step)]


def _weighted(score: Weighted, matrices: Integers, flat: Integers) -> Integers:
    """Each candidate's gaps, together or the farthest, weighted and shifted."""
    gaps = _gaps(score, matrices, flat)
    gaps = (np.abs(gaps) if score.folded else gaps).reshape(len(flat), -1)
    starts = np.cumsum(score.sizes) - score.sizes
    if starts.size and not score.farthest:
        totals = Wide(np.add.reduceat(Wide.of(gaps).digits, starts, axis=-1))
    else:
        totals = Wide.of(np.maximum.reduceat(gaps, starts, axis=1) if starts.size else gaps)
    return (totals.times(score.weights) + Wide.of(score.biases[None])).clamped(LIMIT)


def _gaps(score: Weighted, matrices: Integers, flat: Integers) -> Integers:
    """Statistics less targets, by choice, candidate and statistic, or by choice and sum.

    Of a matrix they are clamped to +-2^62: a score of one past that is past 2^61, whatever weight and bias are.
    """
    several, rows, columns = matrices.shape
    width = rows or flat.shape[1]
    targets = score.targets.reshape(-1, width) if score.targets.size else np.zeros((1, 1), dtype=np.int64)
    if not matrices.size:
        return flat[:, None] - targets
    if score.base.size:
        matrices = np.concatenate([matrices, score.base[None, None]], axis=1)
    each = len(flat) // several  # choices of a matrix, which is multiplied by the sums of all of them at once
    numbers = flat.reshape(several, each, columns, -1).swapaxes(1, 2).reshape(several, columns, -1)
    found = Wide.dot(matrices, numbers).digits.reshape(PLACES, several, matrices.shape[1], each, -1)
    found = found.swapaxes(2, 3).reshape(PLACES, len(flat), 1, -1)
    if not score.base.size:
        return Wide(found).clamped(2 * LIMIT) - targets
    aims = (Wide(found[..., -1:]).times(-targets[some]) for some in _pieces(len(targets), rows))
    return np.concatenate([(Wide(found[..., :-1]) + aim).clamped(2 * LIMIT) for aim in aims], axis=1)


def _rank(score: Rank, counts: Integers) -> Integers:
    """Piece by piece of the cells: how far past the target each begins and ends, from the last piece on."""
    low, high = (limbs.sum(axis=1, keepdims=True) for limbs in (counts & MASK, counts >> DIGIT))
    whole = Wide.of(low) + Wide.of(high).times(1 << DIGIT)
    past = whole.times(-score.numerator) + Wide.of(np.full((1, 1), -score.shift))
    ends = [past.clamped(LIMIT)]
    for some in _pieces(counts.shape[1], len(counts)):
        digits = Wide.of(counts[:, some]).times(score.denominator).digits
        digits[..., :1] += past.digits
        ends.append(Wide(np.cumsum(digits, axis=-1, out=digits)).clamped(LIMIT))
        past = Wide(digits[..., -1:])
    found = np.concatenate(ends, axis=1)
    found[:, 0], found[:, -1] = -LIMIT, LIMIT  # fewer terms of a maximum: no row moves it farther
    return -np.maximum(np.maximum(found[:, :-1], -found[:, 1:]), 0)


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """Numbers as sums of digit * 2^(31 place), along the first axis; a digit may be out of range by 2^31, or negative.

    Privacy: no step depends on a number, so neither does the time; clamping moves no two numbers apart.
    Accuracy: exact below 2^155; of `clamped` below its limit (docs/theory/choose.md).
    """

    digits: Integers

    @classmethod
    def of(cls, numbers: Integers) -> Self:
        """Whole numbers of 63 bits."""
        digits = np.zeros((PLACES, *numbers.shape), dtype=np.int64)
        digits[0], digits[1] = numbers & MASK, numbers >> DIGIT
        return cls(digits)

    @classmethod
    def dot(cls, weights: Integers, numbers: Integers) -> Self:
        """The matrix product of public weights, of at most 32 bits, and numbers; exact, by 8 products of doubles."""
        if weights.shape[-1] > MOST_TERMS:
            raise AssertionError("more terms than a double adds exactly")
        digits = np.zeros((PLACES, *weights.shape[:-1], numbers.shape[-1]), dtype=np.int64)
        parts = (weights & 0xFFFF).astype(np.float64), (weights >> 16).astype(np.float64)
        for at in range(0, 64, 16):
            limb = (numbers >> at if at == 48 else numbers >> at & 0xFFFF).astype(np.float64)
            for up, part in enumerate(parts):
                product, (place, shift) = (part @ limb).astype(np.int64), divmod(at + 16 * up, DIGIT)
                digits[place] += (product & (MASK >> shift)) << shift
                digits[place + 1] += product >> (DIGIT - shift)
        return cls(digits)

    def times(self, factor: int | Integers) -> Self:
        """Times a whole number of at most 62 bits, or one for each."""
        own, numbers = self.carried(), np.asarray(factor, dtype=np.int64)
        found = Wide(own * (numbers & MASK)).carried()
        found[1:] += own[:-1] * (numbers >> DIGIT)
        found[-1] += (own[-1] * (numbers >> DIGIT)) << DIGIT  # the sign, in the last digit, which has no next
        return type(self)(found)

    def __add__(self, other: Wide) -> Wide:
        return Wide(self.digits + other.digits)

    def carried(self) -> Integers:
        """Digits of the same numbers, every one but the last from 0 to 2^31 - 1."""
        digits = self.digits.copy()
        for place in range(PLACES - 1):
            digits[place + 1] += digits[place] >> DIGIT
            digits[place] &= MASK
        return digits

    def clamped(self, limit: int) -> Integers:
        """As numbers of 64 bits, none farther from zero than the limit (at most 2^62): a 1-Lipschitz step."""
        digits = self.carried()
        found: Integers = digits[-1]
        for digit in digits[-2::-1]:  # what is past 2^31 + 1 ends past 2^62, whatever digits follow
            found = (np.clip(found, -(2**DIGIT) - 1, 2**DIGIT + 1) << DIGIT) + digit
        return np.clip(found, -limit, limit)
