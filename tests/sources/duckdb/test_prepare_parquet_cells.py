"""A Parquet file with a cell that DuckDB does not read is asked all the same, with a copy and without."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sulq.language.domain import Int, Schema, Text
from sulq.language.rowfn import col, lit
from tests.sources.cases import ask, duck

SCHEMA = Schema.of("data", {"x": Int(0, 9), "note": Text()})


@pytest.mark.parametrize("prepared", [None, False])
@pytest.mark.parametrize("cell", [b"b", b"\xff"])
def test_a_text_that_is_no_utf8_is_missing_and_changes_no_other_row_T99(
    prepared: object, cell: bytes, tmp_path: Path
) -> None:
    """Control: the same file with a text there counts one more."""
    path = tmp_path / "data.parquet"
    note = pa.array([b"a", cell, b"c"], pa.binary())
    note = pa.StringArray.from_buffers(len(note), *note.buffers()[1:])
    pq.write_table(pa.table({"x": [1, 2, 3], "note": note}), path)
    engine = duck(path, schema=SCHEMA, prepared=prepared)
    tally = ask(lit(1), col("x"), where=~col("note").is_missing(), schema=SCHEMA)
    assert engine.sums(tally).open().tolist() == ([[3, 6]] if cell == b"b" else [[2, 4]])
    engine.close()
