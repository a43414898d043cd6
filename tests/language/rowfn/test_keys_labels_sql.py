"""Row functions between labels as SQL: tables of constants, long and short."""

from __future__ import annotations

import pytest

from sulq.language.domain import Category, Int, Schema
from sulq.language.rowfn import Choice, Col, Each, First, NullIf, OrMissing, Relabel, Value
from tests.sources.rowwise import filled, in_numpy, in_sql

SIZE = 5000
WIDE = Schema("data", (("n", Int(-7, SIZE - 8)), ("city", Category(["a", "b", "c"]))))


@pytest.mark.parametrize(
    "fn",
    [
        Relabel(Each(Col("n")), tuple(i * 37 % 101 for i in range(SIZE))),
        Relabel(Each(Col("n")), tuple(None if i % 3 else f"l{i % 50}" for i in range(SIZE))),
        Relabel(Col("city"), (None, None, "x")),
        OrMissing(Relabel(Col("city"), (None, "y", "x"))),
        OrMissing(OrMissing(Col("city"))),
        OrMissing(Each(Col("n"))),
        Value(Each(Col("n"))),
        Value(Relabel(Each(Col("n")), tuple(i / 7 for i in range(SIZE)))),
        Value(OrMissing(Each(Col("n")))),
        First((NullIf(Col("city"), Col("city")), Col("city"))),
        Choice(((Col("n") > 0, None),), ("never",)),
        Choice(((Col("n") > 10, 1), (Col("n") > 0, None), (Col("city") == "a", 0)), (2.5, -1)),
        Value(Choice(((Col("n") > 10, 1),), (2.5, -1), 0)),
    ],
    ids=lambda fn: type(fn).__name__,
)
def test_every_code_is_read_alike(fn):
    """All codes, and missing."""
    rows = filled(
        {"n": [*range(-7, SIZE - 7), None], "city": [i % 4 if i % 4 < 3 else None for i in range(SIZE + 1)]}, WIDE
    )
    assert in_sql(fn, rows, WIDE) == in_numpy(fn, rows, WIDE)


def test_a_very_long_table_is_left_to_the_batch_path():
    """SQL does not grow with a table past all measure."""
    schema = Schema("data", (("n", Int(0, 2**17 - 1)),))
    fn = Relabel(Each(Col("n")), tuple(i // 2 for i in range(2**17)))
    rows = filled({"n": [0, 2**17 - 1]}, schema)
    assert in_sql(fn, rows, schema) is None
    assert in_numpy(fn, rows, schema) == [0, 2**16 - 1]
