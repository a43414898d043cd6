"""Grouped queries: keys, aggregates, HAVING, ORDER BY and LIMIT, over rows that are to be released or that are.

What is aggregated becomes statistics of private rows; what is done with them becomes a
program over released values (both in sql/released/program.py). A key made of a person's
identity would list the persons and is refused. A query over a released table is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sulq.language.domain import Schema
from sulq.language.kinds import Code, Scalar
from sulq.language.rowfn import Case, IsMissing, Lit, Logic, Not, Relabel, RowFn, Value
from sulq.language.rowfn.vectors import bounded
from sulq.sql.parse import syntax
from sulq.sql.parse.syntax import Aggregate, Node, SelectQuery, SqlRefused, holds, parts, placed, unsupported
from sulq.sql.released.kinds import ANY, CLOCK, NUMBER, OF_TYPE, ReleasedKinds, common
from sulq.sql.released.program import (
    ORDERS,
    PAIRS,
    GroupStatistics,
    KeyLabel,
    ProgramSource,
    Regroup,
    ReleasedExpressions,
    ReleasedTable,
    Single,
    StackedPrograms,
    Stat,
    StatAt,
    TableProgram,
    There,
)
from sulq.sql.rows.arithmetic import CLOCKS
from sulq.sql.rows.expressions import RowExpressions
from sulq.sql.rows.keys import key
from sulq.sql.rows.row_set import ColumnName, RowSet, alias_of, expand, known, resolve, result_name
from sulq.sql.rows.values import Cell, Fixed, PersonValue, Term, both


@dataclass(frozen=True, slots=True)
class SelectList:
    """A SELECT list with its stars expanded and its names looked up."""

    nodes: tuple[Node, ...]
    names: tuple[str, ...]
    aliases: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class GroupBy:
    """GROUP BY: its different keys, and the grouping sets by their places."""

    keys: tuple[Node, ...]
    sets: tuple[tuple[int, ...], ...]


def aggregates(select: SelectQuery) -> bool:
    """Whether a SELECT gives one row for a group of rows."""
    nodes = [node for node, _ in select.items] + [order.item for order in select.order]
    nodes += [] if select.having is None else [select.having]
    return select.groups is not None or select.having is not None or any(holds(node, Aggregate) for node in nodes)


def listed(select: SelectQuery, items: Sequence[ColumnName]) -> SelectList:
    """The columns a SELECT lists."""
    found: list[tuple[Node, str, str | None]] = []
    for node, alias in select.items:
        if isinstance(node, syntax.Star):
            found += [(place, name, name) for place, name in expand(node, items)]
            if len(found) > syntax.MAX_SELECT_ITEMS:  # stars of stars double at each step (T74)
                raise SqlRefused("too-large", f"A SELECT lists 1 to {syntax.MAX_SELECT_ITEMS} columns", node.at)
        else:
            place, name = resolve(node, items), alias or result_name(node, items)
            found.append((place, name, name if isinstance(node, syntax.ColumnRef) else alias))
    nodes, names, aliases = zip(*found, strict=True)
    return SelectList(nodes, names, aliases)


def grouped(select: SelectQuery, columns: SelectList, items: Sequence[ColumnName]) -> GroupBy:
    """The keys of GROUP BY: columns, expressions, aliases and positions, and their grouping sets."""
    keys: list[Node] = []

    def place(node: Node) -> int:
        """A key's place among the different ones."""
        found = _key(node, columns, items)
        if any(isinstance(part, Aggregate) or _is_grouping(part) for part in syntax.walk(found)):
            raise SqlRefused("sql-syntax", "An aggregate cannot be grouped by", node.at)
        if found not in keys:
            keys.append(found)
        return keys.index(found)

    sets: list[tuple[int, ...]] = [()]
    for item in select.groups or ():
        several = item.sets if isinstance(item, syntax.Sets) else ((item,),)
        options = [tuple(map(place, one)) for one in several]
        sets = [(*before, *(i for i in option if i not in before)) for before in sets for option in options]
        if len(sets) > syntax.MAX_GROUPING_SETS:
            raise SqlRefused("too-large", f"A query has at most {syntax.MAX_GROUPING_SETS} grouping sets", select.at)
    plain = not any(isinstance(item, syntax.Sets) for item in select.groups or ())
    return GroupBy(tuple(keys), () if plain else tuple(tuple(dict.fromkeys(one)) for one in sets))


