"""Differentially private statistics over all rows: one draw of noise a query, each at the price of its tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sulq.errors import QuestionError
from sulq.language.kinds import Floats
from sulq.language.question import Sums, Together
from sulq.language.rowfn import RowFn
from sulq.learn.sq.account import Account, Size
from sulq.learn.sq.oracle import Partitions, PricedOracle, checked_query, checked_tolerance, too_few_rows
from sulq.learn.sq.query import CountTable, Query
from sulq.learn.sq.sizing import least

Items = Sequence[Query] | Sequence[CountTable]


class Joint(PricedOracle):
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
        return self._means(queries, *self._bought(queries, len(phis), tau))

    def best(self, phis: Sequence[RowFn], part: Fraction) -> tuple[Floats, float]:
        """Several means for a part of the spend, and the tolerance that buys: 1 where it says nothing."""
        queries = self._queries(phis, 1.0)
        prices, size, tau = self._shared(queries, part)
        return self._means(queries, prices, size), tau

    def cells(self, partitions: Partitions, tau: float) -> list[Floats]:
        """Tables of conditions, a row counting to the first that holds: each table at the price of one count."""
        tau = checked_tolerance(tau)
        tables = self._tables(partitions)
        return self._counts(tables, *self._bought(tables, sum(map(len, partitions)), tau))

    def best_cells(self, partitions: Partitions, part: Fraction) -> tuple[list[Floats], float]:
        """Tables for a part of the spend, and the tolerance that buys."""
        tables = self._tables(partitions)
        prices, size, tau = self._shared(tables, part)
        return self._counts(tables, prices, size), tau

    def afford(self, phis: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse what the rest of the spend does not buy, before the first is asked."""
        self._bought(self._queries(phis, tau), len(phis), tau, times)

    def afford_cells(self, conditions: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse what the rest of the spend does not buy, before the first is asked."""
        tau = checked_tolerance(tau)
        self._bought(self._tables([conditions]), len(conditions), tau, times)

    def _queries(self, phis: Sequence[RowFn], tau: float) -> list[Query]:
        account = self.account
        found = [checked_query(phi, tau, account.schema) for phi in phis]
        self._fresh(len(phis))
        return [Query.of(fn, account, paired=account.paired) for fn in found]

    def _tables(self, partitions: Partitions) -> list[CountTable]:
        for conditions in partitions:
            for condition in conditions:
                checked_query(condition, 1.0, self.account.schema)
        self._fresh(sum(map(len, partitions)))
        return [CountTable(conditions) for conditions in partitions]

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

    def _bought(self, items: Items, queries: int, tau: float, times: int = 1) -> tuple[list[Fraction], Size]:
        """The prices at which items are within tau, so many times over, and the size; a refusal if too much."""
        account = self.account
        moving = _moving(items)
        probes = [item.foreseen(account, account.probe) for item in moving]

        def prices(size: Size) -> list[Fraction]:
            pairs = zip(moving, probes, strict=True)
            return [times * item.price(probe, account, tau, size) for item, probe in pairs]

        size, left = account.size(), account.left
        if sum(prices(size)) > left:
            needed = least(lambda rows: sum(prices(size.at(rows))) <= left)
            raise too_few_rows(tau, times * queries, needed, str(size))
        return prices(size), size

    def _shared(self, items: Items, part: Fraction) -> tuple[list[Fraction], Size, float]:
        """Equal shares of a part of the spend, the size, and the tolerance that all items have at these prices."""
        account, moving = self.account, _moving(items)
        size, share = account.size(), account.purse.share(part)
        each = (share.exact if share is not None else Fraction(1)) / max(len(moving), 1)
        spend = type(account.probe)(each)
        reaches = [item.reach(item.foreseen(account, spend), account, size) for item in moving]
        return [each] * len(moving), size, min(max(reaches, default=account.margin(size.low)), 1.0)

    def _means(self, queries: list[Query], prices: list[Fraction], size: Size) -> Floats:
        account, sums = self.account, np.zeros(0)
        if prices:
            values = tuple(query.value for query in queries if not query.constant)
            question = Sums(values, shares=tuple(price / max(prices) for price in prices))
            sums = account.purse.one(question, account.part(sum(prices, start=Fraction(0)))).released.values()[0]
        account.asked += len(queries)
        found, start = [], 0
        for query in queries:
            stop = start if query.constant else start + query.width
            found.append(query.read(sums[start:stop], size))
            start = stop
        return np.array(found)

    def _counts(self, tables: list[CountTable], prices: list[Fraction], size: Size) -> list[Floats]:
        account = self.account
        shares = tuple(price / max(prices) for price in prices)
        question = Together(tuple(table.question for table in tables), shares)
        answers = account.purse.several(question, account.part(sum(prices, start=Fraction(0))))
        account.asked += sum(len(table.conditions) for table in tables)
        return [
            np.clip(answer.released.values()[: len(table.conditions), 0] / max(size.rows, 1.0), 0.0, 1.0)
            for answer, table in zip(answers, tables, strict=True)
        ]


def _moving(items: Items) -> list[Query | CountTable]:
    """The items whose answer is not known without asking."""
    return [item for item in items if not item.constant]
