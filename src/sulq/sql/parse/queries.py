"""Queries of the parser's tree: SELECT, FROM, joins, WITH and UNION, read through a whitelist."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Final

from sqlglot import exp

from sulq.sql.parse import syntax
from sulq.sql.parse.expressions import ExpressionReader, whole
from sulq.sql.parse.refusal import SqlRefused, unsupported
from sulq.sql.parse.syntax import Node
from sulq.sql.parse.whitelist import construct

MAX_GROUPING_SETS: Final = 64
MAX_SELECT_ITEMS: Final = 1024
SYSTEM_SCHEMAS: Final = ("pg_catalog", "information_schema")
SYSTEM_TABLES: Final = ("pg_", "sqlite_", "duckdb_")
CLAUSES: Final = ("order", "limit", "offset", "with_")
Clauses = tuple[tuple[syntax.Order, ...], int | None, int, tuple[tuple[syntax.Name, syntax.Query], ...]]


class QueryReader(ExpressionReader):
    """Reads one text's statement."""

    def query(self, node: exp.Expr) -> syntax.Query:
        """Read a SELECT, a UNION, or either in parentheses."""
        if type(node) is exp.Subquery:
            self.only(node, "this")
            return self.query(node.this)
        if type(node) is exp.Select:
            return self._select(node)
        if type(node) is exp.Union:
            return self._union(node)
        return unsupported(construct(node), self.at(node), "Write one SELECT statement.")

    def _select(self, node: exp.Expr) -> syntax.SelectQuery:
        self.only(node, "expressions", "distinct", "from_", "joins", "where", "group", "having", *CLAUSES)
        at = self.at(node)
        if not 1 <= len(node.expressions) <= MAX_SELECT_ITEMS:
            raise SqlRefused("sql-syntax", f"A SELECT lists 1 to {MAX_SELECT_ITEMS} columns", at)
        order, limit, offset, tables = self._clauses(node)
        distinct = node.args.get("distinct")
        if distinct is not None:
            if distinct.args.get("on"):
                unsupported("DISTINCT ON", at)
            self.only(distinct)
        where, having = node.args.get("where"), node.args.get("having")
        return syntax.SelectQuery(
            items=tuple(self._item(item) for item in node.expressions),
            source=self._from(node),
            where=None if where is None else self.node(self.only(where, "this").this),
            groups=self._groups(node.args.get("group")),
            having=None if having is None else self.node(self.only(having, "this").this),
            distinct=distinct is not None,
            order=order,
            limit=limit,
            offset=offset,
            tables=tables,
            at=at,
        )

    def _item(self, node: exp.Expr) -> tuple[Node, str | None]:
        if type(node) is exp.Alias:
            self.only(node, "this", "alias")
            return self.node(node.this), self.name(node.args["alias"]).text
        return self.node(node), None

    def _union(self, node: exp.Expr) -> syntax.UnionQuery:
        self.only(node, "this", "expression", "distinct", *CLAUSES)
        order, limit, offset, tables = self._clauses(node)
        every = not node.args.get("distinct")
        left, right = self.query(node.this), self.query(node.expression)
        return syntax.UnionQuery(left, right, every, order, limit, offset, tables, self.at(node))

    def _clauses(self, node: exp.Expr) -> Clauses:
        """ORDER BY, LIMIT, OFFSET and WITH."""
        order = node.args.get("order")
        orders = (
            () if order is None else tuple(self._order(item) for item in self.only(order, "expressions").expressions)
        )
        limit, offset = node.args.get("limit"), node.args.get("offset")
        tables = node.args.get("with_")
        return (
            orders,
            None if limit is None else self._limit(limit),
            0 if offset is None else whole(self, self.only(offset, "expression").expression, "OFFSET"),
            () if tables is None else self._with(tables),
        )

    def _order(self, node: exp.Expr) -> syntax.Order:
        if type(node) is not exp.Ordered:
            unsupported("This ORDER BY", self.at(node))
        self.only(node, "this", "desc", "nulls_first")
        return syntax.Order(self.node(node.this), bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def _limit(self, node: exp.Expr) -> int | None:
        if type(node) is exp.Fetch:
            self.only(node, "direction", "count", "limit_options")
            options = node.args.get("limit_options")
            if options is not None:
                self.only(options, "rows")
            return 1 if node.args.get("count") is None else whole(self, node.args["count"], "FETCH")
        self.only(node, "expression")
        what = node.expression
        if type(what) is exp.Null or (type(what) is exp.Var and str(what.this).upper() == "ALL"):
            return None
        return whole(self, what, "LIMIT")

    def _with(self, node: exp.Expr) -> tuple[tuple[syntax.Name, syntax.Query], ...]:
        self.only(node, "expressions")
        found = []
        for table in node.expressions:
            self.only(table, "this", "alias", "materialized")
            alias, columns = self._alias(table.args["alias"])
            query = self.query(table.this)
            if columns:
                query = _renamed(query, columns)
            if alias is None:
                unsupported("WITH without a name", self.at(table))
            found.append((alias, query))
        return tuple(found)

    def _groups(self, node: exp.Expr | None) -> tuple[Node | syntax.Sets, ...] | None:
        if node is None:
            return None
        self.only(node, "expressions")
        found: list[Node | syntax.Sets] = []
        for item in node.expressions:
            if type(item) in (exp.Rollup, exp.Cube, exp.GroupingSets):
                found.append(syntax.Sets(tuple(self._sets(item))))
            else:
                found += self._unit(item)
        return tuple(found)

    def _unit(self, node: exp.Expr) -> list[Node]:
        """One key, or several in parentheses that come and go together."""
        if type(node) is exp.Tuple:
            self.only(node, "expressions")
            return [self.node(item) for item in node.expressions]
        return [self.node(node)]

    def _sets(self, node: exp.Expr) -> list[tuple[Node, ...]]:
        """The grouping sets of ROLLUP, CUBE and GROUPING SETS."""
        self.only(node, "expressions")
        if type(node) is exp.GroupingSets:
            found: list[tuple[Node, ...]] = []
            for item in node.expressions:
                nested = type(item) in (exp.Rollup, exp.Cube, exp.GroupingSets)
                found += self._sets(item) if nested else [tuple(self._unit(item))]
        else:
            units = [self._unit(item) for item in node.expressions]
            if type(node) is exp.Rollup:
                picks = [tuple(range(size)) for size in range(len(units), -1, -1)]
            else:
                if len(units) > 6:
                    raise SqlRefused("too-large", "A CUBE has at most 6 keys", self.at(node))
                sizes = range(len(units), -1, -1)
                picks = [pick for size in sizes for pick in itertools.combinations(range(len(units)), size)]
            found = [tuple(key for i in pick for key in units[i]) for pick in picks]
        if len(found) > MAX_GROUPING_SETS:
            raise SqlRefused("too-large", f"A query has at most {MAX_GROUPING_SETS} grouping sets", self.at(node))
        return found

    def _from(self, node: exp.Expr) -> syntax.Source | None:
        start = node.args.get("from_")
        if start is None:
            return None
        return self._joins(self._source(self.only(start, "this").this), node)

    def _joins(self, source: syntax.Source, node: exp.Expr) -> syntax.Source:
        for join in node.args.get("joins") or []:
            source = self._join(source, join)
        return source

    def _join(self, left: syntax.Source, node: exp.Expr) -> syntax.Joined:
        self.only(node, "this", "on", "side", "kind", "using", "method")
        at, right = self.at(node), self._source(node.this)
        side, kind = str(node.args.get("side") or ""), str(node.args.get("kind") or "")
        method = str(node.args.get("method") or "")
        if (
            method not in ("", "NATURAL")
            or kind not in ("", "INNER", "CROSS", "OUTER")
            or side not in ("", "LEFT", "RIGHT")
        ):
            unsupported(f"{' '.join(word for word in (method, side, kind) if word)} JOIN", at)
        on = None if node.args.get("on") is None else self.node(node.args["on"])
        using = tuple(map(self.name, node.args.get("using") or []))
        how = side.lower() or ("inner" if on is not None or using or method else "cross")
        return syntax.Joined(left, right, how, on, using, method == "NATURAL", at)

    def _source(self, node: exp.Expr) -> syntax.Source:
        at = self.at(node)
        if type(node) is exp.Table:
            self.only(node, "this", "db", "catalog", "alias", "joins")
            name = self.name(node.this)
            schema = node.args.get("db")
            system = schema is not None and self.name(schema).text.lower() in SYSTEM_SCHEMAS
            if system or name.text.lower().startswith(SYSTEM_TABLES):
                unsupported("A system table", at, "Ask about the tables that are registered here: db.facts.")
            alias, columns = self._alias(node.args.get("alias"))
            return self._joins(syntax.Named(name, alias, columns, self.schema(node), at), node)
        if type(node) is exp.Subquery:
            self.only(node, "this", "alias", "joins")
            alias, columns = self._alias(node.args.get("alias"))
            inner = node.this
            table = type(inner) is exp.Table
            found = syntax.Derived(self._source(inner) if table else self.query(inner), alias, columns, at)  # type: ignore[arg-type]
            return self._joins(found, node)
        return unsupported(f"{construct(node)} in FROM", at)

    def _alias(self, node: exp.Expr | None) -> tuple[syntax.Name | None, tuple[syntax.Name, ...]]:
        if node is None:
            return None, ()
        self.only(node, "this", "columns")
        name = node.args.get("this")
        return None if name is None else self.name(name), tuple(map(self.name, node.args.get("columns") or []))


def _renamed(query: syntax.Query, columns: tuple[syntax.Name, ...]) -> syntax.Query:
    """WITH t(a, b) AS ...: the query's columns under these names."""
    if isinstance(query, syntax.SelectQuery) and len(columns) <= len(query.items):
        if any(isinstance(node, syntax.Star) for node, _ in query.items):
            unsupported("WITH t(...) over a star", columns[0].at, "Name the columns in the SELECT.")
        items = [(node, columns[i].text if i < len(columns) else name) for i, (node, name) in enumerate(query.items)]
        return replace(query, items=tuple(items))
    return unsupported("WITH t(...) over this query", columns[0].at, "Name the columns in the SELECT.")
