"""From a program to its questions, and from their released answers to the rows of the SELECT."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from sulq.answers.readings.noise_sums import UNKNOWN
from sulq.answers.readings.rank_choice import notes as chosen_notes
from sulq.answers.readings.sampling import Sampling, words
from sulq.answers.released import Released
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.privacy import Loss, Unit
from sulq.language.question import Together
from sulq.language.rowfn import RowFn
from sulq.sql.parse.syntax import Call, Literal, Node, Place, branches, parts
from sulq.sql.released.cells import (
    NoisyValue,
    RowContext,
    Unclear,
    applied,
    either,
    gather,
    there,
    where_too,
)
from sulq.sql.released.columns import Foresee, StatColumn, SumCollector, collect
from sulq.sql.released.grouping_sets import GroupingSet, ascending, ask
from sulq.sql.released.program import (
    GroupStatistics,
    KeyLabel,
    LeftOut,
    ProgramSource,
    Regroup,
    StackedPrograms,
    Stat,
    StatAt,
    SubqueryValue,
    TableProgram,
    There,
)
from sulq.sql.released.ratios import quotient
from sulq.sql.released.tables import GroupColumns, GroupedColumn, SqlTable

MAX_LABEL_LETTERS: Final = 200
CHOSEN: Final = "rows were chosen by noisy values: error bars hold for all rows they were chosen from at once"
SEVERAL: Final = "a subquery used as a value gave several rows: its value is missing"
HIDDEN: Final = "groups of too few people are not shown, and are in no aggregate over groups: those have no error bar"


@dataclass(slots=True, eq=False)
class PreparedQuery:
    """A program with its questions: ask `question` (None: nothing is asked of the rows), then `read` the answers.

    `other`: the keys of a row for the groups that are not shown; None: there is no such row.
    """

    program: TableProgram
    question: Together | None
    sets: dict[int, list[GroupingSet]]
    other: str | None = None

    def read(self, answers: Sequence[Released]) -> SqlTable:
        """The rows of the SELECT: the point values, with what they rest on."""
        reader = Reader(self, answers)
        found = reader.table(self.program)
        notes = (*((CHOSEN,) if found.tries > 1 else ()), *((SEVERAL,) if reader.several else ()))
        if any(column.unknown for column in found.columns):
            notes = (*notes, UNKNOWN)
        notes = (*notes, *chosen_notes([(one.reading, one.released(answers)) for _, _, one in self.columns()]))
        hidden = any(one.groups is None for several in self.sets.values() for one in several)
        return replace(found, notes=(*notes, HIDDEN) if hidden and _regroups(self.program) else notes)

    def with_sampling(self, sampling: Sampling) -> PreparedQuery:
        """The same query, read with intervals that count the sampling of a larger population."""

        def counted(one: GroupingSet) -> GroupingSet:
            columns, rest = (tuple(item.with_sampling(sampling) for item in own) for own in (one.columns, one.rest))
            return replace(one, columns=columns, rest=rest)

        return replace(self, sets={key: list(map(counted, several)) for key, several in self.sets.items()})

    def sampled(
        self, answers: Sequence[Released], unit: Unit
    ) -> Callable[[Sampling], tuple[SqlTable, tuple[str, ...]]]:
        """What reads the answers once more with intervals that count sampling, and says so."""

        def again(sampling: Sampling) -> tuple[SqlTable, tuple[str, ...]]:
            readings: list[object] = [column.reading for _, _, column in self.columns()]
            return self.with_sampling(sampling).read(answers), words(readings, sampling, unit, sql=True)

        return again

    def columns(self) -> list[tuple[GroupStatistics, Stat, StatColumn]]:
        """Every statistic that is asked for, with where it is read (for explanations)."""
        found = []
        for groups in sources_of(self.program):
            for one in self.sets[id(groups)]:
                found += [(groups, stat, column) for stat, column in zip(groups.stats, one.columns, strict=True)]
        return found


def prepare(
    program: TableProgram,
    facts: Facts,
    spend: Loss | None,
    other: str | None = None,
    *,
    foresee: Foresee | None = None,
    interval: bool = True,
    counted: bool = False,
    keys: dict[object, RowFn] | None = None,
) -> PreparedQuery:
    """All that a program asks, as one question at one debit; with `other` also what its hidden groups are together.

    `foresee`: what the law of a choice is asked of. `interval`: whether intervals of chosen quantiles are bought.
    `counted`: no quantile is chosen, all are read from trees of counts. `keys`: those made for it before.
    """

    def asked(asking: SumCollector) -> dict[int, list[GroupingSet]]:
        return {id(groups): ask(asking, groups, rest=other is not None) for groups in sources_of(program)}

    question, sets = collect(facts, spend, asked, foresee, interval=interval, counted=counted, keys=keys)
    if other is not None:
        _some_hidden([one for several in sets.values() for one in several], other)
    found = PreparedQuery(program, question, sets, other)
    if any(_fewest_rows(value, found) > 1 for value in _single_values(program)):
        raise QuestionError(
            "bad-question",
            "A subquery used as a value has one row; this one has one for each group.",
            "Leave out its GROUP BY, or add ORDER BY and LIMIT 1.",
        )
    return found


def _single_values(program: TableProgram) -> list[TableProgram]:
    """The subqueries used as values, in a program and in those under it."""
    return [node.program for node in _everything(program) if isinstance(node, SubqueryValue)]


def _fewest_rows(program: TableProgram, asked: PreparedQuery) -> int:
    """How many rows a program has, at least, whatever is released."""
    source = program.source
    if program.having is not None:
        return 0
    match source:
        case GroupStatistics():
            found = sum(one.listed for one in asked.sets[id(source)])
        case Regroup():
            found = 0 if source.keys else 1
        case StackedPrograms():
            found = sum(_fewest_rows(one, asked) for one in source.programs)
        case TableProgram():
            found = _fewest_rows(source, asked)
    found = max(min(found, 1) - program.offset if program.distinct else found - program.offset, 0)
    return found if program.limit is None else min(found, program.limit)


def _some_hidden(sets: list[GroupingSet], other: object) -> None:
    """Refuse a row for the rest where it would have no label, nothing to tell, or nothing to stand for."""
    if not isinstance(other, str) or not 0 < len(other) <= MAX_LABEL_LETTERS or not other.isprintable():
        raise QuestionError("bad-question", f"other is the label of a row: 1 to {MAX_LABEL_LETTERS} printable letters.")
    remedy = "Leave out other=."
    if all(one.groups is not None for one in sets):
        raise QuestionError("bad-question", "Every group of this query is returned: there is no other.", remedy)
    if not any(one.rest for one in sets):
        raise QuestionError("bad-question", "Nothing is counted of the groups, so nothing of all others.", remedy)


def sources_of(program: TableProgram) -> list[GroupStatistics]:
    """Every Groups of a program, of the programs under it and of those its expressions use; each once."""
    return list({id(one): one for one in _everything(program) if isinstance(one, GroupStatistics)}.values())


Part = ProgramSource | Node


def _everything(program: TableProgram) -> Iterator[Part]:
    """A program, its sources, expressions and subqueries, breadth first."""
    front: list[Part | None] = [program]
    while front:
        one = front.pop(0)
        if one is not None:
            yield one
        match one:
            case None | GroupStatistics():
                pass
            case TableProgram() as inner:
                front += [inner.source, *(expr for _, expr in inner.columns), inner.having]
                front += [expr for expr, _, _ in inner.order]
            case Regroup() as regroup:
                front += [regroup.source, regroup.where, *regroup.keys, *regroup.stats]
            case StackedPrograms() as stack:
                front += stack.programs
            case SubqueryValue() as value:
                front.append(value.program)
            case node:
                front += parts(node)


def _regroups(program: TableProgram) -> bool:
    """Whether released rows are grouped once more."""
    source = program.source
    programs = source.programs if isinstance(source, StackedPrograms) else (source,)
    return isinstance(source, Regroup) or any(_regroups(one) for one in programs if isinstance(one, TableProgram))


class Reader:
    """Works a program's rows out from released numbers alone."""

    def __init__(self, asked: PreparedQuery, answers: Sequence[Released]) -> None:
        self._asked = asked
        self._answers = answers
        self._singles: dict[int, NoisyValue] = {}
        self.several = False  # whether a subquery used as a value had more rows than one

    def table(self, program: TableProgram) -> SqlTable:
        """The rows of a program, in order."""
        found = self._by_columns(program)
        return self._by_rows(program) if found is None else found

    def _by_columns(self, program: TableProgram) -> SqlTable | None:
        """Labels and statistics of groups, read column by column; None where a program does more with them."""
        source = program.source
        if not isinstance(source, GroupStatistics) or program.having is not None or program.distinct:
            return None
        asked = self._asked.sets[id(source)]
        if len(asked) > 1 or (self._asked.other is not None and asked[0].rest):
            return None
        return GroupColumns(asked[0], self._answers, len(source.keys)).table(program)

    def _by_rows(self, program: TableProgram) -> SqlTable:
        """The same for any program, row by row."""
        source, clear, tries = self._source(program.source)
        names = tuple(name for name, _ in program.columns)
        made: list[Made] = []
        for row in source:
            member = where_too(row.member, program.having, row, self.figure)
            if member.value is not True and member.origin is None:
                continue
            cells = tuple(self.figure(expr, row) for _, expr in program.columns)
            made.append((cells, member, tuple(self.figure(expr, row) for expr, _, _ in program.order)))
        if program.distinct:
            made, clear = _different(made), clear and not _noisy(made)
        candidates, chosen = len(made), any(member.origin is not None for _, member, _ in made)
        for i in reversed(range(len(program.order))):
            _, down, nulls_first = program.order[i]
            made = _ordered(made, i, down=down, nulls_first=nulls_first)
        if program.limit is not None or program.offset:
            made = [one for one in made if one[1].value is True]
            end = None if program.limit is None else program.offset + program.limit
            cut = program.offset > 0 or (end is not None and len(made) > end)
            clear = clear and not cut
            chosen = chosen or (cut and any(figure.origin is not None for _, _, order in made for figure in order))
            made = made[program.offset : end]
        tries = max(tries, candidates) if chosen else tries
        return SqlTable.of_rows(names, [(cells, member) for cells, member, _ in made], clear=clear, tries=tries)

    def _source(self, source: ProgramSource) -> tuple[Iterable[RowContext], bool, int]:
        """Rows, whether all that could be there are, and from how many they were chosen."""
        if isinstance(source, GroupStatistics):
            # Of groups found in the data those of too few people are not there, and nobody knows how many.
            return self._groups(source), all(one.groups is not None for one in self._asked.sets[id(source)]), 1
        if isinstance(source, Regroup):
            inner = self.table(source.source)
            # Whether a row counts is in the ranges of its aggregates: nothing is chosen here.
            return gather(source, inner.contexts(), self.figure, clear=inner.clear), inner.clear, 1
        tables = [self.table(p) for p in (source.programs if isinstance(source, StackedPrograms) else (source,))]
        if len({len(table.names) for table in tables}) > 1:
            raise QuestionError("bad-question", "The parts of a union have different numbers of columns.")
        rows = [row for table in tables for row in table.contexts()]
        return rows, all(table.clear for table in tables), sum(table.tries for table in tables)

    def _groups(self, groups: GroupStatistics) -> Iterable[RowContext]:
        for one in self._asked.sets[id(groups)]:
            left = frozenset(range(len(groups.keys))) - frozenset(one.keys)
            source, found = GroupColumns(one, self._answers, len(groups.keys)), one.groups is None
            order = one.order(source.labels)
            keys = [source.figures(KeyLabel(i), order) for i in range(len(groups.keys))]
            stats = [source.figures(StatAt(i), order) for i in range(len(one.columns))]
            for i in range(len(order)):
                labels, numbers = tuple(key[i] for key in keys), tuple(stat[i] for stat in stats)
                yield RowContext(labels, numbers, left_out=left, found=found)
            if self._asked.other is not None and one.rest:
                rest = one.label(self._asked.other, len(groups.keys))
                first = np.zeros(1, dtype=np.int64)
                cells = [GroupedColumn(column, first, 1, self._answers).figures()[0] for column in one.rest]
                yield RowContext(tuple(map(NoisyValue, rest)), tuple(cells), left_out=left, found=True)

    def figure(self, node: Node, row: RowContext) -> NoisyValue:
        """An expression's figure in one row."""
        match node:
            case KeyLabel():
                return row.keys[node.index]
            case StatAt():
                return row.stats[node.index]
            case Place():
                return row.fields[node.index]
            case Literal():
                return NoisyValue(node.value)
            case LeftOut():
                return NoisyValue(int(node.index in row.left_out))
            case There():
                return NoisyValue(value=True) if row.found else there(row.stats[node.index], self._answers)
            case Call(op="case"):
                pairs, last = branches(node)
                found = [(self.figure(when, row), self.figure(then, row)) for when, then in pairs]
                return either(found, NoisyValue(None) if last is None else self.figure(last, row))
            case Call():
                args = [self.figure(arg, row) for arg in node.args]
                return quotient(args, self._answers) if node.op == "/" else applied(node.op, args)
            case SubqueryValue():
                return self._single(node.program)
        raise TypeError("not an expression of released values")

    def _single(self, program: TableProgram) -> NoisyValue:
        """The one cell of a subquery; missing where it has no row."""
        if id(program) not in self._singles:
            table = self.table(program)
            rows = table.shown()
            self.several |= len(rows) > 1
            noisy = not table.certain
            found = rows[0][0] if len(rows) == 1 else NoisyValue(None)
            self._singles[id(program)] = NoisyValue(found.value, Unclear()) if noisy else found
        return self._singles[id(program)]


