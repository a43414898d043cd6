"""Adversarial tables and random questions, drawn from a seeded generator: every failure is reproduced by its seed."""

from __future__ import annotations

import csv
import io
import math
import random
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.privacy import Unit

DAY = 86_400_000_000
NUMBER_TEXTS = (
    "12", " 12 ", "+3.5", "-.5e1", "1e400", "-1e400", "1e-400", "nan", "inf", "-Infinity", "0x10", "1_000", "１２",
    "abc", "1.2.3", "1e5555", "--1", "\t7\n", "٣", "1,5", "5.", ".", "+", "1e", "0.49999999999999994", "-0", "00012",
    "1e3", "9007199254740993", "123456789012345678901234567890", "0." + "0" * 30 + "1", "1 2", "é", "\u00a05", "2.5",
    "3.5", "1", "0", "true", "1e-320",
)  # fmt: skip
TRUTH_TEXTS = (
    "true",
    "FALSE",
    " t ",
    "F",
    "1",
    "0",
    "yes",
    "No",
    "y",
    "on",
    "tRue",
    "yeſ",
    "falſe",
    "1.0",
    "2",
    "\tYES",
    "",
)
DATE_TEXTS = (
    "2020-02-29", "2021-02-29", "0000-01-01", "0001-01-01", "9999-12-31", "20200101", " 2020-06-01 ", "2020-13-01",
    "2020-01-01T12:00:00Z", "2020-06-01 23:59:59.999999999+02:00", "2020-01-01T24:00:00", "2020-06-01T10:30",
    "2020-06-01T10:30:60", "2020-6-1", "2020-06-01T10", "2020-06-01 10:30:05.5-11:45", "infinity", "epoch", "today",
    "2020-06-01T10:30:05,5", "12020-01-01", "2020-06-01 00:00:00 UTC", "1969-12-31T23:59:59.9999999", "2020-06-31",
)  # fmt: skip
ORDINARY_TEXTS = (
    "x",
    "y",
    "z",
    "x ",
    "X",
    "",
    "~",
    "é",
    "e\u0301",
    "日本",
    "a\x1fb",
    "1:~",
    "1",
    "1.0",
    "'; DROP TABLE kept; --",
    '"',
    "$key",
    "{0}",
    "%s",
    "\\1",
)
PERSON_TEXTS = (
    "ann",
    "Ann",
    " ann ",
    "ANN\t",
    "bob",
    "Bob",
    "1",
    "1.0",
    "1.00",
    "01",
    "é",
    "e\u0301",
    "E\u0301",
    "K",
    "\u212a",
    "",
    "  ",
    "a b",
    "-7",
    "-7.0",
    "x\x1fy",
    "각",
    "\u1100\u1161\u11a8",
)
EXTREMES = (
    math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 2.0**-1030, 1e308, -1e308, 2.0**53, -(2.0**53),
    2.0**53 + 2, 2.0**52 + 1, 2.0**63, 0.49999999999999994, 0.5, 1.5, 2.5, -0.5, -1.5, 1e22,
)  # fmt: skip
WHOLES = (0, 1, -1, 2, 2**31, -(2**31), 2**53, -(2**53), 2**53 + 1, 2**63 - 1, -(2**63), 2**52 + 1)


@dataclass(frozen=True)
class Made:
    """A generated column: its declaration, its Arrow type, and its cells as plain Python values.

    Cells are None, bool, int, float, str or Decimal; days for a date, units from 1970 for a timestamp.
    """

    column: Column | None
    kind: pa.DataType
    cells: tuple[object, ...]

    def arrow(self, rows: list[int] | None = None) -> pa.Array:
        """The column, or some of its rows, in Arrow."""
        cells = self.cells if rows is None else [self.cells[i] for i in rows]
        if pa.types.is_date(self.kind):
            return pa.array(cells, pa.int32()).cast(self.kind)
        if pa.types.is_timestamp(self.kind):
            return pa.array(cells, pa.int64()).cast(self.kind)
        if pa.types.is_dictionary(self.kind):
            return pa.array(cells, pa.string()).dictionary_encode()
        return pa.array(cells, self.kind)


