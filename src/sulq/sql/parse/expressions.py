"""Expressions of the parser's tree, read through a whitelist into our own syntax."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Final

from sqlglot import exp

from sulq.sql.parse import intervals
from sulq.sql.parse.refusal import Refused, unsupported
from sulq.sql.parse.syntax import (
    Aggregate,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Grouping,
    Literal,
    Name,
    Node,
    Query,
    Single,
    Star,
    Within,
)

LONGEST_NAME: Final = 128
LONGEST_NUMBER: Final = 100

# An operator or function, and the parts of it that are read, in order.
CALLS: Final[dict[type[exp.Expr], tuple[str, tuple[str, ...]]]] = {
    exp.Add: ("+", ("this", "expression")),
    exp.Sub: ("-", ("this", "expression")),
    exp.Mul: ("*", ("this", "expression")),
    exp.Div: ("/", ("this", "expression")),
    exp.Mod: ("mod", ("this", "expression")),
    exp.IntDiv: ("div", ("this", "expression")),
    exp.Pow: ("power", ("this", "expression")),
    exp.Neg: ("neg", ("this",)),
    exp.EQ: ("=", ("this", "expression")),
    exp.NEQ: ("<>", ("this", "expression")),
    exp.LT: ("<", ("this", "expression")),
    exp.LTE: ("<=", ("this", "expression")),
    exp.GT: (">", ("this", "expression")),
    exp.GTE: (">=", ("this", "expression")),
    exp.NullSafeEQ: ("is not distinct from", ("this", "expression")),
    exp.NullSafeNEQ: ("is distinct from", ("this", "expression")),
    exp.Not: ("not", ("this",)),
    exp.Between: ("between", ("this", "low", "high")),
    exp.DPipe: ("||", ("this", "expression")),
    exp.Abs: ("abs", ("this",)),
    exp.Floor: ("floor", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Round: ("round", ("this", "decimals")),
    exp.Trunc: ("trunc", ("this", "decimals")),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.Cbrt: ("cbrt", ("this",)),
    exp.Ln: ("ln", ("this",)),
    exp.Exp: ("exp", ("this",)),
    exp.Sign: ("sign", ("this",)),
    exp.Pi: ("pi", ()),
    exp.Rand: ("random", ()),
    exp.Cos: ("cos", ("this",)),
    exp.Sin: ("sin", ("this",)),
    exp.Tan: ("tan", ("this",)),
    exp.Degrees: ("degrees", ("this",)),
    exp.Radians: ("radians", ("this",)),
    exp.Nullif: ("nullif", ("this", "expression")),
    exp.Lower: ("lower", ("this",)),
    exp.Upper: ("upper", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Left: ("left", ("this", "expression")),
    exp.Right: ("right", ("this", "expression")),
    exp.StartsWith: ("starts_with", ("this", "expression")),
    exp.StrPosition: ("position", ("this", "substr")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.WidthBucket: ("width_bucket", ("this", "min_value", "max_value", "num_buckets")),
    exp.Coalesce: ("coalesce", ("this", "*")),
    exp.Greatest: ("greatest", ("this", "*")),
    exp.Least: ("least", ("this", "*")),
    exp.Concat: ("concat", ("*",)),
}
# Parts that say nothing in this dialect: set by the parser for every such node.
SILENT: Final[dict[type[exp.Expr], set[str]]] = {
    exp.Div: {"typed", "safe"},
    exp.DPipe: {"safe"},
    exp.Concat: {"safe", "coalesce"},
    exp.Greatest: {"ignore_nulls"},
    exp.Least: {"ignore_nulls"},
    exp.Count: {"big_int"},
    exp.DataType: {"nested"},
}
OPERATORS: Final = frozenset(
    [
        "+",
        "-",
        "*",
        "/",
        "mod",
        "div",
        "power",
        "neg",
        "=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
        "not",
        "between",
        "||",
        "and",
        "or",
    ]
)
PARTS: Final[dict[type[exp.Expr], str]] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Day: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
CLOCK_PARTS: Final = [
    "century",
    "decade",
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "dow",
    "isodow",
    "doy",
    "epoch",
    "isoyear",
    "millennium",
]
AGGREGATES: Final[dict[type[exp.Expr], str]] = {
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Min: "min",
    exp.Max: "max",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "std_samp",
    exp.StddevSamp: "std_samp",
    exp.StddevPop: "std_pop",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.Corr: "corr",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
}
PAIRS: Final = ("covar_pop", "covar_samp", "corr")
ANONYMOUS_AGGREGATES: Final = {
    "var": "var_samp",
    "varp": "var_pop",
    "stdev": "std_samp",
    "stdevp": "std_pop",
    "every": "bool_and",
}
QUANTILES: Final[dict[type[exp.Expr], str]] = {
    exp.PercentileCont: "quantile_cont",
    exp.PercentileDisc: "quantile_disc",
}
CASTS: Final[dict[str, str]] = {
    "INT": "int",
    "BIGINT": "int",
    "SMALLINT": "int",
    "TINYINT": "int",
    "DOUBLE": "float",
    "FLOAT": "float",
    "DECIMAL": "float",
    "BOOLEAN": "bool",
    "TEXT": "text",
    "VARCHAR": "text",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
}
CONSTRUCTS: Final[dict[type[exp.Expr], str]] = {
    exp.Window: "A window function (OVER)",
    exp.Any: "ANY",
    exp.Tuple: "A list in parentheses",
    exp.Placeholder: "A parameter",
    exp.Parameter: "A parameter",
    exp.Bracket: "A subscript",
    exp.Except: "EXCEPT",
    exp.Intersect: "INTERSECT",
    exp.Values: "VALUES",
    exp.Lateral: "LATERAL",
}


def construct(node: exp.Expr) -> str:
    """What SQL calls a node of the parser's tree."""
    if type(node) in CONSTRUCTS:
        return CONSTRUCTS[type(node)]
    if type(node) is exp.Anonymous:
        return f"{str(node.this)[:60].lower()}()"
    if isinstance(node, exp.Func):
        return f"{node.sql_name()}()"
    return str(node.key).upper()


