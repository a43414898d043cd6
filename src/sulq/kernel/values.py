"""Expressions of a statement, one row at a time: which values each can have, and that none of them can fail.

A value is told by its type, an interval, whether it is whole, and whether it may be NULL or NaN. Arithmetic on whole
numbers is kept as a polynomial in atoms, with whole coefficients: cells of the row, or other parts of the text whose
inner structure is not followed. Every node class, function and type that is not named here is refused.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, NamedTuple

from sulq.kernel.facts import INTEGERS, require
from sulq.kernel.tree import SIGNS, Node

EXACT: Final = 2**53
LARGEST: Final = int(sys.float_info.max)
_NUMBERS: Final = {kind: (-(2**bits), 2**bits - 1) for kind, bits in INTEGERS.items()} | {"DOUBLE": (-EXACT, EXACT)}
"""Types of numbers, each wider than those before it, and between which two it holds all whole ones."""
INF: Final = math.inf
MAX_TERMS: Final = 64
MAX_ATOMS: Final = 12  # whose corners are looked at
Bound = Fraction | float  # exact, an integer often; a float only where it is infinite
Polynomial = Mapping[tuple[int, ...], int]  # by numbers of atoms, sorted, one for each power
Interval = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What an expression can be. `low`, `high`: infinite where no bound is known; then a double may be infinite.

    NaN is above every number, for DuckDB too: what is bounded from above is never NaN.
    `polynomial`: what it is wherever it is there, exactly; it is missing where one of `needs`, numbers of atoms, is.
    `text`: of a text that no row makes, what it is, or nothing where it is bound later.
    """

    type: str
    low: Bound = -INF
    high: Bound = INF
    whole: bool = False
    null: bool = True
    polynomial: Polynomial | None = None
    needs: frozenset[int] = frozenset()
    text: str | None = None

    @property
    def number(self) -> bool:
        """Whether it is an integer or a double."""
        return self.type in _NUMBERS

    @property
    def bounded(self) -> bool:
        """Whether it is a number, and finite wherever it is there."""
        return self.number and self.low > -INF and self.high < INF

    def within(self, least: int, most: int) -> bool:
        """Whether it lies between two numbers wherever it is there."""
        return self.bounded and self.low >= least and self.high <= most

    def fits(self, kind: str) -> bool:
        """Whether a type holds it exactly, if it is whole."""
        return self.within(*_NUMBERS[kind])


TRUTH: Final = Value("BOOLEAN")
TEXT: Final = Value("VARCHAR")


def integer(kind: str, low: Bound, high: Bound, *, null: bool = True) -> Value:
    """A whole number between two."""
    return Value(kind, low, high, whole=True, null=null)


def double(low: Bound = -INF, high: Bound = INF, *, whole: bool = False, null: bool = True) -> Value:
    """A double: rounding is monotone, so the rounded ends hold every rounded value."""
    low, high = rounded(low, -INF), rounded(high, INF)
    return Value("DOUBLE", low, high, whole or (low == high and low == math.floor(low)), null)


def rounded(end: Bound, beyond: float) -> Bound:
    """The nearest double, or what stands for one that may be infinite."""
    found = float(end) if -LARGEST <= end <= LARGEST else beyond
    return found if math.isinf(found) else int(found) if found.is_integer() else Fraction(found)


def as_double(value: Value) -> Value:
    """An integer or a double as a double."""
    require(value.number, f"a {value.type} used as a double")
    if value.type == "DOUBLE" or value.fits("DOUBLE"):
        return replace(value, type="DOUBLE")
    return double(value.low, value.high, whole=True, null=value.null)


def alike(*values: Value) -> str:
    """The type that DuckDB takes for several: it would cast others than numbers, and a cast may fail or merge."""
    types = {value.type for value in values} - {"NULL"}
    if types <= _NUMBERS.keys():
        return max(types, key=[*_NUMBERS].index, default="NULL")
    require(len(types) == 1 and "OWNER" not in types, f"{' and '.join(sorted(types))} are compared or put together")
    return types.pop()


def hull(*values: Value) -> Value:
    """One of several values."""
    kind = alike(*values)
    there = [as_double(value) if kind == "DOUBLE" else value for value in values if value.type != "NULL"]
    if not there:
        return Value("NULL")
    low, high = min(value.low for value in there), max(value.high for value in there)
    return Value(kind, low, high, all(value.whole for value in there), any(value.null for value in values))


