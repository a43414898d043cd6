"""The syntax of a query in our own words: what the parser's tree is checked into, and all that is ever read of it.

Every node knows the place in the text where it stands (`at`), which plays no part
in equality: two expressions are the same if they say the same. A refusal (`SqlRefused`)
carries that place and leaves `sql/` as a QuestionError with line and column.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NoReturn

from sulq.errors import QuestionError

PLAIN_CONDITION: Final = "Write it as after WHERE: age > 40 AND city = 'Lod'."


class SqlRefused(Exception):
    """What is refused, why, and where in the text."""

    def __init__(self, code: str, message: str, at: int, remedy: str = "", column: Name | None = None) -> None:
        super().__init__(code, message, at, remedy)
        self.code, self.message, self.at, self.remedy = code, message, at, remedy
        self.column = column  # that is not among those of FROM

    def located(self, text: str, what: str = "") -> QuestionError:
        """The refusal as the analyst reads it; `what` the text is, where it is no query."""
        line = text.count("\n", 0, self.at) + 1
        column = self.at - (text.rfind("\n", 0, self.at) + 1) + 1
        place = f"at line {line}, column {column}{what and f' of the {what}'}"
        remedy = self.remedy or (PLAIN_CONDITION if what and self.code == "sql-syntax" else "")
        return QuestionError(self.code, f"{self.message.rstrip('.')}, {place}.", remedy)


def unsupported(what: str, at: int, remedy: str) -> NoReturn:
    """Refuse a construct of SQL by its name, and say what to write instead."""
    raise SqlRefused("sql-unsupported", f"{what} is not answered here", at, remedy)


@contextmanager
def placed(at: int) -> Iterator[None]:
    """Tell the place in the text of what is refused inside."""
    try:
        yield
    except QuestionError as error:
        raise SqlRefused(error.code, error.message, at, error.remedy) from None


MAX_GROUPING_SETS = 64
MAX_SELECT_ITEMS = 1024
NUMERIC = ("int", "float")
TYPES = (*NUMERIC, "bool", "text", "date", "timestamp", "interval", "null")


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of months and days and microseconds, as PostgreSQL keeps it."""

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.days, -self.microseconds)


Constant = int | float | Fraction | str | bool | datetime.date | datetime.datetime | Interval | None


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """An identifier: exact where it was quoted, of any case where it was not."""

    text: str
    quoted: bool = False
    at: int = 0

    @property
    def _meant(self) -> tuple[str, bool]:
        return self.text if self.quoted else self.text.lower(), self.quoted

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Name) and self._meant == other._meant

    def __hash__(self) -> int:
        return hash(self._meant)

    def fits(self, name: str) -> bool:
        """Whether this identifier may mean that name."""
        return name == self.text if self.quoted else name.lower() == self.text.lower()


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant and its type."""

    value: Constant
    type: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column by its name, and its table's where that was written."""

    name: Name
    table: Name | None = None
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Star:
    """All columns, or all of one table's."""

    table: Name | None = None
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Place:
    """The column at this place of the scope: what a name became once it was looked up."""

    index: int
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or function by its PostgreSQL name; `called` is how it was written, where that names a column.

    CASE is "case" of its conditions and results in turn, and of the last result where there is an ELSE.
    """

    op: str
    args: tuple[Node, ...]
    called: str = field(default="?column?", compare=False)
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """A value of another type; `wide` is a text's longest length, or a number's decimal places."""

    item: Node
    to: str
    wide: int | None = None
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of rows: one of the statistics' names, its own filter, and how it was written."""

    name: str
    args: tuple[Node, ...] = ()
    distinct: bool = False
    where: Node | None = None
    q: Fraction | None = None
    called: str = field(default="?column?", compare=False)
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Subquery:
    """Whether a subquery gives any row ("exists") or an item's value ("in"), or its only cell ("value")."""

    how: str
    query: Query
    item: Node | None = None
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ReleasedLeaf:
    """What only stands for a released value: the kinds are those of sql/released/program.py."""

    @property
    def at(self) -> int:
        """Nowhere in the text."""
        return 0


Node = Literal | ColumnRef | Star | Place | Call | Cast | Aggregate | Subquery | ReleasedLeaf


@dataclass(frozen=True, slots=True)
class Named:
    """A table or a WITH query by its name; `registered`: a table, since a schema was written before it."""

    name: Name
    alias: Name | None = None
    columns: tuple[Name, ...] = ()
    registered: bool = False
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Derived:
    """A subquery in FROM, or a join in parentheses."""

    query: Query | Joined | Named
    alias: Name | None = None
    columns: tuple[Name, ...] = ()
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Joined:
    """Two tables side by side: "inner", "left", "right" or "cross" (a comma too)."""

    left: Source
    right: Source
    how: str
    on: Node | None = None
    using: tuple[Name, ...] = ()
    natural: bool = False
    at: int = field(default=0, compare=False)


Source = Named | Derived | Joined


