"""All marginals asked at once, in one question, where that is foreseen to be near enough.

Choosing what to measure pays where there is far more to measure than the spend is good for. Where there is
not, every choice is a part of the spend lost, and a fit that believes answers as far as they stand out of the noise
leaves little to choose. Which of the two it is follows from public facts, the noise of each way to ask them all, and a
noisy number of rows; nothing else of the data is looked at.

Three ways are foreseen: the coefficients of the marginals, those that more of them share with less noise
(under Gaussian noise that is never worse than asking the marginals themselves), the marginals, and all cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

import numpy as np

from sulq.answers.answer import Answers
from sulq.answers.released import Noise
from sulq.answers.spend_plan import Purse
from sulq.errors import QuestionError
from sulq.language.kinds import Floats
from sulq.language.question import MAX_VALUES, Question, Sums, Together
from sulq.language.rowfn import Lit
from sulq.release.synthetic.evidence import Evidence
from sulq.release.synthetic.fitted import Fitted
from sulq.release.synthetic.measurement import FINEST, Measurement, deviation
from sulq.release.synthetic.space import MOST_KEYS, Places, Space, closes, closure
from sulq.release.tables.coefficients import Design

SIZE: Final = Fraction(1, 50)  # of the spend, for the number of rows (SR6)
NEAR: Final = 0.5  # of the rows: the expected distance of a marginal, before the fit, up to which all are asked at once
MOST_CELLS: Final = 2**22  # of the table that is fitted
ENTRIES: Final = 2**22  # of the tables of coefficients
Read = tuple[Floats, tuple[Noise, ...]]  # one question's numbers, a row a cell, and their noise


class Way(Protocol):
    """One way to ask for all marginals at once."""

    question: Question

    def evidence(self, read: Sequence[Read]) -> Evidence:
        """What the answers say."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """What was made of one question: the model, its number of rows, and the marginals as they were told, before it."""

    model: Fitted
    total: float
    measured: tuple[Measurement, ...]


def whole(purse: Purse, space: Space, asked: Sequence[Places], most: int, ready: Callable[[], None]) -> Whole | None:
    """Ask for all marginals at once where the table has `most` cells or fewer and that is near enough, else for none.

    It is near enough where a marginal is expected to be off by no more than a part of the rows (NEAR). Of the spend a
    fiftieth is gone for the number of rows where that is not declared, and all of it where the marginals were asked.

    `ready` is called before the number of rows is asked, after which there may be rounds instead: it refuses what
    those would be refused for, while nothing is paid.
    """
    fits = space.cells <= min(most, MOST_CELLS) and closes(asked)
    ways = _ways(purse, space, asked) if fits else []
    known = purse.facts.size  # it decides alone: how many rows are complete, the answers say
    part = Fraction(1) if known is not None else 1 - SIZE
    foreseen = [(far, way) for way in ways if (far := _foreseen(purse, way, asked, part)) < math.inf]
    if not foreseen:
        return None
    far, way = min(foreseen, key=lambda each: each[0])
    rows: Evidence | None = None
    if known is None:
        ready()
        purse.plan(2)
        counted = purse.one(Sums((Lit(1),), space.complete), SIZE)
        rows = Evidence.measured([Measurement.of(counted, (), space)], space.sizes, [()])
    if far > NEAR * (rows.total if rows else float(known or 0)):
        return None
    answer = purse.ask(way.question, part)
    several = answer.answers if isinstance(answer, Answers) else (answer,)
    found = way.evidence([(each.released.values(), each.released.noise) for each in several])
    found = found.joined(rows) if rows else found
    return Whole(
        Fitted(space, found), found.total, tuple(Measurement(places, *found.marginal(places)) for places in asked)
    )


def _ways(purse: Purse, space: Space, asked: Sequence[Places]) -> list[Way]:
    columns = tuple(range(len(space.names)))
    found: list[Way] = [_Marginals(space, asked, [columns])] if len(columns) <= MOST_KEYS else []
    if sum(space.size(places) ** 2 for places in asked) <= ENTRIES:
        found.append(_Coefficients(space, asked, purse))
    if len(asked) <= MAX_VALUES:
        found.append(_Marginals(space, asked, asked))
    return found


def _foreseen(purse: Purse, way: Way, asked: Sequence[Places], part: Fraction) -> float:
    """How far a marginal is expected to be off, from the plan's noise alone; infinite where it cannot be asked."""
    try:
        plan = purse.foresee(way.question, part)
    except QuestionError:
        return math.inf
    return _distance(way.evidence([(_zeros(each.noise), each.noise) for each in plan.parts]), asked)


def _zeros(noise: Sequence[Noise]) -> Floats:
    return np.zeros((1, sum(each.width for each in noise)))


def _distance(evidence: Evidence, asked: Sequence[Places]) -> float:
    """The mean over the marginals of the expected L1 distance, before the fit: sums of many draws are near normal."""
    each = [values.size * spread for values, spread in map(evidence.marginal, asked)]
    return math.sqrt(2.0 / math.pi) * sum(each) / len(each)


class _Coefficients:
    """The coefficients of the marginals' interactions, as the contingency tables ask them."""

    def __init__(self, space: Space, asked: Sequence[Places], purse: Purse) -> None:
        paired = purse.facts.unit.neighbors == "replace_one"
        self._design = Design.of(tuple(asked), space.sizes, "best", pure=purse.pure, paired=paired)
        self.question: Question = self._design.question(space.keys, space.complete, pure=purse.pure)

    def evidence(self, read: Sequence[Read]) -> Evidence:
        """What the answer says."""
        ((values, noise),) = read
        return Evidence.told(self._design.read(values[0], noise), FINEST)


class _Marginals:
    """Marginals as partitions, an even share of the spend each: those asked for, or the one of all columns."""

    def __init__(self, space: Space, asked: Sequence[Places], held: Sequence[Places]) -> None:
        self._space, self._held = space, held
        self._parts = ((), *closure(asked))
        each = tuple(map(space.partition, held))
        self.question: Question = each[0] if len(each) == 1 else Together(each)

    def evidence(self, read: Sequence[Read]) -> Evidence:
        """What the answers say; of a plan, which has no cells, how noisy they would be."""
        several = [
            Measurement(places, np.broadcast_to(values.reshape(-1), size).reshape(shape), deviation(noise[0]))
            for (values, noise), places, size, shape in zip(
                read, self._held, map(self._space.size, self._held), map(self._space.shape, self._held), strict=True
            )
        ]
        return Evidence.measured(several, self._space.sizes, self._parts)
