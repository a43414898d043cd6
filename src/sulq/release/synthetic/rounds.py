"""Rounds of synthetic data: columns measured by themselves, then one marginal after the other, chosen and measured.

Which marginal the model explains worst is one choice among all of them, whose price does not grow with their number.
The smallest steps of a run are foreseen before its first ask: what would be refused later is refused then, unpaid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.oracle import SpendPlan
from sulq.answers.released import Noise
from sulq.errors import QuestionError
from sulq.kernel.scores import LARGEST_SHIFT
from sulq.language.kinds import Floats, Integers
from sulq.language.law import LaplaceLaw
from sulq.language.question import MAX_VALUES, Choose, Sums, Together
from sulq.language.rowfn import Lookup, Route, RowFn
from sulq.language.score import Distance
from sulq.release.space import CellSpace
from sulq.release.synthetic.models import GraphModel, MeasuredMarginal, TableModel, total
from sulq.release.tables.interactions import Places

SCORE_UNITS_A_ROW: Final = 16  # parts of a row that scores are counted in, so that what is subtracted is hardly rounded
MAX_TABLE_NUMBERS: Final = 2**18  # numbers of all tables of one question: beyond it cells are looked at in groups
MIN_GROUPS: Final = 4  # groups of a marginal
MIN_OWN_PART: Final = 0.9  # of the rows that the best cells would have, while which groups stay from round to round
EVERYBODY: Final = Route((), ())  # the key of one cell, where every row is


def distance(noise: Noise) -> float:
    """How far the noise is expected to move one number, about: the mean of its absolute value."""
    factor = math.sqrt(0.5) if isinstance(noise.law, LaplaceLaw) else math.sqrt(2.0 / math.pi)
    return factor * noise.deviation


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A marginal with the counts that a model expects of it.

    `weight`: how much it matters. `noise`: the distance that measuring it would be off by; what it explains beyond
    that is gained.
    """

    places: Places
    expected: Floats
    weight: int = 1
    noise: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class CellGroups:
    """How the cells of a marginal are looked at in a choice: each cell's group, and the table that says so."""

    group: Integers
    width: int
    table: Lookup

    @classmethod
    def of(cls, keys: tuple[RowFn, ...], expected: Floats, most: int) -> CellGroups:
        """Groups, at most so many, for the counts that a model expects."""
        group, width = _grouped(expected, most)
        table = np.zeros((expected.size, width), dtype=np.int64)
        table[np.arange(expected.size), group] = 1
        return cls(group, width, Lookup(keys, tuple(map(tuple, table.tolist()))))

    def still_good(self, expected: Floats, most: int) -> bool:
        """Whether the cells with a group of their own have nearly as many rows as the best ones would."""
        if self.width != min(expected.size, most):
            return False
        own = most // 2
        best = np.partition(expected, -own)[-own:].sum() if self.width < expected.size else 0.0
        return bool(expected[self.group < own].sum() >= MIN_OWN_PART * best)


def worst(
    space: CellSpace, candidates: Sequence[Candidate], known: MutableMapping[Places, CellGroups] | None = None
) -> Choose:
    """The question which candidate is farthest from what the model expects, in L1, weighed and less its noise.

    A row is one number in one of its marginal's cells, so it moves a candidate's distance by
    its weight, however many cells there are. Of marginals with many cells the rarest, as the model
    has it, are looked at in groups: that can only make them look nearer than they are. `known`: groups of the last
    round, which stay while they are good, so that the question is certified and planned once for many rounds.

    Raises:
        QuestionError: `too-large`: there are too many marginals, or they have too many cells.
    """
    sizes = [candidate.expected.size for candidate in candidates]
    most = max_groups(sizes)
    known = {} if known is None else known
    values, targets = [], []
    for candidate in candidates:
        expected, places = candidate.expected.ravel(), candidate.places
        if places not in known or not known[places].still_good(expected, most):
            known[places] = CellGroups.of(tuple(space.keys[place] for place in places), expected, most)
        groups = known[places]
        values.append(groups.table)
        aim = np.bincount(groups.group, weights=expected, minlength=groups.width)
        targets.append(tuple(int(n) for n in np.clip(np.rint(aim), -LARGEST_SHIFT, LARGEST_SHIFT)))
    score = Distance(
        tuple(targets),
        tuple(candidate.weight * SCORE_UNITS_A_ROW for candidate in candidates),
        tuple(-round(candidate.weight * SCORE_UNITS_A_ROW * candidate.noise) for candidate in candidates),
    )
    return Choose(Sums(tuple(values), space.complete, (EVERYBODY,)), score)


