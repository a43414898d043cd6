"""Row functions that give one number or one truth value for each row.

The language is closed: these classes are all there is, and no callable crosses
it (T18, T23). Each class holds its syntax, its interval rule in exact rationals
and its meaning on NumPy columns. Numbers are IEEE doubles of grid points, one
operation at a time, so every engine computes the same bits (ARCHITECTURE,
exactness); a result that is not finite is missing, so no row can raise (T30).
"""

from __future__ import annotations

import datetime
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final, NoReturn, TypeVar, cast

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError, SetupError
from sulq.language import domain
from sulq.language.domain import Schema
from sulq.language.kinds import HUGE, Cells, Code, Floats, Frame, Kind, Scalar, Truth, Truths, Words, union

F = TypeVar("F", bound="RowFn")
K = TypeVar("K", bound=Kind)
Literal = int | float | str | bool
Values = npt.NDArray[np.generic]
LARGEST_LITERAL: Final = 1e60
LONGEST_LIST: Final = 10_000
LONGEST_TEXT: Final = 10_000


def per_schema(kind: Callable[[F, Schema], K]) -> Callable[[F, Schema], K]:
    """Work out the kind of a node once for the schema it was asked for last: plans and programs ask many times."""

    @functools.wraps(kind)
    def known(self: F, schema: Schema) -> K:
        held = getattr(self, "held", None)
        if held is None or held[0] is not schema:
            held = (schema, kind(self, schema))
            object.__setattr__(self, "held", held)
        return cast("K", held[1])

    return known


OPERATORS: Final[dict[str, Callable[..., RowFn]]] = {}  # of Python that rowfn/maths.py gives a meaning


class RowFn:
    """A function of one row, built from columns by ordinary Python operators.

    `held`: what a node works out of itself, from public facts, and keeps as long as it lives; no part of what it says.
    """

    __slots__ = ("held",)
    held: tuple[object, object]

    def kind(self, schema: Schema) -> Kind:
        """What this gives, from public facts alone."""
        raise NotImplementedError  # pragma: no cover - every node has its rule

    def cells(self, frame: Frame) -> Cells:
        """What this means on a batch of rows."""
        raise NotImplementedError  # pragma: no cover - every node has its meaning

    def parts(self) -> tuple[RowFn, ...]:
        """The row functions this is built from."""
        return ()

    def __add__(self, other: object) -> Arith:
        return Arith("+", self, row(other))

    def __radd__(self, other: object) -> Arith:
        return Arith("+", row(other), self)

    def __sub__(self, other: object) -> Arith:
        return Arith("-", self, row(other))

    def __rsub__(self, other: object) -> Arith:
        return Arith("-", row(other), self)

    def __mul__(self, other: object) -> Arith:
        return Arith("*", self, row(other))

    def __rmul__(self, other: object) -> Arith:
        return Arith("*", row(other), self)

    def __truediv__(self, other: object) -> Arith:
        return Arith("/", self, row(other))

    def __rtruediv__(self, other: object) -> Arith:
        return Arith("/", row(other), self)

    def __neg__(self) -> Arith:
        return Arith("-", Lit(0), self)

    def __pos__(self) -> RowFn:
        return self

    def __abs__(self) -> RowFn:
        return OPERATORS["abs"](self)

    def __mod__(self, other: object) -> RowFn:
        """The remainder by a constant, of the number's sign, as `%` is in SQL."""
        return OPERATORS["%"](self, other)

    def __floordiv__(self, other: object) -> RowFn:
        return OPERATORS["floor"](self / other)

    def __pow__(self, other: object) -> RowFn:
        return OPERATORS["**"](self, other)

    def __round__(self, digits: object = 0) -> RowFn:
        return OPERATORS["round"](self, digits)

    def _no_such(self, *_: object) -> NoReturn:
        """Every other operator of Python is refused in our words."""
        why = "Columns are joined by + - * / // % **, compared, and combined with & | ~."
        raise QuestionError("bad-question", why, "Use an operator from this list, or SQL.")

    __rmod__ = __rfloordiv__ = __rpow__ = __matmul__ = __rmatmul__ = __xor__ = __rxor__ = __lshift__ = _no_such
    __rlshift__ = __rshift__ = __rrshift__ = __divmod__ = __rdivmod__ = __getitem__ = __iter__ = _no_such
    __contains__ = __len__ = __int__ = __float__ = __complex__ = __index__ = _no_such
    __array_ufunc__ = None  # a number of NumPy leaves the operator to us

    def __eq__(self, other: object) -> Compare:  # type: ignore[override]
        return Compare("==", self, row(other))

    def __ne__(self, other: object) -> Compare:  # type: ignore[override]
        return Compare("!=", self, row(other))

    def __lt__(self, other: object) -> Compare:
        return Compare("<", self, row(other))

    def __le__(self, other: object) -> Compare:
        return Compare("<=", self, row(other))

    def __gt__(self, other: object) -> Compare:
        return Compare(">", self, row(other))

    def __ge__(self, other: object) -> Compare:
        return Compare(">=", self, row(other))

    def __and__(self, other: object) -> Logic:
        return Logic("and", (self, row(other)))

    def __or__(self, other: object) -> Logic:
        return Logic("or", (self, row(other)))

    def __rand__(self, other: object) -> Logic:
        return Logic("and", (row(other), self))

    def __ror__(self, other: object) -> Logic:
        return Logic("or", (row(other), self))

    def __invert__(self) -> Not:
        return Not(self)

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> NoReturn:
        why = "A condition on rows has no truth value here."
        raise QuestionError("bad-question", why, "Join with & | ~, not and, or, not.")

    def clip(self, lo: float, hi: float) -> Clip:
        """Clamp into [lo, hi]."""
        return Clip(self, lo, hi)

    def isin(self, values: Iterable[object]) -> IsIn:
        """Whether the value is one of these."""
        return IsIn(self, cast("tuple[Literal, ...]", several(values, "Values", LONGEST_LIST + 1)))

    def between(self, lo: object, hi: object) -> Logic:
        """Whether the value lies from lo to hi, both included."""
        return (self >= lo) & (self <= hi)

    def is_missing(self) -> IsMissing:
        """Whether there is no value."""
        return IsMissing(self)

    def fill(self, value: object) -> Fill:
        """Put a constant where there is no value."""
        return Fill(self, literal(value))