class ExpressionReader(ABC):
    """Reads one text's expressions; a subquery inside is read by `query`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.readers: dict[type[exp.Expr], Callable[[exp.Expr], Node]] = {
            exp.Literal: self._literal,
            exp.Boolean: lambda node: Literal(bool(node.this), "bool", self.at(node)),
            exp.Null: lambda node: Literal(None, "null", self.at(node)),
            exp.Column: self._column,
            exp.Star: self._star,
            exp.Paren: lambda node: self.node(self.only(node, "this").this),
            exp.And: lambda node: self._chain(node, "and"),
            exp.Or: lambda node: self._chain(node, "or"),
            exp.Is: self._is,
            exp.In: self._in,
            exp.Like: self._like,
            exp.ILike: self._like,
            exp.Escape: self._like,
            exp.Case: self._case,
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.Interval: self._interval,
            exp.Extract: self._extract,
            exp.TimestampTrunc: self._trunc,
            exp.Trim: self._trim,
            exp.Log: self._log,
            exp.Count: self._count,
            exp.Filter: self._filter,
            exp.WithinGroup: self._within_group,
            exp.Median: self._median,
            exp.Quantile: self._quantile,
            exp.Grouping: self._grouping,
            exp.Exists: lambda node: Exists(self.query(self.only(node, "this").this), self.at(node)),
            exp.Subquery: lambda node: Single(self.query(node), self.at(node)),
            exp.Anonymous: self._anonymous,
        }

    @abstractmethod
    def query(self, node: exp.Expr) -> Query:
        """Read a subquery."""

    def at(self, node: exp.Expr) -> int:
        """The earliest place in the text that is known of a node, or of what it is part of."""
        item: exp.Expr | None = node
        while item is not None:
            starts = [found.meta["start"] for found in item.walk() if "start" in found.meta]
            if starts:
                return int(min(starts))
            item = item.parent
        return 0

    def called(self, node: exp.Expr, otherwise: str) -> str:
        """A function's name as it was written, in small letters: PostgreSQL names the column so."""
        start, end = node.meta.get("start"), node.meta.get("end")
        word = "" if start is None or end is None else self.text[start : end + 1].lower()
        return word if word.isidentifier() else otherwise

    def schema(self, node: exp.Expr) -> bool:
        """Whether a schema stands before a table's name: PostgreSQL's usual one, since there is no other here."""
        found, database = node.args.get("db"), node.args.get("catalog")
        if database is not None or (found is not None and not self.name(found).fits("public")):
            why = "There are no schemas or databases here, so none can stand before a table's name"
            raise Refused("unknown-table", why, self.at(node), "Write the table's name alone.")
        return found is not None

    def only(self, node: exp.Expr, *known: str) -> exp.Expr:
        """Insist that a node has no part but these: whatever else was written would be ignored."""
        silent = SILENT.get(type(node), set())
        for part, value in node.args.items():
            if value and part not in known and part not in silent:
                unsupported(f"{construct(node)} with {part.strip('_').replace('_', ' ').upper()}", self.at(node))
        return node

    def name(self, node: object) -> Name:
        """An identifier."""
        if type(node) is not exp.Identifier:
            where = self.at(node) if isinstance(node, exp.Expr) else 0
            what = self.written(node) if isinstance(node, exp.Expr) else "This name"
            unsupported(f"{what} in place of a name", where)
        self.only(node, "this", "quoted")
        if not node.this or len(node.this) > LONGEST_NAME:
            raise Refused("sql-syntax", f"A name has 1 to {LONGEST_NAME} letters", self.at(node))
        return Name(str(node.this), bool(node.args.get("quoted")), self.at(node))

    def node(self, node: exp.Expr) -> Node:
        """Read an expression."""
        kind = type(node)
        if kind in self.readers:
            return self.readers[kind](node)
        if kind in CALLS:
            return self._call(node)
        if kind in PARTS:
            self.only(node, "this")
            part = Literal(PARTS[kind], "text", self.at(node))
            return Call("extract", (part, self.node(node.this)), self.called(node, "extract"), self.at(node))
        if kind in AGGREGATES:
            return self._aggregate(node, AGGREGATES[kind])
        return unsupported(self.written(node), self.at(node))

    def written(self, node: exp.Expr) -> str:
        """What a node was called in the text, or what SQL calls it."""
        plain = isinstance(node, exp.Func) and type(node) not in CONSTRUCTS and "start" in node.meta
        return f"{self.called(node, construct(node).lower().rstrip('()'))}()" if plain else construct(node)

    def _call(self, node: exp.Expr) -> Node:
        op, names = CALLS[type(node)]
        self.only(node, *("expressions" if name == "*" else name for name in names))
        args: list[Node] = []
        for name in names:
            if name == "*":
                args += [self.node(item) for item in node.expressions]
            elif node.args.get(name) is not None:
                args.append(self.node(node.args[name]))
        written = "?column?" if op in OPERATORS and op not in ("mod", "power") else self.called(node, op)
        if op in ("mod", "power") and "start" not in node.meta:
            written = "?column?"
        return Call(op, tuple(args), written, self.at(node))

    def _literal(self, node: exp.Expr) -> Node:
        at, word = self.at(node), str(node.this)
        if node.args.get("is_string"):
            return Literal(word, "text", at)
        if len(word) > LONGEST_NUMBER:
            raise Refused("bad-literal", "A number has too many digits", at)
        try:
            if word.isdigit():
                return Literal(int(word), "int", at)
            exponent = word.lower().partition("e")[2]
            if exponent and abs(int(exponent)) > LONGEST_NUMBER:
                raise ValueError
            return Literal(Fraction(word), "float", at)
        except ValueError:
            raise Refused("bad-literal", "This is not a number sulq can hold", at) from None

    def _column(self, node: exp.Expr) -> Node:
        self.only(node, "this", "table", "db", "catalog")
        self.schema(node)
        table = None if node.args.get("table") is None else self.name(node.args["table"])
        if type(node.this) is exp.Star:
            self.only(node.this)
            return Star(table, self.at(node))
        return Column(self.name(node.this), table, self.at(node))

    def _star(self, node: exp.Expr) -> Node:
        self.only(node)
        return Star(None, self.at(node))

    def _chain(self, node: exp.Expr, op: str) -> Node:
        """AND and OR of many conditions as one list, without recursion."""
        found: list[exp.Expr] = []
        front = [node]
        while front:
            item = front.pop()
            if type(item) is type(node):
                self.only(item, "this", "expression")
                front += [item.args["expression"], item.this]
            else:
                found.append(item)
        return Call(op, tuple(self.node(item) for item in found), "?column?", self.at(node))

    def _is(self, node: exp.Expr) -> Node:
        self.only(node, "this", "expression", "negate")
        what, at = node.expression, self.at(node)
        if type(what) is exp.Null:
            op = "is null"
        elif type(what) is exp.Boolean:
            op = "is true" if what.this else "is false"
        else:
            unsupported("IS with anything but NULL, TRUE or FALSE", at)
        found = Call(op, (self.node(node.this),), "?column?", at)
        return Call("not", (found,), "?column?", at) if node.args.get("negate") else found

    def _in(self, node: exp.Expr) -> Node:
        self.only(node, "this", "expressions", "query")
        item, at = self.node(node.this), self.at(node)
        if node.args.get("query") is not None:
            return Within(item, self.query(node.args["query"]), at)
        return Call("in", (item, *(self.node(value) for value in node.expressions)), "?column?", at)

    def _like(self, node: exp.Expr) -> Node:
        escape: tuple[Node, ...] = ()
        outer = node
        if type(node) is exp.Escape:
            self.only(node, "this", "expression")
            escape, node = (self.node(node.expression),), node.this
        if type(node) not in (exp.Like, exp.ILike):
            unsupported("ESCAPE here", self.at(outer))
        self.only(node, "this", "expression", "negate")
        op, at = "like" if type(node) is exp.Like else "ilike", self.at(node)
        found = Call(op, (self.node(node.this), self.node(node.expression), *escape), "?column?", at)
        return Call("not", (found,), "?column?", at) if node.args.get("negate") else found

    def _case(self, node: exp.Expr) -> Node:
        self.only(node, "this", "ifs", "default")
        subject = None if node.args.get("this") is None else self.node(node.this)
        branches = []
        for branch in node.args["ifs"]:
            self.only(branch, "this", "true")
            when = self.node(branch.this)
            if subject is not None:
                when = Call("=", (subject, when), "?column?", self.at(branch))
            branches.append((when, self.node(branch.args["true"])))
        default = node.args.get("default")
        return Case(tuple(branches), None if default is None else self.node(default), self.at(node))

    def _cast(self, node: exp.Expr) -> Node:
        self.only(node, "this", "to", "safe")
        to, at = node.args["to"], self.at(node)
        if type(to) is not exp.DataType:
            unsupported("A cast to this type", at)
        self.only(to, "this", "expressions")
        kind = str(to.this.name)
        if kind not in CASTS:
            unsupported(f"A cast to {kind}", at)
        sizes = [self._whole(param.this, "A type's size") for param in to.expressions]
        wide = None
        if sizes and CASTS[kind] == "text":
            wide = sizes[0]
        elif sizes:
            wide = sizes[1] if len(sizes) > 1 else 0
        return Cast(self.node(node.this), CASTS[kind], wide, at)

    def _whole(self, node: exp.Expr, what: str) -> int:
        """A whole number that must stand in the text as such."""
        if type(node) is not exp.Literal or node.args.get("is_string") or not str(node.this).isdigit():
            unsupported(f"{what} that is not a whole number", self.at(node))
        if len(str(node.this)) > 15:
            raise Refused("too-large", f"{what} is too large", self.at(node))
        return int(node.this)

    def _interval(self, node: exp.Expr) -> Node:
        self.only(node, "this", "unit")
        at, unit = self.at(node), node.args.get("unit")
        if type(node.this) is not exp.Literal or (unit is not None and type(unit) is not exp.Var):
            unsupported("An INTERVAL that is not a constant", at)
        found = intervals.interval(str(node.this.this), None if unit is None else str(unit.this))
        if found is None:
            raise Refused("bad-literal", "This INTERVAL cannot be read", at)
        return Literal(found, "interval", at)

    def _part(self, node: exp.Expr) -> Literal:
        word = str(node.this).lower()
        if type(node) not in (exp.Var, exp.Literal) or word not in CLOCK_PARTS:
            unsupported(f"The part {word[:40]!r} of a date", self.at(node))
        return Literal(word, "text", self.at(node))

    def _extract(self, node: exp.Expr) -> Node:
        self.only(node, "this", "expression")
        args = (self._part(node.this), self.node(node.expression))
        return Call("extract", args, self.called(node, "extract"), self.at(node))

    def _trunc(self, node: exp.Expr) -> Node:
        self.only(node, "this", "unit")
        return Call("date_trunc", (self._part(node.args["unit"]), self.node(node.this)), "date_trunc", self.at(node))

    def _trim(self, node: exp.Expr) -> Node:
        self.only(node, "this", "expression", "position")
        position = str(node.args.get("position") or "BOTH")
        op = {"LEADING": "ltrim", "TRAILING": "rtrim", "BOTH": "btrim"}[position]
        signs = () if node.args.get("expression") is None else (self.node(node.expression),)
        return Call(op, (self.node(node.this), *signs), op, self.at(node))

    def _log(self, node: exp.Expr) -> Node:
        self.only(node, "this", "expression")
        args = [self.node(node.this)]
        if node.args.get("expression") is not None:
            args.append(self.node(node.expression))
        return Call("log", tuple(args), self.called(node, "log"), self.at(node))

    def _items(self, node: exp.Expr) -> tuple[tuple[Node, ...], bool]:
        """An aggregate's arguments, and whether each different value counts once."""
        first = node.args.get("this")
        if type(first) is exp.Distinct:
            self.only(first, "expressions")
            return tuple(self.node(item) for item in first.expressions), True
        several = [] if first is None else [first]
        return tuple(self.node(item) for item in several), False

    def _count(self, node: exp.Expr) -> Node:
        self.only(node, "this", "expressions")
        at, called = self.at(node), self.called(node, "count")
        args, distinct = self._items(node)
        if len(args) != 1 or node.expressions:
            unsupported("COUNT of several columns", at, "Count one expression.")
        if isinstance(args[0], Star):
            if args[0].table is not None or distinct:
                unsupported("COUNT of a table's columns", at, "Write COUNT(*).")
            return Aggregate("rows", (), called=called, at=at)
        return Aggregate("count", args, distinct, called=called, at=at)

    def _aggregate(self, node: exp.Expr, name: str) -> Node:
        pair = name in PAIRS
        self.only(node, "this", "expression") if pair else self.only(node, "this")
        args, distinct = self._items(node)
        if pair:
            args = (*args, self.node(node.expression))
        return self._aggregated(name, args, distinct=distinct, node=node)

    def _aggregated(self, name: str, args: tuple[Node, ...], *, distinct: bool, node: exp.Expr) -> Node:
        if len(args) != (2 if name in PAIRS else 1) or any(isinstance(arg, Star) for arg in args):
            raise Refused("sql-syntax", "This aggregate has another number of arguments", self.at(node))
        return Aggregate(name, args, distinct, called=self.called(node, name), at=self.at(node))

    def _filter(self, node: exp.Expr) -> Node:
        self.only(node, "this", "expression")
        inner = self.node(node.this)
        if not isinstance(inner, Aggregate) or type(node.expression) is not exp.Where:
            unsupported("FILTER on anything but an aggregate", self.at(node))
        where = self.node(self.only(node.expression, "this").this)
        return Aggregate(inner.name, inner.args, inner.distinct, where, inner.q, inner.called, inner.at)

    def _fraction(self, node: exp.Expr) -> Fraction:
        found = self.node(node)
        good = isinstance(found, Literal) and isinstance(found.value, (int, Fraction))
        if not good or not 0 <= found.value <= 1:  # type: ignore[union-attr, operator]
            raise Refused("bad-literal", "A percentile is a number from 0 to 1", self.at(node))
        return Fraction(found.value)  # type: ignore[union-attr, arg-type]

    def _within_group(self, node: exp.Expr) -> Node:
        self.only(node, "this", "expression")
        function, order, at = node.this, node.expression, self.at(node)
        if type(function) not in QUANTILES or type(order) is not exp.Order:
            unsupported(f"{construct(function)} WITHIN GROUP", at)
        self.only(function, "this")
        self.only(order, "expressions")
        if len(order.expressions) != 1 or type(order.expressions[0]) is not exp.Ordered:
            unsupported("WITHIN GROUP by several columns", at)
        ordered = self.only(order.expressions[0], "this", "desc", "nulls_first")
        q = self._fraction(function.this)
        name = QUANTILES[type(function)]
        if ordered.args.get("desc"):
            if name == "quantile_disc" and q not in (0, 1):
                unsupported("PERCENTILE_DISC in descending order", at, "Order ascending by 1 - q.")
            q = 1 - q
        return Aggregate(name, (self.node(ordered.this),), q=q, called=self.called(function, name), at=at)

    def _median(self, node: exp.Expr) -> Node:
        self.only(node, "this")
        args, distinct = self._items(node)
        return Aggregate("quantile_cont", args, distinct, q=Fraction(1, 2), called="median", at=self.at(node))

    def _quantile(self, node: exp.Expr) -> Node:
        self.only(node, "this", "quantile")
        args, distinct = self._items(node)
        q = self._fraction(node.args["quantile"])
        return Aggregate("quantile_cont", args, distinct, q=q, called="quantile", at=self.at(node))

    def _grouping(self, node: exp.Expr) -> Node:
        self.only(node, "expressions")
        return Grouping(tuple(self.node(item) for item in node.expressions), self.at(node))

    def _anonymous(self, node: exp.Expr) -> Node:
        self.only(node, "this", "expressions")
        word = str(node.this).lower()
        args = node.expressions
        if word in ANONYMOUS_AGGREGATES and len(args) == 1:
            first = args[0]
            distinct = type(first) is exp.Distinct
            items = self.only(first, "expressions").expressions if distinct else [first]
            read = tuple(self.node(item) for item in items)
            return self._aggregated(ANONYMOUS_AGGREGATES[word], read, distinct=distinct, node=node)
        if word == "div" and len(args) == 2:
            return Call("div", tuple(self.node(arg) for arg in args), "div", self.at(node))
        if word == "clip" and len(args) == 3:
            return Call("clip", tuple(self.node(arg) for arg in args), "clip", self.at(node))
        if word == "make_date" and len(args) == 3:
            year, month, day = (self._whole(arg, "A date") for arg in args)
            try:
                return Literal(datetime.date(year, month, day), "date", self.at(node))
            except ValueError:
                raise Refused("bad-literal", "There is no such date", self.at(node)) from None
        return unsupported(self.written(node), self.at(node))

    def names(self, nodes: list[object]) -> Iterator[Name]:
        """Several identifiers."""
        return (self.name(node) for node in nodes)
