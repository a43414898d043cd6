"""What every row function is: the base class, its operators, and the two leaves, columns and constants.

The language is closed: the classes of this folder are all there is, and no callable crosses it (T18, T23). Each class
holds its syntax, its interval rule in exact rationals (`kind`), its meaning on NumPy columns (`cells`) and the same in
SQL (`sql`). Numbers are IEEE doubles of grid points, one operation at a time, so every engine computes the same bits
(docs/theory/row-functions.md); a result that is not finite is missing, so no row can raise (T30).
"""

from __future__ import annotations

import datetime
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar, cast

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError
from sulq.forms.coercion import plain
from sulq.language import domain
from sulq.language.domain import Schema
from sulq.language.kinds import Cells, Code, Floats, Frame, Kind, Scalar, Truth, Truths, Words
from sulq.language.rowfn.operators import Operators
from sulq.language.rowfn.piece import NotInSql, Piece

if TYPE_CHECKING:
    from sulq.language.rowfn.writer import SqlWriter

F = TypeVar("F", bound="RowFn")
K = TypeVar("K")
Literal = int | float | str | bool
Values = npt.NDArray[np.generic]
MAX_LITERAL: Final = 1e60
MAX_LIST_ITEMS: Final = 10_000
MAX_TEXT_LENGTH: Final = 10_000


def per_schema(kind: Callable[[F, Schema], K]) -> Callable[[F, Schema], K]:
    """Work out what a node is, once for the schema it was asked for last: plans and programs ask many times."""

    @functools.wraps(kind)
    def known(self: F, schema: Schema) -> K:
        held = getattr(self, "held", None)
        if held is None or held[0] is not schema:
            held = (schema, kind(self, schema))
            object.__setattr__(self, "held", held)
        return cast("K", held[1])

    return known


class RowFn(Operators):
    """A function of one row, built from columns by ordinary Python operators.

    A subclass names the fields that hold row functions, with what a refusal calls them, and the fields that hold
    constants, with what reads and checks one: `class Clip(RowFn, item="The item", lo=figure, hi=figure)`.
    `held`: memo of derived public facts; `origin`: of a handle's column, whose rows it is of, which the asks look at
    and a question does not say. Both are excluded from equality and serialisation.
    """

    __slots__ = ("held", "origin")
    held: tuple[object, object]
    origin: object
    operands: ClassVar[tuple[tuple[str, str], ...]] = ()
    constants: ClassVar[tuple[tuple[str, Callable[[Any], object]], ...]] = ()

    def __init_subclass__(cls, **named: str | Callable[[Any], object]) -> None:
        # A dataclass with slots makes its class a second time, without the names.
        cls.operands += tuple((name, what) for name, what in named.items() if isinstance(what, str))
        cls.constants += tuple((name, read) for name, read in named.items() if not isinstance(read, str))

    def __post_init__(self) -> None:
        for name, what in self.operands:
            value = getattr(self, name)
            for fn in value if isinstance(value, (tuple, list)) else (value,):
                check(fn, what)
        for name, read in self.constants:
            object.__setattr__(self, name, read(getattr(self, name)))

    def kind(self, schema: Schema) -> Kind:
        """What this gives, from public facts alone."""
        raise NotImplementedError  # pragma: no cover - every node has its rule

    def cells(self, frame: Frame) -> Cells:
        """What this means on a batch of rows."""
        raise NotImplementedError  # pragma: no cover - every node has its meaning

    def sql(self, writer: SqlWriter) -> Piece:
        """What this means as SQL; what has none is left to the batch path."""
        raise NotInSql(type(self).__name__)

    def moment(self) -> int | None:
        """The days or microseconds since 1970 of a constant date or moment; None for anything else."""
        return None

    def parts(self) -> tuple[RowFn, ...]:
        """The row functions this is built from."""
        found: tuple[RowFn, ...] = ()
        for name, _ in self.operands:
            value = getattr(self, name)
            found += value if isinstance(value, tuple) else (value,)
        return found

    def as_row(self) -> RowFn:
        """The row function itself."""
        return self

    def __bool__(self) -> NoReturn:
        raise QuestionError(
            "bad-question",
            "A condition on rows has no truth value here.",
            "Join conditions with & | ~ ^ in place of and, or, not; write x.between(lo, hi) for lo <= x <= hi, "
            "x.isin([...]) for x in [...], and case((condition, value), otherwise=...) for if.",
        )

    __getitem__ = __iter__ = __len__ = __int__ = __float__ = __complex__ = __index__ = Operators.no_such


