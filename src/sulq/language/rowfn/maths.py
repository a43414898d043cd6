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
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.language.kinds import HUGE, Cells, Floats, Frame, Scalar, Truths, union
from sulq.language.rowfn.scalar import OPERATORS, RowFn, check, describe, figure, number, numbers, outward

OPERATIONS: Final = ("abs", "floor", "ceil", "trunc", "sqrt", "ln", "exp", "sign")
LARGEST_EXP: Final = 709  # exp of more is missing; of this it is an ordinary double
MOST_DIGITS: Final = 15
WHOLE_POWERS: Final = 16  # so far a power is a product, the same to the bit everywhere
LARGEST_POWER: Final = 1000
SMALLEST: Final = Fraction(5e-324)
LARGEST: Final = Fraction(1.7976931348623157e308)
_DIGITS: Final = decimal.Context(
    prec=50, rounding=decimal.ROUND_HALF_EVEN, Emin=-999_999, Emax=999_999, traps=[decimal.InvalidOperation]
)


def ends(lo: Fraction, hi: Fraction, act: Callable[[float], float]) -> tuple[Fraction, Fraction]:
    """The interval of an increasing function of doubles, by the function itself."""
    low, high = outward(lo, hi)
    return Fraction(act(float(low))), Fraction(act(float(high)))


def limits(kind: Scalar) -> tuple[Fraction, Fraction]:
    """The interval of a number; what has no bounds is still a finite double."""
    return (-LARGEST if kind.lo is None else kind.lo), (LARGEST if kind.hi is None else kind.hi)


def _decimal(value: Fraction) -> decimal.Decimal:
    return _DIGITS.divide(decimal.Decimal(value.numerator), decimal.Decimal(value.denominator))


def _fitted(low: decimal.Decimal, high: decimal.Decimal, *, nullable: bool) -> Scalar:
    """An interval rounded outwards, or none where doubles might overflow."""
    if not high.is_finite() or high > 10**90:
        return Scalar(None, None, nullable=True)
    tiny = decimal.Decimal(10) ** -400  # less is no double: it underflows to zero
    lo, hi = (Fraction(0) if abs(end) < tiny else Fraction(end) for end in (low, high))
    return Scalar(*outward(lo, max(hi, SMALLEST) if high > 0 else hi), nullable=nullable)


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
class Maths(RowFn):
    """abs, floor, ceil, trunc, sign; sqrt and ln, missing where the number is not in their domain; exp."""

    op: str
    item: RowFn

    def __post_init__(self) -> None:
        if self.op not in OPERATIONS:
            raise QuestionError("bad-question", f"A function is one of {', '.join(OPERATIONS)}.")
        check(self.item, "The item")

    def parts(self) -> tuple[RowFn, ...]:
        return (self.item,)

    def kind(self, schema: Schema) -> Scalar:
        return _KINDS[self.op](replace(number(self.item, schema), clock=None))

    def cells(self, frame: Frame) -> Cells:
        values, missing = numbers(self.item, frame)
        with np.errstate(all="ignore"):  # of a missing cell: no warning may tell that there is one
            if self.op == "sqrt":
                none = ~(values >= 0)
                return Cells(np.sqrt(np.where(none, 0.0, values)), union(missing, none))
            if self.op in ("ln", "exp"):
                none = ~(values > 0) if self.op == "ln" else ~(values <= LARGEST_EXP)
                act = np.log if self.op == "ln" else np.exp
                found = act(np.where(none, 1.0, values))
                return Cells(clamped(found, self.kind(frame.schema)), union(missing, none))
            return Cells(_EXACT[self.op](values), missing)


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
    lo, hi = limits(inner)
    return Scalar(Fraction((lo > 0) - (lo < 0)), Fraction((hi > 0) - (hi < 0)), Fraction(1), inner.nullable)


def _root(inner: Scalar) -> Scalar:
    lo, hi = limits(inner)
    nullable = inner.nullable or lo < 0
    if hi > HUGE:
        return Scalar(None, None, nullable=nullable)
    low, high = ends(max(lo, Fraction(0)), max(hi, Fraction(0)), math.sqrt)
    return Scalar(low, high, nullable=nullable)


