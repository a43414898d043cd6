"""Statistics of the whole table: a closed list, the sensitivity of each worked out by the kernel (SR5).

A sum is made of rows one by one; these are not. What each means is said here, what it
is worked out by and how far one person moves it stands in `kernel/whole`. What rests on the owner's word is declared in
the owner's own process and shown to analysts as declared (`sulq.language.estimator`).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Final

from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Int, Real, Schema, Vertices
from sulq.language.rowfn import Col, Position, RowFn
from sulq.language.rowfn.base import figure
from sulq.language.rowfn.keys import Bucket

MAX_COLUMNS: Final = 32
MAX_BLOCKS: Final = 4096
MAX_ESTIMATE: Final = 10.0**15
ESTIMATORS: Final = ("mean", "median", "trimmed_mean", "slope", "correlation")  # those that sulq brings


@dataclass(frozen=True, slots=True)
class Graph:
    """Rows as edges: the columns that name an edge's two ends, and the one that weighs it, if any.

    The vertices are the declared values of `u`, which must be those of `v` too, whether a row
    names them or not; a row that names anything else is left out (SR10). A pair of vertices is an edge if a row names
    it, either way round; a row that names one vertex twice is none. Weights are cut off at 0 and 1; those of several
    rows of a pair add up, to 1 at most. Without a weight column every edge weighs 1.
    """

    u: str
    v: str
    weight: str | None = None

    def __post_init__(self) -> None:
        named = [name for name in (self.u, self.v, self.weight) if name is not None]
        if not all(isinstance(name, str) and name for name in named) or len(set(named)) != len(named):
            raise QuestionError("bad-question", "A graph is named by two different columns, or by three.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it is read from."""
        return (self.u, self.v) if self.weight is None else (self.u, self.v, self.weight)

    def numbered(self, schema: Schema) -> Schema:
        """The declarations with ends that are whole numbers read as vertices: one out of bounds is none (SR10)."""
        return Schema(
            schema.table,
            tuple(
                (name, Vertices(**asdict(column)) if name in (self.u, self.v) and type(column) is Int else column)
                for name, column in schema.columns
            ),
        )

    def unfit(self, schema: Schema, person: str | None) -> tuple[str, str] | None:
        """Why rows of these columns are no edges that can be protected, as a code and a sentence; None if they are.

        Privacy: the vertices must be public, so they are declared; and answers hide edges, so a unit that is a
        vertex, with all its edges, is refused (SR10).
        """
        for name in self.columns:
            if schema.find(name) is None:
                return "unknown-column", f"The graph names {name[:80]!r}, which is not a declared column."
        if person in (self.u, self.v):
            return "node-unit", f"The unit is a vertex of the graph ({person!r})."
        ends = schema.find(self.u), schema.find(self.v)
        if not isinstance(ends[0], (Category, Vertices)) or ends[0] != ends[1]:
            return "wrong-kind", (
                "Both ends of an edge are declared alike: by the list of all vertices, or as whole numbers that "
                f"graph=({self.u[:80]!r}, {self.v[:80]!r}) says are vertices."
            )
        if not ends[0].missing:
            return "wrong-kind", "An end of an edge may be missing: a default would make edges that nobody has."
        if self.weight is not None and not isinstance(schema.find(self.weight), (Bool, Int, Real)):
            return "wrong-kind", "An edge's weight is declared as a number."
        return None


@dataclass(frozen=True, slots=True)
class _OfGraph:
    graph: Graph

    def __post_init__(self) -> None:
        if not isinstance(self.graph, Graph):
            raise QuestionError("bad-question", 'Say which columns are the graph: Graph("u", "v", "weight").')

    @property
    def row(self) -> tuple[RowFn, ...]:
        """What is read of each row."""
        return tuple(Col(name) for name in self.graph.columns)


@dataclass(frozen=True, slots=True)
class MinCut(_OfGraph):
    """The least weight of edges whose removal disconnects the graph; 0 if it is not connected [S4.12].

    Without weights it is the number of edges from being disconnected [S4.11].
    """


@dataclass(frozen=True, slots=True)
class SpanningTree(_OfGraph):
    """The weight of a minimum spanning tree; of a graph of several parts, that of a tree of each together [S4.12].

    `complete`: a pair that is no edge weighs 1, as in the paper; then there is always one tree.
    """

    complete: bool = False


@dataclass(frozen=True, slots=True)
class Triangles(_OfGraph):
    """How many triples of vertices are edges all three.

    `degree`: a bound on how many edges meet at a vertex, known or guessed. Where it holds
    the count is exact; where it does not, triangles at vertices past it count less, down to nothing at
    twice the bound. Far less noise is needed then than for graphs of any kind (docs/theory/graphs.md).
    """

    degree: int | None = None

    def __post_init__(self) -> None:
        _OfGraph.__post_init__(self)
        if self.degree is not None:
            whole(self.degree, "A bound on degrees", 1, 2**20)


@dataclass(frozen=True, slots=True)
class Degrees(_OfGraph):
    """How many vertices have at least 1, 2, ... `most` edges: as many numbers."""

    most: int

    def __post_init__(self) -> None:
        _OfGraph.__post_init__(self)
        whole(self.most, "The most edges of a vertex", 1, 2**16)


@dataclass(frozen=True, slots=True)
class Edges(_OfGraph):
    """For each pair of vertices whether it is an edge: (0, 1), (0, 2), ... (1, 2), ...; a point of the Hamming cube."""


