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

from sulq.language import domain, rowfn
from sulq.language.domain import Schema
from sulq.language.kinds import Code, Scalar, Truth
from tests.frames import Row

UNNAMED = object()
ORDER = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def meaning(fn: rowfn.RowFn, schema: Schema, row: Row) -> object:
    """The value of a row function on one row."""
    return _MEANINGS[type(fn)](fn, schema, row)


def column(fn: rowfn.Col, schema: Schema, row: Row) -> object:
    code, kind = row[fn.name], schema.find(fn.name)
    if code is None or isinstance(kind, (domain.Text, domain.Category)):
        return code
    return bool(code) if isinstance(kind, domain.Bool) else float(code * kind.step)


def constant(fn: rowfn.Lit, _schema: Schema, _row: Row) -> object:
    return fn.value if isinstance(fn.value, (bool, str)) else float(fn.value)


def arith(fn: rowfn.Arith, schema: Schema, row: Row) -> float | None:
    left, right = meaning(fn.left, schema, row), meaning(fn.right, schema, row)
    if left is None or right is None or (fn.op == "/" and right == 0):
        return None
    act = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[fn.op]
    found = act(float(left), float(right))
    return found if math.isfinite(found) else None


def comparable(fn: rowfn.RowFn, other: rowfn.RowFn, schema: Schema, row: Row) -> tuple[object, object]:
    """Two sides as plain Python values of one kind: labels for categories, numbers for dates."""
    sides = []
    for side, beside in ((fn, other), (other, fn)):
        value, kind = meaning(side, schema, row), clock(beside, schema)
        if isinstance(side, rowfn.Lit) and isinstance(side.value, str) and kind == "date":
            value = float((datetime.date.fromisoformat(side.value) - datetime.date(1970, 1, 1)).days)
        elif isinstance(side, rowfn.Lit) and isinstance(side.value, str) and kind == "timestamp":
            since = datetime.datetime.fromisoformat(side.value + "Z") - datetime.datetime(
                1970, 1, 1, tzinfo=datetime.UTC
            )
            value = float(since // datetime.timedelta(microseconds=1))
        elif value is not None and labels(side, schema) is not None:
            label = labels(side, schema)[value]
            value = UNNAMED if label is None else label  # a label, and not a missing value
        sides.append(value)
    return sides[0], sides[1]


def clock(fn: rowfn.RowFn, schema: Schema) -> str | None:
    kind = schema.find(fn.name) if isinstance(fn, rowfn.Col) else fn.kind(schema)
    if isinstance(kind, Scalar):
        return kind.clock
    return {domain.Date: "date", domain.Timestamp: "timestamp"}.get(type(kind))


def labels(fn: rowfn.RowFn, schema: Schema) -> tuple[object, ...] | None:
    kind = schema.find(fn.name) if isinstance(fn, rowfn.Col) else fn.kind(schema)
    if isinstance(kind, Code):
        return kind.labels
    return kind.values if isinstance(kind, domain.Category) else None


def compare(fn: rowfn.Compare, schema: Schema, row: Row) -> bool | None:
    left, right = comparable(fn.left, fn.right, schema, row)
    return None if left is None or right is None else ORDER[fn.op](left, right)


def is_in(fn: rowfn.IsIn, schema: Schema, row: Row) -> bool | None:
    found = [compare(rowfn.Compare("==", fn.item, rowfn.Lit(value)), schema, row) for value in fn.values]
    return None if meaning(fn.item, schema, row) is None else any(found)


def logic(fn: rowfn.Logic, schema: Schema, row: Row) -> bool | None:
    values = [meaning(item, schema, row) for item in fn.items]
    decisive = fn.op == "or"
    if decisive in values:
        return decisive
    return None if None in values else not decisive


def opposite(fn: rowfn.Not, schema: Schema, row: Row) -> bool | None:
    value = meaning(fn.item, schema, row)
    return None if value is None else not value


def is_missing(fn: rowfn.IsMissing, schema: Schema, row: Row) -> bool:
    return meaning(fn.item, schema, row) is None


def case(fn: rowfn.Case, schema: Schema, row: Row) -> float | None:
    chosen = next((then for when, then in fn.branches if meaning(when, schema, row) is True), fn.otherwise)
    value = None if chosen is None else meaning(chosen, schema, row)
    return None if value is None else float(value)


def clip(fn: rowfn.Clip, schema: Schema, row: Row) -> float | None:
    value = meaning(fn.item, schema, row)
    return None if value is None else min(max(float(value), float(fn.lo)), float(fn.hi))


def fill(fn: rowfn.Fill, schema: Schema, row: Row) -> object:
    value = meaning(fn.item, schema, row)
    if value is not None:
        return value
    constant = comparable(fn.item, rowfn.Lit(fn.value), schema, row)[1]
    return bool(constant) if isinstance(fn.item.kind(schema), Truth) else constant


def units(value: object, step: Fraction, low: int, high: int) -> int:
    """The grid point of a double: floor(x/step + 1/2), in doubles as every engine has it."""
    return min(max(math.floor(float(value) * (1.0 / float(step)) + 0.5), low), high)


def vector(fn: rowfn.Vector, schema: Schema, row: Row) -> tuple[int, ...] | None:
    kind = fn.kind(schema)
    values = [meaning(item, schema, row) for item in fn.items]
    if None in values:
        return None
    return tuple(units(value, kind.step, a, b) for value, a, b in zip(values, kind.low, kind.high, strict=True))


def within_ball(fn: rowfn.WithinBall, schema: Schema, row: Row) -> tuple[int, ...] | None:
    found = meaning(fn.vector, schema, row)
    if found is None:
        return None
    ball = math.floor(Fraction(fn.radius) / fn.vector.kind(schema).step)
    square = sum(q * q for q in found)
    if square <= ball * ball:
        return found
    norm = math.isqrt(square - 1) + 1
    return tuple((1 if q > 0 else -1) * (abs(q) * ball // norm) for q in found)


def within_l1(fn: rowfn.WithinL1, schema: Schema, row: Row) -> tuple[int, ...] | None:
    found = meaning(fn.vector, schema, row)
    if found is None:
        return None
    most, norm = math.floor(Fraction(fn.radius) / fn.vector.kind(schema).step), sum(map(abs, found))
    return found if norm <= most else tuple((1 if q > 0 else -1) * (abs(q) * most // norm) for q in found)


def dot(fn: rowfn.Dot, schema: Schema, row: Row) -> float | None:
    found = meaning(fn.vector, schema, row)
    if found is None:
        return None
    weights, step = fn.units()
    return float(sum(q * w for q, w in zip(found, weights, strict=True)) * step * fn.vector.kind(schema).step)


def nearest(fn: rowfn.Nearest, schema: Schema, row: Row) -> int | None:
    found = meaning(fn.vector, schema, row)
    if found is None:
        return None
    kind = fn.vector.kind(schema)
    limit = 4 * max(1, *(abs(bound) for bound in (*kind.low, *kind.high)))
    centres = [[units(x, kind.step, -limit, limit) for x in centre] for centre in fn.centres]
    distances = [sum((q - c) ** 2 for q, c in zip(found, centre, strict=True)) for centre in centres]
    return distances.index(min(distances))


def scaled(fn: rowfn.Scaled, schema: Schema, row: Row) -> tuple[int, ...] | None:
    found, factor = meaning(fn.vector, schema, row), meaning(fn.factor, schema, row)
    if found is None or factor is None:
        return None
    whole = units(factor, *fn.span(schema))
    return tuple(q * whole for q in found)


def route(fn: rowfn.Route, schema: Schema, row: Row) -> int | None:
    """Walk the tree by hand."""
    place = 0 if fn.tree else -1
    while place is not None and place >= 0:
        key, *children = fn.tree[place]
        code = meaning(fn.keys[key], schema, row)
        place = None if code is None else children[int(code)]
    return None if place is None else -1 - place


def outer(fn: rowfn.Outer, schema: Schema, row: Row) -> tuple[int, ...] | None:
    found = meaning(fn.vector, schema, row)
    return None if found is None else tuple(a * b for i, a in enumerate(found) for b in found[i:])


def bernstein(fn: rowfn.Bernstein, schema: Schema, row: Row) -> tuple[int, ...] | None:
    value = meaning(fn.item, schema, row)
    step, low, high = fn.span(schema)
    if value is None:
        return (*(0,) * (fn.degree + 1), (high - low) ** fn.degree) if fn.missing else None
    above = units(value, step, low, high) - low
    below = high - low - above
    terms = (math.comb(fn.degree, i) * above**i * below ** (fn.degree - i) for i in range(fn.degree, -1, -1))
    return (*terms, 0) if fn.missing else tuple(terms)


def lookup(fn: rowfn.Lookup, schema: Schema, row: Row) -> object:
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


def each(fn: rowfn.Each, schema: Schema, row: Row) -> int | None:
    value = meaning(fn.item, schema, row)
    if value is None or labels(fn.item, schema) is not None:
        return value
    names = fn.kind(schema).labels
    return names.index(value)


def bins(fn: rowfn.Bins, schema: Schema, row: Row) -> int | None:
    value = meaning(fn.item, schema, row)
    if value is None:
        return None
    edges = [float(comparable(fn.item, rowfn.Lit(edge), schema, row)[1]) for edge in fn.edges]
    if not edges[0] <= value <= edges[-1]:
        return None
    return min(bisect.bisect_right(edges, value), len(edges) - 1) - 1


def bucket(fn: rowfn.Bucket, _schema: Schema, row: Row) -> int:
    prime = 2**31 - 1
    seed = hashlib.sha256(f"sulq bucket {fn.salt}".encode()).digest()
    a, b, c = (int.from_bytes(seed[i : i + 8], "big") % (prime - 1) + 1 for i in (0, 8, 16))
    u, v = divmod(row["person"], 2**30)
    return (a * u + b * v + c) % prime % fn.count


def position(_fn: rowfn.Position, _schema: Schema, row: Row) -> float:
    return float(min(row["position"], 2**40))


def maths(fn: rowfn.Maths, schema: Schema, row: Row) -> float | None:
    """Ln and exp are the C library's: NumPy's may differ from them in the last place."""
    value = meaning(fn.item, schema, row)
    if value is None:
        return None
    x = float(value)
    if fn.op in ("sqrt", "ln") and (x < 0 or (fn.op == "ln" and x == 0)):
        return None
    if fn.op == "exp" and x > 709:
        return None
    act = {
        "abs": abs,
        "floor": math.floor,
        "ceil": math.ceil,
        "trunc": math.trunc,
        "sign": lambda y: (y > 0) - (y < 0),
        "sqrt": math.sqrt,
        "ln": math.log,
        "exp": math.exp,
    }[fn.op]
    return float(act(x))


def nearest_whole(value: float) -> int:
    """Halves away from zero, in exact fractions."""
    size = math.floor(abs(Fraction(value)) + Fraction(1, 2))
    return size if value >= 0 else -size


def rounded(fn: rowfn.Round, schema: Schema, row: Row) -> float | None:
    value = meaning(fn.item, schema, row)
    kind = fn.item.kind(schema)
    whole = isinstance(kind, Truth) or (kind.step is not None and kind.step >= 1)
    if value is None or (fn.digits >= 0 and whole):
        return None if value is None else float(value)
    scale = float(10 ** abs(fn.digits))
    scaled = float(value) * scale if fn.digits >= 0 else float(value) / scale
    if math.isinf(scaled):
        return None
    whole = float(nearest_whole(scaled))
    found = whole / scale if fn.digits >= 0 else whole * scale
    return None if math.isinf(found) else found


def power(fn: rowfn.Power, schema: Schema, row: Row) -> float | None:
    value = meaning(fn.item, schema, row)
    if value is None:
        return None
    x, e = float(value), fn.exponent
    if e == 0.5:
        return None if x < 0 else math.sqrt(x)
    if e == int(e) and abs(e) <= 16:
        product = math.prod([x] * abs(int(e)), start=1.0)
        if e < 0:
            product = 1.0 / product if product else math.inf
        return product if math.isfinite(product) else None
    if (x < 0 and e != int(e)) or (x == 0 and e < 0):
        return None
    try:
        return math.pow(x, e)
    except OverflowError:
        return None


def modulo(fn: rowfn.Modulo, schema: Schema, row: Row) -> float | None:
    value = meaning(fn.left, schema, row)
    return None if value is None else math.fmod(float(value), float(fn.right))


def extreme(fn: rowfn.Least | rowfn.Greatest, schema: Schema, row: Row) -> float | None:
    found = [float(value) for item in fn.items if (value := meaning(item, schema, row)) is not None]
    return (min if isinstance(fn, rowfn.Least) else max)(found, default=None)


def first(fn: rowfn.First, schema: Schema, row: Row) -> object:
    found = next((value for item in fn.items if (value := meaning(item, schema, row)) is not None), None)
    return float(found) if isinstance(fn.kind(schema), Scalar) and found is not None else found


def null_if(fn: rowfn.NullIf, schema: Schema, row: Row) -> object:
    left, right = comparable(fn.item, fn.other, schema, row)
    return None if left is not None and left == right else meaning(fn.item, schema, row)


def moment(fn: rowfn.Moment, _schema: Schema, _row: Row) -> float:
    if fn.clock == "date":
        return float((datetime.date.fromisoformat(fn.text) - datetime.date(1970, 1, 1)).days)
    return float((datetime.datetime.fromisoformat(fn.text) - MIDNIGHT) // datetime.timedelta(microseconds=1))


MIDNIGHT = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - moments are in UTC, without a zone


def when(fn: rowfn.RowFn, schema: Schema, row: Row) -> datetime.datetime | None:
    """A date or moment of the calendar, None outside it."""
    value = meaning(fn, schema, row)
    if value is None:
        return None
    if clock(fn, schema) == "timestamp":
        return None if abs(value) >= 2**53 else MIDNIGHT + datetime.timedelta(microseconds=int(value))
    try:
        return MIDNIGHT + datetime.timedelta(days=int(value))
    except OverflowError:
        return None


def date_part(fn: rowfn.DatePart, schema: Schema, row: Row) -> float | None:
    moment = when(fn.item, schema, row)
    if moment is None:
        return None
    since = moment - MIDNIGHT
    micros = since // datetime.timedelta(microseconds=1)
    parts = {
        "year": moment.year,
        "isoyear": moment.isocalendar()[0],
        "quarter": (moment.month + 2) // 3,
        "month": moment.month,
        "week": moment.isocalendar()[1],
        "day": moment.day,
        "dow": moment.isoweekday() % 7,
        "isodow": moment.isoweekday(),
        "doy": moment.timetuple().tm_yday,
        "hour": moment.hour,
        "minute": moment.minute,
        "second": (moment.second * 10**6 + moment.microsecond) / 1e6,
        "epoch": micros / 1e6 if clock(fn.item, schema) == "timestamp" else since.days * 86400,
    }
    return float(parts[fn.part])


def date_trunc(fn: rowfn.DateTrunc, schema: Schema, row: Row) -> float | None:
    moment = when(fn.item, schema, row)
    if moment is None:
        return None
    fields = ["year", "month", "day", "hour", "minute", "second"]
    if fn.part == "week":
        moment -= datetime.timedelta(days=moment.weekday())
    if fn.part == "quarter":
        moment = moment.replace(day=1).replace(month=(moment.month - 1) // 3 * 3 + 1)
    kept = fields.index({"week": "day", "quarter": "month"}.get(fn.part, fn.part)) + 1
    lost = dict.fromkeys(fields[kept:], 0) | {"microsecond": 0}
    start = moment.replace(**{name: 1 if name in ("month", "day") else 0 for name in lost})
    if clock(fn.item, schema) == "date":
        return float((start - MIDNIGHT).days)
    return float((start - MIDNIGHT) // datetime.timedelta(microseconds=1))


def to_date(fn: rowfn.ToDate, schema: Schema, row: Row) -> float | None:
    if clock(fn.item, schema) == "date":
        return meaning(fn.item, schema, row)
    moment = when(fn.item, schema, row)
    return None if moment is None else float((moment - MIDNIGHT).days)


def to_timestamp(fn: rowfn.ToTimestamp, schema: Schema, row: Row) -> float | None:
    if clock(fn.item, schema) == "timestamp":
        return meaning(fn.item, schema, row)
    moment = when(fn.item, schema, row)
    micros = None if moment is None else (moment - MIDNIGHT) // datetime.timedelta(microseconds=1)
    return None if micros is None or abs(micros) >= 2**53 else float(micros)


def choice(fn: rowfn.Choice, schema: Schema, row: Row) -> int | None:
    return next((place for test, place in fn.branches if meaning(test, schema, row) is True), fn.otherwise)


def relabel(fn: rowfn.Relabel, schema: Schema, row: Row) -> int | None:
    old = meaning(fn.item, schema, row)
    new = None if old is None else fn.labels[old]
    return None if new is None else sorted({label for label in fn.labels if label is not None}).index(new)


def or_missing(fn: rowfn.OrMissing, schema: Schema, row: Row) -> int:
    found = meaning(fn.item, schema, row)
    return len(fn.kind(schema).labels) - 1 if found is None else found


def value(fn: rowfn.Value, schema: Schema, row: Row) -> float | None:
    found = meaning(fn.item, schema, row)
    label = None if found is None else labels(fn.item, schema)[found]
    return None if label is None else float(label)


def text_function(fn: rowfn.RowFn, schema: Schema, row: Row) -> object:
    text = meaning(fn.item, schema, row)
    return None if text is None else _TEXTS[type(fn)](fn, text)


def cased(text: str, *, upper: bool) -> str:
    return "".join((c.upper() if upper else c.lower()) if c.isascii() else c for c in text)


def trimmed(fn: rowfn.Trimmed, text: str) -> str:
    while fn.side != "right" and text and text[0] in fn.characters:
        text = text[1:]
    while fn.side != "left" and text and text[-1] in fn.characters:
        text = text[:-1]
    return text


def substring(fn: rowfn.Substring, text: str) -> str:
    last = len(text) if fn.length is None else fn.start + fn.length - 1
    return "".join(sign for place, sign in enumerate(text, 1) if fn.start <= place <= last)


def like(fn: rowfn.Like, text: str) -> bool:
    """All the places a pattern can have come to, sign by sign."""
    signs, pattern = [], list(fn.pattern)
    while pattern:
        sign = pattern.pop(0)
        signs.append(("plain", pattern.pop(0)) if fn.escape and sign == fn.escape else ("special", sign))
    places = {0}
    for sign in signs:
        if sign == ("special", "%"):
            places = set(range(min(places, default=len(text) + 1), len(text) + 1))
        else:
            places = {i + 1 for i in places if i < len(text) and (sign == ("special", "_") or text[i] == sign[1])}
    return len(text) in places


def concat(fn: rowfn.Concat, schema: Schema, row: Row) -> str | None:
    texts = [meaning(item, schema, row) for item in fn.items]
    return None if None in texts else "".join(text[:10_000] for text in texts)[:10_000]


_TEXTS = {
    rowfn.IndexOf: lambda fn, text: float(min(text.find(fn.needle) + 1, 10_000)),
    rowfn.Length: lambda _, text: float(min(len(text), 10_000)),
    rowfn.Like: like,
    rowfn.Lowered: lambda _, text: cased(text, upper=False),
    rowfn.StartsWith: lambda fn, text: text[: len(fn.prefix)] == fn.prefix,
    rowfn.Substring: substring,
    rowfn.Trimmed: trimmed,
    rowfn.Uppered: lambda _, text: cased(text, upper=True),
}
_MEANINGS = {
    rowfn.Arith: arith,
    rowfn.Bernstein: bernstein,
    rowfn.Bins: bins,
    rowfn.Bucket: bucket,
    rowfn.Case: case,
    rowfn.Choice: choice,
    rowfn.Clip: clip,
    rowfn.Col: column,
    rowfn.Compare: compare,
    rowfn.Concat: concat,
    rowfn.DatePart: date_part,
    rowfn.DateTrunc: date_trunc,
    rowfn.Dot: dot,
    rowfn.Each: each,
    rowfn.Fill: fill,
    rowfn.First: first,
    rowfn.Greatest: extreme,
    rowfn.IndexOf: text_function,
    rowfn.IsIn: is_in,
    rowfn.IsMissing: is_missing,
    rowfn.Least: extreme,
    rowfn.Length: text_function,
    rowfn.Like: text_function,
    rowfn.Lit: constant,
    rowfn.Logic: logic,
    rowfn.Lookup: lookup,
    rowfn.Lowered: text_function,
    rowfn.Maths: maths,
    rowfn.Modulo: modulo,
    rowfn.Moment: moment,
    rowfn.Nearest: nearest,
    rowfn.Not: opposite,
    rowfn.NullIf: null_if,
    rowfn.OrMissing: or_missing,
    rowfn.Outer: outer,
    rowfn.Position: position,
    rowfn.Power: power,
    rowfn.Relabel: relabel,
    rowfn.Round: rounded,
    rowfn.Route: route,
    rowfn.Scaled: scaled,
    rowfn.StartsWith: text_function,
    rowfn.Substring: text_function,
    rowfn.ToDate: to_date,
    rowfn.ToTimestamp: to_timestamp,
    rowfn.Trimmed: text_function,
    rowfn.Uppered: text_function,
    rowfn.Value: value,
    rowfn.Vector: vector,
    rowfn.WithinBall: within_ball,
    rowfn.WithinL1: within_l1,
}
