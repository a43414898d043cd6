"""Names: which column an identifier means, what a star stands for, and what PostgreSQL calls a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sulq.sql.parse import syntax
from sulq.sql.parse.refusal import SqlRefused
from sulq.sql.parse.syntax import Node
from sulq.sql.rows.values import Term

MAX_SHOWN_NAMES = 20
CAST_NAMES = {"int": "int4", "float": "float8"}


@dataclass(frozen=True, slots=True, eq=False)
class ColumnName:
    """A column that a name may mean; `table`: its table's name in this query.

    `hidden`: only its table's name leads to it, as it is the second of two columns that USING made one.
    """

    name: str
    table: str | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Item(ColumnName):
    """A column of rows: its names and what it stands for.

    Where it is a registered column as it stands: `key_of`, the table whose declared key
    it is; `refers_to`, the table whose key it is declared to refer to.
    """

    term: Term
    key_of: str | None = None
    refers_to: str | None = None
    rank: int = 0


def refers(one: Item, other: Item) -> bool:
    """Whether equating two columns can only match rows of one person, by declarations alone (SR15).

    Either both are the key of one table, so that both rows are the same row; or one is
    a key, and the other was declared to refer to it. Names are no declaration.
    """
    if one.key_of is not None and one.key_of in (other.key_of, other.refers_to):
        return True
    return other.key_of is not None and other.key_of == one.refers_to


def find(column: syntax.ColumnRef, items: Sequence[ColumnName]) -> int | None:
    """The place of the column a name means; None where there is none, a refusal where there are several."""
    found = [
        i
        for i, item in enumerate(items)
        if column.name.fits(item.name)
        and (not item.hidden if column.table is None else item.table is not None and column.table.fits(item.table))
    ]
    exact = [i for i in found if items[i].name == column.name.text]
    found = exact if len(exact) == 1 else found
    if len(found) > 1:
        raise SqlRefused(
            "unknown-column", f"{column.name.text[:80]!r} may be one of several columns", column.at, "Name its table."
        )
    return found[0] if found else None


def look_up(column: syntax.ColumnRef, items: Sequence[ColumnName]) -> syntax.Place:
    """The column a name means, or a refusal that lists what there is."""
    place = find(column, items)
    if place is not None:
        return syntax.Place(place, column.at)
    table = "" if column.table is None else f" of {column.table.text[:80]!r}"
    known = ", ".join(dict.fromkeys(item.name[:80] for item in items[:MAX_SHOWN_NAMES]))
    why = f"No column {column.name.text[:80]!r}{table} is declared (there are: {known})"
    raise SqlRefused("unknown-column", why, column.at)


def resolve(node: Node, items: Sequence[ColumnName]) -> Node:
    """An expression with every name replaced by the place of its column; subqueries are left to themselves."""
    return syntax.changed(node, lambda item: look_up(item, items) if isinstance(item, syntax.ColumnRef) else None)


def known(node: Node, items: Sequence[ColumnName]) -> bool:
    """Whether every name of an expression means a column here, and none several."""
    try:
        return all(find(item, items) is not None for item in syntax.walk(node) if isinstance(item, syntax.ColumnRef))
    except SqlRefused:
        return False


def expand(star: syntax.Star, items: Sequence[ColumnName]) -> list[tuple[syntax.Place, str]]:
    """The columns a star stands for, with their names."""
    if star.table is None:
        found = [(syntax.Place(i, star.at), item.name) for i, item in enumerate(items) if not item.hidden]
    else:
        named = [(i, item) for i, item in enumerate(items) if item.table is not None and star.table.fits(item.table)]
        found = [(syntax.Place(i, star.at), item.name) for i, item in named]
    if not found:
        raise SqlRefused("unknown-table", "No table of this name is in FROM", star.at)
    return found


def called(node: Node, items: Sequence[ColumnName]) -> str:
    """The name PostgreSQL gives a result without an alias."""
    return _called(node, items)[0] or "?column?"


def _called(node: Node, items: Sequence[ColumnName]) -> tuple[str | None, int]:
    """A result's name and how strongly it is one: 2 a column's or function's, 1 a guess, 0 none."""
    match node:
        case syntax.ColumnRef():
            place = find(node, items)
            return node.name.text if place is None else items[place].name, 2
        case syntax.Place():
            return items[node.index].name, 2
        case syntax.Call() | syntax.Aggregate():
            return (None, 0) if node.called == "?column?" else (node.called, 2)
        case syntax.CaseExpression():
            name, strength = (None, 0) if node.otherwise is None else _called(node.otherwise, items)
            return (name, strength) if strength == 2 else ("case", 1)
        case syntax.Cast():
            name, strength = _called(node.item, items)
            return (name, strength) if strength else (CAST_NAMES.get(node.to, node.to), 1)
        case syntax.Literal():
            return (node.type, 1) if node.type == "interval" else (None, 0)
        case syntax.Grouping():
            return "grouping", 2
        case syntax.Exists():
            return "exists", 2
        case syntax.Single():
            return _first(node), 2
        case _:
            return None, 0


def _first(node: syntax.Single) -> str:
    query = node.query
    while not isinstance(query, syntax.SelectQuery):
        query = query.left
    inner, alias = query.items[0]
    return alias or called(inner, ())


def alias_of(name: syntax.Name, aliases: Sequence[str | None]) -> int | None:
    """The place of the result an alias names."""
    found = [i for i, alias in enumerate(aliases) if alias is not None and name.fits(alias)]
    exact = [i for i in found if aliases[i] == name.text]
    return (exact or found)[0] if found else None