def narrowed(value: Value, signs: str, other: Value, *, holds: bool) -> Value:
    """A value of which a comparison is true, or is not, as with NULL it never is; any where there is none."""
    compared = value.number and other.number and (holds or not other.null)
    if compared and (value.type == "DOUBLE") != (other.type == "DOUBLE"):  # DuckDB compares doubles
        compared = (value if other.type == "DOUBLE" else other).fits("DOUBLE")
    low, high, found = value.low, value.high, {sign for sign in "<=>" if (sign in signs) == holds}
    if compared and ">" not in found:
        most = other.high if "=" in found else _beside(other.high, -1, value)
        low, high = min(low, most), min(high, most)
    if compared and "<" not in found:
        least = other.low if "=" in found else _beside(other.low, 1, value)
        low, high = max(low, least), max(high, least)
    return replace(value, low=low, high=high, null=value.null and not holds)


def _beside(end: Bound, way: int, value: Value) -> Bound:
    """The next that a value can be below (-1) or above (1) a number."""
    if math.isinf(end):
        return end
    if value.whole:
        return math.ceil(end) - 1 if way < 0 else math.floor(end) + 1
    return rounded(math.nextafter(float(end), way * INF), way * INF) if float(end) == end else end


def add(left: Polynomial, right: Polynomial, times: int = 1) -> Polynomial:
    """Left + times * right."""
    found = dict(left)
    for monomial, factor in right.items():
        found[monomial] = found.get(monomial, 0) + times * factor
    return {monomial: factor for monomial, factor in found.items() if factor}


def multiply(left: Polynomial, right: Polynomial) -> Polynomial | None:
    """Their product; None where it has too many terms to be kept."""
    if len(left) * len(right) > MAX_TERMS:
        return None
    found: Polynomial = {}
    for (a, p), (b, q) in itertools.product(left.items(), right.items()):
        found = add(found, {tuple(sorted(a + b)): p * q})
    return found


def reach(polynomial: Polynomial, atoms: Mapping[int, Interval]) -> Interval:
    """The least and the greatest value, each atom within its own interval.

    Without powers they lie at corners; of one atom squared the extreme of the parabola is looked at too.
    """
    used = sorted({atom for monomial in polynomial for atom in monomial})
    require(len(used) <= MAX_ATOMS, "too many numbers together")
    places = [dict(zip(used, ends, strict=True)) for ends in itertools.product(*(atoms[atom] for atom in used))]
    if len(used) == 1 and max(map(len, polynomial)) == 2:  # atoms are whole: the best is beside the turn
        (atom,), (low, high) = used, atoms[used[0]]
        turn = -polynomial.get((atom,), 0) // (2 * polynomial[atom, atom])
        places += [{atom: place} for place in (turn, turn + 1) if low < place < high]
    else:
        require(all(len(set(term)) == len(term) for term in polynomial), "powers of several numbers together")
    found = [sum(by * math.prod(at[atom] for atom in term) for term, by in polynomial.items()) for at in places]
    return min(found), max(found)


# Functions of one row: what each gives for what it is given, where it cannot fail.


class Function(NamedTuple):
    """What a function takes, by the letters of types and by what it must be, and gives.

    It is NULL where any is that it is given, or where `null` says so.
    """

    takes: str
    gives: Value | Callable[..., Value]
    domain: Callable[..., bool] | None = None
    null: Callable[[Iterable[bool]], bool] = any

    def of(self, items: Sequence[Value]) -> Value:
        """What it gives for these."""
        taken = re.fullmatch(self.takes, "".join(_LETTERS.get(item.type, "?") for item in items))
        require(taken, f"a function of {', '.join(item.type for item in items)}")
        require(self.domain is None or self.domain(*items), "a function of what may lie outside its domain")
        found = self.gives if isinstance(self.gives, Value) else self.gives(*items)
        null = self.null([item.null for item in items])
        return found if found.null == null else replace(found, null=null)


def _arithmetic(
    work: Callable[[Any, Any], Bound], kept: Callable[[Polynomial, Polynomial], Polynomial | None] | None
) -> Callable[[Value, Value], Value]:
    """A function that is monotone in each of two numbers, so that its ends are at theirs; a quotient is not `kept`."""

    def gives(left: Value, right: Value) -> Value:
        if left.type == "DATE":  # days from one to the other
            return integer("BIGINT", -(2**32), 2**32)
        kind, ends, found = alike(left, right) if kept else "DOUBLE", [], None
        if kind == "DOUBLE":
            left, right = as_double(left), as_double(right)
        if left.bounded and right.bounded and (kept or not right.low <= 0 <= right.high):
            ends = [work(x, y) for x in (left.low, left.high) for y in (right.low, right.high)]
        # Infinite numbers may make NaN of each other.
        low, high, whole = min(ends, default=-INF), max(ends, default=INF), left.whole and right.whole
        value = double(low, high, whole=whole and bool(kept)) if kind == "DOUBLE" else integer(kind, low, high)
        fits = value.whole and value.fits(kind)
        require(fits or kind == "DOUBLE", f"arithmetic that may leave {kind}")
        if fits and kept and left.polynomial is not None and right.polynomial is not None:
            found = kept(left.polynomial, right.polynomial)
        return value if found is None else replace(value, polynomial=found, needs=left.needs | right.needs)

    return gives