def least_positive(kind: Scalar) -> Fraction:
    """The least positive value a number of this kind can have: a point of its lattice, or any double."""
    lo, _ = limits(kind)
    return lo if lo > 0 else kind.step or SMALLEST


def _logarithm(inner: Scalar) -> Scalar:
    lo, hi = limits(inner)
    if hi <= 0:
        return Scalar(Fraction(0), Fraction(0), nullable=True)
    first = max(min(least_positive(inner), hi), SMALLEST)
    low, high = (_decimal(end).ln(_DIGITS) for end in (first, max(hi, SMALLEST)))
    return Scalar(*outward(Fraction(low), Fraction(high)), nullable=inner.nullable or lo <= 0)


def _exponential(inner: Scalar) -> Scalar:
    lo, hi = limits(inner)
    nullable = inner.nullable or hi > LARGEST_EXP
    low, high = (_decimal(max(end, Fraction(-1000))) for end in (lo, min(hi, Fraction(1000))))
    return _fitted(min(low, high).exp(_DIGITS), high.exp(_DIGITS), nullable=nullable)


_EXACT: Final[dict[str, Callable[[Floats], Floats]]] = {
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "sign": np.sign,
}
_KINDS: Final[dict[str, Callable[[Scalar], Scalar]]] = {
    "abs": _absolute,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "trunc": _whole(math.trunc),
    "sqrt": _root,
    "ln": _logarithm,
    "exp": _exponential,
    "sign": _sign,
}


def half_away(value: float) -> float:
    """The nearest whole number, halves away from zero."""
    whole = math.floor(abs(value))
    return math.copysign(whole + (abs(value) - whole >= 0.5), value)


@dataclass(frozen=True, slots=True, eq=False)
class Round(RowFn):
    """A number rounded to `digits` decimal places, halves away from zero: round(x * 10^d) / 10^d in doubles."""

    item: RowFn
    digits: int = 0

    def __post_init__(self) -> None:
        check(self.item, "The item")
        if isinstance(self.digits, bool) or not isinstance(self.digits, int) or abs(self.digits) > MOST_DIGITS:
            raise QuestionError("bad-literal", f"A number is rounded to at most {MOST_DIGITS} digits.")

    def parts(self) -> tuple[RowFn, ...]:
        return (self.item,)

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
            whole = np.copysign(size + (np.abs(scaled) - size >= 0.5), scaled)
            found = whole / scale if self.digits >= 0 else whole * scale
        return Cells(found, missing) if self.kind(frame.schema).bounded else finite(found, missing)


@dataclass(frozen=True, slots=True, eq=False)
class Power(RowFn):
    """A number to a constant power; missing where that is no finite number.

    Up to 16 a whole power is a product, and 1/2 is the square root: the same to the bit everywhere.
    """

    item: RowFn
    exponent: float | int

    def __post_init__(self) -> None:
        check(self.item, "The item")
        object.__setattr__(self, "exponent", figure(self.exponent))
        if abs(self.exponent) > LARGEST_POWER:
            raise QuestionError("bad-literal", f"An exponent is at most {LARGEST_POWER}.")

    def parts(self) -> tuple[RowFn, ...]:
        return (self.item,)

    @property
    def whole(self) -> int | None:
        """The exponent, where the power is a product or one over a product."""
        return int(self.exponent) if self.signed and abs(self.exponent) <= WHOLE_POWERS else None

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
        lo, hi = limits(inner)
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
                none = ~(values >= 0)
                return Cells(np.sqrt(np.where(none, 0.0, values)), union(missing, none))
            if self.whole is not None:
                found = values
                for _ in range(abs(self.whole) - 1):
                    found = found * values
                return finite(found if self.whole > 0 else 1.0 / found, missing)
            none = ~(np.abs(values) > 0) if self.exponent < 0 else np.zeros(frame.size, dtype=np.bool_)
            none = none if self.signed else none | ~(values >= 0)
            found = np.power(np.where(none, 1.0, values), float(self.exponent))
        held = finite(found, union(missing, none))
        return Cells(clamped(held.values.astype(np.float64, copy=False), kind), held.missing)


