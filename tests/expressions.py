"""Tables and row functions for Hypothesis: every node, every kind of column, the ends of every range."""

from __future__ import annotations

import functools

from hypothesis import strategies as st

from sulq.language import rowfn
from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.kinds import Scalar
from sulq.language.rowfn.dates import PARTS, PERIODS
from tests.frames import Row

SCHEMA = Schema.of(
    "people",
    {
        "few": Int(-2, 3),
        "wide": Int(-(2**53), 2**53),
        "above": Int(100, 105),
        "part": Real(0.1, 0.9),
        "below": Real(-7.3, -2.1, grid=0.3),
        "tiny": Real(0, 1e-50),
        "large": Real(-1e50, 1e55),
        "flag": Bool(),
        "city": Category(["Haifa", "Lod", "Yafo"]),
        "town": Category(["Haifa", "Lod", "Yafo"]),
        "grade": Category([7, -1, 3]),
        "day": Date("2020-02-28", "2020-03-03"),
        "moment": Timestamp("1969-12-31T23:59:59", "1970-01-01T00:00:01"),
        "name": Text(),
    },
)
NUMBERS = ("few", "wide", "above", "part", "below", "tiny", "large", "day", "moment")
LITERALS = st.one_of(
    st.sampled_from([0, 1, -1, 2, 0.5, 0.1, -3.25, 1e60, -1e60, 5e-324, 1e-300, 2**53, -(2**53), 103, 1e-51]),
    st.integers(-(2**53), 2**53),
    st.floats(-1e60, 1e60),
)


TEXTS = ["", "x", "Lod", "\u05d0", " Lod  ", "a_b%", "\u00c9\u00e9\nzZ", "\U0001f986e\u0301", "[a-z].*", "aaab"]
EXACT = ("abs", "floor", "ceil", "trunc", "sqrt", "sign")  # what IEEE 754 fixes


def codes(column: Column) -> st.SearchStrategy[object]:
    """What may stand in a cell: any code, the ends more often, or nothing."""
    if isinstance(column, Text):
        return st.none() | st.sampled_from(TEXTS) | st.text(alphabet="aA%_ \\\n\u00e9\u0301", max_size=6)
    return st.none() | st.sampled_from([column.low, column.high]) | st.integers(column.low, column.high)


def rows(schema: Schema = SCHEMA) -> st.SearchStrategy[Row]:
    """One row of a table, its person and its place."""
    cells = {name: codes(column) for name, column in schema.columns}
    return st.fixed_dictionaries(
        {**cells, "person": st.integers(0, 2**60 - 1) | st.sampled_from([0, 1]), "position": st.integers(0, 2**41)}
    )


def tables(most: int = 8) -> st.SearchStrategy[list[Row]]:
    return st.lists(rows(), max_size=most)


columns = st.sampled_from(NUMBERS).map(rowfn.Col)
literals = LITERALS.map(rowfn.Lit)


@functools.cache
def numbers(depth: int = 3) -> st.SearchStrategy[rowfn.RowFn]:
    """Numbers, and conditions used as such."""
    leaves = columns | literals | st.just(rowfn.Position())
    if depth == 0:
        return leaves
    inner = numbers(depth - 1)
    bounds = st.tuples(LITERALS, LITERALS).map(sorted)
    return st.one_of(
        leaves,
        st.builds(rowfn.Arith, st.sampled_from("+-*/"), inner, inner),
        st.builds(rowfn.Arith, st.sampled_from("+-*/"), columns, columns),
        st.builds(lambda item, ends: rowfn.Clip(item, *ends), inner, bounds),
        st.builds(rowfn.Fill, inner.filter(plain), LITERALS),
        st.builds(
            lambda pairs, last: rowfn.Case(tuple(pairs), last),
            st.lists(st.tuples(conditions(depth - 1), inner.filter(plain)), min_size=1, max_size=2),
            st.none() | inner.filter(plain),
        ),
        conditions(depth - 1),
        st.builds(rowfn.Maths, st.sampled_from(EXACT), inner),
        st.builds(rowfn.Round, inner, st.integers(-15, 15)),
        st.builds(rowfn.Power, inner, st.integers(-16, 16) | st.just(0.5)),
        st.builds(rowfn.Modulo, inner, LITERALS.filter(bool)),
        st.builds(rowfn.Least, several(inner.filter(plain)).map(tuple)),
        st.builds(rowfn.Greatest, several(inner.filter(plain)).map(tuple)),
        st.builds(rowfn.First, several(inner.filter(plain)).map(tuple)),
        st.builds(rowfn.NullIf, inner.filter(plain), inner.filter(plain)),
        st.builds(rowfn.DatePart, st.sampled_from(PARTS), dates(depth - 1)),
        dates(depth - 1),
        keys(0).filter(numbered).map(rowfn.Value),
        st.builds(rowfn.Length, words(depth - 1)),
        st.builds(rowfn.IndexOf, words(depth - 1), st.sampled_from(["", "o", "a", "\u0301", "xyz"])),
        st.builds(rowfn.Dot, vectors(0, width=2), st.tuples(LITERALS, LITERALS)),
        keys(0).map(lambda key: rowfn.Lookup((key,), tuple((x,) for x in spread(key)))),
    )


