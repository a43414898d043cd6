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
@pytest.mark.parametrize("sizes", [(3,), (1, 2), (2, 0, 1)], ids=["one file", "two", "three"])
def test_a_text_that_is_no_utf8_is_missing_and_changes_no_other_row_T99(
    prepared: object, cell: bytes, sizes: tuple[int, ...], tmp_path: Path
) -> None:
    """In one file and in parts. Control: the same with a text there counts one more."""
    note = pa.array([b"a", cell, b"c"], pa.binary())
    note = pa.StringArray.from_buffers(len(note), *note.buffers()[1:])
    rows, paths = pa.table({"x": [1, 2, 3], "note": note}), []
    for i, size in enumerate(sizes):
        paths.append(tmp_path / f"data{i}.parquet")
        pq.write_table(rows.slice(sum(sizes[:i]), size), paths[-1])
    engine = duck(paths[0] if len(paths) == 1 else paths, schema=SCHEMA, prepared=prepared)
    tally = ask(lit(1), col("x"), where=~col("note").is_missing(), schema=SCHEMA)
    assert engine.sums(tally).open().tolist() == ([[3, 6]] if cell == b"b" else [[2, 4]])
    engine.close()
