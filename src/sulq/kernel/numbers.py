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
EXACT: Final = 2**53
Bound = Fraction | None
NO_NUMBER: Final = ("BOOLEAN", "VARCHAR", "TIMESTAMP", "OWNER", "NULL")


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What an expression can be. `low`, `high`: None where no bound is known; then a double may be infinite.

    `polynomial`: what it is wherever it is there, exactly; it is missing where one of `needs`, numbers of atoms, is.
    """

    type: str
    low: Bound = None
    high: Bound = None
    whole: bool = False
    nan: bool = False
    null: bool = True
    polynomial: Polynomial | None = None
    needs: frozenset[int] = frozenset()

    @property
    def number(self) -> bool:
        """Whether it is an integer or a double."""
        return self.type not in NO_NUMBER

    @property
    def bounded(self) -> bool:
        """Whether it is finite wherever it is there."""
        return self.number and self.low is not None and self.high is not None and not self.nan

    def within(self, least: int, most: int) -> bool:
        """Whether it lies between two numbers wherever it is there."""
        return (
            self.bounded and self.low is not None and self.low >= least and self.high is not None and self.high <= most
        )


TRUTH: Final = Value("BOOLEAN")
TEXT: Final = Value("VARCHAR")


def double(low: Bound, high: Bound, *, whole: bool = False, nan: bool = False, null: bool = True) -> Value:
    """A double: rounding is monotone, so the rounded ends hold every rounded value."""
    whole = whole or (low is not None and low == high and low.denominator == 1)
    return Value("DOUBLE", rounded(low), rounded(high), whole, nan, null)


def rounded(end: Bound) -> Bound:
    """The nearest double; None where that is infinite."""
    if end is None:
        return None
    try:
        found = float(end)
    except OverflowError:
        return None
    return Fraction(found) if math.isfinite(found) else None


def nothing(kind: str) -> Value:
    """A number that is always missing."""
    return Value(kind, Fraction(0), Fraction(0), whole=True)


def as_double(value: Value) -> Value:
    """An integer or a double as a double."""
    if value.type == "DOUBLE":
        return value
    if not value.number:
        raise Refused(f"a {value.type} used as a number")
    kept = value.within(-EXACT, EXACT)
    if value.type == "HUGEINT" and not kept:
        raise Refused("a HUGEINT that DuckDB does not round to the nearest double")
    found = double(value.low, value.high, whole=True, null=value.null)
    return replace(found, polynomial=value.polynomial, needs=value.needs) if kept else found


def alike(values: list[Value]) -> str:
    """The one family that values are of: DuckDB would cast others, and a cast may fail or merge."""
    families = {"number" if value.number else value.type for value in values} - {"NULL"}
    if len(families) > 1 or "OWNER" in families:
        raise Refused(f"{' and '.join(sorted(families))} are compared or put together")
    return families.pop() if families else "NULL"


def hull(values: list[Value], beside: Sequence[Value] = ()) -> Value:
    """One of several values; of those `beside`, which never come about, the type alone counts."""
    family = alike([*values, *beside])
    there = [value for value in values if value.type != "NULL"]
    null = any(value.null for value in values)
    types = {value.type for value in (*there, *beside)} - {"NULL"}
    widest = family if family != "number" else "DOUBLE" if "DOUBLE" in types else max(types, key=INTEGERS.__getitem__)
    if not there:
        return nothing(widest) if family == "number" else Value(family, null=null)
    if widest == "DOUBLE":
        there = [as_double(value) for value in there]
    lows, highs = [value.low for value in there], [value.high for value in there]
    low = None if None in lows else min((end for end in lows if end is not None), default=None)
    high = None if None in highs else max((end for end in highs if end is not None), default=None)
    whole, nan = all(value.whole for value in there), any(value.nan for value in there)
    return Value(widest, low, high, whole, nan, null)
