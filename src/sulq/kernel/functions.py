"""The closed table of functions of one row: what each gives for what it is given, and that it cannot fail there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sulq.kernel.facts import Refused
from sulq.kernel.numbers import INF, INTEGERS, TEXT, TRUTH, Bound, Value, as_double, double, hull, integer, widest
from sulq.kernel.polynomials import add, multiply

CALENDAR: Final = 2**62  # microseconds from 1970 on either side, well within DuckDB's timestamps
_LENGTH: Final = integer("BIGINT", 0, 2**32)  # of a text
_TEXTS: Final = ("VARCHAR", "VARCHAR", "VARCHAR")
PARTS: Final = {  # of date_part, within the calendar
    "century": (-3000, 3000), "day": (1, 31), "decade": (-30_000, 30_000), "dow": (0, 6), "doy": (1, 366),
    "hour": (0, 23), "isodow": (1, 7), "isoyear": (-300_000, 300_000), "microseconds": (0, 60_999_999),
    "minute": (0, 59), "month": (1, 12), "quarter": (1, 4), "second": (0, 60), "week": (1, 53),
    "year": (-300_000, 300_000),
}  # fmt: skip
_MILLENNIUM: Final = 1001 * 366 * 86_400_000_000  # microseconds: no period is longer
PERIODS: Final = dict.fromkeys(("day", "hour", "minute", "month", "quarter", "second", "week", "year"), 0) | (
    dict.fromkeys(("century", "decade", "millennium"), _MILLENNIUM)  # before Christ these begin after their moments
)
Constants = list[str | None]  # the text of a literal, "" where no column is used, None otherwise
Function = Callable[[list[Value], Constants], Value]


def _arithmetic(sign: str) -> Function:
    def work(items: list[Value], _: Constants) -> Value:
        left, right = _two(items)
        null, bounded, kept = left.null or right.null, left.bounded and right.bounded, None
        a, b = left.polynomial, right.polynomial
        if a is not None and b is not None:
            kept = multiply(a, b) if sign == "*" else add(a, b, 1 if sign == "+" else -1)
        if sign == "*":
            ends = [x * y for x in (left.low, left.high) for y in (right.low, right.high)] if bounded else [-INF, INF]
            low, high = min(ends), max(ends)
        elif sign == "+":
            low, high = left.low + right.low, left.high + right.high
        else:
            low, high = left.low - right.high, left.high - right.low
        if left.type == "DOUBLE":  # infinite ones make NaN of each other, bounded ones do not
            found = double(low, high, whole=left.whole and right.whole, nan=not bounded, null=null)
            kept = kept if found.whole and found.exact else None
        else:
            found = integer(widest({left.type, right.type}), low, high, null=null)
            if not found.fits(found.type):
                raise Refused(f"arithmetic that may leave {found.type}")
        return found if kept is None else replace(found, polynomial=kept, needs=left.needs | right.needs)

    return work


def _two(items: list[Value]) -> tuple[Value, Value]:
    """Two numbers of one kind: DuckDB makes doubles of both where one is."""
    if len(items) != 2 or not all(item.number for item in items):
        raise Refused("arithmetic on other than two numbers")
    left, right = items
    return (as_double(left), as_double(right)) if "DOUBLE" in (left.type, right.type) else (left, right)


def _divided(items: list[Value], _: Constants) -> Value:
    left, right = (as_double(item) for item in items)
    null = left.null or right.null
    if not (left.bounded and right.bounded) or right.low <= 0 <= right.high:
        return double(-INF, INF, nan=True, null=null)
    ends = [Fraction(a) / Fraction(b) for a in (left.low, left.high) for b in (right.low, right.high)]
    return double(min(ends), max(ends), null=null)


def _divisor(value: Value) -> Fraction:
    """The constant that is divided by."""
    if not value.bounded or value.low != value.high or value.low == 0 or value.null:
        raise Refused("a division by what is no constant, or by 0")
    return Fraction(value.low)


def _quotient(items: list[Value], _: Constants) -> Value:
    left, right = items
    by = _divisor(right)
    if not {left.type, right.type} <= INTEGERS.keys() or by < 0:
        raise Refused("a division of what is no integer, or by a negative one")
    low, high = math.floor(Fraction(left.low) / by), math.trunc(Fraction(left.high) / by)
    return integer(widest({left.type, right.type}), low, high, null=left.null)


def _modulo(items: list[Value], _: Constants) -> Value:
    left, right = _two(items)
    by = abs(_divisor(right))
    if left.type in INTEGERS and right.low < 0:
        raise Refused("an integer modulo a negative one, which fails for the least")
    whole = left.whole and by.denominator == 1
    kind = widest({left.type, right.type})
    return Value(kind, 0 if left.low >= 0 else -by, by, whole, nan=not left.bounded, null=left.null)


def _double(items: list[Value]) -> Value:
    """The one double given: what DuckDB makes of an integer here depends on the function."""
    if len(items) != 1 or items[0].type != "DOUBLE":
        raise Refused("a function of a double on other things")
    return items[0]


def _absolute(items: list[Value], _: Constants) -> Value:
    item = _double(items)
    low, high = max(0, item.low, -item.high), max(-item.low, item.high)
    return Value("DOUBLE", low, high, item.whole, item.nan, item.null)


def _rounding(down: Callable[[Bound], int], up: Callable[[Bound], int]) -> Function:
    """A function between two roundings to whole numbers."""

    def work(items: list[Value], _: Constants) -> Value:
        item = _double(items)
        low = down(item.low) if item.low > -INF else -INF
        high = up(item.high) if item.high < INF else INF
        return double(low, high, whole=True, nan=item.nan, null=item.null)

    return work


def _transcendental(allowed: Callable[[Bound], bool], many: int = 1) -> Function:
    """sqrt, ln, exp and pow: no interval is kept, since their last digits are the machine's."""

    def work(items: list[Value], _: Constants) -> Value:
        numbers = [as_double(item) for item in items]
        if len(items) != many or not allowed(numbers[0].low):
            raise Refused("a function of what may lie outside its domain")
        return double(-INF, INF, nan=True, null=any(item.null for item in items))

    return work


