"""Kept tables against their facts: every fact contradicted once, and tables made to pass for what they are not."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import duckdb
import pytest

from sulq.errors import SetupError
from sulq.kernel import keep
from sulq.kernel.facts import Column, Facts, Table
from sulq.kernel.relations import certify
from tests.counts import count

KEPT = Table(
    ("kept",),
    (
        ("c0", Column("TINYINT", 0, 5)),
        ("c1", Column("BIGINT", -3, 9, missing=False)),
        ("c2", Column("VARCHAR")),
        ("c3", Column("VARCHAR", missing=False)),
        ("h", Column("BIGINT", 0, 2**60 - 1, missing=False)),
        ("d0", Column("VARCHAR", 0, 5)),
    ),
    rows=2,
    owned=True,
    size=6,
    unique="c1",
)
PUBLIC = Table(("public",), (("c0", Column("TINYINT", 0, 5)),), 0, owned=False, size=4, unique="c0")
ROWS = [
    (0, -3, "a", "x", 7, "000", 1),
    (5, 9, None, "", 7, "005", 1),
    (None, -3, "é", "x", 8, None, 2),
]


@pytest.fixture
def cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(config={"threads": 1})
    yield connection
    connection.close()


def filled(cursor: duckdb.DuckDBPyConnection, *rows: tuple[object, ...], sql: str = "") -> None:
    """The table `kept`, with some rows."""
    cursor.execute(
        sql or "CREATE TABLE kept(c0 TINYINT, c1 BIGINT, c2 VARCHAR, c3 VARCHAR, h BIGINT, d0 VARCHAR, o BIGINT)"
    )
    if rows:
        inserted(cursor, rows)


def inserted(cursor: duckdb.DuckDBPyConnection, rows: Sequence[tuple[object, ...]]) -> None:
    """More rows, all at once."""
    values = ", ".join(f"({', '.join('?' * len(row))})" for row in rows)
    cursor.execute(f"INSERT INTO kept VALUES {values}", [cell for row in rows for cell in row])


def test_tables_as_declared_are_fit(cursor: duckdb.DuckDBPyConnection) -> None:
    """Control of all below; a table without rows too, and a public one whose key is missing twice."""
    filled(cursor)
    assert keep.unfit(cursor, KEPT) == ""
    inserted(cursor, ROWS)
    assert keep.unfit(cursor, KEPT) == ""
    cursor.execute("CREATE TABLE public AS SELECT unnest([0, 5, NULL, NULL])::TINYINT AS c0")
    keep.check(cursor, Facts((KEPT, PUBLIC), "add_remove", row_is_person=False))


CONTRADICTED: dict[str, tuple[str, tuple[object, ...]]] = {
    "a number above its bound": ("cells", (6, 0, "a", "x", 8, "001", 2)),
    "a number below its bound": ("cells", (-1, 0, "a", "x", 8, "001", 2)),
    "a number missing that never is": ("cells", (1, None, "a", "x", 8, "001", 2)),
    "a text missing that never is": ("cells", (1, 0, "a", None, 8, "001", 2)),
    "a row that is nobody's": ("cells", (1, 0, "a", "x", 8, "001", None)),
    "a hash past its bits": ("cells", (1, 0, "a", "x", 2**60, "001", 3)),
    "a code past its bound": ("codes", (1, 0, "a", "x", 8, "006", 2)),
    "a code that is no number": ("codes", (1, 0, "a", "x", 8, "n", 2)),
    "a code of a fraction": ("codes", (1, 0, "a", "x", 8, "1.4", 2)),
    "a code of other digits": ("codes", (1, 0, "a", "x", 8, "٣", 2)),
    "a code beyond all numbers": ("codes", (1, 0, "a", "x", 8, "9" * 40, 2)),
    "a row more of a person": ("persons", (1, 0, "a", "x", 7, "001", 1)),
    "a person of two hashes": ("persons", (1, 0, "a", "x", 9, "001", 2)),
    "a person's key twice": ("unique", (1, -3, "a", "x", 8, "001", 2)),
}


@pytest.mark.parametrize("name", CONTRADICTED)
def test_a_row_that_contradicts_a_fact_is_found(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    """One row more, of which everything else is as declared."""
    why, row = CONTRADICTED[name]
    filled(cursor, *ROWS, row)
    assert keep.unfit(cursor, KEPT) == why


def test_more_rows_than_were_said_are_found(cursor: duckdb.DuckDBPyConnection) -> None:
    """Of a private table and of a public one."""
    filled(cursor, *((*ROWS[0][:-1], i) for i in range(7)))
    assert keep.unfit(cursor, KEPT) == "cells"
    assert keep.unfit(cursor, replace(KEPT, size=7)) == ""
    cursor.execute("CREATE TABLE public AS SELECT unnest([0, 1, 2, 3, 4])::TINYINT AS c0")
    assert keep.unfit(cursor, PUBLIC) == "cells"


def test_public_keys_differ_over_all_rows(cursor: duckdb.DuckDBPyConnection) -> None:
    """Of private rows only one person's own are joined, so others may have the same key."""
    cursor.execute("CREATE TABLE public AS SELECT unnest([0, 1, 1])::TINYINT AS c0")
    assert keep.unfit(cursor, PUBLIC) == "unique"
    assert keep.unfit(cursor, replace(PUBLIC, unique=None)) == ""


