"""Groups and their grouping sets: which sets are asked, which are summed from a finer one, and their rows in order."""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sulq.answers.released import Released
from sulq.display.moments import moment
from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.language.kinds import Code, Integers, Scalar, Truth, Words
from sulq.language.rowfn import OrMissing, RowFn
from sulq.language.shape import shape
from sulq.sql.released.columns import RowGroups, StatColumn, SumCollector, labels
from sulq.sql.released.functions import number
from sulq.sql.released.program import MAX_LISTED_GROUPS, MAX_PURE_GROUPS, MAX_WORKED_CELLS, GroupStatistics, Stat
from sulq.sql.released.questions import columns_of


@dataclass(frozen=True, slots=True, eq=False)
class GroupingSet:
    """One grouping set as it was asked: its keys, where its columns are, and the labels of its groups."""

    keys: tuple[int, ...]
    columns: tuple[StatColumn, ...]
    groups: tuple[tuple[object, ...], ...] | None  # the labels of each key, the last key fastest; None: found in data
    question: int = 0  # of groups found in the data: whose labels they are
    clocks: tuple[str | None, ...] = ()
    rest: tuple[StatColumn, ...] = ()  # what the groups shown leave of the total, where that is asked for
    texts: tuple[bool, ...] = ()  # with it: which keys are texts, so that a text can stand for the rest

    @property
    def listed(self) -> int:
        """How many groups are returned whatever the data holds."""
        return 0 if self.groups is None else math.prod(map(len, self.groups))

    def size(self, answers: Sequence[Released]) -> int:
        """How many groups there are."""
        return answers[self.question].cells if self.groups is None else self.listed

    def labels(self, answers: Sequence[Released], width: int) -> list[list[object]]:
        """The labels of all keys, group by group as they were asked; missing for a key that is left out."""
        given = dict(zip(self.keys, self._own(answers), strict=True))
        return [given.get(key) or [None] * self.size(answers) for key in range(width)]

    def _own(self, answers: Sequence[Released]) -> list[list[object]]:
        """The labels of this set's keys."""
        if self.groups is None:
            found = answers[self.question].labels or ((),) * len(self.keys)
            return [_shown(labels, clock) for labels, clock in zip(found, self.clocks, strict=True)]
        return [[known[i] for i in code.tolist()] for known, code in zip(self.groups, self._codes(), strict=True)]

    def order(self, labels: Sequence[Sequence[object]]) -> Integers:
        """The groups' places by the `labels` of all keys: ascending, missing labels last."""
        if self.groups is None:
            own = [ranks(labels[key]) for key in self.keys]
        else:
            own = [ranks(known)[code] for known, code in zip(self.groups, self._codes(), strict=True)]
        given = dict(zip(self.keys, own, strict=True))
        # The first key decides, which NumPy takes last.
        return np.lexsort([given[key] for key in sorted(given, reverse=True)]) if given else np.arange(self.listed)

    def _codes(self) -> list[Integers]:
        """Of which label each listed group is, key by key."""
        sizes = [len(known) for known in self.groups or ()]
        return list(np.indices(sizes).reshape(len(sizes), -1)) if sizes else []

    def label(self, other: str, width: int) -> tuple[object, ...]:
        """The keys of the row for the rest: the given text; missing where a key is no text, or left out."""
        given = dict(zip(self.keys, [other if text else None for text in self.texts], strict=True))
        return tuple(given.get(key) for key in range(width))


def ranks(values: Sequence[object]) -> Integers:
    """Each value's place in ascending order, texts by code point and after numbers, missing ones last; equal alike."""
    kinds = set(map(type, values))
    if type(None) in kinds:
        there = np.array([value is not None for value in values])
        found = np.full(len(values), len(values))
        found[there] = ranks([value for value in values if value is not None])
        return found
    if kinds <= {int, float, bool}:
        with contextlib.suppress(OverflowError):
            return np.unique(np.array(values, dtype=np.float64), return_inverse=True)[1]
    if kinds == {str}:
        if all(map(operator.lt, values, itertools.islice(values, 1, None))):  # type: ignore[arg-type]
            return np.arange(len(values))  # as they mostly come
        places: dict[object, int] = {text: i for i, text in enumerate(sorted(dict.fromkeys(values)))}  # type: ignore[type-var]
        return np.fromiter(map(places.__getitem__, values), np.int64, len(values))
    keys = [ascending(value) for value in values]
    order = {key: i for i, key in enumerate(sorted(set(keys)))}
    return np.fromiter(map(order.__getitem__, keys), np.int64, len(values))


def ascending(value: object) -> tuple[int, object]:
    """A value's place in ascending order, texts by code point and after numbers, missing ones last."""
    if value is None:
        return (2, 0)
    return (1, value) if isinstance(value, str) else (0, number(value))


