"""Kept tables against their facts: every fact contradicted once, and tables made to pass for what they are not."""

from __future__ import annotations

import hashlib
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


def test_codes_of_more_spellings_than_numbers_are_found(cursor: duckdb.DuckDBPyConnection) -> None:
    """Control: as many as there are codes, and missing ones, are not."""
    filled(cursor, *((*ROWS[0][:-2], code, i) for i, code in enumerate(("0", "1", "2", "3", "4", "5", None, None))))
    assert keep.unfit(cursor, replace(KEPT, size=9)) == ""
    inserted(cursor, [(*ROWS[0][:-2], "00", 9)])
    assert keep.unfit(cursor, replace(KEPT, size=9)) == "codes"


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


# Reading: expressions that look at one record alone, and a choice of rows that follows from one person's own.

COLUMNS = (("c0", "TINYINT"), ("c1", "VARCHAR"))
READ = keep.Reading(
    "source",
    (
        ("s1 AS a0", "s2 AS a1"),
        ("a0 AS b0", "trim(a1, ' ') AS b1"),
        ("CASE WHEN b0 > 5 THEN 5 ELSE b0 END AS c0", "b1 AS c1"),
    ),
    person=("s0", "CAST(a AS VARCHAR)"),
    whole=True,
)
TOGETHER: dict[str, tuple[str, str]] = {  # expressions that look at other records, or might; where they stand
    "an aggregate": ("a0", "max(s1)"),
    "an aggregate over a window": ("a0", "max(s1) OVER ()"),
    "a number in the order of records": ("b0", "row_number() OVER ()"),
    "the record before": ("b0", "lag(a0) OVER ()"),
    "all records asked within": ("a0", "(SELECT max(s1) FROM source)"),
    "whether others are there": ("a0", "CASE WHEN EXISTS (SELECT 1 FROM source WHERE s1 = 9) THEN 1 ELSE 0 END"),
    "one of all records": ("a0", "CAST(s1 + 1 IN (SELECT s1 FROM source) AS INTEGER)"),
    "chance": ("b0", "random()"),
    "a counter": ("b0", "nextval('counter')"),
    "a place in storage": ("a0", "rowid"),
    "a column by its table": ("a0", "source.s1"),
    "the person": ("c0", "length(u)"),
    "columns by a pattern": ("c0", "COLUMNS('b.*')"),
    "all columns": ("b0", "*"),
    "a second projection": (
        "a0",
        "1 AS a0 FROM (SELECT max(s1) AS s1, 1 AS s2, 1 AS s0 FROM source) AS source, (SELECT 1",
    ),
    "another source": ("a0", "1 AS a0, s1 AS a9 FROM source UNION ALL SELECT 1"),
    "two in one": ("a0", "s1 AS a9, s1"),
    "a function of a schema": ("b0", "main.abs(a0)"),
    "a function of lists": ("b0", "list_aggregate([a0], 'max')"),
    "an ordered aggregate": ("b0", "first(a0 ORDER BY a0)"),
    "a filter": ("b0", "abs(a0) FILTER (WHERE true)"),
    "no expression": ("b0", ""),
}
HIDDEN: dict[str, tuple[int, str]] = {  # names that stand for the kernel's own, and in which projection
    "the cell that names the person": (0, "s1 AS a"),
    "the person's text": (1, "a1 AS u"),
    "the person's number": (1, "a0 AS w"),
    "the person's number kept": (2, "b0 AS o"),
    "a place": (0, "s1 AS place"),
    "a name twice": (1, "a0 AS b0"),
    "no name": (1, "abs(a0)"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_reading_names_none_of_the_kernels_columns_SR25(name: str) -> None:
    """DuckDB takes the first of two equal names: another than the person's would be counted by."""
    place, item = HIDDEN[name]
    layers = tuple((*layer, item) if i == place else layer for i, layer in enumerate(READ.layers))
    with pytest.raises(SetupError, match="unfit-rows"):
        keep.cells(replace(READ, layers=layers))
    more = (*READ.layers[0], "s1 AS a7"), *READ.layers[1:]
    keep.cells(replace(READ, layers=more))  # control: a name of its own


def read_with(name: str, expression: str) -> keep.Reading:
    """The reading with another expression for one column."""
    layers = tuple(
        tuple(f"{expression} AS {name}" if item.endswith(f" AS {name}") else item for item in layer)
        for layer in READ.layers
    )
    return replace(READ, layers=layers)


@pytest.mark.parametrize("name", TOGETHER)
def test_a_reading_that_may_look_at_other_records_is_refused_SR25(name: str) -> None:
    """Before any record is read. Control: the same reading with expressions of one record is written."""
    with pytest.raises(SetupError) as stopped:
        keep.cells(read_with(*TOGETHER[name]))
    assert stopped.value.code == "unfit-rows"
    keep.cells(read_with("b0", "CASE WHEN isnan(CAST(a0 AS DOUBLE)) THEN NULL ELSE list_position([1, 2], a0) END"))


@pytest.mark.parametrize("person", [("max(s0)", "CAST(a AS VARCHAR)"), ("s0", "first(a)"), ("s0", "(SELECT 'x')")])
def test_whose_a_record_is_follows_from_that_record_SR25(person: tuple[str, str]) -> None:
    """In the rows and among the people alike, which are told by the same expressions."""
    for written in (keep.cells, lambda read: keep.people({0: read})):
        with pytest.raises(SetupError, match="unfit-rows"):
            written(replace(READ, person=person))


def kept_of(
    cursor: duckdb.DuckDBPyConnection, records: Sequence[tuple[object, ...]], read: keep.Reading, rows: int, *swap: str
) -> dict[str, list[tuple[object, ...]]]:
    """The kept rows of each person, by the person's hash; with two texts, the second stands for the first."""
    cursor.execute("CREATE OR REPLACE TABLE source(s0 INTEGER, s1 TINYINT, s2 VARCHAR)")
    if records:
        values = ", ".join("(?, ?, ?)" for _ in records)
        cursor.execute(f"INSERT INTO source VALUES {values}", [cell for row in records for cell in row])
    cursor.execute(
        f"CREATE OR REPLACE TABLE people AS SELECT *, row_number() OVER () AS o FROM {keep.people({0: read})}"
    )
    asked = keep.keep(read, COLUMNS, rows, spelled={"d0": "c0"}, blanked=False, key="'key'", stored=True)
    asked = asked.replace(*swap) if swap else asked
    cursor.execute(f"CREATE OR REPLACE TABLE kept AS SELECT * FROM {asked}")
    found: dict[str, list[tuple[object, ...]]] = {}
    for c0, c1, h, d0, _ in cursor.execute("SELECT * FROM kept ORDER BY c0, c1").fetchall():
        found.setdefault(h, []).append((c0, c1, d0))
    return found


def departures(cursor: duckdb.DuckDBPyConnection, rounds: int, read: keep.Reading, *swap: str) -> int:
    """How often other persons' kept rows change when one person leaves."""
    draw, changed = random.Random(5), 0
    for _ in range(rounds):
        rows = draw.choice((1, 2, 3))
        records = [
            (draw.choice((1, 2, 3, None)), draw.choice((0, 1, 9, None)), draw.choice(("x", "y ", "", None)))
            for _ in range(draw.randrange(2, 14))
        ]
        gone = draw.choice((1, 2, 3))
        before = kept_of(cursor, records, read, rows, *swap)
        after = kept_of(cursor, [record for record in records if record[0] != gone], read, rows, *swap)
        left = int(hashlib.sha256(str(gone).encode()).hexdigest()[:15], 16)
        changed += {h: own for h, own in before.items() if h != left} != after
        assert swap or all(len(own) <= rows for own in before.values())
        assert (
            swap
            or read is not READ
            or sum(map(len, before.values()))
            == sum(min(rows, sum(record[0] == person for record in records)) for person in (1, 2, 3))
        )
    return changed


def test_nobody_else_has_other_rows_when_a_person_leaves_SR2(
    cursor: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random records, people and numbers of kept rows; a person with few rows keeps all of them.

    Controls: a choice over all rows, persons who are told apart by less than their ids, and readings that are refused.
    """
    rounds = count("kernel-departures", short=25, long=2000)
    assert departures(cursor, rounds, READ) == 0
    assert departures(cursor, 25, READ, "PARTITION BY o ORDER BY", "PARTITION BY 1 ORDER BY") > 0
    merged = replace(READ, person=("s0 // 2", "CAST(a AS VARCHAR)"))  # ids that are not injective: trusted, and no more
    assert departures(cursor, 25, merged) > 0
    monkeypatch.setattr(keep, "_row_wise", lambda *_: None)
    for name in ("an aggregate over a window", "all records asked within", "one of all records", "the record before"):
        assert departures(cursor, 25, read_with(*TOGETHER[name])) > 0


def test_the_choice_is_by_the_key_and_every_cell_SR2(cursor: duckdb.DuckDBPyConnection) -> None:
    """Another key keeps other rows; each of them is kept by some key, so none is preferred by its cells."""
    records = [(1, i % 6, "abcdef"[i // 6]) for i in range(12)]
    chosen = {
        key: tuple(kept_of(cursor, records, READ, 2, "'key'", f"'{key}'").popitem()[1]) for key in map(str, range(60))
    }
    assert len(set(chosen.values())) > 30
    assert len({row for rows in chosen.values() for row in rows}) == 12