def plain(fn: rowfn.RowFn) -> bool:
    """Whether a number carries no clock: those are filled with dates and not mixed with numbers."""
    kind = fn.kind(SCHEMA)
    return isinstance(kind, Scalar) and kind.clock is None


def numbered(key: rowfn.RowFn) -> bool:
    """Whether a key's labels are numbers."""
    return all(type(label) in (int, float) for label in key.kind(SCHEMA).labels)


@functools.cache
def dates(depth: int = 1) -> st.SearchStrategy[rowfn.RowFn]:
    """Dates and moments."""
    leaves = st.sampled_from(
        [
            rowfn.Col("day"),
            rowfn.Col("moment"),
            rowfn.Moment("0001-01-01"),
            rowfn.Moment("9999-12-31"),
            rowfn.Moment("2024-12-30"),
            rowfn.Moment("1969-12-31T23:59:59.999999", "timestamp"),
            rowfn.Moment("2100-02-28T12:34:56.789", "timestamp"),
        ]
    )
    if depth <= 0:
        return leaves
    inner = dates(depth - 1)
    days = st.sampled_from(["few", "above", "wide"]).map(rowfn.Col) | st.integers(-(10**6), 10**7).map(rowfn.Lit)
    return st.one_of(
        leaves,
        st.builds(rowfn.DateTrunc, st.sampled_from(PERIODS), inner),
        st.builds(rowfn.ToDate, inner),
        st.builds(rowfn.ToTimestamp, inner),
        st.builds(rowfn.Arith, st.sampled_from("+-"), inner, days),
        st.builds(
            lambda a, b: rowfn.First((rowfn.ToDate(a), b)),
            inner,
            st.sampled_from([rowfn.Col("day"), rowfn.Moment("2020-03-01")]),
        ),
    )


@functools.cache
def words(depth: int = 1) -> st.SearchStrategy[rowfn.RowFn]:
    """Texts."""
    leaves = st.just(rowfn.Col("name")) | st.sampled_from(TEXTS).map(rowfn.Lit)
    if depth <= 0:
        return leaves
    inner = words(depth - 1)
    return st.one_of(
        leaves,
        st.builds(rowfn.Lowered, inner),
        st.builds(rowfn.Uppered, inner),
        st.builds(
            rowfn.Trimmed, inner, st.sampled_from(["both", "left", "right"]), st.sampled_from([" ", "aL", "", "\u00e9"])
        ),
        st.builds(rowfn.Substring, inner, st.integers(-3, 8), st.none() | st.integers(0, 5)),
        st.builds(lambda items: rowfn.Concat(tuple(items)), several(inner)),
        st.builds(lambda items: rowfn.First(tuple(items)), several(inner)),
        st.builds(rowfn.NullIf, inner, inner),
    )


PATTERNS = st.lists(
    st.sampled_from(["%", "_", "a", "o", "Lod", "\u00e9", "\\%", "\\_", "\\\\", ".", "*", "["]), max_size=5
)


def patterns() -> st.SearchStrategy[str]:
    """Patterns of LIKE, some of them escaped."""
    return PATTERNS.map("".join)


