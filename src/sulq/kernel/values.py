"""Expressions of a statement, one row at a time: which values each can have, and that none of them can fail.

A value is told by its type, an interval, whether it is whole, and whether it may be NULL or NaN. Every node class,
function and type that is not named here is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sulq.kernel.facts import Refused, require
from sulq.kernel.numbers import (
    FUNCTIONS,
    INTEGERS,
    OPERATORS,
    SIGNS,
    TEXT,
    TRUTH,
    Value,
    as_double,
    constant,
    double,
    hull,
    integer,
    narrowed,
)
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


Columns = Mapping[
    tuple[str, ...], tuple[str, Value]
]  # how each column of a source may be called: which it is, and what


class Expressions:
    """Reads the expressions of one SELECT over its source's columns; what was found of a node is remembered.

    `said`: what conditions say of columns, wherever this one reads.
    """

    def __init__(self, columns: Columns, atoms: Atoms, said: Mapping[Node, Value] | None = None) -> None:
        self._columns, self._atoms, self._said = columns, atoms, said or {}
        self._known: dict[Node, Value] = {}

    def under(self, more: Mapping[Node, Value]) -> Expressions:
        """A reader that knows more of some columns."""
        return Expressions(self._columns, self._atoms, {**self._said, **more}) if more else self

    def column(self, node: Node) -> tuple[str, Value]:
        """Which of the source's columns is referred to, and what it can be; the person's too."""
        path = node["column_names"]
        require(path in self._columns, f"no one column {'.'.join(map(str, path))}")
        return self._columns[path]

    def value(self, node: Node) -> Value:
        """What an expression can be; a column that names persons is no expression."""
        found = self._known.get(node)
        if found is None:
            require(node.get("class") in _CLASSES, f"an expression of class {node.get('class')}")
            found = self._said.get(node) or _CLASSES[node["class"]](self, node)
            require(found.type != "OWNER", "the person in an expression")
            if found.polynomial is None and found.whole:  # equal texts of the same columns are one atom
                found = self._atoms.of(found, (node, frozenset((ref, self.column(ref)[1]) for ref in node.refs)))
            self._known[node] = found
        return found

    def values(self, nodes: Iterable[Node]) -> list[Value]:
        """What several can be."""
        return [self.value(node) for node in nodes]

    def condition(self, node: Node) -> None:
        """Refuse what is no truth value."""
        require(self.value(node).type in ("BOOLEAN", "NULL"), "a condition that is no truth value")


def _column(reader: Expressions, node: Node) -> Value:
    return reader.column(node)[1]


def _constant(_: Expressions, node: Node) -> Value:
    kind, text = node["literal"]["kind"], node["literal"].get("text") or ""
    if kind == "NULL_LITERAL":
        return Value("NULL")
    if kind == "BOOLEAN":
        return replace(TRUTH, null=False)
    if kind == "STRING":
        return replace(TEXT, null=False, text=text)
    if kind == "INTEGER":
        for name, bits in INTEGERS.items():
            if -(2**bits) <= int(text) < 2**bits:
                return integer(name, int(text), int(text), null=False)
    if kind == "NUMERIC" and "e" in text.lower():  # without an exponent it would be a decimal
        return double(Fraction(float(text)), Fraction(float(text)), null=False)
    raise Refused(f"a constant of kind {kind}")


def _parameter(_: Expressions, __: Node) -> Value:
    return replace(TEXT, null=False, text="")


def _cast(reader: Expressions, node: Node) -> Value:
    """A value cast to another type; refused where that may fail."""
    item, to = reader.value(node["child"]), node["type_expr"]["type_name"]
    if to == "VARCHAR" and item.type in ("VARCHAR", "NULL"):
        return replace(item, type="VARCHAR")
    require(to in INTEGERS or to == "DOUBLE", f"a cast to {to}")
    if item.type in ("BOOLEAN", "NULL"):
        return integer(to, 0, 1 if item.type == "BOOLEAN" else 0, null=item.null)
    if to == "DOUBLE":
        return as_double(item)
    if item.fits(to) and item.whole:
        return replace(item, type=to)
    total = item.number and (item.fits(to) or node.get("try_cast"))
    require(total, f"a cast from {item.type} to {to} that may fail")
    least, most = -(2 ** INTEGERS[to]), 2 ** INTEGERS[to] - 1
    low, high = math.floor(min(max(item.low, least), most)), math.ceil(max(min(item.high, most), least))
    return integer(to, low, high, null=item.null or not item.fits(to))


def _case(reader: Expressions, node: Node) -> Value:
    """The hull of the branches, each under what its conditions say; conditions are looked at in their order."""
    found, rest = [], reader
    for check in node.many("case_checks"):
        rest.condition(check["when_expr"])
        found.append(rest.under(_said(rest, check["when_expr"], holds=True)).value(check["then_expr"]))
        rest = rest.under(_said(rest, check["when_expr"], holds=False))
    last = node.get("else_expr")
    return hull(*found, Value("NULL") if last is None else rest.value(last))


def _said(reader: Expressions, node: Node, *, holds: bool) -> dict[Node, Value]:
    """What a condition that is true, or is not, says of columns; what is computed twice is not known to be the same."""
    kind = node.get("type")
    found: dict[Node, Value] = {}
    if kind == ("CONJUNCTION_AND" if holds else "CONJUNCTION_OR"):
        for child in node.many("children"):
            found |= _said(reader.under(found), child, holds=holds)
    elif kind == ("OPERATOR_IS_NOT_NULL" if holds else "OPERATOR_IS_NULL"):
        (item,) = node.many("children")
        found[item] = replace(reader.value(item), null=False)
    elif kind == "FUNCTION" and node["function_name"] == "isfinite" and holds:
        (item,) = node.arguments()
        below = narrowed(reader.value(item), "<=", _LARGEST, holds=True)
        found[item] = narrowed(below, ">=", replace(_LARGEST, low=-_LARGEST.low), holds=True)
    elif kind in SIGNS:
        sign, left, right = SIGNS[kind], node["left"], node["right"]
        for a, how, b in ((left, sign, right), (right, _TURNED[sign], left)):
            found[a] = narrowed(reader.value(a), how, reader.value(b), holds=holds)
    return {item: value for item, value in found.items() if item.get("class") == "COLUMN_REF"}


_TURNED: Final = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_LARGEST: Final = double(Fraction(1.7976931348623157e308), Fraction(1.7976931348623157e308), null=False)


def _function(reader: Expressions, node: Node) -> Value:
    name, nodes = called(node), node.arguments()
    require(not node.get("distinct"), "a function of different values")
    if name == "list_extract":
        return _listed(reader, *nodes)
    require(name in FUNCTIONS, f"the function {name}")
    return FUNCTIONS[name].of(reader.values(nodes))


def called(node: Node) -> str:
    """The name of a function, which is none of a schema."""
    name: str = node["function_name"]
    require(node["qualified_name"]["path"] == (name,), "a function of a schema")
    return name


def _listed(reader: Expressions, listed: Node, place: Node) -> Value:
    """One of a list of constants, NULL beyond its ends."""
    items = listed.arguments()
    constants = called(listed) == "list_value" and all(item.get("class") == "CONSTANT" for item in items)
    require(constants, "a list that is not of constants")
    require(reader.value(place).type in INTEGERS, "a list read at what is no integer")
    return replace(hull(*reader.values(items)), null=True)


def _operator(reader: Expressions, node: Node) -> Value:
    require(node["type"] in OPERATORS, f"an operator {node['type']}")
    return OPERATORS[node["type"]].of(reader.values(node.many("children") or (node["left"], node["right"])))


_CLASSES: Final[dict[str, Callable[[Expressions, Node], Value]]] = {
    "CASE": _case, "CAST": _cast, "COLUMN_REF": _column, "COMPARISON": _operator,
    "CONJUNCTION": _operator, "CONSTANT": _constant, "FUNCTION": _function, "OPERATOR": _operator,
    "PARAMETER": _parameter,
}  # fmt: skip
