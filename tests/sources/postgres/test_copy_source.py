"""A table of PostgreSQL as a source: every kind of column it may have, and not a digit or a cell lost on the way."""

from __future__ import annotations

import pytest

from sulq.errors import SetupError
from sulq.language.domain import Bool, Category, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.privacy import Unit
from sulq.language.rowfn import IsMissing, col, lit
from tests.postgres import server
from tests.sources.cases import CANARY, ask, sums
from tests.sources.postgres_cases import at, engine, named


def made(columns: str, *rows: str) -> str:
    """A table of these columns and rows."""
    name = named("made")
    server().do(f"CREATE TABLE {name} ({columns})")
    for row in rows:
        server().do(f"INSERT INTO {name} VALUES ({row})")
    return name


def test_every_kind_of_column_is_read():
    """Domains and enums too; what is past every bound is clamped, what is no number is missing."""
    mood, score = named("mood"), named("score")
    server().do(f"CREATE TYPE {mood} AS ENUM ('sad', 'glad'); CREATE DOMAIN {score} AS numeric CHECK (VALUE < 1000)")
    name = made(
        f"b boolean, s smallint, i integer, l bigint, r real, d float8, n numeric, c char(5), v varchar(9), t text,"
        f" u uuid, m {mood}, q {score}, day date, at timestamp, zoned timestamptz",
        "true, 1, 2, 3, 1.5, 2.5, 3.25, 'x', 'y', 'z', '00000000-0000-0000-0000-000000000001', 'glad', 7,"
        " '2020-02-29', '2020-02-29 12:00', '2020-02-29 12:00+02'",
        "false, -32768, 2147483647, -9223372036854775808, 'NaN', '-Infinity', 'Infinity', '', '', '', NULL, 'sad', 8,"
        " 'infinity', '-infinity', 'infinity'",
        ", ".join(["NULL"] * 16),
    )
    schema = Schema.of(
        "data",
        {
            "b": Bool(), "s": Int(0, 9), "i": Int(0, 9), "l": Int(0, 9), "r": Real(0, 8), "d": Real(0, 8),
            "n": Real(0, 8), "c": Category(["x", "y"]), "v": Category(["y", ""]), "t": Text(),
            "u": Category(["00000000-0000-0000-0000-000000000001"]), "m": Category(["sad", "glad"]), "q": Int(0, 9),
            "day": Date("2020-01-01", "2020-12-31"), "at": Timestamp("2020-01-01", "2020-12-31"),
            "zoned": Timestamp("2020-01-01", "2020-12-31"),
        },
    )  # fmt: skip
    opened = engine(at(name), schema=schema)

    def total(fn, where=None):
        return opened.sums(ask(fn, where=where, schema=schema)).open().tolist()[0][0]

    assert [total(col(x)) for x in "bsil"] == [1, 1, 2 + 9, 3]
    units = {x: schema.find(x).step for x in "rdn"}
    assert [total(col(x)) * units[x] for x in "rdn"] == [1.5, 2.5, 3.25 + 8]
    for condition, rows in (
        (col("c") == "x", 1), (col("v") == "", 1), (col("v") == "y", 1), (col("t") == "", 1), (col("m") == "glad", 1),
        (col("u") == "00000000-0000-0000-0000-000000000001", 1), (col("q") == 7, 1),
        (col("day") == "2020-02-29", 1), (col("day") == "2020-12-31", 1), (col("at") == "2020-01-01", 1),
        (col("at") == "2020-02-29T12:00:00", 1), (col("zoned") == "2020-02-29T10:00:00", 1),
    ):  # fmt: skip
        assert total(lit(1), condition) == rows, condition


def test_long_decimal_ids_are_different_people_T16():
    """Numerics of thirty digits that are one double are as many people as they are; and 7 and 7.00 are one."""
    first, second = 10**29 + 1, 10**29 + 2
    assert float(first) == float(second)
    name = made("who numeric, x integer", *(f"{who}, 1" for who in (first, second, "7", "7.00", "'NaN'", "NULL")))
    schema = Schema.of("data", {"x": Int(0, 1)})
    assert sums(engine(at(name), Unit("who", 1), schema), ask(schema=schema)) == [[[3]]]
    server().do(f"ALTER TABLE {name} ALTER who TYPE float8")  # as doubles two of them would be one
    with pytest.raises(SetupError, match="person-type"):
        engine(at(name), Unit("who", 1), schema, space="other").ready()


@pytest.mark.parametrize("kind", ["bytea", "json", "interval", "integer[]", "money", "point", "time"])
def test_other_kinds_are_refused_by_name(kind: str) -> None:
    """Before a row is read; and a numeric is no date."""
    name = made(f"x {kind}, n numeric, y integer")
    with pytest.raises(SetupError, match="bad-declaration") as refused:
        engine(at(name), schema=Schema.of("data", {"x": Text()})).ready()
    assert "'x'" in str(refused.value)
    with pytest.raises(SetupError, match="bad-declaration"):
        engine(at(name), schema=Schema.of("data", {"n": Date("2020-01-01", "2021-01-01")})).ready()
    engine(
        at(name), schema=Schema.of("data", {"y": Int(0, 1)})
    ).ready()  # a column that is not declared may be anything


