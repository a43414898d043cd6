"""Columns nobody reads are not worked out: a relation keeps what its question needs and no more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Col, RowFn
from sulq.sql.parse.syntax import Node, changed
from sulq.sql.released.program import Regroup, StackedPrograms, SubqueryValue, TableProgram
from sulq.sql.rows.statistics import GroupStatistics
from sulq.sql.rows.values import walk


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
    source = program.source
    found: GroupStatistics | Regroup | TableProgram | StackedPrograms
    match source:
        case GroupStatistics():
            fns = [source.where, *source.keys, *(fn for stat in source.stats for fn in (*stat.args, stat.where))]
            found = replace(source, over=needed(source.over, read(fns)))
        case Regroup():
            stats = tuple(map(_expression, source.stats))
            found = replace(source, source=pruned(source.source), stats=stats)  # type: ignore[arg-type]
        case StackedPrograms():
            found = StackedPrograms(tuple(pruned(inner) for inner in source.programs))
        case TableProgram():
            found = pruned(source)
    return replace(
        program,
        source=found,
        columns=tuple((name, _expression(expr)) for name, expr in program.columns),
        having=_opt(program.having),
        order=tuple((_expression(expr), *rest) for expr, *rest in program.order),  # type: ignore[misc]
    )


def _opt(node: Node | None) -> Node | None:
    return None if node is None else _expression(node)


def _expression(node: Node) -> Node:
    """Subqueries used as values have questions of their own."""
    return changed(node, lambda item: SubqueryValue(pruned(item.program)) if isinstance(item, SubqueryValue) else None)
