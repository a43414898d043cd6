"""Interval arithmetic: all that an expression can be while each statistic in it lies in its interval.

Sound by construction: if every statistic lies in its interval, the expression of the true
statistics lies in the range worked out here. So a cell is held by its range except
with probability the sum of its statistics' betas.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sulq.sql.released.functions import COMPARISONS, act, is_number, number

INF: Final = math.inf


@dataclass(frozen=True, slots=True)
class NumberRange:
    """A number from low to high; `null`: or missing."""

    low: float
    high: float
    null: bool = False


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few values: truths, labels, a constant."""

    values: frozenset[object]


@dataclass(frozen=True, slots=True)
class Anything:
    """Nothing is known."""


Outcome = NumberRange | OneOf | Anything
MAX_COMBINATIONS: Final = 16  # combinations of few values worked out one by one


def only(value: object) -> OneOf:
    """A value that is certain."""
    return OneOf(frozenset((value,)))


def span(outcome: Outcome) -> NumberRange | None:
    """The numbers among the outcomes; None where there may be other things."""
    if isinstance(outcome, NumberRange):
        return outcome
    if isinstance(outcome, Anything):
        return None
    there = [value for value in outcome.values if value is not None]
    if not there or any(isinstance(value, str) for value in there):
        return None
    places = [number(value) for value in there]
    return NumberRange(min(places), max(places), None in outcome.values)


def hull(outcomes: Sequence[Outcome]) -> Outcome:
    """Whatever any of these can be."""
    if all(isinstance(outcome, OneOf) for outcome in outcomes):
        joined = frozenset().union(*(outcome.values for outcome in outcomes if isinstance(outcome, OneOf)))
        if len(joined) <= MAX_COMBINATIONS:
            return OneOf(joined)
    spans, null = [], False
    for outcome in outcomes:
        if isinstance(outcome, OneOf) and outcome.values == frozenset((None,)):
            null = True
            continue
        found = span(outcome)
        if found is None:
            return Anything()
        spans.append(found)
        null = null or found.null
    return NumberRange(min(s.low for s in spans), max(s.high for s in spans), null)


def may(outcome: Outcome, value: object) -> bool:
    """Whether a truth value, or missing, is among the outcomes."""
    if isinstance(outcome, OneOf):
        return any(found is value or (isinstance(found, bool) and found == value) for found in outcome.values)
    return True


