"""A released table by columns: values, intervals and order of many rows at once.

Labels of groups and their statistics are read column by column, as NumPy has them;
what an expression made row by row is a column of those figures. Either way a cell has
the same value, interval and origin (tests/sql/released/test_tables.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np

from sulq.answers.released import Released
from sulq.display.moments import first, last, moment
from sulq.language.kinds import Integers, Truths
from sulq.sql.parse.syntax import Call, Literal, Node
from sulq.sql.released.cells import GroupCells, NoisyValue, RowContext, Unknown, interval
from sulq.sql.released.columns import StatColumn
from sulq.sql.released.functions import act
from sulq.sql.released.grouping_sets import GroupingSet, ranks
from sulq.sql.released.program import KeyLabel, LeftOut, StatAt, TableProgram

MAX_WHOLE: Final = 2.0**62  # of a number that 64 bits hold
Ends = tuple[list[object], list[object]]  # of the cells of a column; None for a cell that has no interval
FigureRow = tuple[NoisyValue, ...]


class TableColumn:
    """One column of a released table."""

    @property
    def values(self) -> list[object]:
        """What the cells show."""
        raise NotImplementedError

    @property
    def noisy(self) -> list[bool]:
        """Which cells rest on noise."""
        raise NotImplementedError

    @property
    def unknown(self) -> bool:
        """Whether a cell that rests on noise is missing."""
        raise NotImplementedError

    def figures(self) -> list[NoisyValue]:
        """Its cells, each with where it came from."""
        raise NotImplementedError

    def examples(self) -> list[NoisyValue]:
        """Cells that come from all that the column comes from."""
        return self.figures()

    def ends(self, answers: Sequence[Released], beta: float) -> Ends | None:
        """The lower and upper ends of the intervals, except with probability beta a cell; None where none has one."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class LabelColumn(TableColumn):
    """Labels and constants: they rest on no noise."""

    labels: list[object]

    @property
    def values(self) -> list[object]:
        return self.labels

    @property
    def noisy(self) -> list[bool]:
        return [False] * len(self.labels)

    @property
    def unknown(self) -> bool:
        return False

    def figures(self) -> list[NoisyValue]:
        return list(map(NoisyValue, self.labels))

    def ends(self, answers: Sequence[Released], beta: float) -> Ends | None:
        return None


@dataclass(frozen=True, eq=False)
class FigureColumn(TableColumn):
    """Cells that were worked out row by row."""

    cells: tuple[NoisyValue, ...]

    @cached_property
    def values(self) -> list[object]:
        return [cell.value for cell in self.cells]

    @cached_property
    def noisy(self) -> list[bool]:
        return [cell.origin is not None for cell in self.cells]

    @cached_property
    def unknown(self) -> bool:
        return any(cell.value is None and cell.origin is not None for cell in self.cells)

    def figures(self) -> list[NoisyValue]:
        return list(self.cells)

    def ends(self, answers: Sequence[Released], beta: float) -> Ends | None:
        found = [interval(cell, answers, beta) or (None, None) for cell in self.cells]
        low, high = [low for low, _ in found], [high for _, high in found]
        return None if all(end is None for end in low) else (low, high)


@dataclass(frozen=True, eq=False)
class GroupedColumn(TableColumn):
    """A statistic of groups at these places of a column; of so many `groups` (0: the whole table)."""

    column: StatColumn
    places: Integers
    groups: int
    answers: Sequence[Released]

    @cached_property
    def _nothing(self) -> tuple[Truths, float, float] | None:
        """Which of them may have no rows, and the range of what is then unknown; None where all are known."""
        found = self.column.unknown(self.answers) if self.groups else None
        here = None if found is None else found[0][self.places]
        return None if found is None or here is None or not here.any() else (here, *found[1:])

    @property
    def noisy(self) -> list[bool]:
        return [True] * len(self.places)

    @property
    def unknown(self) -> bool:
        return self._nothing is not None

    @cached_property
    def values(self) -> list[object]:
        numbers = self.column.values(self.answers)[self.places]
        if self._nothing is not None:
            numbers = np.where(self._nothing[0], 0.0, numbers)
        made: list[object]
        if self.column.clock is not None:
            made = [moment(value, self.column.clock) for value in numbers.tolist()]
        elif self.column.whole:
            fits = bool((np.abs(numbers) < MAX_WHOLE).all())  # false for what is no number
            made = np.rint(numbers).astype(np.int64).tolist() if fits else [round(x) for x in numbers.tolist()]
        else:
            made = numbers.tolist()
        for place in [] if self._nothing is None else np.flatnonzero(self._nothing[0]).tolist():
            made[place] = None
        return made

    def figures(self) -> list[NoisyValue]:
        column, groups, clock = self.column, self.groups, self.column.clock
        pairs = zip(self.values, self.places.tolist(), strict=True)
        made = [NoisyValue(value, GroupCells(column, (place,), groups), clock) for value, place in pairs]
        if self._nothing is not None:
            here, low, high = self._nothing
            for place in np.flatnonzero(here).tolist():
                made[place] = NoisyValue(None, Unknown(low, high), clock)
        return made

    def examples(self) -> list[NoisyValue]:
        known = self.places if self._nothing is None else self.places[~self._nothing[0]]
        some = known[:1] if len(known) else self.places[:1]
        return GroupedColumn(self.column, some, self.groups, self.answers).figures()

    def ends(self, answers: Sequence[Released], beta: float) -> Ends | None:
        if not len(self.places):
            return None
        found = [end[self.places] for end in self.column.interval(answers, beta)]
        if self._nothing is not None:
            here, *bounds = self._nothing
            found = [np.where(here, bound, end) for bound, end in zip(bounds, found, strict=True)]
        low, high = (end.tolist() for end in found)
        clock = self.column.clock
        return (low, high) if clock is None else ([first(at, clock) for at in low], [last(at, clock) for at in high])


