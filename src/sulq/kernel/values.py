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

from sulq.kernel import functions, polynomials
from sulq.kernel.facts import Refused
from sulq.kernel.numbers import EXACT, INTEGERS, TRUTH, Bound, Value, alike, as_double, double, hull, nothing, rounded
from sulq.kernel.polynomials import Polynomial
from sulq.kernel.tree import Node


class Atoms:
    """The atoms of one statement: for each the hull of the intervals it was met with, and whether it may be missing."""

    def __init__(self) -> None:
        self.intervals: dict[int, tuple[int, int]] = {}
        self.missing: dict[int, bool] = {}
        self._known: dict[tuple[object, ...], int] = {}

    def of(self, value: Value, key: tuple[object, ...] | None = None) -> Value:
        """The value as an atom of its own; None of it where it is not whole and bounded. Equal keys are one atom."""
        if (
            value.polynomial is not None
            or not (value.bounded and value.whole)
            or value.low is None
            or value.high is None
        ):
            return value
        number = len(self.intervals) if key is None else self._known.setdefault(key, len(self.intervals))
        low, high = math.ceil(value.low), math.floor(value.high)
        before = self.intervals.get(number, (low, high))
        self.intervals[number] = (min(before[0], low), max(before[1], high))
        self.missing[number] = self.missing.get(number, False) or value.null
        one: Polynomial = polynomials.constant(low) if low == high else {(number,): 1}
        return replace(value, polynomial=one, needs=frozenset({number} if value.null else ()))


class Expressions:
    """Reads the expressions of one SELECT over its source's columns, `names` saying how they may be called."""

    def __init__(self, columns: Mapping[str, Value], names: Mapping[tuple[str, ...], str], atoms: Atoms) -> None:
        self._columns = columns
        self._names = names
        self.atoms = atoms
        self._reader = _Reader(self, {})

    def value(self, node: Node) -> Value:
        """What an expression can be."""
        return self._reader.value(node)

    def column(self, node: Node) -> Value:
        """A column as it stands, the person's too."""
        return self._columns[self.origin(node)]

    def origin(self, node: Node) -> str:
        """Which of the source's columns is referred to."""
        node.only("class", "type", "column_names", "alias")
        found = self._names.get(tuple(node["column_names"]))
        if found is None:
            raise Refused(f"no one column {'.'.join(map(str, node['column_names']))}")
        return found

    def key(self, node: Node) -> tuple[object, ...]:
        """What tells equal expressions: their text, and which columns its names are here."""
        return node, frozenset((ref, self.column(ref)) for ref in node.refs())

    def truth(self, node: Node) -> None:
        """Check that an expression is a condition that cannot fail."""
        if self.value(node).type not in ("BOOLEAN", "NULL"):
            raise Refused("a condition that is no truth value")


class _Reader:
    """Reads expressions under one set of conditions; what was found of a node is remembered."""

    def __init__(self, select: Expressions, said: Mapping[Node, Value]) -> None:
        self.select, self.said = select, said
        self._known: dict[Node, Value] = {}

    def value(self, node: Node) -> Value:
        """What an expression can be; a column that names persons is no expression."""
        found = self._known.get(node)
        if found is None:
            read = _CLASSES.get(node.get("class"))
            if read is None:
                raise Refused(f"an expression of class {node.get('class')}")
            found = self.said[node] if node in self.said else read(self, node)
            if found.type == "OWNER":
                raise Refused("the person in an expression")
            found = self._known[node] = self.select.atoms.of(found, self.select.key(node))
        return found

    def values(self, nodes: tuple[Node, ...]) -> list[Value]:
        return [self.value(node) for node in nodes]

    def under(self, more: Mapping[Node, Value]) -> _Reader:
        """A reader that knows more of some columns."""
        return _Reader(self.select, {**self.said, **more}) if more else self


def _column(reader: _Reader, node: Node) -> Value:
    return reader.select.column(node)


def literal(node: Node) -> tuple[str, str]:
    """The kind and the text of a constant."""
    node.only("class", "type", "literal", "alias")
    found = node["literal"].only("kind", "text")
    return found["kind"], found.get("text") or ""


def _constant(_: _Reader, node: Node) -> Value:
    kind, text = literal(node)
    if kind == "NULL_LITERAL":
        return Value("NULL")
    if kind == "BOOLEAN":
        return Value("BOOLEAN", null=False)
    if kind == "STRING":
        return Value("VARCHAR", null=False)
    if kind == "INTEGER":
        return _integer(int(text))
    if kind == "NUMERIC" and "e" in text.lower():  # without an exponent it would be a decimal
        return double(Fraction(float(text)), Fraction(float(text)), null=False)
    raise Refused(f"a constant of kind {kind}")


def _integer(number: int) -> Value:
    for name, bits in INTEGERS.items():
        if -(2**bits) <= number < 2**bits:
            return Value(
                name,
                Fraction(number),
                Fraction(number),
                whole=True,
                null=False,
                polynomial=polynomials.constant(number),
            )
    raise Refused("an integer beyond 128 bits")