def _is_grouping(node: Node) -> bool:
    return isinstance(node, syntax.Call) and node.op == "grouping"


def _key(node: Node, columns: SelectList, items: Sequence[ColumnName]) -> Node:
    hidden = isinstance(node, syntax.ColumnRef) and known(node, items)  # a column's own name comes before an alias
    return _named(node, columns, () if hidden else (columns.aliases,), "GROUP BY") or resolve(node, items)


def _named(node: Node, columns: SelectList, several: Sequence[Sequence[str | None]], what: str) -> Node | None:
    """A result by its position, or by its name in one of several lists of them."""
    if isinstance(node, syntax.Literal) and node.type == "int":
        place = node.value
        if not isinstance(place, int) or not 1 <= place <= len(columns.nodes):
            raise SqlRefused("sql-syntax", f"{what} has no column {place} to name", node.at)
        return columns.nodes[place - 1]
    if isinstance(node, syntax.ColumnRef) and node.table is None:
        found = (alias_of(node.name, names) for names in several)
        return next((columns.nodes[place] for place in found if place is not None), None)
    return None


def ordering(order: syntax.Order, columns: SelectList, items: Sequence[ColumnName]) -> Node:
    """What ORDER BY sorts by: a result by its name or position, else an expression."""
    found = _named(order.item, columns, (columns.aliases, columns.names), "ORDER BY")
    return found or resolve(order.item, items)


def aggregates_of(node: Node) -> list[Aggregate]:
    """Every aggregate of an expression; one inside another is refused."""
    found: list[Aggregate] = []
    front = [node]
    while front:
        item = front.pop()
        if not isinstance(item, Aggregate):
            front += parts(item)
        elif any(holds(part, Aggregate) for part in parts(item)):
            raise SqlRefused("sql-syntax", "Aggregates are not nested", item.at, "Use a subquery.")
        else:
            found.append(item)
    return found


def distinct_aggregates(nodes: Iterable[Node]) -> list[Aggregate]:
    """The aggregates of several expressions, each once."""
    return list(dict.fromkeys(item for node in nodes for item in aggregates_of(node)))


def statistic(express: RowExpressions, node: Aggregate) -> Stat:
    """An aggregate of private rows as a statistic."""
    where = None if node.where is None else express.condition(node.where)
    if node.name == "rows":
        return Stat("rows", where=where)
    if node.name == "count":
        return _count(express, node, where)
    if node.name in ("bool_and", "bool_or"):
        return unsupported(f"{node.called}() of rows", node.at, "Count the rows with and without: COUNT(*) FILTER.")
    args = tuple(_argument(express, node, arg) for arg in node.args)
    distinct = node.distinct and node.name not in ("min", "max")
    return Stat(node.name, args, where, distinct, node.q)


def _argument(express: RowExpressions, node: Aggregate, arg: Node) -> RowFn:
    """A number, or for extremes and quantiles a date, that an aggregate is taken of."""
    found = express.operand(arg)
    if isinstance(found, Cell) and found.type in CLOCKS and isinstance(found.kind, Scalar):
        if node.name in ("min", "max", "quantile_disc", "quantile_cont"):
            return found.fn
        unsupported(f"{node.called}() of dates", node.at, "Use MIN, MAX or COUNT, or take a part of the date: EXTRACT.")
    if found.type in ("bool", "text", "date", "timestamp") and not (isinstance(found, Fixed) and found.value is None):
        raise SqlRefused("wrong-kind", f"{node.called}() takes a number here, not {found.type}", arg.at)
    fn = express.number(arg).fn
    with placed(arg.at):
        bounded(fn, express.schema)  # what has no bounds is refused where it stands
    return fn


