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

from sulq.errors import QuestionError
from sulq.language import rowfn
from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.kinds import Code, Grid, Scalar
from sulq.language.privacy import Unit
from sulq.language.relation import Table
from sulq.language.rowfn.dates import PARTS, PERIODS
from sulq.language.rowfn.vectors import bounded, scalar_grid
from sulq.language.tally import Block, Key, Tally

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


class Language:
    """Random row functions over a schema; what a question may not say is drawn again."""

    def __init__(self, rng: random.Random, schema: Schema, unit: Unit) -> None:
        self.rng = rng
        self.schema = schema
        self.unit = unit
        self.by_kind: dict[type, list[str]] = {}
        for name, column in schema.columns:
            self.by_kind.setdefault(type(column), []).append(name)

    def _named(self, *kinds: type) -> str | None:
        found = [name for kind in kinds for name in self.by_kind.get(kind, [])]
        return self.rng.choice(found) if found else None

    def constant(self) -> float | int:
        """A number for a question."""
        rng = self.rng
        name = self._named(Int, Real)
        column = self.schema.find(name) if name else None
        if isinstance(column, (Int, Real)) and rng.random() < 0.5:
            units = rng.choice((column.low, column.high, rng.randint(column.low, column.high)))
            value = float(units * column.step)
            return rng.choice((value, math.nextafter(value, math.inf), value + 0.3))
        return rng.choice((0, 1, -1, 2, 0.5, 0.1, 3.25, -2.5, 100, 1e-9, 1e6, 2**40, rng.uniform(-10, 10)))

    def number(self, depth: int) -> rowfn.RowFn:
        """A number."""
        rng = self.rng
        if depth <= 0:
            name = self._named(Int, Real, Int, Real, Bool)
            return rowfn.Lit(self.constant()) if name is None or rng.random() < 0.2 else rowfn.Col(name)
        inner = depth - 1
        if rng.random() < 0.4:
            return self.function(inner)
        choice = rng.randrange(11)
        if choice < 3:
            return rowfn.Arith(rng.choice("+-*/"), self.number(inner), self.number(inner))
        if choice == 3:
            branches = tuple((self.truth(inner), self.number(inner)) for _ in range(rng.randint(1, 2)))
            return rowfn.Case(branches, self.number(inner) if rng.random() < 0.5 else None)
        if choice == 4:
            lo, hi = sorted((self.constant(), self.constant()))
            return rowfn.Clip(self.number(inner), lo, hi)
        if choice == 5:
            return rowfn.Fill(self.number(inner), self.constant())
        if choice == 6:
            return self.truth(inner)
        if choice == 7 and self.unit.positions_are_public:
            return rowfn.Position()
        if choice == 8:
            vector = self.vector(inner)
            width = vector.kind(self.schema).width
            return rowfn.Dot(vector, tuple(self.constant() for _ in range(width)))
        if choice == 9:
            keys = (self.code(inner),)
            size = math.prod(key.kind(self.schema).size for key in keys)
            return rowfn.Lookup(keys, tuple((self.constant(),) for _ in range(size)))
        return self.number(0)

    def function(self, depth: int) -> rowfn.RowFn:
        """A number that is a function of numbers, dates, labels or text; only what IEEE 754 fixes."""
        rng = self.rng
        makers = (
            lambda: rowfn.Maths(rng.choice(("abs", "floor", "ceil", "trunc", "sqrt", "sign")), self.number(depth)),
            lambda: rowfn.Round(self.number(depth), rng.randint(-4, 6)),
            lambda: rowfn.Power(self.number(depth), rng.choice((0, 1, 2, 3, -1, -2, 16, 0.5))),
            lambda: rowfn.Modulo(self.number(depth), self.constant() or 7),
            lambda: rowfn.Least(tuple(self.number(depth) for _ in range(rng.randint(1, 3)))),
            lambda: rowfn.Greatest(tuple(self.number(depth) for _ in range(rng.randint(1, 3)))),
            lambda: rowfn.First(tuple(self.number(depth) for _ in range(rng.randint(1, 3)))),
            lambda: rowfn.NullIf(self.number(depth), self.number(depth)),
            lambda: rowfn.NullIf(self.number(depth), rowfn.Lit(self.constant())),
            lambda: rowfn.DatePart(rng.choice(PARTS), self.date(depth + 1)),
            lambda: self.date(depth) - rowfn.ToDate(self.date(depth)),
            lambda: rowfn.Value(self.code(depth)),
            lambda: rowfn.Length(self.words(depth + 1)),
            lambda: rowfn.IndexOf(self.words(depth + 1), rng.choice(("", "x", "é", "\u0301", "本"))),
        )
        return rng.choice(makers)()

    def date(self, depth: int) -> rowfn.RowFn:
        """A date or moment."""
        rng = self.rng
        name = self._named(Date, Timestamp)
        if depth <= 0 or rng.random() < 0.3:
            if name is not None and rng.random() < 0.7:
                return rowfn.Col(name)
            return rng.choice(
                (
                    rowfn.Moment("2024-02-29"),
                    rowfn.Moment("0001-01-01"),
                    rowfn.Moment("2020-01-01T12:00:00.5", "timestamp"),
                )
            )
        inner = self.date(depth - 1)
        makers = (
            lambda: rowfn.DateTrunc(rng.choice(PERIODS), inner),
            lambda: rowfn.DateTrunc(rng.choice(PERIODS), inner),
            lambda: rowfn.ToTimestamp(rowfn.ToDate(inner)),
            lambda: rowfn.ToTimestamp(inner),
            lambda: inner + rng.choice((1, -40, 10**7)),
            lambda: rowfn.Least((rowfn.ToDate(inner), rowfn.ToDate(self.date(0)))),
        )
        return rng.choice(makers)()

    def words(self, depth: int) -> rowfn.RowFn:
        """A text."""
        rng = self.rng
        name = self._named(Text)
        if depth <= 0 or rng.random() < 0.2:
            return rowfn.Lit(rng.choice(ORDINARY_TEXTS)) if name is None or rng.random() < 0.1 else rowfn.Col(name)
        inner = self.words(depth - 1)
        makers = (
            lambda: rowfn.Lowered(inner),
            lambda: rowfn.Uppered(inner),
            lambda: rowfn.Trimmed(inner, rng.choice(("both", "left", "right")), rng.choice((" ", "x", "é日"))),
            lambda: rowfn.Substring(inner, rng.randint(-1, 3), rng.choice((None, 0, 1, 2))),
            lambda: rowfn.Concat((inner, self.words(0))),
            lambda: rowfn.First((inner, self.words(0))),
            lambda: rowfn.NullIf(inner, self.words(0)),
        )
        return rng.choice(makers)()

    def truth(self, depth: int) -> rowfn.RowFn:
        """A condition."""
        rng = self.rng
        if depth <= 0:
            name = self._named(Bool)
            return rowfn.Lit(rng.random() < 0.5) if name is None or rng.random() < 0.2 else rowfn.Col(name)
        inner = depth - 1
        choice = rng.randrange(12)
        if choice == 9:
            pair = (self.truth(inner), self.truth(inner))
            return rng.choice((rowfn.First(pair), rowfn.NullIf(*pair)))
        if choice >= 10:
            return self.wording(inner)
        if choice < 3:
            return self._compare(inner)
        if choice == 3:
            return rowfn.Logic(rng.choice(("and", "or")), tuple(self.truth(inner) for _ in range(rng.randint(1, 3))))
        if choice == 4:
            return rowfn.Not(self.truth(inner))
        if choice == 5:
            return rowfn.IsMissing(self.anything(inner))
        if choice == 6:
            return rowfn.Fill(self.truth(inner), rng.choice((True, False)))
        if choice == 7:
            return self._is_in(inner)
        return self.truth(0)

    def wording(self, depth: int) -> rowfn.RowFn:
        """A condition on text."""
        rng = self.rng
        pattern = "".join(rng.choice(("%", "_", "x", "é", "\\_", "日", "1")) for _ in range(rng.randint(0, 4)))
        makers = (
            lambda: rowfn.StartsWith(self.words(depth + 1), rng.choice(("", "x", "e", "日", "'"))),
            lambda: rowfn.Like(self.words(depth + 1), pattern),
            lambda: rowfn.Compare(rng.choice(("==", "!=")), self.words(depth + 1), self.words(depth)),
            lambda: rowfn.IsIn(self.words(depth + 1), tuple(rng.sample(ORDINARY_TEXTS, 4))),
        )
        return rng.choice(makers)()

    def _compare(self, depth: int) -> rowfn.RowFn:
        rng = self.rng
        order = rng.choice(("==", "!=", "<", "<=", ">", ">="))
        equal = rng.choice(("==", "!="))
        choice = rng.randrange(7)
        if choice == 0 and (name := self._named(Category)) is not None:
            return rowfn.Compare(equal, rowfn.Col(name), rowfn.Lit(rng.choice(self.schema.find(name).values)))
        if choice == 1 and (name := self._named(Text)) is not None:
            other = rowfn.Col(name) if rng.random() < 0.2 else rowfn.Lit(rng.choice(ORDINARY_TEXTS))
            return rowfn.Compare(equal, *rng.sample((rowfn.Col(name), other), 2))
        if choice == 2 and (name := self._named(Date, Timestamp)) is not None:
            column = self.schema.find(name)
            edge = rng.choice((column.lo, column.hi))
            return rowfn.Compare(order, *rng.sample((rowfn.Col(name), rowfn.Lit(edge)), 2))
        if choice == 3:
            return rowfn.Compare(equal, self.truth(depth), rowfn.Lit(rng.choice((True, False))))
        if choice == 4:
            return rowfn.Compare(order, self.number(depth), self.number(depth))
        name = self._named(Int, Real)
        item = rowfn.Col(name) if name is not None and rng.random() < 0.7 else self.number(depth)
        return rowfn.Compare(order, *rng.sample((item, rowfn.Lit(self.constant())), 2))

    def _is_in(self, depth: int) -> rowfn.RowFn:
        rng = self.rng
        choice = rng.randrange(4)
        if choice == 0 and (name := self._named(Category)) is not None:
            values = self.schema.find(name).values
            return rowfn.IsIn(rowfn.Col(name), tuple(rng.sample(values, rng.randint(0, len(values)))))
        if choice == 1 and (name := self._named(Text)) is not None:
            return rowfn.IsIn(rowfn.Col(name), tuple(rng.sample(ORDINARY_TEXTS, rng.randint(0, 4))))
        if choice == 2:
            return rowfn.IsIn(self.truth(depth), (rng.choice((True, False)),))
        name = self._named(Int, Real)
        item = rowfn.Col(name) if name is not None and rng.random() < 0.6 else self.number(depth)
        many = rng.choice((0, 1, 3, 40))
        return rowfn.IsIn(item, tuple(self.constant() for _ in range(many)))

    def code(self, depth: int) -> rowfn.RowFn:
        """A key."""
        rng = self.rng
        for _ in range(20):
            fn = self._code(depth)
            try:
                kind = fn.kind(self.schema)
            except QuestionError:
                continue
            if isinstance(kind, Code) and kind.size <= 64:
                return fn
        return rowfn.Each(rowfn.Lit(rng.random() < 0.5))

    def _code(self, depth: int) -> rowfn.RowFn:
        rng = self.rng
        choice = rng.randrange(12 if depth > 0 else 8)
        if choice == 7:
            branches = tuple((self.truth(depth), rng.choice((0, 1, 2, None))) for _ in range(rng.randint(1, 3)))
            return rowfn.Choice(branches, rng.choice((("a", "b", "c"), (3, -1, 0.5))), rng.choice((0, 2, None)))
        if choice == 8:
            return rowfn.OrMissing(self.code(depth - 1))
        if choice == 9:
            inner = self.code(depth - 1)
            return rowfn.Relabel(inner, tuple(rng.choice((1, 2, 3.5, None)) for _ in inner.kind(self.schema).labels))
        if choice == 10:
            inner = self.code(depth - 1)
            return rng.choice(
                (rowfn.First((inner, inner)), rowfn.NullIf(inner, inner), rowfn.OrMissing(rowfn.NullIf(inner, inner)))
            )
        if choice == 11:
            return self._route([self.code(depth - 1) for _ in range(rng.randint(1, 3))])
        if choice == 0 and (name := self._named(Category)) is not None:
            return rng.choice((rowfn.Col(name), rowfn.Each(rowfn.Col(name))))
        if choice == 1:
            return rowfn.Each(self.truth(depth))
        if choice == 2 and (name := self._named(Int, Date)) is not None:
            return rowfn.Each(rowfn.Col(name))
        if choice == 3:
            return rowfn.Each(rowfn.Clip(self.number(0), 0, 5))
        if choice == 4 and (self.unit.column is not None or self.unit.positions_are_public):
            return rowfn.Bucket(rng.choice((1, 2, 7, 50)), rng.choice((0, 1, -9)))
        if choice == 5 and depth > 0:
            vector = self.vector(0)
            width = vector.kind(self.schema).width
            centres = tuple(tuple(self.constant() for _ in range(width)) for _ in range(rng.randint(1, 4)))
            return rowfn.Nearest(vector, centres)
        return self._bins(depth)

    def _route(self, keys: list[rowfn.RowFn]) -> rowfn.RowFn:
        """A random tree over some keys: each child a later node, a new or a known leaf, or nowhere."""
        rng = self.rng
        count = rng.randint(0, 6)
        nodes: list[tuple[int | None, ...]] = []
        leaves = 0
        for place in range(count):
            key = rng.randrange(len(keys))
            children: list[int | None] = []
            for _ in range(keys[key].kind(self.schema).size):
                options: list[int | None] = [-1 - leaves, None, *([rng.randint(-leaves, -1)] if leaves else [])]
                options += [rng.randint(place + 1, count - 1)] * 3 if place + 1 < count else []
                children.append(rng.choice(options))
                leaves = max(leaves, -(children[-1] or 0))
            nodes.append((key, *children))
        return rowfn.Route(tuple(keys), tuple(nodes))

    def _bins(self, depth: int) -> rowfn.RowFn:
        rng = self.rng
        name = self._named(Date, Timestamp)
        if name is not None and rng.random() < 0.3:
            column = self.schema.find(name)
            edges: list[object] = sorted({column.lo, column.hi})
            return rowfn.Bins(rowfn.Col(name), tuple(edges))
        name = self._named(Int, Real)
        item = rowfn.Col(name) if name is not None and rng.random() < 0.7 else self.number(depth)
        column = self.schema.find(name) if name is not None else None
        if column is not None and rng.random() < 0.4:  # evenly spaced over the declared range
            low, high, n = float(column.low * column.step), float(column.high * column.step), rng.randint(1, 20)
            return rowfn.Bins(item, tuple(low + (high - low) * i / n for i in range(n + 1)))
        return rowfn.Bins(item, tuple(sorted({float(self.constant()) for _ in range(rng.randint(2, 12))})))

    def vector(self, depth: int) -> rowfn.RowFn:
        """A vector of integers on a grid."""
        rng = self.rng
        for _ in range(20):
            items = tuple(self.number(rng.choice((0, 0, 0, depth))) for _ in range(rng.randint(1, 4)))
            fn: rowfn.RowFn = rowfn.Vector(items, rng.choice((1, 4, 11, 11, 15)))
            if rng.random() < 0.3:
                fn = rowfn.WithinBall(fn, rng.choice((0.5, 1, 10, 1000, 2**30)))
            try:
                if isinstance(fn.kind(self.schema), Grid):
                    return fn
            except QuestionError:
                continue
        return rowfn.Vector((rowfn.Lit(1),))

    def block(self, depth: int) -> rowfn.RowFn:
        """A vector that may be asked for as a value."""
        rng = self.rng
        choice = rng.randrange(6)
        if choice == 0:
            return rowfn.Outer(self.vector(depth - 1))
        if choice == 5:
            return rowfn.Scaled(self.vector(depth - 1), self.number(depth - 1), rng.choice((1, 4, 11, 11, 15)))
        if choice == 1:
            fn = rowfn.Bernstein(self.number(depth - 1), rng.choice((1, 2)))
            _, low, high = fn.span(self.schema)
            return fn if max(abs(low), abs(high)) < 2**52 else self.vector(depth - 1)
        if choice == 2:
            keys = tuple(self.code(0) for _ in range(rng.randint(1, 2)))
            size, width = math.prod(key.kind(self.schema).size for key in keys), rng.randint(2, 4)
            return rowfn.Lookup(keys, tuple(tuple(self.constant() for _ in range(width)) for _ in range(size)))
        return self.vector(depth - 1)

    def anything(self, depth: int) -> rowfn.RowFn:
        """A row function of any kind."""
        rng = self.rng
        return rng.choice((self.words, self.date, self.number, self.truth, self.code, self.vector))(depth)