DEFINED: dict[str, str] = {  # tables that hold the same rows and are not what the facts say
    "another type": "CREATE TABLE kept(c0 SMALLINT, c1 BIGINT, c2 VARCHAR, c3 VARCHAR, h BIGINT, d0 VARCHAR, o BIGINT)",
    "another order": "CREATE TABLE kept(c1 BIGINT, c0 TINYINT, c2 VARCHAR, c3 VARCHAR, h BIGINT, d0 VARCHAR, o BIGINT)",
    "a column more": "CREATE TABLE kept(c0 TINYINT, c1 BIGINT, c2 VARCHAR, c3 VARCHAR, h BIGINT, d0 VARCHAR, "
    "o BIGINT, c4 BIGINT)",
    "persons of another type": "CREATE TABLE kept(c0 TINYINT, c1 BIGINT, c2 VARCHAR, c3 VARCHAR, h BIGINT, "
    "d0 VARCHAR, o DOUBLE)",
    "a text with a collation": "CREATE TABLE kept(c0 TINYINT, c1 BIGINT, c2 VARCHAR COLLATE nocase, c3 VARCHAR, "
    "h BIGINT, d0 VARCHAR, o BIGINT)",
    "a number worked out when it is asked for": "CREATE TABLE kept(c0 TINYINT GENERATED ALWAYS AS (CAST(c1 AS TINYINT))"
    ", c1 BIGINT, c2 VARCHAR, c3 VARCHAR, h BIGINT, d0 VARCHAR, o BIGINT)",
    "rows that are read anew": "CREATE VIEW kept AS SELECT 1::TINYINT AS c0, (random() * 9)::BIGINT AS c1, "
    "'a' AS c2, '' AS c3, 7::BIGINT AS h, '001' AS d0, 1::BIGINT AS o",
    "a table that another hides": "CREATE TABLE kept(c0 TINYINT, c1 BIGINT, c2 VARCHAR, c3 VARCHAR, h BIGINT, "
    "d0 VARCHAR, o BIGINT); CREATE TEMP TABLE kept AS SELECT * FROM main.kept",
    "no table": "SELECT 1",
}


