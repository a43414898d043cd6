"""A cell of a released table: its value, and how it came from the statistics under it; aggregates of such cells.

The value is worked out once; the range again for each level of confidence, with the
error probability divided over the statistics a cell depends on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from sulq.answers.readings.noise_sums import added, beta_of
from sulq.answers.readings.sampling import sampled_sum
from sulq.answers.released import Released
from sulq.display.moments import first, last
from sulq.errors import QuestionError
from sulq.sql.parse.syntax import Aggregate, Node
from sulq.sql.released.columns import StatColumn
from sulq.sql.released.functions import act
from sulq.sql.released.functions import number as as_number
from sulq.sql.released.grouping_sets import ascending
from sulq.sql.released.program import Regroup
from sulq.sql.released.ranges import INF, Anything, NumberRange, Outcome, hull, may, only, outcome, shown, span


@dataclass(frozen=True, slots=True, eq=False)
class NoisyValue:
    """A value and, where it rests on noise, its origin; `clock` for moments."""

    value: object
    origin: CellOrigin | None = None
    clock: str | None = None

    def range(self, answers: Sequence[Released], beta: float) -> Outcome:
        """All it can be while each statistic lies in its interval at 1 - beta."""
        return only(self.value) if self.origin is None else self.origin.range(answers, beta)


class CellOrigin:
    """How a noisy value came from the statistics under it; as it stands here, in a way no interval is known for."""

    __slots__ = ()

    def parts(self) -> Iterable[NoisyValue]:
        """The values it was made of."""
        return ()

    def statistic(self) -> object:
        """What it is, where it has an interval of its own; else its parts have."""
        return None

    def range(self, answers: Sequence[Released], beta: float) -> Outcome:
        """All it can be while each statistic lies in its interval at 1 - beta."""
        return Anything()


class Unclear(CellOrigin):
    """Rests on noise in a way no interval is worked out for."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class GroupCells(CellOrigin):
    """A statistic of one group, one of so many `groups` (0: of the whole table), or its sum over several groups."""

    column: StatColumn
    rows: tuple[int, ...]
    groups: int = 0

    def statistic(self) -> object:
        """The statistic and its groups."""
        return id(self.column), self.rows

    def range(self, answers: Sequence[Released], beta: float) -> NumberRange:
        """Its interval; of a sum, that of the law of a sum of independent equal draws."""
        if len(self.rows) == 1:
            low, high = self.column.interval(answers, beta)
            return NumberRange(float(low[self.rows[0]]), float(high[self.rows[0]]))
        noise = self.column.released(answers).noise[0]
        total = float(np.sum(self.column.values(answers)[list(self.rows)]))
        away = float(added(noise.law, len(self.rows)).accuracy(beta) * noise.step)
        if self.column.sampling:
            spread = sampled_sum(
                self.column.reading, self.column.released(answers), list(self.rows), self.column.sampling
            )
            away = math.hypot(away, -NormalDist().inv_cdf(beta / 2) * spread)
        return NumberRange(total - away, total + away)


@dataclass(frozen=True, slots=True, eq=False)
class Applied(CellOrigin):
    """An operator or function of other values."""

    op: str
    args: tuple[NoisyValue, ...]

    def parts(self) -> Iterable[NoisyValue]:
        return self.args

    def range(self, answers: Sequence[Released], beta: float) -> Outcome:
        found = outcome(self.op, [arg.range(answers, beta) for arg in self.args])
        return outcome("trunc", [found]) if self.whole else found

    @property
    def whole(self) -> bool:
        """Whether it is a quotient of whole numbers, which is cut off."""
        numbers = (isinstance(arg.value, int) and not isinstance(arg.value, bool) for arg in self.args)
        return self.op == "/" and all(numbers)


