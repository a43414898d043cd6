"""What an oracle on a database may spend and ask, and what it knows of the number of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.answers.oracle import SpendPlan
from sulq.answers.plan import Plan
from sulq.answers.report_law import of_reports
from sulq.errors import QuestionError
from sulq.forms.parameters import checked, whole
from sulq.language.privacy import Epsilon, Loss, Queries, Rho
from sulq.language.question import Sums
from sulq.language.rowfn import lit
from sulq.learn.sq.oracle import too_many_queries
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