def literal(value: object) -> Literal:
    """Check a constant of a question: finite, and of a kind that can stand in one."""
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        value = value.item()
    if isinstance(value, (bool, str)):
        if isinstance(value, str) and (len(value) > LONGEST_TEXT or "\x00" in value or not domain.is_text(value)):
            raise QuestionError("bad-literal", "A text literal is too long, or holds a NUL or half a character.")
        return value
    if not isinstance(value, (int, float, Fraction)):
        raise QuestionError("bad-literal", f"A {type(value).__name__} cannot stand in a question.")
    if not -LARGEST_LITERAL <= value <= LARGEST_LITERAL:  # false for NaN too
        raise QuestionError("bad-literal", "A number of a question must be finite, and at most 1e60.")
    if isinstance(value, int) and abs(value) > domain.INT_LIMIT:
        raise QuestionError("bad-literal", "A whole-number literal must lie within 2^53.")
    return float(value) if isinstance(value, Fraction) else value


def several(values: object, what: str, most: int | None = None) -> tuple[object, ...]:
    """Insist on a list, or anything else that is gone through, at most so far; a text is not one."""
    try:
        found = None if isinstance(values, (str, bytes)) else iter(cast("Iterable[object]", values))
    except TypeError:
        found = None
    if found is None:
        raise QuestionError("bad-question", f"{what} are given as a list.")
    return tuple(itertools.islice(found, most))


def row(value: object) -> RowFn:
    """A row function as it is, a constant as a literal."""
    return value if isinstance(value, RowFn) else Lit(literal(value))


def check(value: object, what: str) -> RowFn:
    """Insist on a row function."""
    if not isinstance(value, RowFn):
        raise QuestionError("bad-question", f"{what} must be built from columns: sulq.col(...).")
    return value


def figure(value: object) -> int | float:
    """Check a constant that must be a number."""
    found = literal(value)
    if isinstance(found, (bool, str)):
        raise QuestionError("bad-literal", "A number is needed here.")
    return found


