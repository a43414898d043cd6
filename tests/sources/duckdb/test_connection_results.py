"""What DuckDB answers as NumPy's columns: exact, each cell in its place."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from sulq.sources.duckdb.connection import arrow_table, numpy_column


def test_whole_numbers_of_128_bits_are_exact() -> None:
    """DuckDB's widest integers, missing ones among them, in one piece or several, from any place on."""
    numbers = [0, 1, -1, 2**63, -(2**63) - 1, 2**64 - 1, -(2**64), 2**100, -(2**100), None, 7]
    shown = ", ".join(f"({'NULL' if n is None else n})" for n in numbers)
    with duckdb.connect() as connection:
        column = arrow_table(connection, f"SELECT CAST(x AS HUGEINT) FROM (VALUES {shown}) t(x)", {}).column(0)
    for start, given in ((0, column), (3, column.slice(3)), (2, column.combine_chunks().slice(2)), (11, column[:0])):
        values, missing = numpy_column(given)
        assert [None if gone else n for n, gone in zip(values, missing, strict=True)] == numbers[start:]
    several = pa.chunked_array([column.combine_chunks().slice(0, 4), column.combine_chunks().slice(9)])
    assert [int(n) for n in numpy_column(several)[0]] == [0, 1, -1, 2**63, 0, 7]