@dataclass(frozen=True)
class Data:
    """A generated table with its declarations and unit."""

    schema: Schema
    unit: Unit
    made: dict[str, Made]
    size: int
    text: bool = False  # whether all cells are text, as in a CSV file

    def arrow(self, rows: list[int] | None = None) -> pa.Table:
        """The table, or some of its rows in a given order."""
        return pa.table({name: made.arrow(rows) for name, made in self.made.items()})

    def parquet(self, path: Path, rows: list[int] | None = None, *, group: int | None = None) -> Path:
        """The table as a Parquet file, in row groups of a given size."""
        pq.write_table(self.arrow(rows), path, row_group_size=group)
        return path

    def csv(self, path: Path, rows: list[int] | None = None) -> Path:
        """The table as CSV; only for a table of text, where a missing cell and an empty one are the same."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.made)
        for i in range(self.size) if rows is None else rows:
            writer.writerow([made.cells[i] for made in self.made.values()])
        path.write_bytes(text.getvalue().encode())
        return path

    def row(self, i: int) -> dict[str, tuple[pa.DataType, object]]:
        """One row's cells with their types."""
        return {name: (made.kind, made.cells[i]) for name, made in self.made.items()}


def table(
    rng: random.Random,
    *,
    text: bool = False,
    unit: Unit | None = None,
    size: int | None = None,
    never: float = 0.25,
) -> Data:
    """An adversarial table; `text`: all of its cells are text (or missing), as in a CSV file.

    `never`: how many of its columns say that no cell is missing, though some are; under zero_out none may.
    """
    size = rng.choice((0, 1, 2, 3, 8, 20, 40)) if size is None else size
    unit = unit or rng.choice(UNITS)
    made: dict[str, Made] = {}
    for i, column in enumerate(_columns(rng)):
        part = _made(rng, column, size, text=text)
        if part.column is not None and unit.neighbors != "zero_out" and rng.random() < never:
            part = replace(part, column=replace(part.column, missing=False, default=_default(rng, part.column)))
        made[f"{rng.choice(NAMES)}{i}"] = part
    schema = Schema("data", tuple((name, part.column) for name, part in made.items() if part.column is not None))
    if unit.column is not None:
        made[unit.column] = _people(rng, size, text=text)
    names = list(made)
    rng.shuffle(names)
    return Data(schema, unit, {name: made[name] for name in names}, size, text)


def _default(rng: random.Random, column: Column) -> object:
    """What a missing cell counts as: nothing said, or the highest value."""
    if rng.random() < 0.5:
        return None
    if isinstance(column, Category):
        return column.values[-1]
    return True if isinstance(column, Bool) else "it's ~" if isinstance(column, Text) else column.hi


REALS = (
    Real(0, 200_000), Real(-1, 1), Real(-3.7, 12.25, 0.125), Real(5, 5.5), Real(-1e30, 1e30), Real(0, 0),
    Real(1e-9, 2e-9), Real(-(2**20), 2**20, 2**-10),
)  # fmt: skip
WORDS = (
    pa.string(), pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.float64(), pa.int32(),
    pa.bool_(),
)  # fmt: skip
NUMBERS = (
    pa.float64(), pa.float64(), pa.float32(), pa.int64(), pa.int8(), pa.uint64(), pa.bool_(), pa.decimal128(12, 3),
    pa.decimal128(30, 10), pa.string(),
)  # fmt: skip
CLOCKS = (
    pa.date32(), pa.timestamp("us"), pa.timestamp("us", "Asia/Tokyo"), pa.timestamp("ns"), pa.timestamp("ns", "UTC"),
    pa.string(),
)  # fmt: skip
LONG_IDS = (pa.decimal128(38, 0), pa.decimal128(20, 2))
NAMES = ("a", "B ", 'quote"', "select", "c0", "s0", "h", "ünï", "x'y", "kept")
UNITS = (
    Unit(),
    Unit(neighbors="replace_one"),
    Unit(neighbors="zero_out"),
    Unit("who", 1),
    Unit("who", 2, fold="spelling"),
    Unit("who", 3, "replace_one", fold="case"),
    Unit("who", 2, "zero_out"),
)