def outward(lo: Fraction, hi: Fraction) -> tuple[Fraction, Fraction]:
    """The narrowest interval between doubles that holds [lo, hi].

    Rounding is monotone: a result whose exact value lies in [lo, hi] is still in
    this interval after it is rounded to a double.
    """
    low, high = float(lo), float(hi)
    low = low if Fraction(low) <= lo else math.nextafter(low, -math.inf)
    high = high if Fraction(high) >= hi else math.nextafter(high, math.inf)
    return Fraction(low), Fraction(high)


def number(fn: RowFn, schema: Schema) -> Scalar:
    """The kind of a row function used as a number; a truth value counts as 0 or 1."""
    return as_number(fn.kind(schema), fn)


def as_number(kind: Kind, fn: RowFn) -> Scalar:
    """A kind as that of a number, or a refusal that names the row function."""
    if isinstance(kind, Truth):
        return Scalar(Fraction(0), Fraction(1), Fraction(1), kind.nullable)
    if not isinstance(kind, Scalar):
        raise QuestionError("wrong-kind", f"{describe(fn)} is not a number.")
    return kind


def condition(fn: RowFn, schema: Schema) -> Truth:
    """The kind of a row function used as a condition."""
    kind = fn.kind(schema)
    if not isinstance(kind, Truth):
        raise QuestionError("wrong-kind", f"{describe(fn)} is not a condition.")
    return kind


def describe(fn: RowFn) -> str:
    """A few words for messages, naming the columns concerned."""
    if isinstance(fn, Col):
        return f"Column {fn.name!r}"
    names, front = [], [fn]
    while front:
        names += [part.name for part in front if isinstance(part, Col)]
        front = [part for outer in front for part in outer.parts()]
    columns = ", ".join(repr(name) for name in dict.fromkeys(names))
    return f"The expression of column {columns}" if columns else "The expression"


def evaluate(fn: RowFn, frame: Frame) -> Cells:
    """The meaning of a row function on a batch, worked out once however often it occurs."""
    known = frame.seen.get(id(fn))
    if known is None or known.of is not fn:
        known = frame.seen[id(fn)] = replace(fn.cells(frame), of=fn)
    return known


def numbers(fn: RowFn, frame: Frame) -> tuple[Floats, Truths | None]:
    """The meaning of a row function used as a number."""
    cells = evaluate(fn, frame)
    return cells.values.astype(np.float64, copy=False), cells.missing


def truths(fn: RowFn, frame: Frame) -> tuple[Truths, Truths | None]:
    """The meaning of a row function used as a condition."""
    cells = evaluate(fn, frame)
    return cast("Truths", cells.values), cells.missing


@dataclass(frozen=True, slots=True, eq=False)
class Col(RowFn):
    """A declared column."""

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise QuestionError("bad-question", "A column is named by a text.")

    def kind(self, schema: Schema) -> Kind:
        column = schema.find(self.name)
        if column is None:
            known = ", ".join(schema.names)
            raise QuestionError("unknown-column", f"No column {self.name[:80]!r} is declared (declared: {known}).")
        if isinstance(column, domain.Text):
            return Words(column.missing, longest=column.longest)
        if isinstance(column, domain.Bool):
            return Truth(column.missing)
        if isinstance(column, domain.Category):
            return Code(column.values, column.missing)
        clock = {domain.Date: "date", domain.Timestamp: "timestamp"}.get(type(column))
        return _scalar(column.low, column.high, column.step, clock, nullable=column.missing)

    def cells(self, frame: Frame) -> Cells:
        column = frame.schema.find(self.name)
        cells = frame.codes(self.name)
        if isinstance(column, domain.Bool):
            return Cells(cells.values != 0, cells.missing)
        if column is None or isinstance(column, (domain.Text, domain.Category)):
            return cells
        return Cells(cells.values.astype(np.float64) * float(column.step), cells.missing)


@functools.lru_cache(maxsize=1024)
def _scalar(low: int, high: int, step: Fraction, clock: str | None, *, nullable: bool) -> Scalar:
    """The interval of a declared number; a plan asks for it at every place where the column stands."""
    return Scalar(low * step, high * step, step, nullable, clock)


