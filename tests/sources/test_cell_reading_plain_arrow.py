"""Cells in plain Python: what the engine `memory` makes of columns that were decoded."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sulq.errors import SetupError
from sulq.language.domain import Real
from sulq.sources.decode.frames import number_text
from tests.sources import plain_reading as reading


def test_numbers_and_days_as_text() -> None:
    """Whole doubles print as digits; days and moments past the years 1 to 9999 have no text."""
    assert [number_text(x) for x in (1.0, -0.0, 2.5, 1e22, float("nan"), float("inf"))] == [
        "1",
        "0",
        "2.5",
        "1e+22",
        None,
        "inf",
    ]
    assert reading.day_text(0) == "1970-01-01"
    assert reading.day_text(3_000_000) is None
    assert reading.moment_text(1_500_000) == "1970-01-01 00:00:01.5"
    assert Real(0, 1).step  # the frame's kinds carry no grid of their own


def test_cells_past_the_calendar_are_past_every_bound() -> None:
    """Days and moments, by whichever unit; missing ones stay missing."""
    days = pa.chunked_array([pa.array([0, 3_000_000, -(2**31), None], pa.int32()).cast(pa.date32())])
    assert reading.plain("DATE", days, "d")[1].to_pylist() == [0, 2**62, -(2**62), None]
    fine = pa.chunked_array([pa.array([1_500, -1, 2**63 - 1, None], pa.int64()).cast(pa.timestamp("ns"))])
    assert reading.plain("TIMESTAMP_NS", fine, "t")[1].to_pylist() == [1, -1, 2**62, None]
    with pytest.raises(SetupError, match="bad-declaration"):
        reading.plain("BLOB", days, "d")


def test_a_csv_file_as_texts(tmp_path: Path) -> None:
    """A row a record, an empty cell missing; a header alone has none."""
    (tmp_path / "t.csv").write_bytes(b'a,b,c\n1,"x\ny",\n2,"",z\n')
    assert reading.csv_table(tmp_path / "t.csv", (1, 2)).to_pydict() == {"s0": ["x\ny", None], "s1": [None, "z"]}
    (tmp_path / "t.csv").write_bytes(b"a,b\n")
    assert reading.csv_table(tmp_path / "t.csv", (1,)).to_pydict() == {"s0": []}
