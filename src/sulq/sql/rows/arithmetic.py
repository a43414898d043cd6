"""Arithmetic, dates and CAST over rows and constants, each operation total: what has no value is missing."""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.language import rowfn
from sulq.language.domain import Schema
from sulq.language.kinds import Code, Truth
from sulq.language.rowfn import DatePart, DateTrunc, Each, Maths, Power, Relabel, RowFn, Value
from sulq.sql.parse.syntax import NUMERIC, Constant, Interval, SqlRefused, moved, unsupported
from sulq.sql.rows.text_functions import TextFunctions
from sulq.sql.rows.values import (
    Cell,
    Fixed,
    as_number,
    cell,
    constant_fn,
    few_whole_numbers,
    fitted,
    number_type,
    on_clock,
    read_as,
    read_bool,
    read_number,
)

CLOCKS: Final = ("date", "timestamp")
Operand = Cell | Fixed
YEARS: Final = {"decade": ("floor", 10), "century": ("ceil", 100), "millennium": ("ceil", 1000)}
MICRO: Final = 86_400_000_000
MAX_LABELS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Builds the row functions of arithmetic over one relation's columns."""

    schema: Schema

    def cell(self, fn: RowFn, to: str, at: int) -> Cell:
        """A row function of a SQL type."""
        return cell(fn, to, self.schema, at)

    def number(self, item: Operand, at: int) -> Cell:
        """An operand as a number of a row."""
        if isinstance(item, Fixed):
            return self.cell(constant_fn(fitted(item, "float", at), at), item.type, at)
        return as_number(item, self.schema, at)

    def clock(self, item: Operand, to: str, at: int) -> Cell:
        """An operand as a date or timestamp of a row."""
        if isinstance(item, Fixed):
            return self.cell(constant_fn(Fixed(fitted(item, to, at).value, to), at), to, at)
        if item.type not in CLOCKS:
            raise SqlRefused("wrong-kind", "A date or timestamp is needed here", at)
        if item.type == to:
            return item
        return self.cell(rowfn.ToTimestamp(item.fn) if to == "timestamp" else rowfn.ToDate(item.fn), to, at)

    def binary(self, op: str, left: Operand, right: Operand, at: int) -> Operand:
        """One of + - * / of two operands."""
        left, right = beside(left, right, op, at), beside(right, left, op, at)
        if isinstance(left, Fixed) and isinstance(right, Fixed):
            return folded(op, left, right, at)
        if {left.type, right.type} & {*CLOCKS, "interval"}:
            return self._dates(op, left, right, at)
        a, b = self.number(left, at), self.number(right, at)
        if op == "/" and a.type == b.type == "int":
            return self.cell(Maths("trunc", a.fn / b.fn), "int", at)
        return Cell(rowfn.Arith(op, a.fn, b.fn), number_type(a.type, b.type), self.schema, at, number=True)

    def _dates(self, op: str, left: Operand, right: Operand, at: int) -> Operand:
        if op == "+" and left.type not in CLOCKS:
            left, right = right, left
        if isinstance(right, Fixed) and isinstance(right.value, Interval) and op in ("+", "-"):
            return self._moved(left, right.value if op == "+" else -right.value, at)
        if left.type in CLOCKS and right.type in CLOCKS and op == "-":
            if left.type == right.type == "date":
                return self.cell(self.clock(left, "date", at).fn - self.clock(right, "date", at).fn, "int", at)
            unsupported("The difference of two timestamps", at, "Subtract dates, or compare the timestamps.")
        if left.type == "date" and right.type == "int" and op in ("+", "-"):
            day, count = self.clock(left, "date", at), self.number(right, at)
            return self.cell(rowfn.Arith(op, day.fn, count.fn), "date", at)
        raise SqlRefused("wrong-kind", f"{left.type} {op} {right.type} has no meaning", at)

    def _moved(self, item: Operand, by: Interval, at: int) -> Operand:
        """A date or timestamp of a row, an interval later; months have no fixed length and are refused."""
        if by.months:
            unsupported("A column plus months or years", at, "Move the constant instead: d < DATE '...' - INTERVAL ...")
        stamp = self.clock(item, "timestamp", at)
        if by.microseconds == 0 and item.type == "date":
            return self.cell(rowfn.ToTimestamp(self.clock(item, "date", at).fn + by.days), "timestamp", at)
        return self.cell(stamp.fn + (by.days * MICRO + by.microseconds), "timestamp", at)

    def neg(self, args: list[Operand], at: int) -> Operand:
        """The opposite number."""
        (item,) = args
        if isinstance(item, Fixed):
            value = fitted(item, "float", at).value if isinstance(item.value, str) else item.value
            if value is None or (isinstance(value, (int, float, Fraction, Interval)) and not isinstance(value, bool)):
                return Fixed(None if value is None else -value, item.type)
            raise SqlRefused("wrong-kind", "A number is needed here", at)
        inner = self.number(item, at)
        return self.cell(-inner.fn, inner.type, at)

    def mod(self, args: list[Operand], at: int) -> Operand:
        """The remainder, of the left number's sign."""
        left, right = args
        a = self.number(left, at)
        if isinstance(right, Fixed) and right.type in NUMERIC and right.value:
            return self.cell(a.fn % figure(right, at), number_type(a.type, right.type), at)
        b = self.number(right, at)
        return self.cell(a.fn - Maths("trunc", a.fn / b.fn) * b.fn, number_type(a.type, b.type), at)

    def div(self, args: list[Operand], at: int) -> Operand:
        """The quotient cut to a whole number."""
        a, b = (self.number(arg, at) for arg in args)
        return self.cell(Maths("trunc", a.fn / b.fn), number_type(a.type, b.type), at)

    def power(self, args: list[Operand], at: int) -> Operand:
        """A constant power, or a power of a constant."""
        base, exponent = args
        if isinstance(exponent, Fixed):
            return self.cell(Power(self.number(base, at).fn, figure(exponent, at)), "float", at)
        if isinstance(base, Fixed) and figure(base, at) > 0:
            return self.cell(Maths("exp", self.number(exponent, at).fn * math.log(figure(base, at))), "float", at)
        return unsupported("A power with neither side constant", at, "Make the base or the exponent a number.")

    def log(self, args: list[Operand], at: int) -> Operand:
        """The logarithm to base 10, or to a constant base."""
        base = 10.0 if len(args) == 1 else figure(args[0], at)
        if base <= 0 or base == 1:
            raise SqlRefused("bad-literal", "This base has no logarithm", at)
        return self.cell(Maths("ln", self.number(args[-1], at).fn) / math.log(base), "float", at)

    def rounded(self, args: list[Operand], at: int, *, cut: bool = False) -> Operand:
        """Round and cut to a constant number of digits; of a whole number too this is no whole number to PostgreSQL."""
        fn = self.number(args[0], at).fn
        digits = figure(args[1], at) if len(args) > 1 else 0
        if digits != int(digits):
            raise SqlRefused("bad-literal", "A number of digits is whole", at)
        if not cut:
            return self.cell(rowfn.Round(fn, int(digits)), "float", at)
        scale = 10.0 ** min(int(digits), 300)
        return self.cell(Maths("trunc", fn * scale) / scale if digits else Maths("trunc", fn), "float", at)

    def extreme(self, args: list[Operand], at: int, which: type[rowfn.Least | rowfn.Greatest]) -> Operand:
        """The least or greatest: whatever is missing left aside."""
        if any(arg.type in CLOCKS for arg in args):
            to = "timestamp" if any(arg.type == "timestamp" for arg in args) else "date"
            return self.cell(which(tuple(self.clock(arg, to, at).fn for arg in args)), to, at)
        numbers = [self.number(arg, at) for arg in args if not (isinstance(arg, Fixed) and arg.value is None)]
        if not numbers:
            return Fixed(None, "null")
        found = "int" if all(item.type == "int" for item in numbers) else "float"
        return self.cell(which(tuple(item.fn for item in numbers)), found, at)

    def width_bucket(self, args: list[Operand], at: int) -> Operand:
        """Which of equal bins a number falls into: 0 below the first, one more than the last above it."""
        if len(args) != 4:
            unsupported("width_bucket without two ends and a number", at, "Write width_bucket(x, low, high, bins).")
        low, high, count = (figure(arg, at) for arg in args[1:])
        if count != int(count) or not 1 <= count <= 2**20 or low == high:
            raise SqlRefused("bad-literal", "width_bucket takes two different ends and a whole number of bins", at)
        share = (self.number(args[0], at).fn - low) * int(count) / (high - low)
        return self.cell((Maths("floor", share) + 1).clip(0, int(count) + 1), "int", at)

    def period(self, args: list[Operand], at: int) -> tuple[str, Cell]:
        """A part of time, and the date or timestamp it is asked of."""
        part, item = args
        clock = item.type if item.type in CLOCKS else "timestamp"
        return str(part.value) if isinstance(part, Fixed) else "", self.clock(item, clock, at)

    def extract(self, args: list[Operand], at: int) -> Operand:
        """A part of a date or timestamp: to PostgreSQL no whole number, so that a quotient of it is not cut off."""
        part, item = self.period(args, at)
        if part in YEARS:
            way, years = YEARS[part]
            return self.cell(Maths(way, DatePart("year", item.fn) / years), "float", at)
        return self.cell(DatePart(part, item.fn), "float", at)

    def date_trunc(self, args: list[Operand], at: int) -> Operand:
        """The beginning of a period; of a date it stays a date."""
        part, item = self.period(args, at)
        return self.cell(DateTrunc(part, item.fn), item.type, at)

    def clip(self, args: list[Operand], at: int) -> Operand:
        """A number within two constants."""
        item, low, high = self.number(args[0], at), figure(args[1], at), figure(args[2], at)
        return self.cell(item.fn.clip(low, high), item.type, at)

    def cast(self, item: Cell, to: str, wide: int | None, at: int) -> Operand:
        """A row's value of another type."""
        if to == "text":
            found = self._as_text(item, at)
            return found if wide is None else TextFunctions(self.schema).call("left", [found, Fixed(wide, "int")], at)
        if to in CLOCKS:
            return self.clock(item, to, at)
        if item.type == "text":
            return self._from_text(item, to, at)
        if to == "bool":
            return item if item.type == "bool" else self.cell(as_number(item, self.schema, at).fn != 0, "bool", at)
        if item.type in CLOCKS:
            raise SqlRefused("wrong-kind", "A date is no number", at, "Take a part of it: EXTRACT(YEAR FROM d).")
        number = as_number(Cell(item.fn, to, self.schema, at, item.number), self.schema, at)
        if to == "int" and item.type == "float":
            return self.cell(_nearest(number.fn), "int", at)
        return number if wide is None else self.cell(rowfn.Round(number.fn, wide), to, at)

    def _as_text(self, item: Cell, at: int) -> Cell:
        """A value as text: only where its labels are public."""
        kind = item.kind
        if item.type == "text":
            return item
        if isinstance(kind, Code):
            names = tuple(None if label is None else str(label) for label in kind.labels)
            return self.cell(Relabel(item.fn, names), "text", at)
        if isinstance(kind, Truth):
            return self.cell(Relabel(Each(item.fn), ("false", "true")), "text", at)
        if item.type in NUMERIC and few_whole_numbers(kind, MAX_LABELS):
            key = self.cell(Each(item.fn), "int", at)
            if isinstance(key.kind, Code):
                return self.cell(Relabel(key.fn, tuple(map(str, key.kind.labels))), "text", at)
        return unsupported("A row's number or date as text", at, "Cast in the SELECT list, after grouping.")

    def _from_text(self, item: Cell, to: str, at: int) -> Operand:
        """Text read as a number or truth value: only where its labels are public."""
        if not isinstance(item.kind, Code):
            return unsupported("Free text as a number", at, "Declare the column as a number.")
        if to == "bool":
            truths = {label: read_bool(str(label)) for label in item.kind.labels}
            if all(truth is None for truth in truths.values()):
                return Fixed(None, "bool")
            names = tuple(None if truths[label] is None else label for label in item.kind.labels)
            true = tuple(label for label in item.kind.labels if truths[label])
            return self.cell(rowfn.IsIn(Relabel(item.fn, names), true), "bool", at)  # type: ignore[arg-type]
        found = [read_number(str(label)) for label in item.kind.labels]
        if to == "int":
            found = [None if value is None else int(rounded(Fraction(value))) for value in found]
        if all(value is None for value in found):
            return Fixed(None, to)
        figures = tuple(float(value) if isinstance(value, Fraction) else value for value in found)
        return self.cell(Value(Relabel(item.fn, figures)), to, at)