def _corners(fn: Callable[[float, float], float]) -> Callable[[NumberRange, NumberRange], NumberRange]:
    def act_(a: NumberRange, b: NumberRange) -> NumberRange:
        found = [fn(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        return NumberRange(min(found), max(found))

    return act_


def _over(a: NumberRange, b: NumberRange) -> NumberRange:
    if b.low <= 0 <= b.high:
        return NumberRange(-INF, INF, null=True)
    return _corners(lambda x, y: x / y if math.isfinite(y) else 0.0)(a, b)


def _power(a: NumberRange, b: NumberRange) -> NumberRange:
    if b.low == b.high and b.low == int(b.low) and b.low >= 0:
        n = int(b.low)
        ends = [_raised(a.low, n), _raised(a.high, n)]
        if n % 2 == 0 and a.low <= 0 <= a.high:
            ends.append(0.0 if n else 1.0)
        return NumberRange(min(ends), max(ends))
    if a.low > 0:
        return _corners(_raised)(a, b)
    if a.low >= 0 and b.low > 0:
        return NumberRange(0.0, max(_raised(a.high, b.low), _raised(a.high, b.high)))
    return NumberRange(-INF, INF, null=True)


def _raised(x: float, y: float) -> float:
    try:
        return float(x**y)
    except OverflowError:
        return INF if x > 0 or y % 2 == 0 else -INF
    except ZeroDivisionError:
        return INF


def _modulo(a: NumberRange, b: NumberRange) -> NumberRange:
    if b.low <= 0 <= b.high:
        return NumberRange(-INF, INF, null=True)
    most = max(abs(b.low), abs(b.high))
    if b.low == b.high and math.isfinite(a.low) and math.isfinite(a.high) and a.low * a.high >= 0:
        m = abs(b.low)
        if math.trunc(a.low / m) == math.trunc(a.high / m):
            return NumberRange(math.fmod(a.low, m), math.fmod(a.high, m))
    return NumberRange(-most if a.low < 0 else 0.0, most if a.high > 0 else 0.0)


def _absolute(a: NumberRange) -> NumberRange:
    ends = (abs(a.low), abs(a.high))
    return NumberRange(0.0 if a.low <= 0 <= a.high else min(ends), max(ends))


def _wave(a: NumberRange, fn: Callable[[float], float], peak: float) -> NumberRange:
    """A sine or cosine: its ends, and the peaks at peak + k pi between them."""
    if not a.high - a.low < 2 * math.pi:
        return NumberRange(-1.0, 1.0)
    ends = [fn(a.low), fn(a.high)]
    first = math.ceil((a.low - peak) / math.pi)
    last = math.floor((a.high - peak) / math.pi)
    ends += [1.0 if k % 2 == 0 else -1.0 for k in range(first, last + 1)]
    return NumberRange(max(min(ends) - 1e-12, -1.0), min(max(ends) + 1e-12, 1.0))


def _rising(op: str, low: float = -INF, limits: tuple[float, float] = (-INF, INF)) -> Callable[..., NumberRange]:
    """A function that never falls from `low` on, and is missing below: its extremes are at the ends.

    Where it overflows, or at an end that is not finite, it has its limits.
    """

    def value(x: float, rest: Sequence[NumberRange]) -> float:
        found = None if math.isinf(x) else act(op, [x, *(r.low for r in rest)])
        return limits[x > 0] if found is None else number(found)

    def act_(a: NumberRange, *rest: NumberRange) -> NumberRange:
        if any(digits.low != digits.high for digits in rest) or a.high < low:
            return NumberRange(-INF, INF, null=not rest)  # nobody knows to how many digits, or there is no value
        none = a.low < low or (a.low == low > -INF and act(op, [low]) is None)  # LN(0) is missing, SQRT(0) is not
        return NumberRange(value(max(a.low, low), rest), value(a.high, rest), null=none)

    return act_


_LN: Final = _rising("ln", 0.0)


def _logarithm(*args: NumberRange) -> NumberRange:
    if len(args) == 1:
        return _rising("log", 0.0)(*args)
    base, item = _LN(args[0]), _LN(args[1])
    found = _over(item, base)
    return NumberRange(found.low, found.high, null=found.null or base.null or item.null)


_RANGES: Final[dict[str, Callable[..., NumberRange]]] = {
    "+": lambda a, b: NumberRange(a.low + b.low, a.high + b.high),
    "-": lambda a, b: NumberRange(a.low - b.high, a.high - b.low),
    "*": _corners(lambda x, y: 0.0 if x == 0 or y == 0 else x * y),
    "/": _over,
    "mod": _modulo,
    "power": _power,
    "neg": lambda a: NumberRange(-a.high, -a.low),
    "abs": _absolute,
    "sqrt": _rising("sqrt", 0.0),
    "exp": _rising("exp", limits=(0.0, INF)),
    "ln": _LN,
    "log": _logarithm,
    "sin": lambda a: _wave(a, math.sin, math.pi / 2),
    "cos": lambda a: _wave(a, math.cos, 0.0),
    "cast float": lambda a: a,
    **{op: _rising(op) for op in ("sign", "floor", "ceil", "round", "trunc", "cbrt", "degrees", "radians", "cast int")},
}


def _compared(op: str, a: NumberRange, b: NumberRange) -> OneOf:
    """Which truths a comparison of two ranges can have."""
    apart = a.high < b.low or b.high < a.low
    same = a.low == a.high == b.low == b.high
    can = {
        "=": (not apart, not same),
        "<>": (not same, not apart),
        "<": (a.low < b.high, a.high >= b.low),
        "<=": (a.low <= b.high, a.high > b.low),
        ">": (a.high > b.low, a.low <= b.high),
        ">=": (a.high >= b.low, a.low < b.high),
    }[op]
    found: set[object] = {truth for truth, possible in zip((True, False), can, strict=True) if possible}
    if a.null or b.null:
        found.add(None)
    return OneOf(frozenset(found))


def _logic(op: str, args: Sequence[Outcome]) -> Outcome:
    sets: list[set[object]] = [set(arg.values) if isinstance(arg, OneOf) else {True, False, None} for arg in args]
    decides = op == "or"
    found: set[object] = set()
    if any(decides in values for values in sets):
        found.add(decides)
    if all(values - {decides} for values in sets):
        if any(None in values for values in sets):
            found.add(None)
        if all((not decides) in values for values in sets):
            found.add(not decides)
    return OneOf(frozenset(found))


def outcome(op: str, args: Sequence[Outcome]) -> Outcome:
    """What an operator or function can be of what its arguments can be."""
    few = [arg.values for arg in args if isinstance(arg, OneOf)]
    if len(few) == len(args) and math.prod(len(values) for values in few) <= MAX_COMBINATIONS:
        return OneOf(frozenset(act(op, list(values)) for values in itertools.product(*few)))
    if op in ("and", "or"):
        return _logic(op, args)
    if op == "is null":
        found = span(args[0])
        return only(value=False) if found is not None and not found.null else OneOf(frozenset((True, False)))
    if op == "coalesce":
        return _first_of(args)
    spans = [span(arg) for arg in args]
    numeric = [found for found in spans if found is not None]
    return Anything() if len(numeric) < len(args) else _numeric(op, numeric)


def _numeric(op: str, args: Sequence[NumberRange]) -> Outcome:
    """What an operator or function of numbers can be."""
    null = any(found.null for found in args)
    if op in COMPARISONS:
        return _compared(op, *args)
    if op in ("greatest", "least"):
        pick = max if op == "greatest" else min
        return Anything() if null else NumberRange(pick(s.low for s in args), pick(s.high for s in args))
    if op == "in":
        none = OneOf(frozenset((False, None) if args[0].null else (False,)))  # what it is of no options
        return _logic("or", [none, *(_compared("=", args[0], option) for option in args[1:])])
    if op == "nullif":
        return NumberRange(args[0].low, args[0].high, null=True)
    if op not in _RANGES:
        return Anything()
    made = _RANGES[op](*args)
    if math.isnan(made.low) or math.isnan(made.high):
        return NumberRange(-INF, INF, null=True)
    endless = math.isinf(made.low) or math.isinf(made.high)  # what overflows is missing
    return NumberRange(made.low, made.high, null or made.null or endless)


def _first_of(args: Sequence[Outcome]) -> Outcome:
    taken: list[Outcome] = []
    for arg in args:
        found = span(arg)
        if found is None:
            if isinstance(arg, OneOf) and arg.values == frozenset((None,)):
                continue
            return Anything()
        taken.append(NumberRange(found.low, found.high))
        if not found.null:
            return hull(taken)
    return hull([*taken, only(None)])


def shown(found: Outcome) -> tuple[float, float] | None:
    """The ends of a range of numbers; None where there is none to show."""
    if isinstance(found, OneOf) and not all(is_number(v) and not isinstance(v, bool) for v in found.values):
        return None
    made = span(found)
    return None if made is None else (made.low, made.high)
