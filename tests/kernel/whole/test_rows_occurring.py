"""Which combinations occur: exact bits, a person moves as many as it has rows."""

from __future__ import annotations

import pytest

from sulq.kernel.facts import Refused
from sulq.kernel.whole.rows import CellCounts, Occurring
from tests.kernel.whole.small_graphs import moves, table, worked_out

KINDS = [(a, b) for a in (3, 4) for b in (0, 1)]
ASKED = Occurring(((3, 4), (0, 1)))


def test_bits_are_of_combinations_in_order() -> None:
    """The last column's values run fastest; numbers are counted from the lowest."""
    assert ASKED.exact(table([(4, 0), (4, 0), (3, 1)], 2)).tolist() == [0, 1, 1, 0]
    assert ASKED.exact(table([], 2)).tolist() == [0, 0, 0, 0]


def test_brute_force_sensitivity_of_what_occurs() -> None:
    """All tables of up to four rows: k bits alone, 2k exchanged; control: k would not do for an exchange."""
    values = worked_out(ASKED.exact, KINDS, 4)
    for k in (1, 2):
        said = ASKED.figure(k)
        alone, swapped = moves(values, KINDS, k)
        assert alone == (said.alone.l1, said.alone.l2_squared, said.alone.most, said.alone.bits)
        assert k < swapped[3] == said.swapped.bits == 2 * k


def test_a_row_out_of_bounds_has_no_combination() -> None:
    """It is left out, by itself alone; bounds that are none are refused."""
    assert ASKED.exact(table([(4, 0), (5, 0), (3, -1)], 2)).tolist() == [0, 0, 1, 0]
    for bounds in ((), ((1, 0),), ((0, 2**41),), ((0, 0.5),)):
        with pytest.raises(Refused):
            Occurring(bounds)


def test_counts_are_how_often_each_combination_occurs_S4_28() -> None:
    """All tables of up to four rows: exact, k rows move k counts together, an exchange 2k, and that is reached."""
    counts = CellCounts(((3, 4), (0, 1)))
    assert counts.exact(table([(4, 0), (4, 0), (3, 1), (9, 9)], 2)).tolist() == [0, 1, 2, 0]
    values = worked_out(counts.exact, KINDS, 4)
    for k in (1, 2):
        said = counts.figure(k)
        alone, swapped = moves(values, KINDS, k)
        assert alone == (said.alone.l1, said.alone.l2_squared, said.alone.most, said.alone.bits)
        assert swapped == (said.swapped.l1, said.swapped.l2_squared, said.swapped.most, said.swapped.bits)
