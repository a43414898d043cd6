"""Mathematical functions of a number, total on every row.

What has no value is missing: the root or logarithm of a negative number, a
quotient by zero, whatever is not finite. What IEEE 754 fixes (all but ln, exp
and odd powers) is the same to the bit on every engine. Rounding is monotone, so
a monotone function of doubles takes its least and largest value at the ends of
the interval of its argument: those ends are worked out by the function itself.

The three functions IEEE 754 does not fix may differ in the last place between
engines (SR16). Their intervals are worked out to fifty digits and rounded
outwards, and each row's value is clamped into the interval: that it holds does
not rest on any library (T11, T13).
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.language.kinds import HUGE, Cells, Floats, Frame, Scalar, Truths, union
from sulq.language.rowfn.base import RowFn, figure, is_whole, number, numbers, outward
from sulq.language.rowfn.conditions import COMPARISONS
from sulq.language.rowfn.piece import Piece, double, joined
from sulq.language.rowfn.piece import clamped as held_within

if TYPE_CHECKING:
    from sulq.language.rowfn.writer import SqlWriter

MAX_EXPONENT: Final = 709  # exp of more is missing; of this it is an ordinary double
MAX_ROUND_DIGITS: Final = 15
MAX_PRODUCT_POWER: Final = 16  # so far a power is a product, the same to the bit everywhere
MAX_POWER: Final = 1000
MIN_DOUBLE: Final = Fraction(5e-324)
_DIGITS: Final = decimal.Context(
    prec=50, rounding=decimal.ROUND_HALF_EVEN, Emin=-999_999, Emax=999_999, traps=[decimal.InvalidOperation]
)


def ends(lo: Fraction, hi: Fraction, act: Callable[[float], float]) -> tuple[Fraction, Fraction]:
    """The interval of an increasing function of doubles, by the function itself."""
    low, high = outward(lo, hi)
    return Fraction(act(float(low))), Fraction(act(float(high)))


def _decimal(value: Fraction) -> decimal.Decimal:
    return _DIGITS.divide(decimal.Decimal(value.numerator), decimal.Decimal(value.denominator))


def _fitted(low: decimal.Decimal, high: decimal.Decimal, *, nullable: bool) -> Scalar:
    """An interval rounded outwards, or none where doubles might overflow."""
    if not high.is_finite() or high > 10**90:
        return Scalar(None, None, nullable=True)
    tiny = decimal.Decimal(10) ** -400  # less is no double: it underflows to zero
    lo, hi = (Fraction(0) if abs(end) < tiny else Fraction(end) for end in (low, high))
    return Scalar(*outward(lo, max(hi, MIN_DOUBLE) if high > 0 else hi), nullable=nullable)


def clamped(values: Floats, kind: Scalar) -> Floats:
    """Values held within their stated interval."""
    if kind.lo is None or kind.hi is None:
        return values
    return np.minimum(np.maximum(values, float(kind.lo)), float(kind.hi))


def finite(values: Floats, missing: Truths | None) -> Cells:
    """What is not finite is missing."""
    good = np.isfinite(values)
    return Cells(np.where(good, values, 0.0), union(missing, ~good))


@dataclass(frozen=True, slots=True, eq=False)
class Maths(RowFn, item="The item"):
    """abs, floor, ceil, trunc, sign; sqrt and ln, missing where the number is not in their domain; exp."""

    op: str
    item: RowFn

    def __post_init__(self) -> None:
        if self.op not in OPERATIONS:
            raise QuestionError("bad-question", f"A function is one of {', '.join(OPERATIONS)}.")
        RowFn.__post_init__(self)

    def kind(self, schema: Schema) -> Scalar:
        return OPERATIONS[self.op].bounds(replace(number(self.item, schema), clock=None))

    def cells(self, frame: Frame) -> Cells:
        operation = OPERATIONS[self.op]
        values, missing = numbers(self.item, frame)
        with np.errstate(all="ignore"):  # of a missing cell: no warning may tell that there is one
            if operation.domain is None:
                return Cells(operation.act(values), missing)
            none = outside(operation.domain, values)
            found = operation.act(np.where(none, 1.0, values))
        return Cells(found if operation.exact else clamped(found, self.kind(frame.schema)), union(missing, none))

    def sql(self, writer: SqlWriter) -> Piece:
        found = _applied(writer, self.op, writer.number(self.item))
        return found if OPERATIONS[self.op].exact else _held(writer, found, self.kind(writer.schema))


def _absolute(inner: Scalar) -> Scalar:
    if inner.lo is None or inner.hi is None:
        return inner
    low = max(inner.lo, -inner.hi, Fraction(0))
    return replace(inner, lo=low, hi=max(-inner.lo, inner.hi))


def _whole(act: Callable[[float], float]) -> Callable[[Scalar], Scalar]:
    def kind(inner: Scalar) -> Scalar:
        step = inner.step if inner.step is not None and inner.step >= 1 else Fraction(1)
        if inner.lo is None or inner.hi is None:
            return replace(inner, step=step)
        lo, hi = ends(inner.lo, inner.hi, act)
        return replace(inner, lo=lo, hi=hi, step=step)

    return kind


def _sign(inner: Scalar) -> Scalar:
    lo, hi = inner.limits
    return Scalar(Fraction((lo > 0) - (lo < 0)), Fraction((hi > 0) - (hi < 0)), Fraction(1), inner.nullable)


def _root(inner: Scalar) -> Scalar:
    lo, hi = inner.limits
    nullable = inner.nullable or lo < 0
    if hi > HUGE:
        return Scalar(None, None, nullable=nullable)
    low, high = ends(max(lo, Fraction(0)), max(hi, Fraction(0)), math.sqrt)
    return Scalar(low, high, nullable=nullable)


def least_positive(kind: Scalar) -> Fraction:
    """The least positive value a number of this kind can have: a point of its lattice, or any double."""
    lo, _ = kind.limits
    return lo if lo > 0 else kind.step or MIN_DOUBLE


def _logarithm(inner: Scalar) -> Scalar:
    lo, hi = inner.limits
    if hi <= 0:
        return Scalar(Fraction(0), Fraction(0), nullable=True)
    first = max(min(least_positive(inner), hi), MIN_DOUBLE)
    low, high = (_decimal(end).ln(_DIGITS) for end in (first, max(hi, MIN_DOUBLE)))
    return Scalar(*outward(Fraction(low), Fraction(high)), nullable=inner.nullable or lo <= 0)


def _exponential(inner: Scalar) -> Scalar:
    lo, hi = inner.limits
    nullable = inner.nullable or hi > MAX_EXPONENT
    low, high = (_decimal(max(end, Fraction(-1000))) for end in (lo, min(hi, Fraction(1000))))
    return _fitted(min(low, high).exp(_DIGITS), high.exp(_DIGITS), nullable=nullable)


class Operation(NamedTuple):
    """What a function of one number is: its interval rule, its NumPy function, its SQL, and where it has a value."""

    bounds: Callable[[Scalar], Scalar]
    act: np.ufunc
    sql: str
    domain: tuple[str, float] | None = None  # a comparison and its right side; None: every number
    exact: bool = True  # False: IEEE 754 does not fix the last place, so values are clamped into the interval


OPERATIONS: Final = {
    "abs": Operation(_absolute, np.absolute, "abs({0})"),
    "floor": Operation(_whole(math.floor), np.floor, "floor({0})"),
    "ceil": Operation(_whole(math.ceil), np.ceil, "ceil({0})"),
    "trunc": Operation(_whole(math.trunc), np.trunc, "trunc({0})"),
    "sqrt": Operation(_root, np.sqrt, "sqrt({0})", (">=", 0.0)),
    "ln": Operation(_logarithm, np.log, "ln({0})", (">", 0.0), exact=False),
    "exp": Operation(_exponential, np.exp, "exp({0})", ("<=", MAX_EXPONENT), exact=False),
    "sign": Operation(_sign, np.sign, "CAST(sign({0}) AS DOUBLE)"),
}


def outside(domain: tuple[str, float], values: Floats) -> Truths:
    """Where numbers are not in a function's domain."""
    sign, end = domain
    return ~cast("Truths", COMPARISONS[sign](values, end))


