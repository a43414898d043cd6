"""CAST over rows in its total form: what cannot be read as the other type is missing."""

from __future__ import annotations

import datetime
from fractions import Fraction

from sulq.language.kinds import Code, Scalar, Truth
from sulq.language.rowfn import Arith, Case, Compare, Each, IsIn, Lit, Maths, Relabel, Round, RowFn, Value
from sulq.sql.parse.refusal import SqlRefused, unsupported
from sulq.sql.parse.syntax import NUMERIC, Constant
from sulq.sql.rows.arithmetic import CLOCKS, Arithmetic
from sulq.sql.rows.text_functions import TextFunctions
from sulq.sql.rows.values import Cell, Fixed, as_number, cell, read_bool, read_moment, read_number

MAX_LABELS = 10_000
Operand = Cell | Fixed


def rounded(value: Fraction, digits: int = 0) -> Fraction:
    """Half away from zero, as PostgreSQL rounds."""
    scaled = abs(value) * 10**digits
    whole = int(scaled) + (scaled - int(scaled) >= Fraction(1, 2))
    return Fraction(whole if value >= 0 else -whole, 10**digits)


def constant(item: Fixed, to: str, wide: int | None, at: int) -> Fixed:
    """A constant of another type."""
    value = item.value
    found: Constant = None
    if value is None:
        return Fixed(None, to)
    if to == "text":
        shown = _written(value, at)
        return Fixed(shown if wide is None else shown[:wide], "text")
    if to in NUMERIC and not isinstance(value, datetime.date):
        number = read_number(value) if isinstance(value, str) else value
        if isinstance(number, (bool, int, float, Fraction)):
            exact = Fraction(number)
            found = int(rounded(exact)) if to == "int" else exact if wide is None else rounded(exact, wide)
    elif to in CLOCKS:
        if isinstance(value, str):
            found = read_moment(value, to)
        elif isinstance(value, datetime.datetime):
            found = value.date() if to == "date" else value
        elif isinstance(value, datetime.date):
            found = value if to == "date" else datetime.datetime.combine(value, datetime.time())
    elif to == "bool":
        found = read_bool(value) if isinstance(value, str) else value != 0 if isinstance(value, int) else None
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
    return unsupported("This constant as text", at)


def row(item: Cell, to: str, wide: int | None, arithmetic: Arithmetic, at: int) -> Operand:
    """A row's value of another type."""
    schema = arithmetic.schema
    if to == "text":
        found = _as_text(item, arithmetic, at)
        return found if wide is None else TextFunctions(schema).call("left", [found, Fixed(wide, "int")], at)
    if to in CLOCKS:
        return arithmetic.clock(item, to, at)
    if item.type == "text":
        return _from_text(item, to, arithmetic, at)
    if to == "bool":
        if item.type == "bool":
            return item
        return cell(Compare("!=", as_number(item, schema, at).fn, Lit(0)), "bool", schema, at)
    if item.type in CLOCKS:
        raise SqlRefused("wrong-kind", "A date is no number", at, "Take a part of it: EXTRACT(YEAR FROM d).")
    number = as_number(Cell(item.fn, to, schema, at, item.number), schema, at)
    if to == "int" and item.type == "float":
        return cell(_nearest(number.fn), "int", schema, at)
    return number if wide is None else cell(Round(number.fn, wide), to, schema, at)


def _nearest(fn: RowFn) -> RowFn:
    """The nearest whole number, halves to the even one: how PostgreSQL and DuckDB cast a double."""
    half = Compare("==", Maths("abs", Arith("-", fn, Maths("trunc", fn))), Lit(0.5))
    return Case(((half, Arith("*", Round(Arith("/", fn, Lit(2)), 0), Lit(2))),), Round(fn, 0))


def _as_text(item: Cell, arithmetic: Arithmetic, at: int) -> Cell:
    """A value as text: only where its labels are public."""
    schema = arithmetic.schema
    if item.type == "text":
        return item
    if isinstance(item.kind, Code):
        names = tuple(None if label is None else str(label) for label in item.kind.labels)
        return cell(Relabel(item.fn, names), "text", schema, at)
    if isinstance(item.kind, Truth):
        return cell(Relabel(Each(item.fn), ("false", "true")), "text", schema, at)
    kind = item.kind
    few = isinstance(kind, Scalar) and kind.lo is not None and kind.hi is not None and kind.hi - kind.lo < MAX_LABELS
    if item.type in NUMERIC and few and kind.step is not None and kind.step.denominator == 1:  # type: ignore[union-attr]
        key = cell(Each(item.fn), "int", schema, at)
        if isinstance(key.kind, Code):
            return cell(Relabel(key.fn, tuple(map(str, key.kind.labels))), "text", schema, at)
    return unsupported("A row's number or date as text", at, "Cast in the SELECT list, after grouping.")


def _from_text(item: Cell, to: str, arithmetic: Arithmetic, at: int) -> Operand:
    """Text read as a number or truth value: only where its labels are public."""
    schema = arithmetic.schema
    if not isinstance(item.kind, Code):
        return unsupported("Free text as a number", at, "Declare the column as a number.")
    if to == "bool":
        known = tuple(label for label in item.kind.labels if read_bool(str(label)) is not None)
        true = tuple(label for label in known if read_bool(str(label)))
        if not known:
            return Fixed(None, "bool")
        names = tuple(label if label in known else None for label in item.kind.labels)
        return cell(IsIn(Relabel(item.fn, names), true), "bool", schema, at)  # type: ignore[arg-type]
    found = [read_number(str(label)) for label in item.kind.labels]
    if to == "int":
        found = [None if value is None else int(rounded(Fraction(value))) for value in found]
    if all(value is None for value in found):
        return Fixed(None, to)
    figures = tuple(float(value) if isinstance(value, Fraction) else value for value in found)
    return cell(Value(Relabel(item.fn, figures)), to, schema, at)