def _columns(rng: random.Random) -> list[Column]:
    """At least one column of each kind a question may need, with bounds of every sort."""
    real = rng.choice(REALS)
    whole = rng.choice(
        (Int(0, 120), Int(-5, 5), Int(100, 101), Int(0, 0), Int(-(2**53), 2**53), Int(0, 2**40), Int(7, 90))
    )
    words = Category(tuple(rng.sample(["x", "y", "z", "1", "", "é", "2020-01-01", "true", "'"], rng.randint(1, 5))))
    many = Category(tuple(f"v{i}" for i in range(80)) if rng.random() < 0.5 else tuple(range(-40, 40)))
    numbers = Category(tuple(rng.sample([0, 1, 2, 3, -7, 2**53, 41], rng.randint(1, 5))))
    first = rng.choice(("2020-01-01", "1969-12-30", "0001-01-01"))
    day = Date(first, rng.choice(("2020-12-31", "9999-12-31", "2020-06-02")))
    moment = Timestamp("2020-01-01T00:00:00", rng.choice(("2020-12-31T23:59:59", "2250-01-01T00:00:00.000001")))
    chosen: list[Column] = [real, whole, Bool(), words]
    chosen += rng.sample([numbers, many, day, moment, Text(), Real(-10, 10), Int(0, 3)], rng.randint(1, 5))
    rng.shuffle(chosen)
    return chosen


def _made(rng: random.Random, column: Column, size: int, *, text: bool) -> Made:
    if text:
        return Made(column, pa.string(), _cells(rng, size, lambda: _text(rng, column) or None))
    if isinstance(column, (Int, Real, Bool)) or (isinstance(column, Category) and isinstance(column.values[0], int)):
        return _numbers(rng, column, size)
    if isinstance(column, (Date, Timestamp)):
        return _clock(rng, column, size)
    kind = rng.choice(WORDS)
    if kind in (pa.float64(), pa.int32(), pa.bool_()):
        return Made(column, kind, _cells(rng, size, lambda: _number(rng, Int(0, 2), kind)))
    return Made(column, kind, _cells(rng, size, lambda: _text(rng, column)))


def _cells(rng: random.Random, size: int, draw) -> tuple[object, ...]:
    missing = rng.choice((0.0, 0.1, 0.5))
    cells = [None if rng.random() < missing else draw() for _ in range(size)]
    for i in range(size):  # equal rows are interesting: copy some cells
        if i and rng.random() < 0.2:
            cells[i] = cells[rng.randrange(i)]
    return tuple(cells)


def _numbers(rng: random.Random, column: Column, size: int) -> Made:
    kind = rng.choice(NUMBERS)
    if kind == pa.string():
        return Made(column, kind, _cells(rng, size, lambda: _text(rng, column)))
    return Made(column, kind, _cells(rng, size, lambda: _number(rng, column, kind)))


