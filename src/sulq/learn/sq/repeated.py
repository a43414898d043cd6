"""Statistics by the SuLQ primitive: the same noisy sum, asked again and again and averaged [S0.20, S1.11]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from sulq.errors import BudgetExceeded
from sulq.language.kinds import Floats
from sulq.language.law import GaussianLaw, LaplaceLaw, Law
from sulq.language.question import Sums
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.base import number
from sulq.language.rowfn.vectors import rounding
from sulq.learn.sq.account import Account, Size
from sulq.learn.sq.oracle import PricedOracle, checked_query, checked_tolerance, too_few_rows
from sulq.learn.sq.sizing import least, repetitions

AT_ONCE: Final = 512  # sums of one ask
ENDLESS: Final = 10**15  # more repetitions than any budget holds


class Noise(NamedTuple):
    """The noise of one sum: its law, in units of a step, and how far a row's number may be from its grid."""

    law: Law
    step: float
    away: float


class Repeated(PricedOracle):
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

    def _noise(self, query: RowFn) -> Noise:
        kind = number(query, self.account.schema)
        part = self.account.foreseen(Sums((query,)), None, kind).parts[0]
        return Noise(part.laws[0], float(part.steps[0]), float(rounding(kind.step, part.tally.blocks[0].step)))

    def _averages(self, queries: Sequence[RowFn], times: list[int], size: Size) -> Floats:
        values = [i for i, often in enumerate(times) for _ in range(often)]
        sums: list[float] = []
        for start in range(0, len(values), AT_ONCE):
            chunk = tuple(queries[i] for i in values[start : start + AT_ONCE])
            sums.extend(self.account.purse.one(Sums(chunk)).released.values()[0])
        self.account.asked += len(queries)
        totals = np.bincount(values, weights=sums, minlength=len(queries))
        found: Floats = np.clip(totals / (np.array(times) * max(size.rows, 1.0)), 0.0, 1.0)
        return found


def often(law: Law, within: float, beta: float) -> int:
    """How many draws of a law have an average within a width, except with probability beta.

    Accuracy: normal, S0.20's bound exp(-t x^2/2R). Laplace of scale b: exp(-t I) on each side,
    I = uy + ln(1 - u^2) with y = x/b and u = y/(sqrt(1 + y^2) + 1); the integer law's moments are below the
    continuous one's, sinh being convex. Coins: Hoeffding's 2 exp(-t x^2/2R).
    """
    if within <= 0:
        return ENDLESS
    if isinstance(law, LaplaceLaw):
        y = within / float(law.scale)
        u = y / (math.sqrt(1.0 + y * y) + 1.0)
        found = math.log(2.0 / beta) / (u * y + math.log1p(-u * u))
        return min(ENDLESS, max(1, math.ceil(found)))
    sides = 1.0 if isinstance(law, GaussianLaw) else 2.0
    return min(ENDLESS, repetitions(law.variance(), within, 1.0, sides, beta))