def _count(express: RowExpressions, node: Aggregate, where: RowFn | None) -> Stat:
    found = express.term(node.args[0])
    if isinstance(found, PersonValue):
        where = both(where, _person_present(found))
        return Stat("persons" if node.distinct else "rows", where=where)
    if isinstance(found, Fixed):
        if found.value is None:
            return Stat("rows", where=Lit(False))
        if node.distinct:
            unsupported("COUNT(DISTINCT constant)", node.at, "Count a column, or the rows: COUNT(*).")
        return Stat("rows", where=where)
    return Stat("count", (found.fn,), where, node.distinct)


def released(select: SelectQuery, rows: RowSet, columns: SelectList, groups: GroupBy, single: Single) -> ReleasedTable:
    """A grouped SELECT over private rows: its statistics, and the program over them."""
    express = rows.express()
    bound: dict[Node, Node] = {}
    kinds: dict[Node, str] = {}
    keys: list[RowFn] = []
    places: dict[int, int] = {}
    for i, node in enumerate(groups.keys):
        found = express.term(node)
        if isinstance(found, Fixed):
            bound[node] = syntax.Literal(found.value, found.type)
            continue
        if isinstance(found, PersonValue) or rows.identifies(found.fn):
            why = "Grouping a released table by the person would show single persons"
            remedy = "Group by something many people share, or count per person inside."
            raise SqlRefused("raw-rows", why, node.at, remedy)
        places[i] = len(keys)
        label: Node = KeyLabel(len(keys))
        bound[node] = syntax.Call(f"cast {found.type}", (label,)) if found.type in CLOCKS else label
        kinds[label] = ANY if isinstance(found.kind, Code) and found.type != "text" else OF_TYPE.get(found.type, ANY)
        keys.append(key(found, rows.filters, rows.schema))
    sets = tuple(tuple(places[i] for i in one if i in places) for one in groups.sets)
    wanted = _wanted(select, columns, rows.items)
    stats = tuple(statistic(express, node) for node in wanted)
    bound |= {node: StatAt(i) for i, node in enumerate(wanted)}
    kinds |= {StatAt(i): CLOCK if _is_clock(stat, rows.schema) else NUMBER for i, stat in enumerate(stats)}
    after = ReleasedExpressions(bound, rows.items, single, grouped=bool(keys), kinds=ReleasedKinds(kinds))
    source = GroupStatistics(rows.relation, rows.where(), tuple(keys), sets, stats)
    having = None if select.having is None else after.expr(resolve(select.having, rows.items))
    program = program_of(select, columns, after, source, having)
    return ReleasedTable(program, tuple(map(ColumnName, columns.names)))


def _wanted(select: SelectQuery, columns: SelectList, items: Sequence[ColumnName]) -> list[Aggregate]:
    """The aggregates of SELECT, ORDER BY and HAVING, each once."""
    nodes = [*columns.nodes, *(ordering(order, columns, items) for order in select.order)]
    return distinct_aggregates([*nodes, *([] if select.having is None else [resolve(select.having, items)])])


def _is_clock(stat: Stat, schema: Schema) -> bool:
    """Whether a statistic of rows is a date or a moment."""
    kind = stat.args[0].kind(schema) if stat.name in ORDERS else None
    return isinstance(kind, Scalar) and kind.clock is not None


def program_of(
    query: syntax.Query, columns: SelectList, after: ReleasedExpressions, source: ProgramSource, having: Node | None
) -> TableProgram:
    """A query over a released table."""
    shown = tuple((name, after.expr(node)) for name, node in zip(columns.names, columns.nodes, strict=True))
    by = [(after.expr(ordering(one, columns, after.items)), one.descending, one.nulls_first) for one in query.order]
    kinds = tuple(after.kinds.of(node) for _, node in shown)
    return TableProgram(source, shown, having, tuple(by), query.limit, query.offset, query.distinct, kinds)


