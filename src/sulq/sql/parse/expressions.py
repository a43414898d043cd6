"""Expressions of the parser's tree, read through a whitelist into our own syntax."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Final, NoReturn

from sqlglot import exp

from sulq.sql.parse import refusals, syntax, whitelist
from sulq.sql.parse.syntax import Node, SqlRefused, unsupported
from sulq.sql.parse.tree import place

MAX_NAME_LETTERS: Final = 128
MAX_NUMBER_DIGITS: Final = 100
TYPES: Final = "The types are INTEGER, DOUBLE PRECISION, NUMERIC, TEXT, BOOLEAN, DATE and TIMESTAMP."


class ExpressionReader(ABC):
    """Reads one text's expressions; a subquery inside is read by `query`."""

    def __init__(self, text: str) -> None:
        self.text = text

    @abstractmethod
    def query(self, node: exp.Expr) -> syntax.Query:
        """Read a subquery."""

    def at(self, node: exp.Expr) -> int:
        """The earliest place in the text that is known of a node, or of what it is part of."""
        item: exp.Expr | None = node
        while item is not None:
            found = place(item)
            if found is not None:
                return found
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
            raise SqlRefused("unknown-table", why, self.at(node), "Write the table's name alone.")
        return found is not None

    def only(self, node: exp.Expr, *known: str) -> exp.Expr:
        """Insist that a node has no part but these: whatever else was written would be ignored."""
        silent = whitelist.SILENT.get(type(node), set())
        for part, value in node.args.items():
            if value and part not in known and part not in silent:
                what, remedy = refusals.part(part)
                at = self._within(value, node)
                unsupported(f"{refusals.written(node, self.text)} with {what}", at, remedy)
        return node

    def _within(self, value: object, node: exp.Expr) -> int:
        """The place of a part of a node, of the node where the part's is not known."""
        first = value[0] if isinstance(value, list) and value else value
        found = place(first) if isinstance(first, exp.Expr) else None
        return self.at(node) if found is None else found

    def name(self, node: object) -> syntax.Name:
        """An identifier."""
        if type(node) is not exp.Identifier:
            where = self.at(node) if isinstance(node, exp.Expr) else 0
            what = refusals.written(node, self.text) if isinstance(node, exp.Expr) else "This"
            unsupported(
                f"{what} in place of a name", where, 'Write a name; one with other signs in double quotes: "a b".'
            )
        self.only(node, "this", "quoted")
        if not node.this or len(node.this) > MAX_NAME_LETTERS:
            raise SqlRefused("sql-syntax", f"A name has 1 to {MAX_NAME_LETTERS} letters", self.at(node))
        return syntax.Name(str(node.this), bool(node.args.get("quoted")), self.at(node))

    def node(self, node: exp.Expr) -> Node:
        """Read an expression."""
        if node is None:
            raise SqlRefused("sql-syntax", "An argument is missing", 0, "Give every function all of its arguments.")
        kind = type(node)
        if any(needed and node.args.get(name) is None for name, needed in kind.arg_types.items()):
            raise self.unfit(node)
        if kind in READERS:
            known, read = READERS[kind]
            return read(self, self.only(node, *known))
        if kind in whitelist.CALLS:
            return self._call(node)
        if kind in whitelist.PARTS:
            part = syntax.Literal(str(kind.key), "text", self.at(self.only(node, "this")))
            return self.made("extract", (part, self.node(node.this)), node, self.called(node, "extract"))
        if kind in whitelist.AGGREGATES:
            return _aggregate(self, node, whitelist.AGGREGATES[kind])
        return self.refused(node)

    def refused(self, node: exp.Expr) -> NoReturn:
        """Refuse a construct by the words of the text, and say what to write instead."""
        unsupported(refusals.written(node, self.text), self.at(node), refusals.remedy(node, self.text))

    def unfit(self, node: exp.Expr) -> SqlRefused:
        """The refusal of a function that stands in the text with other arguments than it takes."""
        what = f"{refusals.written(node, self.text)} does not take these arguments"
        return SqlRefused("sql-syntax", what, self.at(node), "Give the function the arguments that PostgreSQL lists.")

    def nodes(self, nodes: Iterable[exp.Expr]) -> tuple[Node, ...]:
        """Read several expressions."""
        return tuple(map(self.node, nodes))

    def made(self, op: str, args: tuple[Node, ...], node: exp.Expr, called: str = "?column?") -> syntax.Call:
        """A call of a function or operator that stands where a node does."""
        return syntax.Call(op, args, called, self.at(node))

    def unless(self, found: syntax.Call, node: exp.Expr) -> syntax.Call:
        """A condition, or its opposite where the node is negated."""
        return syntax.Call("not", (found,), "?column?", found.at) if node.args.get("negate") else found

    def _call(self, node: exp.Expr) -> Node:
        op, names = whitelist.CALLS[type(node)]
        self.only(node, *("expressions" if name == "*" else name for name in names))
        args: list[Node] = []
        for name in names:
            if name == "*":
                args += self.nodes(node.expressions)
            elif node.args.get(name) is not None:
                args.append(self.node(node.args[name]))
        nameless = op in whitelist.NAMELESS or (op in ("mod", "power") and "start" not in node.meta)
        return self.made(op, tuple(args), node, "?column?" if nameless else self.called(node, op))