def block(fn: rowfn.RowFn, schema: Schema) -> Block:
    """A value as a block, on the grid the plan would choose."""
    kind = fn.kind(schema)
    if isinstance(kind, Grid):
        return Block(fn, kind.step, kind.low, kind.high, vector=True)
    lo, hi, number = bounded(fn, schema)
    step, low, high = scalar_grid(lo, hi, number.step)
    return Block(fn, step, (low,), (high,), vector=False)


def question(values, schema: Schema, *, where: rowfn.RowFn | None = None, by=()) -> Tally:
    """A tally of row functions, as the plan would make it."""
    keys = []
    for fn in by:
        kind = fn.kind(schema)
        assert isinstance(kind, Code)
        keys.append(Key(fn, kind.labels))
    blocks = tuple(block(fn, schema) for fn in values)
    return Tally(Table(), blocks, where, tuple(keys), math.prod(len(key.labels) for key in keys))


def tally(rng: random.Random, schema: Schema, unit: Unit) -> Tally:
    """A random tally that a plan could have made."""
    language = Language(rng, schema, unit)
    while True:
        try:
            values = []
            for _ in range(rng.randint(1, 3)):
                depth = rng.randint(0, 4)
                fn = language.block(max(depth, 1)) if rng.random() < 0.4 else language.number(depth)
                fn = language.function(2) if rng.random() < 0.25 else fn
                kind = fn.kind(schema)
                if isinstance(kind, Scalar) and not kind.bounded:
                    fn = rowfn.Clip(fn, -10, 1000)
                values.append(fn)
            where = language.truth(rng.randint(0, 3)) if rng.random() < 0.5 else None
            where = language.wording(1) if rng.random() < 0.2 else where
            by = [language.code(1) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
            made = question(values, schema, where=where, by=by)
            if where is not None:
                where.kind(schema)
        except QuestionError:
            continue
        if made.cells <= 600 and made.cells * made.width <= 4000:
            return made


def walk(made: Tally) -> list[rowfn.RowFn]:
    """Every row function of a tally."""
    front = [b.fn for b in made.blocks] + [key.fn for key in made.by] + ([] if made.where is None else [made.where])
    found = []
    while front:
        fn = front.pop()
        found.append(fn)
        front.extend(fn.parts())
    return found
