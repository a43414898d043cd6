"""From a query's text to the program that answers it: the whole way of the free half before anything is asked.

text -> syntax (parse) -> rows (scope) -> statistics and a program (aggregate)
or, over what is already released, a program over a program (over).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.rowfn import Col
from sulq.sql.parse import syntax
from sulq.sql.parse.syntax import Node, SqlRefused, conjuncts, holds, unsupported
from sulq.sql.parse.text import Parsed, parse
from sulq.sql.released.grouped_query import (
    SelectList,
    aggregates,
    distinct_aggregates,
    grouped,
    listed,
    over_released,
    per_person_value,
    released,
    stacked,
)
from sulq.sql.released.program import ReleasedTable, TableProgram, pruned, read
from sulq.sql.rows.joins import united
from sulq.sql.rows.row_set import Item, RowSet, column_name, resolve
from sulq.sql.rows.values import Cell, Fixed, PersonValue, Term, cell
from sulq.sql.scope import Env, Scope, SemiJoins, subqueries

RAW = "This query returns single rows"


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A query, ready to be planned: its program, and whether it is only to be explained."""

    text: str
    program: TableProgram
    explain: bool = False

    @property
    def kind(self) -> str:
        """What was asked for: "select" or "explain"."""
        return "explain" if self.explain else "select"


def compile(text: str, facts: Facts, read: Callable[[str], Parsed] = parse) -> Compiled:  # noqa: A001 - the word for it
    """Compile one SELECT from public facts alone, or refuse it with a code and the place in the text."""
    parsed = read(text)
    try:
        found = SqlCompiler(facts).top(parsed.query)
    except SqlRefused as refused:
        raise elsewhere(refused, facts).located(text) from None
    except RecursionError:
        raise QuestionError("too-large", "The query is nested too deeply.") from None
    return Compiled(text, pruned(found), parsed.explain)


def elsewhere(refused: SqlRefused, facts: Facts) -> SqlRefused:
    """The refusal of a column; where other tables have it, with the first of them."""
    name = refused.column
    found = [table.schema.table for table in facts.every if name and any(map(name.fits, table.schema.names))]
    if not found:
        return refused
    remedy = "Name that table in FROM, or before the column."
    why = refused.message.replace(" is declared", "", 1)
    return SqlRefused(refused.code, f"{why}; table {found[0]} has it", refused.at, remedy)


