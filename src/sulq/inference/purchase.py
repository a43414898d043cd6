"""How an inference pays: the law of its noise chosen once, then parts of the spend, each its own debit.

A stored answer is given again where the same question was answered at the price (SR12); a later question follows from
earlier answers, so that of stored ones the same questions follow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from sulq.answers.answer import Answer
from sulq.answers.law_choice import LawName
from sulq.answers.oracle import KeepingOracle, Oracle, SpendPlan, affordable, chosen
from sulq.answers.released import Released
from sulq.errors import BudgetExceeded, QuestionError
from sulq.inference.result import CLAMPED, NOISE_AND_SAMPLING, Bill, checked_level
from sulq.language.privacy import Loss
from sulq.language.question import Sums
from sulq.language.relation import Table
from sulq.language.rowfn import RowFn


@dataclass(frozen=True, slots=True)
class InferenceTerms:
    """What every inference is asked with: which rows, at what price, and how its noise and intervals are to be.

    Raises:
        QuestionError: `fresh` or `level` is none.
    """

    where: RowFn | None
    spend: Loss | None
    law: LawName | None
    fresh: bool
    level: float = 0.95

    def __post_init__(self) -> None:
        if not isinstance(self.fresh, bool):
            raise QuestionError("bad-question", "fresh is True or False.")
        checked_level(self.level)


@dataclass(slots=True)
class Purchase:
    """A spend that is divided over a few questions."""

    oracle: Oracle
    plan: SpendPlan
    answers: list[Answer] = field(default_factory=list)

    @classmethod
    def of(cls, oracle: Oracle, question: Sums, *, terms: InferenceTerms, part: float = 1) -> Purchase:
        """A purchase with the law of least foreseen error of the first question, which takes a part of the spend.

        Raises:
            BudgetExceeded: The whole spend does not fit what is left, and the first answer is not stored.
        """
        plan = SpendPlan(oracle, chosen(oracle, question, terms.spend, terms.law), reuse=not terms.fresh)
        if plan.whole is not None:
            try:
                affordable(plan.whole, plan.facts)
            except BudgetExceeded:
                keeps = isinstance(oracle, KeepingOracle) and not terms.fresh
                if not keeps or cast("KeepingOracle", oracle).stored(question, spend=plan.share(part)) is None:
                    raise
        return cls(oracle, plan)

    def ask(self, question: Sums, part: float) -> Released:
        """Ask for a part of the spend."""
        self.answers.append(self.plan.one(question, part))
        return self.answers[-1].released

    def deviation(self, question: Sums, part: float) -> float:
        """The deviation of the noise in the first number of an answer, before it is asked."""
        return self.plan.foresee(question, part).parts[0].noise[0].deviation

    @property
    def rows(self) -> int:
        """How many rows of a table a person may have, at most."""
        facts = self.plan.facts
        return facts.rows_of(facts.table_of(Table().name)) or 1

    @property
    def size(self) -> int | None:
        """The number of rows, where that is public."""
        return self.plan.facts.fixed_size

    def bill(self) -> Bill:
        """What was paid."""
        facts = self.oracle.facts
        return Bill(
            self.plan.spent, facts.remaining, facts.unit, self.plan.receipts, self.plan.guarantee,
            all(answer.reused for answer in self.answers),
        )  # fmt: skip

    def notes(self, *more: str) -> tuple[str, ...]:
        """What every inference says, and this one besides."""
        own = []
        if self.rows > 1:
            own.append(
                f"A person may have up to {self.rows} rows, which may be alike: "
                f"the sampling variance is multiplied by {self.rows}, the most that this can do."
            )
        said = dict.fromkeys(note for answer in self.answers for note in answer.notes)
        return (NOISE_AND_SAMPLING, CLAMPED, *own, *more, *said)
