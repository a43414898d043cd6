"""The closed table of functions of one row: what each gives for what it is given, and that it cannot fail there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sulq.kernel import polynomials
from sulq.kernel.facts import Refused
from sulq.kernel.numbers import EXACT, INTEGERS, TRUTH, Bound, Value, as_double, double, hull

CALENDAR: Final = 2**62  # microseconds from 1970 on either side, well within DuckDB's timestamps
LONGEST_TEXT: Final = 2**32
MILLENNIUM: Final = 1001 * 366 * 86_400_000_000  # microseconds: no period of date_trunc is longer
PARTS: Final = {  # of date_part, within the calendar
    "century": (-3000, 3000), "day": (1, 31), "decade": (-30_000, 30_000), "dow": (0, 6), "doy": (1, 366),
    "hour": (0, 23), "isodow": (1, 7), "isoyear": (-300_000, 300_000), "microseconds": (0, 60_999_999),
    "minute": (0, 59), "month": (1, 12), "quarter": (1, 4), "second": (0, 60), "week": (1, 53),
    "year": (-300_000, 300_000),
}  # fmt: skip
PERIODS: Final = (
    "century", "day", "decade", "hour", "millennium", "minute", "month", "quarter", "second", "week", "year",
)  # fmt: skip
Constants = tuple[str | None, ...]  # the text of a literal, "" where no column is used, None otherwise
Function = Callable[[list[Value], Constants], Value]


def _arithmetic(sign: str) -> Function:
    def work(items: list[Value], _: Constants) -> Value:
        if len(items) == 1 and sign == "-":
            items = [replace(items[0], low=Fraction(0), high=Fraction(0), whole=True, nan=False, null=False,
                             polynomial={}, needs=frozenset()), items[0]]  # fmt: skip
        left, right = _two(items)
        ends = _ends(sign, left, right)
        kept = None
        if left.polynomial is not None and right.polynomial is not None:
            kept = (
                polynomials.multiply(left.polynomial, right.polynomial)
                if sign == "*"
                else polynomials.add(left.polynomial, right.polynomial, 1 if sign == "+" else -1)
            )
        return _result(left, right, *ends, kept)

    return work


def _two(items: list[Value]) -> tuple[Value, Value]:
    """Two numbers of one kind: DuckDB makes doubles of both where one is."""
    left, right = items
    if "DOUBLE" in (left.type, right.type) or "NULL" in (left.type, right.type):
        return as_double(left), as_double(right)
    if not (left.number and right.number):
        raise Refused(f"arithmetic on {left.type} and {right.type}")
    return left, right


def _ends(sign: str, left: Value, right: Value) -> tuple[Bound, Bound]:
    if sign == "*":
        if left.low is None or left.high is None or right.low is None or right.high is None:
            return None, None
        products = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
        return min(products), max(products)
    if sign == "-":
        right = replace(
            right, low=None if right.high is None else -right.high, high=None if right.low is None else -right.low
        )
    low = None if left.low is None or right.low is None else left.low + right.low
    high = None if left.high is None or right.high is None else left.high + right.high
    return low, high


def _result(left: Value, right: Value, low: Bound, high: Bound, kept: polynomials.Polynomial | None) -> Value:
    null, needs = left.null or right.null, left.needs | right.needs
    if left.type == "DOUBLE":
        # Infinite doubles make NaN of each other; bounded ones do not.
        nan = left.nan or right.nan or None in (left.low, left.high, right.low, right.high)
        found = double(low, high, whole=left.whole and right.whole, nan=nan, null=null)
        exact = found.whole and found.within(-EXACT, EXACT)
        return replace(found, polynomial=kept, needs=needs) if exact and kept is not None else found
    wider = _wider(left, right)
    found = Value(
        wider, low, high, whole=True, null=null, polynomial=kept, needs=needs if kept is not None else frozenset()
    )
    if not found.within(-(2 ** INTEGERS[wider]), 2 ** INTEGERS[wider] - 1):
        raise Refused(f"arithmetic that may leave {wider}")
    return found


def _divided(items: list[Value], _: Constants) -> Value:
    left, right = (as_double(item) for item in items)
    null = left.null or right.null
    if (
        not (left.bounded and right.bounded)
        or left.low is None
        or left.high is None
        or right.low is None
        or right.high is None
    ):
        return double(None, None, nan=True, null=null)
    if right.low <= 0 <= right.high:
        return double(None, None, nan=True, null=null)
    ends = [a / b for a in (left.low, left.high) for b in (right.low, right.high)]
    return double(min(ends), max(ends), null=null)


def _divisor(value: Value) -> Fraction:
    """The constant that is divided by."""
    if not value.bounded or value.low != value.high or value.low is None or value.low == 0 or value.null:
        raise Refused("a division by what is no constant, or by 0")
    return value.low


def _quotient(items: list[Value], _: Constants) -> Value:
    left, right = items
    by = _divisor(right)
    if not {left.type, right.type} <= INTEGERS.keys() or left.low is None or left.high is None or by < 0:
        raise Refused("a division of what is no integer")
    low, high = math.floor(left.low / by), math.trunc(left.high / by)
    return Value(_wider(left, right), Fraction(low), Fraction(high), whole=True, null=left.null)


def _modulo(items: list[Value], _: Constants) -> Value:
    left, right = _two(items)
    by = abs(_divisor(right))
    if left.type in INTEGERS and right.low != by:
        raise Refused("an integer modulo a negative one, which fails for the least")
    low = Fraction(0) if left.low is not None and left.low >= 0 else -by
    whole = left.whole and by.denominator == 1
    return Value(_wider(left, right), low, by, whole, nan=not left.bounded, null=left.null)


def _wider(left: Value, right: Value) -> str:
    return "DOUBLE" if left.type == "DOUBLE" else max(left.type, right.type, key=lambda name: INTEGERS[name])


def _absolute(items: list[Value], _: Constants) -> Value:
    (item,) = items
    if not item.number or (
        item.type in INTEGERS and not item.within(1 - 2 ** INTEGERS[item.type], 2 ** INTEGERS[item.type])
    ):
        raise Refused("abs of what may have none")
    if item.low is None or item.high is None:
        return Value("DOUBLE", Fraction(0), None, item.whole, item.nan, item.null)
    least = Fraction(0) if item.low <= 0 <= item.high else min(abs(item.low), abs(item.high))
    return Value(item.type, least, max(abs(item.low), abs(item.high)), item.whole, item.nan, item.null)


def _rounding(items: list[Value], _: Constants) -> Value:
    """floor, ceil, round and trunc: all are between the numbers rounded down and up."""
    (item,) = items
    if item.type != "DOUBLE":
        raise Refused("an integer that is rounded, which may stay one")
    low = None if item.low is None else Fraction(math.floor(item.low))
    high = None if item.high is None else Fraction(math.ceil(item.high))
    return double(low, high, whole=True, nan=item.nan, null=item.null)


def _floor(items: list[Value], constants: Constants) -> Value:
    found = _rounding(items, constants)
    high = as_double(items[0]).high
    return replace(found, high=None if high is None else Fraction(math.floor(high)))


def _sign(items: list[Value], _: Constants) -> Value:
    if not items[0].number:
        raise Refused("the sign of what is no number")
    return Value("TINYINT", Fraction(-1), Fraction(1), whole=True, null=items[0].null)


def _transcendental(least: Fraction | None, *, open_: bool = False) -> Function:
    """sqrt, ln, exp and pow: no interval is kept, since their last digits are the machine's; `least`: of the domain."""

    def work(items: list[Value], _: Constants) -> Value:
        numbers = [as_double(item) for item in items]
        low = numbers[0].low
        if least is not None and (low is None or low < least or (open_ and low == least)):
            raise Refused("a function of what may lie outside its domain")
        return double(None, None, nan=True, null=any(item.null for item in numbers))

    return work


