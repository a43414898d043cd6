"""A pandas column of Python objects: each cell is read by itself, whatever stands beside it (T26)."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.privacy import Unit
from sulq.language.rowfn import Lit, Not, col
from tests import counts, random_tallies
from tests.counts import count
from tests.sources.cases import open_engine

NOON = datetime.datetime(2020, 3, 1, 12)  # noqa: DTZ001 - moments without a zone are read as UTC
EARLY = datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5)))  # before the year 1 in UTC
CELLS = [
    7, -3, 2**53 + 1, 2**70, 1.5, float("inf"), float("nan"), True, np.int64(4), np.float32(0.25), np.bool_(False),
    "7", "x", " 8 ", "", "2020-03-01", None, pd.NA, pd.NaT, Decimal("2.5"), Decimal("1E+30"), b"bytes",
    datetime.date(2020, 3, 1), NOON, EARLY,
    datetime.time(3), datetime.timedelta(1), np.datetime64("2020-03-01T12:00"), np.datetime64("NaT"), (1, 2), object(),
]  # fmt: skip
COLUMNS: list[Column] = [
    Int(0, 10),
    Real(-1, 5),
    Bool(),
    Category(("7", "x", "true")),
    Category((7, 4, 1)),
    Date("2020-01-01", "2020-12-31"),
    Timestamp("2020-01-01", "2020-12-31"),
    Text(),
]


def read(cells: list[object], column: Column, engine: str) -> list[object]:
    """Each cell's own contribution: present or not, and its value by its place."""
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    schema = Schema.of("t", {"x": column})
    found = open_engine(frame, schema=schema, unit=Unit(neighbors="zero_out"), key=b"k" * 32, engine=engine)
    found.ready()
    x = col("x")
    if isinstance(column, Text):
        values = [Not(x.is_missing()), x == "7", x == "x"]
    elif isinstance(column, Category):
        values = [x == value for value in column.values]  # noqa: PD011 - a Category, no frame
    else:
        values = [Not(x.is_missing()), x]
    tally = random_tallies.question([Lit(1), *values], schema)
    sums = found.sums(tally).open()[0].tolist()
    found.close()
    return sums[1:]


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_a_cell_means_the_same_beside_any_other_T26(column: Column, engine: str) -> None:
    """Sums of a mixed column are the sums of its cells read alone: no cell changes how another is read."""
    alone = [read([cell], column, engine) for cell in CELLS]
    total = [sum(parts) for parts in zip(*alone, strict=True)]
    assert read(CELLS, column, engine) == total
    assert read(CELLS[::-1], column, engine) == total
    pairs = list(itertools.combinations(enumerate(CELLS[:8]), 2))
    some = counts.generator(repr(column)).sample(pairs, count("pairs of cells among objects", short=4, long=len(pairs)))
    for (i, first), (j, second) in some:
        assert read([first, second], column, engine) == [a + b for a, b in zip(alone[i], alone[j], strict=True)]


def test_the_control_is_a_type_inferred_over_all_cells_T26() -> None:
    """Control: inferring one type for the column would turn a noon into a midnight."""
    import pyarrow as pa

    alone = pa.array(pd.Series([NOON], dtype=object), from_pandas=True).to_pylist()
    beside = pa.array(pd.Series([datetime.date(2020, 3, 1), NOON], dtype=object), from_pandas=True).to_pylist()
    assert alone[0] != beside[1]