@dataclass(frozen=True, slots=True, eq=False)
class Either(CellOrigin):
    """The value of the first condition that holds, else the last one."""

    branches: tuple[tuple[NoisyValue, NoisyValue], ...]
    otherwise: NoisyValue

    def parts(self) -> Iterable[NoisyValue]:
        return (*itertools.chain(*self.branches), self.otherwise)

    def range(self, answers: Sequence[Released], beta: float) -> Outcome:
        possible: list[Outcome] = []
        for when, then in self.branches:
            holds = when.range(answers, beta)
            if may(holds, True):
                possible.append(then.range(answers, beta))
            if not may(holds, False) and not may(holds, None):
                return hull(possible)
        return hull([*possible, self.otherwise.range(answers, beta)])


@dataclass(frozen=True, slots=True, eq=False)
class AggregatedCells(CellOrigin):
    """An aggregate of released values, each of them counted if its condition holds."""

    name: str
    items: tuple[tuple[NoisyValue, NoisyValue], ...]  # condition and value

    def parts(self) -> Iterable[NoisyValue]:
        return itertools.chain(*self.items)

    def range(self, answers: Sequence[Released], beta: float) -> Outcome:
        """Its items, and whether they count, are known as ranges."""
        sure: list[NumberRange] = []
        maybe: list[NumberRange] = []
        for when, what in self.items:
            holds, value = when.range(answers, beta), what.range(answers, beta)
            if not may(holds, True) or value == only(None):
                continue
            found = span(value)
            if found is None and self.name != "count":
                return Anything()
            found = found or NumberRange(0.0, 0.0, may(value, None))
            doubtful = may(holds, False) or may(holds, None) or found.null
            (maybe if doubtful else sure).append(found)
        return _aggregate_range(self.name, sure, maybe)


@dataclass(frozen=True, slots=True, eq=False)
class Unknown(CellOrigin):
    """A mean, quantile or ratio of a group that may have no rows: missing, or anywhere in its whole range (SR18)."""

    low: float = -INF
    high: float = INF

    def range(self, answers: Sequence[Released], beta: float) -> NumberRange:
        return NumberRange(self.low, self.high, null=True)


def _aggregate_range(name: str, sure: list[NumberRange], maybe: list[NumberRange]) -> Outcome:
    """The range of an aggregate of values that count, and of others that may."""
    every = sure + maybe
    if name == "count":
        return NumberRange(float(len(sure)), float(len(every)))
    if name == "sum":
        low = sum(s.low for s in sure) + sum(min(s.low, 0.0) for s in maybe)
        high = sum(s.high for s in sure) + sum(max(s.high, 0.0) for s in maybe)
        return NumberRange(low, high, null=not sure)
    if not sure:
        return Anything()
    low, high = min(s.low for s in every), max(s.high for s in every)
    if name == "min":
        return NumberRange(low, min(s.high for s in sure))
    if name == "max":
        return NumberRange(max(s.low for s in sure), high)
    if name == "mean" and not maybe:
        return NumberRange(sum(s.low for s in sure) / len(sure), sum(s.high for s in sure) / len(sure))
    between = name == "mean" or (name.startswith("quantile") and not maybe)
    return NumberRange(low, high) if between else Anything()


def applied(op: str, args: Sequence[NoisyValue]) -> NoisyValue:
    """The figure of an operator or function of figures."""
    value = act(op, [arg.value for arg in args])
    if all(arg.origin is None for arg in args):
        return NoisyValue(value)
    return NoisyValue(value, Applied(op, tuple(args)))


def may_be_zero(divisor: NoisyValue, groups: int, answers: Sequence[Released]) -> bool:
    """Whether a divisor, a statistic of one of so many groups, may be zero, so that a ratio by it is unknown."""
    found = span(_at_level(divisor, groups, answers))
    return divisor.value == 0 or (found is not None and found.low <= 0 <= found.high)


