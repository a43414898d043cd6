"""Moves of a statistic: of one number, both ways or one way, and limits by public numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq.curator.statistics.figure import Move, either_way, limit, monotone
from sulq.errors import QuestionError


def test_the_move_of_one_number_is_the_same_in_every_norm() -> None:
    """Squared in L2; one coordinate differs, or none."""
    assert Move.of(3) == Move(3, 9, 3, 1)
    assert Move.of(0) == Move(0, 0, 0, 0)


def test_an_exchange_costs_twice_only_where_rows_move_both_ways() -> None:
    """Monotone: what goes and what comes are no farther together than either."""
    assert monotone(Fraction(1), 4).swapped == Move.of(4)
    assert either_way(Fraction(1), 4).swapped == Move.of(8)
    assert either_way(Fraction(1), 4).alone == Move.of(4)


def test_a_limit_names_what_and_how_many() -> None:
    """At the limit nothing is refused, past it with both numbers."""
    limit(10, 10, "A cut of vertices")
    with pytest.raises(QuestionError, match="at most 10; here there are 11") as refused:
        limit(11, 10, "A cut of vertices")
    assert refused.value.code == "too-large"
