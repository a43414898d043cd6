"""What an oracle on a database may spend and ask, what it knows of the number of rows, and what one query costs it.

A query is asked as a sum, or as the pair whose quotient is the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, Self

from sulq.answers.oracle import SpendPlan
from sulq.answers.plan import Plan, price_of_mean, price_of_sums, width_of_mean
from sulq.answers.released import of_reports
from sulq.errors import QuestionError
from sulq.forms.parameters import checked, whole
from sulq.language.kinds import Floats
from sulq.language.privacy import SMALLEST, Epsilon, Loss, Queries, Rho
from sulq.language.question import Sums
from sulq.language.rowfn import Bernstein, RowFn, lit
from sulq.language.rowfn.vectors import bounded, rounding, scalar_grid
from sulq.learn.sq.oracles import numbered, too_many_queries
from sulq.learn.sq.planning import sampling_error

NEVER: Final = Fraction(10**30)  # the price of what no spend buys
MIN_QUERIES_BY_COUNT: Final = 10
COUNT_FIRST: Final = Fraction(1, 10)  # of the spend: the noisy count bought where no size is declared (SR7)


@dataclass(frozen=True, slots=True)
class Size:
    """The number of rows as far as it is public: declared, or counted with noise (SR6, E38)."""

    rows: float  # the best estimate
    low: float  # hardly ever above the truth
    cost: Loss | None = None  # of the count; None where the size is declared

    @property
    def declared(self) -> bool:
        """Whether it is the owner's word."""
        return self.cost is None

    @property
    def off(self) -> float:
        """How far the estimate may be off."""
        return self.rows - self.low

    def at(self, rows: int) -> Size:
        """The size another table would have, known as well."""
        return Size(rows + self.off, rows, self.cost)

    def __str__(self) -> str:
        if self.declared:
            return f"{self.rows:,.0f} are declared"
        return f"a noisy count, which cost {self.cost}, found {self.rows:,.0f}, give or take {self.off:,.0f}"


class Account:
    """A spending, a number of queries and a probability of failure, kept for all queries together.

    Of the failures beta each query has an equal part, and the noisy count one more where one is bought;
    where answers are to hold for more than the rows they are asked of, one half goes to
    `sampling` (E50). `family`: how many queries might be asked, over all that the answers may
    lead to: Hoeffding's bound then holds for all of them at once, so that later ones may be chosen by
    earlier answers.
    """

    def __init__(self, spending: SpendPlan, queries: int, beta: float, *, sampling: bool, family: int | None) -> None:
        self.queries = whole(queries, "queries", 1, 10**9)
        checked(isinstance(beta, (int, float)) and 0 < beta < 1, "beta lies between 0 and 1.")
        checked(family is None or (isinstance(family, int) and family >= queries), "family is at least queries.")
        self.facts = facts = spending.facts
        self.schema = facts.schema
        checked(not sampling or facts.unit.rows == 1, "Sampling is judged for a unit of one row a person.")
        self.spending, self.beta, self.sampling, self.family = spending, float(beta), sampling, family
        self.asked = 0
        self.paper = spending.sublinear
        self._plans: dict[Hashable, Plan] = {}
        self._prices: dict[Hashable, Fraction] = {}
        # With several rows a person nobody knows which rows the owner's number counts.
        self._size = None if facts.size is None or facts.unit.rows > 1 else Size(facts.size, facts.size)
        self.counts = int(self._size is None)  # noisy counts that may be off too

    @property
    def each(self) -> float:
        """The probability with which one draw of noise may pass its bound.

        Draws are independent, whatever was asked before, so m of them may have 1 - (1 - beta)^(1/m) each; `paper`
        takes beta/m, as the papers' union bounds do.
        """
        beta, draws = self.beta / 2 if self.sampling else self.beta, self.queries + self.counts
        return beta / draws if self.paper else -math.expm1(math.log1p(-beta) / draws)

    def failing(self, plan: Plan) -> float:
        """As `each`, for the noise of a plan.

        Answers from the same reports are not independent, and a later query may have been chosen by them: there it is
        beta over all queries there might be (SR19).
        """
        if not of_reports(plan.parts[0].laws):
            return self.each
        return (self.beta / 2 if self.sampling else self.beta) / (self.family or self.queries)

    @property
    def known(self) -> bool:
        """Whether the number of rows is known, declared or counted."""
        return self._size is not None

    @property
    def paired(self) -> bool:
        """Whether a mean is asked as a pair of sums, which needs no n.

        Under replace_one a pair moves by two where a sum moves by one; there the count's own error, of a tenth of
        the spend, is the smaller price once there are ten queries.
        """
        declared = self._size is not None and self._size.declared
        return not declared and (self.facts.unit.neighbors != "replace_one" or self.queries < MIN_QUERIES_BY_COUNT)

    def margin(self, rows: float) -> float:
        """What sampling takes of every tolerance."""
        if not self.sampling:
            return 0.0
        return sampling_error(rows, self.family or self.queries, self.beta / 2)

    def room(self, queries: int) -> None:
        """Refuse more queries than the bounds were made for."""
        if self.asked + queries > self.queries:
            raise too_many_queries(self.queries)

    def size(self) -> Size:
        """The number of rows; the first time, where none is declared, a noisy count is bought."""
        if self._size is None:
            answer = self.spending.one(Sums((lit(1),)), COUNT_FIRST)
            rows = float(answer.released.values()[0, 0])
            off = float(answer.released.radius(self.each)[0])
            self._size = Size(rows, rows - off, answer.spent)
        return self._size

    @property
    def left(self) -> Fraction:
        """What may still be spent: of the spend, or of the queries of a SubLinear budget."""
        if self.spending.whole is None:
            remaining = self.spending.oracle.facts.remaining  # asked anew: others may spend too
            return Fraction(remaining.queries if isinstance(remaining, Queries) else 0)
        spent = self.spending.spent
        return self.spending.whole.exact - (spent.amount if isinstance(spent, (Epsilon, Rho)) else 0)

    @property
    def probe(self) -> Epsilon | Rho:
        """A spend of one, of the kind that is spent here: prices are read off its plan."""
        return Epsilon(1) if self.spending.pure else Rho(1)

    def part(self, price: Fraction) -> Fraction:
        """A price as a part of the whole spend."""
        return price / self.spending.whole.exact if self.spending.whole is not None else Fraction(1)

    def foreseen(self, question: Sums, spend: Loss | None, kind: Hashable) -> Plan:
        """A plan, foreseen once for questions of one kind: at a far curator each one is a call."""
        key = (kind, spend)
        if key in self._plans:
            return self._plans[key]
        plan = self.spending.oracle.foresee(question, spend=spend)
        if not of_reports(plan.parts[0].laws):  # theirs differs with the question (SR19)
            self._plans[key] = plan
        return plan

    def priced(self, key: Hashable, price: Callable[[], Fraction]) -> Fraction:
        """A price, worked out once for queries of one kind."""
        if key not in self._prices:
            try:
                self._prices[key] = price()
            except QuestionError as refusal:
                if refusal.code != "too-costly":
                    raise
                self._prices[key] = NEVER
        return self._prices[key]


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
    queries: ClassVar[int] = 1

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
    def queries(self) -> int:
        """How many queries it answers."""
        return len(self.conditions)

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