def _applied(writer: SqlWriter, op: str, item: Piece) -> Piece:
    """A function of a number, which is NULL outside the function's domain before the function sees it."""
    operation = OPERATIONS[op]
    if operation.domain is None:
        return joined(operation.sql, item)
    sign, end = operation.domain
    return joined(operation.sql.format(f"CASE WHEN {{0}} {sign} {double(end)} THEN {{0}} END"), writer.named(item))


def _held(writer: SqlWriter, item: Piece, kind: Scalar) -> Piece:
    if kind.lo is None or kind.hi is None:
        return item
    return held_within(writer.named(item), float(kind.lo), float(kind.hi))


def half_away(value: float) -> float:
    """The nearest whole number, halves away from zero."""
    whole = math.floor(abs(value))
    return math.copysign(whole + (abs(value) - whole >= 0.5), value)


@dataclass(frozen=True, slots=True, eq=False)
class Round(RowFn, item="The item"):
    """A number rounded to `digits` decimal places, halves away from zero: round(x * 10^d) / 10^d in doubles."""

    item: RowFn
    digits: int = 0

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if not is_whole(self.digits, -MAX_ROUND_DIGITS, MAX_ROUND_DIGITS):
            raise QuestionError("bad-literal", f"A number is rounded to at most {MAX_ROUND_DIGITS} digits.")

    def unchanged(self, schema: Schema) -> bool:
        """Whether the number is whole to begin with, and no digit of it goes."""
        return self._unchanged(number(self.item, schema))

    def _unchanged(self, inner: Scalar) -> bool:
        return self.digits >= 0 and inner.step is not None and inner.step >= 1

    def rounded(self, value: float) -> float:
        """One double, rounded."""
        if self.digits >= 0:
            return half_away(value * 10.0**self.digits) / 10.0**self.digits
        return half_away(value / 10.0**-self.digits) * 10.0**-self.digits

    def kind(self, schema: Schema) -> Scalar:
        inner = replace(number(self.item, schema), clock=None)
        if self._unchanged(inner):
            return inner
        step = Fraction(1) if self.digits <= 0 else None
        if inner.lo is None or inner.hi is None:
            return Scalar(None, None, step, nullable=True)
        lo, hi = ends(inner.lo, inner.hi, self.rounded)
        return Scalar(lo, hi, step, inner.nullable)

    def cells(self, frame: Frame) -> Cells:
        values, missing = numbers(self.item, frame)
        if self.unchanged(frame.schema):
            return Cells(values, missing)
        scale = 10.0 ** abs(self.digits)
        with np.errstate(all="ignore"):
            scaled = values * scale if self.digits >= 0 else values / scale
            size = np.floor(np.abs(scaled))
            size = size + (np.abs(scaled) - size >= 0.5)
            whole = np.where(scaled < 0, 0.0 - size, size)
            found = whole / scale if self.digits >= 0 else whole * scale
        return Cells(found, missing) if self.kind(frame.schema).bounded else finite(found, missing)

    def sql(self, writer: SqlWriter) -> Piece:
        item = writer.number(self.item)
        if self.unchanged(writer.schema):
            return item
        there, back = ("*", "/") if self.digits >= 0 else ("/", "*")
        scale = double(10.0 ** abs(self.digits))
        scaled = joined(f"({{0}} {there} {scale})", item)
        if self.kind(writer.schema).bounded:
            return joined(f"(round({{0}}) {back} {scale})", scaled)
        return writer.finite(joined(f"(round({{0}}) {back} {scale})", writer.finite(scaled)))


