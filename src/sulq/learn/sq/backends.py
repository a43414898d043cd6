"""Statistical queries on a database: the bridge over which every algorithm of that model learns privately.

The model of Kearns lets a learner see expectations to within a tolerance and nothing else. Noisy sums answer them
[S0.20, S1.11, S2.12, S3.27], so a learner written for it is private as it stands. Three ways to ask: over all rows,
over disjoint blocks of people, or by repeated noisy sums. `JointQueries` and `SplitQueries` are differentially private:
one draw of noise a query, at the price of its tolerance [S2.12]. `RepeatedQueries` is the SuLQ primitive: the same
noisy sum, asked again and again and averaged [S0.20, S1.11].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Literal, NamedTuple, TypeVar, cast

import numpy as np

from sulq.answers.oracle import ColumnChoice, Oracle, Progress, SpendPlan
from sulq.errors import BudgetExceeded, QuestionError
from sulq.forms.parameters import checked
from sulq.language.kinds import Floats
from sulq.language.law import GaussianLaw, LaplaceLaw, Law
from sulq.language.privacy import Loss
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Bucket, Case, RowFn, lit
from sulq.language.rowfn.base import number
from sulq.language.rowfn.vectors import rounding
from sulq.learn.sq.account import COUNT_FIRST, Account, CountTable, Size, StatQuery
from sulq.learn.sq.oracles import Partitions, PricedOracle, StatOracle, checked_query, too_few_rows
from sulq.learn.sq.planning import checked_tolerance, least, repetitions
from sulq.sql.conditions import row_function

Item = TypeVar("Item", StatQuery, CountTable)
Bought = tuple[list[Item], list[Fraction], Size]  # items, the price of each whose answer must be asked, and the size
MAX_SUMS_AN_ASK: Final = 512  # sums of one ask
MAX_REPETITIONS: Final = 10**15  # more repetitions than any budget holds
Method = Literal["joint", "split"]
METHODS: Final = ("joint", "split")


class JointQueries(PricedOracle):
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
        return self._means(*self._bought(self._queries(phis), tau))

    def best(self, phis: Sequence[RowFn], part: Fraction) -> tuple[Floats, float]:
        """Several means for a part of the spend, and the tolerance that buys: 1 where it says nothing."""
        bought, tau = self._shared(self._queries(phis), part)
        return self._means(*bought), tau

    def cells(self, partitions: Partitions, tau: float) -> list[Floats]:
        """Tables of conditions, a row counting to the first that holds: each table at the price of one count."""
        return self._counts(*self._bought(self._tables(partitions), tau))

    def best_cells(self, partitions: Partitions, part: Fraction) -> tuple[list[Floats], float]:
        """Tables for a part of the spend, and the tolerance that buys."""
        bought, tau = self._shared(self._tables(partitions), part)
        return self._counts(*bought), tau

    def afford(self, phis: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse what the rest of the spend does not buy, before the first is asked."""
        self._bought(self._queries(phis), tau, times)

    def afford_cells(self, conditions: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse what the rest of the spend does not buy, before the first is asked."""
        self._bought(self._tables([conditions]), tau, times)

    def _queries(self, phis: Sequence[RowFn]) -> list[StatQuery]:
        found = [checked_query(phi, 1.0, self.account.schema) for phi in phis]
        self._fresh(len(phis))
        return [StatQuery.of(fn, self.account, paired=self.account.paired) for fn in found]

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

    def _bought(self, items: list[Item], tau: float, times: int = 1) -> Bought[Item]:
        """Items with the prices at which they are within tau, so many times over; a refusal if too much."""
        account, tau = self.account, checked_tolerance(tau)
        moving = [item for item in items if not item.constant]
        probes = [item.foreseen(account, account.probe) for item in moving]

        def prices(size: Size) -> list[Fraction]:
            pairs = zip(moving, probes, strict=True)
            return [times * item.price(probe, account, tau, size) for item, probe in pairs]

        size, left = account.size(), account.left
        if sum(prices(size)) > left:
            needed = least(lambda rows: sum(prices(size.at(rows))) <= left)
            raise too_few_rows(tau, times * sum(item.queries for item in items), needed, str(size))
        return items, prices(size), size

    def _shared(self, items: list[Item], part: Fraction) -> tuple[Bought[Item], float]:
        """Items at equal shares of a part of the spend, and the tolerance that all of them have at these prices."""
        account, moving = self.account, [item for item in items if not item.constant]
        size, share = account.size(), account.spending.share(part)
        each = (share.exact if share is not None else Fraction(1)) / max(len(moving), 1)
        spend = type(account.probe)(each)
        reaches = [item.reach(item.foreseen(account, spend), account, size) for item in moving]
        return (items, [each] * len(moving), size), min(max(reaches, default=account.margin(size.low)), 1.0)

    def _means(self, queries: list[StatQuery], prices: list[Fraction], size: Size) -> Floats:
        account, sums = self.account, np.zeros(0)
        if prices:
            values = tuple(query.value for query in queries if not query.constant)
            question = Sums(values, shares=tuple(price / max(prices) for price in prices))
            sums = account.spending.one(question, account.part(sum(prices, start=Fraction(0)))).released.values()[0]
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
        answers = account.spending.several(question, account.part(sum(prices, start=Fraction(0))))
        account.asked += sum(table.queries for table in tables)
        return [
            np.clip(answer.released.values()[: len(table.conditions), 0] / max(size.rows, 1.0), 0.0, 1.0)
            for answer, table in zip(answers, tables, strict=True)
        ]


class SplitQueries(StatOracle):
    """Each query has people of its own, told apart by a public hash of the person, never by their place (SR11).

    Queries asked in one call are one question over a partition: a person is in one block, so the
    call costs what its dearest query does, not their sum (E26). Calls add up on the ledger; so
    queries that are chosen by earlier answers are better asked of all rows, unless their means must hold for a
    population. The blocks' sizes are secret: a tenth of the spend buys a noisy count of each, at
    one price, and every mean is a quotient of a pair (SR18). Under replace_one a person may move between two
    blocks, and the same noise costs twice as much.

    Accuracy: as `JointQueries`; also for a population, however queries are chosen, since no row is asked twice.
    Source: SQNotes, Theorem 7, as corrected (docs/theory/statistical-queries.md).
    """

    def __init__(self, account: Account, salt: int = 0) -> None:
        self.account = account
        account.counts = account.queries
        self.block = Bucket(account.queries, salt)
        account.spending.oracle.foresee(self._sizes(), spend=account.probe)  # refuses where nobody can be bucketed
        self._counted: list[Size] = []

    def stats(self, phis: Sequence[RowFn], tau: float) -> Floats:
        """Several means, each over a block of its own, at the price of the dearest."""
        account, tau = self.account, checked_tolerance(tau)
        queries = [checked_query(phi, tau, account.schema) for phi in phis]
        account.room(len(phis))
        start, blocks = account.asked, range(account.asked, account.asked + len(phis))
        branches = tuple((self.block == i, query) for i, query in zip(blocks, queries, strict=True))
        query = StatQuery.of(Case(branches, lit(0)), account, paired=True)
        sizes = self.sizes()[start : start + len(phis)]
        if query.constant:
            account.asked += len(phis)
            return np.full(len(phis), float(query.low))
        question = Sums((query.value,), self.block.isin(list(blocks)), (self.block,))
        probe = account.spending.oracle.foresee(question, spend=account.probe)
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
        answer = account.spending.one(question, account.part(price))
        account.asked += len(phis)
        sums = answer.released.values()
        return np.array([query.read(sums[i], size) for i, size in zip(blocks, sizes, strict=True)])

    def sizes(self) -> list[Size]:
        """The noisy sizes of all blocks, bought once, all for the price of one."""
        if not self._counted:
            answer = self.account.spending.one(self._sizes(), COUNT_FIRST)
            off = float(answer.released.radius(self.account.each)[0])
            counts = answer.released.values()[:, 0]
            self._counted = [Size(float(rows), float(rows) - off, answer.spent) for rows in counts]
        return self._counted

    def _sizes(self) -> Sums:
        return Sums((lit(1),), by=(self.block,))


class SumNoise(NamedTuple):
    """The noise of one sum: its law, in units of a step, and how far a row's number may be from its grid."""

    law: Law
    step: float
    away: float


class RepeatedQueries(PricedOracle):
    """Under a SubLinear budget: a query costs t = ceil(2 R ln(q/beta)/(tau^2 n^2)) noisy sums of variance R.

    Where the owner declared no size, one more query is a noisy count, and its own error comes off the
    tolerance (E38). What the rest of the budget does not hold is refused before anything is asked.

    Accuracy: all of q answers are within their tau of the mean over the table except with
    probability beta; the paper's R/(tau n^2) repetitions give a *variance* of tau (E19). With Laplace or
    binomial noise t follows from Chernoff's bound for it.
    Source: BDMN05, section 4.5.
    """

    def __init__(self, account: Account) -> None:
        self.account = account

    def stats(self, phis: Sequence[RowFn], tau: float) -> Floats:
        """Several means, each by its repetitions."""
        account = self.account
        account.room(len(phis))
        queries, times, size = self._times(phis, checked_tolerance(tau), 1)
        return self._averages(queries, times, size)

    def _times(self, phis: Sequence[RowFn], tau: float, again: int) -> tuple[list[RowFn], list[int], Size]:
        """How often each query is asked; a refusal where that, so many times over, is more than is left."""
        account = self.account
        queries = [checked_query(phi, tau, account.schema) for phi in phis]
        noises = [self._noise(query) for query in queries]
        size = self._size(again * len(phis))

        def times(known: Size) -> list[int]:
            tolerated = tau - account.margin(known.low)
            widths = [(tolerated - noise.away) * known.rows - known.off for noise in noises]
            return [often(n.law, width / n.step, account.each) for n, width in zip(noises, widths, strict=True)]

        if again * sum(times(size)) > account.left:
            needed = least(lambda rows: again * sum(times(size.at(rows))) <= account.left)
            raise too_few_rows(tau, again * len(phis), needed, f"{size}, and {int(account.left):,} queries are left")
        return queries, times(size), size

    def best(self, phis: Sequence[RowFn], part: Fraction) -> tuple[Floats, float]:
        """Several means, each by one noisy sum, and the tolerance that has."""
        account = self.account
        queries = [checked_query(phi, 1.0, account.schema) for phi in phis]
        account.room(len(phis))
        noises = [self._noise(query) for query in queries]
        size = self._size(len(phis))
        off = max(n.law.accuracy(account.each) * n.step + n.away * size.rows for n in noises) + size.off
        tau = off / size.rows + account.margin(size.low) if size.rows >= 1 else 1.0
        return self._averages(queries, [1] * len(queries), size), min(tau, 1.0)

    def afford(self, phis: Sequence[RowFn], times: int, tau: float) -> None:
        """Refuse what the rest of the budget does not hold, before the first is asked."""
        self._times(phis, tau, times)

    def _size(self, queries: int) -> Size:
        """The number of rows; counted once, where one query for it and one for each of these are left."""
        needed = queries + (not self.account.known)
        if needed > self.account.left:
            raise BudgetExceeded(
                "budget-exceeded", f"This would ask {needed:,} queries or more; {self.account.left} are left."
            )
        return self.account.size()

    def _noise(self, query: RowFn) -> SumNoise:
        kind = number(query, self.account.schema)
        part = self.account.foreseen(Sums((query,)), None, kind).parts[0]
        return SumNoise(part.laws[0], float(part.steps[0]), float(rounding(kind.step, part.tally.blocks[0].step)))

    def _averages(self, queries: Sequence[RowFn], times: list[int], size: Size) -> Floats:
        values = [i for i, often in enumerate(times) for _ in range(often)]
        sums: list[float] = []
        for start in range(0, len(values), MAX_SUMS_AN_ASK):
            chunk = tuple(queries[i] for i in values[start : start + MAX_SUMS_AN_ASK])
            sums.extend(self.account.spending.one(Sums(chunk)).released.values()[0])
        self.account.asked += len(queries)
        totals = np.bincount(values, weights=sums, minlength=len(queries))
        return np.clip(totals / (np.array(times) * max(size.rows, 1.0)), 0.0, 1.0)


def often(law: Law, within: float, beta: float) -> int:
    """How many draws of a law have an average within a width, except with probability beta.

    Accuracy: normal, S0.20's bound exp(-t x^2/2R). Laplace of scale b: exp(-t I) on each side,
    I = uy + ln(1 - u^2) with y = x/b and u = y/(sqrt(1 + y^2) + 1); the integer law's moments are below the
    continuous one's, sinh being convex. Coins: Hoeffding's 2 exp(-t x^2/2R).
    """
    if within <= 0:
        return MAX_REPETITIONS
    if isinstance(law, LaplaceLaw):
        y = within / float(law.scale)
        u = y / (math.sqrt(1.0 + y * y) + 1.0)
        found = math.log(2.0 / beta) / (u * y + math.log1p(-u * u))
        return min(MAX_REPETITIONS, max(1, math.ceil(found)))
    sides = 1.0 if isinstance(law, GaussianLaw) else 2.0
    return min(MAX_REPETITIONS, repetitions(law.variance(), within, 1.0, sides, beta))


class StatisticalQueries(StatOracle):
    """Answers `stat(phi, tau)`, the mean of a row function to within tau, from noisy sums.

    Each query costs the least that its tolerance needs (`spent`, `remaining`); one that the rest of the spend, or
    of a SubLinear budget, cannot pay is refused before it is asked, with the number of rows that would do.
    A row whose phi is missing counts as zero.

    Privacy: the spend's: whatever is asked, and whatever the answers lead to, is sums of the Oracle [S0.29].
    Accuracy: all answers are within their tolerances of the table's means except with probability beta
    [S0.20, S3.27]; with `population`, of the means of the distribution its rows were drawn from [S2.12].
    Source: BDMN05, section 4.5; Dwork08, section 5.1; SQNotes, Theorem 7.

    db: A database, or private columns of one.
    spend: What all queries may cost together; left out under a SubLinear budget, where each repetition is a query.
    queries: How many queries there may be.
    beta: The probability with which any of them may be farther off.
    method: "joint" asks all rows each query; "split" gives each query people of its own, who are told apart
        by a public hash, so that queries asked together cost as much as one.
    population: Whether answers are to hold for the distribution the rows were drawn from; with "joint" all queries
        are then asked in one call of `stats`.
    family: With `population`, how many queries there might have been: then they may be asked one after another.
    salt: Which hash divides the people.
    progress: Called with the asks done and planned.
    """

    def __init__(
        self,
        db: Oracle | ColumnChoice,
        *,
        spend: Loss | None = None,
        queries: int,
        beta: float = 0.05,
        method: Method = "joint",
        population: bool = False,
        family: int | None = None,
        salt: int = 0,
        progress: Progress | None = None,
    ) -> None:
        oracle = db.oracle if isinstance(db, ColumnChoice) else db
        if not all(hasattr(oracle, name) for name in ("ask", "foresee", "facts")):
            raise QuestionError("bad-question", "StatisticalQueries takes a database.", "Give what sulq.connect gave.")
        spending = SpendPlan(oracle, spend, progress)
        self._spending = spending
        checked(method in METHODS, f"method is one of {', '.join(METHODS)}.")
        self._backend: JointQueries | SplitQueries | RepeatedQueries
        if method == "joint":
            self._backend = of_all_rows(spending, queries=queries, beta=beta, population=population, family=family)
        else:
            checked(not spending.sublinear, "Under a SubLinear budget every sum is a query, so blocks save nothing.")
            self._backend = SplitQueries(Account(spending, queries, beta, sampling=True, family=family), salt)
        self.tabled = self._backend.tabled

    def stat(self, phi: RowFn | str, tau: float) -> float:
        """The mean of phi, a row function within [0, 1] or a condition as text, to within tau.

        Raises:
            QuestionError: `too-few-rows`: the spend does not buy this tolerance; says how many rows would do.
        """
        return self._backend.stat(self._rows([phi])[0], tau)

    def stats(self, phis: Sequence[RowFn | str], tau: float) -> Floats:
        """Several means at one debit, none chosen after another's answer."""
        return self._backend.stats(self._rows(phis), tau)

    def cells(self, partitions: Partitions, tau: float) -> list[Floats]:
        """For each list of conditions, how often each is the first of its list to hold; a list costs as one query."""
        return self._backend.cells([self._rows(conditions) for conditions in partitions], tau)

    def _rows(self, asked: Sequence[object]) -> list[RowFn]:
        """Row functions, and conditions that are texts; what is neither is refused as it is asked."""
        return [cast("RowFn", row_function(phi, self._spending.facts)) for phi in asked]

    @property
    def spent(self) -> Loss:
        """What all queries so far have cost."""
        return self._spending.spent

    @property
    def remaining(self) -> Loss:
        """What is left of the spend; of a SubLinear budget, what the database has left."""
        whole = self._spending.whole
        return self._spending.oracle.facts.remaining if whole is None else type(whole).total(self._backend.account.left)

    @property
    def size(self) -> Size | None:
        """The number of rows as far as it is known: declared, or counted with noise; None before the first query."""
        account = self._backend.account
        return account.size() if account.known else None


def of_all_rows(
    spending: SpendPlan, *, queries: int, beta: float, population: bool = False, family: int | None = None
) -> JointQueries | RepeatedQueries:
    """The backend that asks all rows each query, in the way of the spending's budget; spends nothing."""
    checked(isinstance(population, bool), "population is True or False.")
    account = Account(spending, queries, beta, sampling=population, family=family)
    return RepeatedQueries(account) if spending.sublinear else JointQueries(account)
