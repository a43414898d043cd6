"""Aggregates of released rows: free, with ranges that count what the noise leaves open."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Protocol, TypeVar

from sulq.errors import QuestionError
from sulq.sql.parse.syntax import Aggregate, Node
from sulq.sql.released.cells import AddedUp, At, Gathered, NoisyValue, Unclear, applied, sums_plainly
from sulq.sql.released.functions import number
from sulq.sql.released.grouping_sets import ascending
from sulq.sql.released.program import Regroup


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
