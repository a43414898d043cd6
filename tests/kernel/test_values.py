"""Every value that an expression takes in DuckDB is one that the kernel said it can take."""

from __future__ import annotations

import itertools
import math
import random

import duckdb
import pytest

from sulq.kernel.facts import Column, Facts, Refused, Table
from sulq.kernel.tree import parse
from sulq.kernel.values import Atoms, Expressions, Value
from tests import counts
from tests.kernel.statements import Writer

CELLS: dict[str, tuple[Column, list[object]]] = {
    "c0": (Column("TINYINT", -2, 3), [None, -2, -1, 0, 1, 3]),
    "c1": (Column("BIGINT", 0, 2**62, missing=False), [0, 1, 2**53 + 1, 2**62]),
    "c2": (Column("DOUBLE", -1, 4), [None, -1.0, 0.0, 1.0, 4.0]),
    "c3": (Column("VARCHAR"), [None, "", "a", "Ab", "7", "é"]),
}
FACTS = Facts((Table(("kept",), tuple((n, c) for n, (c, _) in CELLS.items()), 1, owned=False),), "add_remove", True)


@pytest.fixture(scope="module")
def rows() -> duckdb.DuckDBPyConnection:
    """All combinations of cells."""
    found = duckdb.connect(config={"threads": 1})
    found.execute(f"CREATE TABLE kept ({', '.join(f'{name} {column.type}' for name, (column, _) in CELLS.items())})")
    cells = itertools.product(*(values for _, values in CELLS.values()))
    found.executemany("INSERT INTO kept VALUES (?, ?, ?, ?)", [list(row) for row in cells])
    return found


def read(expression: str) -> Value:
    """What the kernel says of an expression over the table."""
    columns = {}
    for name, (column, _) in CELLS.items():
        text = column.type == "VARCHAR"
        ends = () if column.low is None or column.high is None else (column.low, column.high)
        columns[name] = Value(column.type, *ends, whole=not text, null=column.missing)
    node = parse(f"SELECT {expression} AS x FROM kept")
    return over(columns, Atoms()).value(node["select_list"][0])


def over(columns: dict[str, Value], atoms: Atoms) -> Expressions:
    """A reader of expressions over columns."""
    return Expressions({(name,): (name, value) for name, value in columns.items()}, atoms, {})


def nan(value: Value) -> bool:
    """Whether it may be NaN, which is above every number."""
    return value.type == "DOUBLE" and value.high == math.inf


def wrong(value: Value, cell: object) -> bool:
    """Whether a cell is none that a value can be."""
    if cell is None:
        return not value.null
    if not value.number:
        return False
    number = float(cell) if isinstance(cell, float) else int(str(cell))
    if isinstance(number, float) and math.isnan(number):
        return not nan(value)
    past = not value.low <= number <= value.high
    return past or (value.whole and math.isfinite(number) and number != int(number))


def test_no_expression_takes_a_value_it_was_said_not_to(rows: duckdb.DuckDBPyConnection) -> None:
    """Random expressions over all combinations of cells; none fails, none leaves its interval."""
    draw = counts.generator("kernel values")
    many = counts.count("expressions over all cells", short=250, long=20_000)
    writer, read_ = Writer(FACTS, draw), 0
    columns = {name: "text" if name == "c3" else "number" for name in CELLS}
    for _ in range(many):
        expression = writer.number(columns, 3)
        try:
            value = read(expression)
        except Refused:
            continue
        read_ += 1
        found = [row[0] for row in rows.execute(f"SELECT DISTINCT {expression} FROM kept").fetchall()]
        assert not [cell for cell in found if wrong(value, cell)], (expression, value)
    assert read_ > many / 4


def test_an_interval_that_is_too_small_is_noticed() -> None:
    """Control: the check sees cells outside, NULL, NaN and what is not whole."""
    value = Value("DOUBLE", 0, 4, whole=True, null=False)
    assert [wrong(value, cell) for cell in (5.0, -1.0, None, math.nan, 0.5, 3.0)] == [True] * 5 + [False]


