"""Whom a cell names: by what its column holds, the same kind in all tables (SR25)."""

from __future__ import annotations

import itertools

import duckdb
import pyarrow as pa
import pytest

from sulq.errors import SetupError
from sulq.sources.decode import person


def test_a_declared_number_is_read_as_one() -> None:
    """Only texts, only where they are declared numbers, and never where spelling decides."""
    for fold in (None, "case"):
        assert person.person("text", "who", number=True, fold=fold).form == "figures"
    assert person.person("text", "who", number=True, fold="spelling").form == "text"
    assert person.person("text", "who", number=False, fold=None).form == "text"
    assert person.person("whole", "who", number=True, fold=None).form == "whole"


def test_kinds_that_may_stand_side_by_side() -> None:
    """Numbers of any type; UUIDs beside texts where case is folded; a column that is all missing beside anything."""
    person.agree([("a", "p", "whole"), ("b", "p", "double"), ("c", "p", "number"), ("d", "p", "nothing")], None)
    person.agree([("a", "p", "uuid"), ("b", "p", "text")], "case")
    person.agree([("a", "p", "text"), ("b", "p", "whole"), ("c", "p", "date")], "spelling")
    with pytest.raises(SetupError, match=r"UUIDs in a\.p and texts in b\.p") as refused:
        person.agree([("a", "p", "uuid"), ("b", "p", "text")], None)
    assert refused.value.code == "person-type"


@pytest.mark.parametrize(
    "kind", ["TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NS", "TIMESTAMPTZ_NS"]
)
def test_a_moment_is_one_person_in_every_type_T16(kind: str) -> None:
    """By its text in UTC, whatever the session's zone; the control: what lies beyond the type's years names nobody."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Asia/Tokyo'")
        zone = "+00" if "TZ" in kind else ""
        connection.execute(f"CREATE TABLE t AS SELECT CAST('2001-09-09 01:46:40{zone}' AS {kind}) AS s0")
        (shown,) = connection.execute("SELECT column_type FROM (DESCRIBE t)").fetchone()
        form, cell = person.typed(shown, "s0", "id")
        text = person.sql(form, "a", None)
        assert connection.execute(f"SELECT {text} FROM (SELECT {cell} AS a FROM t)").fetchone() == (
            "2001-09-09 01:46:40",
        )
        connection.execute(f"UPDATE t SET s0 = CAST('infinity' AS {kind})")
        assert connection.execute(f"SELECT {text} FROM (SELECT {cell} AS a FROM t)").fetchone() == (None,)


def test_types_that_name_nobody_are_refused() -> None:
    """Lists, blobs, intervals."""
    for kind in ("BLOB", "INTEGER[]", "STRUCT(a INTEGER)", "INTERVAL", "TIME"):
        with pytest.raises(SetupError, match="bad-declaration"):
            person.typed(kind, "s0", "id")


def test_blanks_at_both_ends_are_left_out_T16() -> None:
    """Of all texts of up to four of these letters, as Python strips them. Control: by what compares otherwise."""
    letters = [*person.BLANKS, "!", "a", "é", "\u00a0", "\U0001f600"]
    texts = ["".join(found) for size in range(5) for found in itertools.product(letters, repeat=size)]
    with duckdb.connect() as connection:
        connection.register("texts", pa.table({"s": texts}))

        def taken(sql: str) -> list[str]:
            return [found for (found,) in connection.execute(f"SELECT {sql} FROM texts").fetchall()]

        assert taken(person.trimmed("s")) == [text.strip(person.BLANKS) for text in texts]
        assert taken(person.trimmed("s").replace(">= '!'", "> ' '")) != [text.strip(person.BLANKS) for text in texts]