Made = tuple[tuple[NoisyValue, ...], NoisyValue, tuple[NoisyValue, ...]]


def _place(one: Made, i: int, *, nulls_first: bool) -> tuple[int, object]:
    """Where a row comes in an order: missing values together, at the end that was asked for; unknown ones last."""
    value, origin = one[2][i].value, one[2][i].origin
    if value is None:
        return (0 if nulls_first and origin is None else 2, 0)
    return (1, ascending(value))


def _ordered(made: list[Made], i: int, *, down: bool, nulls_first: bool) -> list[Made]:
    """Rows by the i-th column of ORDER BY, equal ones as they were."""
    places = [_place(one, i, nulls_first=nulls_first) for one in made]
    keys = [(-rank if down else rank, value) for rank, value in places]
    return [made[j] for j in sorted(range(len(made)), key=lambda j: keys[j], reverse=down)]


def _different(made: list[Made]) -> list[Made]:
    """The first of equal rows that are there, and all that may not be."""
    kept: dict[object, Made] = {}
    for one in made:
        there_ = one[1].value is True
        kept.setdefault(tuple(figure.value for figure in one[0]) if there_ else id(one), one)
    return list(kept.values())


def _noisy(made: list[Made]) -> bool:
    return any(figure.origin is not None for one in made for figure in (*one[0], one[1]))