def spread(key: rowfn.RowFn) -> list[float]:
    """A table of one column for a key: numbers of all sizes."""
    return [(-1.5) ** i for i in range(key.kind(SCHEMA).size)]


@functools.cache
def conditions(depth: int = 2) -> st.SearchStrategy[rowfn.RowFn]:
    """Conditions of all shapes."""
    order = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    equal = st.sampled_from(["==", "!="])
    text = st.sampled_from(["Lod", "x", ""])
    leaves = st.one_of(
        st.just(rowfn.Col("flag")),
        st.booleans().map(rowfn.Lit),
        st.builds(lambda op, c, v: rowfn.Compare(op, c, rowfn.Lit(v)), order, columns.filter(plain), LITERALS),
        st.builds(lambda op, c, v: rowfn.Compare(op, rowfn.Lit(v), c), order, columns.filter(plain), LITERALS),
        st.builds(
            lambda op, v: rowfn.Compare(op, rowfn.Col("city"), rowfn.Lit(v)),
            equal,
            st.sampled_from(["Haifa", "Lod", "Yafo"]),
        ),
        st.builds(lambda op: rowfn.Compare(op, rowfn.Col("city"), rowfn.Col("town")), equal),
        st.builds(
            lambda op, v: rowfn.Compare(op, rowfn.Col("grade"), rowfn.Lit(v)), equal, st.sampled_from([7, -1, 3])
        ),
        st.builds(lambda op, v: rowfn.Compare(op, rowfn.Col("name"), rowfn.Lit(v)), equal, text),
        st.builds(
            lambda op, v: rowfn.Compare(op, rowfn.Col("flag"), rowfn.Lit(v)),
            equal,
            st.sampled_from([True, False, 0, 1]),
        ),
        st.builds(
            lambda op, v: rowfn.Compare(op, rowfn.Col("day"), rowfn.Lit(v)),
            order,
            st.sampled_from(["2020-02-29", "2019-01-01"]),
        ),
        st.builds(
            lambda op, v: rowfn.Compare(op, rowfn.Col("moment"), rowfn.Lit(v)),
            order,
            st.sampled_from(["1970-01-01T00:00:00", "1969-12-31T23:59:59.5"]),
        ),
        st.builds(lambda v: rowfn.IsIn(rowfn.Col("name"), tuple(v)), st.lists(text, max_size=3)),
        st.builds(
            lambda v: rowfn.IsIn(rowfn.Col("city"), tuple(v)), st.lists(st.sampled_from(["Lod", "Yafo"]), max_size=3)
        ),
        st.builds(lambda c, v: rowfn.IsIn(c, tuple(v)), columns.filter(plain), st.lists(LITERALS, max_size=3)),
    )
    if depth == 0:
        return leaves
    inner = conditions(depth - 1)
    values = numbers(depth - 1).filter(plain)
    return st.one_of(
        leaves,
        st.builds(lambda op, items: rowfn.Logic(op, tuple(items)), st.sampled_from(["and", "or"]), several(inner)),
        st.builds(rowfn.Not, inner),
        st.builds(rowfn.Compare, order, values, values),
        st.builds(rowfn.IsMissing, numbers(depth - 1) | inner | st.sampled_from(["city", "name"]).map(rowfn.Col)),
        st.builds(rowfn.Fill, inner, st.booleans()),
        st.builds(rowfn.First, several(inner).map(tuple)),
        st.builds(rowfn.NullIf, inner, inner),
        st.builds(rowfn.Compare, equal, words(depth - 1), words(depth - 1)),
        st.builds(rowfn.Compare, order, dates(depth - 1).map(rowfn.ToDate), dates(depth - 1).map(rowfn.ToDate)),
        st.builds(rowfn.StartsWith, words(depth - 1), st.sampled_from(["", "L", "Lo", "\u00e9"])),
        st.builds(rowfn.Like, words(depth - 1), patterns()),
        st.builds(rowfn.IsIn, words(depth - 1), st.lists(st.sampled_from(TEXTS), max_size=3).map(tuple)),
        st.builds(rowfn.IsMissing, words(depth - 1)),
    )


