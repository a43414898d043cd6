"""Rounds of synthetic data: columns measured by themselves, then one chosen marginal after the other."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

from sulq.answers.oracle import SpendPlan
from sulq.language.kinds import Floats
from sulq.language.question import Together
from sulq.release.space import CellSpace
from sulq.release.synthetic.finish import Model
from sulq.release.synthetic.measurement import MeasuredMarginal, total
from sulq.release.synthetic.worst import Candidate, worst
from sulq.release.tables.interactions import Places


class LearningModel(Model, Protocol):
    """A model that learns from measured marginals."""

    def marginal(self, places: Places) -> Floats:
        """The counts that it expects by some columns, ascending."""
        ...

    def fit(self, measured: Sequence[MeasuredMarginal], total: float, steps: int) -> None:
        """Learn from all measurements, in so many steps at most."""
        ...


Learner = TypeVar("Learner", bound=LearningModel)


class MeasuringRounds(Generic[Learner]):
    """One run: what was measured so far, and the model that learns from it; begins with the columns, at one debit."""

    def __init__(self, spending: SpendPlan, space: CellSpace, model: Learner, first: Fraction, steps: int) -> None:
        self.spending, self.space, self.model, self._steps = spending, space, model, steps
        alone = [(place,) for place in range(len(space.names))]
        answers = spending.several(Together(tuple(map(space.partition, alone))), first)
        self.measured = [
            MeasuredMarginal.of(answer, places, space) for answer, places in zip(answers, alone, strict=True)
        ]
        self.fit(steps)

    @property
    def total(self) -> float:
        """How many rows there are, as all measurements together say."""
        return total(self.measured)

    def fit(self, steps: int) -> None:
        """Let the model learn from all measurements."""
        self.model.fit(self.measured, self.total, steps)

    def round(self, candidates: Sequence[Candidate], choosing: Fraction, measuring: Fraction) -> Candidate:
        """Choose a marginal, measure it and learn from it."""
        answer = self.spending.one(worst(self.space, candidates), choosing)
        chosen = candidates[int(answer.released.units[0, 0])]
        found = self.spending.one(self.space.partition(chosen.places), measuring)
        self.measured.append(MeasuredMarginal.of(found, chosen.places, self.space))
        self.fit(self._steps)
        return chosen
