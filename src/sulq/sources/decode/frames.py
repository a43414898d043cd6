"""Frames, and what Arrow reads of Parquet, as columns for DuckDB: each cell by itself (T26), persons exactly (SR25)."""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from sulq.errors import SetupError
from sulq.kernel.facts import Fold
from sulq.sources.decode.person import DIGITS, EXACT, HALF, WHO, Form, agree, typed

BATCH_ROWS: Final = 65_536
WHOLE_LIMIT: Final = 2**63  # a whole double below this prints as digits
_SECONDS: Final = (-719_162 * 86_400, 2_932_897 * 86_400 - 1)  # of the years 1 to 9999
_HALVES: Final = "surrogateescape"  # other bytes become halves of surrogate pairs, which have no form in UTF-8
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000}
_KINDS: Final = {
    "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT",
    "uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT", "float": "FLOAT",
    "double": "DOUBLE", "date32[day]": "DATE",
}  # fmt: skip
_FORMS: Final[dict[type, Form]] = {
    str: "text", bool: "truth", np.bool_: "truth", int: "number", np.integer: "number", Decimal: "number",
    float: "number", np.floating: "number", np.datetime64: "time", datetime.datetime: "time", datetime.date: "date",
}  # fmt: skip


class FrameRecords(NamedTuple):
    """Rows as DuckDB reads them: the columns s0, s1, ... with their types, and WHO, how it holds the person."""

    table: pa.Table
    kinds: list[str]
    named: tuple[Form, str] | None


def records(data: object, places: dict[str, int], named: tuple[str, int] | None, fold: Fold | None) -> FrameRecords:
    """The needed columns of a frame, in the order of `places`, and the one that names persons; or a refusal."""
    kinds, columns, person, name = [], {}, None, ""
    with contextlib.suppress(pa.ArrowException):
        for i, (name, place) in enumerate(places.items()):
            found = _column(data, place)
            found = _texts(map(_text, found)) if isinstance(found, list) else found
            kind, columns[f"s{i}"] = _plain(found, name)
            kinds.append(kind)
        if named is not None:
            name = named[0]
            form, cell, columns[WHO] = _persons(_column(data, named[1]), name, fold)
            person = form, cell
        return FrameRecords(pa.table(columns), kinds, person)
    raise SetupError("unreadable-data", f"Column {name!r} of the frame cannot be read.")


def _column(data: object, place: int) -> pa.ChunkedArray | list[object]:
    """A frame's column; of objects a list: a type inferred over all of them would let one change the rest."""
    frame = cast("pa.Table", data)
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        found = frame.column(place)
    elif type(data).__module__.partition(".")[0] == "polars":
        series = frame.to_series(place)
        if str(series.dtype) == "Object":
            return cast("list[object]", series.to_list())
        found = series.to_frame().to_arrow().column(0)
    else:
        series = frame.iloc[:, place]
        if str(series.dtype) in ("object", "category"):
            return list(series.astype(object))
        found = pa.array(series, from_pandas=True)
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def _texts(cells: Iterable[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(list(cells), pa.large_string())])


def _text(item: object) -> str | None:
    """An object as the text its own kind would give, whatever stands beside it; what has none is missing."""
    try:
        text = _text_of(item)
        return None if text is None else str(text.encode(), "utf-8")  # half a surrogate pair has no form in UTF-8
    except Exception:  # noqa: BLE001 - any object may stand in a frame, and none may stop the rest
        return None


def _text_of(item: object) -> str | None:
    if isinstance(item, str):
        return item
    if _absent(item):
        return None
    if isinstance(item, (bool, np.bool_)):
        return "true" if item else "false"
    if isinstance(item, (float, np.floating, Decimal)):
        number = float(item)  # an infinity is past every bound, in the one grammar of numbers
        return number_text(number) if math.isfinite(number) or math.isnan(number) else f"{'-' * (number < 0)}1e308"
    return _moment(item) if isinstance(item, datetime.datetime) else str(item)


def _absent(item: object) -> bool:
    gone = item is None or type(item).__name__ in ("NAType", "NaTType")
    return gone or (isinstance(item, np.datetime64) and bool(np.isnat(item)))


def number_text(number: float) -> str | None:
    """A double as text: digits where it is whole, else the shortest decimal."""
    if math.isnan(number):
        return None
    return str(int(number)) if abs(number) < WHOLE_LIMIT and number == math.floor(number) else repr(number)


