"""Collects the sums that all statistics of a query need: equal sums are asked once, all at one debit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from sulq.answers import wire
from sulq.errors import QuestionError
from sulq.kernel.scores import Rank
from sulq.language import rowfn
from sulq.language.domain import Bool, Category, Date, Int, Schema
from sulq.language.facts import Facts
from sulq.language.kinds import Code, Scalar, Truth
from sulq.language.privacy import EpsilonDelta, Loss, Rho, SubLinear
from sulq.language.question import Choose, OpenSums, Sums, Together
from sulq.language.relation import Relation
from sulq.language.rowfn import RowFn
from sulq.language.shape import shape
from sulq.sql.released.columns import Cut, Leaf
from sulq.sql.rows.values import walk

# Of a value's spend, for its total beside open groups: the rest of m groups is as noisy as m + 4 of them, and
# every group shown by an eighth noisier at most.
TOTAL_SHARE: Final = Fraction(1, 4)


@dataclass(slots=True, eq=False)
class _Question:
    """One question in the making: its values, and what part of the spend each should get."""

    over: Relation
    where: RowFn | None
    by: tuple[RowFn, ...]
    open: bool
    score: Rank | None = None
    values: list[RowFn] = field(default_factory=list)
    weights: list[Fraction] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)


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

    def __init__(self, facts: Facts, spend: Loss | None) -> None:
        self.facts = facts
        self.gaussian = isinstance(spend, (Rho, EpsilonDelta))
        self.chooses = not isinstance(facts.budget, SubLinear)
        self._asked: list[_Question] = []
        self._places: dict[str, int] = {}

    def question(self) -> Together | None:
        """All of them at one debit; None where nothing is asked."""
        if not self._asked:
            return None
        made = []
        for asked in self._asked:
            shares = (*([Fraction(1)] if asked.open else []), *asked.weights)
            cls = OpenSums if asked.open else Sums
            question: Sums | OpenSums | Choose
            question = cls(tuple(asked.values), asked.where, asked.by, shares, asked.over)
            if asked.score is not None and isinstance(question, Sums):
                question = Choose(question, asked.score)
            made.append((question, sum(shares, Fraction(0))))
        return Together(tuple(question for question, _ in made), tuple(share for _, share in made))

    def put(self, rows: RowGroups, fn: RowFn, weight: Fraction | int = 1) -> tuple[int, int]:
        """Ask for the sum of a value, once: the places of its question and of its block there."""
        place = self.place(rows)
        asked, text = self._asked[place], wire.encode(fn)
        if text not in asked.places:
            asked.places[text] = len(asked.values)
            asked.values.append(fn)
            asked.weights.append(Fraction(weight))
        block = asked.places[text]
        asked.weights[block] = max(asked.weights[block], Fraction(weight))
        return place, block + asked.open  # of open keys the first block is the number of people

    def place(self, rows: RowGroups) -> int:
        """The question over these rows."""
        text = wire.encode([rows.over, rows.where, list(rows.keys), rows.open, rows.score])
        if text not in self._places:
            self._places[text] = len(self._asked)
            self._asked.append(_Question(rows.over, rows.where, rows.keys, rows.open, rows.score))
        return self._places[text]

    def rest(self, leaves: Sequence[Leaf]) -> list[Leaf]:
        """What the groups of leaves, found in the data and shown, leave of all rows: a total more for each sum."""
        totals = {}
        # In the order of the sums themselves: the same question however the statistics are listed.
        for place, block in sorted(
            {(cut.question, block) for leaf in leaves for cut in leaf.cuts for block in cut.blocks}
        ):
            asked = self._asked[place]
            fn, weight = asked.values[block - 1], asked.weights[block - 1]  # the first block is the people
            totals[place, block] = self.put(RowGroups(asked.over, asked.where, ()), fn, weight * TOTAL_SHARE)

        def total(cut: Cut) -> Cut:
            return cut_at(*(totals[cut.question, block] for block in cut.blocks), picked=cut.picked)

        return [replace(leaf, cuts=tuple(map(total, leaf.cuts)), less=leaf, _kept={}, _of=None) for leaf in leaves]

    def schema(self, rows: RowGroups) -> Schema:
        """The columns these rows have."""
        return shape(rows.over, self.facts).schema

    def cells(self, rows: RowGroups) -> int:
        """How many groups the keys make."""
        return math.prod(len(labels(key, self.schema(rows))[1]) for key in rows.keys)


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


def cut_at(*places: tuple[int, int], fold: int = 1, picked: tuple[int, ...] | None = None) -> Cut:
    """Blocks of one question's answer, by the places they were put at."""
    return Cut(places[0][0], tuple(block for _, block in places), fold, picked)


def exact(number: Fraction) -> int | float:
    """A number as a row function takes it."""
    return int(number) if number.denominator == 1 and abs(number) <= 2**53 else float(number)
