"""Differentially private statistics over all rows: one draw of noise a query, each at the price of its tolerance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from sulq.errors import QuestionError
from sulq.language.kinds import Floats
from sulq.language.question import Sums, Together
from sulq.language.rowfn import RowFn, lit
from sulq.learn.sq.account import Account, Size
from sulq.learn.sq.oracle import Backend, checked_query, checked_tolerance, numbered
from sulq.learn.sq.query import Query, asked, price_of_counts
from sulq.learn.sq.refusal import too_few_rows
from sulq.learn.sq.sizing import least

Prices = Callable[[Size], list[Fraction]]
Partitions = Sequence[Sequence[RowFn]]


class Joint(Backend):
    """All queries are asked of all rows; each costs what its tolerance needs, and they add up.

    Where the owner declared the size, a query is one sum, divided by it. Else n is secret (E38): a tenth of the
    spend buys a noisy count, by which prices are set, and a query is the pair of sums (phi, 1 - phi),
    whose quotient is the mean: it moves by no more than one sum (SR18), so n costs nothing further. (Under
    replace_one it would; many queries are then sums divided by the count.)

    Accuracy: each answer is within its tau of the mean over the table, all of them together except with
    probability beta, whatever the answers led the asker to: noise is drawn afresh. With
    `population` of the mean over the distribution the rows were drawn from, for queries none of which is
    chosen after another's answer, or all of one family [S2.12, S3.27].
    Source: Dwork08, section 5.1 (docs/theory/statistical-queries.md).
    """

    tabled = True

    def __init__(self, account: Account) -> None:
        self.account = account

    def stats(self, phis: Sequence[RowFn], tau: float) -> Floats:
        """Several means at one debit."""
        tau = checked_tolerance(tau)
        queries = self._queries(phis, tau)
        moving = [query for query in queries if not query.constant]
        prices = self._prices(moving, tau)
        size = self._bought(len(phis), tau, prices)
        return self._answers(queries, moving, prices(size), size)

    def best(self, phis: Sequence[RowFn], part: Fraction) -> tuple[Floats, float]:
        """Several means for a part of the spend, and the tolerance that buys: 1 where it says nothing."""
        account = self.account
        queries = self._queries(phis, 1.0)
        moving = [query for query in queries if not query.constant]
        size = account.size()
        each = self._each(part, len(moving))
        tau = account.margin(size.low)
        for query in moving:
            plan = query.foreseen(account, type(account.probe)(each))
            tau = max(tau, query.reach(plan, account, size))
        return self._answers(queries, moving, [each] * len(moving), size), min(tau, 1.0)

    def cells(self, partitions: Partitions, tau: float) -> list[Floats]:
        """Tables of conditions, a row counting to the first that holds: each table at the price of one count."""
        tau = checked_tolerance(tau)
        tables = self._tables(partitions)
        prices = self._prices_of_tables(tables, tau)
        size = self._bought(sum(map(len, partitions)), tau, prices)
        return self._tabled(tables, partitions, prices(size), size)

    def afford(self, phis: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse what the rest of the spend does not buy, before the first is asked."""
        prices = self._prices([query for query in self._queries(phis, tau) if not query.constant], tau)
        self._bought(times * len(phis), tau, lambda size: [price * times for price in prices(size)])

    def afford_cells(self, conditions: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse what the rest of the spend does not buy, before the first is asked."""
        prices = self._prices_of_tables(self._tables([conditions]), checked_tolerance(tau))
        self._bought(times * len(conditions), tau, lambda size: [price * times for price in prices(size)])

    def _prices(self, queries: list[Query], tau: float) -> Prices:
        account = self.account
        probes = [query.foreseen(account, account.probe) for query in queries]

        def prices(size: Size) -> list[Fraction]:
            return [query.price(probe, account, tau, size) for query, probe in zip(queries, probes, strict=True)]

        return prices

    def _prices_of_tables(self, tables: list[Sums], tau: float) -> Prices:
        account = self.account
        probes = [account.foreseen(table, account.probe, "table") for table in tables]

        def prices(size: Size) -> list[Fraction]:
            # With S' and n' noisy, |S'/n' - S/n| <= (|S' - S| + |n' - n|)/n', since S <= n.
            within = (tau - account.margin(size.low)) * size.rows - size.off
            return [price_of_counts(probe, within, account, size.rows) for probe in probes]

        return prices

    def best_cells(self, partitions: Partitions, part: Fraction) -> tuple[list[Floats], float]:
        """Tables for a part of the spend, and the tolerance that buys."""
        account = self.account
        tables = self._tables(partitions)
        size = account.size()
        each = self._each(part, len(tables))
        plans = [account.foreseen(table, type(account.probe)(each), "table") for table in tables]
        off = max(float(plan.accuracy(account.failing(plan))[0][0]) for plan in plans) + size.off
        tau = off / size.rows + account.margin(size.low) if size.rows >= 1 else 1.0
        return self._tabled(tables, partitions, [each] * len(tables), size), min(tau, 1.0)

    def _queries(self, phis: Sequence[RowFn], tau: float) -> list[Query]:
        account = self.account
        found = [checked_query(phi, tau, account.schema) for phi in phis]
        self._fresh(len(phis))
        return [Query.of(fn, account, paired=account.paired) for fn in found]

    def _tables(self, partitions: Partitions) -> list[Sums]:
        for conditions in partitions:
            for condition in conditions:
                checked_query(condition, 1.0, self.account.schema)
        self._fresh(sum(map(len, partitions)))
        return [Sums((lit(1),), by=(numbered(conditions),)) for conditions in partitions]

    def _fresh(self, queries: int) -> None:
        """Refuse too many queries, and such as sampling has no bound for."""
        account = self.account
        account.room(queries)
        if account.sampling and account.asked and account.family is None:
            raise QuestionError(
                "bad-question",
                "Means of a population are asked in one call: a later query could fit these rows alone.",
                'Use stats([...]), or method="split", or name the family of all queries there might be.',
            )

    def _bought(self, queries: int, tau: float, prices: Prices) -> Size:
        """The size, once it is known that the rest of the spend buys these tolerances; else a refusal."""
        size = self.account.size()
        left = self.account.left
        if sum(prices(size)) > left:
            needed = least(lambda rows: sum(prices(size.at(rows))) <= left)
            raise too_few_rows(tau, queries, needed, str(size))
        return size

    def _each(self, part: Fraction, count: int) -> Fraction:
        """An equal share of a part of the spend."""
        share = self.account.purse.share(part)
        return (share.exact if share is not None else Fraction(1)) / max(count, 1)

    def _answers(self, queries: list[Query], moving: list[Query], prices: list[Fraction], size: Size) -> Floats:
        account, sums = self.account, np.zeros(0)
        if moving:
            answer = account.purse.one(asked(moving, prices), account.part(sum(prices, start=Fraction(0))))
            sums = answer.released.values()[0]
        account.asked += len(queries)
        found, start = [], 0
        for query in queries:
            stop = start if query.constant else start + query.width
            found.append(query.read(sums[start:stop], size))
            start = stop
        return np.array(found)

    def _tabled(self, tables: list[Sums], partitions: Partitions, prices: list[Fraction], size: Size) -> list[Floats]:
        account = self.account
        shares = tuple(price / max(prices) for price in prices)
        answers = account.purse.several(Together(tuple(tables), shares), account.part(sum(prices, start=Fraction(0))))
        account.asked += sum(map(len, partitions))
        rows = max(size.rows, 1.0)
        return [
            np.clip(answer.released.values()[: len(conditions), 0] / rows, 0.0, 1.0)
            for answer, conditions in zip(answers, partitions, strict=True)
        ]
