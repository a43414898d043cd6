"""Statistical queries on a database: the bridge over which every algorithm of that model learns privately.

The model of Kearns lets a learner see expectations to within a tolerance and nothing else. Noisy sums answer them
[S0.20, S1.11, S2.12, S3.27], so a learner written for it is private as it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol, cast

from sulq.answers.answer import Answer, Answers
from sulq.answers.oracle import ColumnChoice, Oracle, Progress, SpendPlan
from sulq.answers.plan import Plan
from sulq.errors import QuestionError
from sulq.forms.parameters import checked
from sulq.language.facts import Facts
from sulq.language.kinds import Floats
from sulq.language.privacy import Loss
from sulq.language.question import Question
from sulq.language.rowfn import RowFn
from sulq.learn.sq.account import Account, Size
from sulq.learn.sq.backends import JointQueries, RepeatedQueries, SplitQueries
from sulq.learn.sq.oracle import Partitions, StatOracle

Method = Literal["joint", "split"]
METHODS: Final = ("joint", "split")


class Askable(Protocol):
    """A database, near or far."""

    @property
    def facts(self) -> Facts:
        """What is public."""
        ...

    def ask(self, question: Question, *, spend: Loss | None = None, key: str | None = None) -> Answer | Answers:
        """Pay and answer."""
        ...

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """What an answer would be; free."""
        ...


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
        db: Askable | ColumnChoice,
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
        oracle = db.oracle if isinstance(db, ColumnChoice) else cast("Oracle", db)
        if not all(hasattr(oracle, name) for name in ("ask", "foresee", "facts")):
            raise QuestionError("bad-question", "StatisticalQueries takes a database.", "Give what sulq.connect gave.")
        spending = SpendPlan(oracle, spend, progress)
        self._purse = spending
        checked(method in METHODS, f"method is one of {', '.join(METHODS)}.")
        self._backend: JointQueries | SplitQueries | RepeatedQueries
        if method == "joint":
            self._backend = of_all_rows(spending, queries=queries, beta=beta, population=population, family=family)
        else:
            checked(not spending.sublinear, "Under a SubLinear budget every sum is a query, so blocks save nothing.")
            self._backend = SplitQueries(Account(spending, queries, beta, sampling=True, family=family), salt)
        self.tabled = self._backend.tabled

    def stat(self, phi: RowFn, tau: float) -> float:
        """The mean of phi, a row function within [0, 1], to within tau.

        Raises:
            QuestionError: `too-few-rows`: the spend does not buy this tolerance; says how many rows would do.
        """
        return self._backend.stat(phi, tau)

    def stats(self, phis: Sequence[RowFn], tau: float) -> Floats:
        """Several means at one debit, none chosen after another's answer."""
        return self._backend.stats(phis, tau)

    def cells(self, partitions: Partitions, tau: float) -> list[Floats]:
        """For each list of conditions, how often each is the first of its list to hold; a list costs as one query."""
        return self._backend.cells(partitions, tau)

    @property
    def spent(self) -> Loss:
        """What all queries so far have cost."""
        return self._purse.spent

    @property
    def remaining(self) -> Loss:
        """What is left of the spend; of a SubLinear budget, what the database has left."""
        whole = self._purse.whole
        return self._purse.oracle.facts.remaining if whole is None else type(whole).total(self._backend.account.left)

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
