"""Numbers as literals of SQL: DuckDB reads back what was meant."""

from __future__ import annotations

import duckdb

from sulq.language.rowfn.piece import double, whole
from tests import counts


def test_a_double_literal_is_read_back_to_its_bits() -> None:
    """What stands in SQL is the double that was meant; zero has no sign."""
    rng = counts.generator(1)
    numbers = [rng.gauss(0, 1) * 10.0 ** rng.randint(-300, 300) for _ in range(2_000)]
    numbers += [5e-324, 1e308, -0.0, 2.0**-1074]
    with duckdb.connect() as own:
        found = own.execute(f"SELECT unnest([{', '.join(map(double, numbers))}])").fetchall()
    assert [x for (x,) in found] == [x + 0.0 for x in numbers]


def test_a_whole_literal_may_stand_after_a_sign() -> None:
    """A negative one is in brackets: 5 - -3 would begin a comment where the blank is missing."""
    with duckdb.connect() as own:
        for number in (0, 7, -7, 2**62, -(2**62)):
            assert own.execute(f"SELECT 5 -{whole(number)}").fetchone() == (5 - number,)
