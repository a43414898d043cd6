"""From text to a checked syntax tree: limits first, then one SELECT and nothing else.

sqlglot parses; what it found is read through a whitelist of exact node classes
and of the parts each may have, into sql/parse/syntax.py. Whatever is not on the list is
refused by name and place, so nothing an analyst wrote is ever quietly ignored
(T69 to T74).
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sulq.errors import QuestionError
from sulq.language.domain import is_text
from sulq.sql.parse import syntax
from sulq.sql.parse.expressions import ExpressionReader, whole
from sulq.sql.parse.syntax import MAX_GROUPING_SETS, MAX_SELECT_ITEMS, Node, Query, SelectQuery, SqlRefused, unsupported
from sulq.sql.parse.whitelist import construct

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
            return unsupported(construct(node), self.at(node), "Write one SELECT statement.")
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
                unsupported("DISTINCT ON", self.at(node))
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


MAX_QUERY_BYTES: Final = 100_000  # bytes
MAX_CACHED_LETTERS, MAX_CACHED_TEXTS = 1_000, 256  # read texts so short are kept for one asker, so many of them
MAX_TOKENS: Final = 4_000
WORD: Final = re.compile(r"\w+|[^\w\s]")
SIGN: Final = re.compile(r"\S")
MAX_DEPTH: Final = 80
MAX_UNIONS: Final = 32
MAX_PREFIX_OPERATORS: Final = 16
MAX_TOP_DIGITS: Final = 18  # digits of TOP
# What a whole query may hold of a construct, and how many parts one of them may have: each costs time to plan (T74).
MAX_OF_A_CONSTRUCT: Final[tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], int, str], ...]] = (
    (exp.Select, 64, "SELECTs"),
    (exp.Join, 16, "joins"),
    (exp.AggFunc, 128, "aggregates"),
    ((exp.Median, exp.PercentileCont, exp.PercentileDisc, exp.Quantile), 32, "quantiles"),
)
MAX_SIDE_BY_SIDE: Final[tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], int, str], ...]] = (
    ((exp.Group, exp.Rollup, exp.Cube), 32, "keys"),
    (exp.GroupingSets, 64, "grouping sets"),
    (exp.Order, 64, "columns to sort by"),
    (exp.Func, 100, "values of a function"),
)
DIALECT: Final = "postgres"
PREFIXES: Final = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
OPENING: Final = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE}
FIRST: Final = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN}
CLOSING: Final = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}


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
    if not isinstance(text, str) or not text.strip():
        raise QuestionError("sql-syntax", "A query is a text: SELECT ...")
    if len(text) > MAX_QUERY_BYTES or len(text.encode("utf-8", "replace")) > MAX_QUERY_BYTES:
        raise QuestionError("too-large", f"A query has at most {MAX_QUERY_BYTES:,} bytes.")
    if "\x00" in text or not is_text(text):
        raise QuestionError("sql-syntax", "A query is text: it holds no NUL and no half of a character.")
    rough = itertools.islice(WORD.finditer(text), 2 * MAX_TOKENS + 1)  # counted first: the parser's own words are dear
    if sum(1 for _ in rough) > 2 * MAX_TOKENS:
        raise QuestionError("too-large", f"A query has at most {MAX_TOKENS:,} words.")
    try:
        return _parse(text)
    except SqlRefused as refused:
        raise refused.located(text) from None
    except RecursionError:
        raise QuestionError("too-large", "The query is nested too deeply.") from None


def _parse(text: str) -> Parsed:
    text, found, explain = _explain(text)
    _limits(found)
    found, top = _top(found)
    tree = _tree(found, text)
    _measured(tree)
    query = QueryReader(text).query(tree)
    if top is not None:
        if not isinstance(query, SelectQuery) or query.limit is not None:
            unsupported("TOP beside LIMIT or UNION", found[0].start)
        query = replace(query, limit=top)
    return Parsed(query, explain)


def _tokens(text: str) -> list[Token]:
    try:
        found = list(sqlglot.tokenize(text, dialect=DIALECT))
        plain = _without_remarks(text, found)
        return found if plain == text else list(sqlglot.tokenize(plain, dialect=DIALECT))
    except SqlglotError:
        raise QuestionError("sql-syntax", "The text breaks off inside a quotation or holds a stray sign.") from None


def _without_remarks(text: str, found: list[Token]) -> str:
    """The text with blanks for remarks, every word in its place, so that GROUP /* so */ BY is one keyword.

    Between two of the parser's words there are blanks and remarks alone: quotations are words.
    """
    pieces, last = [], 0
    for token in found:
        pieces += [SIGN.sub(" ", text[last : token.start]), text[token.start : token.end + 1]]
        last = token.end + 1
    return "".join([*pieces, SIGN.sub(" ", text[last:])])


def _explain(text: str) -> tuple[str, list[Token], bool]:
    """Take EXPLAIN off the front, leaving every other place in the text as it was."""
    found = _tokens(text)
    if not found or found[0].text.upper() != "EXPLAIN":
        return text, found, False
    first = found[0]
    text = text[: first.start] + " " * (first.end + 1 - first.start) + text[first.end + 1 :]
    return text, _tokens(text), True


def _limits(found: list[Token]) -> None:
    """Refuse a bomb before it is parsed: too many words, too deep, too long a chain (T74)."""
    if not found:
        raise QuestionError("sql-syntax", "A query is a text: SELECT ...")
    first = found[0]
    if first.token_type not in FIRST:
        remedy = "Write one SELECT statement; the data can only be asked."
        unsupported(first.text[:40].upper(), first.start, remedy)
    if len(found) > MAX_TOKENS:
        raise SqlRefused("too-large", f"A query has at most {MAX_TOKENS:,} words", found[MAX_TOKENS].start)
    depth = run = unions = 0
    for token in found:
        kind = token.token_type
        depth += (kind in OPENING) - (kind in CLOSING)
        run = run + 1 if kind in PREFIXES else 0
        unions += kind == TokenType.UNION
        if depth > MAX_DEPTH or run > MAX_PREFIX_OPERATORS or unions > MAX_UNIONS:
            raise SqlRefused("too-large", "The query is nested too deeply", token.start)


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


def _tree(found: list[Token], text: str) -> exp.Expr:
    """The parser's tree of the one statement."""
    try:
        trees = sqlglot.Dialect.get_or_raise(DIALECT).parser().parse(found, text)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        line, column = first.get("line"), first.get("col")
        where = f" near line {line}, column {column}" if line and column else ""
        raise QuestionError("sql-syntax", f"This is not SQL as PostgreSQL writes it{where}.") from None
    except ValueError:  # the parser's own, of what stands where only a name can
        raise QuestionError("sql-syntax", "This is not SQL as PostgreSQL writes it.") from None
    trees = [tree for tree in trees if tree is not None]
    if len(trees) != 1 or trees[0] is None:
        semicolon = next((t.start for t in found if t.token_type == TokenType.SEMICOLON), 0)
        raise SqlRefused("sql-syntax", "One query at a time", semicolon)
    return trees[0]


def _measured(tree: exp.Expr) -> None:
    """Refuse a tree deeper than is read by recursion (a chain of AND or OR is one step), or of too many parts."""
    counts: Counter[str] = Counter()
    front = [(tree, 0)]
    while front:
        node, depth = front.pop()
        if depth > MAX_DEPTH:
            raise SqlRefused("too-large", "The query is nested too deeply", 0)
        for kind, most, what in MAX_OF_A_CONSTRUCT:
            counts[what] += isinstance(node, kind)
            if counts[what] > most:
                raise SqlRefused("too-large", f"A query has at most {most} {what}", 0)
        wide = len(node.args.get("expressions") or ())
        for kind, most, what in MAX_SIDE_BY_SIDE:
            if wide > most and isinstance(node, kind):
                raise SqlRefused("too-large", f"At most {most} {what} stand side by side", 0)
        for child in node.iter_expressions():
            chained = type(child) is type(node) and type(node) in (exp.And, exp.Or)
            front.append((child, depth + (not chained)))
