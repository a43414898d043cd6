"""Differentially private statistics over disjoint blocks of people: block i answers query i [S2.12]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sulq.language.kinds import Floats
from sulq.language.question import Sums
from sulq.language.rowfn import Bucket, Case, RowFn, lit
from sulq.learn.sq.account import COUNT_FIRST, Account, Size
from sulq.learn.sq.oracle import StatOracle, checked_query, checked_tolerance, too_few_rows
from sulq.learn.sq.query import Query
from sulq.learn.sq.sizing import least


class Split(StatOracle):
    """Each query has people of its own, told apart by a public hash of the person, never by their place (SR11).

    Queries asked in one call are one question over a partition: a person is in one block, so the
    call costs what its dearest query does, not their sum (E26). Calls add up on the ledger; so
    queries that are chosen by earlier answers are better asked of all rows, unless their means must hold for a
    population. The blocks' sizes are secret: a tenth of the spend buys a noisy count of each, at
    one price, and every mean is a quotient of a pair (SR18). Under replace_one a person may move between two
    blocks, and the same noise costs twice as much.

    Accuracy: as `Joint`; also for a population, however queries are chosen, since no row is asked twice.
    Source: SQNotes, Theorem 7, as corrected (docs/theory/statistical-queries.md).
    """

    def __init__(self, account: Account, salt: int = 0) -> None:
        self.account = account
        account.counts = account.queries
        self.block = Bucket(account.queries, salt)
        account.purse.oracle.foresee(self._sizes(), spend=account.probe)  # refuses where nobody can be bucketed
        self._counted: list[Size] = []

    def stats(self, phis: Sequence[RowFn], tau: float) -> Floats:
        """Several means, each over a block of its own, at the price of the dearest."""
        account, tau = self.account, checked_tolerance(tau)
        queries = [checked_query(phi, tau, account.schema) for phi in phis]
        account.room(len(phis))
        start, blocks = account.asked, range(account.asked, account.asked + len(phis))
        branches = tuple((self.block == i, query) for i, query in zip(blocks, queries, strict=True))
        query = Query.of(Case(branches, lit(0)), account, paired=True)
        sizes = self.sizes()[start : start + len(phis)]
        if query.constant:
            account.asked += len(phis)
            return np.full(len(phis), float(query.low))
        question = Sums((query.value,), self.block.isin(list(blocks)), (self.block,))
        probe = account.purse.oracle.foresee(question, spend=account.probe)
        price = max(query.price(probe, account, tau, size) for size in sizes)
        if price > account.left:
            left = account.left
            needed = least(lambda rows: query.price(probe, account, tau, sizes[0].at(rows)) <= left)
            least_known = min(size.low for size in sizes)
            known = (
                f"the smallest of {account.queries:,} blocks has about {max(least_known, 0):,.0f}, "
                f"as a count that cost {sizes[0].cost} found"
            )
            raise too_few_rows(tau, account.queries, needed * account.queries, known)
        answer = account.purse.one(question, account.part(price))
        account.asked += len(phis)
        sums = answer.released.values()
        return np.array([query.read(sums[i], size) for i, size in zip(blocks, sizes, strict=True)])

    def sizes(self) -> list[Size]:
        """The noisy sizes of all blocks, bought once, all for the price of one."""
        if not self._counted:
            answer = self.account.purse.one(self._sizes(), COUNT_FIRST)
            off = float(answer.released.radius(self.account.each)[0])
            counts = answer.released.values()[:, 0]
            self._counted = [Size(float(rows), float(rows) - off, answer.spent) for rows in counts]
        return self._counted

    def _sizes(self) -> Sums:
        return Sums((lit(1),), by=(self.block,))
