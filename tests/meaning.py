"""What a row function means on one row, in plain Python: written apart from the NumPy it is compared with.

A number is a float, a condition True or False, a key its code, a vector a tuple of
whole units; None is missing. Nothing here looks at a second row.
"""

from __future__ import annotations

import bisect
import datetime
import hashlib
import math
import operator
from fractions import Fraction

from sulq.terms import domain
from sulq.terms.domain import Schema
from sulq.terms.kinds import Truth
from sulq.terms.rowfn import (
    Arith,
    Bernstein,
    Bins,
    Bucket,
    Case,
    Clip,
    Col,
    Compare,
    Dot,
    Each,
    Fill,
    IsIn,
    IsMissing,
    Lit,
    Logic,
    Lookup,
    Nearest,
    Not,
    Outer,
    Position,
    RowFn,
    Vector,
    WithinBall,
)
from tests.frames import Row

ORDER = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def meaning(fn: RowFn, schema: Schema, row: Row) -> object:
    """The value of a row function on one row."""
    return _MEANINGS[type(fn)](fn, schema, row)


def column(fn: Col, schema: Schema, row: Row) -> object:
    code, kind = row[fn.name], schema.find(fn.name)
    if code is None or isinstance(kind, (domain.Text, domain.Category)):
        return code
    return bool(code) if isinstance(kind, domain.Bool) else float(code * kind.step)


def constant(fn: Lit, _schema: Schema, _row: Row) -> object:
    return fn.value if isinstance(fn.value, (bool, str)) else float(fn.value)


def arith(fn: Arith, schema: Schema, row: Row) -> float | None:
    left, right = meaning(fn.left, schema, row), meaning(fn.right, schema, row)
    if left is None or right is None or (fn.op == "/" and right == 0):
        return None
    act = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[fn.op]
    found = act(float(left), float(right))
    return found if math.isfinite(found) else None


