"""What a number, text, truth value or moment of one row can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from sulq.kernel.facts import Refused
from sulq.kernel.polynomials import Polynomial

INTEGERS: Final = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63, "HUGEINT": 127}  # bits beside the sign
NUMBERS: Final = (*INTEGERS, "DOUBLE")
EXACT: Final = 2**53
INF: Final = math.inf
Bound = Fraction | float  # exact, an integer often; a float only where it is infinite


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What an expression can be. `low`, `high`: infinite where no bound is known; then a double may be infinite.

    `polynomial`: what it is wherever it is there, exactly; it is missing where one of `needs`, numbers of atoms, is.
    """

    type: str
    low: Bound = -INF
    high: Bound = INF
    whole: bool = False
    nan: bool = False
    null: bool = True
    polynomial: Polynomial | None = None
    needs: frozenset[int] = frozenset()

    @property
    def number(self) -> bool:
        """Whether it is an integer or a double."""
        return self.type in NUMBERS

    @property
    def bounded(self) -> bool:
        """Whether it is a number, and finite wherever it is there."""
        return self.number and not self.nan and self.low > -INF and self.high < INF

    def within(self, least: int, most: int) -> bool:
        """Whether it lies between two numbers wherever it is there."""
        return self.bounded and self.low >= least and self.high <= most

    @property
    def exact(self) -> bool:
        """Whether all whole numbers in its interval are doubles."""
        return self.within(-EXACT, EXACT)

    def fits(self, kind: str) -> bool:
        """Whether a type of integers holds it."""
        return self.within(-(2 ** INTEGERS[kind]), 2 ** INTEGERS[kind] - 1)


TRUTH: Final = Value("BOOLEAN")
TEXT: Final = Value("VARCHAR")


def integer(kind: str, low: Bound, high: Bound, *, null: bool = True) -> Value:
    """An integer between two."""
    return Value(kind, low, high, whole=True, null=null)


def double(low: Bound, high: Bound, *, whole: bool = False, nan: bool = False, null: bool = True) -> Value:
    """A double: rounding is monotone, so the rounded ends hold every rounded value."""
    low, high = rounded(low, -INF), rounded(high, INF)
    whole = whole or (low == high and low == math.floor(low))
    return Value("DOUBLE", low, high, whole, nan, null)


def rounded(end: Bound, beyond: float) -> Bound:
    """The nearest double, or what stands for one that is infinite."""
    try:
        found = float(end)
    except OverflowError:
        return beyond
    return beyond if math.isinf(found) else int(found) if found.is_integer() else Fraction(found)


def as_double(value: Value) -> Value:
    """An integer or a double as a double."""
    if value.type == "DOUBLE":
        return value
    if not value.number or (value.type == "HUGEINT" and not value.exact):  # DuckDB rounds a large HUGEINT twice
        raise Refused(f"a {value.type} used as a double")
    if value.exact:
        return replace(value, type="DOUBLE")
    return double(value.low, value.high, whole=True, null=value.null)


def alike(values: Sequence[Value]) -> str:
    """The one family that values are of: DuckDB would cast others, and a cast may fail or merge."""
    families = {"number" if value.number else value.type for value in values} - {"NULL"}
    if len(families) > 1 or "OWNER" in families:
        raise Refused(f"{' and '.join(sorted(families))} are compared or put together")
    return families.pop() if families else "NULL"


def widest(types: set[str]) -> str:
    """The type that DuckDB takes for numbers of several."""
    return "DOUBLE" if "DOUBLE" in types else max(types, key=INTEGERS.__getitem__)


def hull(values: Sequence[Value], beside: Sequence[Value] = ()) -> Value:
    """One of several values; of those `beside`, which never come about, the type alone counts."""
    family = alike([*values, *beside])
    there = [value for value in values if value.type != "NULL"]
    kind = widest({value.type for value in (*there, *beside)} - {"NULL"}) if family == "number" else family
    null = any(value.null for value in values)
    if not there:
        return Value(kind, 0, 0, whole=True) if family == "number" else Value(kind, null=null)
    if kind == "DOUBLE":
        there = [as_double(value) for value in there]
    low, high = min(value.low for value in there), max(value.high for value in there)
    return Value(kind, low, high, all(value.whole for value in there), any(value.nan for value in there), null)


_OPPOSITE: Final = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "<>": "=", "=": "<>"}


def narrowed(value: Value, sign: str, other: Value, *, holds: bool) -> Value | None:
    """A value of which a comparison with another is true, or is not; None where there is none."""
    compared = value.number and other.number and not other.nan and (holds or not other.null)
    if compared and (value.type == "DOUBLE") != (other.type == "DOUBLE"):  # DuckDB compares doubles
        compared = (value if other.type == "DOUBLE" else other).exact
    if not compared:
        return replace(value, null=False) if holds else value
    sign = sign if holds else _OPPOSITE[sign]
    low, high, nan = value.low, value.high, value.nan
    if sign in ("<", "<=", "="):
        high, nan = min(high, _beside(other.high, -1, value) if sign == "<" else other.high), False
    if sign in (">", ">=", "="):
        low = max(low, _beside(other.low, 1, value) if sign == ">" else other.low)
    null = value.null and not holds
    if low > high:
        if not nan and not null:
            return None
        high = low  # nothing but NaN or NULL
    return replace(value, low=low, high=high, nan=nan, null=null)


def _beside(end: Bound, way: int, value: Value) -> Bound:
    """The next that a value can be below (-1) or above (1) a number."""
    if math.isinf(end):
        return end
    if value.whole:
        return math.ceil(end) - 1 if way < 0 else math.floor(end) + 1
    return rounded(math.nextafter(float(end), way * INF), way * INF) if float(end) == end else end