def _number(rng: random.Random, column: Column, kind: pa.DataType) -> object:
    low, high = (0, 1) if isinstance(column, (Bool, Text)) else (column.low, column.high)
    step = 1 if isinstance(column, (Category, Text)) else column.step
    if isinstance(column, Category):
        low, high = 0, 3
    near = rng.choice((low, high, low - 1, high + 1, rng.randint(low, high), rng.randint(low - 3, high + 3)))
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    if pa.types.is_integer(kind):
        bits = kind.bit_width
        least, most = (
            (0, 2**bits - 1) if pa.types.is_unsigned_integer(kind) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )
        value = int(near * step) if rng.random() < 0.7 else rng.choice((*WHOLES, least, most))
        return min(max(value, least), most)
    if pa.types.is_decimal(kind):
        digits = 10**kind.precision - 1
        units = int(near * step * 10**kind.scale) if rng.random() < 0.7 else rng.randint(-digits, digits)
        return Decimal(f"{min(max(units, -digits), digits)}e-{kind.scale}")
    half = rng.choice((0, 0, 0.5, -0.5, rng.random()))
    value = float(near * step) + half * float(step)
    if rng.random() < 0.3:
        value = rng.choice(
            (
                *EXTREMES,
                math.nextafter(value, math.inf),
                math.nextafter(value, -math.inf),
                rng.gauss(0, 1) * 10 ** rng.randint(-5, 5),
            )
        )
    if kind == pa.float32():
        held = min(max(value, -3e38), 3e38) if math.isfinite(value) else value
        return float(pa.scalar(held, pa.float32()).as_py())
    return value


def _clock(rng: random.Random, column: Column, size: int) -> Made:
    kind = rng.choice(CLOCKS)
    if kind == pa.string():
        return Made(column, kind, _cells(rng, size, lambda: _text(rng, column)))
    scale = 1 if isinstance(column, Timestamp) else DAY
    first, last = column.low * scale, column.high * scale

    def draw() -> int:
        moment = rng.choice(
            (first, last, first - 1, last + 1, last + DAY - 1, last + DAY, rng.randint(first, last), 0, -1)
        )
        if kind == pa.date32():
            return rng.choice((moment // DAY, moment // DAY, 2**31 - 1, -(2**31), 0, -719_163, 2_932_897))
        if kind.unit == "ns":
            moment = min(max(moment * 1000 + rng.choice((0, 1, 999, -1)), -(2**63)), 2**63 - 1)
            return rng.choice(
                (moment, moment, moment, 2**63 - 1, -(2**63) + 1, 9_214_646_400 * 10**9, -9_214_560_000 * 10**9)
            )
        return rng.choice((moment, moment, moment, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1))

    return Made(column, kind, _cells(rng, size, draw))


def _text(rng: random.Random, column: Column) -> str:
    if isinstance(column, Bool):
        return rng.choice(TRUTH_TEXTS)
    if isinstance(column, (Date, Timestamp)):
        return rng.choice(DATE_TEXTS)
    if isinstance(column, Text):
        return rng.choice(ORDINARY_TEXTS)
    if isinstance(column, Category) and rng.random() < 0.6:
        return str(rng.choice(column.values))
    if isinstance(column, Category):
        return rng.choice((*ORDINARY_TEXTS, *NUMBER_TEXTS))
    if rng.random() < 0.5:
        low, high = float(column.low * column.step), float(column.high * column.step)
        return repr(rng.choice((low, high, rng.uniform(low, high), round(rng.uniform(low, high)))))
    return rng.choice(NUMBER_TEXTS)


def _people(rng: random.Random, size: int, *, text: bool) -> Made:
    kind = (
        pa.string()
        if text
        else rng.choice((pa.string(), pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.date32(), *LONG_IDS))
    )
    if kind == pa.string():
        return Made(None, kind, _cells(rng, size, lambda: rng.choice(PERSON_TEXTS) or None))
    draws = {
        pa.int64(): lambda: rng.choice((1, 2, 3, 2**60 + 1, -4)),
        pa.float64(): lambda: rng.choice((1.0, 2.0, math.nan, -0.0, 0.0, math.inf, 2.0**53 - 1, -(2.0**40))),
        LONG_IDS[0]: lambda: Decimal(10**37 + rng.randrange(3)),
        LONG_IDS[1]: lambda: Decimal(f"{rng.choice((0, 10**17))}.{rng.choice(('00', '10', '01'))}"),
        pa.bool_(): lambda: rng.random() < 0.5,
        pa.date32(): lambda: rng.choice((0, 1, 18_262, 2**31 - 1)),
    }
    return Made(None, kind, _cells(rng, size, draws[kind]))