class SqlCompiler:
    """Compiles the queries of one text."""

    def __init__(self, facts: Facts) -> None:
        self.scope = Scope(facts, self.query)
        self.semijoins = SemiJoins(self.scope)

    def top(self, query: syntax.Query) -> TableProgram:
        """The outermost query: what it gives must be released."""
        found = self.query(query, Env(), top=True)
        if isinstance(found, RowSet):
            raise SqlRefused("raw-rows", RAW, query.at)
        return found.program

    def single(self, query: syntax.Query, env: Env) -> TableProgram:
        """A subquery used as a value: released, one column."""
        found = self.query(query, env)
        if isinstance(found, RowSet):
            raise SqlRefused("raw-rows", f"{RAW} where one value is needed", query.at)
        if len(found.items) != 1:
            raise SqlRefused("sql-syntax", "A subquery used as a value has one column", query.at)
        return found.program

    def query(self, query: syntax.Query, env: Env, *, top: bool = False) -> RowSet | ReleasedTable:
        """Any query: rows where nothing is aggregated over several persons, else a released table."""
        env = env.extended(query.tables)
        if isinstance(query, syntax.UnionQuery):
            return self._union(query, env)
        if query.source is None:
            unsupported("A SELECT that names no table", query.at, "Write SELECT ... FROM and a registered table.")
        pool = conjuncts(query.where)
        source = self.scope.source(query.source, env, pool)
        if isinstance(source, ReleasedTable):
            return over_released(query, source, pool, lambda inner: self.single(inner, env))
        if query.where is not None and holds(query.where, syntax.Aggregate):
            raise SqlRefused("sql-syntax", "An aggregate cannot stand in WHERE", query.where.at, "Use HAVING.")
        return self._select(query, self._where(source, pool, env), env, top=top)

    def _where(self, rows: RowSet, pool: list[Node], env: Env) -> RowSet:
        plain = [node for node in pool if not subqueries(node)]
        express = rows.express()
        found = tuple(express.condition(resolve(node, rows.items)) for node in plain)
        rows = replace(rows, filters=(*rows.filters, *found))
        for node in pool:
            if subqueries(node):
                rows = self.semijoins.where(rows, node, env)
        return rows

    def _select(self, query: syntax.SelectQuery, rows: RowSet, env: Env, *, top: bool) -> RowSet | ReleasedTable:
        columns = listed(query, rows.items)
        if top and query.distinct and not aggregates(query):
            # DISTINCT of the outermost query is GROUP BY of all its columns.
            places = tuple(syntax.Literal(i + 1, "int", query.at) for i in range(len(columns.nodes)))
            query = replace(query, distinct=False, groups=places)
        if not aggregates(query):
            return self._projected(query, rows, columns)
        groups = grouped(query, columns, rows.items)
        express = rows.express()
        terms = [express.term(node) for node in groups.keys]
        if not top and any(map(_certain, terms)):
            if groups.sets:
                unsupported(
                    "A list of grouping sets by the person", query.at, "Group by the person and other columns alone."
                )
            return self._per_person(query, rows, columns, groups.keys, terms)
        return released(query, rows, columns, groups, lambda inner: self.single(inner, env))

    def _projected(self, query: syntax.SelectQuery, rows: RowSet, columns: SelectList) -> RowSet:
        """Rows with other columns: a subquery that aggregates nothing."""
        if query.limit is not None or query.offset:
            why = "LIMIT over single rows picks rows by their place"
            raise SqlRefused("raw-rows", why, query.at, "Aggregate them.")
        express = rows.express()
        items = []
        for node, name in zip(columns.nodes, columns.names, strict=True):
            same = rows.items[node.index] if isinstance(node, syntax.Place) else Item(name, term=express.term(node))
            items.append(replace(same, name=name, table=None, hidden=False, rank=0))
        found = replace(rows, items=tuple(items))
        return self._different(found, query.at) if query.distinct else found

    def _different(self, rows: RowSet, at: int) -> RowSet:
        """SELECT DISTINCT of rows: with the person among the columns, each person's own different rows."""
        persons = [item for item in rows.items if _certain(item.term)]
        if not persons:
            if any(isinstance(item.term, PersonValue) and item.term.cell is None for item in rows.items):
                unsupported("DISTINCT of the person of an optional row", at, "Declare the person's column.")
            return self.scope.builder.distinct(rows, at)
        made = self.scope.builder.columns(rows, only=True)
        laid = made.rows
        others = {name for item in laid.items for name in _read(item.term) if not _certain(item.term)}
        names = tuple(name for name in laid.schema.names if name in others)
        own = tuple(name for name in laid.schema.names if name not in others and name != made.marker)
        found = self.scope.builder.per_person(laid, names, tuple((name, "min", Col(name)) for name in own), at)
        return replace(found, items=laid.items, personal=laid.personal)

    def _per_person(
        self, query: syntax.SelectQuery, rows: RowSet, columns: SelectList, keys: tuple[Node, ...], terms: list[Term]
    ) -> RowSet:
        """GROUP BY the person: one row for each person and combination of the other keys.

        The person's declared column is no key, since cells may be clamped, missing or spelled
        in several ways: a person's row shows the first of the person's cells.
        """
        if query.limit is not None or query.offset:
            raise SqlRefused("raw-rows", "LIMIT over single persons picks them by their place", query.at)
        express = rows.express()
        having = None if query.having is None else resolve(query.having, rows.items)
        wanted = distinct_aggregates((*columns.nodes, *(() if having is None else (having,))))
        values = [per_person_value(express, node) for node in wanted]
        others = [(node, term) for node, term in zip(keys, terms, strict=True) if isinstance(term, Cell)]
        persons = [(node, term) for node, term in zip(keys, terms, strict=True) if isinstance(term, PersonValue)]
        fixed = [(node, term) for node, term in zip(keys, terms, strict=True) if isinstance(term, Fixed)]
        declared = [term.cell for _, term in persons if term.cell is not None]
        builder = self.scope.builder
        extra: list[tuple[Term, int]] = [(term, node.at) for node, term in others]
        aggregated = [*values, *(("min", item.fn, item.type, column_name(item.fn)) for item in declared)]
        extra += [(cell(fn, kind, rows.schema, query.at), query.at) for _, fn, kind, _ in aggregated if fn is not None]
        laid = builder.columns(replace(rows, items=()), extra)
        names = list(laid.beside)
        key_names, sources = names[: len(others)], iter(names[len(others) :])
        number = next(builder.numbers)
        made = tuple(
            (f"p{number}.{i}.{name[:40]}", how, None if fn is None else Col(next(sources)))
            for i, (how, fn, _, name) in enumerate(aggregated)
        )
        found = builder.per_person(laid.rows, tuple(dict.fromkeys(key_names)), made, query.at)
        bound: dict[Node, Term] = dict(fixed)

        def column(name: str, kind: str, node: Node) -> Cell:
            return cell(Col(name), kind, found.schema, node.at)

        bound |= {node: column(name, term.type, node) for (node, term), name in zip(others, key_names, strict=False)}
        bound |= {node: column(made[i][0], aggregated[i][2], node) for i, node in enumerate(wanted)}
        own = [name for name, _, _ in made[len(values) :]]
        own_columns = iter(own)
        for node, person in persons:
            inner = None if person.cell is None else column(next(own_columns), person.cell.type, node)
            bound[node] = PersonValue(inner)
        express = type(express)(found.schema, bound)
        items = tuple(
            Item(name, term=express.term(node)) for node, name in zip(columns.nodes, columns.names, strict=True)
        )
        personal = frozenset((*own, *(name for name in laid.rows.personal if name in key_names)))
        filters = () if having is None else (express.condition(having),)
        found = replace(found, items=items, filters=filters, personal=personal)
        return self._different(found, query.at) if query.distinct else found

    def _union(self, query: syntax.UnionQuery, env: Env) -> RowSet | ReleasedTable:
        left, right = self.query(query.left, env), self.query(query.right, env)
        if isinstance(left, ReleasedTable) and isinstance(right, ReleasedTable):
            return stacked(query, left, right)
        if isinstance(left, ReleasedTable) or isinstance(right, ReleasedTable):
            return unsupported("A UNION of rows with released values", query.at, "Aggregate both queries, or neither.")
        if query.limit is not None or query.offset:
            raise SqlRefused("raw-rows", "LIMIT over single rows picks rows by their place", query.at)
        found = united(self.scope.builder, left, right, query.at)
        return self._different(found, query.at) if query.distinct else found


def _certain(term: Term) -> bool:
    """Whether a term is the person of every row."""
    return isinstance(term, PersonValue) and term.present is None


def _read(term: Term) -> set[str]:
    """The columns of laid out rows that a term is made of."""
    inner = [term.cell, term.present] if isinstance(term, PersonValue) else [term]
    return read(item.fn if isinstance(item, Cell) else item for item in inner if not isinstance(item, Fixed))


__all__ = ["Compiled", "SqlCompiler", "compile", "elsewhere"]