def _of_number(act: Callable[[RowFn], RowFn], to: str = "float") -> Callable[[Arithmetic, list[Operand], int], Operand]:
    """A function of one number, of the number's own type where none is named."""

    def of_number(self: Arithmetic, args: list[Operand], at: int) -> Operand:
        item = self.number(args[0], at)
        return self.cell(act(item.fn), to or item.type, at)

    return of_number


CALLS: Final[dict[str, Callable[[Arithmetic, list[Operand], int], Operand]]] = {
    "neg": Arithmetic.neg,
    "mod": Arithmetic.mod,
    "div": Arithmetic.div,
    "power": Arithmetic.power,
    "log": Arithmetic.log,
    "round": Arithmetic.rounded,
    "trunc": lambda self, args, at: self.rounded(args, at, cut=True),
    "least": lambda self, args, at: self.extreme(args, at, rowfn.Least),
    "greatest": lambda self, args, at: self.extreme(args, at, rowfn.Greatest),
    "width_bucket": Arithmetic.width_bucket,
    "extract": Arithmetic.extract,
    "date_trunc": Arithmetic.date_trunc,
    "clip": Arithmetic.clip,
    "pi": lambda _self, _args, _at: Fixed(math.pi, "float"),
    "abs": _of_number(abs, ""),  # of a whole number whole, as no other function of one is to PostgreSQL
    **{op: _of_number(functools.partial(Maths, op)) for op in ("floor", "ceil", "sqrt", "ln", "exp", "sign")},
    "cbrt": _of_number(lambda fn: Maths("sign", fn) * Power(abs(fn), 1 / 3)),
    "degrees": _of_number(lambda fn: fn * (180 / math.pi)),
    "radians": _of_number(lambda fn: fn * (math.pi / 180)),
}


