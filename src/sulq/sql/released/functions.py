"""Operators and functions of released values, by their PostgreSQL names: total, and missing where they have no value.

A missing argument gives a missing result, but for the few in LAX. Whole numbers
stay whole where PostgreSQL keeps them so (7/2 is 3); what PostgreSQL would raise an
error for, a quotient by zero or the root of a negative number, is missing.
"""

from __future__ import annotations

import datetime
import inspect
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, cast

from sulq.display.moments import place
from sulq.errors import QuestionError
from sulq.language import rowfn
from sulq.sql.rows.values import on_clock, read_bool

DAY_MICROSECONDS: Final = 86_400_000_000
MAX_TEXT_LETTERS: Final = 10_000  # of a text that is put together


def read_moment(text: str) -> datetime.datetime:
    """A moment as it is written, in UTC and without a zone; ValueError where it is none."""
    moment = datetime.datetime.fromisoformat(text)
    try:
        return moment if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None)
    except OverflowError:
        raise ValueError("beyond the calendar") from None


def is_number(value: object) -> bool:
    """Whether this is a number, or a truth value that counts as one."""
    return isinstance(value, (int, float, Fraction))


def number(value: object) -> float:
    """A number, or the place of a moment: days from 1970 for a date, microseconds for a time."""
    if isinstance(value, datetime.date):
        return place(value)
    if isinstance(value, (int, float, Fraction)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    raise QuestionError("wrong-kind", f"{str(value)[:40]!r} is not a number.")


def _finite(value: complex) -> object:
    return None if isinstance(value, complex) or not math.isfinite(value) else value


def half_up(value: float, digits: int) -> float:
    """Round half away from zero, as numeric does."""
    if not math.isfinite(value):
        return value
    scale = Fraction(10) ** digits
    exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    units = math.floor(abs(exact) * scale + Fraction(1, 2))
    return float(math.copysign(1, exact) * (units / scale))


def _whole(*values: object) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) for value in values)


def plus(a: object, b: object) -> object:
    """A sum; a date and a number of days."""
    if isinstance(a, datetime.date) or isinstance(b, datetime.date):
        when, days = (a, b) if isinstance(a, datetime.date) else (b, a)
        return _shifted(when, number(days))
    return a + b if _whole(a, b) else _finite(number(a) + number(b))  # type: ignore[operator]


def _shifted(when: object, days: float) -> object:
    try:
        return when + datetime.timedelta(days=days)  # type: ignore[operator]
    except OverflowError:
        return None


def minus(a: object, b: object) -> object:
    """A difference; of two dates the number of days."""
    if isinstance(a, datetime.date) and isinstance(b, datetime.date):
        days = (number(a) - number(b)) / (DAY_MICROSECONDS if isinstance(a, datetime.datetime) else 1)
        return int(days) if days.is_integer() else days
    if isinstance(a, datetime.date):
        return _shifted(a, -number(b))
    return a - b if _whole(a, b) else _finite(number(a) - number(b))  # type: ignore[operator]


def over(a: object, b: object) -> object:
    """A quotient, cut off towards zero for whole numbers; missing for a zero below."""
    if number(b) == 0:
        return None
    if _whole(a, b):
        top, bottom = cast("int", a), cast("int", b)
        whole = abs(top) // abs(bottom)
        return whole if (top < 0) == (bottom < 0) else -whole
    return _finite(number(a) / number(b))


def modulo(a: object, b: object) -> object:
    """The rest of a quotient cut off towards zero: it has the sign of what is divided."""
    if number(b) == 0:
        return None
    rest = math.fmod(number(a), number(b))
    return int(rest) if _whole(a, b) else rest


def power(a: object, b: object) -> object:
    """A power; missing where it is no real number."""
    try:
        return _finite(number(a) ** number(b))
    except (OverflowError, ZeroDivisionError):
        return None


def _real(fn: Callable[[float], float]) -> Callable[[object], object]:
    def act(value: object) -> object:
        try:
            return _finite(fn(number(value)))
        except (ValueError, OverflowError, ZeroDivisionError):
            return None

    return act


def _rounder(fn: Callable[[float], int]) -> Callable[[object], object]:
    """Rounded to whole numbers, which are no whole numbers to PostgreSQL: a quotient of them is not cut off."""
    return lambda value: float(fn(number(value)))


def _to_digits(cut: Callable[[float, int], float]) -> Callable[..., object]:
    """Rounded or cut off after so many digits."""

    def act(value: object, digits: object = 0) -> object:
        places = max(min(int(number(digits)), 300), -300)
        return number(value) if _whole(value) and places >= 0 else cut(number(value), places)

    return act


def truncated(value: float, digits: int) -> float:
    """Cut off after so many digits."""
    scale = Fraction(10) ** digits
    return float(math.trunc(Fraction(value) * scale) / scale)


