"""The column of a frame that names persons, as a plain Arrow column of exact values (SR25)."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Final, NoReturn, cast

import numpy as np
import pyarrow as pa

from sulq.curator.engines import arrow, grammar, person
from sulq.curator.engines.person import Form
from sulq.errors import SetupError
from sulq.terms.privacy import Fold

LONGEST: Final = 1000  # digits before or after the point of a number that is an id
_ARROW: Final[dict[Form, pa.DataType]] = {"truth": pa.bool_(), "date": pa.int64()}  # of cells by cell; else text
_FLOATS: Final[dict[str, Form]] = {"double": "double", "float": "single", "halffloat": "half"}


def person_column(data: object, place: int, name: str, fold: Fold | None) -> tuple[Form, pa.ChunkedArray]:
    """What a frame's column of persons holds, and its exact values.

    Raises:
        SetupError: its cells are of several kinds, or of one that names nobody exactly.
    """
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        column = data.column(place)
        return _plain(pa.chunked_array([column]) if isinstance(column, pa.Array) else column, name)
    if type(data).__module__.partition(".")[0] == "polars":
        series = cast("pa.Table", data).to_series(place)
        if str(series.dtype) == "Object":
            return _by_cell(series.to_list(), name, fold)
        return _plain(series.to_frame().to_arrow().column(0), name)
    series = cast("pa.Table", data).iloc[:, place]
    if str(series.dtype) in ("object", "category"):
        return _by_cell(series.astype(object), name, fold)
    found = pa.array(series, from_pandas=True)
    return _plain(found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found]), name)


def check_stored(kind: pa.DataType, read: str, name: str) -> None:
    """Refuse ids that DuckDB reads from Parquet less exactly, as this type of its own, than they are stored."""
    stored = kind.value_type if pa.types.is_dictionary(kind) else kind
    wide = pa.types.is_decimal(stored) and not read.startswith("DECIMAL")  # of more than 38 digits: read as doubles
    fine = pa.types.is_timestamp(stored) and stored.unit == "ns" and not read.endswith("_NS")  # INT96
    if wide or fine or pa.types.is_float16(stored):
        inexact(stored, name)


def inexact(stored: pa.DataType, name: str) -> NoReturn:
    """Stop the owner."""
    raise SetupError("person-type", f"Column {name!r} is stored as {stored}, in which ids are not read exactly.")


def _plain(column: pa.ChunkedArray, name: str) -> tuple[Form, pa.ChunkedArray]:
    try:
        return _by_type(column, name)
    except pa.ArrowException:
        pass
    raise SetupError("unreadable-data", f"Column {name!r} of the frame cannot be read.")


def _by_type(column: pa.ChunkedArray, name: str) -> tuple[Form, pa.ChunkedArray]:
    types, kind = pa.types, column.type
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _by_type(column.cast(kind.value_type), name)
    if types.is_floating(kind):
        return _FLOATS[str(kind)], column.cast(pa.float64())
    if types.is_uint64(kind):
        return "number", column.cast(pa.large_string())
    if types.is_decimal(kind):
        if kind.scale == 0:
            return "number", column.cast(pa.large_string())
        return "number", _texts(None if cell is None else _digits(cell) for cell in column.to_pylist())
    if types.is_null(kind):
        return "nothing", column.cast(pa.large_string())
    if types.is_timestamp(kind) and kind.unit == "ns":
        units = column.cast(pa.int64())
        (moments, _), (nanos, gone) = (
            arrow.numpy_column(item) for item in (arrow.plain_column(column, name)[1], units)
        )
        beyond = np.abs(moments) >= grammar.BEYOND
        return "instant", pa.chunked_array(
            [pa.array(nanos, pa.int64(), mask=beyond if gone is None else beyond | gone)]
        )
    cell, found = arrow.plain_column(column, name)
    return "uuid" if str(kind) == "extension<arrow.uuid>" else cast("Form", cell), found


def _texts(cells: Iterable[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(list(cells), pa.large_string())])


def _digits(number: Decimal) -> str:
    """An exact number's digits, without needless zeros."""
    return cast("str", person.figures(format(number, "f")))


