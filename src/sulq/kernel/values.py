"""Expressions of a statement, one row at a time: which values each can have, and that none of them can fail.

A value is told by its type, an interval, whether it is whole, and whether it may be NULL or NaN. Arithmetic on whole
numbers is kept as a polynomial in atoms: cells, or parts of the text whose inner structure is not followed. Every node
class, function and type that is not named here is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sulq.kernel.facts import Refused
from sulq.kernel.functions import FUNCTIONS
from sulq.kernel.numbers import INTEGERS, TEXT, TRUTH, Value, alike, as_double, double, hull, integer, narrowed
from sulq.kernel.polynomials import Polynomial, constant
from sulq.kernel.tree import Node


class Atoms:
    """The atoms of one statement: for each the hull of the intervals it was met with, and whether it may be missing."""

    def __init__(self) -> None:
        self.intervals: dict[int, tuple[int, int]] = {}
        self.missing: dict[int, bool] = {}
        self._known: dict[tuple[object, ...], int] = {}

    def of(self, value: Value, key: tuple[object, ...] | None = None) -> Value:
        """The value as an atom of its own; None of it where it is not whole and bounded. Equal keys are one atom."""
        if value.polynomial is not None or not (value.bounded and value.whole):
            return value
        number = len(self.intervals) if key is None else self._known.setdefault(key, len(self.intervals))
        low, high = math.ceil(value.low), math.floor(value.high)
        before = self.intervals.get(number, (low, high))
        self.intervals[number] = (min(before[0], low), max(before[1], high))
        self.missing[number] = self.missing.get(number, False) or value.null
        one: Polynomial = constant(low) if low == high else {(number,): 1}
        return replace(value, polynomial=one, needs=frozenset({number} if value.null else ()))


class Expressions:
    """Reads the expressions of one SELECT over its source's columns, `names` saying how they may be called.

    `said`: what conditions say of columns, wherever this one reads. What was found of a node is remembered.
    """

    def __init__(
        self,
        columns: Mapping[str, Value],
        names: Mapping[tuple[str, ...], str],
        atoms: Atoms,
        said: Mapping[Node, Value] | None = None,
    ) -> None:
        self._columns, self._names, self.atoms, self._said = columns, names, atoms, said or {}
        self._known: dict[Node, Value] = {}

    def under(self, more: Mapping[Node, Value]) -> Expressions:
        """A reader that knows more of some columns."""
        return Expressions(self._columns, self._names, self.atoms, {**self._said, **more}) if more else self

    def origin(self, node: Node) -> str:
        """Which of the source's columns is referred to."""
        node.only("class", "type", "column_names", "alias")
        found = self._names.get(node["column_names"])
        if found is None:
            raise Refused(f"no one column {'.'.join(map(str, node['column_names']))}")
        return found

    def column(self, node: Node) -> Value:
        """A column as it stands, the person's too."""
        return self._columns[self.origin(node)]

    def value(self, node: Node) -> Value:
        """What an expression can be; a column that names persons is no expression."""
        found = self._known.get(node)
        if found is None:
            read = _CLASSES.get(node.get("class"))
            if read is None:
                raise Refused(f"an expression of class {node.get('class')}")
            found = self._said.get(node) or read(self, node)
            if found.type == "OWNER":
                raise Refused("the person in an expression")
            if found.polynomial is None and found.whole:  # equal texts of the same columns are one atom
                found = self.atoms.of(found, (node, frozenset((ref, self.column(ref)) for ref in node.refs)))
            self._known[node] = found
        return found

    def values(self, nodes: tuple[Node, ...]) -> list[Value]:
        """What several can be."""
        return [self.value(node) for node in nodes]

    def truths(self, *nodes: Node) -> Value:
        """What conditions together can be, none of which can fail."""
        items = self.values(nodes)
        if any(item.type not in ("BOOLEAN", "NULL") for item in items):
            raise Refused("a condition that is no truth value")
        return replace(TRUTH, null=any(item.null for item in items))


