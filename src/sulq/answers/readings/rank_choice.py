"""Quantiles and extremes whose bins were chosen by rank, their intervals, and what is foreseen of them in rows.

A choice picks a bin whose score is near the best. With every bin on the wrong side of an end a known gap below the
best, the choice's own exact tail says how likely the end is wrong. Free post-processing.
Proofs: docs/theory/quantiles.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from sulq.answers.readings.noise_sums import least_total
from sulq.answers.readings.quantiles import Bed, Picked, Quantile
from sulq.answers.released import Noise, Released
from sulq.kernel.scores import LARGEST_SHIFT, Rank
from sulq.language.kinds import Floats, Integers
from sulq.language.law import ExponentialLaw, FlipLaw, Law

END_BETA: Final = 0.01  # of an interval whose ends are chosen, over all groups of an answer at once
NOTE_BETA: Final = 0.05
TAIL: Final = 32  # as the largest of a million skewed incomes is so many times as far off as the middle one
REACH: Final = 1.96  # of a contrast at 95%, in deviations
LARGEST_DENOMINATOR: Final = 10**5  # of a chosen quantile's fraction
SAME: Final = Fraction(1, 10**12)  # as far apart two fractions are taken for one
WHOLE_RANGE: Final = "an interval that was bought is the whole range: the rows are too few for the spend"
COUNT_SHARE: Final = Fraction(1, 10)  # of what quantiles of groups are paid with, for the groups' counts


def rank_of(how: str, q: Fraction, gap: int = 0) -> Rank:
    """The rank looked for, between two rows: that of PERCENTILE_DISC, or of PERCENTILE_CONT's lower neighbour.

    `gap`: so many units of score to the outside. A lower end (below 0) is one for which every bin past the quantile's
    is so far below the best; an upper end likewise, for PERCENTILE_CONT past its upper neighbour. Of a minimum or
    maximum, how far inside the rank is: every bin beyond all rows is so far below the best.
    """
    if how in ("min", "max"):
        return Rank(0, 2, gap) if how == "min" else Rank(2, 2, -gap)
    a, d = _part(q, gap)
    if how == "disc":
        return Rank(2 * a, 2 * d, gap - 1)
    return Rank(2 * a, 2 * d, gap + 1 - 2 * a + (2 * d - 2 if gap > 0 else 0))


def _part(q: Fraction, gap: int) -> tuple[int, int]:
    """A fraction as a rank has it: the simple one that a float stands for, such as 2/3, or rounded to five digits.

    An end is rounded to the outside, where quantiles are no nearer. Of a rounded fraction the centre and both ends have
    one denominator, not reduced: so their units of score are alike. No centre within is rounded to 0 or 1, where every
    bin beyond all rows would be as good as theirs.
    """
    simple = q.limit_denominator(LARGEST_DENOMINATOR)
    if abs(simple - q) <= SAME and (q == simple or 0 < simple < 1):
        return simple.numerator, simple.denominator
    scaled = q * LARGEST_DENOMINATOR
    if gap:
        return math.ceil(scaled) if gap > 0 else math.floor(scaled), LARGEST_DENOMINATOR
    return min(max(round(scaled), 1), LARGEST_DENOMINATOR - 1), LARGEST_DENOMINATOR


def gap_of(law: Law, groups: int, ends: int) -> int:
    """How far below the best a bin on the wrong side must be: one of so many ends of so many groups is wrong rarely."""
    return min(law.accuracy(END_BETA / ends / max(groups, 1)) + 1, LARGEST_SHIFT // 2)


def _tail(noise: Noise, gap: int) -> float:
    """The probability that a bin so far below the best, or farther, is chosen."""
    law = noise.law
    return law.tail(gap - 1) if isinstance(law, (FlipLaw, ExponentialLaw)) else 1.0


class _Chosen:
    """What all readings of chosen bins have in common."""

    __slots__ = ()
    bed: Bed
    per_row: int  # units of score
    gap: int | None

    def bounds(self) -> tuple[Floats, Floats]:
        """From the first bin to the last."""
        return self.bed.bounds()

    def least(self, released: Released, beta: float) -> Floats:
        """Of the whole table a quantile is always told: the choice counts nothing."""
        del beta
        return np.ones(released.cells)

    def whole(self, cells: int) -> tuple[Floats, Floats]:
        """The whole range of every cell."""
        low, high = self.bed.bounds()
        return np.tile(low, (cells, 1)), np.tile(high, (cells, 1))


@dataclass(frozen=True, slots=True)
class ChosenQuantile(_Chosen):
    """A quantile's bin and, where a `gap` is bought, a bin chosen below it and one above, in three columns.

    Accuracy: whatever the rows are, every bin past the quantile's is `gap` units or more below the best for the lower
    end, and every bin before it for the upper end. So an interval holds if both tails together are within beta; at
    higher levels, or without a gap, it is the whole range.
    """

    bed: Bed
    per_row: int
    gap: int | None = None

    def _bins(self, released: Released) -> Integers:
        """The chosen bins, the value's own within the ends where these are in order."""
        bins = np.clip(released.units, 0, self.bed.bins - 1)
        if self.gap is not None:
            value, low, high = bins.T
            bins[:, 0] = np.where(low <= high, np.clip(value, low, np.maximum(low, high)), value)
        return bins

    def value(self, released: Released) -> Floats:
        """The chosen bin's value."""
        return self.bed.middle(self._bins(released)[:, 0])[:, None]

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """From the lower end's bin to the upper end's, and the value's."""
        if self.gap is None or sum(_tail(noise, self.gap) for noise in released.noise[1:]) > beta:
            return self.whole(released.cells)
        bins = self._bins(released)
        low, high = bins.min(axis=1), bins.max(axis=1)
        return self.bed.low(low)[:, None], self.bed.high(high)[:, None]