def max_groups(sizes: Sequence[int]) -> int:
    """How many groups a marginal may have, so that all tables together are no larger than a question holds.

    Raises:
        QuestionError: `too-large`: no question can hold marginals of these sizes.
    """
    if len(sizes) > MAX_VALUES:
        raise QuestionError(
            "too-large",
            f"{len(sizes):,} marginals are too many to choose from; {MAX_VALUES:,} fit.",
            "Name the marginals that matter, or take fewer ways or columns.",
        )
    most = max(sizes)
    while most > MIN_GROUPS and sum(size * min(size, most) for size in sizes) > MAX_TABLE_NUMBERS:
        most = max(most // 2, MIN_GROUPS)
    if sum(size * min(size, most) for size in sizes) > MAX_TABLE_NUMBERS:
        raise QuestionError(
            "too-large",
            f"The marginals have {sum(sizes):,} cells; about {MAX_TABLE_NUMBERS // MIN_GROUPS:,} fit.",
            "Name fewer marginals, or take fewer bins, ways or columns.",
        )
    return most


def _grouped(expected: Floats, most: int) -> tuple[Integers, int]:
    """Each cell's group: one of its own for those expected to be large, the others dealt out in turn."""
    if expected.size <= most:
        return np.arange(expected.size), expected.size
    order = np.argsort(-expected, kind="stable")
    own = most // 2
    group = np.empty(expected.size, dtype=np.int64)
    group[order[:own]] = np.arange(own)
    group[order[own:]] = own + np.arange(expected.size - own) % (most - own)
    return group, most


def rehearse(
    spending: SpendPlan,
    space: CellSpace,
    weights: Mapping[Places, int],
    *,
    first: Fraction,
    choosing: Fraction,
    measuring: Fraction,
) -> None:
    """Foresee the columns, and a choice among all marginals and a measurement, at the smallest parts they will have.

    Whether a question can be asked for a spend depends on its form and not on the counts that a model
    expects, so zeros stand for them. Larger parts have less noise: they are refused no sooner. Free.

    Raises:
        QuestionError: `bad-loss` where a part is less than what noise can be bought for; or what the plan has.
    """
    try:
        spending.foresee(Together(tuple(space.partition((place,)) for place in range(len(space.names)))), first)
        for places in {max(weights, key=space.size), max(weights, key=len)}:
            spending.foresee(space.partition(places), measuring)
        far = distance(spending.foresee(space.partition((0,)), measuring).parts[0].noise[0])
        candidates = [
            Candidate(places, np.zeros(space.shape(places)), weight, far * space.size(places))
            for places, weight in weights.items()
        ]
        spending.foresee(worst(space, candidates), choosing)
    except QuestionError as refusal:
        if refusal.code != "bad-loss":
            raise
        raise QuestionError(
            "bad-loss",
            f"{spending.whole} is too little for so many rounds: of their smallest part no noise can be bought.",
            "Spend more, or name fewer rounds.",
        ) from refusal


@dataclass(frozen=True, slots=True, eq=False)
class FinishedRun:
    """What the asks of a run came to: a model, the number of rows, and the marginals as they were told."""

    model: GraphModel | TableModel
    total: float
    measured: Sequence[MeasuredMarginal]


class MeasuringRounds:
    """One run: what was measured so far, and the model that learns from it; begins with the columns, at one debit."""

    def __init__(self, spending: SpendPlan, space: CellSpace, first: Fraction, steps: int) -> None:
        self.spending, self.space, self._steps = spending, space, steps
        self.model = GraphModel(space.sizes)
        self._groups: dict[Places, CellGroups] = {}
        alone = [(place,) for place in range(len(space.names))]
        answers = spending.several(Together(tuple(map(space.partition, alone))), first)
        self.measured = [
            MeasuredMarginal.of(answer, places, space) for answer, places in zip(answers, alone, strict=True)
        ]
        self.fit(steps)

    def fit(self, steps: int) -> None:
        """Let the model learn from all measurements."""
        self.model.fit(self.measured, total(self.measured), steps)

    def finished(self, steps: int) -> FinishedRun:
        """Fit for the last time."""
        self.fit(steps)
        return FinishedRun(self.model, total(self.measured), self.measured)

    def round(self, candidates: Sequence[Candidate], choosing: Fraction, measuring: Fraction) -> Candidate:
        """Choose a marginal, measure it and learn from it."""
        answer = self.spending.one(worst(self.space, candidates, self._groups), choosing)
        chosen = candidates[int(answer.released.units[0, 0])]
        found = self.spending.one(self.space.partition(chosen.places), measuring)
        self.measured.append(MeasuredMarginal.of(found, chosen.places, self.space))
        self.fit(self._steps)
        return chosen
