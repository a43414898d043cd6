"""From text to a checked syntax tree: limits first, then one SELECT and nothing else.

sqlglot parses; what it found is read through a whitelist of exact node classes
and of the parts each may have, into sql/parse/syntax.py. Whatever is not on the list is
refused by name and place, so nothing an analyst wrote is ever quietly ignored
(T69 to T74).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from sulq.errors import QuestionError
from sulq.sql.parse import refusals, syntax
from sulq.sql.parse.expressions import ExpressionReader, whole
from sulq.sql.parse.syntax import MAX_GROUPING_SETS, MAX_SELECT_ITEMS, Node, Query, SelectQuery, SqlRefused, unsupported
from sulq.sql.parse.tree import checked, limit, tokens, tree

SYSTEM_SCHEMAS: Final = ("pg_catalog", "information_schema")
SYSTEM_TABLES: Final = ("pg_", "sqlite_", "duckdb_")
CLAUSES: Final = ("distinct", "order", "limit", "offset", "with_")


class QueryReader(ExpressionReader):
    """Reads one text's statement."""

    def query(self, node: exp.Expr) -> syntax.Query:
        """Read a SELECT, a UNION, or either in parentheses."""
        if type(node) is exp.Subquery:
            self.only(node, "this")
            return self.query(node.this)
        if type(node) is exp.Select:
            found: syntax.Query = self._select(node)
        elif type(node) is exp.Union:
            self.only(node, "this", "expression", *CLAUSES)
            found = syntax.UnionQuery(self.query(node.this), self.query(node.expression))
        else:
            return unsupported(refusals.written(node, self.text), self.at(node), "Write one SELECT statement.")
        order, limit, offset, tables = (node.args.get(name) for name in CLAUSES[1:])
        return replace(
            found,
            distinct=bool(node.args.get("distinct")),
            order=() if order is None else tuple(map(self._order, self.only(order, "expressions").expressions)),
            limit=None if limit is None else self._limit(limit),
            offset=0 if offset is None else whole(self, self.only(offset, "expression").expression, "OFFSET"),
            tables=() if tables is None else self._with(tables),
            at=self.at(node),
        )

    def _select(self, node: exp.Expr) -> syntax.SelectQuery:
        self.only(node, "expressions", "from_", "joins", "where", "group", "having", *CLAUSES)
        if not 1 <= len(node.expressions) <= MAX_SELECT_ITEMS:
            raise SqlRefused("sql-syntax", f"A SELECT lists 1 to {MAX_SELECT_ITEMS} columns", self.at(node))
        distinct = node.args.get("distinct")
        if distinct is not None:
            if distinct.args.get("on"):
                unsupported("DISTINCT ON", self.at(node), "Group by the columns, and take MIN or MAX.")
            self.only(distinct)
        where, having = node.args.get("where"), node.args.get("having")
        return syntax.SelectQuery(
            items=tuple(self._item(item) for item in node.expressions),
            source=self._from(node),
            where=None if where is None else self.node(self.only(where, "this").this),
            groups=self._groups(node.args.get("group")),
            having=None if having is None else self.node(self.only(having, "this").this),
        )

    def _item(self, node: exp.Expr) -> tuple[Node, str | None]:
        if type(node) is exp.Alias:
            self.only(node, "this", "alias")
            return self.node(node.this), self.name(node.args["alias"]).text
        return self.node(node), None

    def _order(self, node: exp.Expr) -> syntax.Order:
        if type(node) is not exp.Ordered:
            unsupported("This ORDER BY", self.at(node), "Name columns, with ASC or DESC.")
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
                unsupported("WITH without a name", self.at(table), "Write WITH t AS (SELECT ...).")
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
            if type(node) is exp.Cube and len(units) > 6:
                raise SqlRefused("too-large", "A CUBE has at most 6 keys", self.at(node))
            sizes = range(len(units), -1, -1)
            picks = [tuple(units[:size]) for size in sizes]
            if type(node) is exp.Cube:
                picks = [pick for size in sizes for pick in itertools.combinations(units, size)]
            found = [tuple(itertools.chain(*pick)) for pick in picks]
        if len(found) > MAX_GROUPING_SETS:
            raise SqlRefused("too-large", f"A query has at most {MAX_GROUPING_SETS} grouping sets", self.at(node))
        return found

    def _from(self, node: exp.Expr) -> syntax.Source | None:
        start = node.args.get("from_")
        return None if start is None else self._joins(self._source(self.only(start, "this").this), node)

    def _joins(self, source: syntax.Source, node: exp.Expr) -> syntax.Source:
        for join in node.args.get("joins") or []:
            source = self._join(source, join)
        return source

    def _join(self, left: syntax.Source, node: exp.Expr) -> syntax.Joined:
        self.only(node, "this", "on", "side", "kind", "using", "method")
        at, right = self.at(node), self._source(node.this)
        side, kind = str(node.args.get("side") or ""), str(node.args.get("kind") or "")
        method = str(node.args.get("method") or "")
        plain = kind in ("", "INNER", "CROSS", "OUTER") and side in ("", "LEFT", "RIGHT")
        if not plain or method not in ("", "NATURAL"):
            what = " ".join(word for word in (method, side, kind) if word)
            unsupported(f"{what} JOIN", at, "The joins are JOIN, LEFT JOIN, RIGHT JOIN and CROSS JOIN.")
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
        return unsupported(
            f"{refusals.written(node, self.text)} in FROM", at, "Name a registered table, or a subquery."
        )

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