def _extreme(items: list[Value], _: Constants) -> Value:
    """Least and greatest, which skip what is missing."""
    found = hull(items)
    if not found.number:
        raise Refused("least or greatest of what are no numbers")
    return replace(found, null=all(item.null for item in items))


def _finite(items: list[Value], _: Constants) -> Value:
    return replace(TRUTH, null=as_double(items[0]).null)


def _of_texts(found: Value, least: int) -> Function:
    """A function of so many texts."""

    def work(items: list[Value], _: Constants) -> Value:
        if len(items) != least or any(item.type not in ("VARCHAR", "NULL") for item in items):
            raise Refused("a function of texts on other things")
        return replace(found, null=any(item.null for item in items))

    return work


def _part_of(items: list[Value], _: Constants) -> Value:
    """substr; DuckDB refuses places beyond 32 bits."""
    places = all(item.type in INTEGERS and item.within(1 - 2**31, 2**31 - 1) for item in items[1:])
    if not 2 <= len(items) <= 3 or items[0].type not in ("VARCHAR", "NULL") or not places:
        raise Refused("substr at places beyond 32 bits")
    return Value("VARCHAR", null=any(item.null for item in items))


def _pattern(items: list[Value], constants: Constants) -> Value:
    if len(items) != 3 or constants[1] is None or constants[2] != "s":
        raise Refused("a pattern with other options")
    return _of_texts(TRUTH, 3)(items, constants)