def there(count: NoisyValue, answers: Sequence[Released]) -> NoisyValue:
    """Whether a group has rows: its count's interval does not reach 0; the range of the truth by the count itself."""
    found = span(_at_level(count, groups_of(count), answers))
    some = found is not None and found.low > 0 and as_number(count.value) >= 1  # a count is shown whole
    return NoisyValue(some, Applied(">=", (count, NoisyValue(0.5))))


def _at_level(figure: NoisyValue, groups: int, answers: Sequence[Released]) -> Outcome:
    """What a figure can be at the fixed level, for all groups at once; without noise what it is."""
    if figure.value is not None and all(released.exact for released in answers):
        return only(figure.value)
    return figure.range(answers, beta_of(groups) / max(len(statistics(figure)), 1))


def groups_of(figure: NoisyValue) -> int:
    """Of how many groups a figure is of one; 0: of the whole table, or of released rows together."""
    origin = figure.origin
    if isinstance(origin, GroupCells):
        return origin.groups
    return (
        0 if origin is None or isinstance(origin, AggregatedCells) else max(map(groups_of, origin.parts()), default=0)
    )


def either(branches: Sequence[tuple[NoisyValue, NoisyValue]], otherwise: NoisyValue) -> NoisyValue:
    """The figure of a CASE: by the point values, its range by all that could hold."""
    chosen = next((then for when, then in branches if when.value is True), otherwise)
    if all(when.origin is None for when, _ in branches):
        return chosen
    return NoisyValue(chosen.value, Either(tuple(branches), otherwise), chosen.clock)


def statistics(figure: NoisyValue) -> set[object]:
    """The statistics a figure depends on."""
    found: set[object] = set()
    front = [figure]
    for one in front:
        if one.origin is not None:
            own = one.origin.statistic()
            found |= {own} - {None}
            front.extend(one.origin.parts() if own is None else ())
    return found


def readings(figure: NoisyValue, answers: Sequence[Released]) -> list[tuple[object, Released]]:
    """How the statistics that a figure depends on are read, and from what."""
    found: list[tuple[object, Released]] = []
    front = [figure]
    for one in front:
        if isinstance(one.origin, GroupCells):
            found.append((one.origin.column.reading, one.origin.column.released(answers)))
        elif one.origin is not None:
            front.extend(one.origin.parts())
    return found


def interval(figure: NoisyValue, answers: Sequence[Released], beta: float) -> tuple[object, object] | None:
    """From where to where the figure of the table itself lies, except with probability beta; None where unknown."""
    if figure.origin is None:
        return None
    ends = shown(figure.range(answers, beta / max(len(statistics(figure)), 1)))
    number = isinstance(figure.value, (int, float)) and not isinstance(figure.value, bool)
    if ends is None or not (number or figure.value is None or figure.clock is not None):
        return None
    if figure.clock is not None:
        return first(ends[0], figure.clock), last(ends[1], figure.clock)
    if isinstance(figure.origin, AggregatedCells) and figure.value is not None:
        at = as_number(figure.value)  # what is shown was chosen at a fixed level
        return min(ends[0], at), max(ends[1], at)
    return ends


@dataclass(frozen=True, slots=True, eq=False)
class RowContext:
    """What the expressions of one row speak of; `member` says whether the row is in the table at all."""

    keys: tuple[NoisyValue, ...] = ()
    stats: tuple[NoisyValue, ...] = ()
    fields: tuple[NoisyValue, ...] = ()
    left_out: frozenset[int] = frozenset()  # keys that the row's grouping set leaves out
    member: NoisyValue = field(default_factory=lambda: NoisyValue(value=True))
    found: bool = False  # the group was found in the data, so somebody is in it


Evaluate = Callable[[Node, RowContext], NoisyValue]
CountedRow = tuple[RowContext, NoisyValue]  # a row, and whether it counts


def where_too(member: NoisyValue, where: Node | None, row: RowContext, figure: Evaluate) -> NoisyValue:
    """Whether a row that may be a member is one and a condition holds in it."""
    return member if where is None else applied("and", [member, figure(where, row)])


