"""Norms of several equal vectors together."""

from __future__ import annotations

from sulq.kernel.moves import Norms


def test_so_many_equal_vectors_move_so_many_times_as_far() -> None:
    """In every norm, the L2 norm being squared."""
    assert Norms(3, 5, 2).times(4) == Norms(12, 80, 8)