def _divides(_: Value, by: Value) -> bool:
    """Whether it is a constant, not 0, and no negative integer, since of the least the quotient by -1 fails."""
    return by.bounded and by.low == by.high and not by.null and (by.low > 0 or (by.low < 0 and by.type == "DOUBLE"))


def _modulo(left: Value, right: Value) -> Value:
    by = abs(Fraction(right.low))
    high = by if left.bounded else INF  # NaN of what is infinite
    return Value(alike(left, right), 0 if left.low >= 0 else -by, high, left.whole and by.denominator == 1)


def _rounded(down: Callable[[Any], int], up: Callable[[Any], int]) -> Callable[[Value], Value]:
    """A function between two roundings to whole numbers."""
    return lambda x: double(down(x.low) if x.low > -INF else -INF, up(x.high) if x.high < INF else INF, whole=True)


CALENDAR: Final = 2**62  # microseconds from 1970 on either side, well within DuckDB's timestamps
_MILLENNIUM: Final = 1001 * 366 * 86_400_000_000  # microseconds: no period is longer
# How far after its moment a period begins, before Christ
PERIODS: Final = dict.fromkeys(("day", "hour", "minute", "month", "quarter", "second", "week", "year"), 0) | (
    dict.fromkeys(("century", "decade", "millennium"), _MILLENNIUM)
)
PARTS: Final = {  # of date_part, within the calendar; an integer, but a double where DuckDB knows that there is no date
    "century": (-3000, 3000), "day": (1, 31), "decade": (-30_000, 30_000), "dow": (0, 6), "doy": (1, 366),
    "hour": (0, 23), "isodow": (1, 7), "isoyear": (-300_000, 300_000), "microseconds": (0, 60_999_999),
    "minute": (0, 59), "month": (1, 12), "quarter": (1, 4), "second": (0, 60), "week": (1, 53),
    "year": (-300_000, 300_000),
}  # fmt: skip
_LENGTH: Final = integer("BIGINT", 0, 2**32)  # of a text
_READABLE: Final = {"DATE": ("0001-01-01", "1970-01-01", "9999-12-31"), "DOUBLE": ("inf",)}  # texts that are such
_DOUBLE: Final = double()  # no interval is kept where the last digits are the machine's
_LETTERS: Final = dict.fromkeys(INTEGERS, "i") | {
    "BOOLEAN": "b", "DATE": "D", "DOUBLE": "d", "NULL": "n", "TIMESTAMP": "m", "VARCHAR": "t",
}  # fmt: skip
FUNCTIONS: Final[dict[str, Function]] = {
    "+": Function("[id]{2}", _arithmetic(operator.add, add)), "/": Function("[id]{2}", _arithmetic(Fraction, None)),
    "-": Function("[id]{2}|D{2}", _arithmetic(operator.sub, lambda left, right: add(left, right, -1))),
    "*": Function("[id]{2}", _arithmetic(operator.mul, multiply)), "%": Function("[id]{2}", _modulo, _divides),
    "//": Function("ii", lambda x, y: integer(alike(x, y), x.low // y.low, int(Fraction(x.high, y.low))), _divides),
    "abs": Function("d", lambda x: Value("DOUBLE", max(0, x.low, -x.high), max(-x.low, x.high), x.whole)),
    "ceil": Function("d", _rounded(math.ceil, math.ceil)), "floor": Function("d", _rounded(math.floor, math.floor)),
    **dict.fromkeys(("round", "trunc"), Function("d", _rounded(math.floor, math.ceil))), "pow": Function("dd", _DOUBLE),
    "sqrt": Function("d", _DOUBLE, lambda x: x.low >= 0), "ln": Function("d", _DOUBLE, lambda x: x.low > 0),
    **dict.fromkeys(("least", "greatest"), Function("n*[id][idn]*", hull, null=all)), "isfinite": Function("d", TRUTH),
    **dict.fromkeys(("lower", "upper"), Function("t", TEXT)), "translate": Function("ttt", TEXT),
    **dict.fromkeys(("trim", "ltrim", "rtrim", "||"), Function("tt", TEXT)), "instr": Function("tt", _LENGTH),
    **dict.fromkeys(("length", "strlen"), Function("t", _LENGTH)), "sign": Function("d", integer("TINYINT", -1, 1)),
    **dict.fromkeys(("starts_with", "suffix", "contains", "~~"), Function("tt", TRUTH)), "exp": Function("d", _DOUBLE),
    "regexp_matches": Function("ttt", TRUTH, lambda _, by, options: by.text is not None and options.text == "s"),
    "substr": Function("tii?", TEXT, lambda _, *places: all(place.within(1 - 2**31, 2**31 - 1) for place in places)),
    "epoch_us": Function("m", lambda x: integer("BIGINT", x.low, x.high)),
    "make_timestamp": Function(
        "i", lambda x: Value("TIMESTAMP", x.low, x.high), lambda x: x.within(-CALENDAR, CALENDAR)),
    "date_part": Function(
        "tm", lambda part, _: Value("PART", *PARTS[part.text], whole=True), lambda part, _: part.text in PARTS),
    "date_trunc": Function(
        "tm", lambda by, x: Value("TIMESTAMP", x.low - _MILLENNIUM, x.high + PERIODS[by.text]),
        lambda by, _: by.text in PERIODS),
}  # fmt: skip
"""Every function that may stand in a statement over rows."""
OPERATORS: Final[dict[str, Function]] = {
    **dict.fromkeys(("OPERATOR_NOT", "CONJUNCTION_AND", "CONJUNCTION_OR"), Function("[bn]+", TRUTH)),
    **dict.fromkeys(("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"), Function(".", TRUTH, null=lambda _: False)),
    **dict.fromkeys((*SIGNS, "COMPARE_IN"), Function("[idn]{2,}|[bn]{2,}|D{2}|[mn]{2,}|[tn]{2,}", TRUTH)),
    "OPERATOR_COALESCE": Function(".+", hull, null=all),
}  # fmt: skip


# Expressions


class Atoms:
    """The atoms of one statement, each with the hull of the intervals it was met with."""

    def __init__(self) -> None:
        self.intervals: dict[int, Interval] = {}
        self._known: dict[tuple[object, ...], int] = {}

    def of(self, value: Value, key: tuple[object, ...] | None = None) -> Value:
        """The value as an atom of its own; None of it where it is not whole and bounded. Equal keys are one atom."""
        if value.polynomial is not None or not (value.bounded and value.whole):
            return value
        number = len(self.intervals) if key is None else self._known.setdefault(key, len(self.intervals))
        low, high = math.ceil(value.low), math.floor(value.high)
        before = self.intervals.get(number, (low, high))
        self.intervals[number] = (min(before[0], low), max(before[1], high))
        one: Polynomial = add({}, {(): low} if low == high else {(number,): 1})
        return replace(value, polynomial=one, needs=frozenset({number} if value.null else ()))


class Expressions:
    """Reads the expressions of one SELECT over its source's columns; what was found of a node is remembered.

    `columns`: by all that each may be called, its own name and what it can be. `said`: what conditions say of columns.
    """

    def __init__(
        self, columns: Mapping[tuple[str, ...], tuple[str, Value]], atoms: Atoms, said: Mapping[Node, Value]
    ) -> None:
        self._columns, self._atoms, self._said = columns, atoms, said
        self._known: dict[Node, Value] = {}

    def under(self, more: Mapping[Node, Value]) -> Expressions:
        """A reader that knows more of some columns."""
        return Expressions(self._columns, self._atoms, {**self._said, **more}) if more else self

    def column(self, node: Node) -> tuple[str, Value]:
        """Which of the source's columns is referred to, and what it can be; the person's too."""
        require(node["column_names"] in self._columns, f"no one column {node['column_names']}")
        return self._columns[node["column_names"]]

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

    def condition(self, node: Node) -> None:
        """Refuse what is no truth value."""
        require(self.value(node).type in ("BOOLEAN", "NULL"), "a condition that is no truth value")


def _constant(_: Expressions, node: Node) -> Value:
    kind, text = node["literal"]["kind"], node["literal"].get("text") or ""
    if kind == "INTEGER":
        for name in INTEGERS:
            if (found := integer(name, int(text), int(text), null=False)).fits(name):
                return found
    if kind == "NUMERIC" and "e" in text.lower():  # without an exponent it would be a decimal
        return double(Fraction(float(text)), Fraction(float(text)), null=False)
    others = {"NULL_LITERAL": Value("NULL"), "BOOLEAN": replace(TRUTH, null=False)}
    others["STRING"] = replace(TEXT, null=False, text=text)
    require(kind in others, f"a constant of kind {kind}")
    return others[kind]


def _cast(reader: Expressions, node: Node) -> Value:
    """A value cast to another type; refused where that may fail."""
    item, to = reader.value(node["child"]), node["type_expr"]["type_name"]
    if to == "VARCHAR" and item.type in ("VARCHAR", "NULL"):
        return replace(item, type="VARCHAR")
    read = node["child"].get("class") == "CONSTANT" and item.text in _READABLE.get(to, ())
    if read or (item.type, to) == ("FLOAT", "DOUBLE"):  # of any value
        return Value(to, null=item.null)
    require(to in _NUMBERS, f"a cast to {to}")
    if item.type == "VARCHAR" and to in INTEGERS and node.get("try_cast"):
        return integer(to, *_NUMBERS[to])
    if item.type == "PART" and to == "DOUBLE":
        return double(item.low, item.high, whole=True, null=item.null)
    if item.type in ("BOOLEAN", "NULL"):
        return integer(to, 0, 1 if item.type == "BOOLEAN" else 0, null=item.null)
    if to == "DOUBLE":
        return as_double(item)
    require(item.fits(to) and item.whole, f"a cast from {item.type} to {to} that may fail")
    return replace(item, type=to)


def _case(reader: Expressions, node: Node) -> Value:
    """The hull of the branches, each under what its conditions say; conditions are looked at in their order."""
    found, rest = [], reader
    for check in node.many("case_checks"):
        rest.condition(check["when_expr"])
        found.append(rest.under(_said(rest, check["when_expr"], holds=True)).value(check["then_expr"]))
        rest = rest.under(_said(rest, check["when_expr"], holds=False))
    return hull(*found, Value("NULL") if node.get("else_expr") is None else rest.value(node["else_expr"]))


def _said(reader: Expressions, node: Node, *, holds: bool) -> dict[Node, Value]:
    """What a condition that is true, or is not, says of columns and constants; what is computed twice may differ."""
    kind = node.get("type")
    found: dict[Node, Value] = {}
    if kind == ("CONJUNCTION_AND" if holds else "CONJUNCTION_OR"):
        for child in node.many("children"):
            found |= _said(reader.under(found), child, holds=holds)
    elif kind == ("OPERATOR_IS_NOT_NULL" if holds else "OPERATOR_IS_NULL"):
        (item,) = node.many("children")
        found[item] = replace(reader.value(item), null=False)
    elif kind == "FUNCTION" and node["function_name"] == "isfinite" and holds:
        _, (item,) = node.call()
        value = reader.value(item)
        found[item] = replace(value, low=max(value.low, -LARGEST), high=min(value.high, LARGEST), null=False)
    elif kind in SIGNS:
        item, other = node["left"], node["right"]
        found[item] = narrowed(reader.value(item), SIGNS[kind], reader.value(other), holds=holds)
    return {item: value for item, value in found.items() if item.get("class") in ("COLUMN_REF", "CONSTANT")}


def _applied(reader: Expressions, node: Node) -> Value:
    """What a function or an operator gives."""
    if node["class"] == "FUNCTION":
        rules, (name, nodes) = FUNCTIONS, node.call()
        if name in ("list_extract", "list_position"):
            return _listed(reader, name, *nodes)
    else:
        rules, name, nodes = OPERATORS, node["type"], node.many("children") or (node["left"], node["right"])
    require(name in rules, f"the function or operator {name}")
    return rules[name].of([reader.value(item) for item in nodes])


def _listed(reader: Expressions, name: str, listed: Node, of: Node) -> Value:
    """One of a list of constants, or the place of a text in one; NULL beyond its ends, and where it is not there."""
    made, items = listed.call()
    require(made == "list_value" and {item.get("class") for item in items} <= {"CONSTANT"}, "no list of constants")
    found, kind = hull(*map(reader.value, items)), reader.value(of).type
    if name == "list_position":
        require(found.type == kind == "VARCHAR", "a list in which other than a text is looked for")
        return integer("INTEGER", 1, len(items))
    require(kind in INTEGERS, "a list read at what is no integer")
    return replace(found, null=True)


_CLASSES: Final[dict[str, Callable[[Expressions, Node], Value]]] = {
    **dict.fromkeys(("COMPARISON", "CONJUNCTION", "FUNCTION", "OPERATOR"), _applied), "CASE": _case, "CAST": _cast,
    "COLUMN_REF": lambda reader, node: reader.column(node)[1], "CONSTANT": _constant,
    "PARAMETER": lambda *_: replace(TEXT, null=False, text=""),
}  # fmt: skip