def _extreme(items: list[Value], _: Constants) -> Value:
    """Least and greatest, which skip what is missing."""
    found = hull(items)
    if not found.number:
        raise Refused("least or greatest of what are no numbers")
    return replace(found, null=all(item.null for item in items))


def _plain(found: Value, *types: str) -> Function:
    """A function that gives the same for all values of such types, and NULL where one is missing."""

    def work(items: list[Value], _: Constants) -> Value:
        if tuple(item.type for item in items) != types:
            raise Refused("a function of other types")
        return replace(found, null=any(item.null for item in items))

    return work


def _part_of(items: list[Value], constants: Constants) -> Value:
    """substr; DuckDB refuses places beyond 32 bits."""
    places = [item.type for item in items[1:] if item.type in INTEGERS and item.within(1 - 2**31, 2**31 - 1)]
    if not 1 <= len(places) <= 2:
        raise Refused("substr at places beyond 32 bits")
    return _plain(TEXT, "VARCHAR", *places)(items, constants)


def _pattern(items: list[Value], constants: Constants) -> Value:
    if len(items) != 3 or constants[1] is None or constants[2] != "s":
        raise Refused("a pattern that a row makes, or with other options")
    return _plain(TRUTH, *_TEXTS)(items, constants)


def _moment(items: list[Value], _: Constants) -> Value:
    (item,) = items
    if item.type not in INTEGERS or not item.within(-CALENDAR, CALENDAR):
        raise Refused("a moment outside the calendar")
    return Value("TIMESTAMP", item.low, item.high, null=item.null)


def _date_part(items: list[Value], constants: Constants) -> Value:
    _, item = items
    if item.type != "TIMESTAMP" or constants[0] not in PARTS:
        raise Refused("a part of a date that is not listed")
    return integer("BIGINT", *PARTS[constants[0]], null=item.null)


def _date_trunc(items: list[Value], constants: Constants) -> Value:
    """The beginning of a period."""
    _, item = items
    if item.type != "TIMESTAMP" or constants[0] not in PERIODS:
        raise Refused("a period that is not listed")
    return replace(item, low=item.low - _MILLENNIUM, high=item.high + PERIODS[constants[0]])


def _microseconds(items: list[Value], _: Constants) -> Value:
    (item,) = items
    if item.type != "TIMESTAMP":
        raise Refused("microseconds of what is no moment")
    return integer("BIGINT", item.low, item.high, null=item.null)


FUNCTIONS: Final[dict[str, Function]] = {
    "+": _arithmetic("+"), "-": _arithmetic("-"), "*": _arithmetic("*"), "/": _divided, "//": _quotient, "%": _modulo,
    "abs": _absolute, "ceil": _rounding(math.ceil, math.ceil), "floor": _rounding(math.floor, math.floor),
    "round": _rounding(math.floor, math.ceil), "trunc": _rounding(math.floor, math.ceil),
    "sqrt": _transcendental(lambda low: low >= 0), "ln": _transcendental(lambda low: low > 0),
    "exp": _transcendental(lambda _: True), "pow": _transcendental(lambda _: True, 2),
    "least": _extreme, "greatest": _extreme,
    "sign": _plain(integer("TINYINT", -1, 1), "DOUBLE"), "isfinite": _plain(TRUTH, "DOUBLE"),
    "substr": _part_of, "regexp_matches": _pattern,
    "make_timestamp": _moment, "date_part": _date_part, "date_trunc": _date_trunc, "epoch_us": _microseconds,
    **dict.fromkeys(("lower", "upper"), _plain(TEXT, *_TEXTS[:1])), "translate": _plain(TEXT, *_TEXTS),
    **dict.fromkeys(("trim", "ltrim", "rtrim", "||"), _plain(TEXT, *_TEXTS[:2])),
    **dict.fromkeys(("length", "strlen"), _plain(_LENGTH, *_TEXTS[:1])), "instr": _plain(_LENGTH, *_TEXTS[:2]),
    **dict.fromkeys(("starts_with", "suffix", "contains", "~~"), _plain(TRUTH, *_TEXTS[:2])),
}  # fmt: skip
"""Every function that may stand in a statement over rows."""
