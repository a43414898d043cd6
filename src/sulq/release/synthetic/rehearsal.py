"""The smallest steps of a run, foreseen before its first ask: what would be refused later is refused then, unpaid."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from sulq.answers.oracle import SpendPlan
from sulq.errors import QuestionError
from sulq.language.question import Together
from sulq.release.space import CellSpace
from sulq.release.synthetic.measurement import distance
from sulq.release.synthetic.worst import Candidate, worst
from sulq.release.tables.interactions import Places


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