@dataclass(frozen=True, slots=True)
class ChosenExtreme(_Chosen):
    """A minimum or maximum by the bin of its own rank and, where a `gap` is bought, by one so many half rows inside.

    Accuracy: every bin beyond the extreme is `gap` units or more below the best for the inner bin, so the extreme is
    there or farther out, up to the end of the range, as one row may lie anywhere. With a gap of one unit every other
    bin is as far below, and the inner bin holds the extreme. Of its own rank all bins beyond the rows are alike, and a
    wide empty range draws the choice into it: it is not believed where it is TAIL times as far from the inner bin as
    that is from the other end of the range.
    """

    bed: Bed
    largest: bool
    gap: int | None = None
    per_row: int = 2

    def _bins(self, released: Released) -> Integers:
        """The bin told, and the inner one."""
        bins = np.clip(released.units, 0, self.bed.bins - 1)
        if self.gap is None:
            return bins
        value, inner = bins.T
        beyond, before = (value - inner, inner) if self.largest else (inner - value, self.bed.bins - 1 - inner)
        bins[:, 0] = np.where((beyond < 0) | ((beyond > TAIL * before) & (before > 0)), inner, value)
        return bins

    def value(self, released: Released) -> Floats:
        """The chosen bin's value."""
        return self.bed.middle(self._bins(released)[:, 0])[:, None]

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """From the inner bin on all of the range beyond it; the whole range at levels higher than the choice's own."""
        low, high = self.whole(released.cells)
        if self.gap is None or _tail(released.noise[1], self.gap) > beta:
            return low, high
        bins = self._bins(released)
        sure = _tail(released.noise[1], self.gap) + _tail(released.noise[1], 2 - self.gap) <= beta
        least, most = self.bed.low(bins.min(axis=1))[:, None], self.bed.high(bins.max(axis=1))[:, None]
        return least if sure or self.largest else low, most if sure or not self.largest else high


RankReading = ChosenQuantile | ChosenExtreme | Picked | Quantile


