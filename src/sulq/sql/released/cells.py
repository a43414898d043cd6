"""A cell of a released table: its value, and how it came from the statistics under it.

The value is worked out once; the range again for each level of confidence, with the
error probability divided over the statistics a cell depends on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sulq.answers.estimators import Plain
from sulq.answers.noise_sums import added, beta_of
from sulq.answers.released import Released
from sulq.sql.released.columns import Leaf
from sulq.sql.released.functions import act, moment
from sulq.sql.released.functions import number as as_number
from sulq.sql.released.ranges import (
    INF,
    Anything,
    Few,
    NumberRange,
    Outcome,
    hull,
    may,
    only,
    outcome,
    shown,
    span,
    whole_quotient,
)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyValue:
    """A value and, where it rests on noise, its origin; `clock` for moments."""

    value: object
    origin: Origin | None = None
    clock: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class At:
    """A statistic of one group, one of so many `groups`; 0: of the whole table."""

    leaf: Leaf
    row: int
    groups: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class AddedUp:
    """The sum of one statistic over several groups, whose noise is independent."""

    leaf: Leaf
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Applied:
    """An operator or function of other figures."""

    op: str
    args: tuple[NoisyValue, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """The figure of the first condition that holds, else the last one."""

    branches: tuple[tuple[NoisyValue, NoisyValue], ...]
    otherwise: NoisyValue


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """An aggregate of released figures, each of them counted if its condition holds."""

    name: str
    items: tuple[tuple[NoisyValue, NoisyValue], ...]  # condition and value


@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    """A mean, quantile or ratio of a group that may have no rows: missing, or anywhere in its whole range (SR18)."""

    low: float = -INF
    high: float = INF


@dataclass(frozen=True, slots=True, eq=False)
class Unclear:
    """Rests on noise in a way no interval is worked out for."""


Origin = At | AddedUp | Applied | Either | Gathered | Unknown | Unclear


def applied(op: str, args: Sequence[NoisyValue]) -> NoisyValue:
    """The figure of an operator or function of figures."""
    value = act(op, [arg.value for arg in args])
    if all(arg.origin is None for arg in args):
        return NoisyValue(value)
    return NoisyValue(value, Applied(op, tuple(args)))


def quotient(args: Sequence[NoisyValue], answers: Sequence[Released]) -> NoisyValue:
    """A ratio; unknown where its divisor, a statistic of a group, may be zero (SR18)."""
    found, groups = applied("/", args), _groups(args[1])
    if not groups:
        return found
    divisor = span(_at_level(args[1], groups, answers))
    reaches = divisor is not None and divisor.low <= 0 <= divisor.high
    return NoisyValue(None, Unknown()) if reaches or args[1].value == 0 else found


def there(count: NoisyValue, answers: Sequence[Released]) -> NoisyValue:
    """Whether a group has rows: its count's interval does not reach 0; the range of the truth by the count itself."""
    found = span(_at_level(count, _groups(count), answers))
    some = found is not None and found.low > 0 and as_number(count.value) >= 1  # a count is shown whole
    return NoisyValue(some, Applied(">=", (count, NoisyValue(0.5))))


def _at_level(figure: NoisyValue, groups: int, answers: Sequence[Released]) -> Outcome:
    """What a figure can be at the fixed level, for all groups at once; without noise what it is."""
    if figure.value is not None and all(released.exact for released in answers):
        return only(figure.value)
    return _range(figure, answers, beta_of(groups) / max(len(leaves(figure)), 1))


def _groups(figure: NoisyValue) -> int:
    """Of how many groups a figure is of one; 0: of the whole table, or of released rows together."""
    origin = figure.origin
    if isinstance(origin, At):
        return origin.groups
    return 0 if isinstance(origin, Gathered) else max(map(_groups, _parts(origin)), default=0)


def either(branches: Sequence[tuple[NoisyValue, NoisyValue]], otherwise: NoisyValue) -> NoisyValue:
    """The figure of a CASE: by the point values, its range by all that could hold."""
    chosen = next((then for when, then in branches if when.value is True), otherwise)
    if all(when.origin is None for when, _ in branches):
        return chosen
    return NoisyValue(chosen.value, Either(tuple(branches), otherwise), chosen.clock)


def leaves(figure: NoisyValue) -> set[object]:
    """The statistics a figure depends on."""
    found: set[object] = set()
    front = [figure]
    while front:
        origin = front.pop().origin
        if isinstance(origin, At):
            found.add((id(origin.leaf), origin.row))
        elif isinstance(origin, AddedUp):
            found.add((id(origin.leaf), origin.rows))
        else:
            front.extend(_parts(origin))
    return found


def _parts(origin: Origin | None) -> Iterator[NoisyValue]:
    if isinstance(origin, Applied):
        yield from origin.args
    elif isinstance(origin, Either):
        for pair in origin.branches:
            yield from pair
        yield origin.otherwise
    elif isinstance(origin, Gathered):
        for pair in origin.items:
            yield from pair


