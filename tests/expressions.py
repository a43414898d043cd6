"""Tables and row functions for Hypothesis: every node, every kind of column, the ends of every range."""

from __future__ import annotations

import functools

from hypothesis import strategies as st

from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.kinds import Scalar
from sulq.language.rowfn import (
    Arith,
    Bernstein,
    Bins,
    Bucket,
    Case,
    Choice,
    Clip,
    Col,
    Compare,
    Concat,
    DatePart,
    DateTrunc,
    Dot,
    Each,
    Fill,
    First,
    Greatest,
    IndexOf,
    IsIn,
    IsMissing,
    Least,
    Length,
    Like,
    Lit,
    Logic,
    Lookup,
    Lowered,
    Maths,
    Modulo,
    Moment,
    Nearest,
    Not,
    NullIf,
    OrMissing,
    Outer,
    Position,
    Power,
    Relabel,
    Round,
    Route,
    RowFn,
    Scaled,
    StartsWith,
    Substring,
    ToDate,
    ToTimestamp,
    Trimmed,
    Uppered,
    Value,
    Vector,
    WithinBall,
)
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


columns = st.sampled_from(NUMBERS).map(Col)
literals = LITERALS.map(Lit)


@functools.cache
def numbers(depth: int = 3) -> st.SearchStrategy[RowFn]:
    """Numbers, and conditions used as such."""
    leaves = columns | literals | st.just(Position())
    if depth == 0:
        return leaves
    inner = numbers(depth - 1)
    bounds = st.tuples(LITERALS, LITERALS).map(sorted)
    return st.one_of(
        leaves,
        st.builds(Arith, st.sampled_from("+-*/"), inner, inner),
        st.builds(Arith, st.sampled_from("+-*/"), columns, columns),
        st.builds(lambda item, ends: Clip(item, *ends), inner, bounds),
        st.builds(Fill, inner.filter(plain), LITERALS),
        st.builds(
            lambda pairs, last: Case(tuple(pairs), last),
            st.lists(st.tuples(conditions(depth - 1), inner.filter(plain)), min_size=1, max_size=2),
            st.none() | inner.filter(plain),
        ),
        conditions(depth - 1),
        st.builds(Maths, st.sampled_from(EXACT), inner),
        st.builds(Round, inner, st.integers(-15, 15)),
        st.builds(Power, inner, st.integers(-16, 16) | st.just(0.5)),
        st.builds(Modulo, inner, LITERALS.filter(bool)),
        st.builds(Least, several(inner.filter(plain)).map(tuple)),
        st.builds(Greatest, several(inner.filter(plain)).map(tuple)),
        st.builds(First, several(inner.filter(plain)).map(tuple)),
        st.builds(NullIf, inner.filter(plain), inner.filter(plain)),
        st.builds(DatePart, st.sampled_from(PARTS), dates(depth - 1)),
        dates(depth - 1),
        keys(0).filter(numbered).map(Value),
        st.builds(Length, words(depth - 1)),
        st.builds(IndexOf, words(depth - 1), st.sampled_from(["", "o", "a", "\u0301", "xyz"])),
        st.builds(Dot, vectors(0, width=2), st.tuples(LITERALS, LITERALS)),
        keys(0).map(lambda key: Lookup((key,), tuple((x,) for x in spread(key)))),
    )


def plain(fn: RowFn) -> bool:
    """Whether a number carries no clock: those are filled with dates and not mixed with numbers."""
    kind = fn.kind(SCHEMA)
    return isinstance(kind, Scalar) and kind.clock is None


def numbered(key: RowFn) -> bool:
    """Whether a key's labels are numbers."""
    return all(type(label) in (int, float) for label in key.kind(SCHEMA).labels)


@functools.cache
def dates(depth: int = 1) -> st.SearchStrategy[RowFn]:
    """Dates and moments."""
    leaves = st.sampled_from(
        [
            Col("day"),
            Col("moment"),
            Moment("0001-01-01"),
            Moment("9999-12-31"),
            Moment("2024-12-30"),
            Moment("1969-12-31T23:59:59.999999", "timestamp"),
            Moment("2100-02-28T12:34:56.789", "timestamp"),
        ]
    )
    if depth <= 0:
        return leaves
    inner = dates(depth - 1)
    days = st.sampled_from(["few", "above", "wide"]).map(Col) | st.integers(-(10**6), 10**7).map(Lit)
    return st.one_of(
        leaves,
        st.builds(DateTrunc, st.sampled_from(PERIODS), inner),
        st.builds(ToDate, inner),
        st.builds(ToTimestamp, inner),
        st.builds(Arith, st.sampled_from("+-"), inner, days),
        st.builds(lambda a, b: First((ToDate(a), b)), inner, st.sampled_from([Col("day"), Moment("2020-03-01")])),
    )