@dataclass(frozen=True, slots=True)
class CountedFirst:
    """A group's quantile with the group's number of values in the first column, which says whether it has any."""

    of: RankReading

    def value(self, released: Released) -> Floats:
        """That of the other columns."""
        return self.of.value(_columns(released, 1, len(released.noise)))

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """That of the other columns."""
        return self.of.interval(_columns(released, 1, len(released.noise)), beta)

    def least(self, released: Released, beta: float) -> Floats:
        """The lower end of the count's interval."""
        return least_total(released, slice(1), beta)

    def bounds(self) -> tuple[Floats, Floats]:
        """Those of the quantile."""
        return self.of.bounds()


@dataclass(frozen=True, slots=True)
class SeveralQuantiles:
    """Several quantiles of each cell, each read from so many `blocks` of the release, one after the other."""

    wanted: tuple[RankReading | CountedFirst, ...]
    blocks: tuple[int, ...]

    def parts(self, released: Released) -> list[tuple[RankReading | CountedFirst, Released]]:
        """Each with its own blocks."""
        ends = np.cumsum((0, *self.blocks)).tolist()
        parts = (_columns(released, a, b) for a, b in itertools.pairwise(ends))
        return list(zip(self.wanted, parts, strict=True))

    def value(self, released: Released) -> Floats:
        """One column for each."""
        return np.concatenate([one.value(part) for one, part in self.parts(released)], axis=1)

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Each at its own 1 - beta."""
        ends = [one.interval(part, beta) for one, part in self.parts(released)]
        return np.concatenate([low for low, _ in ends], axis=1), np.concatenate([high for _, high in ends], axis=1)

    def least(self, released: Released, beta: float) -> Floats:
        """The least of any."""
        found: Floats = np.min([one.least(part, beta) for one, part in self.parts(released)], axis=0)
        return found

    def bounds(self) -> tuple[Floats, Floats]:
        """Each its own."""
        ends = [one.bounds() for one in self.wanted]
        return np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends])


def _columns(released: Released, first: int, last: int) -> Released:
    """Some blocks of a release."""
    ends = np.cumsum([0, *(noise.width for noise in released.noise)])
    return Released(released.units[:, ends[first] : ends[last]], released.noise[first:last], None, released.exact)


Chosen = ChosenQuantile | ChosenExtreme


def _all_chosen(columns: Sequence[tuple[object, Released]]) -> list[tuple[Chosen, Released]]:
    """The chosen ones among some readings and the parts of those."""
    found = list(columns)
    for reading, released in found:  # which grows by the parts of those that have some
        if isinstance(reading, CountedFirst):
            found.append((reading.of, _columns(released, 1, len(released.noise))))
        elif isinstance(reading, SeveralQuantiles):
            found += reading.parts(released)
    return [(one, part) for one, part in found if isinstance(one, (ChosenQuantile, ChosenExtreme))]


def rank_within(columns: Sequence[tuple[object, Released]]) -> str:
    """How near in rank those are for which no interval is bought; empty where there are none."""
    chosen = _all_chosen(columns)
    away = [math.ceil(part.noise[0].law.accuracy(NOTE_BETA) / one.per_row) for one, part in chosen if one.gap is None]
    return f"a chosen value's rank is within {max(away):,} rows, at 95%" if away else ""


def value_reach(columns: Sequence[tuple[object, Released]], rows: int, beta: float) -> float:
    """How far off chosen quantiles are themselves, of so many rows spread over the bins; endless where one is none."""
    found = [0.0 if columns else math.inf]
    for one, part in columns:
        if isinstance(one, Picked):
            bed, law, unit = one.tree.bed, part.noise[-1].law, rank_of(one.tree.how, one.tree.q).denominator
        elif isinstance(one, ChosenQuantile):
            bed, law, unit = one.bed, part.noise[0].law, one.per_row
        else:
            return math.inf
        found.append(law.accuracy(beta) / unit * float(bed.end - bed.start) / max(rows, 1))
    return max(found)


def notes(columns: Sequence[tuple[object, Released]]) -> tuple[str, ...]:
    """What is to be said of the chosen ones among some readings."""
    near = rank_within(columns)
    whole = (_unbounded(one, part) for one, part in _all_chosen(columns) if one.gap is not None)
    told = (f"no interval was bought: {near}",) if near else ()
    return (*told, WHOLE_RANGE) if any(whole) else told


def _unbounded(reading: Chosen, released: Released) -> bool:
    """Whether an interval that was paid for is the whole range."""
    ends = zip(reading.interval(released, NOTE_BETA), reading.whole(released.cells), strict=True)
    low, high = (found == end for found, end in ends)
    return bool((low & high).any())


class RankShares(NamedTuple):
    """Which parts of a spend buy what of quantiles of one value: each one's choice, each of its ends, the one tree."""

    choice: Fraction
    end: Fraction
    tree: Fraction