@dataclass(frozen=True, slots=True, eq=False)
class Power(RowFn, item="The item", exponent=figure):
    """A number to a constant power; missing where that is no finite number.

    Up to 16 a whole power is a product, and 1/2 is the square root: the same to the bit everywhere.
    """

    item: RowFn
    exponent: float | int

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if abs(self.exponent) > MAX_POWER:
            raise QuestionError("bad-literal", f"An exponent is at most {MAX_POWER}.")

    @property
    def whole(self) -> int | None:
        """The exponent, where the power is a product or one over a product."""
        return int(self.exponent) if self.signed and abs(self.exponent) <= MAX_PRODUCT_POWER else None

    @property
    def signed(self) -> bool:
        """Whether negative numbers have this power."""
        return self.exponent == int(self.exponent)

    @property
    def root(self) -> bool:
        """Whether this is the square root."""
        return self.exponent == 0.5

    def kind(self, schema: Schema) -> Scalar:
        inner = replace(number(self.item, schema), clock=None)
        if self.root:
            return _root(inner)
        if self.exponent == 0:
            return Scalar(Fraction(1), Fraction(1), Fraction(1), inner.nullable)
        lo, hi = inner.limits
        nullable = inner.nullable or (self.exponent < 0 and lo <= 0 <= hi) or (lo < 0 and not self.signed)
        step = inner.step**self.whole if inner.step is not None and self.whole is not None and self.whole > 0 else None
        found: list[Fraction] = [Fraction(0)] if self.exponent > 0 and lo <= 0 <= hi else []
        for sign, small, large in ((1, lo, hi), (-1, -hi, -lo)):
            if large <= 0 or (sign < 0 and not self.signed):
                continue
            least = small if small > 0 else inner.step or Fraction(0)
            side = self._side(min(least, large), large)
            if side is None:
                return Scalar(None, None, step, nullable=True)
            found += [end * (sign if self.exponent % 2 else 1) for end in side]
        return Scalar(min(found, default=Fraction(0)), max(found, default=Fraction(0)), step, nullable)

    def _side(self, small: Fraction, large: Fraction) -> tuple[Fraction, Fraction] | None:
        """The interval of x^e over positive numbers; None where doubles might overflow."""
        if self.whole is not None:
            low, high = outward(small, large)
            ends_ = sorted(self.product(float(end)) for end in (low, high))
            return None if not ends_[1] <= HUGE else (Fraction(ends_[0]), Fraction(ends_[1]))
        if small == 0 and self.exponent < 0:
            return None
        power = _decimal(Fraction(self.exponent))
        first, last = sorted(
            _DIGITS.power(_decimal(end), power) if end else decimal.Decimal(0) for end in (small, large)
        )
        kind = _fitted(first, last, nullable=False)
        return None if kind.lo is None or kind.hi is None else (kind.lo, kind.hi)

    def product(self, value: float) -> float:
        """A whole power of one double, one rounded product after another."""
        found, count = value, abs(self.whole or 0)
        for _ in range(count - 1):
            found *= value
        if count == 0:
            return 1.0
        if self.exponent > 0:
            return found
        return 1.0 / found if found else math.inf

    def cells(self, frame: Frame) -> Cells:
        values, missing = numbers(self.item, frame)
        kind = self.kind(frame.schema)
        with np.errstate(all="ignore"):
            if self.exponent == 0:
                return Cells(np.ones(frame.size), missing)
            if self.root:
                none = outside((">=", 0.0), values)
                return Cells(np.sqrt(np.where(none, 1.0, values)), union(missing, none))
            if self.whole is not None:
                found = values
                for _ in range(abs(self.whole) - 1):
                    found = found * values
                if self.whole > 0 and kind.bounded:
                    return Cells(found, missing)
                return finite(found if self.whole > 0 else 1.0 / found, missing)
            none = ~(np.abs(values) > 0) if self.exponent < 0 else np.zeros(frame.size, dtype=np.bool_)
            none = none if self.signed else none | ~(values >= 0)
            found = np.power(np.where(none, 1.0, values), float(self.exponent))
        held = finite(found, union(missing, none))
        return Cells(clamped(held.values.astype(np.float64, copy=False), kind), held.missing)

    def sql(self, writer: SqlWriter) -> Piece:
        item = writer.named(writer.number(self.item))
        kind = self.kind(writer.schema)
        if self.exponent == 0:
            return joined("CASE WHEN {0} IS NOT NULL THEN 1e0 END", item)
        if self.root:
            return _applied(writer, "sqrt", item)
        if self.whole is not None:
            product = " * ".join(["{0}"] * abs(self.whole))
            if self.whole > 0:
                found = joined(f"({product})", item)
                return found if kind.bounded else writer.finite(found)
            return writer.finite(joined(f"(1e0 / ({product}))", item))
        domain = [] if self.signed else ["{0} >= 0e0"]
        domain += ["{0} <> 0e0"] if self.exponent < 0 else []
        base = f"CASE WHEN {' AND '.join(domain)} THEN {{0}} END" if domain else "{0}"
        found = joined(f"pow({base}, {double(float(self.exponent))})", item)
        return _held(writer, writer.finite(found), kind)