def _parameter(_: _Reader, node: Node) -> Value:
    node.only("class", "type", "identifier", "alias")
    return Value("VARCHAR", null=False)


def _cast(reader: _Reader, node: Node) -> Value:
    return cast(node, reader.value(node["child"]))


def cast(node: Node, item: Value) -> Value:
    """A value cast as a node says; refused where that may fail."""
    node.only("class", "type", "child", "type_expr", "try_cast", "alias")
    to = node["type_expr"].only("class", "type", "type_name", "qualified_name")["type_name"]
    if to == "VARCHAR" and item.type in ("VARCHAR", "NULL"):
        return replace(item, type="VARCHAR")
    if to not in (*INTEGERS, "DOUBLE") or to == "HUGEINT":
        raise Refused(f"a cast to {to}")
    if item.type == "NULL":
        return nothing(to)
    if to == "DOUBLE" and item.type != "BOOLEAN":
        return as_double(item)
    if item.type == "BOOLEAN":
        return Value(to, Fraction(0), Fraction(1), whole=True, null=item.null)
    return _to_integer(item, to, tried=bool(node.get("try_cast")))


def _to_integer(item: Value, to: str, *, tried: bool) -> Value:
    if not item.number:
        raise Refused(f"a cast from {item.type}")
    least, most = -(2 ** INTEGERS[to]), 2 ** INTEGERS[to] - 1
    fits = item.within(least, most)
    if fits and item.whole:
        return replace(item, type=to)
    if not fits and not tried:
        raise Refused(f"a cast to {to} that may fail")
    low = least if item.low is None else min(max(math.floor(item.low), least), most)
    high = most if item.high is None else max(min(math.ceil(item.high), most), least)
    return Value(to, Fraction(low), Fraction(high), whole=True, null=item.null or not fits)


def _comparison(reader: _Reader, node: Node) -> Value:
    node.only("class", "type", "left", "right", "alias")
    if node["type"] not in _COMPARED:
        raise Refused(f"a comparison {node['type']}")
    sides = reader.values((node["left"], node["right"]))
    alike(sides)
    return replace(TRUTH, null=any(side.null for side in sides))


def _between(reader: _Reader, node: Node) -> Value:
    node.only("class", "type", "input", "lower", "upper", "alias")
    if node["type"] != "COMPARE_BETWEEN":
        raise Refused(f"a comparison {node['type']}")
    sides = reader.values((node["input"], node["lower"], node["upper"]))
    alike(sides)
    return replace(TRUTH, null=any(side.null for side in sides))


def _conjunction(reader: _Reader, node: Node) -> Value:
    node.only("class", "type", "children", "alias")
    if node["type"] not in ("CONJUNCTION_AND", "CONJUNCTION_OR"):
        raise Refused(f"a condition {node['type']}")
    return _truths(reader, node)


def _truths(reader: _Reader, node: Node) -> Value:
    items = reader.values(node.many("children"))
    if any(item.type not in ("BOOLEAN", "NULL") for item in items):
        raise Refused("a condition that is no truth value")
    return replace(TRUTH, null=any(item.null for item in items))


def _operator(reader: _Reader, node: Node) -> Value:
    node.only("class", "type", "children", "alias")
    match node["type"]:
        case "OPERATOR_NOT":
            return _truths(reader, node)
        case "OPERATOR_IS_NULL" | "OPERATOR_IS_NOT_NULL":
            reader.values(node.many("children"))
            return replace(TRUTH, null=False)
        case "COMPARE_IN" | "COMPARE_NOT_IN":
            items = reader.values(node.many("children"))
            alike(items)
            return replace(TRUTH, null=any(item.null for item in items))
        case "OPERATOR_COALESCE":
            items = reader.values(node.many("children"))
            found = hull(items)
            return replace(found, null=all(item.null for item in items))
    raise Refused(f"an operator {node['type']}")


def _case(reader: _Reader, node: Node) -> Value:
    """The hull of the branches, each under what its conditions say; conditions are looked at in their order."""
    node.only("class", "type", "case_checks", "else_expr", "alias")
    found: list[Value] = []
    never: list[Value] = []
    rest: _Reader | None = reader
    for check in node.many("case_checks"):
        when, then = check.only("when_expr", "then_expr")["when_expr"], check["then_expr"]
        if (rest or reader).value(when).type not in ("BOOLEAN", "NULL"):
            raise Refused("a condition that is no truth value")
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
_OPPOSITE: Final = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "<>": "=", "=": "<>"}


