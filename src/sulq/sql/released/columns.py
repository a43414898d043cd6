"""Columns of released answers: which sums a query asks for, and the reading that makes them numbers.

Equal sums are asked once, all at one debit. A column names the blocks of an answer it is
read from. Cells that an answer splits further (bins of a tree, rows with and without a
value) are folded into columns; groups of a coarser grouping set are summed from a finer
one (SR13).
The rest (SR14): of groups that did not pass their threshold nothing leaves the curator,
so nothing is summed over them: the row for all of them is a noisy total, a question of
its own, less the noisy groups that are shown.
Accuracy: which groups are shown follows from the noise on their numbers of people
alone, and that is independent of the noise on their sums and on the total. Given
the groups shown, the difference is off by one draw of the total's noise and one of
each shown group's; every reading takes it as any other released cell.
Source: docs/theory/open-keys.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, TypeVar, cast

import numpy as np

from sulq.answers import wire
from sulq.answers.plan import Plan
from sulq.answers.readings.estimators import Plain, Reading
from sulq.answers.readings.joint import JointReading
from sulq.answers.readings.noise_sums import SMOOTH, AddedLaw, Counted, added, unknown
from sulq.answers.readings.regression import LineReading
from sulq.answers.readings.sampling import RowSum, Sampling, of_people, sampled
from sulq.answers.released import Noise, Released
from sulq.errors import QuestionError
from sulq.kernel.scores import Rank
from sulq.language import rowfn
from sulq.language.domain import Bool, Category, Date, Int, Schema
from sulq.language.facts import Facts
from sulq.language.kinds import Code, Floats, Integers, Scalar, Truth, Truths
from sulq.language.law import GaussianLaw, Law, round_up
from sulq.language.privacy import EpsilonDelta, EpsilonKeys, Loss, Rho, SubLinear
from sulq.language.question import Choose, OpenSums, Question, Sums, Together
from sulq.language.relation import Relation, Table
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.base import walk
from sulq.language.shape import shape


def rest(total: Released, shown: Released) -> Released:
    """One cell: the total's columns less those of all groups shown, with the noise of both."""
    units = total.units - shown.units.sum(axis=0, keepdims=True)
    noise = []
    for whole, each in zip(total.noise, shown.noise, strict=True):
        if whole.step != each.step or whole.width != each.width:
            raise ValueError("a total is told in the units of its groups")
        law = difference(whole.law, each.law, shown.cells)
        noise.append(Noise(law, whole.step, whole.width))  # type: ignore[arg-type]
    return Released(units, tuple(noise))


def difference(total: Law, group: Law, number: int) -> Law | AddedLaw:
    """The law of one draw of the total's noise less so many of a group's.

    Discrete Gaussians of scale 2 or more add up to one, up to 1e-16. Below that a
    scale is raised: either to 2, or all of them to the larger one. More noise spreads a
    sum of symmetric unimodal draws, so no interval becomes too short (Birnbaum).
    """
    if not number:
        return total
    if not isinstance(total, GaussianLaw) or not isinstance(group, GaussianLaw):
        raise TypeError("only noise on sums adds up")
    least = Fraction(SMOOTH)
    whole, each = max(total.scale, least), max(group.scale, least)
    wide = math.sqrt(whole**2 + number * each**2)
    alike = GaussianLaw(max(total.scale, group.scale))
    if alike.scale < least and (number + 1) * alike.variance() < wide**2:
        return added(alike, number + 1)
    return GaussianLaw(round_up(Fraction(wide * (1 + 1e-12))))


T = TypeVar("T")
# What makes released columns one number a cell, with an interval.
ColumnReading = Reading | JointReading | LineReading | RowSum


