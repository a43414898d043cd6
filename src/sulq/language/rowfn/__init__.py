"""Row functions: columns, constants and what may be made of them, a class each with its bounds and its NumPy meaning.

Imports errors, domains and kinds. The list is closed (`ROW_FUNCTIONS`, which follows from `__all__`): to add one, see
docs/contribute/add-a-row-function.md. Never here: I/O, or a callable of an analyst.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sulq.errors import QuestionError
from sulq.language.rowfn.base import Col, Lit, RowFn, figure, figures, row, several
from sulq.language.rowfn.conditions import Compare, IsIn, IsMissing, Logic, Not
from sulq.language.rowfn.dates import DatePart, DateTrunc, Moment, ToDate, ToTimestamp, periods
from sulq.language.rowfn.derived_vectors import Scaled, WithinBall, WithinL1
from sulq.language.rowfn.keys import MAX_LABELS, Bins, Bucket, Choice, Each, OrMissing, Relabel, Value
from sulq.language.rowfn.maths import Maths, Modulo, Power, Round
from sulq.language.rowfn.operators import NODES
from sulq.language.rowfn.scalar import Arith, Case, Clip, Fill, First, Greatest, Least, NullIf, Position
from sulq.language.rowfn.texts import (
    Concat,
    IndexOf,
    Length,
    Like,
    Lowered,
    StartsWith,
    Substring,
    Trimmed,
    Uppered,
    like,
)
from sulq.language.rowfn.trees import Route
from sulq.language.rowfn.vectors import Bernstein, Dot, Lookup, Nearest, Outer, Vector, entries

__all__ = [
    "ROW_FUNCTIONS", "Arith", "Bernstein", "Bins", "Bucket", "Case", "Choice", "Clip", "Col", "Compare", "Concat",
    "DatePart", "DateTrunc", "Dot", "Each", "Fill", "First", "Greatest", "IndexOf", "IsIn", "IsMissing", "Least",
    "Length", "Like", "Lit", "Logic", "Lookup", "Lowered", "Maths", "Modulo", "Moment", "Nearest", "Not", "NullIf",
    "OrMissing", "Outer", "Position", "Power", "Relabel", "Round", "Route", "RowFn", "Scaled", "StartsWith",
    "Substring", "ToDate", "ToTimestamp", "Trimmed", "Uppered", "Value", "Vector", "WithinBall", "WithinL1", "bins",
    "bucket", "case", "col", "dot", "each", "like", "lit", "lookup", "named", "nearest", "outer", "periods", "position",
    "route", "row", "scaled", "vector", "within_ball", "within_l1",
]  # fmt: skip

ROW_FUNCTIONS: Final[tuple[type[RowFn], ...]] = tuple(
    found
    for found in map(globals().get, __all__)
    if isinstance(found, type) and issubclass(found, RowFn) and found is not RowFn
)
"""Every row function there is: the classes of the list above, and no others."""
NODES.update({node.__name__: node for node in ROW_FUNCTIONS})


def col(name: str) -> Col:
    """A declared column of the table."""
    if not isinstance(name, str):
        raise QuestionError("bad-question", "col takes a column's name.")
    return Col(name)


def lit(value: object) -> RowFn:
    """A constant."""
    return row(value)


def named(value: object) -> RowFn:
    """A row function as it is, a text as the column of that name."""
    return Col(value) if isinstance(value, str) else row(value)


def case(*branches: tuple[object, object], otherwise: object = None) -> Case:
    """Give the value of the first condition that holds: `case((col("age") < 18, 0), otherwise=1)`."""
    if not all(isinstance(branch, (tuple, list)) and len(branch) == 2 for branch in branches):
        raise QuestionError("bad-question", "A branch is a condition and a value.", "Write case((col('x') > 1, 0)).")
    pairs = tuple((row(when), row(then)) for when, then in branches)
    return Case(pairs, None if otherwise is None else row(otherwise))


def bins(item: object, edges: Iterable[float | int | str]) -> Bins:
    """The interval between edges that a number falls into."""
    return Bins(named(item), tuple(_plain(edge) for edge in several(edges, "Edges")))


def each(item: object) -> Each:
    """Every whole value of a bounded number as a key."""
    return Each(named(item))


def bucket(parts: int, salt: int = 0) -> Bucket:
    """A public random part of the people: one of `parts`, by a hash of the person."""
    return Bucket(parts, salt)


def position() -> Position:
    """The row's place in the table, where the relation keeps places public."""
    return Position()