def comparable(fn: RowFn, other: RowFn, schema: Schema, row: Row) -> tuple[object, object]:
    """Two sides as plain Python values of one kind: labels for categories, numbers for dates."""
    sides = []
    for side, beside in ((fn, other), (other, fn)):
        value, kind = meaning(side, schema, row), clock(beside, schema)
        if isinstance(side, Lit) and isinstance(side.value, str) and kind == "date":
            value = float((datetime.date.fromisoformat(side.value) - datetime.date(1970, 1, 1)).days)
        elif isinstance(side, Lit) and isinstance(side.value, str) and kind == "timestamp":
            since = datetime.datetime.fromisoformat(side.value + "Z") - datetime.datetime(
                1970, 1, 1, tzinfo=datetime.UTC
            )
            value = float(since // datetime.timedelta(microseconds=1))
        elif value is not None and labels(side, schema) is not None:
            value = labels(side, schema)[value]
        sides.append(value)
    return sides[0], sides[1]


def clock(fn: RowFn, schema: Schema) -> str | None:
    kind = schema.find(fn.name) if isinstance(fn, Col) else None
    return {domain.Date: "date", domain.Timestamp: "timestamp"}.get(type(kind))


def labels(fn: RowFn, schema: Schema) -> tuple[object, ...] | None:
    kind = schema.find(fn.name) if isinstance(fn, Col) else None
    return kind.values if isinstance(kind, domain.Category) else None


def compare(fn: Compare, schema: Schema, row: Row) -> bool | None:
    left, right = comparable(fn.left, fn.right, schema, row)
    return None if left is None or right is None else ORDER[fn.op](left, right)


def is_in(fn: IsIn, schema: Schema, row: Row) -> bool | None:
    found = [compare(Compare("==", fn.item, Lit(value)), schema, row) for value in fn.values]
    return None if meaning(fn.item, schema, row) is None else any(found)


def logic(fn: Logic, schema: Schema, row: Row) -> bool | None:
    values = [meaning(item, schema, row) for item in fn.items]
    decisive = fn.op == "or"
    if decisive in values:
        return decisive
    return None if None in values else not decisive


def opposite(fn: Not, schema: Schema, row: Row) -> bool | None:
    value = meaning(fn.item, schema, row)
    return None if value is None else not value


def is_missing(fn: IsMissing, schema: Schema, row: Row) -> bool:
    return meaning(fn.item, schema, row) is None


def case(fn: Case, schema: Schema, row: Row) -> float | None:
    chosen = next((then for when, then in fn.branches if meaning(when, schema, row) is True), fn.otherwise)
    value = None if chosen is None else meaning(chosen, schema, row)
    return None if value is None else float(value)


def clip(fn: Clip, schema: Schema, row: Row) -> float | None:
    value = meaning(fn.item, schema, row)
    return None if value is None else min(max(float(value), float(fn.lo)), float(fn.hi))


def fill(fn: Fill, schema: Schema, row: Row) -> object:
    value = meaning(fn.item, schema, row)
    if value is not None:
        return value
    constant = comparable(fn.item, Lit(fn.value), schema, row)[1]
    return bool(constant) if isinstance(fn.item.kind(schema), Truth) else constant


def units(value: object, step: Fraction, low: int, high: int) -> int:
    """The grid point of a double: floor(x/step + 1/2), in doubles as every engine has it."""
    return min(max(math.floor(float(value) * (1.0 / float(step)) + 0.5), low), high)


def vector(fn: Vector, schema: Schema, row: Row) -> tuple[int, ...] | None:
    kind = fn.kind(schema)
    values = [meaning(item, schema, row) for item in fn.items]
    if None in values:
        return None
    return tuple(units(value, kind.step, a, b) for value, a, b in zip(values, kind.low, kind.high, strict=True))


def within_ball(fn: WithinBall, schema: Schema, row: Row) -> tuple[int, ...] | None:
    found = meaning(fn.vector, schema, row)
    if found is None:
        return None
    ball = math.floor(Fraction(fn.radius) / fn.vector.kind(schema).step)
    square = sum(q * q for q in found)
    if square <= ball * ball:
        return found
    norm = math.isqrt(square - 1) + 1
    return tuple((1 if q > 0 else -1) * (abs(q) * ball // norm) for q in found)


def dot(fn: Dot, schema: Schema, row: Row) -> float | None:
    found = meaning(fn.vector, schema, row)
    if found is None:
        return None
    weights, step = fn.units()
    return float(sum(q * w for q, w in zip(found, weights, strict=True)) * step * fn.vector.kind(schema).step)


def nearest(fn: Nearest, schema: Schema, row: Row) -> int | None:
    found = meaning(fn.vector, schema, row)
    if found is None:
        return None
    kind = fn.vector.kind(schema)
    limit = 4 * max(1, *(abs(bound) for bound in (*kind.low, *kind.high)))
    centres = [[units(x, kind.step, -limit, limit) for x in centre] for centre in fn.centres]
    distances = [sum((q - c) ** 2 for q, c in zip(found, centre, strict=True)) for centre in centres]
    return distances.index(min(distances))


def outer(fn: Outer, schema: Schema, row: Row) -> tuple[int, ...] | None:
    found = meaning(fn.vector, schema, row)
    return None if found is None else tuple(a * b for i, a in enumerate(found) for b in found[i:])


def bernstein(fn: Bernstein, schema: Schema, row: Row) -> tuple[int, ...] | None:
    value = meaning(fn.item, schema, row)
    if value is None:
        return None
    step, low, high = fn.span(schema)
    above = units(value, step, low, high) - low
    below = high - low - above
    return tuple(math.comb(fn.degree, i) * above**i * below ** (fn.degree - i) for i in range(fn.degree, -1, -1))


def lookup(fn: Lookup, schema: Schema, row: Row) -> object:
    codes = [meaning(key, schema, row) for key in fn.keys]
    if None in codes:
        return None
    index = 0
    for key, code in zip(fn.keys, codes, strict=True):
        index = index * key.kind(schema).size + int(code)
    step = fn.units()[1]
    limit = 2**domain.TERM_BITS
    entry = tuple(units(x, step, -limit, limit) for x in fn.table[index])
    return entry if len(entry) > 1 else float(entry[0] * step)


def each(fn: Each, schema: Schema, row: Row) -> int | None:
    value = meaning(fn.item, schema, row)
    if value is None or labels(fn.item, schema) is not None or not isinstance(value, (bool, float)):
        return value
    names = fn.kind(schema).labels
    return names.index(value)


def bins(fn: Bins, schema: Schema, row: Row) -> int | None:
    value = meaning(fn.item, schema, row)
    if value is None:
        return None
    edges = [float(comparable(fn.item, Lit(edge), schema, row)[1]) for edge in fn.edges]
    if not edges[0] <= value <= edges[-1]:
        return None
    return min(bisect.bisect_right(edges, value), len(edges) - 1) - 1


def bucket(fn: Bucket, _schema: Schema, row: Row) -> int:
    prime = 2**31 - 1
    seed = hashlib.sha256(f"sulq bucket {fn.salt}".encode()).digest()
    a, b, c = (int.from_bytes(seed[i : i + 8], "big") % (prime - 1) + 1 for i in (0, 8, 16))
    u, v = divmod(row["person"], 2**30)
    return (a * u + b * v + c) % prime % fn.count


def position(_fn: Position, _schema: Schema, row: Row) -> float:
    return float(min(row["position"], 2**40))


_MEANINGS = {
    Arith: arith,
    Bernstein: bernstein,
    Bins: bins,
    Bucket: bucket,
    Case: case,
    Clip: clip,
    Col: column,
    Compare: compare,
    Dot: dot,
    Each: each,
    Fill: fill,
    IsIn: is_in,
    IsMissing: is_missing,
    Lit: constant,
    Logic: logic,
    Lookup: lookup,
    Nearest: nearest,
    Not: opposite,
    Outer: outer,
    Position: position,
    Vector: vector,
    WithinBall: within_ball,
}
