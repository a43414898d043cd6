"""The output half of a query: expressions and clauses over released numbers, which cost nothing.

A program reads a released table, row by row: groups of private rows (`Groups`), the
rows of another program, several programs' rows one after the other (`Stack`), or
groups of released rows (`Regroup`). No expression here can see a private row.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from fractions import Fraction

from sulq.sql.rows.statistics import Groups

Constant = int | float | str | bool | Fraction | datetime.date | datetime.datetime | None


@dataclass(frozen=True, slots=True)
class Key:
    """The label of the source's key i in this row; missing where the row's grouping set leaves the key out."""

    index: int


@dataclass(frozen=True, slots=True)
class StatAt:
    """The source's statistic i in this row."""

    index: int


@dataclass(frozen=True, slots=True)
class There:
    """Whether the source's group has rows: the interval of its count, statistic i, does not reach 0."""

    index: int


@dataclass(frozen=True, slots=True)
class Field:
    """Column i of the inner program's row."""

    index: int


@dataclass(frozen=True, slots=True)
class Const:
    """A constant."""

    value: Constant


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator or a function by its PostgreSQL name: "+", "<", "and", "not", "is null", "round", ..."""

    op: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Cond:
    """The value of the first branch whose condition is true, else `otherwise` (None: missing)."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None = None


@dataclass(frozen=True, slots=True)
class Grouping:
    """1 where the row's grouping set leaves key i out, else 0."""

    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Single:
    """The only cell of another program: a subquery used as a value."""

    program: Program


Expr = Key | StatAt | There | Field | Const | Apply | Cond | Grouping | Single


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of released rows: one of the statistics of rows, bool_and or bool_or."""

    name: str
    arg: Expr | None = None  # over the inner program's columns; None for rows
    where: Expr | None = None
    distinct: bool = False
    q: Fraction | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Regroup:
    """Groups of released rows: keys, `where` and aggregates speak of the inner program's columns (Field)."""

    source: Program
    where: Expr | None = None
    keys: tuple[Expr, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()
    stats: tuple[Aggregate, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """The rows of several programs of equally many columns, one after the other (UNION ALL)."""

    programs: tuple[Program, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """SELECT ... HAVING ... ORDER BY ... LIMIT over a released table.

    `order`: expression, whether descending, and whether missing values come first.
    Expressions speak of the source: Key and StatAt of Groups and Regroup, Field of
    another Program or a Stack. `having` is also the WHERE of a query over released rows.
    """

    source: Groups | Regroup | Program | Stack
    columns: tuple[tuple[str, Expr], ...]
    having: Expr | None = None
    order: tuple[tuple[Expr, bool, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    distinct: bool = False