def _constant(_: Expressions, node: Node) -> Value:
    kind, text = literal(node)
    if kind == "NULL_LITERAL":
        return Value("NULL")
    if kind in ("BOOLEAN", "STRING"):
        return replace(TRUTH if kind == "BOOLEAN" else TEXT, null=False)
    if kind == "INTEGER":
        number = int(text)
        for name, bits in INTEGERS.items():
            if -(2**bits) <= number < 2**bits:
                return integer(name, number, number, null=False)
    if kind == "NUMERIC" and "e" in text.lower():  # without an exponent it would be a decimal
        return double(Fraction(float(text)), Fraction(float(text)), null=False)
    raise Refused(f"a constant of kind {kind}")


def literal(node: Node) -> tuple[str, str]:
    """The kind and the text of a constant."""
    node.only("class", "type", "literal", "alias")
    found = node["literal"].only("kind", "text")
    return found["kind"], found.get("text") or ""


def _parameter(_: Expressions, node: Node) -> Value:
    node.only("class", "type", "identifier", "alias")
    return replace(TEXT, null=False)


def _cast(reader: Expressions, node: Node) -> Value:
    return cast(node, reader.value(node["child"]))


def cast(node: Node, item: Value) -> Value:
    """A value cast as a node says; refused where that may fail."""
    node.only("class", "type", "child", "type_expr", "try_cast", "alias")
    to = node["type_expr"].only("class", "type", "type_name", "qualified_name")["type_name"]
    if to == "VARCHAR" and item.type in ("VARCHAR", "NULL"):
        return replace(item, type="VARCHAR")
    if to not in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE"):
        raise Refused(f"a cast to {to}")
    if item.type in ("BOOLEAN", "NULL"):
        return integer(to, 0, 1 if item.type == "BOOLEAN" else 0, null=item.null)
    if to == "DOUBLE":
        return as_double(item)
    if item.fits(to) and item.whole:
        return replace(item, type=to)
    if not item.number or not (item.fits(to) or node.get("try_cast")):
        raise Refused(f"a cast from {item.type} to {to} that may fail")
    least, most = -(2 ** INTEGERS[to]), 2 ** INTEGERS[to] - 1
    low, high = math.floor(min(max(item.low, least), most)), math.ceil(max(min(item.high, most), least))
    return integer(to, low, high, null=item.null or not item.fits(to))


def _comparison(reader: Expressions, node: Node) -> Value:
    node.only("class", "type", "left", "right", "alias")
    if node["type"] not in _COMPARED:
        raise Refused(f"a comparison {node['type']}")
    return _compared(reader.values((node["left"], node["right"])))


def _compared(items: list[Value]) -> Value:
    alike(items)
    return replace(TRUTH, null=any(item.null for item in items))


def _operator(reader: Expressions, node: Node) -> Value:
    children = node.only("class", "type", "children", "alias").many("children")
    match node["type"]:
        case "OPERATOR_NOT" | "CONJUNCTION_AND" | "CONJUNCTION_OR":
            return reader.truths(*children)
        case "OPERATOR_IS_NULL" | "OPERATOR_IS_NOT_NULL":
            reader.values(children)
            return replace(TRUTH, null=False)
        case "COMPARE_IN":
            return _compared(reader.values(children))
        case "OPERATOR_COALESCE":
            items = reader.values(children)
            return replace(hull(items), null=all(item.null for item in items))
    raise Refused(f"an operator {node['type']}")


def _case(reader: Expressions, node: Node) -> Value:
    """The hull of the branches, each under what its conditions say; conditions are looked at in their order."""
    node.only("class", "type", "case_checks", "else_expr", "alias")
    found: list[Value] = []
    never: list[Value] = []
    rest: Expressions | None = reader
    for check in node.many("case_checks"):
        when, then = check.only("when_expr", "then_expr")["when_expr"], check["then_expr"]
        (rest or reader).truths(when)
        said = None if rest is None else _said(rest, when, holds=True)
        if rest is None or said is None:
            never.append((rest or reader).value(then))
        else:
            found.append(rest.under(said).value(then))
        left = None if rest is None else _said(rest, when, holds=False)
        rest = None if rest is None or left is None else rest.under(left)
    last = node.get("else_expr")
    (never if rest is None else found).append(Value("NULL") if last is None else (rest or reader).value(last))
    return hull(found, never)