@dataclass(frozen=True, slots=True, eq=False)
class Modulo(RowFn, left="The item", right=figure):
    """The remainder of a number by a constant, of the number's sign; exact in doubles."""

    left: RowFn
    right: float | int

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if self.right == 0:
            raise QuestionError("bad-literal", "A remainder by zero has no value.")

    def kind(self, schema: Schema) -> Scalar:
        inner = number(self.left, schema)
        size = abs(Fraction(float(self.right)))
        unit = Fraction(size.numerator & -size.numerator, size.denominator)  # its lowest bit
        step = None if inner.step is None else min(inner.step, unit)
        lo, hi = inner.limits
        if -size < lo and hi < size:
            return replace(inner, clock=None)
        most = size if step is None else size - step
        low = Fraction(0) if lo >= 0 else -most if lo <= -size else max(lo, -most)
        high = Fraction(0) if hi <= 0 else most if hi >= size else min(hi, most)
        return Scalar(low, high, step, inner.nullable)

    def cells(self, frame: Frame) -> Cells:
        values, missing = numbers(self.left, frame)
        with np.errstate(all="ignore"):
            return Cells(np.fmod(values, float(self.right)), missing)

    def sql(self, writer: SqlWriter) -> Piece:
        return joined(f"({{0}} % {double(float(self.right))})", writer.number(self.left))
