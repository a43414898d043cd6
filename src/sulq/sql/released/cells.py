"""A cell of a released table: its value, and how it came from the statistics under it; aggregates of such cells.

The value is worked out once; the range again for each level of confidence, with the
error probability divided over the statistics a cell depends on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeVar

import numpy as np

from sulq.answers.estimators import Plain
from sulq.answers.noise_sums import added, beta_of
from sulq.answers.released import Released
from sulq.errors import QuestionError
from sulq.sql.parse.syntax import Aggregate, Node
from sulq.sql.released.columns import Leaf
from sulq.sql.released.functions import act, moment, number
from sulq.sql.released.functions import number as as_number
from sulq.sql.released.grouping_sets import ascending
from sulq.sql.released.program import Regroup
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


class Member(Protocol):
    """A released row: whether it is in its table at all."""

    @property
    def member(self) -> NoisyValue:
        """Whether the row is there."""
        ...


R = TypeVar("R", bound=Member)
Found = tuple[tuple[NoisyValue, ...], tuple[NoisyValue, ...], frozenset[int], NoisyValue]


def gather(
    regroup: Regroup, rows: Sequence[R], figure: Callable[[Node, R], NoisyValue], *, clear: bool
) -> Iterator[Found]:
    """The groups of released rows, each with its keys, its aggregates and the keys its set leaves out."""
    kept: list[tuple[R, NoisyValue]] = []
    for row in rows:
        member = row.member
        if regroup.where is not None:
            member = applied("and", [member, figure(regroup.where, row)])
        if member.value is True or member.origin is not None:
            kept.append((row, member))
    keyed = [(row, member, tuple(figure(key, row) for key in regroup.keys)) for row, member in kept]
    for chosen in regroup.sets or (tuple(range(len(regroup.keys))),):
        left = frozenset(range(len(regroup.keys))) - frozenset(chosen)
        groups: dict[tuple[object, ...], list[tuple[R, NoisyValue]]] = {} if chosen else {(): []}
        noisy = not clear or any(keys[i].origin is not None for _, _, keys in keyed for i in chosen)
        for row, member, keys in keyed:
            groups.setdefault(tuple(keys[i].value for i in chosen), []).append((row, member))
        for labels in sorted(groups, key=lambda one: tuple(ascending(label) for label in one)):
            items = groups[labels]
            full = [NoisyValue(None)] * len(regroup.keys)
            for i, label in zip(chosen, labels, strict=True):
                full[i] = NoisyValue(label, Unclear()) if noisy else NoisyValue(label)
            stats = tuple(_aggregate(stat, items, figure, noisy=noisy) for stat in regroup.stats)
            yield tuple(full), stats, left, _some([member for _, member in items], always=not chosen)


def _some(members: list[NoisyValue], *, always: bool) -> NoisyValue:
    """Whether a group has a row at all."""
    if always or any(member.origin is None and member.value is True for member in members):
        return NoisyValue(value=True)
    return applied("or", [applied("is true", [member]) for member in members])


def _aggregate(
    stat: Aggregate, items: list[tuple[R, NoisyValue]], figure: Callable[[Node, R], NoisyValue], *, noisy: bool
) -> NoisyValue:
    pairs = []
    for row, member in items:
        holds = member if stat.where is None else applied("and", [member, figure(stat.where, row)])
        pairs.append((holds, figure(stat.args[0], row) if stat.args else NoisyValue(1)))
    counted = [what for holds, what in pairs if holds.value is True and what.value is not None]
    if stat.distinct:
        counted = list({what.value: what for what in counted}.values())
    name = "count" if stat.name == "rows" else stat.name
    value = value_of(name, [what.value for what in counted], stat.q)
    if not noisy and all(holds.origin is None and what.origin is None for holds, what in pairs):
        return NoisyValue(value)
    if noisy or stat.distinct:
        return NoisyValue(value, Unclear())
    clock = counted[0].clock if counted and name in ("min", "max", "quantile_disc") else None
    if name == "sum" and all(holds.origin is None for holds, _ in pairs):
        together = _together(counted)
        if together is not None:
            return NoisyValue(value, together)
    return NoisyValue(value, Gathered(name, tuple(pairs)), clock)


def _together(counted: list[NoisyValue]) -> AddedUp | None:
    """A plain sum of one statistic over different groups, where that is what it is."""
    origins = [what.origin for what in counted]
    points = [origin for origin in origins if isinstance(origin, At)]
    if not points or len(points) < len(origins):
        return None
    leaf, rows = points[0].leaf, tuple(point.row for point in points)
    if any(point.leaf is not leaf for point in points) or len(set(rows)) < len(rows) or not sums_plainly(leaf):
        return None
    return AddedUp(leaf, rows)


def value_of(name: str, values: list[object], q: Fraction | None) -> object:
    """An aggregate of values that are there; missing, but for a count, where there are none."""
    if name == "count":
        return len(values)
    if not values:
        return None
    if name in _OF_ANY:
        return _OF_ANY[name](values)
    part = Fraction(1, 2) if q is None else q
    if name == "quantile_disc":
        ordered = sorted(values, key=ascending)
        return ordered[max(math.ceil(part * len(ordered)) - 1, 0)]
    numbers = [number(value) for value in values]
    if name == "quantile_cont":
        return _between(sorted(numbers), part)
    if name not in _OF_NUMBERS:
        raise QuestionError("sql-unsupported", f"{name[:40]!r} is not an aggregate of released rows here.")
    found = _OF_NUMBERS[name](numbers)
    whole = name == "sum" and all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    return int(found) if whole and found is not None and abs(found) < 2**53 else found


_OF_ANY: dict[str, Callable[[list[object]], object]] = {
    "min": lambda values: min(values, key=ascending),
    "max": lambda values: max(values, key=ascending),
    "bool_and": all,
    "bool_or": any,
}


def _spread(numbers: list[float], less: int) -> float | None:
    n = len(numbers)
    middle = math.fsum(numbers) / n
    return math.fsum((x - middle) ** 2 for x in numbers) / (n - less) if n > less else None


def _root(square: float | None) -> float | None:
    return None if square is None else math.sqrt(square)


_OF_NUMBERS: dict[str, Callable[[list[float]], float | None]] = {
    "sum": math.fsum,
    "mean": lambda numbers: math.fsum(numbers) / len(numbers),
    "var_pop": lambda numbers: _spread(numbers, 0),
    "var_samp": lambda numbers: _spread(numbers, 1),
    "std_pop": lambda numbers: _root(_spread(numbers, 0)),
    "std_samp": lambda numbers: _root(_spread(numbers, 1)),
}


def _between(ordered: list[float], q: Fraction) -> float:
    place = q * (len(ordered) - 1)
    first = math.floor(place)
    last = min(first + 1, len(ordered) - 1)
    return ordered[first] + float(place - first) * (ordered[last] - ordered[first])
