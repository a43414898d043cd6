"""What an expression over rows is: a constant, a row function of a SQL type, or the person itself."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sulq.language.domain import Schema
from sulq.language.kinds import Cells, Code, Integers, Kind, Scalar, Truth
from sulq.language.rowfn import Arith, Case, Compare, Lit, Logic, Moment, RowFn, Value
from sulq.sql.parse.syntax import NUMERIC, Constant, Interval, SqlRefused, placed


@dataclass(frozen=True, slots=True)
class Fixed:
    """A constant."""

    value: Constant
    type: str


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A row function and its SQL type. Its kind is worked out when it is first asked for.

    A long sum would otherwise be gone through again at each of its terms. `number`:
    it is made by arithmetic, so that it is a number is known without its kind.
    """

    fn: RowFn
    type: str
    schema: Schema
    at: int = 0
    number: bool = False
    known: list[Kind] = field(default_factory=list)

    @property
    def kind(self) -> Kind:
        """What the row function gives, or a refusal that says where it stands."""
        if not self.known:
            with placed(self.at):
                self.known.append(self.fn.kind(self.schema))
        return self.known[0]


@dataclass(frozen=True, slots=True, eq=False)
class PersonValue:
    """The person a row belongs to: to be counted, grouped and joined by; a value only where its column is declared.

    `present`: a row function that is missing where there is no person (the unmatched
    rows of a LEFT JOIN); None: there always is one.
    """

    cell: Cell | None = None
    present: RowFn | None = None


Term = Fixed | Cell | PersonValue
TYPE_WORDS = {"int": "a whole number", "float": "a number", "bool": "a condition", "text": "text"}
TYPE_WORDS |= {"date": "a date", "timestamp": "a timestamp", "interval": "an interval", "null": "NULL"}


def cell(fn: RowFn, sql_type: str, schema: Schema, at: int) -> Cell:
    """A row function whose kind is known to be right, or a refusal that says where it stands."""
    found = Cell(fn, sql_type, schema, at)
    _ = found.kind
    return found


def both(*conditions: RowFn | None) -> RowFn | None:
    """All of several conditions, those that are there."""
    found = tuple(condition for condition in conditions if condition is not None)
    return None if not found else found[0] if len(found) == 1 else Logic("and", found)


def valued(term: Term, at: int, why: str, remedy: str = "") -> Cell | Fixed:
    """What a term is computed with: a person only by the value of its declared column."""
    if not isinstance(term, PersonValue):
        return term
    if term.cell is None:
        raise SqlRefused("unknown-column", f"The person's column is not declared, so it {why}", at, remedy)
    return term.cell


def same_labels(left: Cell, right: Cell) -> bool:
    """Whether two cells are categories of the same labels."""
    return isinstance(left.kind, Code) and isinstance(right.kind, Code) and left.kind.labels == right.kind.labels


def few_whole_numbers(kind: Kind, most: int) -> bool:
    """Whether values of a kind are whole numbers, of which at most so many lie within its bounds."""
    if not isinstance(kind, Scalar) or kind.lo is None or kind.hi is None:
        return False
    return kind.hi - kind.lo < most and kind.step is not None and kind.step.denominator == 1


def number_type(left: str, right: str) -> str:
    """The type of a sum or product."""
    return "int" if left == right == "int" else "float"


def moment(value: datetime.date, clock: str) -> Moment:
    """A constant date or timestamp."""
    return Moment(on_clock(value, clock).isoformat(), "date" if clock == "date" else "timestamp")


def on_clock(value: datetime.date, clock: str) -> datetime.date:
    """A date as the moment at which it begins, or a moment as its date, where the clock is the other one."""
    if isinstance(value, datetime.datetime):
        return value.date() if clock == "date" else value
    return datetime.datetime.combine(value, datetime.time()) if clock == "timestamp" else value


def nothing() -> RowFn:
    """A number that is always missing."""
    return Case(((Lit(False), Lit(0)),))


