"""Scalar expressions over rows, lowered to row functions with SQL's three-valued logic."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final, NoReturn, cast

from sulq.language import rowfn
from sulq.language.domain import Schema
from sulq.language.kinds import Code, Truth, Words
from sulq.language.rowfn import Choice, Compare, First, IsIn, IsMissing, Lit, Logic, Not, NullIf, RowFn
from sulq.sql.parse import syntax
from sulq.sql.parse.syntax import Node, SqlRefused, placed, unsupported
from sulq.sql.rows.arithmetic import CALLS, CLOCKS, Arithmetic, cast_constant
from sulq.sql.rows.text_functions import NAMES as WORDING
from sulq.sql.rows.text_functions import TextFunctions
from sulq.sql.rows.values import (
    TYPE_WORDS,
    Cell,
    Fixed,
    PersonValue,
    Term,
    cell,
    constant_fn,
    fitted,
    same_labels,
    unknown,
    valued,
)

COMPARISONS: Final = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
OPERATORS: Final = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
ARITHMETIC: Final = ("+", "-", "*", "/")
MAX_BRANCHES: Final = 4096
SAMPLE: Final = "Leave it out; a public random part of the people is db.count(bucket(10) == 0)."
ONE_KIND: Final = "Give constants alone, or columns of one list of values."
Operand = Cell | Fixed


def _aggregate_refused(node: Node) -> NoReturn:
    raise SqlRefused("sql-syntax", "An aggregate cannot stand here", node.at, "Use HAVING or a subquery.")


class RowExpressions:
    """Lowers expressions over one relation's rows.

    `bound` says what names and already worked out expressions stand for; it is
    looked into at every node, so a grouped expression is recognised wherever it occurs.
    """

    def __init__(self, schema: Schema, bound: Mapping[Node, Term]) -> None:
        self.schema = schema
        self.bound = bound
        self.arithmetic = Arithmetic(schema)
        self.wording = TextFunctions(schema)
        self.calls: dict[str, Callable[[syntax.Call], Operand]] = {
            "case": self._case,
            "grouping": _aggregate_refused,
            "and": self._logic,
            "or": self._logic,
            "not": lambda call: self.truth(Not(self.condition(call.args[0])), call.at),
            "is null": lambda call: self._is_missing(self.term(call.args[0]), call.at),
            "is true": self._is,
            "is false": self._is,
            "between": self._between,
            "in": self._in,
            "is distinct from": self._distinct,
            "is not distinct from": self._distinct,
            "coalesce": self._coalesce,
            "nullif": self._nullif,
            "random": lambda call: unsupported(f"{call.called}() on rows", call.at, SAMPLE),
        }

    def term(self, node: Node) -> Term:
        """What an expression is."""
        found = self.bound.get(node)
        if found is not None:
            return found
        with placed(node.at):
            return self._term(node)

    def operand(self, node: Node) -> Operand:
        """An expression as a value: the person itself only where its column is declared."""
        remedy = "Count the persons, group by them in a subquery, or join."
        return valued(self.term(node), node.at, "has no value to compute with", remedy)

    def cell(self, node: Node) -> Cell:
        """An expression as a row function, a constant too."""
        found = self.operand(node)
        if isinstance(found, Cell):
            return found
        kind = "float" if found.type == "null" else found.type
        return cell(constant_fn(found, node.at), kind, self.schema, node.at)

    def condition(self, node: Node) -> RowFn:
        """An expression as a condition."""
        found = self.operand(node)
        if isinstance(found, Fixed):
            return unknown() if found.value is None else Lit(bool(fitted(found, "bool", node.at).value))
        if not isinstance(found.kind, Truth) or found.type != "bool":
            raise SqlRefused("wrong-kind", f"A condition is needed here, not {TYPE_WORDS[found.type]}", node.at)
        return found.fn

    def number(self, node: Node) -> Cell:
        """An expression as a number."""
        return self.arithmetic.number(self.operand(node), node.at)

    def _term(self, node: Node) -> Term:
        match node:
            case syntax.Literal():
                return Fixed(node.value, node.type)
            case syntax.Cast():
                item = self.operand(node.item)
                if isinstance(item, Fixed):
                    return cast_constant(item, node.to, node.wide, node.at)
                return self.arithmetic.cast(item, node.to, node.wide, node.at)
            case syntax.Call():
                return self._call(node)
            case syntax.Aggregate():
                return _aggregate_refused(node)
            case syntax.Subquery(how="value"):
                why = "A subquery's value cannot decide about rows: it would have to be released first"
                remedy = "Ask for the value first, and write it into the query."
                raise SqlRefused("sql-unsupported", why, node.at, remedy)
            case syntax.Subquery():
                why = "A subquery that decides about rows is answered only as a condition joined by AND in WHERE"
                raise SqlRefused("sql-unsupported", why, node.at, "Join it to the rest by AND.")
            case syntax.Star():
                raise SqlRefused("sql-syntax", "A star cannot stand here", node.at)
            case syntax.Place():
                raise SqlRefused("not-grouped", "This column is not grouped", node.at)
            case _:
                raise SqlRefused("unknown-column", "This column is not known here", node.at)

    def _call(self, node: syntax.Call) -> Operand:
        if node.op in self.calls:
            return self.calls[node.op](node)
        if node.op in COMPARISONS:
            return self._compare(node.op, self.term(node.args[0]), self.term(node.args[1]), node.at)
        args = [self.operand(arg) for arg in node.args]
        if node.op in ARITHMETIC:
            return self.arithmetic.binary(node.op, args[0], args[1], node.at)
        if node.op in WORDING:
            return self.wording.call(node.op, args, node.at)
        if node.op in CALLS:
            if node.op not in ("least", "greatest") and any(isinstance(x, Fixed) and x.value is None for x in args):
                return Fixed(None, "null")
            return CALLS[node.op](self.arithmetic, args, node.at)
        return unsupported(f"{node.op}() on rows", node.at, "Apply it to an aggregate, after grouping.")

    def truth(self, fn: RowFn, at: int) -> Cell:
        """A condition as a value."""
        return cell(fn, "bool", self.schema, at)

    def _logic(self, node: syntax.Call) -> Operand:
        fns = tuple(self.condition(arg) for arg in node.args)
        return self.truth(Logic(node.op, fns), node.at)

    def _is_missing(self, item: Term, at: int) -> Operand:
        if isinstance(item, Fixed):
            return Fixed(item.value is None, "bool")
        fn = item.present if isinstance(item, PersonValue) else item.fn
        return Fixed(False, "bool") if fn is None else self.truth(IsMissing(fn), at)

    def _is(self, node: syntax.Call) -> Operand:
        fn = self.condition(node.args[0])
        return self.truth((fn if node.op == "is true" else Not(fn)).fill(False), node.at)

    def _between(self, node: syntax.Call) -> Operand:
        item, low, high = (self.term(arg) for arg in node.args)
        both = self._compare(">=", item, low, node.at), self._compare("<=", item, high, node.at)
        return self.truth(Logic("and", tuple(self._truth_fn(half, node.at) for half in both)), node.at)

    def _truth_fn(self, item: Operand, at: int) -> RowFn:
        return constant_fn(Fixed(item.value, "bool"), at) if isinstance(item, Fixed) else item.fn

    def _compare(self, op: str, left: Term, right: Term, at: int) -> Operand:
        if isinstance(left, PersonValue) and isinstance(right, PersonValue) and op == "=":
            return self._same_person(left, right, at)
        left, right = self._operand(left, at), self._operand(right, at)
        if isinstance(left, Fixed) and isinstance(right, Fixed):
            return self._compared(op, left, right, at)
        if isinstance(left, Fixed):
            return self._compare(MIRRORED[op], right, left, at)
        if isinstance(right, Fixed):
            return self._against(op, left, right, at)
        if left.type in CLOCKS and right.type in CLOCKS and left.type != right.type:
            left, right = (self.arithmetic.clock(item, "timestamp", at) for item in (left, right))
        elif left.type in syntax.NUMERIC and right.type in syntax.NUMERIC and not same_labels(left, right):
            left, right = self.arithmetic.number(left, at), self.arithmetic.number(right, at)
        elif left.type == right.type == "bool" and op not in ("=", "<>"):
            unsupported("An order of truth values", at, "Compare with = or <>.")
        return self.truth(Compare(COMPARISONS[op], left.fn, right.fn), at)

    def _operand(self, item: Term, at: int) -> Operand:
        return valued(item, at, "cannot be compared with anything but a person")

    def _same_person(self, left: PersonValue, right: PersonValue, at: int) -> Operand:
        """Rows of one relation belong to one person, so its persons are equal wherever there are two."""
        absent = [Not(IsMissing(item.present)) for item in (left, right) if item.present is not None]
        if not absent:
            return Fixed(True, "bool")
        known = Logic("and", tuple(absent))
        return self.truth(Compare("==", rowfn.case((known, 1)), Lit(1)), at)

    def _compared(self, op: str, left: Fixed, right: Fixed, at: int) -> Fixed:
        """Two constants."""
        if left.value is None or right.value is None:
            return Fixed(None, "bool")
        if left.type == "text" and right.type != "text":
            left = fitted(left, right.type, at)
        elif right.type == "text" and left.type != "text":
            right = fitted(right, left.type, at)
        try:
            return Fixed(getattr(operator, OPERATORS[op])(left.value, right.value), "bool")
        except TypeError:
            raise SqlRefused("wrong-kind", "These constants cannot be compared", at) from None

    def _against(self, op: str, item: Cell, fixed: Fixed, at: int) -> Operand:
        """A row's value and a constant."""
        if fixed.value is None:
            return Fixed(None, "bool")
        fixed = fitted(fixed, item.type, at) if not (item.type in syntax.NUMERIC and fixed.type == "bool") else fixed
        value = fixed.value
        if isinstance(item.kind, Code):
            return self._label(op, item, value, at)
        if isinstance(item.kind, Words) and op not in ("=", "<>"):
            unsupported("An order of free text", at, "Compare with = or LIKE.")
        if item.type in CLOCKS:
            to = "timestamp" if "timestamp" in (item.type, fixed.type) else "date"
            left = self.arithmetic.clock(item, to, at)
            return self.truth(Compare(COMPARISONS[op], left.fn, constant_fn(Fixed(value, to), at)), at)
        if item.type == "bool":
            if not isinstance(value, bool) or op not in ("=", "<>"):
                raise SqlRefused("wrong-kind", "A condition is compared with TRUE or FALSE", at)
            return item if value == (op == "=") else self.truth(Not(item.fn), at)
        return self.truth(Compare(COMPARISONS[op], item.fn, constant_fn(fixed, at)), at)

    def _label(self, op: str, item: Cell, value: syntax.Constant, at: int) -> Operand:
        """A category and a constant: equal to a declared label (SR21), or before or after it."""
        if op in ("=", "<>"):
            return self.truth(Compare(COMPARISONS[op], item.fn, constant_fn(Fixed(value, item.type), at)), at)
        labels = item.kind.labels if isinstance(item.kind, Code) else ()
        test = f"__{OPERATORS[op]}__"
        chosen = tuple(label for label in labels if label is not None and getattr(label, test)(value) is True)
        return self.truth(IsIn(item.fn, cast("tuple[str, ...]", chosen)), at)

    def _in(self, node: syntax.Call) -> Operand:
        item = self._operand(self.term(node.args[0]), node.at)
        values = [self.operand(arg) for arg in node.args[1:]]
        fixed = [value for value in values if isinstance(value, Fixed)]
        plain = isinstance(item, Cell) and item.type not in (*CLOCKS, "bool") and len(fixed) == len(values)
        if isinstance(item, Cell) and plain and all(value.value is not None for value in fixed):
            found = [fitted(value, item.type, node.at).value for value in fixed]
            numbers = tuple(float(x) if item.type in syntax.NUMERIC and not isinstance(x, int) else x for x in found)  # type: ignore[arg-type]
            return self.truth(IsIn(item.fn, cast("tuple[str, ...]", numbers)), node.at)
        tests = tuple(self._truth_fn(self._compare("=", item, value, node.at), node.at) for value in values)
        return self.truth(Logic("or", tests), node.at)

    def _distinct(self, node: syntax.Call) -> Operand:
        left, right = (self._operand(self.term(arg), node.at) for arg in node.args)
        differ = self._truth_fn(self._compare("<>", left, right, node.at), node.at).fill(False)
        gone = [self._truth_fn(self._is_missing(item, node.at), node.at) for item in (left, right)]
        found = Logic("or", (differ, gone[0] & ~gone[1], ~gone[0] & gone[1]))
        return self.truth(found if node.op == "is distinct from" else Not(found), node.at)

    def _nullif(self, node: syntax.Call) -> Operand:
        item, other = self.cell(node.args[0]), self.operand(node.args[1])
        if isinstance(other, Fixed) and other.value is None:
            return item
        if isinstance(item.kind, Code) and isinstance(other, Fixed):
            kept = tuple(None if label == other.value else label for label in item.kind.labels)
            if all(label is None for label in kept):
                return Fixed(None, item.type)
            return cell(rowfn.Relabel(item.fn, cast("tuple[str, ...]", kept)), item.type, self.schema, node.at)
        if item.type in syntax.NUMERIC and isinstance(other, Cell):
            item, other = self.arithmetic.number(item, node.at), self.arithmetic.number(other, node.at)
        fn = constant_fn(fitted(other, item.type, node.at), node.at) if isinstance(other, Fixed) else other.fn
        return cell(NullIf(item.fn, fn), item.type, self.schema, node.at)

    def _coalesce(self, node: syntax.Call) -> Operand:
        items = [self.operand(arg) for arg in node.args]
        items = [item for item in items if not (isinstance(item, Fixed) and item.value is None)]
        if not items:
            return Fixed(None, "null")
        if len(items) == 1 or isinstance(items[0], Fixed):
            return items[0]
        if any(isinstance(item, Cell) and isinstance(item.kind, Code) for item in items):
            missing = [(Not(IsMissing(item.fn)), item) for item in items if isinstance(item, Cell)]
            last = next((item for item in items if isinstance(item, Fixed)), None)
            return self._chosen(cast("list[tuple[RowFn, Operand]]", missing), last, node.at)
        to = self._common(items, node.at)
        fns = tuple(self._as(item, to, node.at) for item in items)
        return cell(First(fns), to, self.schema, node.at)

    def _common(self, items: list[Operand], at: int) -> str:
        """The one type of several results, as PostgreSQL finds it."""
        cells = {item.type for item in items if isinstance(item, Cell)}
        types = cells or {item.type for item in items if item.type != "null"}
        if not types:
            return "null"
        types |= {item.type for item in items if isinstance(item, Fixed)} - {"text", "null"}
        if types <= set(syntax.NUMERIC):
            return "int" if types == {"int"} else "float"
        if types <= set(CLOCKS):
            return "timestamp" if "timestamp" in types else "date"
        if len(types) == 1:
            return types.pop()
        raise SqlRefused("wrong-kind", f"These results are of different types: {', '.join(sorted(types))}", at)

    def _as(self, item: Operand, to: str, at: int) -> RowFn:
        if to in CLOCKS:
            return self.arithmetic.clock(item, to, at).fn
        if isinstance(item, Fixed):
            return constant_fn(fitted(item, to, at), at)
        return self.arithmetic.number(item, at).fn if to in syntax.NUMERIC else item.fn

    def _case(self, node: syntax.Call) -> Operand:
        pairs_, otherwise = syntax.branches(node)
        branches = [(self.condition(when), self.operand(then)) for when, then in pairs_]
        last = Fixed(None, "null") if otherwise is None else self.operand(otherwise)
        items = [*(then for _, then in branches), last]
        to = self._common(items, node.at)
        if to == "null":
            return Fixed(None, "null")
        if to == "text":
            if any(isinstance(item, Cell) and isinstance(item.kind, Words) for item in items):
                return unsupported(
                    "CASE with free text as a result", node.at, "Give constants, or declare the column by a list."
                )
            return self._chosen(branches, last, node.at)
        pairs = tuple((when, self._as(item, to, node.at)) for when, item in branches)
        empty = isinstance(last, Fixed) and last.value is None
        found = rowfn.Case(pairs, None if empty else self._as(last, to, node.at))
        if to == "bool":
            return self.truth(Compare("==", found, Lit(1)), node.at)
        return cell(found, to, self.schema, node.at)

    def _chosen(self, branches: list[tuple[RowFn, Operand]], last: Operand | None, at: int) -> Cell:
        """A case whose results are constants or categories: one public label for each row.

        Labels that are numbers are of one type; they are told apart as values.
        """
        several = [item for _, item in branches] + ([] if last is None else [last])
        to = self._common(several, at)
        found: list[tuple[RowFn, object]] = []
        for when, item in (*branches, *(() if last is None else ((Lit(True), last),))):
            if isinstance(item, Fixed):
                value = None if item.value is None else fitted(item, to, at).value
                found.append((when, float(value) if isinstance(value, Fraction) else value))
                continue
            if not isinstance(item.kind, Code):
                unsupported("CASE with both constants and columns of this kind as results", at, ONE_KIND)
            found += [(when & (item.fn == label), label) for label in item.kind.labels if label is not None]
            found.append((when, None))
        if len(found) > MAX_BRANCHES:
            raise SqlRefused("too-large", f"A CASE gives at most {MAX_BRANCHES} categories", at)
        labels = sorted({cast("str", label) for _, label in found if label is not None})  # as keys are returned
        if not labels:
            return cell(constant_fn(Fixed(None, to), at), to, self.schema, at)
        place: dict[object, int | None] = {None: None} | {label: i for i, label in enumerate(labels)}
        places = [(when, place[label]) for when, label in found]
        otherwise = places.pop()[1] if isinstance(places[-1][0], Lit) else None
        return cell(Choice(tuple(places), tuple(labels), otherwise), to, self.schema, at)
