"""Frames and tables in memory, brought to a few plain kinds of Arrow columns; here alone pyarrow's types are known."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final, cast

import numpy as np
import pyarrow as pa

from sulq.curator.engines import grammar
from sulq.curator.engines.grammar import Cell
from sulq.errors import SetupError
from sulq.terms.kinds import Integers, Objects, Truths

_PER_MICROSECOND: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}


def column_names(data: object) -> list[str] | None:
    """The names of a frame's columns, or None where this is no frame."""
    kind = f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"
    if kind in ("pandas.DataFrame", "polars.DataFrame"):
        return [str(name) for name in cast("pa.Table", data).columns]
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return [str(name) for name in data.schema.names]
    return None


def plain_table(data: object, places: dict[str, int]) -> tuple[pa.Table, dict[str, Cell]]:
    """The needed columns of a frame as plain Arrow columns in the order of `places`, and what each holds."""
    cells: dict[str, Cell] = {}
    columns = []
    for name, place in places.items():
        cell, column = plain_column(_column(data, place), name)
        cells[name] = cell
        columns.append(column)
    return pa.table(columns, names=[f"s{i}" for i in range(len(columns))]), cells


def _column(data: object, place: int) -> pa.ChunkedArray:
    if isinstance(data, pa.RecordBatch):
        return pa.chunked_array([data.column(place)])
    if isinstance(data, pa.Table):
        return data.column(place)
    if type(data).__module__.partition(".")[0] == "polars":
        series = cast("pa.Table", data).to_series(place)
        if str(series.dtype) == "Object":
            return _cell_by_cell(series.to_list())
        return series.to_frame().to_arrow().column(0)
    series = cast("pa.Table", data).iloc[:, place]
    if str(series.dtype) in ("object", "category"):
        return _cell_by_cell(series.astype(object))
    found = pa.array(series, from_pandas=True)
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def _cell_by_cell(items: Iterable[object]) -> pa.ChunkedArray:
    """A column of objects, each cell by itself: a type inferred over all cells would let one change the rest (T26)."""
    return pa.chunked_array([pa.array([_as_text(item) for item in items], pa.large_string())])


def _as_text(item: object) -> str | None:
    """A cell as the text its own kind would give, whatever stands beside it; what has none is missing."""
    try:
        return _text_of(item)
    except Exception:  # noqa: BLE001 - any object may stand in a frame, and none may stop the rest
        return None


def _text_of(item: object) -> str | None:
    if isinstance(item, str):
        return _encodable(item)
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(item, np.datetime64) and np.isnat(item):
        return None
    if isinstance(item, (float, np.floating, Decimal)) and math.isinf(item):
        return "1e308" if item > 0 else "-1e308"  # past every bound, in the one grammar of numbers
    if isinstance(item, (bool, np.bool_)):
        return "true" if item else "false"
    if isinstance(item, (float, np.floating, Decimal)):
        return number_text(float(item))
    if isinstance(item, datetime.datetime):
        if item.tzinfo is not None:
            item = item.astimezone(datetime.UTC).replace(tzinfo=None)
        return moment_text(_since(item))
    return _encodable(str(item))


def _encodable(text: str) -> str | None:
    """A text that has a form in UTF-8; one with half a surrogate pair has none, and is missing."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text


def _since(moment: datetime.datetime) -> int:
    since = moment - datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - UTC without saying so
    return since.days * grammar.DAY + since.seconds * 1_000_000 + since.microseconds


def number_text(number: float) -> str | None:
    """A double as text: digits where it is whole, else the shortest decimal."""
    if math.isnan(number):
        return None
    if abs(number) < grammar.WHOLE_LIMIT and number == math.floor(number):
        return str(int(number))
    return repr(number)


def day_text(day: int) -> str | None:
    """A day counted from 1970 in ISO form, within the years 1 to 9999."""
    if not grammar.FIRST_DAY <= day <= grammar.LAST_DAY:
        return None
    return (datetime.date(1970, 1, 1) + datetime.timedelta(day)).isoformat()


def moment_text(moment: int) -> str | None:
    """A moment in microseconds from 1970 in ISO form with a space, within the years 1 to 9999."""
    if not grammar.FIRST_MOMENT <= moment <= grammar.LAST_MOMENT:
        return None
    day, rest = divmod(moment, grammar.DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{day_text(day)} {clock}" + (f".{fraction:06}".rstrip("0") if fraction else "")


def plain_column(column: pa.ChunkedArray, name: str) -> tuple[Cell, pa.ChunkedArray]:
    """What an Arrow column holds, and the same as a plain one."""
    kind = column.type
    try:
        if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
            inner = kind.value_type
            return plain_column(column.cast(inner), name)
        return _by_type(column, kind, name)
    except pa.ArrowException:
        pass
    raise SetupError("unreadable-data", f"Column {name!r} of the frame cannot be read.")


def _by_type(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> tuple[Cell, pa.ChunkedArray]:
    types = pa.types
    if types.is_boolean(kind):
        return "truth", column
    if types.is_uint64(kind):
        return "wide", column
    if types.is_integer(kind):
        return "whole", column
    if types.is_floating(kind):
        return "number", column.cast(pa.float64())
    if types.is_decimal(kind):
        return "number", column.cast(pa.string()).cast(pa.float64())  # one rounding, from the digits
    if types.is_null(kind):
        return "text", column.cast(pa.string())
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text", _valid(column)
    if types.is_date(kind):
        days, _ = _integers(column.cast(pa.int32() if types.is_date32(kind) else pa.int64()))
        days = days if types.is_date32(kind) else days // 86_400_000  # date64 counts milliseconds
        return "date", _saturated(days, column, grammar.FIRST_DAY, grammar.LAST_DAY)
    if types.is_timestamp(kind):
        return "moment", _moments(column, kind)
    if str(kind) == "extension<arrow.uuid>":
        return "text", pa.chunked_array(
            [pa.array([None if u is None else str(u) for u in column.to_pylist()], pa.large_string())]
        )
    raise SetupError("bad-declaration", f"Column {name!r} of the data is of type {kind}, which sulq does not read.")


def _valid(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts; a cell that is no UTF-8 is missing."""
    try:
        text = column.cast(pa.large_string())
        text.validate(full=True)
    except pa.ArrowInvalid:
        cells = [_decoded(cell) for cell in column.cast(pa.large_binary()).to_pylist()]
        text = pa.chunked_array([pa.array(cells, pa.large_string())])
    return text


def _decoded(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _moments(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    units, _ = _integers(column.cast(pa.int64()))
    if kind.unit == "ns":
        first, last = grammar.NANOSECOND_YEARS
        beyond = (units < first * 1000) | (units > last * 1000)
        units = np.where(beyond, np.sign(units) * grammar.BEYOND, units // 1000)
    else:
        scale = _PER_MICROSECOND[kind.unit]
        limit = grammar.BEYOND // scale
        units = np.clip(units, -limit, limit) * scale
    return _saturated(units, column, grammar.FIRST_MOMENT, grammar.LAST_MOMENT)


def _saturated(units: Integers, column: pa.ChunkedArray, first: int, last: int) -> pa.ChunkedArray:
    units = np.where(units < first, -grammar.BEYOND, np.where(units > last, grammar.BEYOND, units))
    mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.chunked_array([pa.array(units, pa.int64(), mask=mask)])


def _integers(column: pa.ChunkedArray) -> tuple[Integers, Truths | None]:
    values, missing = numpy_column(column)
    return values.astype(np.int64), missing


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