def unknown() -> RowFn:
    """A condition that is never known."""
    return Compare("==", nothing(), Lit(0))


def constant_fn(fixed: Fixed, at: int) -> RowFn:
    """A constant as a row function."""
    value = fixed.value
    if value is None:
        return unknown() if fixed.type == "bool" else nothing()
    if isinstance(value, Interval):
        raise SqlRefused("wrong-kind", "An interval stands only beside a date", at)
    with placed(at):
        if isinstance(value, datetime.date):
            return moment(value, fixed.type)
        return Lit(float(value) if isinstance(value, Fraction) else value)


def as_number(item: Cell, schema: Schema, at: int) -> Cell:
    """A cell as a number: a category of numbers by its labels, a truth value as 0 or 1."""
    if item.number:
        return item
    if isinstance(item.kind, Code) and item.type in NUMERIC:
        return cell(Value(item.fn), item.type, schema, at)
    if isinstance(item.kind, Truth) and item.type in NUMERIC:
        return cell(Arith("+", item.fn, Lit(0)), item.type, schema, at)
    if not isinstance(item.kind, Scalar):
        raise SqlRefused("wrong-kind", f"A number is needed here, not {TYPE_WORDS.get(item.type, item.type)}", at)
    return item


def read_number(text: str) -> int | Fraction | None:
    """A number written as text, or None."""
    text = text.strip()
    try:
        found = Fraction(text) if len(text) <= 60 and "/" not in text and "_" not in text else None
    except (ValueError, ZeroDivisionError):
        return None
    if found is None or abs(found) > 10**60:
        return None
    return int(found) if found.denominator == 1 and text.lstrip("+-").isdigit() else found


def read_moment(text: str, clock: str) -> datetime.date | None:
    """A date or timestamp written as text, or None."""
    text = text.strip()
    try:
        if clock == "date" and len(text) <= 10:
            return datetime.date.fromisoformat(text)
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if found.tzinfo is not None:
        found = found.astimezone(datetime.UTC).replace(tzinfo=None)
    return found.date() if clock == "date" else found


def read_bool(text: str) -> bool | None:
    """A truth value written as text, or None."""
    word = text.strip().lower()
    if word in ("t", "true", "yes", "y", "on", "1"):
        return True
    return False if word in ("f", "false", "no", "n", "off", "0") else None


def read_as(text: str, to: str) -> Constant:
    """A text literal as a value of a type, or None."""
    if to in ("date", "timestamp"):
        return read_moment(text, to)
    return read_number(text) if to in NUMERIC else read_bool(text) if to == "bool" else None


def fitted(fixed: Fixed, to: str, at: int) -> Fixed:
    """A constant beside a value of another type: a text literal is read as that type, as PostgreSQL does."""
    value = fixed.value
    if value is None or fixed.type == to or (fixed.type in NUMERIC and to in NUMERIC):
        return Fixed(value, fixed.type if value is not None else to)
    if isinstance(value, str):
        found = read_as(value, to)
        if found is None:
            raise SqlRefused("bad-literal", f"{value[:40]!r} cannot be read as {TYPE_WORDS[to]}", at)
        return Fixed(found, to)
    if isinstance(value, datetime.date) and to in ("date", "timestamp"):
        return fixed
    raise SqlRefused("wrong-kind", f"{TYPE_WORDS[fixed.type].capitalize()} stands where {TYPE_WORDS[to]} is needed", at)


def no_column(name: str) -> Cells:
    """The columns of rows in which all that is read is in `seen` already."""
    raise LookupError(name)


@dataclass(slots=True)
class TrialRows:
    """A batch of made-up rows; `seen` holds row functions that are evaluated already, by their identity."""

    schema: Schema
    size: int
    codes: Callable[[str], Cells] = no_column
    seen: dict[int, Cells] = field(default_factory=dict)

    def person(self) -> Integers:
        """Everyone is somebody else."""
        return np.arange(self.size, dtype=np.int64)

    position = person  # one after the other