def _by_cell(items: Iterable[object], name: str, fold: Fold | None) -> tuple[Form, pa.ChunkedArray]:
    """A column of objects: each cell by its own type, all of one kind unless spelling decides."""
    cells = [_cell(item, name) for item in items]
    forms = {form for form, value in cells if value is not None}
    if fold == "spelling":
        return "text", _texts(None if value is None else _spelled(form, value) for form, value in cells)
    person.agree([(name, "a cell", form) for form in sorted(forms)], fold)
    form: Form = next(iter(sorted(forms)), "nothing")
    return form, pa.chunked_array([pa.array([value for _, value in cells], _ARROW.get(form, pa.large_string()))])


def _spelled(form: Form, value: object) -> str | None:
    if form == "date":
        return arrow.day_text(cast("int", value))
    return str(value).lower() if form == "truth" else str(value)


def _cell(item: object, name: str) -> tuple[Form, object]:
    """What a cell holds and its value, None where it names nobody."""
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return "nothing", None
    if isinstance(item, str):
        return "text", str(_encodable(item, name))
    if isinstance(item, (bool, np.bool_)):
        return "truth", bool(item)
    if isinstance(item, (int, np.integer)):
        return "number", str(int(item))
    if isinstance(item, (float, np.floating, Decimal)):
        return "number", _number(cast("float", item), name)
    if isinstance(item, np.datetime64):
        return "time", _datetime64(item, name)
    if isinstance(item, datetime.datetime):
        return "time", _datetime(item)
    if isinstance(item, datetime.date):
        return "date", (item - datetime.date(1970, 1, 1)).days
    if (type(item).__module__, type(item).__name__) == ("uuid", "UUID"):  # its module also draws numbers
        return "uuid", str(item)
    raise _strange(name, f"a {type(item).__name__[:40]}")


def _strange(name: str, what: str) -> SetupError:
    return SetupError("person-type", f"Column {name!r} holds {what}, which names nobody exactly.")


def _encodable(text: str, name: str) -> str:
    try:
        text.encode()
    except UnicodeError:
        raise _strange(name, "a text that is no Unicode") from None
    return text


def _number(number: float | Decimal, name: str) -> str | None:
    if not (number.is_finite() if isinstance(number, Decimal) else math.isfinite(number)):
        return None
    if isinstance(number, Decimal):
        if abs(number.adjusted()) > LONGEST:
            raise _strange(name, "a number out of all measure")
        return _digits(number)
    bits = int(np.finfo(type(number)).nmant) + 1 if isinstance(number, np.floating) else 53
    limit = 1 << min(bits, 53)
    if abs(number) >= limit or number != math.floor(number):
        raise _strange(name, f"a floating-point number that is not whole and below 2^{limit.bit_length() - 1}")
    return str(int(number))


def _datetime(moment: datetime.datetime) -> str | None:
    finer = int(getattr(moment, "nanosecond", 0))
    try:
        plain = moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment
    except OverflowError:  # beyond the years 1 to 9999
        return None
    since = plain - datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - UTC without saying so
    micros = since.days * grammar.DAY + since.seconds * 1_000_000 + since.microseconds
    return person.instant_text(micros * 1000 + finer)


def _datetime64(moment: np.datetime64, name: str) -> str | None:
    unit = np.datetime_data(moment.dtype)[0]
    if np.isnat(moment):
        return None
    if unit in ("ps", "fs", "as", "generic"):
        raise _strange(name, f"a time in {unit}")
    if not 1 <= int(moment.astype("datetime64[Y]").astype(np.int64)) + 1970 <= 9999:
        return None
    finest = "ns" if unit == "ns" else "us"
    return person.instant_text(
        int(moment.astype(f"datetime64[{finest}]").astype(np.int64)) * (1 if unit == "ns" else 1000)
    )