@dataclass(frozen=True, slots=True)
class Order:
    """One column of ORDER BY."""

    item: Node
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Sets:
    """ROLLUP, CUBE or GROUPING SETS: lists of keys by name, each list one grouping set."""

    sets: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryClauses:
    """What a SELECT and a UNION have in common; `distinct`: each different row once."""

    distinct: bool = False
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    tables: tuple[tuple[Name, Query], ...] = ()  # WITH
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class SelectQuery(QueryClauses):
    """One SELECT; `groups` is None where there is no GROUP BY."""

    items: tuple[tuple[Node, str | None], ...]
    source: Source | None = None
    where: Node | None = None
    groups: tuple[Node | Sets, ...] | None = None
    having: Node | None = None


@dataclass(frozen=True, slots=True)
class UnionQuery(QueryClauses):
    """The rows of two queries."""

    left: Query
    right: Query


Query = SelectQuery | UnionQuery


def parts(node: Node) -> tuple[Node, ...]:
    """The expressions an expression is made of; a subquery's own are not among them."""
    match node:
        case Call():
            return node.args
        case Cast():
            return (node.item,)
        case Subquery():
            return () if node.item is None else (node.item,)
        case Aggregate():
            return node.args if node.where is None else (*node.args, node.where)
        case _:
            return ()


def rebuilt(node: Node, items: tuple[Node, ...]) -> Node:
    """The same expression of other parts, in the order of `parts`."""
    match node:
        case Call():
            return Call(node.op, items, node.called, node.at)
        case Cast():
            return Cast(items[0], node.to, node.wide, node.at)
        case Subquery():
            return Subquery(node.how, node.query, items[0] if items else None, node.at)
        case Aggregate():
            count = len(node.args)
            where = None if node.where is None else items[count]
            return Aggregate(node.name, items[:count], node.distinct, where, node.q, node.called, node.at)
        case _:
            return node


def branches(case: Call) -> tuple[list[tuple[Node, Node]], Node | None]:
    """The conditions of a CASE with their results, and the result where none holds."""
    return list(zip(case.args[::2], case.args[1::2], strict=False)), case.args[-1] if len(case.args) % 2 else None


def conjuncts(node: Node | None) -> list[Node]:
    """The conditions joined by AND, without recursion."""
    found: list[Node] = []
    front = [] if node is None else [node]
    while front:
        item = front.pop()
        if isinstance(item, Call) and item.op == "and":
            front += reversed(item.args)
        else:
            found.append(item)
    return found


def walk(node: Node) -> Iterator[Node]:
    """An expression and all it is made of, outside subqueries."""
    found = [node]
    for item in found:
        yield item
        found += parts(item)


def holds(node: Node, kind: type | tuple[type, ...]) -> bool:
    """Whether an expression has a node of this kind, outside subqueries."""
    return any(isinstance(item, kind) for item in walk(node))


def changed(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """The same expression with other nodes, from above, wherever `change` gives one."""
    found = change(node)
    if found is not None:
        return found
    inner = parts(node)
    return rebuilt(node, tuple(changed(part, change) for part in inner)) if inner else node


MAX_UNITS: Final = 10**6  # of any unit: beyond it no date is left
UNITS: Final[dict[str, tuple[int, int, int]]] = {
    "year": (12, 0, 0),
    "month": (1, 0, 0),
    "week": (0, 7, 0),
    "day": (0, 1, 0),
    "hour": (0, 0, 3_600_000_000),
    "minute": (0, 0, 60_000_000),
    "second": (0, 0, 1_000_000),
}
SHORT: Final = {"mon": "month", "min": "minute", "sec": "second", "yr": "year", "h": "hour", "d": "day"}
PIECE: Final = re.compile(r"\s*([+-]?\d{1,9})\s*([a-z]+)?\s*,?")


def interval(text: str, unit: str | None) -> Interval | None:
    """Read '90' with its unit beside, or '1 month 2 days'; None where it cannot be read."""
    totals, place = [0, 0, 0], 0
    text = text.lower().strip()
    while place < len(text):
        found = PIECE.match(text, place)
        if found is None:
            return None
        word = found.group(2) or (unit or "").lower()
        word = word[:-1] if word.endswith("s") and len(word) > 1 else word
        each, number = UNITS.get(SHORT.get(word, word)), int(found.group(1))
        if each is None or abs(number) > MAX_UNITS:
            return None
        totals = [total + number * unit_ for total, unit_ in zip(totals, each, strict=True)]
        place = found.end()
    return Interval(*totals) if text else None


def moved(moment: datetime.date, by: Interval) -> datetime.datetime | None:
    """A date or moment and an interval after it, as PostgreSQL adds them: months first, the day cut to the month's."""
    start = moment if isinstance(moment, datetime.datetime) else datetime.datetime.combine(moment, datetime.time())
    count = start.year * 12 + start.month - 1 + by.months
    year, month = divmod(count, 12)
    if not 1 <= year <= 9999:
        return None
    first = start.replace(year=year, month=month + 1, day=min(start.day, calendar.monthrange(year, month + 1)[1]))
    try:
        return first + datetime.timedelta(days=by.days, microseconds=by.microseconds)
    except OverflowError:
        return None
