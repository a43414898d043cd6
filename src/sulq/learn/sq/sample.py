"""Statistics from an ordinary sample: a fresh block of rows for each query, so that none is looked at twice [S2.11]."""

from __future__ import annotations

from collections.abc import Mapping

from sulq.forms.parameters import checked, whole
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.scalar import numbers
from sulq.learn.sq.oracle import Backend, checked_query
from sulq.learn.sq.refusal import too_few_rows, too_many_queries
from sulq.learn.sq.sizing import sample_block
from sulq.learn.sq.table import Table


class Sample(Backend):
    """The mean over block i of the rows answers query i; no noise, no privacy.

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
        self.table = Table(columns, data)
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
