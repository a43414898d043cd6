"""Moves of a statistic: of one number, of bits, and of what every row moves the same way."""

from __future__ import annotations

import pytest

from sulq.kernel.facts import Refused
from sulq.kernel.whole.figure import Move, monotone, of_bits, whole


def test_the_move_of_one_number_is_the_same_in_every_norm() -> None:
    """Squared in L2; one coordinate differs, or none."""
    assert Move.of(3) == Move(3, 9, 3, 1)
    assert Move.of(0) == Move(0, 0, 0, 0)


def test_an_exchange_costs_twice_only_where_rows_move_both_ways() -> None:
    """Monotone: what goes and what comes are no farther together than either."""
    assert monotone(4).swapped == monotone(4).alone == Move.of(4)
    assert of_bits(9, 4).alone == Move(4, 4, 1, 4)
    assert of_bits(9, 4).swapped == Move(8, 8, 1, 8)
    assert of_bits(9, 9).swapped == Move.of_bits(9)  # there are no more


def test_what_is_no_whole_number_within_bounds_is_refused() -> None:
    """A truth value and a double are none; control: both ends are."""
    for number in (True, 1.0, "1", None, 0, 4):
        with pytest.raises(Refused):
            whole(number, 1, 3)
    whole(1, 1, 3)
    whole(3, 1, 3)
