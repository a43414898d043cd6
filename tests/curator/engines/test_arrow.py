"""Frames arrive as a few plain kinds of columns, and one cell's kind changes no other cell's meaning (T26)."""

from __future__ import annotations

import datetime
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sulq.curator.engines import arrow
from sulq.errors import SetupError
from sulq.terms.domain import Category, Date, Int, Real, Schema, Text, Timestamp
from sulq.terms.rowfn import col, lit
from tests.curator.engines.cases import ask, duck, memory, sums

SCHEMA = Schema("data", (("n", Int(0, 9)), ("c", Category(("1", "2", "x"))), ("d", Date("2020-01-01", "2020-12-31"))))
TALLIES = [
    ask(col("n"), lit(1), by=(col("c"),), schema=SCHEMA),
    ask(lit(1), where=col("d") > "2020-06-01", schema=SCHEMA),
]


def both(data: object) -> list[list[list[int]]]:
    """The sums of both engines, which must agree."""
    found = sums(duck(data, schema=SCHEMA), *TALLIES)
    assert found == sums(memory(data, schema=SCHEMA), *TALLIES)
    assert found == sums(duck(data, schema=SCHEMA, prepared=False), *TALLIES)
    return found


def test_T26_one_missing_cell_changes_no_other_cells_kind() -> None:
    """A NULL turns a pandas column of integers into doubles, or of one kind into a mixture; the codes stay."""
    days = [datetime.date(2020, 1, 5), datetime.date(2020, 7, 1), datetime.date(2020, 8, 1)]
    want = both(pd.DataFrame({"n": [1, 2, 3], "c": [1, 2, 1], "d": days}))
    empty = {"n": [4], "c": [np.nan], "d": [None]}
    for extra in (empty, {"n": [4], "c": ["other"], "d": ["no day"]}, {"n": [4], "c": [Decimal("7.5")], "d": [pd.NaT]}):
        more = both(
            pd.concat([pd.DataFrame({"n": [1, 2, 3], "c": [1, 2, 1], "d": days}), pd.DataFrame(extra)]).astype(
                {"c": object, "d": object}
            )
        )
        assert more[0] == want[0]
        assert more[1] == want[1]
    assert both(pd.DataFrame({"n": [1.0, 2, 3], "c": [1.0, 2.0, 1.0], "d": pd.to_datetime(days)})) == want
    assert both(pl.DataFrame({"n": [1, 2, 3], "c": ["1", "2", "1"], "d": days})) == want


@pytest.mark.parametrize(
    "c",
    [
        pa.array(["x", None, "1"]).dictionary_encode(),
        pa.array(["x", None, "1"], pa.large_string()),
        pa.array(["x", None, "1"], pa.string_view()),
        pa.array([2, None, 1], pa.uint8()),
        pa.array([Decimal("2.00"), None, Decimal("1.00")]),
        pa.array([2.0, None, 1.0], pa.float16()),
        pa.array([None, None, None]),
    ],
    ids=lambda c: str(c.type)[:30],
)
def test_arrow_types_of_one_meaning_agree(c: pa.Array) -> None:
    """Encodings and widths are not meaning."""
    both(pa.table({"n": [1, 2, 3], "c": c, "d": ["2020-01-05"] * 3}))
    batch = pa.RecordBatch.from_pydict({"n": pa.array([1, 2, 3]), "c": c, "d": pa.array(["2020-01-05"] * 3)})
    both(batch)


def test_kinds_that_are_not_read_are_refused() -> None:
    """Lists, blobs and times of day are no columns of a question."""
    for cells in ([[1], [2]], [b"a", b"b"], [datetime.time(1), None]):
        data = pa.table({"n": [1, 2], "c": pa.array(cells), "d": ["2020-01-05"] * 2})
        for opened in (duck, memory):
            with pytest.raises(SetupError) as refused:
                opened(data, schema=SCHEMA).ready()
            assert refused.value.code == "bad-declaration"


def test_T99_text_that_is_no_utf8_is_missing() -> None:
    """A broken text concerns its own cell alone, in every kind of text column; so does half a surrogate pair."""
    offsets, letters = np.array([0, 1, 2, 3], np.int32).tobytes(), b"a\xffb"
    broken = pa.Array.from_buffers(pa.utf8(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
    for cells in (broken, broken.cast(pa.large_string()), broken.dictionary_encode(), broken.view(pa.string())):
        found, kinds = arrow.plain_table(pa.table({"c": cells}), {"c": 0})
        assert found.column(0).to_pylist() == ["a", None, "b"]
        assert kinds == {"c": "text"}
    found, _ = arrow.plain_table(pd.DataFrame({"c": pd.Series(["a", "\ud800", "b"], dtype=object)}), {"c": 0})
    assert found.column(0).to_pylist() == ["a", None, "b"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_of_every_unit_agree(unit: str) -> None:
    """Seconds to nanoseconds, with a zone or without, mean the same moments; far ones clamp, none overflows."""
    schema = Schema("data", (("t", Timestamp("1969-12-31T23:59:50", "2020-01-01T00:00:00")), ("w", Text())))
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    cells = [0, -scale, 5 * scale, 2**62, -(2**62), None, 2**63 - 1]
    asked = (
        ask(col("t") - 0, lit(1), schema=schema),
        ask(lit(1), where=col("t") >= "1970-01-01T00:00:00", schema=schema),
    )
    for zone in (None, "Asia/Tokyo"):
        data = pa.table({"t": pa.array(cells, pa.int64()).cast(pa.timestamp(unit, zone)), "w": ["a"] * 7})
        found = sums(duck(data, schema=schema), *asked)
        assert found == sums(memory(data, schema=schema), *asked)
        assert found[1] == [[4]]


def test_numbers_and_days_as_text() -> None:
    """Whole doubles print as digits; days and moments past the years 1 to 9999 have no text."""
    assert [arrow.number_text(x) for x in (1.0, -0.0, 2.5, 1e22, float("nan"), float("inf"))] == [
        "1",
        "0",
        "2.5",
        "1e+22",
        None,
        "inf",
    ]
    assert arrow.day_text(0) == "1970-01-01"
    assert arrow.day_text(3_000_000) is None
    assert arrow.moment_text(1_500_000) == "1970-01-01 00:00:01.5"
    assert Real(0, 1).step  # the frame's kinds carry no grid of their own


def test_whole_numbers_of_128_bits_are_exact() -> None:
    """DuckDB's widest integers, missing ones among them, in one piece or several, from any place on."""
    numbers = [0, 1, -1, 2**63, -(2**63) - 1, 2**64 - 1, -(2**64), 2**100, -(2**100), None, 7]
    shown = ", ".join(f"({'NULL' if n is None else n})" for n in numbers)
    with duckdb.connect() as connection:
        column = arrow.table(connection, f"SELECT CAST(x AS HUGEINT) FROM (VALUES {shown}) t(x)", {}).column(0)
    for start, given in ((0, column), (3, column.slice(3)), (2, column.combine_chunks().slice(2)), (11, column[:0])):
        values, missing = arrow.numpy_column(given)
        assert [None if gone else n for n, gone in zip(values, missing, strict=True)] == numbers[start:]
    several = pa.chunked_array([column.combine_chunks().slice(0, 4), column.combine_chunks().slice(9)])
    assert [int(n) for n in arrow.numpy_column(several)[0]] == [0, 1, -1, 2**63, 0, 7]
