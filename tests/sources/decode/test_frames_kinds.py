"""Frames arrive as a few plain kinds of columns, and one cell's kind changes no other cell's meaning (T26)."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sulq.errors import SetupError
from sulq.language.domain import Category, Date, Int, Schema, Text, Timestamp
from sulq.language.rowfn import col, lit
from sulq.sources.decode import frames
from tests.sources.cases import ask, duck, memory, plain_engine, sums

SCHEMA = Schema("data", (("n", Int(0, 9)), ("c", Category(("1", "2", "x"))), ("d", Date("2020-01-01", "2020-12-31"))))
TALLIES = [
    ask(col("n"), lit(1), by=(col("c"),), schema=SCHEMA),
    ask(lit(1), where=col("d") > "2020-06-01", schema=SCHEMA),
]


def both(data: object) -> list[list[list[int]]]:
    """The sums of both engines, which must agree."""
    found = sums(duck(data, schema=SCHEMA), *TALLIES)
    assert found == sums(plain_engine(data, schema=SCHEMA), *TALLIES)
    assert found == sums(duck(data, schema=SCHEMA, prepared=False), *TALLIES)
    return found


def test_one_missing_cell_changes_no_other_cells_kind_T26() -> None:
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
        for opened in (duck, memory, plain_engine):
            with pytest.raises(SetupError) as refused:
                opened(data, schema=SCHEMA).ready()
            assert refused.value.code == "bad-declaration"


def test_text_that_is_no_utf8_is_missing_T99() -> None:
    """A broken text concerns its own cell alone, in every kind of text column; so does half a surrogate pair."""
    offsets, letters = np.array([0, 1, 2, 3], np.int32).tobytes(), b"a\xffb"
    broken = pa.Array.from_buffers(pa.utf8(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
    for cells in (broken, broken.cast(pa.large_string()), broken.dictionary_encode(), broken.view(pa.string())):
        found = frames.records(pa.table({"c": cells}), {"c": 0}, None, None)
        assert found.table.column(0).to_pylist() == ["a", None, "b"]
        assert found.kinds == ["VARCHAR"]
    found = frames.records(pd.DataFrame({"c": pd.Series(["a", "\ud800", "b"], dtype=object)}), {"c": 0}, None, None)
    assert found.table.column(0).to_pylist() == ["a", None, "b"]


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
        assert found == sums(plain_engine(data, schema=schema), *asked)
        assert found[1] == [[4]]