def several(items: st.SearchStrategy[rowfn.RowFn]) -> st.SearchStrategy[list[rowfn.RowFn]]:
    return st.lists(items, min_size=1, max_size=3)


EDGES = st.lists(st.integers(-9, 110) | st.floats(-9, 110), min_size=2, max_size=5, unique_by=float).map(sorted)


@functools.cache
def keys(depth: int = 1) -> st.SearchStrategy[rowfn.RowFn]:
    """Keys of all shapes."""
    leaves = st.one_of(
        st.sampled_from(["city", "grade"]).map(rowfn.Col),
        st.sampled_from(["few", "above", "flag", "city", "day"]).map(lambda name: rowfn.Each(rowfn.Col(name))),
        st.builds(
            lambda name, edges: rowfn.Bins(rowfn.Col(name), tuple(edges)),
            st.sampled_from(["few", "above", "part"]),
            EDGES,
        ),
        st.just(rowfn.Bins(rowfn.Col("day"), ("2020-02-28", "2020-03-01", "2020-03-03"))),
        st.builds(rowfn.Bucket, st.integers(1, 50), st.integers(-3, 3)),
    )
    if depth == 0:
        return leaves
    return st.one_of(
        leaves,
        conditions(1).map(rowfn.Each),
        choices(),
        leaves.map(rowfn.OrMissing),
        leaves.flatmap(relabels),
        leaves.flatmap(relabels).map(rowfn.OrMissing),
        st.just(rowfn.First((rowfn.Col("city"), rowfn.Col("town")))),
        st.sampled_from(["Lod", "Yafo"]).map(lambda label: rowfn.NullIf(rowfn.Col("city"), rowfn.Lit(label))),
        st.just(rowfn.NullIf(rowfn.Col("city"), rowfn.Col("town"))),
        st.builds(lambda item, edges: rowfn.Bins(item, tuple(edges)), numbers(1).filter(plain), EDGES),
        st.builds(rowfn.Nearest, vectors(0, width=2), st.lists(st.tuples(LITERALS, LITERALS), min_size=1, max_size=4)),
        st.lists(leaves, min_size=1, max_size=3).flatmap(trees),
    )


@st.composite
def trees(draw: st.DrawFn, asked: list[rowfn.RowFn]) -> rowfn.Route:
    """A tree over some keys: any shape, leaves met in any order, some children nowhere, some nodes shared."""
    sizes = [key.kind(SCHEMA).size for key in asked]
    chosen = draw(st.lists(st.integers(0, len(asked) - 1), max_size=5))
    nodes: list[tuple[int | None, ...]] = []
    leaves = 0
    for place, key in enumerate(chosen):
        children: list[int | None] = []
        for i in range(sizes[key]):
            later = st.integers(place + 1, len(chosen) - 1) if place + 1 < len(chosen) else st.nothing()
            old = st.integers(-leaves, -1) if leaves else st.nothing()
            first = not leaves and i + 1 == sizes[key] and place + 1 == len(chosen)
            children.append(-1 if first else draw(st.just(-1 - leaves) | st.none() | later | old))
            leaves = max(leaves, -(children[-1] or 0))
        nodes.append((key, *children))
    return rowfn.Route(tuple(asked), tuple(nodes))


@functools.cache
def choices() -> st.SearchStrategy[rowfn.RowFn]:
    """Cases of constants."""
    labels = st.sampled_from([("low", "high", "odd"), (10, -2.5, 7), ("x", "y", "z z")])
    place = st.none() | st.integers(0, 2)
    branches = st.lists(st.tuples(conditions(1), place), min_size=1, max_size=4).map(tuple)
    return st.builds(rowfn.Choice, branches, labels, place)


def relabels(key: rowfn.RowFn) -> st.SearchStrategy[rowfn.RowFn]:
    """A key under other names, some of them shared or none."""
    size = key.kind(SCHEMA).size
    texts, figures = st.sampled_from(["b", "a", "c", None]), st.sampled_from([3, -1, 0.5, None])
    lists = st.lists(texts, min_size=size, max_size=size) | st.lists(figures, min_size=size, max_size=size)
    return lists.filter(any).map(lambda labels: rowfn.Relabel(key, tuple(labels)))


