"""Queries over a released table: filters, new columns, groups and unions of released rows. All of it is free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sulq.sql.parse.refusal import SqlRefused, unsupported
from sulq.sql.parse.syntax import Aggregate, Call, Node, Place, Query, SelectQuery, UnionQuery
from sulq.sql.released.expressions import ReleasedExpressions, ReleasedTable
from sulq.sql.released.grouped_query import SelectList, aggregates, aggregates_of, grouped, listed, ordering, program_of
from sulq.sql.released.program import KeyLabel, Regroup, StackedPrograms, StatAt, TableProgram, There
from sulq.sql.rows.names import ColumnName, resolve
from sulq.sql.rows.statistics import PAIRS, GroupStatistics, Stat

Single = Callable[[Query], TableProgram]


def over_released(query: SelectQuery, source: ReleasedTable, where: list[Node], single: Single) -> ReleasedTable:
    """A SELECT whose FROM is a released table."""
    columns = listed(query, source.items)
    fields: dict[Node, Node] = {Place(i): Place(i) for i in range(len(source.items))}
    before = ReleasedExpressions(fields, source.items, single, grouped=True)
    conditions = tuple(before.expr(resolve(node, source.items)) for node in where)
    condition = conditions[0] if len(conditions) == 1 else Call("and", conditions) if conditions else None
    if aggregates(query):
        regroup, after = _regrouped(query, source, columns, before, condition)
        having = None if query.having is None else after.expr(resolve(query.having, source.items))
        found = program_of(query, columns, after, regroup, having)
    else:
        found = program_of(query, columns, before, source.program, condition)
    return ReleasedTable(found, tuple(ColumnName(name) for name in columns.names))


def _regrouped(
    query: SelectQuery, source: ReleasedTable, columns: SelectList, before: ReleasedExpressions, where: Node | None
) -> tuple[Regroup, ReleasedExpressions]:
    """Groups of released rows, and expressions over them."""
    groups = grouped(query, columns, source.items)
    keys = tuple(before.expr(node) for node in groups.keys)
    bound: dict[Node, Node] = {node: KeyLabel(i) for i, node in enumerate(groups.keys)}
    stats: list[Aggregate] = []
    having = () if query.having is None else (resolve(query.having, source.items),)
    orders = [ordering(order, columns, source.items) for order in query.order]
    for node in (*columns.nodes, *orders, *having):
        for aggregate in aggregates_of(node):
            if aggregate not in bound:
                bound[aggregate] = StatAt(len(stats))
                stats.append(_stat(aggregate, before))
    after = ReleasedExpressions(bound, source.items, before.single, grouped=bool(keys))
    inner = source.program if all(stat.name == "sum" for stat in stats) else _present(source.program)
    return Regroup(inner, where, keys, groups.sets, tuple(stats)), after


def _present(program: TableProgram) -> TableProgram:
    """The same released rows without the groups that may have none.

    All declared keys are returned (T24); a count or a mean of groups would take those
    without rows for groups. Whether a group has rows can only be told from the interval
    of a released count, which is asked along: a count above 0 may be noise alone, and is
    for half of the groups nobody is in. A sum needs none: what is not there adds noise alone.
    """
    source = program.source
    if isinstance(source, TableProgram):
        return replace(program, source=_present(source))
    if isinstance(source, StackedPrograms):
        return replace(program, source=StackedPrograms(tuple(map(_present, source.programs))))
    if not isinstance(source, GroupStatistics) or not source.keys:
        return program
    found = [i for i, stat in enumerate(source.stats) if stat.name == "rows" and stat.where is None]
    place = found[0] if found else len(source.stats)
    stats = source.stats if found else (*source.stats, Stat("rows"))
    there = There(place)
    having = there if program.having is None else Call("and", (program.having, there))
    return replace(program, source=replace(source, stats=stats), having=having)


def _stat(node: Aggregate, before: ReleasedExpressions) -> Aggregate:
    if node.name in PAIRS:
        unsupported(f"{node.called}() of released values", node.at)
    where = None if node.where is None else before.expr(node.where)
    return replace(node, args=tuple(map(before.expr, node.args)), where=where)


def stacked(query: UnionQuery, left: ReleasedTable, right: ReleasedTable) -> ReleasedTable:
    """UNION of released tables: one after the other, each different row once where it is not ALL."""
    if len(left.items) != len(right.items):
        raise SqlRefused("sql-syntax", "The parts of a UNION have different numbers of columns", query.at)
    names = tuple(item.name for item in left.items)
    columns = SelectList(tuple(Place(i) for i in range(len(names))), names, names)
    fields: dict[Node, Node] = {Place(i): Place(i) for i in range(len(names))}
    after = ReleasedExpressions(fields, left.items, _never, grouped=True)
    found = TableProgram(
        StackedPrograms((left.program, right.program)),
        tuple((name, Place(i)) for i, name in enumerate(names)),
        None,
        tuple((after.expr(ordering(one, columns, left.items)), one.descending, one.nulls_first) for one in query.order),
        query.limit,
        query.offset,
        not query.every,
    )
    return ReleasedTable(found, left.items)


def _never(query: Query) -> TableProgram:
    return unsupported("A subquery in ORDER BY of a UNION", query.at)
