"""The column of a frame that names persons: what it holds, and that its values stay exact."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sulq.errors import SetupError
from sulq.sources.decode import frames, person
from sulq.sources.decode.frames import check_stored


def person_column(data: object, place: int, name: str, fold: str | None) -> tuple[str, list[object]]:
    """What a column of persons holds, and the cells that DuckDB takes out of it."""
    found = frames.records(data, {}, (name, place), fold)
    form, cell = found.named
    with duckdb.connect() as connection:
        connection.register("t", found.table)
        rows = connection.execute(
            f"SELECT a, {person.sql(form, 'a', fold)} FROM (SELECT {cell} AS a FROM t)"
        ).fetchall()
    return form, [a if form == "half" else text for a, text in rows]


@pytest.mark.parametrize(
    ("kind", "cells", "form", "want"),
    [
        (pa.uint64(), [2**64 - 1], "number", ["18446744073709551615"]),
        (pa.decimal128(38, 0), [Decimal(10**37 + 1), None], "number", [str(10**37 + 1), None]),
        (pa.decimal128(20, 10), [Decimal("1e-10"), Decimal(0)], "number", ["0.0000000001", "0"]),
        (pa.decimal128(5, -2), [Decimal(700)], "number", ["700"]),
        (pa.timestamp("ns", "UTC"), [1, None, 2**63 - 1], "time", ["1970-01-01 00:00:00.000000001", None, None]),
        (pa.float16(), [np.float16(7)], "half", [7.0]),
        (pa.null(), [None], "nothing", [None]),
    ],
)
def test_columns_keep_their_exact_values_T97(kind: pa.DataType, cells: list, form: str, want: list) -> None:
    """Digits of any number, nanoseconds, and of floating point how exact it is; also where values are listed once."""
    column = pa.array(cells, kind)
    for made in (column, column.dictionary_encode()) if kind not in (pa.null(), pa.float16()) else (column,):
        assert person_column(pa.table({"id": made}), 0, "id", None) == (form, want)


def test_by_spelling_objects_of_all_kinds_are_texts_T97() -> None:
    """As in ledgers from before `fold`, but every number with all of its digits."""
    frame = pd.DataFrame({"id": pd.Series([7, "7.0", Decimal(10**30 + 1), True, None], dtype=object)})
    form, values = person_column(frame, 0, "id", "spelling")
    assert (form, values) == ("text", ["7", "7", str(10**30 + 1), "true", None])
    assert frames.records(frame, {}, ("id", 0), "spelling").table.column(0).to_pylist()[1] == "7.0"


def test_numbers_out_of_all_measure_and_other_types_are_refused() -> None:
    """An exponent of a billion is no id; nor are bytes."""
    frame = pd.DataFrame({"id": pd.Series([Decimal("1e999999")], dtype=object)})
    with pytest.raises(SetupError, match="person-type"):
        person_column(frame, 0, "id", None)
    with pytest.raises(SetupError, match="bad-declaration"):
        person_column(pa.table({"id": [b"a"]}), 0, "id", None)


def test_what_is_stored_more_exactly_than_read_is_refused() -> None:
    """Also where Parquet lists values once; types that are read as they are stored pass."""
    for kind, read in ((pa.decimal256(50, 0), "DOUBLE"), (pa.timestamp("ns"), "TIMESTAMP"), (pa.float16(), "FLOAT")):
        for stored in (kind, pa.dictionary(pa.int32(), kind)):
            with pytest.raises(SetupError, match="person-type"):
                check_stored(stored, read, "id")
    check_stored(pa.timestamp("ns"), "TIMESTAMP_NS", "id")
    check_stored(pa.decimal128(38, 0), "DECIMAL(38,0)", "id")


def test_a_decimal_past_its_precision_is_its_own_cell_T97() -> None:
    """DuckDB reads another row's cell for one. Control: as DuckDB's own decimal it does not keep them apart."""
    cells = [Decimal(1000 + i) for i in range(2048)] + [Decimal(50000 + i) for i in range(2048)]
    column = pa.array(cells, pa.decimal128(10, 0)).cast(pa.decimal128(4, 0), safe=False)
    _, plain = frames._plain(pa.chunked_array([column]), "id")
    assert len(set(plain.to_pylist())) == len(cells)
    with duckdb.connect() as own:
        own.register("rows", pa.table({"id": column}))
        assert own.execute("SELECT count(DISTINCT id) FROM rows").fetchall() != [(len(cells),)]