PER_PERSON: Final = {"rows": "count", "count": "count", "sum": "sum", "mean": "mean", "min": "min", "max": "max"}


def per_person_value(express: RowExpressions, node: Aggregate) -> tuple[str, RowFn | None, str, str]:
    """An aggregate of each person's rows: how it is put together, of what, its type and its name."""
    where = None if node.where is None else express.condition(node.where)
    name = node.called
    if node.name not in PER_PERSON or (node.distinct and node.name not in ("count", "min", "max")):
        unsupported(f"{node.called}() for each person", node.at, "Use COUNT, SUM, AVG, MIN or MAX there.")
    if node.name == "rows":
        return "count", None if where is None else _when(where, Lit(1)), "int", name
    found = express.term(node.args[0])
    if node.name == "count":
        return *_counted(found, where, node.at, distinct=node.distinct), "int", name
    if isinstance(found, PersonValue):
        found = express.operand(node.args[0])
    clock = isinstance(found, Cell) and found.type in CLOCKS and node.name in ("min", "max")
    if not clock and found.type not in (*syntax.NUMERIC, "null"):
        raise SqlRefused("wrong-kind", f"{node.called}() takes a number here, not {found.type}", node.at)
    item = express.cell(node.args[0]) if clock else express.number(node.args[0])
    kind = item.type if node.name != "mean" else "float"
    return PER_PERSON[node.name], _when(where, item.fn), kind, name


def _counted(found: Term, where: RowFn | None, at: int, *, distinct: bool) -> tuple[str, RowFn | None]:
    how = "distinct" if distinct else "count"
    if isinstance(found, PersonValue):
        where = both(where, _person_present(found))
        return how, None if where is None and not distinct else _when(where, Lit(1))
    if isinstance(found, Fixed):
        if found.value is None or distinct:
            unsupported("A constant counted for each person", at, "Count a column, or the rows: COUNT(*).")
        return how, None if where is None else _when(where, Lit(1))
    if where is None or isinstance(found.kind, Scalar):
        return how, _when(where, found.fn)
    if distinct and isinstance(found.kind, Code):
        return how, _when(where, Value(Relabel(found.fn, tuple(range(found.kind.size)))))
    if distinct:
        unsupported("COUNT(DISTINCT text) with FILTER for each person", at, "Put the condition into WHERE.")
    return how, _when(Logic("and", (where, Not(IsMissing(found.fn)))), Lit(1))


def _person_present(person: PersonValue) -> RowFn | None:
    """Whether there is a person, where there may be none."""
    return None if person.present is None else Not(IsMissing(person.present))


def _when(where: RowFn | None, then: RowFn) -> RowFn:
    """A value, missing where the filter is not true."""
    return then if where is None else Case(((where, then),))


def over_released(query: SelectQuery, source: ReleasedTable, where: list[Node], single: Single) -> ReleasedTable:
    """A SELECT whose FROM is a released table."""
    columns = listed(query, source.items)
    fields: dict[Node, Node] = {syntax.Place(i): syntax.Place(i) for i in range(len(source.items))}
    kinds: dict[Node, str] = {syntax.Place(i): kind for i, kind in enumerate(source.program.kinds)}
    before = ReleasedExpressions(fields, source.items, single, grouped=True, kinds=ReleasedKinds(kinds))
    conditions = tuple(before.expr(resolve(node, source.items)) for node in where)
    condition = conditions[0] if len(conditions) == 1 else syntax.Call("and", conditions) if conditions else None
    if aggregates(query):
        regroup, after = _regrouped(query, source, columns, before, condition)
        having = None if query.having is None else after.expr(resolve(query.having, source.items))
        found = program_of(query, columns, after, regroup, having)
    else:
        found = program_of(query, columns, before, source.program, condition)
    return ReleasedTable(found, tuple(map(ColumnName, columns.names)))