_COMPARED: Final = {
    "COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "<>", "COMPARE_LESSTHAN": "<", "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=", "COMPARE_GREATERTHANOREQUALTO": ">=",
}  # fmt: skip
_TURNED: Final = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _said(reader: Expressions, node: Node, *, holds: bool) -> dict[Node, Value] | None:
    """What a condition that is true, or is not, says of columns and constants; None where that cannot be.

    NaN is above every number, and what compares with NULL is not true.
    """
    kind = node.get("type")
    found: dict[Node, Value | None] = {}
    together: dict[Node, Value] = {}
    if kind == ("CONJUNCTION_AND" if holds else "CONJUNCTION_OR"):
        for child in node.many("children"):
            more = _said(reader.under(together), child, holds=holds)
            if more is None:
                return None
            together |= more
        return together
    if kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
        (item,) = node.many("children")
        if holds == (kind == "OPERATOR_IS_NOT_NULL"):
            found[item] = replace(reader.value(item), null=False)
    elif kind == "FUNCTION" and node.get("function_name") == "isfinite":
        (item,) = node.arguments()
        value = reader.value(item)
        if holds:
            largest = Fraction(1.7976931348623157e308)
            low, high = max(value.low, -largest), min(value.high, largest)
            found[item] = replace(value, low=low, high=high, nan=False, null=False)
        elif value.bounded and not value.null:
            return None
    elif kind in _COMPARED:
        sign, left, right = _COMPARED[kind], node["left"], node["right"]
        for a, how, b in ((left, sign, right), (right, _TURNED[sign], left)):
            found[a] = narrowed(reader.value(a), how, reader.value(b), holds=holds)
    elif kind == "VALUE_CONSTANT" and literal(node) == ("BOOLEAN", "false" if holds else "true"):
        return None
    if None in found.values():
        return None
    plain = ("COLUMN_REF", "CONSTANT")  # what is computed twice is not known to be the same
    return {item: value for item, value in found.items() if value is not None and item.get("class") in plain}


def _function(reader: Expressions, node: Node) -> Value:
    node.only("class", "type", "function_name", "arguments", "is_operator", "qualified_name", "alias")
    name, nodes = node["function_name"], node.arguments()
    if node["qualified_name"].only("path")["path"] != (name,):
        raise Refused("a function of a schema")
    if name == "list_extract":
        return _listed(reader, *nodes)
    if name not in FUNCTIONS:
        raise Refused(f"the function {name}")
    constants = [None if item.refs else literal(item)[1] if item.get("class") == "CONSTANT" else "" for item in nodes]
    return FUNCTIONS[name](reader.values(nodes), constants)


def _listed(reader: Expressions, listed: Node, place: Node) -> Value:
    """One of a list of constants, NULL beyond its ends."""
    items = listed.only("class", "type", "function_name", "arguments", "qualified_name").arguments()
    if listed["function_name"] != "list_value" or any(item.get("class") != "CONSTANT" for item in items):
        raise Refused("a list that is not of constants")
    if reader.value(place).type not in INTEGERS:
        raise Refused("a list read at what is no integer")
    return replace(hull(reader.values(items)), null=True)


_CLASSES: Final[dict[str, Callable[[Expressions, Node], Value]]] = {
    "CASE": _case, "CAST": _cast, "COLUMN_REF": Expressions.column, "COMPARISON": _comparison,
    "CONJUNCTION": _operator, "CONSTANT": _constant, "FUNCTION": _function, "OPERATOR": _operator,
    "PARAMETER": _parameter,
}  # fmt: skip
