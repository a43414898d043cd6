"""Private handles on columns: names, domain and the Oracle behind them; never rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from sulq.answers.answer import Answer
from sulq.answers.oracle import Oracle
from sulq.errors import QuestionError
from sulq.language.domain import Column
from sulq.language.privacy import Loss
from sulq.language.question import Holistic
from sulq.language.relation import Table
from sulq.language.rowfn import Col, RowFn
from sulq.language.space import Cube, Space
from sulq.language.statistic import (
    Degrees,
    Edges,
    Graph,
    MinCut,
    OfGraph,
    SpanningTree,
    ToBoundedDegree,
    ToConnected,
    Triangles,
)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnChoice:
    """Some declared columns of a database, as learners take them: X or y."""

    names: tuple[str, ...]
    oracle: Oracle

    def __post_init__(self) -> None:
        schema = self.oracle.facts.schema  # read once: at a far curator each reading is a call
        for fn in self.row:
            fn.kind(schema)  # refuses what is not declared, naming what is

    @property
    def domain(self) -> tuple[Column, ...]:
        """The columns' declared domains."""
        schema = self.oracle.facts.schema
        found = [schema.find(name) for name in self.names]
        return tuple(column for column in found if column is not None)

    @property
    def row(self) -> tuple[Col, ...]:
        """The columns as row functions."""
        return tuple(Col(name) for name in self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Columns({', '.join(self.names)} of {self.oracle.facts.table}; private)"


@dataclass(frozen=True, slots=True, eq=False)
class GraphTable:
    """A table whose rows are edges; what is asked of it hides edges, and a person's k rows all together.

    Every ask takes `where`, a condition on edges, and gives a stored answer of the same question again
    unless `fresh` (SR12). The graph's own columns are `graph`.
    """

    graph: Graph
    oracle: Oracle
    table: str = ""

    def ask(
        self,
        statistic: OfGraph,
        *,
        spend: Loss | None,
        where: RowFn | None = None,
        space: Space | None = None,
        fresh: bool = False,
    ) -> Answer:
        """Any statistic of a graph; its answer may lie in a space."""
        if not isinstance(fresh, bool):
            raise QuestionError("bad-question", "fresh is True or False.")
        question = Holistic(statistic, where, space, Table(self.table))
        return cast("Answer", self.oracle.ask(question, spend=spend, reuse=not fresh))

    def min_cut(self, *, spend: Loss | None = None, where: RowFn | None = None, fresh: bool = False) -> Answer:
        """The least weight of edges whose removal disconnects the graph; 0 if it is not connected."""
        return self.ask(MinCut(self.graph), spend=spend, where=where, fresh=fresh)

    def spanning_tree_weight(
        self, *, complete: bool = False, spend: Loss | None = None, where: RowFn | None = None, fresh: bool = False
    ) -> Answer:
        """The weight of a minimum spanning tree, of one for each part together; `complete`: absent pairs weigh 1."""
        return self.ask(SpanningTree(self.graph, complete), spend=spend, where=where, fresh=fresh)

    def triangles(
        self,
        *,
        degree: int | None = None,
        spend: Loss | None = None,
        where: RowFn | None = None,
        fresh: bool = False,
    ) -> Answer:
        """How many triangles there are; `degree`: a bound on edges at a vertex, for far less noise."""
        return self.ask(Triangles(self.graph, degree), spend=spend, where=where, fresh=fresh)

    def degrees(
        self, most: int, *, spend: Loss | None = None, where: RowFn | None = None, fresh: bool = False
    ) -> Answer:
        """How many vertices have at least 1, 2, ... `most` edges."""
        return self.ask(Degrees(self.graph, most), spend=spend, where=where, fresh=fresh)

    def to_connected(self, *, spend: Loss | None = None, where: RowFn | None = None, fresh: bool = False) -> Answer:
        """How many edges the graph lacks to be connected."""
        return self.ask(ToConnected(self.graph), spend=spend, where=where, fresh=fresh)

    def to_bounded_degree(
        self, degree: int, *, spend: Loss | None = None, where: RowFn | None = None, fresh: bool = False
    ) -> Answer:
        """How many edges must go so that no more than `degree` meet at a vertex; of 40 vertices at most.

        Exact, and so slow to work out: of larger graphs ask for `degrees`.
        """
        return self.ask(ToBoundedDegree(self.graph, degree), spend=spend, where=where, fresh=fresh)

    def edges(self, *, spend: Loss | None = None, where: RowFn | None = None, fresh: bool = False) -> Answer:
        """For each pair of vertices whether it is an edge, each bit flipped with probability 1/(1 + e^(epsilon/S)).

        S is how many pairs one person moves: the unit's rows, twice that under replace_one.
        """
        return self.ask(Edges(self.graph), spend=spend, where=where, space=Cube(), fresh=fresh)

    def __repr__(self) -> str:
        return f"GraphTable({', '.join(self.graph.columns)} of {self.table or self.oracle.facts.table}; private)"