@functools.cache
def words(depth: int = 1) -> st.SearchStrategy[RowFn]:
    """Texts."""
    leaves = st.just(Col("name")) | st.sampled_from(TEXTS).map(Lit)
    if depth <= 0:
        return leaves
    inner = words(depth - 1)
    return st.one_of(
        leaves,
        st.builds(Lowered, inner),
        st.builds(Uppered, inner),
        st.builds(
            Trimmed, inner, st.sampled_from(["both", "left", "right"]), st.sampled_from([" ", "aL", "", "\u00e9"])
        ),
        st.builds(Substring, inner, st.integers(-3, 8), st.none() | st.integers(0, 5)),
        st.builds(lambda items: Concat(tuple(items)), several(inner)),
        st.builds(lambda items: First(tuple(items)), several(inner)),
        st.builds(NullIf, inner, inner),
    )


PATTERNS = st.lists(
    st.sampled_from(["%", "_", "a", "o", "Lod", "\u00e9", "\\%", "\\_", "\\\\", ".", "*", "["]), max_size=5
)


def patterns() -> st.SearchStrategy[str]:
    """Patterns of LIKE, some of them escaped."""
    return PATTERNS.map("".join)


def spread(key: RowFn) -> list[float]:
    """A table of one column for a key: numbers of all sizes."""
    return [(-1.5) ** i for i in range(key.kind(SCHEMA).size)]


@functools.cache
def conditions(depth: int = 2) -> st.SearchStrategy[RowFn]:
    """Conditions of all shapes."""
    order = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    equal = st.sampled_from(["==", "!="])
    text = st.sampled_from(["Lod", "x", ""])
    leaves = st.one_of(
        st.just(Col("flag")),
        st.booleans().map(Lit),
        st.builds(lambda op, c, v: Compare(op, c, Lit(v)), order, columns.filter(plain), LITERALS),
        st.builds(lambda op, c, v: Compare(op, Lit(v), c), order, columns.filter(plain), LITERALS),
        st.builds(lambda op, v: Compare(op, Col("city"), Lit(v)), equal, st.sampled_from(["Haifa", "Lod", "Yafo"])),
        st.builds(lambda op: Compare(op, Col("city"), Col("town")), equal),
        st.builds(lambda op, v: Compare(op, Col("grade"), Lit(v)), equal, st.sampled_from([7, -1, 3])),
        st.builds(lambda op, v: Compare(op, Col("name"), Lit(v)), equal, text),
        st.builds(lambda op, v: Compare(op, Col("flag"), Lit(v)), equal, st.sampled_from([True, False, 0, 1])),
        st.builds(lambda op, v: Compare(op, Col("day"), Lit(v)), order, st.sampled_from(["2020-02-29", "2019-01-01"])),
        st.builds(
            lambda op, v: Compare(op, Col("moment"), Lit(v)),
            order,
            st.sampled_from(["1970-01-01T00:00:00", "1969-12-31T23:59:59.5"]),
        ),
        st.builds(lambda v: IsIn(Col("name"), tuple(v)), st.lists(text, max_size=3)),
        st.builds(lambda v: IsIn(Col("city"), tuple(v)), st.lists(st.sampled_from(["Lod", "Yafo"]), max_size=3)),
        st.builds(lambda c, v: IsIn(c, tuple(v)), columns.filter(plain), st.lists(LITERALS, max_size=3)),
    )
    if depth == 0:
        return leaves
    inner = conditions(depth - 1)
    values = numbers(depth - 1).filter(plain)
    return st.one_of(
        leaves,
        st.builds(lambda op, items: Logic(op, tuple(items)), st.sampled_from(["and", "or"]), several(inner)),
        st.builds(Not, inner),
        st.builds(Compare, order, values, values),
        st.builds(IsMissing, numbers(depth - 1) | inner | st.sampled_from(["city", "name"]).map(Col)),
        st.builds(Fill, inner, st.booleans()),
        st.builds(First, several(inner).map(tuple)),
        st.builds(NullIf, inner, inner),
        st.builds(Compare, equal, words(depth - 1), words(depth - 1)),
        st.builds(Compare, order, dates(depth - 1).map(ToDate), dates(depth - 1).map(ToDate)),
        st.builds(StartsWith, words(depth - 1), st.sampled_from(["", "L", "Lo", "\u00e9"])),
        st.builds(Like, words(depth - 1), patterns()),
        st.builds(IsIn, words(depth - 1), st.lists(st.sampled_from(TEXTS), max_size=3).map(tuple)),
        st.builds(IsMissing, words(depth - 1)),
    )