def logarithm(first: object, second: object = None) -> object:
    """LOG(x) to base ten; LOG(b, x) to base b."""
    try:
        if second is None:
            return _finite(math.log10(number(first)))
        return _finite(math.log(number(second)) / math.log(number(first)))
    except (ValueError, ZeroDivisionError):
        return None


def _like_number(value: object, other: object) -> object:
    """A value as it compares with another: a text beside another kind of value is read as that kind."""
    if not isinstance(value, str):
        return number(value)
    if isinstance(other, str):
        return value
    try:
        if isinstance(other, datetime.date):
            moment = number(read_moment(value))
            return moment if isinstance(other, datetime.datetime) else moment / DAY_MICROSECONDS
        return float(value)
    except ValueError:
        raise QuestionError("wrong-kind", f"{value[:40]!r} cannot be compared with this value.") from None


COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare(op: str, a: object, b: object) -> bool:
    """A comparison of two values that are there; of a date with a moment, by its first moment."""
    if isinstance(a, datetime.date) and isinstance(b, datetime.date) and type(a) is not type(b):
        a, b = to_time(a), to_time(b)
    return COMPARISONS[op](_like_number(a, b), _like_number(b, a))


def like(text: object, pattern: object, escape: object = "\\", *, lower: bool = False) -> bool:
    """SQL's LIKE, in linear time; an escape at the pattern's end stands for nothing."""
    shown, wanted = (str(item).lower() if lower else str(item) for item in (text, pattern))
    try:
        return rowfn.like(shown, wanted, str(escape))
    except QuestionError:
        return rowfn.like(shown, wanted[:-1], str(escape))


def substring(text: object, start: object, length: object = None) -> object:
    """Part of a text, counted from 1; a start before the text takes from the length."""
    first = int(number(start))
    if length is None:
        return str(text)[max(first - 1, 0) :]
    if number(length) < 0:
        return None
    return str(text)[max(first - 1, 0) : max(first - 1 + int(number(length)), 0)]


