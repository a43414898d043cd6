"""Which combinations occur: exact bits, a person moves as many as it has rows."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq.curator.statistics import occurring
from sulq.errors import QuestionError
from sulq.terms.engine import Block
from sulq.terms.rowfn.scalar import Col
from sulq.terms.statistic import Occurring
from tests.curator.statistics.small_graphs import moves, table, worked_out

BLOCKS = tuple(
    Block(Col(name), Fraction(1), (low,), (high,), vector=False) for name, low, high in (("a", 3, 4), ("b", 0, 1))
)
KINDS = [(a, b) for a in (3, 4) for b in (0, 1)]
ASKED = Occurring(("a", "b"))


def test_bits_are_of_combinations_in_order() -> None:
    """The last column's values run fastest; numbers are counted from the lowest."""
    assert occurring.exact(ASKED, BLOCKS, table([(4, 0), (4, 0), (3, 1)], 2)).tolist() == [0, 1, 1, 0]
    assert occurring.exact(ASKED, BLOCKS, table([], 2)).tolist() == [0, 0, 0, 0]


def test_brute_force_sensitivity_of_what_occurs() -> None:
    """All tables of up to four rows: k bits alone, 2k exchanged; control: k would not do for an exchange."""
    values = worked_out(lambda rows: occurring.exact(ASKED, BLOCKS, rows), KINDS, 4)
    for k in (1, 2):
        said = occurring.figure(ASKED, BLOCKS, k)
        alone, swapped = moves(values, KINDS, k)
        assert alone == (said.alone.l1, said.alone.l2_squared, said.alone.most, said.alone.bits)
        assert k < swapped[3] == said.swapped.bits == 2 * k


def test_too_many_combinations_are_refused() -> None:
    """By their declared number."""
    wide = tuple(Block(Col(name), Fraction(1), (0,), (2**11,), vector=False) for name in "ab")
    with pytest.raises(QuestionError) as refused:
        occurring.figure(ASKED, wide, 1)
    assert refused.value.code == "too-large"