def several(items: st.SearchStrategy[RowFn]) -> st.SearchStrategy[list[RowFn]]:
    return st.lists(items, min_size=1, max_size=3)


EDGES = st.lists(st.integers(-9, 110) | st.floats(-9, 110), min_size=2, max_size=5, unique_by=float).map(sorted)


@functools.cache
def keys(depth: int = 1) -> st.SearchStrategy[RowFn]:
    """Keys of all shapes."""
    leaves = st.one_of(
        st.sampled_from(["city", "grade"]).map(Col),
        st.sampled_from(["few", "above", "flag", "city", "day"]).map(lambda name: Each(Col(name))),
        st.builds(lambda name, edges: Bins(Col(name), tuple(edges)), st.sampled_from(["few", "above", "part"]), EDGES),
        st.just(Bins(Col("day"), ("2020-02-28", "2020-03-01", "2020-03-03"))),
        st.builds(Bucket, st.integers(1, 50), st.integers(-3, 3)),
    )
    if depth == 0:
        return leaves
    return st.one_of(
        leaves,
        conditions(1).map(Each),
        choices(),
        leaves.map(OrMissing),
        leaves.flatmap(relabels),
        leaves.flatmap(relabels).map(OrMissing),
        st.just(First((Col("city"), Col("town")))),
        st.sampled_from(["Lod", "Yafo"]).map(lambda label: NullIf(Col("city"), Lit(label))),
        st.just(NullIf(Col("city"), Col("town"))),
        st.builds(lambda item, edges: Bins(item, tuple(edges)), numbers(1).filter(plain), EDGES),
        st.builds(Nearest, vectors(0, width=2), st.lists(st.tuples(LITERALS, LITERALS), min_size=1, max_size=4)),
        st.lists(leaves, min_size=1, max_size=3).flatmap(trees),
    )


@st.composite
def trees(draw: st.DrawFn, asked: list[RowFn]) -> Route:
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
    return Route(tuple(asked), tuple(nodes))


@functools.cache
def choices() -> st.SearchStrategy[RowFn]:
    """Cases of constants."""
    labels = st.sampled_from([("low", "high", "odd"), (10, -2.5, 7), ("x", "y", "z z")])
    place = st.none() | st.integers(0, 2)
    branches = st.lists(st.tuples(conditions(1), place), min_size=1, max_size=4).map(tuple)
    return st.builds(Choice, branches, labels, place)


def relabels(key: RowFn) -> st.SearchStrategy[RowFn]:
    """A key under other names, some of them shared or none."""
    size = key.kind(SCHEMA).size
    texts, figures = st.sampled_from(["b", "a", "c", None]), st.sampled_from([3, -1, 0.5, None])
    lists = st.lists(texts, min_size=size, max_size=size) | st.lists(figures, min_size=size, max_size=size)
    return lists.filter(any).map(lambda labels: Relabel(key, tuple(labels)))


@functools.cache
def vectors(depth: int = 1, width: int | None = None) -> st.SearchStrategy[RowFn]:
    """Vectors of all shapes; of one width where that is asked."""
    size = {"min_size": width or 1, "max_size": width or 3}
    items = columns | st.just(Col("flag")) | st.just(Position())
    leaves = st.builds(lambda v, bits: Vector(tuple(v), bits), st.lists(items, **size), st.integers(1, 11))
    if depth == 0:
        return leaves
    return st.one_of(
        leaves,
        leaves.map(Outer),
        leaves.flatmap(balls),
        (leaves | leaves.flatmap(balls)).flatmap(multiples),
        leaves.flatmap(balls).map(Outer),
        st.builds(Bernstein, columns | st.just(Col("flag")), st.sampled_from([1, 2])),
        keys(0).map(lambda key: Lookup((key,), tuple((x, -x, 3.0) for x in spread(key)))),
    )


