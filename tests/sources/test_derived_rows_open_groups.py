"""Groups that occur: in order, with exact sums and different people."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from sulq.language.domain import Int, Schema, Text
from sulq.language.privacy import Unit
from sulq.language.relation import Distinct, Table
from sulq.language.rowfn import Col, NullIf, OrMissing, bins, bucket, col, each, lit, outer, position
from sulq.language.tally import Block, Key, Tally
from sulq.sources.derived_rows import group
from sulq.sources.fold import RowBatch
from tests.sources.cases import ask, duck, memory, plain_engine, table

ROWS = table(
    [
        ("ann", 40, 10.0, "x", "b"), ("ann", 41, 20.5, "y", "b"), ("bob", 7, 1.0, "x", "b"), ("eve", 1, 2.0, "z", None),
        (None, 3, 3.0, "x", "c"), ("eve", 2, None, None, "a"),
    ]
)  # fmt: skip


def grouped(*keys, values=(), where=None, over=None) -> Tally:
    """A tally by keys that are not listed."""
    made = ask(lit(1), *values, where=where)
    return Tally(over or Table(), made.blocks, made.where, tuple(Key(fn, ()) for fn in keys), 0)


@pytest.mark.parametrize("engine", [duck, memory, plain_engine])
@pytest.mark.parametrize("prepared", [None, False])
def test_groups_are_sorted_with_their_people(engine, prepared) -> None:
    """Texts ascending, the missing last; two rows of one person are one person; a row without a person is no row."""
    more = {} if engine is not duck else {"prepared": prepared}
    opened = engine(ROWS, Unit("who", 3), **more)
    found = opened.groups(grouped(col("note"), values=(col("pay"),))).open()
    assert found.keys == (["a", "b", None],)
    assert found.sums.tolist() == [[1, 0], [3, 129024], [1, 8192]]
    assert found.persons.tolist() == [1, 2, 1]
    found = opened.groups(grouped(col("age"), bins("pay", [0, 5, 50]), where=col("pay") > 0)).open()
    assert found.keys == ([1, 7, 40, 41], [(0, 5), (0, 5), (5, 50), (5, 50)])
    found = opened.groups(grouped(col("note"), over=Distinct(Table()))).open()  # nobody's rows: rows are counted
    assert (found.keys, found.persons.tolist()) == ((["a", "b", None],), [1, 3, 1])
    nothing = opened.groups(grouped(col("note"), where=col("age") > 100)).open()
    assert (nothing.keys, nothing.sums.shape) == (([],), (0, 1))
    opened.close()


@pytest.mark.parametrize("engine", [duck, memory, plain_engine])
def test_what_sql_does_not_sum_is_grouped_by_hand(engine) -> None:
    """A matrix of products by free text."""
    opened = engine(ROWS, Unit("who", 3))
    found = opened.groups(grouped(col("note"), values=(outer(["age", "pay"]),))).open()
    assert found.keys == (["a", "b", None],)
    assert found.persons.tolist() == [1, 2, 1]
    opened.close()


@pytest.mark.parametrize("engine", [duck, memory, plain_engine])
def test_what_has_no_label_is_one_group_T30(engine) -> None:
    """A key that is None by its label and one that is missing are one group, whose people are counted once."""
    opened = engine(ROWS, Unit("who", 3))
    found = opened.groups(grouped(NullIf(OrMissing(col("city")), lit("x")))).open()
    assert found.keys == (["y", None],)
    assert found.persons.tolist() == [1, 3]
    assert found.sums.tolist() == [[1], [4]]
    opened.close()


@pytest.mark.parametrize("prepared", [None, False])
def test_by_hand_a_row_knows_its_person_and_its_place(prepared) -> None:
    """A key of the person's bucket beside a value that SQL does not sum (a lookup of positions likewise)."""
    asked = grouped(bucket(2), values=(outer(["age", "pay"]),))
    placed = grouped(each(position() > 2), values=(outer(["age", "pay"]),))
    for tally, unit in ((asked, Unit("who", 3)), (placed, Unit(neighbors="replace_one"))):
        found, wanted = (
            duck(ROWS, unit, prepared=prepared).groups(tally).open(),
            plain_engine(ROWS, unit).groups(tally).open(),
        )
        assert len(wanted.keys[0]) == 2
        assert (found.keys, found.sums.tolist()) == (wanted.keys, wanted.sums.tolist())
        assert found.persons.tolist() == wanted.persons.tolist()


@pytest.mark.parametrize("reach", [2**20, 2**52, 2**61])
def test_sums_are_exact_and_saturated(reach: int) -> None:
    """In doubles, in 64 bits and past them."""
    schema = Schema("t", (("x", Int(0, 2**53)), ("note", Text())))
    size = 9
    columns = {"x": (np.full(size, 2**20), None), "note": (np.array(["a"] * size, dtype=object), None)}
    block = Block(Col("x"), Int(0, 1).step, (0,), (reach,), vector=False)
    tally = Tally(Table(), (block,), None, (Key(Col("note"), ()),), 0)
    found = group(tally, RowBatch(schema, size, columns))
    assert found.sums.tolist() == [[min(size * min(reach, 2**20), 2**62)]]
    assert found.persons.tolist() == [size]


@pytest.mark.parametrize("engine", [duck, memory, plain_engine])
@pytest.mark.parametrize("first", [-2.0, 2.0])
def test_a_key_of_zero_has_no_sign_of_one_row_T29(engine, first: float) -> None:
    """Of rows that give 0 and -0 the label does not tell which came first. Control: DuckDB's own groups do tell."""
    rows = table([("ann", 1, 512 + first, "x", "a"), ("bob", 1, 512 - first, "x", "a")])
    ((key,),) = engine(rows).groups(grouped((col("pay") - 512) % 2)).open().keys
    assert repr(key) == "0.0"
    plain = duckdb.execute(f"SELECT x % 2e0 AS k FROM (VALUES ({first}e0), ({-first}e0)) AS t(x) GROUP BY k").fetchall()
    assert repr(plain[0][0]) == ("-0.0" if first < 0 else "0.0")