KNOWN = {
    "CASE WHEN c2 < 0e0 THEN 0e0 WHEN c2 > 2e0 THEN 2e0 ELSE c2 END": (0, 2, True),
    "CASE WHEN c0 > 1 THEN c0 END": (2, 3, True),
    "CASE WHEN c0 IS NULL THEN 7 ELSE c0 END": (-2, 7, True),
    "coalesce(c0, 9)": (-2, 9, True),
    "floor((CAST(c0 AS DOUBLE) * 0.5e0) + 0.5e0)": (-1, 2, True),
    "(c0 - c0)": (-5, 5, True),
    "list_extract(list_value(3e0, NULL, 9e0), CAST(c0 AS BIGINT) + 1)": (3, 9, True),
    "CAST((c3 = 'a') AS TINYINT)": (0, 1, True),
    "(CAST(c0 AS DOUBLE) / 4e0)": (-0.5, 0.75, False),
}


@pytest.mark.parametrize("expression", KNOWN)
def test_the_interval_of_a_form_that_is_proposed(expression: str) -> None:
    """As narrow as it must be for the plans' own bounds."""
    value = read(expression)
    assert (value.low, value.high, value.whole) == KNOWN[expression]


def test_NaN_is_above_every_number() -> None:
    """A branch of what is not above a number has no NaN; one of what is not below keeps it."""
    inside = "CASE WHEN isfinite(c2 / c0) THEN 1e0 ELSE c2 / c0 END"
    assert nan(read(inside))
    t = "(c2 / c0)"
    node = f"SELECT CASE WHEN t < 0e0 THEN 0e0 WHEN t > 5e0 THEN 5e0 ELSE t END AS x FROM (SELECT {t} AS t FROM kept)"
    assert parse(node).get("type") == "SELECT_NODE"
    columns = {"t": read(t)}
    select = over(columns, Atoms())
    clamped = select.value(parse(node)["select_list"][0])
    assert (clamped.low, clamped.high, nan(clamped)) == (0, 5, False)
    below = select.value(parse("SELECT CASE WHEN t < 0e0 THEN 0e0 ELSE t END AS x FROM kept")["select_list"][0])
    assert nan(below)


def test_what_may_be_infinite_may_become_NaN(rows: duckdb.DuckDBPyConnection) -> None:
    """So it has no bound from above, whatever is made of it; control: what is bounded is never NaN."""
    for expression in ("(c2 / c0) % 2e0", "(c2 / c0) - (c2 / c0)", "(c2 / c0) * 0e0", "abs(c2 / c0) % 2e0"):
        found = [row[0] for row in rows.execute(f"SELECT {expression} FROM kept").fetchall()]
        assert any(cell is not None and math.isnan(cell) for cell in found)
        assert nan(read(expression))
    assert not nan(read("c2 % 2e0"))


def test_equal_texts_of_equal_columns_are_one_atom() -> None:
    """So a sum of squares is known to be of the number that is summed; control: other columns are another atom."""
    atoms = Atoms()
    column, other = Value("BIGINT", 0, 9, whole=True), Value("BIGINT", 0, 9, whole=True)
    node = parse("SELECT coalesce(c0) AS x, coalesce(c0) + 1 AS y FROM kept")["select_list"]
    first = over({"c0": column}, atoms)
    again = over({"c0": column}, atoms)
    apart = over({"c0": other}, atoms)
    bare = parse("SELECT coalesce(c0) FROM kept")["select_list"][0]
    assert first.value(bare).polynomial == again.value(bare).polynomial != apart.value(bare).polynomial
    assert len(node) == 2


def test_a_generator_that_writes_nothing_new_is_noticed() -> None:
    """Control of the generator: it writes hundreds of different expressions."""
    writer = Writer(FACTS, random.Random(1))
    assert len({writer.number({"c0": "number"}, 3) for _ in range(300)}) > 150