MAX_CACHED_LETTERS, MAX_CACHED_TEXTS = 1_000, 256  # read texts so short are kept for one asker, so many of them
MAX_TOP_DIGITS: Final = 18  # digits of TOP
FIRST: Final = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN}


@dataclass(frozen=True, slots=True)
class Parsed:
    """One statement: a SELECT to be answered, or to be explained."""

    query: Query
    explain: bool


def reader() -> Callable[[str], Parsed]:
    """Reads texts as `parse` does, and a short one that comes again no second time, as a page of charts sends them.

    Each asker has one of its own: how long a text takes tells nobody what others asked (T39).
    """
    known = functools.lru_cache(MAX_CACHED_TEXTS)(parse)
    return lambda text: known(text) if isinstance(text, str) and len(text) <= MAX_CACHED_LETTERS else parse(text)


def parse(text: str) -> Parsed:
    """Read a query's text, or refuse it with the place where it goes wrong."""
    text = checked(text, "query")
    try:
        return _parse(text)
    except SqlRefused as refused:
        raise refused.located(text) from None
    except RecursionError:
        raise QuestionError("too-large", "The query is nested too deeply.") from None


def _parse(text: str) -> Parsed:
    text, found, explain = _explain(text)
    if not found:
        raise QuestionError("sql-syntax", "A query is a text.")
    if found[0].token_type not in FIRST:
        remedy = "Write one SELECT statement; the data can only be asked."
        unsupported(found[0].text[:40].upper(), found[0].start, remedy)
    limit(found, "query")
    found, top = _top(found)
    query = QueryReader(text).query(tree(found, text, "query"))
    if top is not None:
        if not isinstance(query, SelectQuery) or query.limit is not None:
            unsupported("TOP beside LIMIT or UNION", found[0].start, "Write LIMIT at the end of the query.")
        query = replace(query, limit=top)
    return Parsed(query, explain)


def _explain(text: str) -> tuple[str, list[Token], bool]:
    """Take EXPLAIN off the front, leaving every other place in the text as it was."""
    found = tokens(text)
    if not found or found[0].text.upper() != "EXPLAIN":
        return text, found, False
    first = found[0]
    text = text[: first.start] + " " * (first.end + 1 - first.start) + text[first.end + 1 :]
    return text, tokens(text), True


def _top(found: list[Token]) -> tuple[list[Token], int | None]:
    """Take T-SQL's TOP n out of the first SELECT: the parser does not know it in this dialect."""
    for i in range(len(found) - 2):
        at = i + 1 + (found[i + 1].token_type == TokenType.DISTINCT)
        if found[i].token_type != TokenType.SELECT or at + 1 >= len(found):
            continue
        word, number = found[at], found[at + 1]
        if word.text.upper() == "TOP" and number.token_type == TokenType.NUMBER:
            if i or not (number.text.isdecimal() and len(number.text) <= MAX_TOP_DIGITS):
                unsupported("TOP here", word.start, "Write LIMIT at the end of the query.")
            return found[:at] + found[at + 2 :], int(number.text)
    return found, None