def _literal(reader: ExpressionReader, node: exp.Expr) -> Node:
    at, word = reader.at(node), str(node.this)
    if node.args.get("is_string"):
        return syntax.Literal(word, "text", at)
    if len(word) > MAX_NUMBER_DIGITS:
        raise SqlRefused("bad-literal", "A number has too many digits", at)
    try:
        if word.isdigit():
            return syntax.Literal(int(word), "int", at)
        exponent = word.lower().partition("e")[2]
        if exponent and abs(int(exponent)) > MAX_NUMBER_DIGITS:
            raise ValueError
        return syntax.Literal(Fraction(word), "float", at)
    except ValueError:
        raise SqlRefused("bad-literal", "This is not a number sulq can hold", at) from None


def _column(reader: ExpressionReader, node: exp.Expr) -> Node:
    reader.schema(node)
    table = None if node.args.get("table") is None else reader.name(node.args["table"])
    if type(node.this) is exp.Star:
        reader.only(node.this)
        return syntax.Star(table, reader.at(node))
    return syntax.ColumnRef(reader.name(node.this), table, reader.at(node))


def _chain(reader: ExpressionReader, node: exp.Expr) -> Node:
    """AND and OR of many conditions as one list, without recursion."""
    found: list[exp.Expr] = []
    front = [node]
    while front:
        item = front.pop()
        if type(item) is type(node):
            reader.only(item, "this", "expression")
            front += [item.args["expression"], item.this]
        else:
            found.append(item)
    return reader.made(str(node.key), reader.nodes(found), node)


def _is(reader: ExpressionReader, node: exp.Expr) -> Node:
    what = node.expression
    if type(what) not in (exp.Null, exp.Boolean):
        unsupported("IS with anything but NULL, TRUE or FALSE", reader.at(node), "Write x IS NULL, or compare with =.")
    op = "is null" if type(what) is exp.Null else "is true" if what.this else "is false"
    return reader.unless(reader.made(op, (reader.node(node.this),), node), node)


def _in(reader: ExpressionReader, node: exp.Expr) -> Node:
    item = reader.node(node.this)
    if node.args.get("query") is not None:
        return syntax.Subquery("in", reader.query(node.args["query"]), item, reader.at(node))
    return reader.made("in", (item, *reader.nodes(node.expressions)), node)


def _escape(reader: ExpressionReader, node: exp.Expr) -> Node:
    escape, inner = reader.node(node.expression), node.this
    if type(inner) not in (exp.Like, exp.ILike):
        unsupported("ESCAPE here", reader.at(node), "Put ESCAPE behind a LIKE.")
    return _like(reader, reader.only(inner, "this", "expression", "negate"), escape)


def _like(reader: ExpressionReader, node: exp.Expr, *escape: Node) -> Node:
    return reader.unless(reader.made(str(node.key), (*reader.nodes((node.this, node.expression)), *escape), node), node)


def _case(reader: ExpressionReader, node: exp.Expr) -> Node:
    subject = None if node.args.get("this") is None else reader.node(node.this)
    args: list[Node] = []
    for branch in node.args["ifs"]:
        when = reader.node(reader.only(branch, "this", "true").this)
        if subject is not None:
            when = reader.made("=", (subject, when), branch)
        args += [when, reader.node(branch.args["true"])]
    if node.args.get("default") is not None:
        args.append(reader.node(node.args["default"]))
    return reader.made("case", tuple(args), node)


def _cast(reader: ExpressionReader, node: exp.Expr) -> Node:
    to, at = node.args["to"], reader.at(node)
    if type(to) is not exp.DataType:
        unsupported("A cast to this type", at, TYPES)
    kind = str(reader.only(to, "this", "expressions").this.name)
    if kind not in whitelist.CASTS:
        unsupported(f"A cast to {refusals.type_name(node, reader.text)}", at, TYPES)
    sizes = [whole(reader, param.this, "A type's size") for param in to.expressions]
    number = whitelist.CASTS[kind] != "text"  # its digits, then its decimal places
    wide = (*sizes, 0)[number] if sizes else None
    return syntax.Cast(reader.node(node.this), whitelist.CASTS[kind], wide, at)