@dataclass(frozen=True, slots=True)
class ToConnected(_OfGraph):
    """How many edges the graph lacks to be connected [S4.11]."""


@dataclass(frozen=True, slots=True)
class ToBoundedDegree(_OfGraph):
    """How many edges must go so that no more than `degree` meet at any vertex [S4.11]."""

    degree: int

    def __post_init__(self) -> None:
        _OfGraph.__post_init__(self)
        whole(self.degree, "A bound on degrees", 0, 2**20)


@dataclass(frozen=True, slots=True)
class _OfColumns:
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        _named(self.columns)

    @property
    def row(self) -> tuple[RowFn, ...]:
        """What is read of each row."""
        return tuple(Col(name) for name in self.columns)


@dataclass(frozen=True, slots=True)
class ToUnique(_OfColumns):
    """How many rows must go so that no two agree in these columns: how far they are from being a key [S4.11]."""


@dataclass(frozen=True, slots=True)
class ToSorted:
    """How many rows must go so that the column never falls from row to row [S4.11]; where places are public."""

    column: str

    def __post_init__(self) -> None:
        _named((self.column,))

    @property
    def row(self) -> tuple[RowFn, ...]:
        """What is read of each row."""
        return (Position(), Col(self.column))


@dataclass(frozen=True, slots=True)
class Occurring(_OfColumns):
    """For each combination of these columns' labels whether any row has it: a point of the Hamming cube."""


@dataclass(frozen=True, slots=True)
class HeavyPersons:
    """How many persons have more rows than are kept of them, and how many others there are: two numbers.

    Of all rows of a table, before any is left out; of a table of which so many rows of each person are kept.
    """

    @property
    def row(self) -> tuple[RowFn, ...]:
        """What is read of each row: nothing but whose it is."""
        return ()


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An estimate made of each of `blocks` parts of the people, each within [low, high], averaged [S4.14].

    `estimator`: one that sulq brings (`ESTIMATORS`), or one the owner has named. Whatever it does with a block, a
    person is in one block and moves one estimate (SR11).
    """

    estimator: str
    columns: tuple[str, ...]
    blocks: int
    low: int | float
    high: int | float
    salt: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, str) or not 1 <= len(self.estimator) <= 200:
            raise QuestionError("bad-question", "An estimator is chosen by its name.")
        _named(self.columns)
        whole(self.blocks, "A number of blocks", 1, MAX_BLOCKS)
        Bucket(self.blocks, self.salt)
        ends = figure(self.low), figure(self.high)
        if not all(math.isfinite(end) and abs(end) <= MAX_ESTIMATE for end in ends) or not ends[0] < ends[1]:
            raise QuestionError("bad-literal", "Estimates lie between two different numbers, the lower one first.")

    @property
    def row(self) -> tuple[RowFn, ...]:
        """What is read of each row."""
        return (Bucket(self.blocks, self.salt), *(Col(name) for name in self.columns))


@dataclass(frozen=True, slots=True)
class Certified:
    """A function of the rows that the owner has named, whose sensitivity is the owner's word [S4.13, S4.27].

    `columns`: those it is declared for. It is of the whole table: no condition, and a missing cell is handed over as
    NaN. `placed`: every row is a person and stands in its place; else rows are handed over sorted.
    """

    name: str
    columns: tuple[str, ...]
    placed: bool = field(default=True, metadata={"wire": "set"})

    def __post_init__(self) -> None:
        _called(self.name)
        _named(self.columns)

    @property
    def row(self) -> tuple[RowFn, ...]:
        """What is read of each row."""
        read = tuple(Col(name) for name in self.columns)
        return (Position(), *read) if self.placed else read


@dataclass(frozen=True, slots=True)
class ToProperty:
    """How many rows, or edges, must come or go until a table has a property that the owner has named [S4.28].

    `columns`: those that the property is of; of a graph, those of both ends. Under replace_one it is how many rows must
    be exchanged for others: half of those that must come or go.
    """

    name: str
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        _called(self.name)
        _named(self.columns)

    @property
    def row(self) -> tuple[RowFn, ...]:
        """What is read of each row."""
        return tuple(Col(name) for name in self.columns)


def _called(name: str) -> None:
    if not isinstance(name, str) or not 1 <= len(name) <= 200:
        raise QuestionError("bad-question", "What the owner has declared is chosen by its name.")


def whole(number: object, what: str, low: int, high: int) -> None:
    """Insist on a whole number within bounds."""
    if type(number) is not int or not low <= number <= high:
        raise QuestionError("bad-literal", f"{what} is a whole number from {low:,} to {high:,}.")


def _named(columns: tuple[str, ...]) -> None:
    several = isinstance(columns, tuple) and 1 <= len(columns) <= MAX_COLUMNS
    if not several or not all(isinstance(name, str) and name for name in columns) or len(set(columns)) != len(columns):
        raise QuestionError("bad-question", f"Name 1 to {MAX_COLUMNS} different columns.")


OfGraph = MinCut | SpanningTree | Triangles | Degrees | Edges | ToConnected | ToBoundedDegree
Statistic = OfGraph | ToUnique | ToSorted | Occurring | HeavyPersons | Aggregated | Certified | ToProperty
OF_GRAPH: Final = (MinCut, SpanningTree, Triangles, Degrees, Edges, ToConnected, ToBoundedDegree)
STATISTICS: Final = (*OF_GRAPH, ToUnique, ToSorted, Occurring, HeavyPersons, Aggregated, Certified, ToProperty)
