"""Tables and row functions for Hypothesis: every node, every kind of column, the ends of every range."""

from __future__ import annotations

from hypothesis import strategies as st

from sulq.terms.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp
from sulq.terms.kinds import Scalar
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


def codes(column: Column) -> st.SearchStrategy[object]:
    """What may stand in a cell: any code, the ends more often, or nothing."""
    if isinstance(column, Text):
        return st.none() | st.sampled_from(["", "x", "Lod", "\u05d0"])
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
        st.builds(Dot, vectors(0, width=2), st.tuples(LITERALS, LITERALS)),
        keys(0).map(lambda key: Lookup((key,), tuple((x,) for x in spread(key)))),
    )


def plain(fn: RowFn) -> bool:
    """Whether a number carries no clock: those are filled with dates and not mixed with numbers."""
    kind = fn.kind(SCHEMA)
    return isinstance(kind, Scalar) and kind.clock is None


def spread(key: RowFn) -> list[float]:
    """A table of one column for a key: numbers of all sizes."""
    return [(-1.5) ** i for i in range(key.kind(SCHEMA).size)]


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
    )


def several(items: st.SearchStrategy[RowFn]) -> st.SearchStrategy[list[RowFn]]:
    return st.lists(items, min_size=1, max_size=3)


EDGES = st.lists(st.integers(-9, 110) | st.floats(-9, 110), min_size=2, max_size=5, unique_by=float).map(sorted)


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
        st.builds(lambda item, edges: Bins(item, tuple(edges)), numbers(1).filter(plain), EDGES),
        st.builds(Nearest, vectors(0, width=2), st.lists(st.tuples(LITERALS, LITERALS), min_size=1, max_size=4)),
    )


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
        leaves.flatmap(balls).map(Outer),
        st.builds(Bernstein, columns | st.just(Col("flag")), st.sampled_from([1, 2])),
        keys(0).map(lambda key: Lookup((key,), tuple((x, -x, 3.0) for x in spread(key)))),
    )


def balls(vector: Vector) -> st.SearchStrategy[RowFn]:
    """A vector in a ball of 1 to 100 times its step."""
    step = float(vector.kind(SCHEMA).step)
    return st.integers(1, 100).map(lambda units: WithinBall(vector, min(units * step, 1e60)))


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
}