def whole(reader: ExpressionReader, node: exp.Expr, what: str) -> int:
    """A whole number that must stand in the text as such."""
    if type(node) is not exp.Literal or node.args.get("is_string") or not str(node.this).isdigit():
        unsupported(f"{what} that is not a whole number", reader.at(node), "Write the number itself.")
    if len(str(node.this)) > 15:
        raise SqlRefused("too-large", f"{what} is too large", reader.at(node))
    return int(node.this)


def _interval(reader: ExpressionReader, node: exp.Expr) -> Node:
    at, unit = reader.at(node), node.args.get("unit")
    if type(node.this) is not exp.Literal or (unit is not None and type(unit) is not exp.Var):
        unsupported("An INTERVAL that is not a constant", at, "Write it as INTERVAL '90 days'.")
    found = syntax.interval(str(node.this.this), None if unit is None else str(unit.this))
    if found is None:
        raise SqlRefused(
            "bad-literal", "This INTERVAL cannot be read", at, "Write whole units: INTERVAL '1 month 2 days'."
        )
    return syntax.Literal(found, "interval", at)


def _part(reader: ExpressionReader, node: exp.Expr) -> syntax.Literal:
    word = str(node.this).lower()
    if type(node) not in (exp.Var, exp.Literal) or word not in whitelist.CLOCK_PARTS:
        remedy = f"The parts are {', '.join(whitelist.CLOCK_PARTS)}."
        unsupported(f"The part {word[:40]!r} of a date", reader.at(node), remedy)
    return syntax.Literal(word, "text", reader.at(node))


def _of_time(reader: ExpressionReader, node: exp.Expr) -> Node:
    """EXTRACT(part FROM x) or DATE_TRUNC(part, x)."""
    trunc = type(node) is exp.TimestampTrunc
    part, item = (node.args["unit"], node.this) if trunc else (node.this, node.expression)
    called = "date_trunc" if trunc else reader.called(node, "extract")
    return reader.made("date_trunc" if trunc else "extract", (_part(reader, part), reader.node(item)), node, called)


def _trim(reader: ExpressionReader, node: exp.Expr) -> Node:
    op = {"LEADING": "ltrim", "TRAILING": "rtrim", "BOTH": "btrim"}.get(str(node.args.get("position") or "BOTH"))
    if op is None:
        raise reader.unfit(node)
    given = (node.this, node.args.get("expression"))
    return reader.made(op, reader.nodes(part for part in given if part is not None), node, op)


def _items(reader: ExpressionReader, first: exp.Expr | None) -> tuple[tuple[Node, ...], bool]:
    """An aggregate's arguments, and whether each different value counts once."""
    if type(first) is exp.Distinct:
        return reader.nodes(reader.only(first, "expressions").expressions), True
    return () if first is None else (reader.node(first),), False


def _count(reader: ExpressionReader, node: exp.Expr) -> Node:
    at, called = reader.at(node), reader.called(node, "count")
    args, distinct = _items(reader, node.args.get("this"))
    if len(args) != 1 or node.expressions:
        unsupported("COUNT of several columns", at, "Count one expression.")
    if isinstance(args[0], syntax.Star):
        if args[0].table is not None or distinct:
            unsupported("COUNT of a table's columns", at, "Write COUNT(*).")
        return syntax.Aggregate("rows", (), called=called, at=at)
    return syntax.Aggregate("count", args, distinct, called=called, at=at)


def _aggregate(reader: ExpressionReader, node: exp.Expr, name: str, first: exp.Expr | None = None) -> Node:
    """An aggregate of `this`, or of `first` where the parser does not know the function."""
    pair = name in whitelist.PAIRS
    if first is None:
        reader.only(node, *(("this", "expression") if pair else ("this",)))
    args, distinct = _items(reader, node.args.get("this") if first is None else first)
    if pair:
        args = (*args, reader.node(node.expression))
    if len(args) != 1 + pair or any(isinstance(arg, syntax.Star) for arg in args):
        raise SqlRefused("sql-syntax", "This aggregate has another number of arguments", reader.at(node))
    return syntax.Aggregate(name, args, distinct, called=reader.called(node, name), at=reader.at(node))


def _filter(reader: ExpressionReader, node: exp.Expr) -> Node:
    inner = reader.node(node.this)
    if not isinstance(inner, syntax.Aggregate) or type(node.expression) is not exp.Where:
        unsupported("FILTER on anything but an aggregate", reader.at(node), "Put it behind COUNT, SUM or AVG.")
    return replace(inner, where=reader.node(reader.only(node.expression, "this").this))


def _fraction(reader: ExpressionReader, node: exp.Expr) -> Fraction:
    found = reader.node(node)
    value = found.value if isinstance(found, syntax.Literal) else None
    if not isinstance(value, (int, Fraction)) or not 0 <= value <= 1:
        raise SqlRefused("bad-literal", "A percentile is a number from 0 to 1", reader.at(node))
    return Fraction(value)