def gather(regroup: Regroup, rows: Sequence[RowContext], figure: Evaluate, *, clear: bool) -> Iterator[RowContext]:
    """The groups of released rows, each with its keys, its aggregates and the keys its set leaves out."""
    kept = [(row, where_too(row.member, regroup.where, row, figure)) for row in rows]
    keyed = [
        (row, member, tuple(figure(key, row) for key in regroup.keys))
        for row, member in kept
        if member.value is True or member.origin is not None
    ]
    for chosen in regroup.sets or (tuple(range(len(regroup.keys))),):
        left = frozenset(range(len(regroup.keys))) - frozenset(chosen)
        groups: dict[tuple[object, ...], list[CountedRow]] = {} if chosen else {(): []}
        noisy = not clear or any(keys[i].origin is not None for _, _, keys in keyed for i in chosen)
        for row, member, keys in keyed:
            groups.setdefault(tuple(keys[i].value for i in chosen), []).append((row, member))
        for labels in sorted(groups, key=lambda one: tuple(ascending(label) for label in one)):
            items = groups[labels]
            full = [NoisyValue(None)] * len(regroup.keys)
            for i, label in zip(chosen, labels, strict=True):
                full[i] = NoisyValue(label, Unclear()) if noisy else NoisyValue(label)
            stats = tuple(_aggregate(stat, items, figure, noisy=noisy) for stat in regroup.stats)
            some = _some([member for _, member in items], always=not chosen)
            yield RowContext(tuple(full), stats, left_out=left, member=some)


def _some(members: list[NoisyValue], *, always: bool) -> NoisyValue:
    """Whether a group has a row at all."""
    if always or any(member.origin is None and member.value is True for member in members):
        return NoisyValue(value=True)
    return applied("or", [applied("is true", [member]) for member in members])


def _aggregate(stat: Aggregate, items: list[CountedRow], figure: Evaluate, *, noisy: bool) -> NoisyValue:
    pairs = [
        (where_too(member, stat.where, row, figure), figure(stat.args[0], row) if stat.args else NoisyValue(1))
        for row, member in items
    ]
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
    return NoisyValue(value, AggregatedCells(name, tuple(pairs)), clock)


def _together(counted: list[NoisyValue]) -> GroupCells | None:
    """A sum of one statistic over different groups, where that is what it is and its noise has a known law."""
    cells = [what.origin for what in counted if isinstance(what.origin, GroupCells) and len(what.origin.rows) == 1]
    if not cells or len(cells) < len(counted):
        return None
    column, rows = cells[0].column, tuple(row for cell in cells for row in cell.rows)
    if any(cell.column is not column for cell in cells) or len(set(rows)) < len(rows) or not column.is_one_sum:
        return None
    return GroupCells(column, rows)


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
    try:
        numbers = [as_number(value) for value in values]
    except QuestionError:  # a text among values whose kind was not known before the release
        return None
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


def _spread(less: int, *, root: bool = False) -> Callable[[list[float]], float | None]:
    def spread(numbers: list[float]) -> float | None:
        n = len(numbers)
        middle = math.fsum(numbers) / n
        square = math.fsum((x - middle) ** 2 for x in numbers) / (n - less) if n > less else None
        return math.sqrt(square) if root and square is not None else square

    return spread


_OF_NUMBERS: dict[str, Callable[[list[float]], float | None]] = {
    "sum": math.fsum,
    "mean": lambda numbers: math.fsum(numbers) / len(numbers),
    "var_pop": _spread(0),
    "var_samp": _spread(1),
    "std_pop": _spread(0, root=True),
    "std_samp": _spread(1, root=True),
}


def _between(ordered: list[float], q: Fraction) -> float:
    place = q * (len(ordered) - 1)
    first = math.floor(place)
    last = min(first + 1, len(ordered) - 1)
    return ordered[first] + float(place - first) * (ordered[last] - ordered[first])
