"""The one grammar of cells: what is a number, a moment, a missing column."""

from __future__ import annotations

import re

import duckdb
import pyarrow as pa
import pytest

from sulq.compile.statements import kept_table
from sulq.errors import SetupError
from sulq.language.domain import Category, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.privacy import Unit
from sulq.sources import cell_reading
from sulq.sources.decode import person
from tests.sources import plain_reading


@pytest.mark.parametrize("text", ["1", "+1.5", "-.5", "5.", "1e5", "1E-300", "007"])
def test_numbers(text: str) -> None:
    """Signs, fractions and exponents of up to three digits are numbers."""
    assert re.fullmatch(cell_reading.NUMBER, text)


@pytest.mark.parametrize("text", ["", ".", "1e", "1e1234", "nan", "inf", "0x1", "1_0", "1,5", "١", "1 2", "--1", "1\n"])
def test_not_numbers(text: str) -> None:
    """Nothing else is: no names, no grouping, no digits of other scripts."""
    assert not re.fullmatch(cell_reading.NUMBER, text)


@pytest.mark.parametrize(
    ("column", "cell", "fine"),
    [
        (Int(0, 1), "text", True),
        (Int(0, 1), "date", False),
        (Real(0, 1), "moment", False),
        (Date("2020-01-01", "2020-01-02"), "number", False),
        (Timestamp("2020-01-01T00:00", "2020-01-02T00:00"), "date", True),
        (Category((1, 2)), "moment", False),
        (Category(("1", "2")), "moment", True),
        (Text(), "number", True),
    ],
)
def test_declarations_a_source_can_never_meet_are_refused(column: object, cell: str, fine: object) -> None:
    """A number read as a date, or a date as a number, is the owner's mistake and said so."""
    if fine:
        cell_reading.agree("c", column, cell)
        return
    with pytest.raises(SetupError, match="'c'") as refused:
        cell_reading.agree("c", column, cell)
    assert refused.value.code == "bad-declaration"


def test_missing_and_double_columns_are_named() -> None:
    """The owner is told which column is missing, or stands there twice."""
    schema = Schema("data", (("a", Int(0, 1)), ("b", Int(0, 1))))
    assert cell_reading.places(["b", "who", "a"], schema, Unit("who")) == {"a": 2, "b": 0, "who": 1}
    with pytest.raises(SetupError, match="'b', 'who'") as refused:
        cell_reading.places(["a"], schema, Unit("who"))
    assert refused.value.code == "missing-column"
    with pytest.raises(SetupError, match="'a'") as refused:
        cell_reading.places(["a", "b", "a"], schema, Unit())
    assert refused.value.code == "unreadable-data"


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_names_with_another_mark_between_them_are_explained(mark: str) -> None:
    """A file's only column is named like several."""
    schema = Schema("data", (("a", Int(0, 1)),))
    with pytest.raises(SetupError, match="commas between fields") as refused:
        cell_reading.places([f"a{mark}b"], schema, Unit())
    assert refused.value.code == "missing-column"
    with pytest.raises(SetupError, match="Declare only"):
        cell_reading.places([f"a{mark}b", "c"], schema, Unit())


def test_codes_are_stored_in_the_narrowest_integers() -> None:
    """The width follows from declared bounds alone."""
    widths = {
        Int(0, 120): "TINYINT",
        Int(0, 128): "SMALLINT",
        Int(-40_000, 0): "INTEGER",
        Int(0, 2**31): "BIGINT",
        Text(): "VARCHAR",
    }
    assert {column: kept_table.smallest(column) for column in widths} == widths


MOMENTS = [
    "2001-02-03", "2001-02-30", "0000-01-01", "0001-01-01", "9999-12-31", "10000-01-01", "0044-03-15 (BC)", "infinity",
    "-infinity", "epoch", "2001-2-3", "20010203", "2001-02-03 04:05:06", "2001-02-03T04:05:06", "2001-02-03T04:05:06Z",
    "2001-02-03 24:00:00", "2001-02-03 04:05:60", "2001-02-30 04:05:06", "0000-01-01 00:00:00", "9999-12-31 23:59:59",
    "2001-02-03 04:05", "2001-02-03 04:05:06.5", "2001-02-03 04:05:06+02:00", "2001-02-03 4:05:06 ", "12001-02-03 04:0",
    "2001-02-03  04:05:6", "2001/02/03", "1969-12-31 23:59:59", "é001-02-03", "2001-02-03 04:05:0\u0661",
]  # fmt: skip
BEYOND = (float("inf"), float("-inf"))
NUMBERS = [
    "1",
    "1.0",
    "+1.5",
    "-.5",
    "5.",
    "1e5",
    "1E-300",
    "1e999",
    "007",
    "1_0",
    "+-5",
    "inf",
    "nan",
    "1e0005",
    "0x1",
]


@pytest.mark.parametrize("read", ["moment", "number"])
def test_texts_are_read_as_the_grammar_says_whatever_the_short_way_takes(read: str) -> None:
    """With blanks around them and without, in SQL as in plain Python; what is beyond a double is no number.

    Control: the short ways of SQL alone take texts that the grammar does not, and miss others that it does.
    """
    texts, column, plainly = (
        (MOMENTS, Timestamp("2000-01-01", "2020-01-01"), plain_reading.read_moment)
        if read == "moment"
        else (NUMBERS, Int(0, 9), plain_reading.read_number)
    )
    given = [f"{before}{text}{after}" for text in texts for before in ("", " ", "\t\n") for after in ("", "\x0b ")]
    trims = cell_reading.needs_trim(column, "text")
    _, value = cell_reading.value(column, "text", "a")
    short = "epoch_us(TRY_CAST(a AS TIMESTAMP))" if read == "moment" else "TRY_CAST(a AS DOUBLE)"
    with duckdb.connect() as connection:
        connection.register("texts", pa.table({"s": given}))
        layer = f"(SELECT {person.trimmed('s') if trims else 's'} AS a FROM texts)"

        def taken(sql: str) -> list[object]:
            return [found for (found,) in connection.execute(f"SELECT {sql} FROM {layer}").fetchall()]

        wanted = [None if found in BEYOND else found for found in map(plainly, given)]
        assert [None if found in BEYOND else found for found in taken(value)] == wanted
        assert taken(short) != wanted
