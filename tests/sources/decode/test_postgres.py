"""A table of PostgreSQL as records: every cell as text, what names persons exactly, and what is refused."""

from __future__ import annotations

import psycopg
import pytest

from sulq.errors import SetupError
from sulq.sources.decode import person
from sulq.sources.decode.postgres import PostgresColumn, records
from tests.postgres import server
from tests.sources.postgres_cases import at

BASES = {
    "boolean": ("true", "truth"), "smallint": ("7", "whole"), "bigint": (str(2**63 - 1), "whole"),
    "numeric": ("0.5000", "number"), "real": ("0.1", "single"), "double precision": ("1e300", "double"),
    "text": ('a,"b\n', "text"), "uuid": ("0a" * 16, "uuid"), "date": ("2020-01-10", "date"),
    "timestamp without time zone": ("2020-01-10 00:00:00.5", "time"),
    "timestamp with time zone": ("2020-01-10 09:00:00+09", "time"),
}  # fmt: skip


def test_every_type_is_text_and_missing_cells_are_missing() -> None:
    """Of any number of rows, in batches; a real keeps the double it is."""
    shown = ", ".join(f"CAST('{cell}' AS {base}) AS \"{base}\"" for base, (cell, _) in BASES.items())
    name = server().do("SELECT 'typed_' || pg_backend_pid()")[0][0]
    server().do(f"CREATE TABLE {name} AS SELECT {shown} FROM generate_series(1, 2500)")
    server().do(f"INSERT INTO {name} DEFAULT VALUES")
    columns = [PostgresColumn(base, base, "b") for base in BASES]
    read = records(name, columns, None, None)
    with psycopg.connect(at(name).partition("&table=")[0], autocommit=True) as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute("BEGIN")
        rows = [row for batch in read.batches(db) for row in zip(*batch.to_pydict().values(), strict=True)]
    assert len(rows) == 2501
    assert sum(set(row) == {None} for row in rows) == 1
    (told,) = {row for row in rows if row[0] is not None}
    want = ["true", "7", str(2**63 - 1), "0.5", "0.10000000149011612", "1e+300", 'a,"b\n']
    assert list(told[:7]) == want
    assert list(told[8:]) == ["2020-01-10", "2020-01-10 00:00:00.5", "2020-01-10 00:00:00"]


@pytest.mark.parametrize("base", BASES)
def test_what_a_type_says_of_persons(base: str) -> None:
    """Each type has a form, and a cell in the source's column of persons."""
    read = records("t", [], PostgresColumn("id", base, "b"), None)
    assert read.named[0] == BASES[base][1]
    assert person.WHO in read.named[1]
    assert read.schema.names == [person.WHO]


def test_other_types_and_texts_without_case_are_refused() -> None:
    """Lists and points are not read; citext names persons only where the owner folds case."""
    for base in ("point", "integer[]", "bytea"):
        with pytest.raises(SetupError, match="bad-declaration"):
            records("t", [PostgresColumn("x", base, "b")], None, None)
    with pytest.raises(SetupError, match="person-type"):
        records("t", [], PostgresColumn("id", "public.citext", "b"), None)
    assert records("t", [], PostgresColumn("id", "public.citext", "b"), "case").named == ("text", person.WHO)
