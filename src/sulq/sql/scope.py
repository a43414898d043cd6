"""FROM: tables, WITH queries, subqueries and joins, as rows with named columns or as a released table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sulq.language.facts import Facts
from sulq.sql.parse import syntax
from sulq.sql.parse.syntax import Node, SqlRefused, unsupported
from sulq.sql.released.program import ReleasedTable
from sulq.sql.rows.joins import join, linked, replaced
from sulq.sql.rows.row_set import ColumnName, RelationBuilder, RowSet, find, known, resolve

MAX_TABLES: Final = 32


@dataclass(frozen=True, slots=True)
class Env:
    """The WITH queries that may be named here, the nearest last."""

    tables: tuple[tuple[syntax.Name, syntax.Query, Env], ...] = ()

    def find(self, name: syntax.Name) -> tuple[syntax.Query, Env] | None:
        """The WITH query of a name, and what that one may name."""
        for known_name, query, env in reversed(self.tables):
            if name.fits(known_name.text):
                return query, env
        return None

    def extended(self, tables: tuple[tuple[syntax.Name, syntax.Query], ...]) -> Env:
        """With the queries of one WITH: each may name those before it."""
        env = self
        for name, query in tables:
            env = Env((*env.tables, (name, query, env)))
        return env


class Scope:
    """Makes rows of FROM; `query` compiles a subquery."""

    def __init__(self, facts: Facts, query: Callable[[syntax.Query, Env], RowSet | ReleasedTable]) -> None:
        self.facts = facts
        self.builder = RelationBuilder(facts)
        self.query = query
        self.used = 0

    def source(self, node: syntax.Source, env: Env, pool: list[Node]) -> RowSet | ReleasedTable:
        """What FROM gives. Conditions of WHERE (`pool`) that match the tables of a join are taken out of it."""
        if isinstance(node, syntax.Joined):
            chain = self._chain(node)
            if len(chain) > 1:
                return self._cross(chain, env, pool)
            return self._joined(node, env, pool)
        return self._one(node, env)

    def _one(self, node: syntax.Named | syntax.Derived, env: Env) -> RowSet | ReleasedTable:
        self.used += 1
        if self.used > MAX_TABLES:
            raise SqlRefused("too-large", f"A query uses at most {MAX_TABLES} tables", node.at)
        if isinstance(node, syntax.Named):
            return self._named(node, env)
        if isinstance(node.query, (syntax.Joined, syntax.Named)):
            found = self.source(node.query, env, [])
        else:
            found = self.query(node.query, env)
        return _aliased(found, node.alias, node.columns, node.at) if node.alias is not None else _unaliased(found, node)

    def _named(self, node: syntax.Named, env: Env) -> RowSet | ReleasedTable:
        inner = None if node.registered else env.find(node.name)
        alias = (node.alias or node.name).text
        if inner is not None:
            return _aliased(self.query(*inner), syntax.Name(alias), node.columns, node.at)
        tables = self.facts.catalogue.tables
        fitting = [table for table in tables if node.name.fits(table.schema.table)]
        exact = [table for table in fitting if table.schema.table == node.name.text]
        if not fitting:
            names = ", ".join(table.schema.table for table in tables)
            why = f"No table {node.name.text[:80]!r} is registered here (there are: {names})"
            raise SqlRefused("unknown-table", why, node.at)
        rows = self.builder.table((exact or fitting)[0], alias, node.at)
        return _aliased(rows, syntax.Name(alias), node.columns, node.at)

    def _chain(self, node: syntax.Source) -> list[syntax.Named | syntax.Derived | syntax.Joined]:
        """The tables of a list with commas (or CROSS JOIN), from left to right."""
        if isinstance(node, syntax.Joined) and node.how == "cross":
            return [*self._chain(node.left), node.right]
        return [node]

    def _cross(self, chain: list[syntax.Named | syntax.Derived | syntax.Joined], env: Env, pool: list[Node]) -> RowSet:
        """Tables with commas: each next one is joined by a condition of WHERE where there is one."""
        several = [self._ranked(self._rows(node, env, pool), i) for i, node in enumerate(chain)]
        found, waiting = several[0], list(zip(chain[1:], several[1:], strict=True))
        while waiting:
            place = next((i for i, (_, rows) in enumerate(waiting) if self._links(found, rows, pool)), 0)
            node, rows = waiting.pop(place)
            found = join(self.builder, (found, rows), "inner", self._links(found, rows, pool), node.at)
            self._take(found, pool)
        return self._reranked(found)

    def _rows(self, node: syntax.Source, env: Env, pool: list[Node]) -> RowSet:
        found = self.source(node, env, pool if isinstance(node, syntax.Joined) else [])
        if isinstance(found, ReleasedTable):
            return unsupported("A released table in a join", node.at, "Ask for it first, or aggregate once.")
        return found

    def _joined(self, node: syntax.Joined, env: Env, pool: list[Node]) -> RowSet:
        inner = node.how == "inner"
        left = self._ranked(self._rows(node.left, env, pool if inner or node.how == "left" else []), 0)
        right = self._ranked(self._rows(node.right, env, []), 1)
        items = (*left.items, *right.items)
        conditions: list[Node] = [resolve(part, items) for part in syntax.conjuncts(node.on)]
        hidden: set[int] = set()
        for name in self._shared(node, left, right):
            one, other = (find(syntax.ColumnRef(name, None, name.at), side.items) for side in (left, right))
            if one is None or other is None:
                raise SqlRefused(
                    "unknown-column", f"No column {name.text[:80]!r} on both sides of USING", name.at or node.at
                )
            kept, gone = (one, len(left.items) + other)
            where = name.at or node.at
            conditions.append(syntax.Call("=", (syntax.Place(kept, where), syntax.Place(gone, where)), at=where))
            hidden.add(kept if node.how == "right" else gone)
        linked_here = self._links(left, right, pool) if inner else []
        conditions += [node for node in linked_here if node not in conditions]
        if node.how == "right":
            count = len(left.items)

            def swapped(place: int) -> int:
                """A column's place where those of the right side come first."""
                return place + len(right.items) if place < count else place - count

            conditions = [replaced(condition, swapped) for condition in conditions]
            found, hidden = join(self.builder, (right, left), "left", conditions, node.at), set(map(swapped, hidden))
        else:
            found = join(self.builder, (left, right), "inner" if inner else "left", conditions, node.at)
        found = replace(
            found, items=tuple(replace(item, hidden=item.hidden or i in hidden) for i, item in enumerate(found.items))
        )
        if inner:
            self._take(found, pool)
        return self._reranked(found)

    def _shared(self, node: syntax.Joined, left: RowSet, right: RowSet) -> list[syntax.Name]:
        """The columns of USING, or of NATURAL JOIN those of the same name."""
        if not node.natural:
            return list(node.using)
        theirs = {item.name.lower() for item in right.items if not item.hidden}
        return [
            syntax.Name(item.name, at=node.at) for item in left.items if not item.hidden and item.name.lower() in theirs
        ]

    def _links(self, left: RowSet, right: RowSet, pool: list[Node]) -> list[Node]:
        """The conditions of WHERE that equate something of one side with something of the other."""
        items: tuple[ColumnName, ...] = (*left.items, *right.items)
        found = []
        for node in pool:
            if isinstance(node, syntax.Call) and node.op == "=" and known(node, items):
                looked_up = resolve(node, items)
                if linked(looked_up, len(left.items)):
                    found.append(looked_up)
        return found

    def _take(self, found: RowSet, pool: list[Node]) -> None:
        """Drop the conditions a join has already met: equalities over its columns that linked two sides."""
        for node in list(pool):
            if isinstance(node, syntax.Call) and node.op == "=" and known(node, found.items) and self._met(node, found):
                pool.remove(node)

    def _met(self, node: syntax.Call, found: RowSet) -> bool:
        ranks = []
        for arg in node.args:
            place = find(arg, found.items) if isinstance(arg, syntax.ColumnRef) else None
            if place is None:
                return False
            ranks.append(found.items[place].rank)
        return ranks[0] != ranks[1]

    def _ranked(self, rows: RowSet, rank: int) -> RowSet:
        return replace(rows, items=tuple(replace(item, rank=rank) for item in rows.items))

    def _reranked(self, rows: RowSet) -> RowSet:
        """The columns in the order of the tables in the text, whatever order they were joined in."""
        return replace(rows, items=tuple(sorted(rows.items, key=lambda item: item.rank)))


def _aliased(
    found: RowSet | ReleasedTable, alias: syntax.Name, columns: tuple[syntax.Name, ...], at: int
) -> RowSet | ReleasedTable:
    """A table under another name, and its columns under others where they are listed."""
    if len(columns) > len(found.items):
        raise SqlRefused("sql-syntax", "An alias lists more columns than there are", at)
    given: Sequence[ColumnName] = found.items
    names = [columns[i].text if i < len(columns) else item.name for i, item in enumerate(given)]
    if isinstance(found, ReleasedTable):
        shown = tuple(replace(item, name=name, table=alias.text) for item, name in zip(found.items, names, strict=True))
        return replace(found, items=shown)
    items = (replace(item, name=name, table=alias.text) for item, name in zip(found.items, names, strict=True))
    return replace(found, items=tuple(items))


def _unaliased(found: RowSet | ReleasedTable, node: syntax.Derived) -> RowSet | ReleasedTable:
    """A subquery without a name of its own; a join in parentheses keeps its tables' names."""
    if isinstance(node.query, (syntax.Joined, syntax.Named)):
        return found
    return _aliased(found, syntax.Name(""), (), node.at)
