"""Expressions over released values: what a SELECT does once its aggregates are known. All of it is free.

The same syntax as over rows, lowered to sql/released/program.py instead of row functions. A
column that is neither grouped nor aggregated has no released value and is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from sulq.sql.parse import syntax
from sulq.sql.parse.intervals import moved
from sulq.sql.parse.refusal import SqlRefused, unsupported
from sulq.sql.parse.syntax import Call, Literal, Node, parts, rebuilt
from sulq.sql.released import program
from sulq.sql.released.functions import KNOWN
from sulq.sql.rows.names import ColumnName
from sulq.sql.rows.values import read_moment

CASTS: Final = {
    "int": "cast integer",
    "float": "cast real",
    "text": "cast text",
    "bool": "cast boolean",
    "date": "cast date",
    "timestamp": "cast timestamp",
}
RENAMED: Final = {"btrim": "trim", "extract": "date_part"}


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedTable:
    """A released table: the program that makes it, and the names and types of its columns."""

    program: program.TableProgram
    items: tuple[ColumnName, ...]


class ReleasedExpressions:
    """Lowers expressions over one released table.

    `bound` says what keys, aggregates and columns stand for; `single` compiles a
    subquery used as a value; `items` name the columns for a refusal.
    """

    def __init__(
        self,
        bound: Mapping[Node, Node],
        items: Sequence[ColumnName],
        single: Callable[[syntax.Query], program.TableProgram],
        *,
        grouped: bool,
    ) -> None:
        self.bound = bound
        self.items = items
        self.single = single
        self.grouped = grouped

    def expr(self, node: Node) -> Node:
        """An expression over the released table."""
        found = self.bound.get(node)
        if found is not None:
            return found
        match node:
            case Literal():
                if isinstance(node.value, syntax.Interval):
                    unsupported("An INTERVAL beside a released value", node.at)
                return node
            case Call():
                return self._call(node)
            case syntax.CaseExpression():
                return rebuilt(node, tuple(map(self.expr, parts(node))))
            case syntax.Cast():
                return self._cast(node)
            case syntax.Single():
                return program.SubqueryValue(self.single(node.query))
            case syntax.Grouping():
                return self._grouping(node)
            case _:
                return self._refused(node)

    def _refused(self, node: Node) -> NoReturn:
        """Refuse what has no released value."""
        match node:
            case syntax.Place():
                name = self.items[node.index].name
                why = f"Column {name[:80]!r} is neither grouped nor inside an aggregate"
                raise SqlRefused("not-grouped", why, node.at)
            case syntax.ColumnRef():
                raise SqlRefused("unknown-column", f"No column {node.name.text[:80]!r} here", node.at)
            case syntax.Aggregate():
                raise SqlRefused("sql-syntax", "An aggregate cannot stand here", node.at)
            case syntax.Star():
                raise SqlRefused("not-grouped", "A star is neither grouped nor inside an aggregate", node.at)
            case _:
                unsupported("A subquery that decides about released rows", node.at)

    def _call(self, node: Call) -> Node:
        op = RENAMED.get(node.op, node.op)
        if op == "random":
            if self.grouped:
                unsupported("random() beside groups", node.at)
            drawn = int.from_bytes(os.urandom(6), "big") / 2**48  # a number of the analyst's, no noise
            return Literal(drawn, "float")
        moved_ = self._interval(node)
        if moved_ is not None:
            return moved_
        if op == "between":
            item, low, high = (self.expr(arg) for arg in node.args)
            return Call("and", (Call(">=", (item, low)), Call("<=", (item, high))))
        args = tuple(self.expr(arg) for arg in node.args)
        if op == "position":
            args = args[::-1]
        if op == "div":
            return Call("trunc", (Call("/", args),))
        if op in ("trim", "ltrim", "rtrim") and len(args) > 1:
            if args[1] != Literal(" ", "text"):
                unsupported(f"{node.op}() of other signs on a released text", node.at)
            args = args[:1]
        if op == "clip":
            return Call("least", (Call("greatest", (args[0], args[1])), args[2]))
        if op not in KNOWN:
            unsupported(f"{node.op}() of a released value", node.at)
        return Call(op, args)

    def _interval(self, node: Call) -> Node | None:
        """A date moved by an interval: a constant one is worked out here, else by whole days."""
        if node.op not in ("+", "-") or not any(
            isinstance(arg, Literal) and arg.type == "interval" for arg in node.args
        ):
            return None
        first, last = node.args
        if node.op == "+" and isinstance(first, Literal) and first.type == "interval":
            first, last = last, first
        if not isinstance(last, Literal) or not isinstance(last.value, syntax.Interval):
            return unsupported("An INTERVAL here", node.at)
        by = last.value if node.op == "+" else -last.value
        inner = self.expr(first)
        if (
            isinstance(inner, Call)
            and inner.op in ("cast date", "cast timestamp")
            and isinstance(inner.args[0], Literal)
        ):
            return self._moved(inner, by, node.at)
        if by.months or by.microseconds:
            return unsupported("Months or hours added to a released date", node.at)
        return Call("+", (inner, Literal(by.days, "int")))

    def _moved(self, inner: Call, by: syntax.Interval, at: int) -> Node:
        from_text = inner.args[0]
        value = (
            read_moment(str(from_text.value), inner.op.removeprefix("cast "))
            if isinstance(from_text, Literal)
            else None
        )
        found = None if value is None else moved(value, by)
        if found is None:
            raise SqlRefused("bad-literal", "This date cannot be read", at)
        if inner.op == "cast date" and not by.microseconds:
            return Literal(found.date(), "date")
        return Literal(found, "timestamp")

    def _cast(self, node: syntax.Cast) -> Node:
        found: Node = Call(CASTS[node.to], (self.expr(node.item),))
        if node.wide is None:
            return found
        if node.to == "text":
            return Call("left", (found, Literal(node.wide, "int")))
        return Call("round", (found, Literal(node.wide, "int"))) if node.to == "float" else found

    def _grouping(self, node: syntax.Grouping) -> Node:
        """GROUPING(a, b): a bit for each key, the last one the lowest."""
        total: Node | None = None
        for key in node.keys:
            found = self.bound.get(key)
            inner = found.args[0] if isinstance(found, Call) else found
            if not isinstance(inner, program.KeyLabel):
                raise SqlRefused("not-grouped", "GROUPING takes what is grouped by", node.at)
            bit = program.LeftOut(inner.index)
            total = bit if total is None else Call("+", (Call("*", (total, Literal(2, "int"))), bit))
        return Literal(0, "int") if total is None else total
