"""The output half of a query: statistics of private rows, and expressions and clauses over the released numbers.

A program reads a released table, row by row: groups of private rows (`GroupStatistics`),
the rows of another program, several programs' rows one after the other, or groups of
released rows (`Regroup`). Expressions are those of sql/parse/syntax.py over leaves that are
released: none can see a private row, so all of it is free. A column that is neither
grouped nor aggregated has no released value and is refused. Columns that no question
reads are pruned from its relation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, NoReturn

from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Col, RowFn
from sulq.language.rowfn.base import walk
from sulq.sql.parse import syntax, whitelist
from sulq.sql.parse.syntax import Call, Literal, Node, changed, moved, unsupported
from sulq.sql.released.functions import KNOWN
from sulq.sql.released.kinds import ReleasedKinds
from sulq.sql.rows.row_set import ColumnName
from sulq.sql.rows.values import read_moment

# The families of statistics beside "rows" and "persons": each is asked for in its own way.
SPREADS: Final = ("var_pop", "var_samp", "std_pop", "std_samp")
MOMENTS: Final = ("count", "sum", "mean", *SPREADS)
PAIRS: Final = whitelist.PAIRS
ORDERS: Final = ("min", "max", "quantile_cont", "quantile_disc")

MAX_LISTED_GROUPS: Final = 2**16  # groups that are all returned where the spend may have a delta
MAX_PURE_GROUPS: Final = 2**20  # where it has none, and so finds no groups: as many as a key has labels
MAX_CELLS: Final = 2**22  # of one table that is read by columns (T74)
MAX_WORKED_CELLS: Final = 2**17  # of any other: each is worked out by itself, and explaining it is free


@dataclass(frozen=True, slots=True, eq=False)
class Stat:
    """One statistic of each group's rows.

    `args`: none for "rows" (COUNT(*)) and "persons" (COUNT(DISTINCT person)), two for
    covariances and correlations, else one. `where`: its own FILTER. `distinct`:
    over the different values, each once. `q`: which quantile.
    """

    name: str
    args: tuple[RowFn, ...] = ()
    where: RowFn | None = None
    distinct: bool = False
    q: Fraction | None = None


@dataclass(frozen=True, slots=True, eq=False)
class GroupStatistics:
    """Statistics of the groups of a relation's rows, for each of several grouping sets.

    `sets` names the keys of each grouping set by their places; () is one set of all keys.
    `most`: groups that are all returned; past that only those of enough people are (SR14).
    `cells`: of these groups together. `pure`: no spend with a delta was named, which could find groups.
    """

    over: Relation
    where: RowFn | None = None
    keys: tuple[RowFn, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()
    stats: tuple[Stat, ...] = ()
    most: int = MAX_LISTED_GROUPS
    cells: int = MAX_WORKED_CELLS
    pure: bool = False


@dataclass(frozen=True, slots=True)
class SourceValue(syntax.ReleasedLeaf):
    """What the source gives in this row, by its place."""

    index: int


class KeyLabel(SourceValue):
    """The label of the source's key i in this row; missing where the row's grouping set leaves the key out."""


class StatAt(SourceValue):
    """The source's statistic i in this row."""


class There(SourceValue):
    """Whether the source's group has rows: the interval of its count, statistic i, does not reach 0."""


class LeftOut(SourceValue):
    """1 where the row's grouping set leaves key i out, else 0."""


@dataclass(frozen=True, slots=True, eq=False)
class SubqueryValue(syntax.ReleasedLeaf):
    """The only cell of another program: a subquery used as a value."""

    program: TableProgram