def is_whole(value: object, low: int, high: int) -> bool:
    """Whether a constant is a whole number within bounds."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def literal(value: object) -> Literal:
    """Check a constant of a question: finite, and of a kind that can stand in one."""
    value = plain(value)
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, (bool, str)):
        if isinstance(value, str) and (len(value) > MAX_TEXT_LENGTH or "\x00" in value or not domain.is_text(value)):
            raise QuestionError("bad-literal", "A text literal is too long, or holds a NUL or half a character.")
        return value
    if value is None:
        raise QuestionError("bad-literal", "None is no constant.", "Ask x.is_missing(), or put a value: x.fill(0).")
    if not isinstance(value, (int, float, Fraction)):
        raise QuestionError("bad-literal", f"A {type(value).__name__} cannot stand in a question.")
    if not -MAX_LITERAL <= value <= MAX_LITERAL:  # false for NaN too
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
    return value.as_row() if isinstance(value, Operators) else Lit(literal(value))


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


def figures(values: Iterable[object]) -> tuple[int | float, ...]:
    """Check constants that must be numbers."""
    return tuple(map(figure, values))


def literals(values: Iterable[object]) -> tuple[Literal, ...]:
    """Check several constants of a question."""
    return tuple(map(literal, values))


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


def one_of(kinds: Sequence[Scalar], mixed: str, *, nullable: bool) -> Scalar:
    """The kind of a number that is one of several; `mixed` is the refusal of dates beside numbers."""
    if len({kind.clock for kind in kinds}) > 1:
        raise QuestionError("wrong-kind", mixed)
    steps = [kind.step for kind in kinds if kind.step is not None]
    step = min(steps) if len(steps) == len(kinds) else None
    lows = [kind.lo for kind in kinds if kind.lo is not None]
    highs = [kind.hi for kind in kinds if kind.hi is not None]
    if len(lows) < len(kinds) or len(highs) < len(kinds):
        return Scalar(None, None, step, nullable, kinds[0].clock)
    return Scalar(min(lows), max(highs), step, nullable, kinds[0].clock)


def condition(fn: RowFn, schema: Schema) -> Truth:
    """The kind of a row function used as a condition."""
    kind = fn.kind(schema)
    if not isinstance(kind, Truth):
        raise QuestionError("wrong-kind", f"{describe(fn)} is not a condition.")
    return kind


def walk(*fns: RowFn) -> Iterator[RowFn]:
    """Row functions and all that they are built from, outermost first, each as often as it stands there."""
    found = list(fns)
    for fn in found:
        yield fn
        found += fn.parts()


def describe(fn: RowFn) -> str:
    """A few words for messages, naming the columns concerned."""
    if isinstance(fn, Col):
        return f"Column {fn.name!r}"
    names = dict.fromkeys(part.name for part in walk(fn) if isinstance(part, Col))
    columns = ", ".join(map(repr, names))
    return f"The expression of column {columns}" if columns else "The expression"


def evaluate(fn: RowFn, frame: Frame) -> Cells:
    """The meaning of a row function on a batch, worked out once however often it occurs."""
    known = frame.seen.get(id(fn))
    if known is None or known.of is not fn:
        work_out = getattr(frame, "work_out", None)  # of a program that is being written: compile/statements/programs
        found = fn.cells(frame) if work_out is None else work_out(fn)
        known = frame.seen[id(fn)] = replace(found, of=fn)
    return known


def numbers(fn: RowFn, frame: Frame) -> tuple[Floats, Truths | None]:
    """The meaning of a row function used as a number."""
    cells = evaluate(fn, frame)
    return cells.values.astype(np.float64, copy=False), cells.missing


def known(truth: Truths, missing: Truths | None) -> Truths:
    """Where a condition holds, and is not missing."""
    return truth if missing is None else truth & ~missing


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

    @classmethod
    def of(cls, name: str, origin: object) -> Col:
        """The column of a handle, which says whose rows it is of."""
        made = cls(name)
        object.__setattr__(made, "origin", origin)
        return made

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
        return _scalar(column.low, column.high, column.step, column.clock, nullable=column.missing)

    def cells(self, frame: Frame) -> Cells:
        column = frame.schema.find(self.name)
        cells = frame.codes(self.name)
        if isinstance(column, domain.Bool):
            return Cells(cells.values != 0, cells.missing)
        if column is None or isinstance(column, (domain.Text, domain.Category)):
            return cells
        values = cells.values.astype(np.float64)
        return Cells(values if column.step == 1 else values * float(column.step), cells.missing)


@functools.lru_cache(maxsize=1024)
def _scalar(low: int, high: int, step: Fraction, clock: str | None, *, nullable: bool) -> Scalar:
    """The interval of a declared number; a plan asks for it at every place where the column stands."""
    return Scalar(low * step, high * step, step, nullable, clock)


@dataclass(frozen=True, slots=True, eq=False)
class Lit(RowFn, value=literal):
    """A constant."""

    value: int | float | str | bool

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