def figure(item: Operand, at: int) -> int | float:
    """A constant number."""
    if isinstance(item, Fixed):
        value = fitted(item, "float", at).value
        if isinstance(value, (int, float, Fraction)) and not isinstance(value, bool):
            return float(value) if isinstance(value, Fraction) else value
    raise SqlRefused("sql-unsupported", "Only a constant number is answered here", at, "Write the number itself.")


def beside(item: Operand, other: Operand, op: str, at: int) -> Operand:
    """A text literal beside a typed value is read as that type."""
    if isinstance(item, Fixed) and isinstance(item.value, str):
        to = other.type if other.type not in ("text", "null", "bool") else "float"
        if to in CLOCKS and op == "-":
            return fitted(item, to, at)
        return fitted(item, "int" if to in CLOCKS else "float" if to == "interval" else to, at)
    return item


def folded(op: str, left: Fixed, right: Fixed, at: int) -> Fixed:
    """Arithmetic of two constants."""
    a, b = left.value, right.value
    if a is None or b is None:
        return Fixed(None, "null")
    if op == "+" and isinstance(a, Interval):
        a, b = b, a
    if isinstance(a, datetime.date):
        return _dated(op, a, b, at)
    if any(isinstance(x, bool) or not isinstance(x, (int, float, Fraction)) for x in (a, b)):
        raise SqlRefused("wrong-kind", f"{left.type} {op} {right.type} has no meaning", at)
    return Fixed(*_figured(op, a, b, whole=left.type == right.type == "int"))  # type: ignore[arg-type]