@dataclass(frozen=True, slots=True)
class AnswerSlice:
    """Blocks of one answer; `fold` cells of it are one group; `picked` names the columns wanted of those that gives."""

    question: int
    blocks: tuple[int, ...]
    fold: int = 1
    picked: tuple[int, ...] | None = None

    def columns(self, released: Released) -> tuple[Integers, list[Noise]]:
        """The units and the noise of the columns."""
        widths = [noise.width for noise in released.noise]
        starts = np.cumsum([0, *widths])
        chosen = [i for block in self.blocks for i in range(starts[block], starts[block + 1])]
        units = released.units[:, chosen]
        noises = [released.noise[block] for block in self.blocks]
        if self.fold > 1:
            units = units.reshape(len(units) // self.fold, -1)
            one = len(noises) == 1
            noises = [Noise(n.law, n.step, n.width * self.fold) for n in noises] if one else noises * self.fold
        if self.picked is not None:
            single = [Noise(n.law, n.step, 1) for n in noises for _ in range(n.width)]
            units, noises = units[:, list(self.picked)], [single[i] for i in self.picked]
        return units, noises


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Which rows a column counts: those of a relation that satisfy conditions, by keys; `each`: every one of them."""

    over: str
    keys: str
    conditions: frozenset[str]
    each: bool = True


@dataclass(slots=True, eq=False)
class StatColumn:
    """One statistic of each group: where its columns are and how they are read.

    `whole`: its values are whole numbers. `clock`: they are moments. `summed`: how the
    groups asked are added up to those shown: the sizes of the asked keys and which of
    them stay. `less`: groups of which this is the rest (SR14). `counted`: the rows it is a count of, where it is one.
    Without a known law of sampling an interval that counts it is endless.
    """

    slices: tuple[AnswerSlice, ...]
    reading: ColumnReading
    whole: bool = False
    clock: str | None = None
    summed: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    less: StatColumn | None = None
    counted: CountedRows | None = None
    rows_each: int = 0  # rows of one person it is over; 0: no sampling of a population is known of it
    sampling: float = 0.0  # 0: intervals count noise alone; else by what a deviation of independent rows is multiplied
    _kept: dict[object, object] = field(default_factory=dict)
    _of: object = None  # the answers that what is kept was worked out from

    def once(self, answers: Sequence[Released], what: object, work: Callable[[], T]) -> T:
        """What is worked out from these answers, once."""
        if self._of is not answers:
            self._of, self._kept = answers, {}
        if what not in self._kept:
            self._kept[what] = work()
        return cast("T", self._kept[what])

    def released(self, answers: Sequence[Released]) -> Released:
        """Its cells, a row for each group."""
        return self.once(answers, "released", lambda: self._columns(answers))

    def _columns(self, answers: Sequence[Released]) -> Released:
        parts = [part.columns(answers[part.question]) for part in self.slices]
        units = np.concatenate([units for units, _ in parts], axis=1)
        found = Released(units, tuple(noise for _, noises in parts for noise in noises))
        if self.summed is not None:
            found = coarser(found, *self.summed)
        if self.less is not None:
            found = rest(found, self.less.released(answers))
        return replace(found, exact=all(answers[part.question].exact for part in self.slices))

    def origins(self, answers: Sequence[Released]) -> list[tuple[int, int]] | None:
        """The question and the column of each released sum it is read from; None where cells were folded."""
        found = []
        for part in self.slices:
            starts = np.cumsum([0, *(noise.width for noise in answers[part.question].noise)])
            every = [i for block in part.blocks for i in range(starts[block], starts[block + 1])]
            found += [(part.question, every[i]) for i in (range(len(every)) if part.picked is None else part.picked)]
        return None if any(part.fold > 1 for part in self.slices) else found

    @property
    def is_one_sum(self) -> bool:
        """Whether it is one released sum a group, so that sums of groups have a known law."""
        return isinstance(self.reading, Plain) and len(self.slices) == 1 and len(self.slices[0].blocks) == 1

    def values(self, answers: Sequence[Released]) -> Floats:
        """The statistic of each group."""
        return self.once(answers, "value", lambda: self.reading.value(self.released(answers))[:, 0])

    def unknown(self, answers: Sequence[Released]) -> tuple[Truths, float, float] | None:
        """Which groups may have no rows, and the whole range of what is then unknown; None for counts and sums."""
        return self.once(answers, "unknown", lambda: self._unknown(answers))

    def _unknown(self, answers: Sequence[Released]) -> tuple[Truths, float, float] | None:
        reading = self.reading
        if not isinstance(reading, Counted):
            return None
        (low,), (high,) = reading.bounds()
        return unknown(reading, self.released(answers)), float(low), float(high)

    def interval(self, answers: Sequence[Released], beta: float) -> tuple[Floats, Floats]:
        """From where to where, except with probability beta a group."""
        low, high = self.once(answers, beta, lambda: self._interval(self.released(answers), beta))
        return low[:, 0], high[:, 0]

    def _interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        if not self.sampling:
            return self.reading.interval(released, beta)
        try:
            if self.sampling > 0:
                return sampled(self.reading, released, beta, factor=self.sampling)
        except QuestionError:  # no law of its sampling is known
            pass
        return np.full((released.cells, 1), -np.inf), np.full((released.cells, 1), np.inf)

    def with_sampling(self, sampling: Sampling) -> StatColumn:
        """The same column with intervals that count the sampling of a larger population."""
        factor = (math.sqrt(self.rows_each) if of_people(sampling) else 1.0) if self.rows_each else math.nan
        return replace(self, sampling=factor, _kept={}, _of=None)


def coarser(released: Released, sizes: tuple[int, ...], kept: tuple[int, ...]) -> Released:
    """The groups of fewer keys, each the sum of the groups it is made of; its noise is the sum of theirs."""
    away = tuple(i for i in range(len(sizes)) if i not in kept)
    width = released.units.shape[1]
    units = released.units.reshape((*sizes, width)).sum(axis=away)
    # The kept keys may be wanted in another order than they were asked in.
    order = sorted(kept)
    units = np.transpose(units, [*(order.index(i) for i in kept), len(kept)]).reshape(-1, width)
    number = int(np.prod([sizes[i] for i in away]))
    noise = tuple(Noise(added(n.law, number), n.step, n.width) for n in released.noise)  # type: ignore[arg-type]
    return Released(units, noise)


# Of a value's spend, for its total beside open groups: the rest of m groups is as noisy as m + 4 of them, and
# every group shown by an eighth noisier at most.
TOTAL_SHARE: Final = Fraction(1, 4)
DECLARE: Final = "Declare the categories of the key; no spend finds groups for this."


@dataclass(frozen=True, slots=True, eq=False)
class RowGroups:
    """The rows statistics are of: a relation, a condition and the keys of its groups."""

    over: Relation
    where: RowFn | None
    keys: tuple[RowFn, ...]
    open: bool = False
    alone: bool = True  # no other grouping set is added up from these groups
    score: Rank | None = None  # of a choice: which bin of the last key is looked for


class SumCollector:
    """Collects the sums that all statistics of a query need."""

    def __init__(
        self,
        facts: Facts,
        spend: Loss | None,
        *,
        interval: bool = True,
        counted: bool = False,
        laws: Mapping[str, Law] | None = None,
        keys: dict[object, RowFn] | None = None,
    ) -> None:
        self.facts = facts
        self.spend = spend
        self.gaussian = isinstance(spend, (Rho, EpsilonDelta))
        self.laplace_keys = isinstance(spend, EpsilonKeys)
        self.chooses = not counted and not isinstance(facts.budget, SubLinear)  # else all quantiles are from trees
        self.interval = interval  # of chosen quantiles, whether one is bought
        self._laws = laws  # of choices, by the text of what is chosen from; None: not known yet
        self._keys = {} if keys is None else keys  # of bins, each made once: it keeps its labels
        self.weight = Fraction(0)  # of all that is asked for
        self.shifted = False  # whether a rank was asked for that is shifted by what its law needs
        # The rows of each question in the making, and by its text each value with its part of the spend.
        self._asked: list[tuple[RowGroups, dict[str, tuple[RowFn, Fraction]]]] = []
        self._places: dict[str, int] = {}

    def question(self) -> Together | None:
        """All of them at one debit; None where nothing is asked."""
        if not self._asked:
            return None
        made = []
        for rows, sums in self._asked:
            values, weights = zip(*sums.values(), strict=True) if sums else ((), ())
            shares = (Fraction(1), *weights) if rows.open else weights
            question: Sums | OpenSums | Choose
            question = (OpenSums if rows.open else Sums)(values, rows.where, rows.keys, shares, rows.over)
            if rows.score is not None and isinstance(question, Sums):
                question = Choose(question, rows.score)
            made.append((question, sum(shares, Fraction(0))))
        return Together(tuple(question for question, _ in made), tuple(share for _, share in made))

    def size(self, rows: RowGroups) -> int | None:
        """The number of these rows, where it is public: all rows of the table whose size is declared (SR6)."""
        table = isinstance(rows.over, Table) and rows.over.name in ("", self.facts.table)
        return self.facts.fixed_size if table and rows.where is None and not rows.keys and not rows.open else None

    def put(self, rows: RowGroups, fn: RowFn, weight: Fraction | int = 1) -> tuple[int, int]:
        """Ask for the sum of a value, once: the places of its question and of its block there."""
        place = self.place(rows)
        sums, text = self._asked[place][1], wire.encode(fn)
        _, before = sums.get(text, (fn, Fraction(0)))
        sums[text] = fn, max(before, Fraction(weight))
        self.weight += sums[text][1] - before
        return place, list(sums).index(text) + rows.open  # of open keys the first block is the number of people

    def law(self, rows: RowGroups) -> Law | None:
        """The law of the choice that was first asked for with this score; None while that is being asked."""
        self.shifted = True
        return None if self._laws is None else self._laws.get(_text(rows))

    def laws(self, plan: Plan) -> dict[str, Law]:
        """The laws that a plan of its question gives its choices."""
        return {text: plan.parts[place].laws[0] for text, place in self._places.items() if self._asked[place][0].score}

    def once(self, what: object, make: Callable[[], RowFn]) -> RowFn:
        """A key that equal ones of the same request are made of: it is one object, which works out its labels once."""
        if what not in self._keys:
            self._keys[what] = make()
        return self._keys[what]

    def place(self, rows: RowGroups) -> int:
        """The question over these rows."""
        text = _text(rows)
        if text not in self._places:
            self._places[text] = len(self._asked)
            self._asked.append((rows, {}))
        return self._places[text]

    def rest(self, columns: Sequence[StatColumn]) -> list[StatColumn]:
        """What the groups of columns, found in the data and shown, leave of all rows: a total more for each sum."""
        totals = {}
        parts = {(part.question, block) for column in columns for part in column.slices for block in part.blocks}
        for place, block in sorted(parts):  # in their own order: the same question however statistics are listed
            rows, sums = self._asked[place]
            fn, weight = list(sums.values())[block - 1]  # the first block is the people
            totals[place, block] = self.put(RowGroups(rows.over, rows.where, ()), fn, weight * TOTAL_SHARE)

        def total(part: AnswerSlice) -> AnswerSlice:
            return slice_at(*(totals[part.question, block] for block in part.blocks), picked=part.picked)

        parts_of = [(column, tuple(map(total, column.slices))) for column in columns]
        return [replace(column, slices=parts, less=column, _kept={}, _of=None) for column, parts in parts_of]

    def schema(self, rows: RowGroups) -> Schema:
        """The columns these rows have."""
        return shape(rows.over, self.facts).schema

    def cells(self, rows: RowGroups) -> int:
        """How many groups the keys make."""
        return math.prod(len(labels(key, self.schema(rows))[1]) for key in rows.keys)


def _text(rows: RowGroups) -> str:
    """What rows, groups and score are asked of: equal ones are asked once."""
    return wire.encode([rows.over, rows.where, list(rows.keys), rows.open, rows.score])


Foresee = Callable[[Question, Loss | None], Plan]  # the Oracle's, which reads no row


def collect(
    facts: Facts,
    spend: Loss | None,
    ask: Callable[[SumCollector], T],
    foresee: Foresee | None,
    *,
    interval: bool = True,
    counted: bool = False,
    keys: dict[object, RowFn] | None = None,
) -> tuple[Together | None, T]:
    """All that is asked, as one question, and what is made of it.

    How far a rank is shifted follows from its choice's law, and that from how the spend is divided over all that is
    asked: so it is asked twice, first to learn the laws. From public facts alone. Without `foresee` no end is shifted
    as it must be, and intervals of chosen quantiles are the whole range.
    """
    keys = {} if keys is None else keys
    asking = SumCollector(facts, spend, interval=interval, counted=counted, keys=keys)
    made = ask(asking)
    question = asking.question()
    if question is None or foresee is None or not asking.shifted:
        return question, made
    try:
        plan = foresee(question, spend)
    except QuestionError:  # which asking will say
        return question, made
    asking = SumCollector(facts, spend, interval=interval, laws=asking.laws(plan), keys=keys)
    made = ask(asking)
    return asking.question(), made


def labels(key: RowFn, schema: Schema) -> tuple[RowFn, tuple[object, ...], str | None]:
    """A key as a question takes it, its labels, and the clock they are read by."""
    kind = key.kind(schema)
    clock = kind.clock if isinstance(kind, Scalar) else None
    fitted = key if isinstance(kind, Code) else rowfn.Each(key)
    found = fitted.kind(schema)
    if not isinstance(found, Code):
        raise QuestionError("wrong-kind", "This cannot be a key.")
    return fitted, found.labels, clock


def is_whole(fn: RowFn, schema: Schema) -> bool:
    """Whether a value is a whole number by its type: made of whole columns, on a whole lattice."""
    kind = fn.kind(schema)
    if isinstance(kind, Truth):
        return True
    if not isinstance(kind, Scalar) or kind.step is None or kind.step.denominator != 1:
        return False
    for part in walk(fn):
        if isinstance(part, rowfn.Lit) and isinstance(part.value, float):
            return False
        if isinstance(part, rowfn.Col) and not isinstance(schema.find(part.name), (Int, Bool, Category, Date)):
            return False
    return True


def slice_at(*places: tuple[int, int], fold: int = 1, picked: tuple[int, ...] | None = None) -> AnswerSlice:
    """Blocks of one question's answer, by the places they were put at."""
    return AnswerSlice(places[0][0], tuple(block for _, block in places), fold, picked)


def exact(number: Fraction) -> int | float:
    """A number as a row function takes it."""
    return int(number) if number.denominator == 1 and abs(number) <= 2**53 else float(number)
