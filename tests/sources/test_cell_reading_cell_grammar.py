"""The one grammar of cells: what is a number, a moment, a missing column."""

from __future__ import annotations

import re

import duckdb
import pyarrow as pa
import pytest

from sulq.compile.statements import kept_table
from sulq.errors import SetupError
from sulq.language.domain import Category, Column, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.privacy import Unit
from sulq.sources import cell_reading
from tests.counts import count, generator
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


READ = {
    "moment": (MOMENTS, Timestamp("2000-01-01", "2020-01-01"), plain_reading.read_moment),
    "day": (MOMENTS, Date("2000-01-01", "2020-01-01"), plain_reading.read_moment),
    "whole": (NUMBERS, Int(0, 9), plain_reading.read_number),
    "number": (NUMBERS, Real(0, 9), plain_reading.read_number),
}
LAX = {
    "epoch_us(TRY_CAST(s AS TIMESTAMP))": ("moment", "day"),
    "CAST(TRY_CAST(s AS BIGINT) AS DOUBLE)": ("whole",),
    "TRY_CAST(s AS DOUBLE)": ("whole", "number"),
}
CLOSE = "0123456789" * 2 + "+-_.,:/eExXTZ \t\x0b\x0c\r\n\xa0\u0661infaty"


def taken(texts: list[str], column: Column, *, sql: str | None = None) -> list[object]:
    """What texts are read as, in the layers of the prepared copy or by another expression of `s`."""
    usual = {f"a{i}": item for i, item in enumerate(cell_reading.usual(column, "text", "s"), 1)}
    first = {"a": cell_reading.plainly(column, "text", "s")} | usual
    _, value = cell_reading.value(column, "text", "a", tuple(usual))
    layer = f"(SELECT s, {', '.join(f'{item} AS {name}' for name, item in first.items())} FROM texts)"
    with duckdb.connect() as connection:
        connection.register("texts", pa.table({"s": texts}))
        found = connection.execute(f"SELECT {value if sql is None else sql} FROM {layer}").fetchall()
    return [None if cell in BEYOND else cell for (cell,) in found]


@pytest.mark.parametrize("read", READ)
def test_texts_are_read_as_the_grammar_says_whatever_the_short_way_takes(read: str) -> None:
    """With blanks around them and without, in SQL as in plain Python; what is beyond a double is no number.

    Control: the short ways of SQL alone take texts that the grammar does not, and miss others that it does.
    """
    texts, column, plainly = READ[read]
    given = [f"{before}{text}{after}" for text in texts for before in ("", " ", "\t\n") for after in ("", "\x0b ")]
    wanted = [None if found in BEYOND else found for found in map(plainly, given)]
    assert taken(given, column) == wanted
    assert [sql for sql, whose in LAX.items() if read in whose and taken(given, column, sql=sql) == wanted] == []


@pytest.mark.parametrize("read", READ)
def test_texts_close_to_what_is_usual_are_read_as_the_grammar_says(read: str) -> None:
    """A letter more, less or another, of numbers, days and moments as DuckDB writes them and as it does not.

    Control: with what is usual taken as DuckDB casts it, and not looked at again as text, some are read otherwise.
    """
    _, column, plainly = READ[read]
    rng, given = generator(f"texts that are close to a {read}"), []
    usual = [*MOMENTS, *NUMBERS, "2001-02-03 04:05:06", "1234567890", "-12", "9223372036854775807", "12345.678", "-0"]
    for _ in range(count("texts that are close to usual ones", short=20_000, long=400_000)):
        text = rng.choice(usual)
        for _ in range(rng.randrange(4)):
            place = rng.randrange(len(text) + 1)
            text = text[:place] + rng.choice(["", *CLOSE]) + text[place + rng.randrange(2) :]
        given.append(text)
    wanted = [None if found in BEYOND else found for found in map(plainly, given)]
    assert taken(given, column) == wanted
    for sql, whose in LAX.items():
        if read in whose:
            lax = f"CASE WHEN {sql} IS NOT NULL THEN {sql} ELSE {cell_reading.value(column, 'text', 'a')[1]} END"
            assert taken(given, column, sql=lax) != wanted