@dataclass(frozen=True, slots=True)
class RankForecast:
    """How far off quantiles of one value would be, in rows, for a person's one row at a spend of 1; public facts alone.

    A choice is off by a two-sided exponential of its scale; the tree's contrast is a sum of l(b-1)/2 counts on either
    side, fitting its levels saves a fifth; an end is as far away as its tail needs.
    """

    levels: int
    branch: int
    bins: int
    pure: bool
    groups: int = 1

    def _share(self, share: float) -> float:
        """What a part of the spend multiplies noise by."""
        return 1 / share if self.pure else 1 / math.sqrt(share)

    def choice(self, q: float, share: float) -> float:
        """The root mean square error of a chosen rank."""
        return (2.83 if self.pure else 1.0) * max(q, 1 - q) * self._share(share)

    def end(self, q: float, share: float) -> float:
        """How far away a chosen end is, at the level at which all ends of all groups are bought."""
        needed = math.log(max(self.bins - 1, 1)) + math.log(2 * self.groups / END_BETA)
        return (2.0 if self.pure else 0.7072) * max(q, 1 - q) * needed * self._share(share)

    def tree(self, q: float, share: float) -> float:
        """The standard deviation of the tree's contrast."""
        weights = self.levels * (self.branch - 1) * ((1 - q) ** 2 + q**2)
        alone = self.levels * math.sqrt(weights) if self.pure else math.sqrt(self.levels * weights) / 2
        return alone * self._share(share)

    def centre(self, *, interval: bool) -> Fraction:
        """Which part of a spend buys the values; the rest buys their intervals."""
        return Fraction(1) if not interval else Fraction(3, 4) if self.pure else Fraction(1, 2)

    def layout(self, wanted: Sequence[float], *, interval: bool) -> RankShares:
        """How a spend is divided: choices alone, choices with ends of their own or with a tree, or the tree alone.

        What counts is the root mean square error; beside an interval, the square of it times the interval's reach, as
        a value is read more often than its ends. A choice beside an interval is off by 4/3 of one without (pure), or
        by the root of 2.
        """
        number = len(wanted)
        centre = self.centre(interval=interval)
        each, rest = centre / number, 1 - centre
        found = RankShares(each, Fraction(0), Fraction(0))
        mine = math.prod(self.choice(q, float(each)) for q in wanted)
        other = math.prod(0.8 * self.tree(q, 1.0) for q in wanted)
        if interval:
            chosen = math.prod(self.end(q, float(rest / (2 * number))) for q in wanted)
            counted = math.prod(REACH * self.tree(q, float(rest)) for q in wanted)
            by_choice = chosen <= counted
            found = RankShares(
                each, rest / (2 * number) if by_choice else Fraction(0), Fraction(0) if by_choice else rest
            )
            mine = mine**2 * min(chosen, counted)
            other = other**2 * math.prod(REACH * self.tree(q, 1.0) for q in wanted)
        return found if mine < other else RankShares(Fraction(0), Fraction(0), Fraction(1))