def by_row(values: Iterable[object]) -> Lookup:
    """A public number for each row, by its place, where the relation keeps places public; 0 past the last.

    It makes functions of a row and its place: `by_row(weights) * col("x")` [S0.7].
    """
    found = several(values, "A number for each row", MAX_LABELS)
    if len(found) >= MAX_LABELS:
        raise QuestionError("too-large", f"At most {MAX_LABELS - 1:,} rows have a number of their own.")
    return Lookup((Each(Clip(Position(), 0, len(found))),), (*((figure(value),) for value in found), (0,)))


def vector(items: Iterable[object], bits: int = 11) -> Vector:
    """Numbers side by side on one grid."""
    return Vector(tuple(named(item) for item in several(items, "Columns of a vector")), bits)


def _as_vector(value: object) -> RowFn:
    if isinstance(value, RowFn):
        return value
    if isinstance(value, Iterable) and not isinstance(value, str):
        return vector(value)
    raise QuestionError("bad-question", "Give a vector(...) or a list of columns.")


def within_ball(items: object, radius: float) -> WithinBall:
    """A vector shortened to an L2 norm of at most `radius`."""
    return WithinBall(_as_vector(items), radius)


def within_l1(items: object, radius: float) -> WithinL1:
    """A vector shortened to an L1 norm, the sum of its absolute coordinates, of at most `radius`."""
    return WithinL1(_as_vector(items), radius)


def dot(items: object, weights: Iterable[float]) -> Dot:
    """The inner product of a vector with public weights."""
    return Dot(_as_vector(items), figures(several(weights, "Weights")))


def nearest(items: object, centres: Iterable[Iterable[float]]) -> Nearest:
    """The index of the nearest of public centres."""
    rows = (several(centre, "A centre's numbers") for centre in several(centres, "Centres"))
    return Nearest(_as_vector(items), tuple(map(figures, rows)))


def outer(items: object) -> Outer:
    """All products of a vector's coordinates, the upper triangle."""
    return Outer(_as_vector(items))


def lookup(keys: object, table: Iterable[object]) -> Lookup:
    """A public table read at the rows' keys."""
    listed = tuple(keys) if isinstance(keys, (list, tuple)) else (keys,)
    return Lookup(tuple(named(key) for key in listed), entries(several(table, "Entries of a table")))


def scaled(items: object, factor: object, bits: int = 11) -> Scaled:
    """A vector times a bounded number of the same row, which is put on a grid of 2^bits units."""
    return Scaled(_as_vector(items), named(factor), bits)


def route(keys: object, tree: Iterable[Iterable[int | None]]) -> Route:
    """The leaf of a public decision tree that a row falls into.

    A node is (number of its key, a child for each label of the key): a later node, a leaf l as -1 - l, or None.
    """
    listed = tuple(keys) if isinstance(keys, (list, tuple)) else (keys,)
    nodes = tuple(
        tuple(None if item is None else _index(item) for item in several(node, "A node's numbers"))
        for node in several(tree, "Nodes of a tree")
    )
    return Route(tuple(named(key) for key in listed), nodes)


def _index(value: object) -> int:
    found = figure(value)
    if not isinstance(found, int):
        raise QuestionError("bad-literal", "A tree is made of whole numbers.")
    return found


def _plain(value: object) -> float | int | str:
    constant = row(value)
    if isinstance(constant, Lit) and not isinstance(constant.value, bool):
        return constant.value
    raise QuestionError("bad-literal", "A constant is needed here.")