def _figured(op: str, a: float | Fraction, b: float | Fraction, *, whole: bool) -> tuple[Constant, str]:
    x, y = Fraction(a), Fraction(b)
    if op == "/":
        if y == 0:
            return None, "float"
        return (math.trunc(x / y), "int") if whole else (x / y, "float")
    found = x + y if op == "+" else x - y if op == "-" else x * y
    return (int(found), "int") if whole else (found, "float")


def _dated(op: str, a: datetime.date, b: Constant, at: int) -> Fixed:
    """A constant date and what is added to or taken from it."""
    stamp = isinstance(a, datetime.datetime)
    if isinstance(b, Interval) and op in ("+", "-"):
        found = moved(a, b if op == "+" else -b)
        if found is None:
            raise SqlRefused("bad-literal", "This date is out of range", at)
        plain = not stamp and b.microseconds == 0
        return Fixed(found.date(), "date") if plain else Fixed(found, "timestamp")
    if isinstance(b, int) and not isinstance(b, bool) and op in ("+", "-") and not stamp:
        try:
            return Fixed(a + datetime.timedelta(days=b if op == "+" else -b), "date")
        except OverflowError:
            raise SqlRefused("bad-literal", "This date is out of range", at) from None
    if isinstance(b, datetime.date) and op == "-" and not stamp and not isinstance(b, datetime.datetime):
        return Fixed((a - b).days, "int")
    raise SqlRefused("wrong-kind", f"These constants have no {op}", at)