def balls(vector: Vector) -> st.SearchStrategy[RowFn]:
    """A vector in a ball of 1 to 100 times its step."""
    step = float(vector.kind(SCHEMA).step)
    return st.integers(1, 100).map(lambda units: WithinBall(vector, min(units * step, 1e60)))


def multiples(vector: RowFn) -> st.SearchStrategy[RowFn]:
    """A vector times a number, a sign or a condition."""
    factors = st.one_of(
        columns,
        st.just(Col("flag")),
        st.sampled_from([-1, 0, 3, 0.1, -1e60]).map(Lit),
        keys(0).map(lambda key: Lookup((key,), tuple((x,) for x in spread(key)))),
    )
    return st.builds(lambda factor, bits: Scaled(vector, factor, bits), factors, st.integers(1, 15))


@functools.cache
def transcendental(depth: int = 1) -> st.SearchStrategy[RowFn]:
    """What IEEE 754 does not fix: the last place may differ between libraries."""
    items = numbers(depth)
    power = st.floats(-3, 3).filter(lambda e: abs(e) > 0.01 and e != 0.5) | st.sampled_from([17, 18, -17, 1000, -999])
    return st.builds(Maths, st.sampled_from(["ln", "exp"]), items) | st.builds(Power, items, power)


# One example of every node, so that none is left to chance.
EXAMPLES: dict[type[RowFn], RowFn] = {
    Arith: Col("wide") / Col("few"),
    Bernstein: Bernstein(Col("below"), 2),
    Bins: Bins(Col("part"), (0.1, 0.25, 0.5)),
    Bucket: Bucket(7, 3),
    Case: Case(((Col("few") > 1, Col("part")), (Col("flag"), Col("wide")))),
    Clip: Clip(Col("few") / Col("few"), -1, 0.5),
    Col: Col("below"),
    Compare: Compare("<", Col("few"), Col("above")),
    Dot: Dot(Vector((Col("few"), Col("part"))), (0.3, -7)),
    Each: Each(Col("above")),
    Fill: Fill(Col("day"), "2021-05-05"),
    IsIn: IsIn(Col("grade"), (3, 7)),
    IsMissing: IsMissing(Col("name")),
    Lit: Lit(0.1),
    Logic: Logic("or", (Col("flag"), Col("few") == 0)),
    Lookup: Lookup((Col("city"), Each(Col("flag"))), tuple((i, -0.3 * i) for i in range(6))),
    Nearest: Nearest(Vector((Col("few"), Col("above"))), ((0, 100), (2, 104), (0, 100))),
    Not: Not(Col("flag")),
    Outer: Outer(Vector((Col("few"), Col("part")))),
    Position: Position(),
    Vector: Vector((Col("few"), Col("above"), Col("flag"))),
    WithinBall: WithinBall(Vector((Col("few"), Col("above"))), 3),
    Choice: Choice(((Col("few") < 0, 1), (Col("flag"), None)), ("old", "young"), 0),
    Concat: Concat((Col("name"), Lit("-"), Col("name"))),
    DatePart: DatePart("week", Col("day")),
    DateTrunc: DateTrunc("month", Col("day")),
    First: First((Col("part"), Col("flag"), Lit(3))),
    Greatest: Greatest((Col("few"), Col("part"), Lit(0))),
    IndexOf: IndexOf(Col("name"), "o"),
    Least: Least((Col("few"), Col("part"))),
    Length: Length(Col("name")),
    Like: Like(Col("name"), "%o_"),
    Lowered: Lowered(Col("name")),
    Maths: Maths("sqrt", Col("few")),
    Modulo: Modulo(Col("few"), 2),
    Moment: Moment("2020-03-01"),
    NullIf: NullIf(Col("few"), Lit(0)),
    OrMissing: OrMissing(Col("city")),
    Power: Power(Col("few"), -2),
    Relabel: Relabel(Col("city"), ("north", "centre", "centre")),
    Round: Round(Col("part"), 1),
    Route: Route((Col("city"), Each(Col("flag"))), ((0, 1, -1, None), (1, -2, -3))),
    Scaled: Scaled(Vector((Col("few"), Col("part"))), Col("below") * Col("flag")),
    StartsWith: StartsWith(Col("name"), "L"),
    Substring: Substring(Col("name"), 0, 3),
    ToDate: ToDate(Col("moment")),
    ToTimestamp: ToTimestamp(Col("day")),
    Trimmed: Trimmed(Col("name"), "both", "L "),
    Uppered: Uppered(Col("name")),
    Value: Value(Col("grade")),
}