def words(value: object) -> str:
    """A value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return str(value)


def to_whole(value: object) -> object:
    """A cast to a whole number; missing where there is none."""
    try:
        if isinstance(value, str):
            return int(value.strip())
        return value if _whole(value) else int(half_up(number(value), 0))
    except (ValueError, OverflowError):
        return None


def to_real(value: object) -> object:
    """A cast to a number; missing where there is none."""
    try:
        return _finite(float(value.strip()) if isinstance(value, str) else number(value))
    except ValueError:
        return None


def to_date(value: object) -> object:
    """A cast to a date; missing where there is none."""
    found = to_time(value)
    return found.date() if isinstance(found, datetime.datetime) else None


def to_time(value: object) -> object:
    """A cast to a moment; missing where there is none."""
    try:
        found = read_moment(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return on_clock(found, "timestamp") if isinstance(found, datetime.date) else None


def date_part(part: object, value: object) -> object:
    """A part of a date or a moment."""
    when = to_time(value)
    if not isinstance(when, datetime.datetime):
        return None
    return {
        "year": when.year,
        "quarter": (when.month + 2) // 3,
        "month": when.month,
        "day": when.day,
        "dow": when.isoweekday() % 7,
        "isodow": when.isoweekday(),
        "doy": when.timetuple().tm_yday,
        "week": when.isocalendar().week,
        "hour": when.hour,
        "minute": when.minute,
        "second": when.second,
        "epoch": int(number(when)) // 10**6,
    }.get(str(part).lower())


def date_trunc(part: object, value: object) -> object:
    """The beginning of the part of time a moment lies in."""
    when = to_time(value)
    if not isinstance(when, datetime.datetime):
        return None
    day = when.replace(hour=0, minute=0, second=0, microsecond=0)
    return {
        "year": day.replace(month=1, day=1),
        "quarter": day.replace(month=3 * ((when.month - 1) // 3) + 1, day=1),
        "month": day.replace(day=1),
        "week": day - datetime.timedelta(days=when.weekday()),
        "day": day,
        "hour": when.replace(minute=0, second=0, microsecond=0),
        "minute": when.replace(second=0, microsecond=0),
        "second": when.replace(microsecond=0),
    }.get(str(part).lower())


def bucket(value: object, low: object, high: object, bins: object) -> object:
    """The number of the equal bin a number falls into; 0 below the first, one more than the last above it."""
    x, lo, hi, n = number(value), number(low), number(high), int(number(bins))
    return None if lo == hi or n < 1 else max(0, min(math.floor((x - lo) / (hi - lo) * n) + 1, n + 1))


STRICT: Final[dict[str, Callable[..., object]]] = {
    "+": plus,
    "-": minus,
    "*": lambda a, b: a * b if _whole(a, b) else _finite(number(a) * number(b)),
    "/": over,
    "mod": modulo,
    "power": power,
    "neg": lambda a: minus(0, a),
    "abs": lambda a: abs(a) if _whole(a) else abs(number(a)),
    "sign": lambda a: float((number(a) > 0) - (number(a) < 0)),
    "floor": _rounder(math.floor),
    "ceil": _rounder(math.ceil),
    "round": _to_digits(half_up),
    "trunc": _to_digits(truncated),
    "sqrt": _real(math.sqrt),
    "cbrt": _real(lambda x: math.copysign(abs(x) ** (1 / 3), x)),
    "exp": _real(math.exp),
    "ln": _real(math.log),
    "log": logarithm,
    "sin": _real(math.sin),
    "cos": _real(math.cos),
    "tan": _real(math.tan),
    "degrees": _real(math.degrees),
    "radians": _real(math.radians),
    "pi": lambda: math.pi,
    "width_bucket": bucket,
    "like": like,
    "ilike": lambda text, pattern, escape="\\": like(text, pattern, escape, lower=True),
    "||": lambda a, b: (words(a) + words(b))[:MAX_TEXT_LETTERS],
    "lower": lambda a: str(a).lower(),
    "upper": lambda a: str(a).upper(),
    "length": lambda a: len(str(a)),
    "trim": lambda a: str(a).strip(" "),
    "ltrim": lambda a: str(a).lstrip(" "),
    "rtrim": lambda a: str(a).rstrip(" "),
    "substring": substring,
    "left": lambda a, n: str(a)[: int(number(n))],
    "right": lambda a, n: str(a)[-int(number(n)) :] if int(number(n)) else "",
    "replace": lambda a, old, new: str(a).replace(str(old), str(new)) if str(old) else str(a),
    "starts_with": lambda a, b: str(a).startswith(str(b)),
    "position": lambda a, b: str(b).find(str(a)) + 1,
    "date_part": date_part,
    "date_trunc": date_trunc,
    "cast int": to_whole,
    "cast float": to_real,
    "cast text": words,
    "cast bool": lambda a: read_bool(a) if isinstance(a, str) else number(a) != 0,
    "cast date": to_date,
    "cast timestamp": to_time,
}


def _logic(*, decides: bool) -> Callable[..., object]:
    """AND is decided by false, OR by true; else by what is missing."""
    return lambda *values: decides if any(v is decides for v in values) else None if None in values else not decides


def _extreme(pick: Callable[..., object]) -> Callable[..., object]:
    def act(*values: object) -> object:
        there = [value for value in values if value is not None]
        return pick(there, key=lambda v: (1, v) if isinstance(v, str) else (0, number(v))) if there else None

    return act


def _isin(value: object, *options: object) -> object:
    if value is None:
        return None
    if any(option is not None and compare("=", value, option) for option in options):
        return True
    return None if None in options else False


def _distinct(a: object, b: object) -> bool:
    return (a is None) != (b is None) if a is None or b is None else compare("<>", a, b)


LAX: Final[dict[str, Callable[..., object]]] = {
    "and": _logic(decides=False),
    "or": _logic(decides=True),
    "not": lambda a: None if a is None else not a,
    "is null": lambda a: a is None,
    "is true": lambda a: a is True,
    "is false": lambda a: a is False,
    "is distinct from": _distinct,
    "is not distinct from": lambda a, b: not _distinct(a, b),
    "in": _isin,
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "nullif": lambda a, b: None if _distinct(a, b) is False and a is not None else a,
    "greatest": _extreme(max),
    "least": _extreme(min),
    "concat": lambda *a: "".join(words(v) for v in a if v is not None)[:MAX_TEXT_LETTERS],
}


def act(op: str, args: list[object]) -> object:
    """The value of an operator or function; missing where it does not take values of these kinds."""
    if op not in LAX and op not in COMPARISONS and op not in STRICT:
        raise QuestionError("sql-unsupported", f"{op[:40]!r} is not a function of released values here.")
    try:
        if op in LAX:
            return LAX[op](*args)
        if any(arg is None for arg in args):
            return None
        return compare(op, *args) if op in COMPARISONS else STRICT[op](*args)
    except (QuestionError, TypeError, ValueError, ArithmeticError):
        # Of a wrong kind, or past what a number or a date can be: what always is so was refused before (kinds.py).
        if not takes(op, len(args)):
            raise QuestionError("sql-unsupported", f"{op[:40]!r} does not take these arguments.") from None
        return None


KNOWN: Final = (*COMPARISONS, *STRICT, *LAX)


def takes(op: str, many: int) -> bool:
    """Whether an operator or function takes so many arguments."""
    try:
        inspect.signature((COMPARISONS | STRICT | LAX)[op]).bind(*range(many))
    except TypeError:
        return False
    return True
