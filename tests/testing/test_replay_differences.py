"""Moves of recorded inputs are measured exactly, in the norm and against the debit that was paid."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sulq.language.law import AboveLaw, BinomialLaw, GaussianLaw, LaplaceLaw
from sulq.language.privacy import Draw, Event
from sulq.testing.replay import Entry, ReleaseCall, Run, cost, overruns


def one(law: object, given: list[list[int]], norm: str, sensitivity: int, event: Event) -> Run:
    draw = Draw(law.kind, "add_remove", norm, Fraction(sensitivity), Fraction(1), Fraction(1), np.size(given))
    array = np.array(given)
    return Run([ReleaseCall(0, law, array, array)], ["same"], [Entry("q", replace(event, draws=(draw,)), None)])


@pytest.mark.parametrize(
    ("law", "norm", "event", "moved", "broken"),
    [
        (LaplaceLaw(Fraction(2)), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[1, 1]], False),
        (LaplaceLaw(Fraction(2)), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[3, 0]], True),
        (LaplaceLaw(Fraction(1)), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[1, 1]], True),
        (GaussianLaw(Fraction(2)), ("l2", 4), Event(None, Fraction(1, 2)), [[2, 0]], False),
        (GaussianLaw(Fraction(2)), ("l2", 4), Event(None, Fraction(1, 2)), [[2, 1]], True),
        (GaussianLaw(Fraction(1)), ("l2", 4), Event(None, Fraction(1, 2)), [[2, 0]], True),
        (GaussianLaw(Fraction(9)), ("l2", 4), Event(None, Fraction(0), queries=2), [[2, 2]], False),
        (GaussianLaw(Fraction(9)), ("l2", 4), Event(None, Fraction(0), queries=2), [[3, 0]], True),
        (BinomialLaw(100), ("l1", 1), Event(None, Fraction(0), queries=1), [[1]], False),
        (BinomialLaw(100), ("l1", 1), Event(None, Fraction(0), queries=1), [[2]], True),
        (AboveLaw(Fraction(2), Fraction(2), 3), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[1, 1, 1]], False),
        (AboveLaw(Fraction(2), Fraction(2), 3), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[1, -1, 0]], True),
        (AboveLaw(Fraction(2), Fraction(0), 3), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[1, 1, 0]], False),
        (AboveLaw(Fraction(2), Fraction(0), 3), ("l1", 2), Event(Fraction(1), Fraction(1, 2)), [[1, 1, 1]], True),
        (AboveLaw(Fraction(2), Fraction(2), 3), ("l1", 2), Event(None, Fraction(1, 2)), [[0, 1, 1]], False),
        (AboveLaw(Fraction(2), Fraction(2), 3), ("l1", 2), Event(None, Fraction(1, 3)), [[0, 1, 1]], True),
    ],
)
def test_moves_are_measured_in_the_declared_norm(law, norm, event, moved, broken) -> None:
    """L1 for Laplace, L2 squared for Gaussian, the farthest sum for queries; cost against what was paid, exactly."""
    zero = [[0] * len(moved[0])]
    found = overruns(one(law, zero, *norm, event), one(law, moved, *norm, event))
    assert bool(found) is broken


@pytest.mark.parametrize(
    ("moved", "told"), [([1, 1, 2], ""), ([2, 0, 0], "moved 2, declared 1"), ([0, 2, 2], "moved 4, declared 3")]
)
def test_sums_drawn_in_one_call_are_measured_draw_by_draw(moved: list[int], told: str) -> None:
    """A call for a block of one sum and a block of two: each against what was declared for it, not their total."""
    law = LaplaceLaw(Fraction(2))
    draws = tuple(
        Draw("laplace", "add_remove", "l1", Fraction(most), Fraction(2), Fraction(1), cells)
        for most, cells in ((1, 1), (3, 2))
    )
    event = Event(Fraction(2), Fraction(2), draws=draws)

    def run(given: list[int]) -> Run:
        array = np.array([given])
        return Run([ReleaseCall(0, law, array, array)], ["same"], [Entry("q", event, None)])

    found = overruns(run([0, 0, 0]), run(moved))
    assert bool(found) is bool(told)
    assert told in "".join(found)
    assert overruns(run([0] * 4), run([0] * 4)) == ["ask 0: more was drawn than was paid for"]


def test_moves_of_64_bits_do_not_wrap() -> None:
    """The difference of sums at both ends of the range is taken in big integers."""
    law, event = LaplaceLaw(Fraction(1)), Event(Fraction(1), Fraction(1, 2))
    low, high = (one(law, [[value]], "l1", 1, event) for value in (-(2**62), 2**62))
    assert f"moved {2**63}" in overruns(low, high)[0]


def test_cost_knows_every_law() -> None:
    """The loss of one draw by its law; a law nobody knows is no law."""
    assert cost(LaplaceLaw(Fraction(4)), Fraction(2)) == Fraction(1, 2)
    assert cost(GaussianLaw(Fraction(2)), Fraction(4)) == Fraction(1, 2)
    assert cost(BinomialLaw(10), Fraction(5)) == 0
    assert cost(AboveLaw(Fraction(4), Fraction(4), 1), Fraction(2)) == Fraction(1, 2)
    with pytest.raises(TypeError):
        cost(None, Fraction(1))