def _read(label: object, clock: str | None) -> object:
    """A label as SQL shows it: a moment by its clock, a bin as an interval."""
    if label is not None and clock is not None and isinstance(label, (int, float)):
        return moment(label, clock)
    if isinstance(label, tuple) and len(label) == 2:
        return f"[{label[0]}, {label[1]})"
    return label


def _shown(labels: Sequence[object], clock: str | None) -> list[object]:
    """Labels as SQL shows them."""
    plain = clock is None and tuple not in set(map(type, labels))
    return list(labels) if plain else [_read(label, clock) for label in labels]


def ask(asking: SumCollector, groups: GroupStatistics, *, rest: bool = False) -> list[GroupingSet]:
    """Ask for the groups of all grouping sets, each its own question or summed from a finer one (SR13).

    `rest`: also for the totals beside groups found in the data, which tell of those not shown (SR14).
    """
    sets = groups.sets or (tuple(range(len(groups.keys))),)
    if any(not 0 <= key < len(groups.keys) for keys in sets for key in keys):
        raise QuestionError("bad-question", "A grouping set names keys by their places.")
    schema = asking.schema(RowGroups(groups.over, groups.where, ()))
    sizes = [_size(key, schema) for key in groups.keys]
    words = [isinstance(key.kind(schema), Words) for key in groups.keys]
    most, cells = (groups.most, groups.cells) if len(sets) == 1 else (MAX_LISTED_GROUPS, MAX_WORKED_CELLS)
    many = [math.prod(sizes[i] for i in keys) for keys in sets]
    declared = [number for keys, number in zip(sets, many, strict=True) if not any(words[i] for i in keys)]
    if groups.pure and most < max(declared, default=0) <= MAX_PURE_GROUPS:
        several = "A query over several grouping sets"
        what = several if len(sets) > 1 else "A query that computes with the statistics of each group"
        remedy = "Show and order the groups as they are, and compute or filter in a frame."
        raise QuestionError("too-large", f"{what} has at most {most:,} groups; this one has {max(declared):,}.", remedy)
    opened = [any(words[i] for i in keys) or number > most for keys, number in zip(sets, many, strict=True)]
    listed = [i for i, is_open in enumerate(opened) if not is_open]
    if sum(many[i] for i in listed) * max(len(groups.stats), 1) > cells:
        raise QuestionError("too-large", f"An answer in SQL has at most {cells:,} cells.")
    source = dict(zip(listed, sources([sets[i] for i in listed], sizes, gaussian=asking.gaussian), strict=True))
    adding = [i for i, stat in enumerate(groups.stats) if adds(stat)]
    own: dict[int, list[StatColumn]] = {}
    made: list[GroupingSet] = []
    for i, keys in enumerate(sets):
        rows = _rows(groups, keys, schema, open_=opened[i])
        if opened[i]:
            made.append(_open(asking, groups, keys, rows, schema, rest=rest))
            continue
        finer = listed[source[i]]
        if finer == i:
            columns = own[i] = columns_of(asking, rows, groups.stats)
        else:
            if finer not in own:
                own[finer] = columns_of(asking, _rows(groups, sets[finer], schema, open_=False), groups.stats)
            once = [stat for j, stat in enumerate(groups.stats) if j not in adding]
            asked = iter(columns_of(asking, rows, once) if once else [])
            spread = (tuple(sizes[key] for key in sets[finer]), tuple(sets[finer].index(key) for key in keys))
            columns = [
                replace(column, summed=spread, _kept={}, _of=None) if j in adding else next(asked)
                for j, column in enumerate(own[finer])
            ]
        made.append(GroupingSet(keys, tuple(columns), _groups(groups, keys, schema)))
    return made


def _rows(groups: GroupStatistics, keys: tuple[int, ...], schema: Schema, *, open_: bool) -> RowGroups:
    fitted = tuple(groups.keys[key] if open_ else _listed(groups.keys[key], schema)[0] for key in keys)
    return RowGroups(groups.over, groups.where, fitted, open_, alone=len(groups.sets) < 2)


def _listed(key: RowFn, schema: Schema) -> tuple[RowFn, tuple[object, ...], str | None]:
    """A key with all its labels; of a number that only a pure spend lists, the missing one too."""
    kind = key.kind(schema)
    wide = isinstance(kind, Scalar) and kind.nullable and _size(key, schema) > MAX_LISTED_GROUPS
    fitted, known, clock = labels(key, schema)
    return (OrMissing(fitted), (*known, None), clock) if wide else (fitted, known, clock)


def _groups(groups: GroupStatistics, keys: tuple[int, ...], schema: Schema) -> tuple[tuple[object, ...], ...]:
    """The labels of listed keys, key by key."""
    known = [_listed(groups.keys[key], schema) for key in keys]
    return tuple(tuple(_shown(listed, clock)) for _, listed, clock in known)