@dataclass(frozen=True, slots=True, eq=False)
class Modulo(RowFn):
    """The remainder of a number by a constant, of the number's sign; exact in doubles."""

    left: RowFn
    right: float | int

    def __post_init__(self) -> None:
        check(self.left, "The item")
        object.__setattr__(self, "right", figure(self.right))
        if self.right == 0:
            raise QuestionError("bad-literal", "A remainder by zero has no value.")

    def parts(self) -> tuple[RowFn, ...]:
        return (self.left,)

    def kind(self, schema: Schema) -> Scalar:
        inner = number(self.left, schema)
        size = abs(Fraction(float(self.right)))
        unit = Fraction(size.numerator & -size.numerator, size.denominator)  # its lowest bit
        step = None if inner.step is None else min(inner.step, unit)
        lo, hi = limits(inner)
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


@dataclass(frozen=True, slots=True, eq=False)
class Least(RowFn):
    """The least of several numbers, whatever is missing left aside."""

    items: tuple[RowFn, ...]

    def __post_init__(self) -> None:
        _several(self.items)

    def parts(self) -> tuple[RowFn, ...]:
        return self.items

    def kind(self, schema: Schema) -> Scalar:
        kinds = _alike(self.items, schema)
        if not all(kind.bounded for kind in kinds):
            return _open(kinds)
        sure = [limits(kind)[1] for kind in kinds if not kind.nullable]
        highs = [limits(kind)[1] for kind in kinds]
        return replace(_open(kinds), lo=min(limits(kind)[0] for kind in kinds), hi=min([max(highs), *sure]))

    def cells(self, frame: Frame) -> Cells:
        return _extreme(self.items, frame, np.minimum)


@dataclass(frozen=True, slots=True, eq=False)
class Greatest(RowFn):
    """The greatest of several numbers, whatever is missing left aside."""

    items: tuple[RowFn, ...]

    def __post_init__(self) -> None:
        _several(self.items)

    def parts(self) -> tuple[RowFn, ...]:
        return self.items

    def kind(self, schema: Schema) -> Scalar:
        kinds = _alike(self.items, schema)
        if not all(kind.bounded for kind in kinds):
            return _open(kinds)
        sure = [limits(kind)[0] for kind in kinds if not kind.nullable]
        lows = [limits(kind)[0] for kind in kinds]
        return replace(_open(kinds), lo=max([min(lows), *sure]), hi=max(limits(kind)[1] for kind in kinds))

    def cells(self, frame: Frame) -> Cells:
        return _extreme(self.items, frame, np.maximum)


def _several(items: tuple[RowFn, ...]) -> None:
    if not items:
        raise QuestionError("bad-question", "The least or greatest needs at least one number.")
    for item in items:
        check(item, "An item")


def _alike(items: tuple[RowFn, ...], schema: Schema) -> list[Scalar]:
    kinds = [number(item, schema) for item in items]
    if len({kind.clock for kind in kinds}) > 1:
        raise QuestionError("wrong-kind", f"{describe(items[0])} and others mix dates and numbers.")
    return kinds


def _open(kinds: list[Scalar]) -> Scalar:
    """A number that is one of several: without bounds, missing only where all are."""
    steps = [kind.step for kind in kinds if kind.step is not None]
    step = min(steps) if len(steps) == len(kinds) else None
    return Scalar(None, None, step, all(kind.nullable for kind in kinds), kinds[0].clock)


def _extreme(items: tuple[RowFn, ...], frame: Frame, act: Callable[[Floats, Floats], Floats]) -> Cells:
    found, missing = numbers(items[0], frame)
    for item in items[1:]:
        values, none = numbers(item, frame)
        best = act(found, values)
        best = best if missing is None else np.where(missing, values, best)
        best = best if none is None else np.where(none, found, best)
        found, missing = best, None if missing is None or none is None else missing & none
    return Cells(found, missing)


OPERATORS.update({"%": Modulo, "**": Power, "round": Round})
OPERATORS.update({"abs": functools.partial(Maths, "abs"), "floor": functools.partial(Maths, "floor")})