def _within_group(reader: ExpressionReader, node: exp.Expr) -> Node:
    function, order, at = node.this, node.expression, reader.at(node)
    if type(function) not in whitelist.QUANTILES or type(order) is not exp.Order:
        unsupported(f"{refusals.written(function, reader.text)} WITHIN GROUP", at, "Use PERCENTILE_CONT(0.5).")
    reader.only(function, "this")
    reader.only(order, "expressions")
    if len(order.expressions) != 1 or type(order.expressions[0]) is not exp.Ordered:
        unsupported("WITHIN GROUP by several columns", at, "Order by one column.")
    ordered = reader.only(order.expressions[0], "this", "desc", "nulls_first")
    q = _fraction(reader, function.this)
    name = whitelist.QUANTILES[type(function)]
    if ordered.args.get("desc"):
        if name == "quantile_disc" and q not in (0, 1):
            unsupported("PERCENTILE_DISC in descending order", at, "Order ascending by 1 - q.")
        q = 1 - q
    return syntax.Aggregate(name, (reader.node(ordered.this),), q=q, called=reader.called(function, name), at=at)


def _quantile(reader: ExpressionReader, node: exp.Expr) -> Node:
    """MEDIAN(x), or QUANTILE(x, q)."""
    args, distinct = _items(reader, node.args.get("this"))
    q = _fraction(reader, node.args["quantile"]) if "quantile" in node.args else Fraction(1, 2)
    return syntax.Aggregate("quantile_cont", args, distinct, q=q, called=str(node.key), at=reader.at(node))


def _anonymous(reader: ExpressionReader, node: exp.Expr) -> Node:
    word, args = str(node.this).lower(), node.expressions
    if word in whitelist.ANONYMOUS_AGGREGATES and len(args) == 1:
        return _aggregate(reader, node, whitelist.ANONYMOUS_AGGREGATES[word], args[0])
    if whitelist.ANONYMOUS_CALLS.get(word) == len(args):
        return reader.made(word, reader.nodes(args), node, word)
    if word == "make_date" and len(args) == 3:
        year, month, day = (whole(reader, arg, "A date") for arg in args)
        try:
            return syntax.Literal(datetime.date(year, month, day), "date", reader.at(node))
        except ValueError:
            raise SqlRefused("bad-literal", "There is no such date", reader.at(node)) from None
    return reader.refused(node)


Reader = Callable[[ExpressionReader, exp.Expr], Node]
_LIKE: Final = (("this", "expression", "negate"), _like)
_CAST: Final = (("this", "to", "safe"), _cast)
# The parts a node may have, and what reads it.
READERS: Final[dict[type[exp.Expr], tuple[tuple[str, ...], Reader]]] = {
    exp.Literal: (("this", "is_string"), _literal),
    exp.Boolean: (("this",), lambda reader, node: syntax.Literal(bool(node.this), "bool", reader.at(node))),
    exp.Null: ((), lambda reader, node: syntax.Literal(None, "null", reader.at(node))),
    exp.Column: (("this", "table", "db", "catalog"), _column),
    exp.Star: ((), lambda reader, node: syntax.Star(None, reader.at(node))),
    exp.Paren: (("this",), lambda reader, node: reader.node(node.this)),
    exp.And: (("this", "expression"), _chain),
    exp.Or: (("this", "expression"), _chain),
    exp.Is: (("this", "expression", "negate"), _is),
    exp.In: (("this", "expressions", "query"), _in),
    exp.Like: _LIKE,
    exp.ILike: _LIKE,
    exp.Escape: (("this", "expression"), _escape),
    exp.Case: (("this", "ifs", "default"), _case),
    exp.Cast: _CAST,
    exp.TryCast: _CAST,
    exp.Interval: (("this", "unit"), _interval),
    exp.Extract: (("this", "expression"), _of_time),
    exp.TimestampTrunc: (("this", "unit"), _of_time),
    exp.Trim: (("this", "expression", "position"), _trim),
    exp.Count: (("this", "expressions"), _count),
    exp.Filter: (("this", "expression"), _filter),
    exp.WithinGroup: (("this", "expression"), _within_group),
    exp.Median: (("this",), _quantile),
    exp.Quantile: (("this", "quantile"), _quantile),
    exp.Grouping: (
        ("expressions",),
        lambda reader, node: reader.made("grouping", reader.nodes(node.expressions), node, "grouping"),
    ),
    exp.Exists: (
        ("this",),
        lambda reader, node: syntax.Subquery("exists", reader.query(node.this), at=reader.at(node)),
    ),
    exp.Subquery: (("this",), lambda reader, node: syntax.Subquery("value", reader.query(node), at=reader.at(node))),
    exp.Anonymous: (("this", "expressions"), _anonymous),
}
