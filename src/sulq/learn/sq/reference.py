"""Oracles without privacy: a known distribution, the worst answers there may be, and an ordinary sample.

They are for testing learners and for data that is nobody's secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError
from sulq.forms.parameters import checked, whole
from sulq.language.domain import Category, Schema, Text
from sulq.language.kinds import Cells, Integers
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.base import numbers
from sulq.learn.features import cells, numbers_of
from sulq.learn.sq.oracle import StatOracle, checked_query, too_few_rows, too_many_queries
from sulq.learn.sq.planning import sample_block

Push = Callable[[int, float, float], float]
PUSHES: Final[dict[str, Push]] = {
    "up": lambda _, __, ___: 1.0,
    "down": lambda _, __, ___: -1.0,
    "turns": lambda number, __, ___: 1.0 if number % 2 else -1.0,
    # Small means are told too large and others too small: what a threshold at tau likes least.
    "against": lambda _, truth, tau: 1.0 if truth <= tau else -1.0,
}


class PublicTable:
    """An ordinary table with declared columns: a frame, or arrays by name."""

    def __init__(self, columns: Mapping[str, object], data: object) -> None:
        self.schema = Schema.of("table", columns)
        names = list(self.schema.names)
        if isinstance(data, Mapping):
            missing = [name for name in names if name not in data]
            if missing:
                raise QuestionError("bad-table", f"The table has no column {missing[0]!r}.")
            self._cells = {name: np.asarray(data[name]) for name in names}
        else:
            self._cells = cells(data, names)
        sizes = {len(column) for column in self._cells.values()}
        if len(sizes) != 1:
            raise QuestionError("bad-table", "The columns of a table are of one length.")
        self.size = sizes.pop()
        self.seen: dict[int, Cells] = {}

    def rows(self, start: int, stop: int) -> PublicTable:
        """A part of the rows."""
        part = object.__new__(PublicTable)
        part.schema = self.schema
        part._cells = {name: column[start:stop] for name, column in self._cells.items()}
        part.size = max(0, min(stop, self.size) - start)
        part.seen = {}
        return part

    def codes(self, name: str) -> Cells:
        """A column's cells in grid units, clamped to the declared bounds."""
        column, raw = self.schema.find(name), self._cells[name]
        if isinstance(column, (Text, Category)) or column is None:
            return _listed(raw, column)
        values = numbers_of(raw, column, name)
        missing = np.isnan(values)
        units = np.floor(np.where(missing, 0.0, values) / float(column.step) + 0.5)
        return Cells(np.clip(units, column.low, column.high).astype(np.int64), missing)

    def person(self) -> Integers:
        """Every row is a person."""
        return self.position()

    def position(self) -> Integers:
        """Each row's place."""
        return np.arange(self.size, dtype=np.int64)


def _listed(raw: npt.NDArray[np.generic], column: Text | Category | None) -> Cells:
    """Texts as they are, categories as their places on the list; what is not listed is missing (SR21)."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in raw]
    if isinstance(column, Category):
        places = {label: place for place, label in enumerate(column.values)}
        found = np.array([places.get(value, -1) for value in plain], dtype=np.int64)
        return Cells(found, found < 0)
    missing = np.array([value is None for value in plain], dtype=np.bool_)
    return Cells(np.array(["" if value is None else str(value) for value in plain], dtype=object), missing)


class Exact(StatOracle):
    """The mean over a public table, or over a distribution on its rows: what the learners' theorems speak of.

    columns: The declared columns, as for `sulq.connect`.
    data: A frame, or arrays by name.
    weights: How likely each row is; evenly where left out.
    """

    def __init__(self, columns: Mapping[str, object], data: object, weights: npt.ArrayLike | None = None) -> None:
        self.table = PublicTable(columns, data)
        mass = np.ones(self.table.size) if weights is None else np.asarray(weights, dtype=np.float64)
        if mass.shape != (self.table.size,) or not np.all(mass >= 0) or not 0 < mass.sum() < np.inf:
            raise QuestionError("bad-table", "Give a weight of zero or more for each row, not all zero.")
        self._mass = mass / mass.sum()

    def stat(self, phi: RowFn, tau: float) -> float:
        """The mean of phi."""
        query = checked_query(phi, tau, self.table.schema)
        return float(self._mass @ numbers(query, self.table)[0])


class Adversarial(StatOracle):
    """An oracle's answers, each moved by a whole tau up or down [S2.8].

    A learner's theorem must hold whatever the answers are within tau, so its test is this oracle: a learner that
    fails only where noise happens to be unkind would pass a simulation.

    oracle: Whose answers are pushed; a query to it is taken as exact.
    push: One of "up", "down", "turns" and "against", or a function of the query's number,
        the truth and tau that gives how many taus to move by, from -1 to 1.
    """

    def __init__(self, oracle: StatOracle, push: str | Push = "against") -> None:
        if isinstance(push, str) and push not in PUSHES:
            raise QuestionError("bad-parameter", f"push is one of {', '.join(PUSHES)}, or a function.")
        self._oracle = oracle
        self._push = PUSHES[push] if isinstance(push, str) else push
        self.asked = 0

    def stat(self, phi: RowFn, tau: float) -> float:
        """The mean of phi, pushed."""
        truth = self._oracle.stat(phi, tau)
        move = self._push(self.asked, truth, tau)
        self.asked += 1
        return truth + tau * min(max(move, -1.0), 1.0)


class Sample(StatOracle):
    """The mean over block i of the rows answers query i, so that no row is looked at twice [S2.11].

    Accuracy: all of M answers are within their tolerances except with probability beta, however each
    query was chosen after the answers before it, if the rows are an independent sample and a block
    holds ceil(ln(2M/beta)/(2 tau^2)) of them; else the query is refused.
    Source: SQNotes, Theorem 6.

    columns: The declared columns, as for `sulq.connect`.
    data: A frame, or arrays by name, its rows in no particular order.
    queries: How many queries there may be, M.
    beta: The probability with which any answer may be farther off.
    """

    def __init__(self, columns: Mapping[str, object], data: object, *, queries: int, beta: float = 0.05) -> None:
        self.table = PublicTable(columns, data)
        self.queries = whole(queries, "queries", 1, 10**9)
        checked(isinstance(beta, float) and 0 < beta < 1, "beta lies between 0 and 1.")
        self.beta = beta
        self.block = self.table.size // self.queries
        self.asked = 0

    def stat(self, phi: RowFn, tau: float) -> float:
        """The mean of phi over the next block."""
        query = checked_query(phi, tau, self.table.schema)
        if self.asked >= self.queries:
            raise too_many_queries(self.queries)
        needed = sample_block(self.queries, tau, self.beta)
        if needed > self.block:
            raise too_few_rows(tau, self.queries, needed * self.queries, f"there are {self.table.size:,}")
        rows = self.table.rows(self.asked * self.block, (self.asked + 1) * self.block)
        self.asked += 1
        return float(numbers(query, rows)[0].mean())
