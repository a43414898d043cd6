"""Statistics of the whole table, as analysts ask for them by name: graphs, distances, an owner's functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import cast

from sulq.answers.answer import Answer
from sulq.answers.call import timed_asks
from sulq.answers.handle_rows import own_rows
from sulq.answers.oracle import GraphTable, Oracle
from sulq.api.questions import Pay, Where
from sulq.errors import QuestionError
from sulq.language.estimator import Certificate, Property, Stated
from sulq.language.facts import Facts
from sulq.language.privacy import Loss
from sulq.language.question import Holistic, Question
from sulq.language.relation import Table
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.base import several
from sulq.language.space import Cube
from sulq.language.statistic import Aggregated, Certified, HeavyPersons, Occurring, ToProperty, ToSorted, ToUnique
from sulq.sql.conditions import condition, row_condition


@timed_asks
class WholeTableAsks(ABC):
    """The asks whose answer is one statistic of all rows, with a sensitivity proved for it or stated by the owner."""

    _oracle: Oracle

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """Everything public."""

    @abstractmethod
    def _answer(self, question: Question, pay: Pay) -> Answer:
        """One ask."""

    def _rows(self, where: Where) -> RowFn | None:
        """A condition as a row function; facts, at a far curator a call, are read for a text alone."""
        return condition(where, self.facts) if isinstance(where, str) else row_condition(own_rows(where, self._oracle))

    @property
    def graph(self) -> GraphTable:
        """The table whose rows are edges: minimum cuts, spanning trees, triangles, degrees."""
        for table in self.facts.catalogue.tables:
            if table.graph is not None:
                name = table.schema.table
                return GraphTable(table.graph, self._oracle, name, partial(_of_edges, self.facts, name))
        raise QuestionError("bad-question", "No graph is declared here.", 'The owner says: graph=("u", "v", "weight").')

    def distance_from_key(
        self,
        columns: Sequence[str] | str,
        *,
        where: Where = None,
        spend: Loss | None = None,
        fresh: bool = False,
        timeout: float | None = None,
    ) -> Answer:
        """How many rows must go so that no two agree in these columns."""
        return self._answer(Holistic(ToUnique(_several(columns)), self._rows(where)), Pay(spend, fresh=fresh))

    def distance_from_order(
        self,
        column: str,
        *,
        where: Where = None,
        spend: Loss | None = None,
        fresh: bool = False,
        timeout: float | None = None,
    ) -> Answer:
        """How many rows must go so that the column never falls; where the places of rows are public."""
        return self._answer(Holistic(ToSorted(column), self._rows(where)), Pay(spend, fresh=fresh))

    def occurring(
        self,
        columns: Sequence[str] | str,
        *,
        where: Where = None,
        spend: Loss | None = None,
        fresh: bool = False,
        timeout: float | None = None,
    ) -> Answer:
        """For each combination of labels whether any row has it: bits, each flipped by itself [S4.16]."""
        return self._answer(Holistic(Occurring(_several(columns)), self._rows(where), Cube()), Pay(spend, fresh=fresh))

    def statistic(
        self, name: str, *, spend: Loss | None = None, fresh: bool = False, timeout: float | None = None
    ) -> Answer:
        """A function of all rows that the owner has declared, by its name; its sensitivity is the owner's word."""
        table, told = self.facts.declared(name, Certificate, Stated)
        asked = Certified(name, told.columns, placed=self.facts.placed(table))
        return self._answer(Holistic(asked), Pay(spend, fresh=fresh))

    def distance_from(
        self,
        name: str,
        *,
        where: Where = None,
        spend: Loss | None = None,
        fresh: bool = False,
        timeout: float | None = None,
    ) -> Answer:
        """How many rows, or edges, must change until the table has a property that the owner has declared, by name."""
        table, told = self.facts.declared(name, Property)
        graph = () if table.graph is None else (table.graph.u, table.graph.v)
        rows = self._rows(where)
        return self._answer(Holistic(ToProperty(name, told.columns or graph), rows), Pay(spend, fresh=fresh))

    def heavy_persons(
        self, *, table: str = "", spend: Loss | None = None, fresh: bool = False, timeout: float | None = None
    ) -> Answer:
        """How many persons have more rows than are kept of them (`heavy`), and how many have not (`others`).

        Bought once by the owner, their share stands beside every answer about the table from then on; bought by an
        analyst, beside that one's own answers. Not of groups, and not under a condition.
        """
        if not isinstance(table, str):
            raise QuestionError("bad-question", "table is the name of a table.")
        name = self.facts.table_of(table).schema.table
        return self._answer(Holistic(HeavyPersons(), over=Table(name)), Pay(spend, fresh=fresh))

    def sample_and_aggregate(
        self,
        estimator: str,
        columns: Sequence[str] | str,
        *,
        blocks: int,
        low: float,
        high: float,
        where: Where = None,
        salt: int = 0,
        spend: Loss | None = None,
        fresh: bool = False,
        timeout: float | None = None,
    ) -> Answer:
        """An estimate of each of so many blocks of people, averaged; whatever the estimator is, one block moves.

        Args:
            estimator: mean, median, trimmed_mean, slope, correlation, or one the owner has named.
            columns: what it reads.
            blocks: into how many parts the people are divided: more of them need less noise, and estimate worse.
            low: estimates are cut off here,
            high: and here.
            where: rows that count.
            salt: another number gives another division of the people.
            spend: what to pay.
            fresh: new noise although the same was answered before.
            timeout: for how many seconds to wait.
        """
        asked = Aggregated(estimator, _several(columns), blocks, low, high, salt)
        return self._answer(Holistic(asked, self._rows(where)), Pay(spend, fresh=fresh))


def _several(columns: object) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else cast("tuple[str, ...]", several(columns, "Columns"))


def _of_edges(facts: Facts, table: str, where: object) -> RowFn | None:
    """A condition on the edges of a graph."""
    return condition(cast("Where", where), facts, table)
