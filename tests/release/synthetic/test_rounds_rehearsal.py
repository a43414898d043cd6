"""A run's smallest steps are foreseen: what would be refused later is refused first, and costs nothing."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq import Rho
from sulq.answers.oracle import SpendPlan
from sulq.errors import QuestionError
from sulq.release.space import CellSpace
from sulq.release.synthetic import rounds
from sulq.release.synthetic.rounds import rehearse
from tests.release.synthetic.cases import BINS, NAMES, made

WEIGHTS = {(0,): 1, (0, 1): 2, (2, 3): 2}
HALF = Fraction(1, 2)


@pytest.mark.parametrize("small", ["first", "choosing", "measuring"])
def test_each_of_the_parts_is_foreseen(small: str) -> None:
    """Whichever of them is too small is refused with what to do; none of them is, where all are large (the control)."""
    db = made(9, Rho(1))
    space = CellSpace.of(NAMES, db.facts.schema, BINS)
    parts = {"first": HALF, "choosing": HALF, "measuring": HALF}
    rehearse(SpendPlan(db, Rho(1e-11)), space, WEIGHTS, **parts)
    with pytest.raises(QuestionError, match="name fewer rounds") as refusal:
        rehearse(SpendPlan(db, Rho(1e-11)), space, WEIGHTS, **{**parts, small: Fraction(1, 20_000)})
    assert refusal.value.code == "bad-loss"
    assert db.spent == Rho.total(0)


def test_other_refusals_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """More cells than a choice holds: the plan's own refusal, not one of the spend."""
    db = made(9, Rho(1))
    space = CellSpace.of(NAMES, db.facts.schema, BINS)
    monkeypatch.setattr(rounds, "MAX_TABLE_NUMBERS", 20)
    with pytest.raises(QuestionError, match="fewer marginals") as refusal:
        rehearse(SpendPlan(db, Rho(1e-3)), space, WEIGHTS, first=HALF, choosing=HALF, measuring=HALF)
    assert refusal.value.code == "too-large"