@functools.cache
def vectors(depth: int = 1, width: int | None = None) -> st.SearchStrategy[rowfn.RowFn]:
    """Vectors of all shapes; of one width where that is asked."""
    size = {"min_size": width or 1, "max_size": width or 3}
    items = columns | st.just(rowfn.Col("flag")) | st.just(rowfn.Position())
    leaves = st.builds(lambda v, bits: rowfn.Vector(tuple(v), bits), st.lists(items, **size), st.integers(1, 11))
    if depth == 0:
        return leaves
    return st.one_of(
        leaves,
        leaves.map(rowfn.Outer),
        leaves.flatmap(balls),
        (leaves | leaves.flatmap(balls)).flatmap(multiples),
        leaves.flatmap(balls).map(rowfn.Outer),
        st.builds(rowfn.Bernstein, columns | st.just(rowfn.Col("flag")), st.sampled_from([1, 2])),
        keys(0).map(lambda key: rowfn.Lookup((key,), tuple((x, -x, 3.0) for x in spread(key)))),
    )


def balls(vector: rowfn.Vector) -> st.SearchStrategy[rowfn.RowFn]:
    """A vector in a ball, or an L1 ball, of 1 to 100 times its step."""
    step = float(vector.kind(SCHEMA).step)
    radii = st.integers(1, 100).map(lambda units: min(units * step, 1e60))
    return st.builds(
        lambda made, radius: made(vector, radius), st.sampled_from([rowfn.WithinBall, rowfn.WithinL1]), radii
    )


def multiples(vector: rowfn.RowFn) -> st.SearchStrategy[rowfn.RowFn]:
    """A vector times a number, a sign or a condition."""
    factors = st.one_of(
        columns,
        st.just(rowfn.Col("flag")),
        st.sampled_from([-1, 0, 3, 0.1, -1e60]).map(rowfn.Lit),
        keys(0).map(lambda key: rowfn.Lookup((key,), tuple((x,) for x in spread(key)))),
    )
    return st.builds(lambda factor, bits: rowfn.Scaled(vector, factor, bits), factors, st.integers(1, 15))


@functools.cache
def transcendental(depth: int = 1) -> st.SearchStrategy[rowfn.RowFn]:
    """What IEEE 754 does not fix: the last place may differ between libraries."""
    items = numbers(depth)
    power = st.floats(-3, 3).filter(lambda e: abs(e) > 0.01 and e != 0.5) | st.sampled_from([17, 18, -17, 1000, -999])
    return st.builds(rowfn.Maths, st.sampled_from(["ln", "exp"]), items) | st.builds(rowfn.Power, items, power)