@dataclass(frozen=True, slots=True, eq=False)
class Lit(RowFn):
    """A constant."""

    value: int | float | str | bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", literal(self.value))

    def kind(self, schema: Schema) -> Kind:
        if isinstance(self.value, bool):
            return Truth(nullable=False)
        if isinstance(self.value, str):
            return Words(nullable=False, longest=len(self.value))
        exact = Fraction(self.value)
        step = Fraction(exact.numerator & -exact.numerator, exact.denominator) if exact else Fraction(1)
        return Scalar(exact, exact, min(step, Fraction(1)), nullable=False)

    def cells(self, frame: Frame) -> Cells:
        if isinstance(self.value, str):
            return Cells(np.full(frame.size, self.value, dtype=object), None)
        return Cells(np.full(frame.size, self.value if isinstance(self.value, bool) else float(self.value)), None)


@dataclass(frozen=True, slots=True, eq=False)
class Position(RowFn):
    """The row's place in the table, from 0, where the relation keeps places public (S0.7, SR11)."""

    LIMIT: ClassVar[int] = 2**40

    def kind(self, schema: Schema) -> Kind:
        return Scalar(Fraction(0), Fraction(self.LIMIT), Fraction(1), nullable=False)

    def cells(self, frame: Frame) -> Cells:
        return Cells(np.minimum(frame.position(), self.LIMIT).astype(np.float64), None)


@dataclass(frozen=True, slots=True, eq=False)
class Arith(RowFn):
    """Sum, difference, product or quotient; a quotient by zero is missing."""

    op: str
    left: RowFn
    right: RowFn

    def __post_init__(self) -> None:
        if self.op not in ("+", "-", "*", "/"):
            raise QuestionError("bad-question", "Arithmetic is one of + - * /.")
        check(self.left, "A term")
        check(self.right, "A term")

    def parts(self) -> tuple[RowFn, ...]:
        return (self.left, self.right)

    @per_schema
    def kind(self, schema: Schema) -> Scalar:
        a, b = number(self.left, schema), number(self.right, schema)
        zero = b.lo is None or b.hi is None or b.lo <= 0 <= b.hi
        nullable = a.nullable or b.nullable or (self.op == "/" and zero)
        step, clock = None, _shifted(self.op, a, b)
        if a.step and b.step and self.op != "/":
            step = a.step * b.step if self.op == "*" else min(a.step, b.step)
        if a.lo is None or a.hi is None or b.lo is None or b.hi is None or (self.op == "/" and zero):
            return Scalar(None, None, step, nullable=True, clock=clock)
        corners = {
            "+": (a.lo + b.lo, a.hi + b.hi),
            "-": (a.lo - b.hi, a.hi - b.lo),
        }.get(self.op) or tuple((x * y if self.op == "*" else x / y) for x in (a.lo, a.hi) for y in (b.lo, b.hi))
        if max(map(abs, corners)) > HUGE:
            return Scalar(None, None, step, nullable=True, clock=clock)
        lo, hi = outward(min(corners), max(corners))
        return Scalar(lo, hi, step, nullable, clock)

    def cells(self, frame: Frame) -> Cells:
        left, no_left = numbers(self.left, frame)
        right, no_right = numbers(self.right, frame)
        missing = union(no_left, no_right)
        with np.errstate(all="ignore"):
            values = _ARITHMETIC[self.op](left, right)
        if not self.kind(frame.schema).bounded:
            finite = np.isfinite(values)
            values, missing = np.where(finite, values, 0.0), union(missing, ~finite)
        return Cells(values, missing)


def _shifted(op: str, a: Scalar, b: Scalar) -> str | None:
    """The clock of a sum or difference: a date moved by whole days is a date, two dates differ by a number."""
    if op in ("+", "-") and a.clock and not b.clock and b.step is not None and b.step.denominator == 1:
        return a.clock
    if op == "+" and b.clock and not a.clock and a.step is not None and a.step.denominator == 1:
        return b.clock
    return None


