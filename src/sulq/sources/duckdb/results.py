"""What DuckDB answers, as NumPy's columns: each cell in the place of its row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import pyarrow as pa

from sulq.kernel.private import Objects, Truths


def numpy_column(column: pa.ChunkedArray | pa.Array) -> tuple[np.ndarray, Truths | None]:
    """A column's values and where they are missing (None: nowhere); numbers keep their type, text is objects.

    So are whole numbers of 128 bits, which Arrow has as decimals: Python's own.
    """
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values = np.array(column.to_pylist(), dtype=object) if len(column) else np.empty(0, dtype=object)
        missing = np.array([item is None for item in values], dtype=np.bool_) if column.null_count else None
        return values, missing
    if pa.types.is_decimal128(column.type) and column.type.scale == 0:
        return _wide(column)
    if not column.null_count:
        return column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy(), None
    missing = (
        column.is_null().to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.is_null().to_numpy()
    )
    filled = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
    return filled.to_numpy(zero_copy_only=False) if isinstance(filled, pa.Array) else filled.to_numpy(), missing


def _wide(column: pa.ChunkedArray | pa.Array) -> tuple[Objects, Truths | None]:
    """Whole numbers of 128 bits, two words each, the lower first."""
    array = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
    missing = array.is_null().to_numpy(zero_copy_only=False)
    words = np.frombuffer(array.buffers()[1] or b"", dtype="<u8")[2 * array.offset :][: 2 * len(array)]
    words = np.where(missing.repeat(2), np.uint64(0), words)
    high = words[1::2].astype(np.int64).astype(object)
    return (high << 64) + words[::2].astype(object), missing


def table(cursor: object, statement: str, parameters: dict[str, object]) -> pa.Table:
    """A statement's whole result."""
    return _asked(cursor, statement, parameters).to_arrow_table()


def streamed(
    cursor: object, statement: str, parameters: dict[str, object], size: int
) -> Iterator[tuple[list[tuple[np.ndarray, Truths | None]], int]]:
    """A statement's result in batches, never whole in memory."""
    for batch in _asked(cursor, statement, parameters).to_arrow_reader(size):
        yield [numpy_column(column) for column in batch.columns], batch.num_rows


def record_batches(cursor: object, statement: str, size: int) -> Iterator[pa.RecordBatch]:
    """A statement's result in batches of Arrow's."""
    yield from _asked(cursor, statement, {}).to_arrow_reader(size)


def _asked(cursor: object, statement: str, parameters: dict[str, object]) -> pa.Table:
    return cast("pa.Table", cursor).sql(statement, params=parameters or None)