@dataclass(frozen=True, slots=True, eq=False)
class SqlTable:
    """The rows a SELECT shows, by columns under names; `clear`: whether every row that could be there is there.

    `tries`: from how many rows those shown were chosen by their noisy values (HAVING,
    ORDER BY with LIMIT). Noise helps a row to be chosen, so an interval that holds for
    one row in 1 - beta of the cases does not for the chosen ones; intervals that hold
    for all those rows at once do, whichever are chosen.
    `marked`: of a table made row by row its rows, also those that are not shown, each with whether it is there.
    """

    names: tuple[str, ...]
    columns: tuple[TableColumn, ...]
    clear: bool = True
    tries: int = 1
    notes: tuple[str, ...] = ()
    marked: tuple[tuple[FigureRow, NoisyValue], ...] | None = None

    @classmethod
    def of_rows(
        cls, names: tuple[str, ...], marked: Sequence[tuple[FigureRow, NoisyValue]], *, clear: bool, tries: int
    ) -> Self:
        """A table whose cells were worked out row by row."""
        shown = [row for row, member in marked if member.value is True]
        columns = tuple(FigureColumn(tuple(row[j] for row in shown)) for j in range(len(names)))
        return cls(names, columns, clear, tries, marked=tuple(marked))

    @property
    def size(self) -> int:
        """How many rows are shown."""
        return len(self.columns[0].values) if self.columns else 0

    def shown(self) -> list[FigureRow]:
        """The rows the point values select, cell by cell."""
        return list(zip(*(column.figures() for column in self.columns), strict=True))

    @property
    def rows(self) -> list[FigureRow]:
        """The rows, also those not shown, cell by cell."""
        return self.shown() if self.marked is None else [row for row, _ in self.marked]

    def contexts(self) -> list[RowContext]:
        """The rows, also those not shown, as what expressions over them speak of."""
        if self.marked is None:
            return [RowContext(fields=row) for row in self.shown()]
        return [RowContext(fields=row, member=member) for row, member in self.marked]

    def every(self) -> tuple[TableColumn, ...]:
        """The columns of all rows, also of those not shown."""
        if self.marked is None:
            return self.columns
        return tuple(FigureColumn(tuple(row[j] for row in self.rows)) for j in range(len(self.names)))

    @property
    def certain(self) -> bool:
        """Whether which rows are there rests on no noise."""
        return self.clear and all(member.origin is None for _, member in self.marked or ())


@dataclass(frozen=True, eq=False)
class GroupColumns:
    """The groups of one grouping set, of which the rows of a table are made: labels and statistics by columns."""

    asked: GroupingSet
    answers: Sequence[Released]
    width: int  # keys of all grouping sets together

    @cached_property
    def labels(self) -> list[list[object]]:
        """The labels of each key, group by group as they were asked."""
        return self.asked.labels(self.answers, self.width)

    @property
    def size(self) -> int:
        """How many groups there are."""
        return self.asked.size(self.answers)

    def table(self, program: TableProgram) -> SqlTable | None:
        """The rows of a program that only shows and orders labels and statistics; None of any other."""
        order = self.ordered(program.order)
        if order is None:
            return None
        shown = order[program.offset : None if program.limit is None else program.offset + program.limit]
        columns = [self.column(node, shown) for _, node in program.columns]
        known = tuple(column for column in columns if column is not None)
        if len(known) < len(columns):
            return None
        cut = program.offset > 0 or len(shown) < len(order)
        chosen = cut and any(isinstance(node, StatAt) for node, _, _ in program.order)
        names = tuple(name for name, _ in program.columns)
        # Of groups found in the data those of too few people are not there, and nobody knows how many.
        clear = self.asked.groups is not None and not cut
        return SqlTable(names, known, clear, max(1, len(order)) if chosen else 1)

    def ordered(self, by: Sequence[tuple[Node, bool, bool]]) -> Integers | None:
        """The groups' places in the order of expressions, else of their labels; None where one is no column here."""
        order = self.asked.order(self.labels)
        for node, down, nulls_first in reversed(by):
            column = self.column(node, order)
            if column is None:
                return None
            key = ranks(column.values)
            key = -key if down else key
            missing = [value is None for value in column.values]
            # Missing values stand together, at the end that was asked for; unknown ones last.
            key[missing] = -len(key) - 1 if nulls_first and not any(column.noisy) else len(key) + 1
            order = order[np.argsort(key, kind="stable")]
        return order

    def figures(self, node: KeyLabel | StatAt, places: Integers) -> list[NoisyValue]:
        """The cells of a label or a statistic."""
        found = self.column(node, places)
        return [] if found is None else found.figures()

    def column(self, node: Node, places: Integers) -> TableColumn | None:
        """What an expression shows for the groups at these places; None where it is worked out row by row."""
        match node:
            case KeyLabel():
                known = self.labels[node.index]
                return LabelColumn([known[place] for place in places.tolist()])
            case StatAt():
                groups = self.size if self.asked.keys else 0
                return GroupedColumn(self.asked.columns[node.index], places, groups, self.answers)
            case Literal():
                return LabelColumn([node.value] * len(places))
            case LeftOut():
                return LabelColumn([int(node.index not in self.asked.keys)] * len(places))
            case Call() if node.args and node.op not in ("case", "/"):
                args = [self.column(arg, places) for arg in node.args]
                if all(isinstance(arg, LabelColumn) for arg in args):
                    cells = zip(*(arg.values for arg in args if arg is not None), strict=True)
                    return LabelColumn([act(node.op, list(one)) for one in cells])
        return None
