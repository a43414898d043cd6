"""The generated table of the queries: the same for a number of rows on every machine, written a piece at a time."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
PIECE = 1_000_000  # rows in memory at once
REGIONS = [f"r{number:02d}" for number in range(50)]
ROWS_EACH = 5  # a person's rows on average, and the most that are kept


def folder() -> Path:
    """Where generated tables, and the prepared copies of them, are kept."""
    found = Path(os.environ.get("SULQ_BENCH_DATA") or ROOT / ".build" / "bench").absolute()
    found.mkdir(parents=True, exist_ok=True)
    return found


def survey(rows: int) -> Path:
    """Rows of people in no order: person, age 0 to 100, income below 180,000, one of 50 regions."""
    path = folder() / f"survey-{rows}.parquet"
    if path.exists():
        return path
    unfinished = path.with_suffix(".unfinished")
    people = max(rows // ROWS_EACH, 1)
    names = pa.array(REGIONS)
    writer = None
    for start in range(0, rows, PIECE):
        many = min(PIECE, rows - start)
        rng = np.random.default_rng([rows, start])  # a table made up for timing; nobody is protected by it
        piece = pa.table({
            "person": rng.integers(0, people, many),
            "age": rng.integers(0, 101, many, dtype=np.int32),
            "income": rng.random(many) * 180_000,
            "region": pa.DictionaryArray.from_arrays(rng.integers(0, 50, many, dtype=np.int8), names).cast(pa.string()),
        })  # fmt: skip
        writer = writer or pq.ParquetWriter(unfinished, piece.schema, store_schema=False)
        writer.write_table(piece, row_group_size=PIECE // 8)
    if writer:
        writer.close()
    unfinished.rename(path)
    return path


def labels(each: int) -> Path:
    """50,000 people with so many different labels each, of 200,000 by Zipf's law, as in benchmarks.epsilon."""
    path = folder() / f"labels-{each}.parquet"
    if not path.exists():
        from benchmarks.epsilon.keys import Labels

        pq.write_table(Labels.drawn(each).table(), unfinished := path.with_suffix(".unfinished"))
        unfinished.rename(path)
    return path


def keys(rows: int, many: int) -> Path:
    """Rows with one of so many keys."""
    path = folder() / f"keys-{rows}-{many}.parquet"
    if not path.exists():
        drawn = np.random.default_rng([rows, many]).integers(0, many, rows)
        pq.write_table(pa.table({"k": drawn}), unfinished := path.with_suffix(".unfinished"))
        unfinished.rename(path)
    return path


def text(rows: int) -> Path:
    """The queries' table as CSV."""
    path = folder() / f"survey-{rows}.csv"
    if not path.exists():
        pyarrow.csv.write_csv(pq.read_table(survey(rows)), unfinished := path.with_suffix(".unfinished"))
        unfinished.rename(path)
    return path


def matrix(rows: int, width: int) -> Path:
    """Numbers from -1 to 1 in many columns."""
    path = folder() / f"matrix-{rows}-{width}.parquet"
    if path.exists():
        return path
    unfinished = path.with_suffix(".unfinished")
    piece = max(PIECE // width, 1)
    writer = None
    for start in range(0, rows, piece):
        rng = np.random.default_rng([rows, width, start])
        values = rng.uniform(-1, 1, (min(piece, rows - start), width))
        table = pa.table({f"x{j}": values[:, j] for j in range(width)})
        writer = writer or pq.ParquetWriter(unfinished, table.schema, store_schema=False)
        writer.write_table(table)
    if writer:
        writer.close()
    unfinished.rename(path)
    return path