def _said(reader: _Reader, node: Node, *, holds: bool) -> dict[Node, Value] | None:
    """What a condition that is true, or is not, says of columns; None where that cannot be.

    NaN is above every number, and what compares with NULL is not true.
    """
    kind = node.get("type")
    found: dict[Node, Value] = {}
    if kind == ("CONJUNCTION_AND" if holds else "CONJUNCTION_OR"):
        for child in node.many("children"):
            more = _said(reader.under(found), child, holds=holds)
            if more is None:
                return None
            found |= more
    elif kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
        (item,) = node.many("children")
        if _is_plain(item) and holds == (kind == "OPERATOR_IS_NOT_NULL"):
            found[item] = replace(reader.value(item), null=False)
    elif kind == "FUNCTION" and node.get("function_name") == "isfinite":
        (item,) = node.arguments()
        value = reader.value(item)
        if not holds and value.bounded and not value.null:
            return None
        if holds and _is_plain(item):
            found[item] = _finite(value)
    elif kind in _COMPARED:
        sign, left, right = _COMPARED[kind], node["left"], node["right"]
        for a, how, b in ((left, sign, right), (right, _TURNED[sign], left)):
            narrowed = _narrowed(reader.value(a), how, reader.value(b), holds=holds)
            if narrowed is None:
                return None
            found |= {a: narrowed} if _is_plain(a) else {}
    elif kind == "VALUE_CONSTANT" and literal(node) == ("BOOLEAN", "false" if holds else "true"):
        return None
    return found


def _is_plain(node: Node) -> bool:
    return node.get("class") in ("COLUMN_REF", "CONSTANT")


def _finite(value: Value) -> Value:
    largest = Fraction(1.7976931348623157e308)
    low = -largest if value.low is None else value.low
    high = largest if value.high is None else value.high
    return replace(value, low=low, high=high, nan=False, null=False)


def _narrowed(value: Value, sign: str, other: Value, *, holds: bool) -> Value | None:
    """A value of which a comparison with another is true, or is not; None where there is none."""
    mixed = (value.type == "DOUBLE") != (other.type == "DOUBLE")  # then DuckDB compares doubles
    rounds = mixed and not (value if other.type == "DOUBLE" else other).within(-EXACT, EXACT)
    if not (value.number and other.number) or other.nan or (other.null and not holds) or rounds:
        return replace(value, null=False) if holds else value
    if not holds:
        sign = _OPPOSITE[sign]
    low, high, nan = value.low, value.high, value.nan
    if sign in ("<", "<=", "="):
        high, nan = _lesser(high, _below(other.high, value) if sign == "<" else other.high), False
    if sign in (">", ">=", "="):
        low = _greater(low, _above(other.low, value) if sign == ">" else other.low)
    null = value.null and not holds
    if low is not None and high is not None and low > high:
        if not nan and not null:
            return None
        high = low  # nothing but NaN or NULL
    return replace(value, low=low, high=high, nan=nan, null=null)


def _below(end: Bound, value: Value) -> Bound:
    if end is None:
        return None
    if value.whole:
        return Fraction(math.ceil(end) - 1)
    return rounded(Fraction(math.nextafter(float(end), -math.inf))) if rounded(end) == end else end


def _above(end: Bound, value: Value) -> Bound:
    if end is None:
        return None
    if value.whole:
        return Fraction(math.floor(end) + 1)
    return rounded(Fraction(math.nextafter(float(end), math.inf))) if rounded(end) == end else end


def _lesser(a: Bound, b: Bound) -> Bound:
    return b if a is None else a if b is None else min(a, b)


def _greater(a: Bound, b: Bound) -> Bound:
    return b if a is None else a if b is None else max(a, b)


def _function(reader: _Reader, node: Node) -> Value:
    node.only("class", "type", "function_name", "arguments", "is_operator", "qualified_name", "alias")
    name = node["function_name"]
    work = functions.FUNCTIONS.get(name)
    if work is None or node["qualified_name"].only("path")["path"] != (name,):
        raise Refused(f"the function {name}")
    nodes = node.arguments()
    if name == "list_extract":
        return functions.list_extract(reader.values(_listed(nodes)), reader.value(nodes[1]))
    constants = tuple(
        None if item.refs() else literal(item)[1] if item.get("class") == "CONSTANT" else "" for item in nodes
    )
    return work(reader.values(nodes), constants)


def _listed(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The constants of a list that is read at a place."""
    listed = nodes[0].only("class", "type", "function_name", "arguments", "qualified_name")
    if len(nodes) != 2 or listed.get("function_name") != "list_value":
        raise Refused("a list that is not written out")
    items = listed.arguments()
    if not items or any(item.get("class") != "CONSTANT" for item in items):
        raise Refused("a list that is not of constants")
    return items


_CLASSES: Final[dict[str, Callable[[_Reader, Node], Value]]] = {
    "BETWEEN": _between, "CASE": _case, "CAST": _cast, "COLUMN_REF": _column, "COMPARISON": _comparison,
    "CONJUNCTION": _conjunction, "CONSTANT": _constant, "FUNCTION": _function, "OPERATOR": _operator,
    "PARAMETER": _parameter,
}  # fmt: skip