# One example of every node, so that none is left to chance.
EXAMPLES: dict[type[rowfn.RowFn], rowfn.RowFn] = {
    rowfn.Arith: rowfn.Col("wide") / rowfn.Col("few"),
    rowfn.Bernstein: rowfn.Bernstein(rowfn.Col("below"), 2),
    rowfn.Bins: rowfn.Bins(rowfn.Col("part"), (0.1, 0.25, 0.5)),
    rowfn.Bucket: rowfn.Bucket(7, 3),
    rowfn.Case: rowfn.Case(((rowfn.Col("few") > 1, rowfn.Col("part")), (rowfn.Col("flag"), rowfn.Col("wide")))),
    rowfn.Clip: rowfn.Clip(rowfn.Col("few") / rowfn.Col("few"), -1, 0.5),
    rowfn.Col: rowfn.Col("below"),
    rowfn.Compare: rowfn.Compare("<", rowfn.Col("few"), rowfn.Col("above")),
    rowfn.Dot: rowfn.Dot(rowfn.Vector((rowfn.Col("few"), rowfn.Col("part"))), (0.3, -7)),
    rowfn.Each: rowfn.Each(rowfn.Col("above")),
    rowfn.Fill: rowfn.Fill(rowfn.Col("day"), "2021-05-05"),
    rowfn.IsIn: rowfn.IsIn(rowfn.Col("grade"), (3, 7)),
    rowfn.IsMissing: rowfn.IsMissing(rowfn.Col("name")),
    rowfn.Lit: rowfn.Lit(0.1),
    rowfn.Logic: rowfn.Logic("or", (rowfn.Col("flag"), rowfn.Col("few") == 0)),
    rowfn.Lookup: rowfn.Lookup(
        (rowfn.Col("city"), rowfn.Each(rowfn.Col("flag"))), tuple((i, -0.3 * i) for i in range(6))
    ),
    rowfn.Nearest: rowfn.Nearest(rowfn.Vector((rowfn.Col("few"), rowfn.Col("above"))), ((0, 100), (2, 104), (0, 100))),
    rowfn.Not: rowfn.Not(rowfn.Col("flag")),
    rowfn.Outer: rowfn.Outer(rowfn.Vector((rowfn.Col("few"), rowfn.Col("part")))),
    rowfn.Position: rowfn.Position(),
    rowfn.Vector: rowfn.Vector((rowfn.Col("few"), rowfn.Col("above"), rowfn.Col("flag"))),
    rowfn.WithinBall: rowfn.WithinBall(rowfn.Vector((rowfn.Col("few"), rowfn.Col("above"))), 3),
    rowfn.WithinL1: rowfn.WithinL1(rowfn.Vector((rowfn.Col("few"), rowfn.Col("above"))), 3),
    rowfn.Choice: rowfn.Choice(((rowfn.Col("few") < 0, 1), (rowfn.Col("flag"), None)), ("old", "young"), 0),
    rowfn.Concat: rowfn.Concat((rowfn.Col("name"), rowfn.Lit("-"), rowfn.Col("name"))),
    rowfn.DatePart: rowfn.DatePart("week", rowfn.Col("day")),
    rowfn.DateTrunc: rowfn.DateTrunc("month", rowfn.Col("day")),
    rowfn.First: rowfn.First((rowfn.Col("part"), rowfn.Col("flag"), rowfn.Lit(3))),
    rowfn.Greatest: rowfn.Greatest((rowfn.Col("few"), rowfn.Col("part"), rowfn.Lit(0))),
    rowfn.IndexOf: rowfn.IndexOf(rowfn.Col("name"), "o"),
    rowfn.Least: rowfn.Least((rowfn.Col("few"), rowfn.Col("part"))),
    rowfn.Length: rowfn.Length(rowfn.Col("name")),
    rowfn.Like: rowfn.Like(rowfn.Col("name"), "%o_"),
    rowfn.Lowered: rowfn.Lowered(rowfn.Col("name")),
    rowfn.Maths: rowfn.Maths("sqrt", rowfn.Col("few")),
    rowfn.Modulo: rowfn.Modulo(rowfn.Col("few"), 2),
    rowfn.Moment: rowfn.Moment("2020-03-01"),
    rowfn.NullIf: rowfn.NullIf(rowfn.Col("few"), rowfn.Lit(0)),
    rowfn.OrMissing: rowfn.OrMissing(rowfn.Col("city")),
    rowfn.Power: rowfn.Power(rowfn.Col("few"), -2),
    rowfn.Relabel: rowfn.Relabel(rowfn.Col("city"), ("north", "centre", "centre")),
    rowfn.Round: rowfn.Round(rowfn.Col("part"), 1),
    rowfn.Route: rowfn.Route((rowfn.Col("city"), rowfn.Each(rowfn.Col("flag"))), ((0, 1, -1, None), (1, -2, -3))),
    rowfn.Scaled: rowfn.Scaled(
        rowfn.Vector((rowfn.Col("few"), rowfn.Col("part"))), rowfn.Col("below") * rowfn.Col("flag")
    ),
    rowfn.StartsWith: rowfn.StartsWith(rowfn.Col("name"), "L"),
    rowfn.Substring: rowfn.Substring(rowfn.Col("name"), 0, 3),
    rowfn.ToDate: rowfn.ToDate(rowfn.Col("moment")),
    rowfn.ToTimestamp: rowfn.ToTimestamp(rowfn.Col("day")),
    rowfn.Trimmed: rowfn.Trimmed(rowfn.Col("name"), "both", "L "),
    rowfn.Uppered: rowfn.Uppered(rowfn.Col("name")),
    rowfn.Value: rowfn.Value(rowfn.Col("grade")),
}