def _open(
    asking: SumCollector, groups: GroupStatistics, keys: tuple[int, ...], rows: RowGroups, schema: Schema, *, rest: bool
) -> GroupingSet:
    """Groups that are found in the data and shown if enough people are in them (SR14)."""
    if rest and asking.laplace_keys:
        why = "A row for the other groups is a difference of sums, and is asked with Gaussian noise."
        raise QuestionError("open-keys", why, "Name spend=EpsilonDelta(epsilon, delta) without law=, or no other=.")
    columns = columns_of(asking, rows, (_additive if rest else _people)(asking, rows, groups.stats))
    kinds = [groups.keys[key].kind(schema) for key in keys]
    clocks = tuple(kind.clock if isinstance(kind, Scalar) else None for kind in kinds)
    found = GroupingSet(keys, tuple(columns), None, asking.place(rows), clocks)
    if not rest:
        return found
    return replace(found, rest=tuple(asking.rest(columns)), texts=tuple(map(_worded, kinds)))


def _additive(asking: SumCollector, rows: RowGroups, stats: Sequence[Stat]) -> list[Stat]:
    """Statistics whose rest is a total less the groups shown: people add up only where each has one row."""
    found = shape(rows.over, asking.facts)
    single = found.owned and found.rows == 1
    made = []
    for stat in stats:
        people = stat.name == "persons" and stat.where is None
        if people and not single:
            why = "how many different people are in none of those shown is not known."
            remedy = "Count rows, or leave out other=."
            raise QuestionError("open-keys", f"A person may be in several groups: {why}", remedy)
        made.append(Stat("rows") if people else stat)
    return made


def _people(asking: SumCollector, rows: RowGroups, stats: Sequence[Stat]) -> list[Stat]:
    """Rows are counted as people where each person has one: the number that shows a group is that of its rows (SR14).

    COUNT(*) alone, whose sum stands last: all others keep their places, so that transcripts that were published before
    are read as they were. Not beside a rest: the noise of a number that passed a threshold is not that of a sum.
    """
    single = shape(rows.over, asking.facts).rows == 1
    return [Stat("persons") if single and stat.name == "rows" and stat.where is None else stat for stat in stats]


def _worded(kind: object) -> bool:
    """Whether a key's labels are shown as texts."""
    if isinstance(kind, Code):
        return all(isinstance(_read(label, None), str) for label in kind.labels if label is not None)
    return isinstance(kind, Words)


def _size(key: RowFn, schema: Schema) -> int:
    """How many labels a key has; more than may be listed where nobody can list them."""
    kind = key.kind(schema)
    if isinstance(kind, Words):
        return MAX_LISTED_GROUPS + 1
    if isinstance(kind, Truth):
        return 2
    if isinstance(kind, Code):
        return kind.size
    if isinstance(kind, Scalar) and kind.lo is not None and kind.hi is not None:
        if kind.step is None or kind.step < 1:
            raise QuestionError("wrong-kind", "A number that is not whole cannot be a key.", "Group by a range of it.")
        wide = max(math.floor(kind.hi) - math.ceil(kind.lo) + 1, 1)
        return wide + (wide > MAX_LISTED_GROUPS and kind.nullable)
    raise QuestionError("wrong-kind", "This cannot be a key.", "Group by a range of it.")


def adds(stat: Stat) -> bool:
    """Whether a statistic of a union of groups follows from those of its parts: not so for what is counted once."""
    return stat.name != "persons" and not stat.distinct


def sources(sets: Sequence[tuple[int, ...]], sizes: Sequence[int], *, gaussian: bool) -> list[int]:
    """For each grouping set the set it is read from: itself, or a finer one whose groups are added up.

    Asking k sets at once divides the spend by k: each has noise of k units (Laplace) or
    root k (Gaussian); adding up m groups multiplies a set's noise by root m. Taken
    greedily so that the product of all sets' noise is small.
    """
    cells = [math.prod(sizes[key] for key in keys) for keys in sets]

    def cost(asked: set[int]) -> tuple[float, list[int]]:
        read = []
        noise = len(sets) * math.log(len(asked)) * (0.5 if gaussian else 1.0)
        for i, keys in enumerate(sets):
            finer = [j for j in asked if set(keys) <= set(sets[j])]
            if not finer:
                return math.inf, []
            best = min(finer, key=lambda j: (cells[j], j != i))
            read.append(best)
            noise += 0.5 * math.log(cells[best] / cells[i])
        return noise, read

    maximal = [i for i, keys in enumerate(sets) if not any(set(keys) < set(other) for other in sets)]
    asked = {i for n, i in enumerate(maximal) if not any(set(sets[i]) == set(sets[j]) for j in maximal[:n])}
    if not asked:
        return []
    best, read = cost(asked)
    while True:
        tried = [(cost(asked | {i}), i) for i in range(len(sets)) if i not in asked]
        if not tried or min(tried)[0][0] >= best:
            return read
        (best, read), one = min(tried)
        asked.add(one)
