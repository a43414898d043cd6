"""Scores of candidates, exact, and how far one row moves them apart.

A choice depends on scores only through their differences, so what counts is the
span of a move: the largest rise of any candidate's score plus the largest fall of
any, either at least zero. A span is sublinear in the move: k rows span at most
k times what one row does, and rows of different cells move different choices.

Scores are weighted totals of exact sums. Were they reckoned in 64 bits where that is
enough and in larger numbers where it is not, the time of an ask, or its running out of
time, would tell which: a test of the rows without noise (T34). So every total takes the
same steps, decided by public shapes alone, in columns of 31-bit digits (`Wide`).

Privacy: the spans of one row, and of one row exchanged for another, are at most
those given here, whatever cell and value within its bounds, zero included, a row has.
Source: docs/theory/choose.md.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, Self

import numpy as np

from sulq.errors import QuestionError
from sulq.kernel.private import Floats, Integers, Objects

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


LIMIT: Final = 2**61  # scores are clamped to this on either side: their gaps fit 64 bits
MOST_GAPS: Final = 2**24  # distances from targets that all choices of a question look at together
MOST_WORK: Final = 2**30  # products of a weight and a sum, of all choices of a question
PIECE: Final = 2**18  # numbers reckoned at once
DIGIT: Final = 31
MASK: Final = (1 << DIGIT) - 1
PLACES: Final = 5  # 155 bits and a sign: 2^20 products of a sum of 2^62 and a weight of 2^31, times a target of 2^40
MOST_TERMS: Final = 2**21  # so many products of two numbers of 16 bits are exact in a double
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
    sums, weighed, gaps = cells * width, 0, 0  # of all sums of a choice: how often each is weighed; distances taken
    if isinstance(score, Rank):
        fits, found = width == 1, cells
    elif isinstance(score, Contrast):
        weighed = len(score.weights[0])
        fits, found = (len(score.weights), len(score.weights[0][0])) == (choices, cells), weighed * width
    elif isinstance(score, Distance):
        fits, found = sum(map(len, score.targets)) == sums, len(score.targets)
    elif isinstance(score, Diagonal):
        fits, found = len(score.factors) == sums, sums
    else:
        weighed = found = len(score.matrix)
        fits = len(score.matrix[0]) == sums
        if isinstance(score, Aimed):
            gaps, found = len(score.targets) * weighed, len(score.targets)
    if not fits:
        raise QuestionError("bad-question", f"The score is not one of {choices} choices, {cells} cells, {sums} sums.")
    if choices * weighed * sums > MOST_WORK or choices * gaps > MOST_GAPS:
        raise QuestionError(
            "too-large", f"The scores would take more than {MOST_WORK:,} products or {MOST_GAPS:,} distances."
        )
    return found


def span(score: Score, blocks: Sequence[Bounded], cells: int) -> Span:
    """The span of one row. A row may also count as zero: filtered, missing or clamped (SR1)."""
    low = [min(n, 0) for block in blocks for n in block.low]
    high = [max(n, 0) for block in blocks for n in block.high]
    far = [max(-a, b) for a, b in zip(low, high, strict=True)]
    if isinstance(score, Rank):
        # A row of value v moves d*E - t (d*B - t) by (d - numerator)*v where E (B) counts it, else by -numerator*v.
        up = max((score.denominator - score.numerator) * high[0], -score.numerator * low[0])
        down = min((score.denominator - score.numerator) * low[0], -score.numerator * high[0])
        return Span(2 * max(up, -down), 2 * (up - down))
    if isinstance(score, Contrast):
        # A row is in one cell: |x| moves by at most |weight * value|, up for one candidate and down for another.
        single = 2 * max(abs(n) for matrix in score.weights for row in matrix for n in row) * max(far)
        return Span(single, 2 * single)
    if isinstance(score, Distance):
        return _distance(score, blocks, cells)
    if isinstance(score, Diagonal):
        return _diagonal(score, _numbers(low, fits=False), _numbers(high, fits=False), cells)
    matrix = np.array(score.matrix, dtype=np.int64).reshape(len(score.matrix), cells, len(low))
    # In 64 bits where no number below can leave them: none is more than twice the largest products of a cell's values.
    fits = not (isinstance(score, Aimed) and score.base) and 2 * int(np.abs(matrix).max()) * sum(far) < LIMIT
    whole: Whole = matrix if fits else matrix.astype(object)
    ends = _numbers(low, fits=fits), _numbers(high, fits=fits)
    if isinstance(score, Linear):
        return _linear(whole, *ends, _numbers(far, fits=fits))
    return _absolute(score, whole, *ends)


def _numbers(numbers: list[int], *, fits: bool) -> Whole:
    return np.array(numbers, dtype=np.int64) if fits else np.array(numbers, dtype=object)


def _linear(matrix: Whole, low: Whole, high: Whole, far: Whole) -> Span:
    """Two bounds of a row's span in each cell, of which the lower holds.

    Value by value: |v| times how far apart the candidates' entries are, zero among them. All
    together: the most that any candidate can rise plus the most that any can fall. The first is
    exact for one value, the second where all candidates move the same way (errors, counts of conditions).
    """
    zero = np.zeros_like(matrix[0])
    apart = np.maximum(matrix.max(axis=0), zero) - np.minimum(matrix.min(axis=0), zero)
    most, least = (end(matrix * low, matrix * high).sum(axis=2) for end in (np.maximum, np.minimum))
    single = int(np.minimum((apart * far).sum(axis=1), most.max(axis=0) - least.min(axis=0)).max())
    return Span(single, 2 * single)


def _diagonal(score: Diagonal, low: Whole, high: Whole, cells: int) -> Span:
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


def _absolute(score: NegAbs | NegMaxAbs | NegL1, matrix: Whole, low: Whole, high: Whole) -> Span:
    """Of |x_h|, or gaps |x_h - t*b| from a target t: each moves by no more than x_h, or x_h - t*b, itself does.

    So do a maximum and a sum of them; one candidate's may rise as another's falls. How far a row moves a gap up, or
    down, or exchanged for another, is a maximum of functions linear in t, so convex: of all candidates' targets for
    a statistic the least or the largest has it.
    """
    moves = [matrix]
    if isinstance(score, Aimed) and score.base:
        base, targets = (np.array(numbers, dtype=object) for numbers in (score.base, score.targets))
        ends = targets.min(axis=0), targets.max(axis=0)
        moves = [matrix - target[:, None, None] * base.reshape(matrix.shape[1:]) for target in ends]
    singles, pairs = [], []
    for move in moves:
        most, least = (end(move * low, move * high).sum(axis=2) for end in (np.maximum, np.minimum))
        singles.append(np.maximum(most, -least))  # by statistic and cell
        pairs.append(most.max(axis=1) - least.min(axis=1))  # by statistic
    single, pair = np.maximum.reduce(singles), np.maximum.reduce(pairs)
    if not isinstance(score, NegL1):
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
        moves = Counter[int]()  # by group
        for block, norm in zip(blocks, norms, strict=True):
            first = int(np.searchsorted(starts, left, side="right")) - 1
            past = int(np.searchsorted(starts, left + len(block.low), side="left"))
            for group in range(first, past):
                start, stop = np.clip(starts[group : group + 2] - left, 0, len(block.low))
                moves[group] += abs(score.weights[group]) * int((norm[:, stop] - norm[:, start]).max())
            left += len(block.low)
        twice = 2 * max(moves.values())
        most = max(most, twice if cells == 1 else min(twice, moves.total()))
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
    if isinstance(score, Contrast):
        several = zip(np.array(score.weights, dtype=np.int64), sums, strict=True)
        return np.stack([np.abs(Wide.dot(weights, own).clamped(LIMIT)).ravel() for weights, own in several])
    flat = sums.reshape(len(sums), -1)
    if isinstance(score, Rank):
        return _in_steps(flat, min(flat.shape[1], PIECE), lambda counts: _rank(score, counts))
    if isinstance(score, Distance):
        return _in_steps(flat, flat.shape[1], lambda some: _distances(score, some))
    if isinstance(score, Diagonal):
        factors = np.array(score.factors, dtype=np.int64)
        found = _in_steps(flat, flat.shape[1], lambda some: Wide.of(some).times(factors).clamped(LIMIT))
        return -np.abs(found) if score.folded else found
    matrix = np.array(score.matrix, dtype=np.int64)
    if isinstance(score, Aimed):
        return np.stack([_gaps(score, matrix, own[:, None]) for own in flat])
    found = _in_steps(flat, max(matrix.shape), lambda some: Wide.dot(matrix, some.T).clamped(LIMIT).T)
    return -np.abs(found) if isinstance(score, NegAbs) else found


def _in_steps(sums: Integers, each: int, work: Callable[[Integers], Integers]) -> Integers:
    """The scores of all choices, so many at once that what is in memory does not grow with their number."""
    step = max(1, PIECE // max(1, each))
    return np.concatenate([work(sums[i : i + step]) for i in range(0, len(sums), step)])


def _gaps(score: Aimed, matrix: Integers, sums: Integers) -> Integers:
    """Minus the largest gap, or all gaps together, of each candidate."""
    statistics = Wide.dot(matrix, sums)[:, 0]
    base = Wide.dot(np.array([score.base], dtype=np.int64), sums)[:, 0] if score.base else Wide.of(np.ones(1, np.int64))
    targets = np.array(score.targets, dtype=np.int64)
    found = np.empty(len(targets), dtype=np.int64)
    step = max(1, PIECE // len(matrix))
    for i in range(0, len(targets), step):
        gaps = np.abs((statistics[None, :] - base[None, :].times(targets[i : i + step])).clamped(2 * LIMIT))
        together = (
            gaps.max(axis=1) if isinstance(score, NegMaxAbs) else Wide(Wide.of(gaps).digits.sum(axis=-1)).clamped(LIMIT)
        )
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


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """Numbers as sums of digit * 2^(31 place), along the first axis; a digit may be out of range, or negative.

    Privacy: no step depends on a number, so neither does the time; clamping moves no two numbers apart.
    Accuracy: exact below 2^155; of `clamped` below its limit.
    Source: docs/theory/choose.md.
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
        found = cls(np.zeros((PLACES, len(weights), numbers.shape[1]), dtype=np.int64))
        parts = _halves(weights)
        for base, limb in ((0, numbers & MASK), (DIGIT, numbers >> DIGIT)):
            for at, half in _halves(limb):
                for up, part in parts:
                    found.put((part @ half).astype(np.int64), base + at + up)
        return found

    def put(self, numbers: Integers, bit: int) -> None:
        """Add numbers of 53 bits, times 2^bit, in place."""
        place, shift = divmod(bit, DIGIT)
        self.digits[place] += (numbers & (MASK >> shift)) << shift
        self.digits[place + 1] += numbers >> (DIGIT - shift)

    def totals(self) -> Self:
        """Running totals along the last axis."""
        return type(self)(np.cumsum(self.digits, axis=-1))

    def times(self, factor: int | Integers) -> Self:
        """Times a whole number of at most 62 bits, or one for each."""
        own, numbers = self.carried().digits, np.asarray(factor, dtype=np.int64)
        found = Wide(own * (numbers & MASK)).carried().digits
        found[1:] += own[:-1] * (numbers >> DIGIT)
        found[-1] += (own[-1] * (numbers >> DIGIT)) << DIGIT  # the sign, in the last digit, which has no next
        return type(self)(found)

    def __add__(self, other: Wide) -> Wide:
        return Wide(self.carried().digits + other.carried().digits)

    def __sub__(self, other: Wide) -> Wide:
        return Wide(self.carried().digits - other.carried().digits)

    def __getitem__(self, place: tuple[slice | int | None, ...]) -> Wide:
        return Wide(self.digits[(slice(None), *place)])

    def carried(self) -> Self:
        """The same numbers, every digit but the last from 0 to 2^31 - 1."""
        digits = self.digits.copy()
        for place in range(PLACES - 1):
            digits[place + 1] += digits[place] >> DIGIT
            digits[place] &= MASK
        return type(self)(digits)

    def clamped(self, limit: int) -> Integers:
        """As numbers of 64 bits, none farther from zero than the limit (at most 2^62): a 1-Lipschitz step."""
        digits = self.carried().digits
        low = digits[0] | digits[1] << DIGIT  # 62 bits; what lies above them is nothing, a minus, or too much
        small, minus = digits[-1] == 0, digits[-1] == -1
        for digit in digits[2:-1]:
            small &= digit == 0
            minus &= digit == MASK
        far = np.where(digits[-1] < 0, -limit, limit)
        near = np.clip(np.where(minus, low - 2 ** (2 * DIGIT), low), -limit, limit)
        found: Integers = np.where(small | minus, near, far)
        return found


def _halves(numbers: Integers) -> tuple[tuple[int, Floats], ...]:
    """Numbers of 32 bits as two of 16, the upper with the sign, and the bit where each begins."""
    return (0, (numbers & 0xFFFF).astype(np.float64)), (16, (numbers >> 16).astype(np.float64))
