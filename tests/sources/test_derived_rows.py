"""What each relation means, on rows few enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.language.domain import Category, Int, Schema, Text
from sulq.language.facts import TableFacts, Tables
from sulq.language.privacy import Unit
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Col, Dot, Vector, col
from sulq.sources.derived_rows import derive, numbered
from sulq.sources.fold import RowBatch

PEOPLE = Schema("people", (("age", Int(0, 99)), ("city", Category(("x", "y")))))
VISITS = Schema("visits", (("cost", Int(0, 9)), ("note", Text())))
CITIES = Schema("cities", (("code", Category(("x", "y"))), ("size", Int(0, 9))))
FACTS = Tables(
    Unit("who", 3),
    (TableFacts(PEOPLE, key="who"), TableFacts(VISITS), TableFacts(CITIES, key="code", public=True, rows=2)),
)


def batch(schema: Schema, owner: list[int] | None, *columns: list[object]) -> RowBatch:
    """Rows from columns of values, None where missing."""
    stored = {}
    for (name, column), cells in zip(schema.columns, columns, strict=True):
        text = isinstance(column, Text)
        values = np.array(
            [cell if text or cell is not None else 0 for cell in cells], dtype=object if text else np.int64
        )
        stored[name] = values, np.array([cell is None for cell in cells])
    return RowBatch(schema, len(columns[0]), stored, owner=None if owner is None else np.array(owner))


ROWS = {
    "people": batch(PEOPLE, [1, 2, 3], [10, 20, None], [0, 1, None]),
    "visits": batch(VISITS, [1, 1, 1, 2, 4], [5, 5, None, 7, 9], ["a", "a", None, "b", "a"]),
    "cities": batch(CITIES, None, [0, 1], [3, 4]),
}


def rows(relation: Relation) -> list[tuple[object, ...]]:
    """The rows of a relation, owner first, in order."""
    found = derive(relation, FACTS, lambda name: ROWS[FACTS.table_of(name).schema.table])
    owner = [None] * found.size if found.owner is None else found.owner.tolist()
    columns = []
    for name in found.schema.names:
        values, missing = found.stored(name)
        cells = values.tolist()
        columns.append([None if missing is not None and missing[i] else cells[i] for i in range(found.size)])
    return sorted(zip(owner, *columns, strict=True), key=repr)


def test_where_keeps_what_is_true() -> None:
    """Neither false nor unknown is true."""
    assert rows(Where(Table("people"), col("age") > 10)) == [(2, 20, 1)]


def test_select_puts_values_on_their_grids() -> None:
    """Numbers, truth values and labels become integers, and a row stays its owner's."""
    columns = (("double", col("age") * 2), ("old", col("age") > 15), ("city", Col("city")))
    assert rows(Select(Table("people"), columns)) == [(1, 20, 0, 0), (2, 40, 1, 1), (3, None, None, None)]


def test_a_join_on_the_person_pairs_one_persons_rows() -> None:
    """Owner 4 has no person's row and owner 3 no visit; a left join keeps the latter."""
    join = Join(Table("people"), Table("visits"), (), person=True)
    inner = [(1, 10, 0, 5, "a"), (1, 10, 0, 5, "a"), (1, 10, 0, None, None), (2, 20, 1, 7, "b")]
    assert rows(join) == inner
    left = Join(Table("people"), Table("visits"), (), "left", person=True)
    assert rows(left) == [*inner, (3, None, None, None, None)]


def test_a_missing_value_joins_nothing() -> None:
    """Owner 3's missing city meets no row, on either side of the join."""
    joined = [(1, 10, 0, 0, 3), (2, 20, 1, 1, 4)]
    assert rows(Join(Table("people"), Table("cities"), (("city", "code"),))) == joined
    assert rows(Join(Table("cities"), Table("people"), (("code", "city"),))) == [(1, 0, 3, 10, 0), (2, 1, 4, 20, 1)]
    left = Join(Table("people"), Table("cities"), (("city", "code"),), "left")
    assert rows(left) == [*joined, (3, None, None, None, None)]
    nothing = Where(Table("cities"), col("size") > 8)
    assert rows(Join(Table("people"), nothing, (("city", "code"),), "left"))[0] == (1, 10, 0, None, None)
    assert rows(Join(Table("people"), nothing, (("city", "code"),))) == []


def test_a_persons_rows_are_put_together() -> None:
    """Missing values are left out; of none at all the sum is missing and the count zero. A missing key is a key."""
    values = (
        ("rows", "count", None), ("there", "count", col("cost")), ("sum", "sum", col("cost")),
        ("mean", "mean", col("cost")), ("least", "min", col("cost")), ("notes", "distinct", col("note")),
    )  # fmt: skip
    step = 2**-18  # of a mean of 0 to 9
    assert rows(PerPerson(Table("visits"), (), values)) == [
        (1, 3, 2, 10, 5 / step, 5, 1),
        (2, 1, 1, 7, 7 / step, 7, 1),
        (4, 1, 1, 9, 9 / step, 9, 1),
    ]
    few = (values[0], values[2])
    assert rows(PerPerson(Table("visits"), ("note",), few)) == [
        (1, "a", 2, 10),
        (1, None, 1, None),
        (2, "b", 1, 7),
        (4, "a", 1, 9),
    ]


def test_distinct_and_union() -> None:
    """Different rows are nobody's, missing equal to missing; a union has them all."""
    notes = Select(Table("visits"), (("note", Col("note")),))
    assert rows(Distinct(notes)) == [(None, "a"), (None, "b"), (None, None)]
    assert rows(Union((notes, notes)))[:6] == [(1, "a")] * 4 + [(1, None)] * 2
    assert rows(Union((Distinct(notes), notes)))[0] == (None, "a")


def test_vectors_are_told_apart_by_all_coordinates() -> None:
    """Distinct values of a vector, and a number read off one."""
    vector = Vector((col("cost"), col("cost") * 0))
    values = (("n", "distinct", vector), ("top", "max", Dot(Vector((col("cost"),)), (2,))))
    assert [row[:2] for row in rows(PerPerson(Table("visits"), (), values))] == [(1, 1), (2, 1), (4, 1)]


@pytest.mark.parametrize("size", [0, 5])
def test_rows_are_numbered_by_all_their_values(size: int) -> None:
    """Equal rows have one number, different ones different numbers; without columns all are equal."""
    cells = np.array(["a", "b", "a", None, None], dtype=object)[:size]
    numbers = np.array([1, 1, 2, 1, 9])[:size]
    missing = np.array([False, False, False, True, True])[:size]
    found = numbered(size, [(cells, missing), (numbers, None)])
    assert len(set(found.tolist())) == size
    assert len(set(numbered(size, [(cells, missing)]).tolist())) == min(size, 3)
    assert set(numbered(size, []).tolist()) <= {0}