def rounded(value: Fraction, digits: int = 0) -> Fraction:
    """Half away from zero, as PostgreSQL rounds."""
    scaled = abs(value) * 10**digits
    whole = int(scaled) + (scaled - int(scaled) >= Fraction(1, 2))
    return Fraction(whole if value >= 0 else -whole, 10**digits)


def cast_constant(item: Fixed, to: str, wide: int | None, at: int) -> Fixed:
    """A constant of another type."""
    value = item.value
    if value is None:
        return Fixed(None, to)
    if to == "text":
        shown = _written(value, at)
        return Fixed(shown if wide is None else shown[:wide], "text")
    found: Constant = None
    value = read_as(value, to) if isinstance(value, str) else value
    if to in NUMERIC and isinstance(value, (int, float, Fraction)):
        exact = Fraction(value)
        found = int(rounded(exact)) if to == "int" else exact if wide is None else rounded(exact, wide)
    elif to in CLOCKS and isinstance(value, datetime.date):
        found = on_clock(value, to)
    elif to == "bool" and isinstance(value, int):
        found = value != 0
    if found is None:
        raise SqlRefused("bad-literal", f"This constant cannot be read as {to}", at)
    return Fixed(found, to)


def _written(value: Constant, at: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, (str, int, datetime.date)):
        return str(value)
    if isinstance(value, Fraction):
        return str(float(value))
    return unsupported("This constant as text", at, "Write the text itself in single quotes.")


def _nearest(fn: RowFn) -> RowFn:
    """The nearest whole number, halves to the even one: how PostgreSQL and DuckDB cast a double."""
    half = abs(fn - Maths("trunc", fn)) == 0.5
    return rowfn.Case(((half, rowfn.Round(fn / 2, 0) * 2),), rowfn.Round(fn, 0))