def _moment(items: list[Value], _: Constants) -> Value:
    (item,) = items
    if item.type not in INTEGERS or not item.within(-CALENDAR, CALENDAR):
        raise Refused("a moment outside the calendar")
    return Value("TIMESTAMP", item.low, item.high, null=item.null)


def _of_moment(items: list[Value], constants: Constants) -> Value:
    """date_part, whose names have an interval each, and date_trunc: the beginning of a period."""
    name = constants[0] or ""
    if len(items) != 2 or items[1].type not in ("TIMESTAMP", "NULL") or name not in (*PARTS, *PERIODS):
        raise Refused("a part of a date that is not listed")
    return items[1]


def _date_part(items: list[Value], constants: Constants) -> Value:
    item, ends = _of_moment(items, constants), PARTS.get(constants[0] or "")
    if ends is None:
        raise Refused("a part of a date that is not listed")
    return Value("BIGINT", Fraction(ends[0]), Fraction(ends[1]), whole=True, null=item.null)


def _date_trunc(items: list[Value], constants: Constants) -> Value:
    item = _of_moment(items, constants)
    if constants[0] not in PERIODS:
        raise Refused("a period that is not listed")
    if item.low is None or item.high is None:
        raise Refused("a period of no moment")
    later = MILLENNIUM if constants[0] in ("decade", "century", "millennium") else 0  # years before Christ
    return Value("TIMESTAMP", item.low - MILLENNIUM, item.high + later, null=item.null)


def _microseconds(items: list[Value], _: Constants) -> Value:
    (item,) = items
    if item.type != "TIMESTAMP" or item.low is None or item.high is None:
        raise Refused("microseconds of what is no moment")
    return Value("BIGINT", item.low, item.high, whole=True, null=item.null)


def list_extract(listed: list[Value], place: Value) -> Value:
    """A constant of a list, NULL beyond its ends."""
    if place.type not in INTEGERS:
        raise Refused("a list read at what is no integer")
    return replace(hull(listed), null=True)


_TEXT: Final = Value("VARCHAR")
_LENGTH: Final = Value("BIGINT", Fraction(0), Fraction(LONGEST_TEXT), whole=True)
FUNCTIONS: Final[dict[str, Function]] = {
    "+": _arithmetic("+"), "-": _arithmetic("-"), "*": _arithmetic("*"), "/": _divided, "//": _quotient, "%": _modulo,
    "abs": _absolute, "ceil": _rounding, "floor": _floor, "round": _rounding, "trunc": _rounding, "sign": _sign,
    "sqrt": _transcendental(Fraction(0)), "ln": _transcendental(Fraction(0), open_=True), "exp": _transcendental(None),
    "pow": _transcendental(None), "least": _extreme, "greatest": _extreme, "isfinite": _finite,
    "lower": _of_texts(_TEXT, 1), "upper": _of_texts(_TEXT, 1), "trim": _of_texts(_TEXT, 2),
    "ltrim": _of_texts(_TEXT, 2), "rtrim": _of_texts(_TEXT, 2), "translate": _of_texts(_TEXT, 3),
    "||": _of_texts(_TEXT, 2), "substr": _part_of, "length": _of_texts(_LENGTH, 1), "strlen": _of_texts(_LENGTH, 1),
    "instr": _of_texts(_LENGTH, 2), "starts_with": _of_texts(TRUTH, 2), "suffix": _of_texts(TRUTH, 2),
    "contains": _of_texts(TRUTH, 2), "~~": _of_texts(TRUTH, 2), "regexp_matches": _pattern,
    "make_timestamp": _moment, "date_part": _date_part, "date_trunc": _date_trunc, "epoch_us": _microseconds,
    "list_extract": lambda *_: TRUTH,
}  # fmt: skip
"""Every function that may stand in a statement over rows."""