_ARITHMETIC: Final[dict[str, Callable[[Floats, Floats], Floats]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
COMPARISONS: Final[dict[str, Callable[[Values, Values], object]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def against(value: Literal, kind: Kind) -> int | float | str:
    """A literal as it meets cells of a kind: a number, a category's code, days, or text."""
    if isinstance(kind, Code):
        if value not in kind.labels or isinstance(value, bool):
            raise QuestionError("unknown-category", f"{str(value)[:80]!r} is not a declared category.")
        return kind.labels.index(value)
    if isinstance(kind, Words) and isinstance(value, str):
        return value
    if isinstance(kind, Truth) and (isinstance(value, bool) or value in (0, 1)):
        return int(value)
    if isinstance(kind, Scalar) and kind.clock and isinstance(value, str):
        try:
            return domain.days(value) if kind.clock == "date" else domain.microseconds(value)
        except SetupError as error:
            raise QuestionError("bad-literal", error.message) from None
    if isinstance(kind, Scalar) and not kind.clock and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise QuestionError("wrong-kind", f"{str(value)[:80]!r} cannot be compared with this column.")


def _constant(value: float | str) -> Values:
    return np.asarray(value, dtype=object if isinstance(value, str) else None)


def alike(left: RowFn, a: Kind, right: RowFn, b: Kind) -> None:
    """Insist that two row functions of these kinds can be compared."""
    same = type(a) is type(b) and not (isinstance(a, Code) and isinstance(b, Code) and a.labels != b.labels)
    if not same or (isinstance(a, Scalar) and isinstance(b, Scalar) and a.clock != b.clock):
        raise QuestionError("wrong-kind", f"{describe(left)} and {describe(right)} cannot be compared.")


@dataclass(frozen=True, slots=True, eq=False)
class Compare(RowFn):
    """A comparison; unknown where either side is missing."""

    op: str
    left: RowFn
    right: RowFn

    def __post_init__(self) -> None:
        if self.op not in COMPARISONS:
            raise QuestionError("bad-question", "A comparison is one of == != < <= > >=.")
        check(self.left, "A side of a comparison")
        check(self.right, "A side of a comparison")

    def parts(self) -> tuple[RowFn, ...]:
        return (self.left, self.right)

    def sides(self, schema: Schema) -> tuple[RowFn, int | float | str | RowFn, str]:
        """The comparison with a constant, if there is one, on the right and fitted to the other side."""
        left, right, op = self._turned()
        return left, against(right.value, left.kind(schema)) if isinstance(right, Lit) else right, op

    def _turned(self) -> tuple[RowFn, RowFn, str]:
        if isinstance(self.left, Lit) and not isinstance(self.right, Lit):
            return self.right, self.left, _MIRRORED.get(self.op, self.op)
        return self.left, self.right, self.op

    def kind(self, schema: Schema) -> Truth:
        left, right, _ = self._turned()
        a = left.kind(schema)
        nullable = a.nullable
        if isinstance(right, Lit):
            against(right.value, a)
        else:
            b = right.kind(schema)
            alike(left, a, right, b)
            nullable = nullable or b.nullable
        if not isinstance(a, Scalar) and self.op not in ("==", "!="):
            raise QuestionError("wrong-kind", f"{describe(left)} has no order; use == or !=.")
        return Truth(nullable)

    def cells(self, frame: Frame) -> Cells:
        left, right, op = self.sides(frame.schema)
        a = evaluate(left, frame)
        b = evaluate(right, frame) if isinstance(right, RowFn) else Cells(_constant(right), None)
        with np.errstate(all="ignore"):
            found = COMPARISONS[op](a.values, b.values)
        return Cells(np.asarray(found, dtype=np.bool_), union(a.missing, b.missing))


@dataclass(frozen=True, slots=True, eq=False)
class IsIn(RowFn):
    """Whether a value is one of a list of constants."""

    item: RowFn
    values: tuple[int | float | str | bool, ...]

    def __post_init__(self) -> None:
        check(self.item, "The left of isin")
        if len(self.values) > LONGEST_LIST:
            raise QuestionError("too-large", "A list holds at most 10,000 constants.")
        object.__setattr__(self, "values", tuple(literal(value) for value in self.values))

    def parts(self) -> tuple[RowFn, ...]:
        return (self.item,)

    def fitted(self, schema: Schema) -> list[int | float | str]:
        """The constants as they meet the cells."""
        return self._fitted(self.item.kind(schema))

    def _fitted(self, kind: Kind) -> list[int | float | str]:
        if isinstance(kind, Code):  # a long list against many labels: one table, not a search for each
            places = {label: place for place, label in enumerate(kind.labels)}
            known = [value for value in self.values if not isinstance(value, bool) and value in places]
            if len(known) == len(self.values):
                return [places[value] for value in known]
        return [against(value, kind) for value in self.values]

    def kind(self, schema: Schema) -> Truth:
        kind = self.item.kind(schema)
        self._fitted(kind)
        return Truth(kind.nullable)

    def cells(self, frame: Frame) -> Cells:
        item = evaluate(self.item, frame)
        found = np.zeros(frame.size, dtype=np.bool_)
        for value in self.fitted(frame.schema):
            found |= np.asarray(item.values == value, dtype=np.bool_)
        return Cells(found, item.missing)


@dataclass(frozen=True, slots=True, eq=False)
class Logic(RowFn):
    """Three-valued `and` or `or`: unknown only where the known parts do not decide."""

    op: str
    items: tuple[RowFn, ...]

    def __post_init__(self) -> None:
        if self.op not in ("and", "or") or not self.items:
            raise QuestionError("bad-question", "Logic is `and` or `or` of conditions.")
        for item in self.items:
            check(item, "A condition")

    def parts(self) -> tuple[RowFn, ...]:
        return self.items

    def kind(self, schema: Schema) -> Truth:
        kinds = [condition(item, schema) for item in self.items]
        return Truth(any(kind.nullable for kind in kinds))

    def cells(self, frame: Frame) -> Cells:
        decides = self.op == "or"
        decided = np.zeros(frame.size, dtype=np.bool_)
        unknown: Truths | None = None
        for item in self.items:
            value, missing = truths(item, frame)
            strikes = value if decides else ~value
            decided |= strikes if missing is None else strikes & ~missing
            unknown = union(unknown, missing)
        missing = None if unknown is None else unknown & ~decided
        return Cells(decided if decides else ~decided, missing)


@dataclass(frozen=True, slots=True, eq=False)
class Not(RowFn):
    """The opposite; unknown stays unknown."""

    item: RowFn

    def __post_init__(self) -> None:
        check(self.item, "A condition")

    def parts(self) -> tuple[RowFn, ...]:
        return (self.item,)

    def kind(self, schema: Schema) -> Truth:
        return condition(self.item, schema)

    def cells(self, frame: Frame) -> Cells:
        value, missing = truths(self.item, frame)
        return Cells(~value, missing)


@dataclass(frozen=True, slots=True, eq=False)
class IsMissing(RowFn):
    """Whether there is no value; never unknown itself."""

    item: RowFn

    def __post_init__(self) -> None:
        check(self.item, "The item")

    def parts(self) -> tuple[RowFn, ...]:
        return (self.item,)

    def kind(self, schema: Schema) -> Truth:
        self.item.kind(schema)
        return Truth(nullable=False)

    def cells(self, frame: Frame) -> Cells:
        missing = evaluate(self.item, frame).missing
        return Cells(np.zeros(frame.size, dtype=np.bool_) if missing is None else missing, None)


@dataclass(frozen=True, slots=True, eq=False)
class Case(RowFn):
    """The value of the first condition that holds; else `otherwise`, or missing."""

    branches: tuple[tuple[RowFn, RowFn], ...]
    otherwise: RowFn | None = None

    def __post_init__(self) -> None:
        if not self.branches:
            raise QuestionError("bad-question", "A case needs at least one branch.")
        for fn in self.parts():
            check(fn, "A branch")

    def parts(self) -> tuple[RowFn, ...]:
        last = () if self.otherwise is None else (self.otherwise,)
        return tuple(fn for branch in self.branches for fn in branch) + last

    def kind(self, schema: Schema) -> Scalar:
        for when, _ in self.branches:
            condition(when, schema)
        values = [number(value, schema) for _, value in self.branches]
        if self.otherwise is not None:
            values.append(number(self.otherwise, schema))
        if len({kind.clock for kind in values}) > 1:
            raise QuestionError("wrong-kind", "The branches of a case mix dates and numbers.")
        nullable = self.otherwise is None or any(kind.nullable for kind in values)
        steps = [kind.step for kind in values]
        step = None if None in steps else min(cast("list[Fraction]", steps))
        if not all(kind.bounded for kind in values):
            return Scalar(None, None, step, nullable, values[0].clock)
        lo = min(cast("list[Fraction]", [kind.lo for kind in values]))
        hi = max(cast("list[Fraction]", [kind.hi for kind in values]))
        return Scalar(lo, hi, step, nullable, values[0].clock)

    def cells(self, frame: Frame) -> Cells:
        values = np.zeros(frame.size)
        missing = np.ones(frame.size, dtype=np.bool_)
        open_ = np.ones(frame.size, dtype=np.bool_)
        last = () if self.otherwise is None else ((None, self.otherwise),)
        for when, then in (*self.branches, *last):
            here = open_
            if when is not None:
                holds, unknown = truths(when, frame)
                here = here & holds if unknown is None else here & holds & ~unknown
            value, none = numbers(then, frame)
            values = np.where(here, value, values)
            missing = np.where(here, False if none is None else none, missing)
            open_ = open_ & ~here
        return Cells(values, missing)


@dataclass(frozen=True, slots=True, eq=False)
class Clip(RowFn):
    """A number clamped into [lo, hi]; this bounds what nothing else does."""

    item: RowFn
    lo: float | int
    hi: float | int

    def __post_init__(self) -> None:
        check(self.item, "The item")
        for name in ("lo", "hi"):
            object.__setattr__(self, name, figure(getattr(self, name)))
        if self.lo > self.hi:
            raise QuestionError("bad-literal", "The bounds of clip are reversed.")

    def parts(self) -> tuple[RowFn, ...]:
        return (self.item,)

    def kind(self, schema: Schema) -> Scalar:
        inner = number(self.item, schema)
        lo, hi = Fraction(self.lo), Fraction(self.hi)
        inside = (lo if inner.lo is None else inner.lo, hi if inner.hi is None else inner.hi)
        ends = [min(max(end, lo), hi) for end in inside]
        step = inner.step
        if step is not None and any((end / step).denominator != 1 for end in ends):
            step = None
        return Scalar(ends[0], ends[1], step, inner.nullable)

    def cells(self, frame: Frame) -> Cells:
        value, missing = numbers(self.item, frame)
        return Cells(np.minimum(np.maximum(value, float(self.lo)), float(self.hi)), missing)


@dataclass(frozen=True, slots=True, eq=False)
class Fill(RowFn):
    """A number or condition, with a constant where it is missing."""

    item: RowFn
    value: int | float | str | bool

    def __post_init__(self) -> None:
        check(self.item, "The item")
        object.__setattr__(self, "value", literal(self.value))

    def parts(self) -> tuple[RowFn, ...]:
        return (self.item,)

    def kind(self, schema: Schema) -> Kind:
        inner = self.item.kind(schema)
        constant = against(self.value, inner)
        if isinstance(inner, Truth):
            return Truth(nullable=False)
        if not isinstance(inner, Scalar):
            raise QuestionError("wrong-kind", "fill takes a number or a condition.")
        exact = Fraction(constant)
        step = inner.step if inner.step and (exact / inner.step).denominator == 1 else None
        if inner.lo is None or inner.hi is None:
            return Scalar(None, None, step, nullable=False, clock=inner.clock)
        return Scalar(min(inner.lo, exact), max(inner.hi, exact), step, nullable=False, clock=inner.clock)

    def cells(self, frame: Frame) -> Cells:
        cells = evaluate(self.item, frame)
        if cells.missing is None:
            return cells
        constant = against(self.value, self.item.kind(frame.schema))
        return Cells(np.where(cells.missing, np.asarray(constant).astype(cells.values.dtype), cells.values), None)