def test_what_is_not_there_is_said():
    """No such table, an index in its place, a column that is missing; control: a view is read like a table."""
    name = made("x integer", "1", "2")
    server().do(f"CREATE INDEX {name}_i ON {name} (x); CREATE VIEW {name}_v AS SELECT x + 1 AS x FROM {name}")
    schema = Schema.of("data", {"x": Int(0, 9)})
    for other in (f"{name}_i", "no_such_table", f"nowhere.{name}"):
        with pytest.raises(SetupError, match="unreadable-data"):
            engine(at(other), schema=schema).ready()
    with pytest.raises(SetupError, match="missing-column"):
        engine(at(name), schema=Schema.of("data", {"y": Int(0, 9)})).ready()
    assert sums(engine(at(f"public.{name}_v"), schema=schema), ask(col("x"), schema=schema)) == [[[5]]]


def test_names_of_tables_and_columns_are_only_names_T71():
    """Whatever they hold."""
    hostile = 'x"; DROP TABLE people; --%s'
    name = named('odd".table')
    quoted = name.replace('"', '""')
    server().do(f'CREATE SCHEMA "{quoted}"; CREATE TABLE "{quoted}"."odd" ("x""; DROP TABLE people; --%s" integer)')
    server().do(f'INSERT INTO "{quoted}"."odd" VALUES (3)')
    schema = Schema("data", ((hostile, Int(0, 9)),))
    assert name.count(".") == 1  # so it can only be named where no dot is looked for
    plain = named("plain")
    server().do(f'ALTER SCHEMA "{quoted}" RENAME TO {plain}')
    assert sums(engine(at(f"{plain}.odd"), schema=schema), ask(col(hostile), schema=schema)) == [[[3]]]


def test_texts_come_whole():
    """Line ends, quotes, backslashes, the end of a COPY and an empty text are what they were; none becomes missing."""
    texts = ["", "\n", '"', '""', "\\.", "a\n\\.\nb", "a,b", "\r\n", "\\N", "NULL", "'", "\u05d0", " x "]
    name = made("who text, note text")
    for i, text in enumerate(texts):
        server().do(f"INSERT INTO {name} VALUES ('{i}', $sulq${text}$sulq$)")
    server().do(f"INSERT INTO {name} VALUES ('{CANARY}', NULL)")
    schema = Schema.of("data", {"note": Text()})
    opened = engine(at(name), Unit("who", 1), schema)

    def rows(where=None):
        return opened.sums(ask(lit(1), where=where, schema=schema)).open().tolist()[0][0]

    assert [rows(col("note") == text) for text in texts] == [1] * len(texts)
    assert rows(IsMissing(col("note"))) == 1
    assert rows() == len(texts) + 1


VIEWS = {
    "row-level security behind SECURITY DEFINER": """CREATE ROLE {0}_other; GRANT ALL ON {0} TO {0}_other;
        ALTER TABLE {0} ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {0} TO {0}_other USING (x < 2);
        CREATE FUNCTION {0}_f() RETURNS SETOF {0} LANGUAGE sql STABLE SECURITY DEFINER SET row_security = on
        AS 'SELECT * FROM public.{0}'; ALTER FUNCTION {0}_f() OWNER TO {0}_other;
        CREATE VIEW {0}_v AS SELECT * FROM {0}_f()""",
    "a setting of the function's own": """CREATE FUNCTION {0}_f(integer) RETURNS boolean LANGUAGE sql IMMUTABLE
        SET row_security = on AS 'SELECT true'; CREATE VIEW {0}_v AS SELECT * FROM {0} WHERE {0}_f(x)""",
    "a function that reads other rows": """CREATE FUNCTION {0}_f(integer) RETURNS boolean LANGUAGE sql STABLE
        AS 'SELECT true'; CREATE VIEW {0}_w AS SELECT * FROM {0} WHERE {0}_f(x);
        CREATE VIEW {0}_v AS SELECT x + 1 AS x FROM {0}_w""",
    "random()": "CREATE VIEW {0}_v AS SELECT x FROM {0} WHERE random() < 0.5",
    "random() in a subquery": "CREATE VIEW {0}_v AS SELECT x FROM {0} WHERE x IN (SELECT (3 * random())::int FROM {0})",
    "TABLESAMPLE": "CREATE VIEW {0}_v AS SELECT x FROM {0} TABLESAMPLE BERNOULLI (50)",
}


@pytest.mark.parametrize("how", VIEWS)
def test_a_view_that_may_hide_rows_is_refused_T105(how: str) -> None:
    """Rows a policy hides from another role, and rows drawn by chance: what is read is not what there is."""
    name = made("x integer", "1", "2", "3")
    server().do(VIEWS[how].format(name))
    try:
        with pytest.raises(SetupError, match="may hide rows") as refused:
            engine(at(f"{name}_v"), schema=Schema.of("data", {"x": Int(0, 9)})).ready()
        assert refused.value.code == "bad-declaration"
    finally:
        if "ROLE" in VIEWS[how]:
            server().do(f"DROP FUNCTION {name}_f CASCADE; DROP OWNED BY {name}_other; DROP ROLE {name}_other")


def test_a_view_of_another_view_is_read() -> None:
    """Control: immutable functions of the owner's, joins and conditions hide nothing."""
    name = made("x integer", "1", "2", "3")
    server().do(f"""CREATE FUNCTION {name}_f(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1';
        CREATE VIEW {name}_w AS SELECT {name}_f(x) AS x FROM {name} WHERE lower('A') = 'a';
        CREATE VIEW {name}_v AS SELECT w.x FROM {name}_w AS w JOIN {name} AS o ON o.x + 1 = w.x""")
    schema = Schema.of("data", {"x": Int(0, 9)})
    assert sums(engine(at(f"{name}_v"), schema=schema), ask(col("x"), schema=schema)) == [[[9]]]
