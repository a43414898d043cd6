"""One query as a database is asked it: a sum, or the pair whose quotient is the mean; its price, its width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from sulq.answers.plan import Plan, price_of_mean, price_of_sums, width_of_mean
from sulq.answers.report_law import of_reports
from sulq.language.kinds import Floats
from sulq.language.privacy import SMALLEST, Loss
from sulq.language.question import Sums
from sulq.language.rowfn import Bernstein, RowFn, lit
from sulq.language.rowfn.vectors import bounded, rounding, scalar_grid
from sulq.learn.sq.account import NEVER, Account, Size
from sulq.learn.sq.oracle import numbered


@dataclass(frozen=True, slots=True, eq=False)
class StatQuery:
    """A row function within [0, 1] and what is summed for its mean.

    Where the number of rows is declared, or counted well enough, that is the function itself. Else it is the pair
    (phi - a, b - phi), whose norm is that of one sum, so that the mean A/(A + B) costs no more than a sum of known n
    would (SR18).
    """

    fn: RowFn
    value: RowFn
    low: Fraction
    spread: Fraction
    away: Fraction  # how far a row's number may lie from its grid
    step: Fraction | None  # the lattice its numbers are on
    paired: bool

    @classmethod
    def of(cls, fn: RowFn, account: Account, *, paired: bool) -> Self:
        """A query over the columns of an account's database."""
        lo, hi, kind = bounded(fn, account.schema)
        if not paired or lo == hi:
            step = scalar_grid(lo, hi, kind.step)[0]
            return cls(fn, fn, lo, hi - lo, rounding(kind.step, step), kind.step, paired=False)
        pair = Bernstein(fn)
        step, low, high = pair.span(account.schema)
        return cls(fn, pair, low * step, (high - low) * step, rounding(kind.step, step), kind.step, paired=True)

    @property
    def constant(self) -> bool:
        """Whether its mean is known without asking."""
        return self.spread == 0

    @property
    def width(self) -> int:
        """How many numbers it is answered by."""
        return 2 if self.paired else 1

    def foreseen(self, account: Account, spend: Loss | None) -> Plan:
        """Its plan alone, at a spend: that of every query of the same bounds and lattice."""
        kind = (self.low, self.spread, self.step, self.paired)
        return account.foreseen(Sums((self.value,)), spend, kind)

    def price(self, probe: Plan, account: Account, tau: float, size: Size) -> Fraction:
        """The least spend at which its noise stays within tau, less what sampling takes of it."""
        within = tau - account.margin(size.low) - float(self.away)
        if not self.paired:
            return price_of_counts(probe, within * size.rows - size.off, account, size.rows)
        count = self._count(probe, size)
        if within <= 0 or count < 1:
            return NEVER
        key = (probe.parts[0].laws, probe.parts[0].steps, self.spread, within, count)
        return account.priced(key, lambda: price_of_mean(probe, self.spread, within, account.each, count).exact)

    def _count(self, plan: Plan, size: Size) -> float:
        """A number of rows that a mean may be priced by.

        The quotient is within tau if tau (n - 2 reach) >= reach, and a mean's price takes off the noise of its mass,
        which is at least 2 reach but for the rounding of integers: five units make up for it
        (docs/theory/statistical-queries.md).
        """
        return size.low - 5 * float(plan.parts[0].steps[0] / self.spread)

    def reach(self, plan: Plan, account: Account, size: Size) -> float:
        """How far off its mean may be at a plan's noise; 1 where that says nothing."""
        if size.low < 1:
            return 1.0
        if self.paired:
            off = width_of_mean(plan, self.spread, account.each, self._count(plan, size))
        else:
            off = (float(plan.accuracy(account.failing(plan))[0][0]) + size.off) / size.rows
        return min(off + account.margin(size.low) + float(self.away), 1.0)

    def read(self, sums: Floats, size: Size) -> float:
        """The mean, clipped into the bounds the query has; the middle where there are no rows to speak of."""
        if self.constant:
            return float(self.low)
        low, spread = float(self.low), float(self.spread)
        if not self.paired:
            return min(max(float(sums[0]) / size.rows, low), low + spread) if size.rows > 0 else low + spread / 2
        mass = float(sums.sum())
        return low + spread * (min(max(float(sums[0]) / mass, 0.0), 1.0) if mass > 0 else 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class CountTable:
    """How often each of some conditions is the first to hold: one table, at the price of one count."""

    conditions: Sequence[RowFn]
    constant: ClassVar[bool] = False

    @property
    def question(self) -> Sums:
        """The count of rows by the number of the first condition that holds."""
        return Sums((lit(1),), by=(numbered(self.conditions),))

    def foreseen(self, account: Account, spend: Loss | None) -> Plan:
        """The plan of any such table, at a spend."""
        return account.foreseen(self.question, spend, "table")

    def price(self, probe: Plan, account: Account, tau: float, size: Size) -> Fraction:
        """The least spend at which every cell stays within tau.

        With S' and n' noisy, |S'/n' - S/n| <= (|S' - S| + |n' - n|)/n', since S <= n.
        """
        within = (tau - account.margin(size.low)) * size.rows - size.off
        return price_of_counts(probe, within, account, size.rows)

    def reach(self, plan: Plan, account: Account, size: Size) -> float:
        """How far off a cell may be at a plan's noise; 1 where that says nothing."""
        if size.rows < 1:
            return 1.0
        off = float(plan.accuracy(account.failing(plan))[0][0]) + size.off
        return min(off / size.rows + account.margin(size.low), 1.0)


def price_of_counts(probe: Plan, within: float, account: Account, rows: float) -> Fraction:
    """The least spend at which every sum of a question is within a width; of reports, nothing or no spend at all."""
    if within <= 0:
        return NEVER
    part = probe.parts[0]
    given = [(law.at(rows), step) for law, step in zip(of_reports(part.laws), part.steps, strict=False)]
    if given:
        return SMALLEST if all(law.accuracy(account.failing(probe)) * step <= within for law, step in given) else NEVER
    key = (probe.parts[0].laws, probe.parts[0].steps, within)
    return account.priced(key, lambda: price_of_sums(probe, within, account.each).exact)
