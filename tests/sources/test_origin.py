"""What an owner may give: frames that are worked out when they are opened."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from sulq.errors import SetupError
from sulq.sources.origin import Origin
from tests.sources.cases import duck, plain_engine, sums
from tests.test_data_files import ASKED, SCHEMA, WHOLE


def test_datasets_lazy_frames_and_relations_are_frames(tmp_path: Path) -> None:
    """What is worked out when asked for is worked out once, when it is opened; its failure says nothing of a cell."""
    for i in range(3):
        pq.write_table(WHOLE.slice(20 * i, 20), tmp_path / f"part{i}.parquet")
    want = sums(plain_engine(WHOLE, None, SCHEMA), *ASKED)
    frame = pl.from_arrow(WHOLE)
    given = (
        pa.dataset.dataset(tmp_path), frame.lazy().filter(pl.col("age").is_null() | (pl.col("age") >= 0)),
        duckdb.connect().sql(f"SELECT * FROM '{tmp_path}/part*.parquet'"),
    )  # fmt: skip
    for each_ in given:
        assert sums(duck(each_, None, SCHEMA), *ASKED) == want
    broken = frame.lazy().select(pl.col("who").cast(pl.Int64))
    with pytest.raises(SetupError) as stopped:
        Origin.of(broken)
    assert stopped.value.code == "unreadable-data"
    assert "p1" not in str(stopped.value)