def _moment(moment: datetime.datetime, nanoseconds: int = 0) -> str | None:
    """A moment in UTC, in ISO form with a space and no needless zeros; None past the years 1 to 9999."""
    try:
        plain = moment if moment.tzinfo is None else moment.astimezone(datetime.UTC)
        fraction = f"{plain.microsecond:06}{nanoseconds:03}".rstrip("0")
        text = f"{plain.date().isoformat()} {plain.time().replace(microsecond=0).isoformat()}"
    except (OverflowError, ValueError):
        return None
    return f"{text}.{fraction}" if fraction else text


def _plain(column: pa.ChunkedArray, name: str) -> tuple[str, pa.ChunkedArray]:
    """An Arrow column as one that DuckDB reads whatever its cells hold, and DuckDB's type of it."""
    types, kind = pa.types, column.type
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _plain(column.cast(kind.value_type), name)
    if str(kind) in _KINDS:
        return _KINDS[str(kind)], column
    if types.is_float16(kind):
        return HALF, column.cast(pa.float64())
    if types.is_decimal(kind):  # as text: of one past its precision DuckDB would read another row's cell (T97)
        return DIGITS, _texts(None if cell is None else _digits(cell) for cell in column.to_pylist())
    if types.is_null(kind):
        return '"NULL"', column.cast(pa.large_string())
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "VARCHAR", _valid(column)
    if types.is_date64(kind):
        return "DATE", _plain(column.cast(pa.int64()).cast(pa.timestamp("ms")), name)[1].cast(pa.date32())
    if types.is_timestamp(kind) and kind.unit == "ns":
        return "TIMESTAMP_NS", column.cast(pa.int64()).cast(pa.timestamp("ns"))
    if types.is_timestamp(kind):
        per = _PER_SECOND[kind.unit]  # what is past the years 1 to 9999 stays so: DuckDB would stop at the farthest
        units = np.clip(column.cast(pa.int64()).fill_null(0).to_numpy(), _SECONDS[0] * per - 1, _SECONDS[1] * per + per)
        found = pa.array(units * (1_000_000 // per), mask=column.is_null().to_numpy()).cast(pa.timestamp("us"))
        return "TIMESTAMP", pa.chunked_array([found])
    if str(kind) == "extension<arrow.uuid>":
        return "UUID", _texts(None if cell is None else str(cell) for cell in column.to_pylist())
    raise SetupError("bad-declaration", f"Column {name!r} of the data is of type {kind}, which sulq does not read.")


def _valid(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts; a cell that is no UTF-8 is missing."""
    kind = column.type if str(column.type) in ("string", "large_string") else pa.large_string()
    try:
        text = column if column.type == kind else column.cast(kind)
        text.validate(full=True)
    except pa.ArrowInvalid:
        cells = column.cast(pa.large_binary()).to_pylist()
        text = _texts(None if cell is None else _text(cell.decode(errors=_HALVES)) for cell in cells).cast(kind)
    return text


def _digits(number: Decimal) -> str:
    """An exact number's digits, without needless zeros."""
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _persons(cells: pa.ChunkedArray | list[object], name: str, fold: Fold | None) -> tuple[Form, str, pa.ChunkedArray]:
    """What a column of persons holds, how DuckDB gets at it in WHO, and its exact values."""
    if not isinstance(cells, list):
        kind, found = _plain(cells, name)
        return *typed(kind, WHO, name), found
    told = [_person(item, name) for item in cells]
    found = _texts(text for _, text in told)
    if fold == "spelling":
        return "text", WHO, found
    forms = sorted({form for form, text in told if text is not None})
    agree([(name, "a cell", form) for form in forms], fold)
    return next(iter(forms), "nothing"), WHO, found


def _person(item: object, name: str) -> tuple[Form, str | None]:
    """What an object is and its exact text, None where it names nobody."""
    if _absent(item):
        return "nothing", None
    if (type(item).__module__, type(item).__name__) == ("uuid", "UUID"):  # its module also draws numbers
        return "uuid", str(item)
    form = next((form for kind, form in _FORMS.items() if isinstance(item, kind)), None)
    if form is None or isinstance(item, np.timedelta64):  # NumPy counts a duration among its integers
        raise _strange(name, f"a {type(item).__name__[:40]}")
    if isinstance(item, Decimal):
        if item.is_finite() and abs(item.adjusted()) > 1000:  # digits before or after the point
            raise _strange(name, "a number out of all measure")
        return form, _digits(item) if item.is_finite() else None
    if isinstance(item, (float, np.floating)):
        return form, _whole(cast("float", item), name)
    if isinstance(item, np.datetime64):
        return form, _datetime64(item, name)
    if isinstance(item, datetime.datetime):
        return form, _moment(item, int(getattr(item, "nanosecond", 0)))
    text = str(int(cast("int", item))) if form == "number" else _text(item)
    if text is None:
        raise _strange(name, "a text that is no Unicode")
    return form, text


def _strange(name: str, what: str) -> SetupError:
    return SetupError("person-type", f"Column {name!r} holds {what}, which names nobody exactly.")


def _whole(number: float, name: str) -> str | None:
    if not math.isfinite(number):
        return None
    limit = {np.float16: EXACT["half"], np.float32: EXACT["single"]}.get(type(number), EXACT["double"])
    if abs(number) >= limit or number != math.floor(number):
        raise _strange(name, f"a floating-point number that is not whole and below 2^{limit.bit_length() - 1}")
    return str(int(number))


def _datetime64(moment: np.datetime64, name: str) -> str | None:
    unit = np.datetime_data(moment.dtype)[0]
    if unit in ("ps", "fs", "as", "generic"):
        raise _strange(name, f"a time in {unit}")
    if not 1 <= int(moment.astype("datetime64[Y]").astype(np.int64)) + 1970 <= 9999:
        return None
    nanoseconds = int(moment.astype(np.int64)) % 1000 if unit == "ns" else 0
    return _moment(moment.astype("datetime64[us]").item(), nanoseconds)


def open_parquet(path: Path) -> pa.parquet.ParquetFile:
    """The file for Arrow to read; timestamps of 96 bits as microseconds, since of nanoseconds most wrap around."""
    return pa.parquet.ParquetFile(path, coerce_int96_timestamp_unit="us")


def rewrite(path: Path, made: Path, columns: Sequence[str], named: str | None, fold: Fold | None) -> FrameRecords:
    """Write columns of a Parquet file to a new one, a row for each; what they hold, without the rows.

    DuckDB stops at a text that is no UTF-8 and at a timestamp beyond its microseconds. Such a cell is one row's: here
    it is missing, or beyond every bound where its type has an order, and the other rows are what they were.

    Privacy: trusted. Whether a file is rewritten depends on its rows and changes the time of preparing alone, which is
    the owner's to see; questions read the same kept rows either way.
    """
    needed = list(dict.fromkeys([*columns, *([] if named is None else [named])]))
    places = {name: needed.index(name) for name in columns}
    who = None if named is None else (named, needed.index(named))
    with contextlib.suppress(pa.ArrowException, OSError, UnicodeError), open_parquet(path) as file:
        plain = records(file.schema_arrow.empty_table().select(needed), places, who, fold)
        with pa.parquet.ParquetWriter(made, plain.table.schema) as writer:
            for batch in file.iter_batches(BATCH_ROWS, columns=needed):
                writer.write_table(records(batch.select(needed), places, who, fold).table)
        return plain
    raise SetupError("unreadable-data", "The Parquet file cannot be read to its end.")


def check_stored(kind: pa.DataType, read: str, name: str, width: int = 0) -> None:
    """Refuse ids that DuckDB reads from Parquet less exactly, as this type of its own, than their bytes hold them."""
    stored = kind.value_type if pa.types.is_dictionary(kind) else kind
    wide = pa.types.is_decimal(stored) and not read.startswith("DECIMAL")  # of more than 38 digits: read as doubles
    fine = pa.types.is_timestamp(stored) and stored.unit == "ns" and not read.endswith("_NS")  # INT96
    if pa.types.is_decimal(stored):  # numbers past their precision wrap around where DuckDB reads fewer bytes
        digits = ((4, 2), (9, 4), (18, 8), (38, 16))
        wide = wide or any(stored.precision <= most and width > own for most, own in digits)
    if wide or fine or pa.types.is_float16(stored):
        raise SetupError("person-type", f"Column {name!r} is stored as {stored}, in which ids are not read exactly.")
