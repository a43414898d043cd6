"""Norms of a block: those the theory gives for the blocks that are proposed, and brute force over small rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sulq.kernel.facts import Refused
from sulq.kernel.moves import Norms, moves, table
from sulq.kernel.relations import Certificate, Summand

U = {(0,): 1}
SQUARE = {(0, 0): 1}


def certificate(*sums: Summand, rows: int = 1, low: int = 0, high: int = 6) -> Certificate:
    """A certificate of sums in one atom."""
    return Certificate(sums, ((),), rows, every=False, apart=False, intervals={0: (low, high)})


def test_a_number() -> None:
    """A box: the farthest end, and its width; one that may be missing may also count as nothing."""
    found = moves(certificate(Summand(U), low=2, high=6), [{0: 1}])
    assert (found.single, found.pair) == (Norms(6, 36, 6), Norms(4, 16, 4))
    found = moves(certificate(Summand(U, frozenset({0})), low=2, high=6), [{0: 1}])
    assert (found.single, found.pair) == (Norms(6, 36, 6), Norms(6, 36, 6))


def test_rows_multiply_norms() -> None:
    """K equal rows move k times as far, in every norm."""
    assert moves(certificate(Summand(U), rows=3), [{0: 1}]).single == Norms(18, 18**2, 18)


@pytest.mark.parametrize("degree", [1, 2])
def test_the_terms_of_a_mean_or_variance_are_a_point_of_a_simplex(degree: int) -> None:
    """L1 is the whole, two of them are at most twice that apart, and sqrt(2) times in L2 (S4.5)."""
    sums = certificate(Summand({(): 1}), Summand(U), Summand(SQUARE))
    weights = [{1: 1}, {0: 6, 1: -1}] if degree == 1 else [{2: 1}, {1: 12, 2: -2}, {2: 1, 1: -12, 0: 36}]
    whole = 6**degree
    found = moves(sums, weights)
    assert (found.single.l1, found.single.l2_squared) == (whole, whole**2)
    assert (found.pair.l1, found.pair.l2_squared) == (2 * whole, 2 * whole**2)


def test_brute_force() -> None:
    """Every row and pair of rows, for weights of either sign, present or missing."""
    for low, high, missing in itertools.product((-2, 0), (1, 3), (False, True)):
        needs = frozenset({0}) if missing else frozenset[int]()
        sums = certificate(Summand({(): 1}), Summand(U, needs), Summand(SQUARE, needs), low=low, high=high)
        cells: list[int | None] = [*range(low, high + 1), *([None] if missing else [])]
        for a, b, c in itertools.product((-2, 1, 3), repeat=3):
            weights = [{0: a, 1: b}, {1: c, 2: 1}, {2: b, 0: -c}]
            rows = [
                tuple(
                    sum(w * {0: 1, 1: u or 0, 2: (u or 0) ** 2}[place] for place, w in each.items()) for each in weights
                )
                for u in cells
            ]
            found = moves(sums, weights)
            pairs = [tuple(x - y for x, y in zip(p, q, strict=True)) for p in rows for q in rows]
            for vectors, norms in ((rows, found.single), (pairs, found.pair)):
                assert max(sum(map(abs, v)) for v in vectors) <= norms.l1
                assert max(sum(x * x for x in v) for v in vectors) <= norms.l2_squared
                assert max(max(map(abs, v)) for v in vectors) <= norms.coordinate


def test_a_block_of_what_is_no_sum_of_rows_is_refused() -> None:
    """The number of persons is no sum of rows."""
    with pytest.raises(Refused):
        moves(certificate(Summand({}, people=True)), [{0: 1}])


@pytest.mark.parametrize("scale", [1, 2**33])
def test_a_public_table_is_looked_at_row_by_row(scale: int) -> None:
    """Norms of its rows and of their differences, nothing included, exact also past 64 bits; times the rows."""
    units = np.array([[1, -2, 0], [3, 3, 3], [0, 0, -4]], dtype=np.int64) * scale
    found = table(2, units)
    every = [*units.astype(object), np.zeros(3, dtype=object)]
    gaps = [p - q for p in every for q in every]
    assert found.single == Norms(2 * 9 * scale, 4 * 27 * scale**2, 2 * 4 * scale)
    assert found.pair.l1 == 2 * max(int(abs(gap).sum()) for gap in gaps)
    assert found.pair.l2_squared == 4 * max(int((gap * gap).sum()) for gap in gaps)
