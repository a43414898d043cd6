"""Histograms of every few attributes, over all people and over random subsets of them: what is asked, what is kept."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np

from sulq.answers.answer import Answers
from sulq.answers.plan import Plan
from sulq.errors import QuestionError
from sulq.language.attribute import Attribute
from sulq.language.kinds import Floats
from sulq.language.question import MAX_VALUES, Sums, Together
from sulq.language.rowfn import Lit, OrMissing, bucket
from sulq.release.subsets.estimates import Series
from sulq.release.tables.interactions import Places

Design = Literal["groups", "halves"]
LARGEST: Final = 2**22  # noisy counts in one release
ALL_PEOPLE: Final = Fraction(1, 5)  # of the spend, for the histograms over all people, where the subsets are groups
SAFE: Final = 3.0  # deviations of its noise that a number of people is at least, where something is divided by it


@dataclass(frozen=True, slots=True)
class SubsetQuestion:
    """Which histograms: of every `l` attributes, on `subsets` random subsets.

    Rows that miss an attribute have a cell of their own: every histogram of a subset sums to its number of rows.
    """

    attributes: tuple[Attribute, ...]
    l: int  # noqa: E741 - the paper's letter
    design: Design
    subsets: int
    salt: int

    def __post_init__(self) -> None:
        copies = self.subsets + 1
        asked = len(self.sets) * (2 if self.design == "groups" else copies)
        cells = copies * sum(math.prod(self.shape(own)) for own in self.sets)
        if asked > MAX_VALUES or cells > LARGEST:
            raise QuestionError(
                "too-large",
                f"This would be {asked:,} histograms with {cells:,} cells; {MAX_VALUES:,} and {LARGEST:,} fit.",
                "Take fewer attributes, bins or subsets.",
            )

    @property
    def sets(self) -> tuple[Places, ...]:
        """The sets of l attributes, by their places."""
        return tuple(itertools.combinations(range(len(self.attributes)), self.l))

    def shape(self, places: Sequence[int]) -> tuple[int, ...]:
        """The cells of a histogram, the missing of each attribute last."""
        return tuple(self.attributes[place].size + 1 for place in places)

    def histogram(self, places: Sequence[int]) -> Sums:
        """Counts by some attributes over all people."""
        return Sums((Lit(1),), by=tuple(OrMissing(self.attributes[place].row) for place in places))

    @property
    def question(self) -> Together:
        """All of it as one question, at one debit.

        A person is in one cell of each histogram: of `halves` the sensitivity is (t + 1) C(k, l) in L1 [X1], of
        `groups`, which divide the people, 2 C(k, l) whatever their number (SR11, SR13).
        """
        whole = [self.histogram(own) for own in self.sets]
        if self.design == "halves":
            halves = [bucket(2, self.salt + i) == 0 for i in range(self.subsets)]
            parts = [Sums(each.values, half, each.by) for half in halves for each in whole]
            return Together((*whole, *parts))
        group = bucket(self.subsets, self.salt)
        parts = [Sums(each.values, by=(group, *each.by)) for each in whole]
        return Together((*whole, *parts), (ALL_PEOPLE,) * len(whole) + (1 - ALL_PEOPLE,) * len(parts))

    def noise(self, plan: Plan) -> tuple[float, float]:
        """The variances of the noise in a cell, over all people and over a subset."""
        first, last = (part.noise[0] for part in (plan.parts[0], plan.parts[-1]))
        return first.law.variance() * float(first.step) ** 2, last.law.variance() * float(last.step) ** 2

    def read(self, answers: Answers) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
        """The noisy histograms over all people, and over the subsets: there a row a subset."""
        found = [answer.released.values()[:, 0] for answer in answers]
        sets = self.sets
        whole = tuple(cells.reshape(self.shape(own)) for own, cells in zip(sets, found, strict=False))
        parts = []
        for i, own in enumerate(sets):
            cells = found[len(sets) + i :: len(sets)]
            parts.append(np.concatenate(cells).reshape(self.subsets, *self.shape(own)))
        return whole, tuple(parts)


@dataclass(frozen=True, slots=True, eq=False)
class SubsetHistograms:
    """The noisy histograms, and the number of people their shares are of."""

    sets: tuple[Places, ...]
    whole: tuple[Floats, ...]
    parts: tuple[Floats, ...]
    whole_noise: float
    part_noise: float
    size: int | None  # the owner's declared one

    @property
    def people(self) -> float:
        """The declared number of rows, or the mean of what the histograms sum to, no less than its noise (SR6)."""
        if self.size is not None:
            return float(self.size)
        sums = [float(cells.sum()) for cells in self.whole]
        noise = math.sqrt(self.whole_noise * sum(cells.size for cells in self.whole)) / len(sums)
        return max(float(np.mean(sums)), SAFE * noise, 1.0)

    def series(self, places: Places, held: Places) -> Series:
        """Counts by some attributes, read off the histogram of a set that holds them."""
        own = self.sets.index(held)
        gone = tuple(axis for axis, place in enumerate(held) if place not in places)
        whole, parts = self.whole[own], self.parts[own]
        summed = math.prod(whole.shape[axis] for axis in gone)
        shares = whole.sum(axis=gone).ravel() / self.people
        counts = parts.sum(axis=tuple(axis + 1 for axis in gone)).reshape(len(parts), -1)
        ones = np.ones(len(shares))
        return Series(
            counts=counts,
            sizes=counts.sum(axis=1),
            chances=shares,
            noise=ones * (self.part_noise * summed),
            rest=ones * (self.part_noise * (whole.size - summed)),
            share_noise=ones * (self.whole_noise * summed / self.people**2),
        )

    def splits(self, places: Places) -> list[tuple[tuple[Places, Places], tuple[Places, Places]]]:
        """The ways to divide attributes into two parts, and for each the two different histograms that hold them.

        Two histograms have independent noise, which is what the estimates need; the least of other attributes is best.
        """
        l = len(self.sets[0])  # noqa: E741 - the paper's letter
        found = []
        larger = (len(places) + 1) // 2
        for one in itertools.combinations(places, larger):
            other = tuple(place for place in places if place not in one)
            if len(other) == larger and one[0] != places[0]:
                continue  # the same division the other way round
            if larger <= l and (held := self.pair(one, other)) is not None:
                found.append(((one, other), held))
        return found

    def pair(self, one: Places, other: Places) -> tuple[Places, Places] | None:
        """Histograms that hold the two parts, different ones, with as few cells to sum as can be."""
        first = sorted((own for own in self.sets if set(one) <= set(own)), key=self._cells)
        second = sorted((own for own in self.sets if set(other) <= set(own)), key=self._cells)
        pairs = ((a, b) for a in first for b in second if a != b)
        return next(pairs, None)

    def _cells(self, own: Places) -> int:
        return self.whole[self.sets.index(own)].size

    def holding(self, places: Places) -> Places:
        """The smallest histogram that holds some attributes."""
        return min((own for own in self.sets if set(places) <= set(own)), key=self._cells)