def _regrouped(
    query: SelectQuery, source: ReleasedTable, columns: SelectList, before: ReleasedExpressions, where: Node | None
) -> tuple[Regroup, ReleasedExpressions]:
    """Groups of released rows, and expressions over them."""
    groups = grouped(query, columns, source.items)
    keys = tuple(before.expr(node) for node in groups.keys)
    wanted = _wanted(query, columns, source.items)
    stats = tuple(_stat(node, before) for node in wanted)
    bound: dict[Node, Node] = {node: KeyLabel(i) for i, node in enumerate(groups.keys)}
    bound |= {node: StatAt(i) for i, node in enumerate(wanted)}
    kinds: dict[Node, str] = {KeyLabel(i): before.kinds.of(key) for i, key in enumerate(keys)}
    kinds |= {StatAt(i): before.kinds.aggregate(stat) for i, stat in enumerate(stats)}
    after = ReleasedExpressions(bound, source.items, before.single, grouped=bool(keys), kinds=ReleasedKinds(kinds))
    inner = source.program if all(stat.name == "sum" for stat in stats) else _without_empty_groups(source.program)
    return Regroup(inner, where, keys, groups.sets, stats), after


def _without_empty_groups(program: TableProgram) -> TableProgram:
    """The same released rows without the groups that may have none.

    All declared keys are returned (T24); a count or a mean of groups would take those
    without rows for groups. Whether a group has rows can only be told from the interval
    of a released count, which is asked along: a count above 0 may be noise alone, and is
    for half of the groups nobody is in. A sum needs none: what is not there adds noise alone.
    """
    source = program.source
    if isinstance(source, TableProgram):
        return replace(program, source=_without_empty_groups(source))
    if isinstance(source, StackedPrograms):
        return replace(program, source=StackedPrograms(tuple(map(_without_empty_groups, source.programs))))
    if not isinstance(source, GroupStatistics) or not source.keys:
        return program
    found = [i for i, stat in enumerate(source.stats) if stat.name == "rows" and stat.where is None]
    place = found[0] if found else len(source.stats)
    stats = source.stats if found else (*source.stats, Stat("rows"))
    there = There(place)
    having = there if program.having is None else syntax.Call("and", (program.having, there))
    return replace(program, source=replace(source, stats=stats), having=having)


def _stat(node: Aggregate, before: ReleasedExpressions) -> Aggregate:
    if node.name in PAIRS:
        unsupported(f"{node.called}() of released values", node.at, "Use COUNT, SUM, AVG, MIN or MAX of them.")
    where = None if node.where is None else before.expr(node.where)
    return replace(node, args=tuple(map(before.expr, node.args)), where=where)


def stacked(query: syntax.UnionQuery, left: ReleasedTable, right: ReleasedTable) -> ReleasedTable:
    """UNION of released tables: one after the other, each different row once where it is not ALL."""
    if len(left.items) != len(right.items):
        raise SqlRefused("sql-syntax", "The parts of a UNION have different numbers of columns", query.at)
    names = tuple(item.name for item in left.items)
    columns = SelectList(tuple(syntax.Place(i) for i in range(len(names))), names, names)
    fields: dict[Node, Node] = {syntax.Place(i): syntax.Place(i) for i in range(len(names))}
    pairs = zip(left.program.kinds, right.program.kinds, strict=True)
    kinds: dict[Node, str] = {syntax.Place(i): common(pair) for i, pair in enumerate(pairs)}
    after = ReleasedExpressions(fields, left.items, _never, grouped=True, kinds=ReleasedKinds(kinds))
    source = StackedPrograms((left.program, right.program))
    return ReleasedTable(program_of(query, columns, after, source, None), left.items)


def _never(query: syntax.Query) -> TableProgram:
    return unsupported("A subquery in ORDER BY of a UNION", query.at, "Order by a column of the result.")