@dataclass(frozen=True, slots=True, eq=False)
class Regroup:
    """Groups of released rows: keys, `where` and aggregates speak of the inner program's columns (Place)."""

    source: TableProgram
    where: Node | None = None
    keys: tuple[Node, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()
    stats: tuple[syntax.Aggregate, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class StackedPrograms:
    """The rows of several programs of equally many columns, one after the other (UNION ALL)."""

    programs: tuple[TableProgram, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TableProgram:
    """SELECT ... HAVING ... ORDER BY ... LIMIT over a released table.

    `order`: expression, whether descending, and whether missing values come first.
    Expressions speak of the source: KeyLabel and StatAt of groups, Place of another
    program or a stack. `having` is also the WHERE of a query over released rows.
    `kinds`: of the columns, by sql/released/kinds.py; () where nobody needs them.
    """

    source: ProgramSource
    columns: tuple[tuple[str, Node], ...]
    having: Node | None = None
    order: tuple[tuple[Node, bool, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    distinct: bool = False
    kinds: tuple[str, ...] = ()


ProgramSource = GroupStatistics | Regroup | TableProgram | StackedPrograms
Single = Callable[[syntax.Query], TableProgram]  # compiles a subquery used as a value
MOVE_ROWS: Final = "Move the rows' dates in a subquery, or the answer's afterwards."
RENAMED: Final = {"btrim": "trim", "extract": "date_part"}


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedTable:
    """A released table: the program that makes it, and the names and types of its columns."""

    program: TableProgram
    items: tuple[ColumnName, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedExpressions:
    """Lowers expressions over one released table.

    `bound` says what keys, aggregates and columns stand for, `kinds` what these hold;
    `single` compiles a subquery used as a value; `items` name the columns for a refusal.
    """

    bound: Mapping[Node, Node]
    items: Sequence[ColumnName]
    single: Single
    grouped: bool
    kinds: ReleasedKinds

    def expr(self, node: Node) -> Node:
        """An expression over the released table."""
        found = self.bound.get(node)
        if found is not None:
            return found
        match node:
            case Literal():
                if isinstance(node.value, syntax.Interval):
                    unsupported("An INTERVAL beside a released value", node.at, MOVE_ROWS)
                return node
            case Call():
                return self._grouping(node) if node.op == "grouping" else self._call(node)
            case syntax.Cast():
                return self._cast(node)
            case syntax.Subquery(how="value"):
                value = SubqueryValue(self.single(node.query))
                self.kinds.leaves[value] = value.program.kinds[0]
                return value
            case _:
                return self._refused(node)

    def _refused(self, node: Node) -> NoReturn:
        """Refuse what has no released value."""
        match node:
            case syntax.Place():
                name = self.items[node.index].name
                why = f"Column {name[:80]!r} is neither grouped nor inside an aggregate"
                raise syntax.SqlRefused("not-grouped", why, node.at)
            case syntax.ColumnRef():
                raise syntax.SqlRefused("unknown-column", f"No column {node.name.text[:80]!r} here", node.at)
            case syntax.Aggregate():
                raise syntax.SqlRefused("sql-syntax", "An aggregate cannot stand here", node.at)
            case syntax.Star():
                raise syntax.SqlRefused("not-grouped", "A star is neither grouped nor inside an aggregate", node.at)
            case _:
                unsupported(
                    "A subquery that decides about released rows", node.at, "Ask both, and compare the answers."
                )

    def _call(self, node: Call) -> Node:
        op = RENAMED.get(node.op, node.op)
        if op == "random":
            if self.grouped:
                unsupported("random() beside groups", node.at, "Leave it out; answers have their noise already.")
            drawn = int.from_bytes(os.urandom(6), "big") / 2**48  # a number of the analyst's, no noise
            return Literal(drawn, "float")
        moved_ = self._interval(node)
        if moved_ is not None:
            return moved_
        if op == "between":
            item, low, high = (self.expr(arg) for arg in node.args)
            above, below = Call(">=", (item, low), at=node.at), Call("<=", (item, high), at=node.at)
            return Call("and", (self.kinds.call(above), self.kinds.call(below)))
        args = tuple(self.expr(arg) for arg in node.args)
        if op == "position":
            args = args[::-1]
        if op == "div":
            return Call("trunc", (self.kinds.call(Call("/", args, at=node.at)),))
        if op in ("trim", "ltrim", "rtrim") and len(args) > 1:
            if args[1] != Literal(" ", "text"):
                unsupported(
                    f"{RENAMED.get(node.op, node.op)}() of other signs on a released text",
                    node.at,
                    "Trim blanks alone, or trim in a subquery.",
                )
            args = args[:1]
        if op == "clip":
            return Call("least", (Call("greatest", (args[0], args[1])), args[2]))
        if op not in KNOWN and op != "case":
            unsupported(
                f"{node.op}() of a released value", node.at, "Apply it to the rows, in a subquery, or to the answer."
            )
        return self.kinds.call(Call(op, args, at=node.at))

    def _interval(self, node: Call) -> Node | None:
        """A date moved by an interval: a constant one is worked out here, else by whole days."""
        spans = [isinstance(arg, Literal) and arg.type == "interval" for arg in node.args]
        if node.op not in ("+", "-") or not any(spans):
            return None
        first, last = node.args[::-1] if node.op == "+" and spans[0] else node.args
        if not isinstance(last, Literal) or not isinstance(last.value, syntax.Interval):
            return unsupported("An INTERVAL here", node.at, MOVE_ROWS)
        by = last.value if node.op == "+" else -last.value
        inner = self.expr(first)
        if isinstance(inner, Call) and inner.op in ("cast date", "cast timestamp"):
            written, clock = inner.args[0], inner.op.removeprefix("cast ")
            if isinstance(written, Literal):
                value = read_moment(str(written.value), clock)
                found = None if value is None else moved(value, by)
                if found is None:
                    raise syntax.SqlRefused("bad-literal", "This date cannot be read", node.at)
                day = clock == "date" and not by.microseconds
                return Literal(found.date(), "date") if day else Literal(found, "timestamp")
        if by.months or by.microseconds:
            return unsupported("Months or hours added to a released date", node.at, MOVE_ROWS)
        return self.kinds.call(Call("+", (inner, Literal(by.days, "int")), at=node.at))

    def _cast(self, node: syntax.Cast) -> Node:
        found: Node = Call(f"cast {node.to}", (self.expr(node.item),))
        if node.wide is None:
            return found
        if node.to == "text":
            return Call("left", (found, Literal(node.wide, "int")))
        return Call("round", (found, Literal(node.wide, "int"))) if node.to == "float" else found

    def _grouping(self, node: Call) -> Node:
        """GROUPING(a, b): a bit for each key, the last one the lowest."""
        total: Node | None = None
        for key in node.args:
            found = self.bound.get(key)
            inner = found.args[0] if isinstance(found, Call) else found
            if not isinstance(inner, KeyLabel):
                raise syntax.SqlRefused("not-grouped", "GROUPING takes what is grouped by", node.at)
            bit = LeftOut(inner.index)
            total = bit if total is None else Call("+", (Call("*", (total, Literal(2, "int"))), bit))
        return Literal(0, "int") if total is None else total


def read(fns: Iterable[RowFn | None]) -> set[str]:
    """The columns that row functions read."""
    return {fn.name for fn in walk(*(fn for fn in fns if fn is not None)) if isinstance(fn, Col)}


def needed(relation: Relation, names: set[str]) -> Relation:
    """The relation with the columns of these names, and what else its own parts need."""
    match relation:
        case Table():
            return relation
        case Where():
            return Where(needed(relation.source, names | read([relation.condition])), relation.condition)
        case Select():
            kept = tuple(pair for pair in relation.columns if pair[0] in names) or relation.columns[:1]
            return Select(needed(relation.source, read(fn for _, fn in kept)), kept)
        case Join():
            both = names | {name for pair in relation.on for name in pair}
            return replace(relation, left=needed(relation.left, both), right=needed(relation.right, both))
        case PerPerson():
            values = tuple(value for value in relation.values if value[0] in names)
            below = read(fn for _, _, fn in values) | set(relation.keys)
            return PerPerson(needed(relation.source, below), relation.keys, values)
        case Distinct():
            return Distinct(_inside(relation.source))
        case Union():
            return Union(tuple(needed(part, names) for part in relation.relations))


def _inside(relation: Relation) -> Relation:
    """Below DISTINCT every column decides which rows are different; only what is further below is pruned."""
    if isinstance(relation, Select):
        return Select(needed(relation.source, read(fn for _, fn in relation.columns)), relation.columns)
    if isinstance(relation, Union):
        return Union(tuple(_inside(part) for part in relation.relations))
    return relation


def pruned(program: TableProgram) -> TableProgram:
    """A program whose questions run over pruned relations."""

    def change(source: GroupStatistics) -> GroupStatistics:
        fns = [source.where, *source.keys, *(fn for stat in source.stats for fn in (*stat.args, stat.where))]
        return replace(source, over=needed(source.over, read(fns)))

    return with_sources(program, change)


def listing(program: TableProgram, *, pure: bool) -> TableProgram:
    """A program that is read by columns with the room these have; of `pure` spends all declared groups are returned."""
    program = with_sources(program, lambda groups: replace(groups, pure=pure))
    source = program.source
    if not isinstance(source, GroupStatistics) or not _by_columns(program):
        return program
    return replace(program, source=replace(source, most=MAX_PURE_GROUPS if pure else source.most, cells=MAX_CELLS))


def _by_columns(program: TableProgram) -> bool:
    """Whether it shows and orders labels and statistics as they are (`tables.GroupColumns`)."""
    shown = [*(node for _, node in program.columns), *(node for node, _, _ in program.order)]
    plain = program.having is None and not program.distinct
    return plain and all(isinstance(node, StatAt) or _of_labels(node) for node in shown)


def _of_labels(node: Node) -> bool:
    if isinstance(node, Call):
        return bool(node.args) and node.op not in ("case", "/") and all(map(_of_labels, node.args))
    return isinstance(node, (KeyLabel, LeftOut, Literal))


def with_sources(program: TableProgram, change: Callable[[GroupStatistics], GroupStatistics]) -> TableProgram:
    """A program with every group of private rows changed: its own, those below it, and those of its expressions."""

    def inside(node: Node) -> Node:
        """Subqueries used as values have questions of their own."""

        def other(item: Node) -> Node | None:
            return SubqueryValue(with_sources(item.program, change)) if isinstance(item, SubqueryValue) else None

        return changed(node, other)

    source = program.source
    found: ProgramSource
    match source:
        case GroupStatistics():
            found = change(source)
        case Regroup():
            stats = tuple(map(inside, source.stats))
            found = replace(source, source=with_sources(source.source, change), stats=stats)  # type: ignore[arg-type]
        case StackedPrograms():
            found = StackedPrograms(tuple(with_sources(inner, change) for inner in source.programs))
        case TableProgram():
            found = with_sources(source, change)
    return replace(
        program,
        source=found,
        columns=tuple((name, inside(expr)) for name, expr in program.columns),
        having=None if program.having is None else inside(program.having),
        order=tuple((inside(expr), *rest) for expr, *rest in program.order),  # type: ignore[misc]
    )
