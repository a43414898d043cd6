"""A vector of all rows: as narrow as its bounds, whole before anybody reads it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.curator.engines.matrix import Matrix, size
from sulq.terms.kinds import Grid


@pytest.mark.parametrize(
    ("low", "high", "bytes_"),
    [
        (-128, 127, 1),
        (0, 128, 2),
        (-129, 0, 2),
        (-(2**15), 2**15 - 1, 2),
        (5, 2**15, 4),
        (-(2**31), 7, 4),
        (1, 2**31, 8),
    ],
)
@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("by_rows", [False, True])
def test_every_coordinate_fits(low: int, high: int, bytes_: int, nullable: bool, by_rows: bool) -> None:  # noqa: FBT001
    """Ends of the bounds, the zeros of missing rows and the ones below come back; the size is the one foreseen."""
    kind = Grid(Fraction(1), (low, low), (high, high), None, nullable=nullable)
    matrix = Matrix(kind, 3, by_rows=by_rows)
    assert matrix.bytes == size(kind, 3, by_rows=by_rows) == 3 * ((2 + by_rows) * bytes_ + nullable)
    units = np.array([[low, high, 0], [high, low, 0]], dtype=np.float64)
    missing = np.array([False, False, True]) if nullable else None
    matrix.write(0, units, missing)
    assert matrix.end()
    out = np.ones((3, 3), order="F" if by_rows else "C")
    found = matrix.read(0, out)
    assert out.tolist() == [*units.tolist(), [1, 1, 1]]
    assert (found is None) if missing is None else (found.tolist() == missing.tolist())
    assert matrix.read(1, out[:, :1]) is None or nullable
    assert out[:, 0].tolist() == [*units[:, 1].tolist(), 1]


def test_it_is_ready_when_every_row_was_written() -> None:
    """Batches in any order fill it; with one of them gone nobody may read it."""
    kind = Grid(Fraction(1), (0,), (9,), None, nullable=True)
    for starts, whole in (((4, 0, 2), True), ((0, 4), False), ((), False)):
        matrix = Matrix(kind, 6)
        for start in starts:
            matrix.write(start, np.array([[start, start + 1.0]]), None)
        assert matrix.end() is matrix.ready is whole
    assert Matrix(kind, 0).end()