def interval(figure: NoisyValue, answers: Sequence[Released], beta: float) -> tuple[object, object] | None:
    """From where to where the figure of the table itself lies, except with probability beta; None where unknown."""
    if figure.origin is None:
        return None
    number = len(leaves(figure))
    ends = shown(_range(figure, answers, beta / max(number, 1)))
    if ends is None or not _numeric(figure):
        return None
    if figure.clock is not None:
        return moment(ends[0], figure.clock), moment(ends[1], figure.clock)
    if isinstance(figure.origin, Gathered) and figure.value is not None:  # what is shown was chosen at a fixed level
        at = as_number(figure.value)
        return min(ends[0], at), max(ends[1], at)
    return ends


def _numeric(figure: NoisyValue) -> bool:
    return (
        figure.clock is not None
        or (isinstance(figure.value, (int, float)) and not isinstance(figure.value, bool))
        or (figure.value is None)
    )


def _range(figure: NoisyValue, answers: Sequence[Released], beta: float) -> Outcome:
    """All a figure can be while each statistic lies in its interval at 1 - beta."""
    origin = figure.origin
    match origin:
        case None:
            return only(figure.value)
        case At():
            low, high = origin.leaf.interval(answers, beta)
            return NumberRange(float(low[origin.row]), float(high[origin.row]))
        case Unknown():
            return NumberRange(origin.low, origin.high, null=True)
        case AddedUp():
            return _added(origin, answers, beta)
        case Applied():
            args = [_range(arg, answers, beta) for arg in origin.args]
            whole = origin.op == "/" and all(_whole(arg.value) for arg in origin.args)
            return whole_quotient(args) if whole else outcome(origin.op, args)
        case Either():
            return _of_either(origin, answers, beta)
        case Gathered():
            return _gathered(origin, answers, beta)
        case _:
            return Anything()


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _added(origin: AddedUp, answers: Sequence[Released], beta: float) -> NumberRange:
    """The law of a sum of independent equal draws."""
    released = origin.leaf.released(answers)
    noise = released.noise[0]
    total = float(np.sum(origin.leaf.values(answers)[list(origin.rows)]))
    away = float(added(noise.law, len(origin.rows)).accuracy(beta) * noise.step)
    return NumberRange(total - away, total + away)


def sums_plainly(leaf: Leaf) -> bool:
    """Whether a leaf is one released sum a group, so that sums of groups have a known law."""
    return isinstance(leaf.reading, Plain) and len(leaf.cuts) == 1 and len(leaf.cuts[0].blocks) == 1


def _of_either(origin: Either, answers: Sequence[Released], beta: float) -> Outcome:
    possible: list[Outcome] = []
    for when, then in origin.branches:
        holds = _range(when, answers, beta)
        if may(holds, True):
            possible.append(_range(then, answers, beta))
        if not may(holds, False) and not may(holds, None):
            return hull(possible)
    return hull([*possible, _range(origin.otherwise, answers, beta)])


def _gathered(origin: Gathered, answers: Sequence[Released], beta: float) -> Outcome:
    """The range of an aggregate whose items, and whether they count, are known as ranges."""
    sure: list[NumberRange] = []
    maybe: list[NumberRange] = []
    for when, what in origin.items:
        holds, value = _range(when, answers, beta), _range(what, answers, beta)
        if not may(holds, True) or (isinstance(value, Few) and value.values == frozenset((None,))):
            continue
        found = span(value)
        if found is None and origin.name != "count":
            return Anything()
        found = found or NumberRange(0.0, 0.0, may(value, None))
        doubtful = may(holds, False) or may(holds, None) or found.null
        (maybe if doubtful else sure).append(NumberRange(found.low, found.high))
    if origin.name == "count":
        return NumberRange(float(len(sure)), float(len(sure) + len(maybe)))
    if origin.name == "sum":
        low = sum(s.low for s in sure) + sum(min(s.low, 0.0) for s in maybe)
        high = sum(s.high for s in sure) + sum(max(s.high, 0.0) for s in maybe)
        return NumberRange(low, high, null=not sure)
    if not sure:
        return Anything()
    every = sure + maybe
    if origin.name == "min":
        return NumberRange(min(s.low for s in every), min(s.high for s in sure))
    if origin.name == "max":
        return NumberRange(max(s.low for s in sure), max(s.high for s in every))
    if origin.name == "mean" and not maybe:
        return NumberRange(sum(s.low for s in sure) / len(sure), sum(s.high for s in sure) / len(sure))
    if origin.name == "mean":
        return NumberRange(min(s.low for s in every), max(s.high for s in every))
    if origin.name.startswith("quantile") and not maybe:
        return NumberRange(min(s.low for s in every), max(s.high for s in every))
    return Anything()
