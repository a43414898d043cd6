"""The output half of a query: expressions and clauses over released numbers, which cost nothing.

Expressions are those of sql/parse/syntax.py over leaves that are released. A program
reads a released table, row by row: groups of private rows (`Groups`), the rows of
another program, several programs' rows one after the other (`Stack`), or groups of
released rows (`Regroup`). No expression here can see a private row.
"""

from __future__ import annotations

from dataclasses import dataclass

from sulq.sql.parse.syntax import Aggregate, Node, ReleasedLeaf
from sulq.sql.rows.statistics import GroupStatistics


@dataclass(frozen=True, slots=True)
class KeyLabel(ReleasedLeaf):
    """The label of the source's key i in this row; missing where the row's grouping set leaves the key out."""

    index: int


@dataclass(frozen=True, slots=True)
class StatAt(ReleasedLeaf):
    """The source's statistic i in this row."""

    index: int


@dataclass(frozen=True, slots=True)
class There(ReleasedLeaf):
    """Whether the source's group has rows: the interval of its count, statistic i, does not reach 0."""

    index: int


@dataclass(frozen=True, slots=True)
class LeftOut(ReleasedLeaf):
    """1 where the row's grouping set leaves key i out, else 0."""

    index: int


@dataclass(frozen=True, slots=True, eq=False)
class SubqueryValue(ReleasedLeaf):
    """The only cell of another program: a subquery used as a value."""

    program: TableProgram


@dataclass(frozen=True, slots=True, eq=False)
class Regroup:
    """Groups of released rows: keys, `where` and aggregates speak of the inner program's columns (Place)."""

    source: TableProgram
    where: Node | None = None
    keys: tuple[Node, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()
    stats: tuple[Aggregate, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class StackedPrograms:
    """The rows of several programs of equally many columns, one after the other (UNION ALL)."""

    programs: tuple[TableProgram, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TableProgram:
    """SELECT ... HAVING ... ORDER BY ... LIMIT over a released table.

    `order`: expression, whether descending, and whether missing values come first.
    Nodeessions speak of the source: Key and StatAt of Groups and Regroup, Place of
    another Program or a Stack. `having` is also the WHERE of a query over released rows.
    """

    source: GroupStatistics | Regroup | TableProgram | StackedPrograms
    columns: tuple[tuple[str, Node], ...]
    having: Node | None = None
    order: tuple[tuple[Node, bool, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    distinct: bool = False