@pytest.mark.parametrize("name", DEFINED)
def test_a_table_of_another_definition_is_found(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    """Its rows may all be within bounds, and yet be other ones or other types when they are asked for."""
    filled(cursor, sql=DEFINED[name])
    assert keep.unfit(cursor, KEPT) == "columns"


@pytest.mark.parametrize(
    ("why", "table"),
    [
        ("columns", replace(KEPT, columns=(("c0", Column("DOUBLE", 0, 5)),))),  # may be NaN, and no whole number
        ("columns", replace(KEPT, columns=(("c0", Column("TINYINT", 0)),))),
        ("columns", replace(KEPT, name=("a", "b", "kept"))),
        ("owners", replace(KEPT, rows=0)),  # public rows that name persons
        ("owners", replace(KEPT, owned=False, columns=(*KEPT.columns, ("o", Column("BIGINT", 0, 9))))),
    ],
)
def test_facts_that_no_table_can_show_are_found(cursor: duckdb.DuckDBPyConnection, why: str, table: Table) -> None:
    """Nothing is believed that cannot be looked up."""
    filled(cursor, *ROWS)
    assert keep.unfit(cursor, table) == why


def test_one_message_for_all(cursor: duckdb.DuckDBPyConnection) -> None:
    """What the owner hears says nothing of a row, nor which fact it contradicts."""
    heard = set()
    for why, row in CONTRADICTED.values():
        cursor.execute("DROP TABLE IF EXISTS kept")
        filled(cursor, *ROWS, row)
        with pytest.raises(SetupError) as stopped:
            keep.check(cursor, Facts((KEPT,), "add_remove", row_is_person=False))
        heard.add((stopped.value.code, str(stopped.value)))
        assert why not in stopped.value.message
    assert {code for code, _ in heard} == {"unfit-rows"}
    assert len(heard) == 1


def test_the_order_of_columns_decides_what_a_star_means(cursor: duckdb.DuckDBPyConnection) -> None:
    """A union adds columns by their places: with facts in another order a sum is certified too small, for real."""
    facts = Table(("kept",), (("c0", Column("BIGINT", 0, 1)), ("c1", Column("BIGINT", 0, 1000))), 1, owned=True, size=9)
    cursor.execute("CREATE TABLE kept AS SELECT 1000::BIGINT AS c1, 1::BIGINT AS c0, 1::BIGINT AS o")
    sql = "SELECT sum(c0) FROM (SELECT c0, c1, o FROM kept UNION ALL SELECT * FROM kept)"
    found = certify(sql, Facts((facts,), "add_remove", row_is_person=False))
    bound = found.rows * max(high for _, high in found.intervals.values() if high < 1000)
    assert cursor.execute(sql).fetchall()[0][0] == 1001 > bound
    assert keep.unfit(cursor, facts) == "columns"


def test_random_tables_are_fit_just_where_plain_python_says_so(cursor: duckdb.DuckDBPyConnection) -> None:
    """Rows drawn around their bounds, judged by the words of the facts."""
    draw = random.Random(3)
    verdicts = []
    cursor.execute("CREATE TABLE kept(c0 TINYINT, c1 BIGINT, h BIGINT, o BIGINT)")
    rounds = count("kernel-kept", short=60, long=3000)
    for _ in range(rounds):
        missing = draw.random() < 0.5
        table = Table(
            ("kept",),
            (
                ("c0", Column("TINYINT", 0, 3, missing=missing)),
                ("c1", Column("BIGINT", 0, 9)),
                ("h", Column("BIGINT", 0, 9)),
            ),
            rows=draw.choice((1, 2)),
            owned=True,
            size=draw.choice((3, 9)),
            unique=draw.choice((None, "c1")),
        )
        cells = (0, 1, 2, 3, None) if draw.random() < 0.8 else (0, 3, 4, None)
        rows = [
            (draw.choice(cells), draw.choice((*range(10), None)), o % 10 if draw.random() < 0.97 else 0, o)
            for o in (draw.randrange(6) for _ in range(draw.randrange(5)))
        ]
        cursor.execute("DELETE FROM kept")
        if rows:
            inserted(cursor, rows)
        persons = {row[3]: [other for other in rows if other[3] == row[3]] for row in rows}
        fit = (
            len(rows) <= table.size
            and all((missing and c0 is None) or (c0 is not None and 0 <= c0 <= 3) for c0, *_ in rows)
            and all(len(own) <= table.rows and len({row[2] for row in own}) == 1 for own in persons.values())
            and (table.unique is None or all(_different([row[1] for row in own]) for own in persons.values()))
        )
        assert (keep.unfit(cursor, table) == "") == fit
        verdicts.append(fit)
    assert rounds / 10 < sum(verdicts) < 9 * rounds / 10


def _different(keys: list[object]) -> bool:
    there = [key for key in keys if key is not None]
    return len(set(there)) == len(there)
