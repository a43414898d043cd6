"""What an analyst types, written once on an Oracle: counts, sums, means, variances, histograms.

Nothing here sees a row. Each ask becomes one question and one way to read its
answer, so a mistake here can cost accuracy and never privacy (S0.29).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast

from sulq.answers.answer import Answer, Answers
from sulq.answers.auto_bounds import Bounds
from sulq.answers.budget import BudgetReport, RunForecast
from sulq.answers.call import timed_asks
from sulq.answers.clocks import clock_of
from sulq.answers.law_choice import LawName, nearest
from sulq.answers.oracle import Oracle, chosen
from sulq.answers.plan import Plan
from sulq.answers.readings.estimators import Plain, Reading
from sulq.answers.readings.sampling import AnyReading
from sulq.api import prices, questions
from sulq.api.bounds import bounded_ask
from sulq.api.description_asks import DescriptionAsks
from sulq.api.inference_asks import InferenceAsks
from sulq.api.order_asks import OrderAsks
from sulq.api.questions import By, Keys, Pay, Where
from sulq.api.relations import RelationAsks, of_table
from sulq.api.run_forecast import run_forecast
from sulq.api.sql_asks import SqlAsks
from sulq.api.whole_table import WholeTableAsks
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.privacy import Loss
from sulq.language.question import Question, Sums
from sulq.language.rowfn import Lit, RowFn, named
from sulq.language.rowfn.base import several
from sulq.sql.explain import Explanation
from sulq.sql.forecast import reading_widths
from sulq.sql.joint import Designs
from sulq.sql.named_asks import or_missing
from sulq.sql.session import Sql
from sulq.sql.workload import Workload


def _joint_designs(questions: Mapping[int, Sums], weights: Mapping[int, float], facts: Facts) -> Iterable[Designs]:
    """The planner of counts that are asked as one; releases are loaded when somebody plans a workload."""
    made = importlib.import_module("sulq.release.joint_counts").joint_designs(questions, weights, facts)
    return cast("Iterable[Designs]", made)


@timed_asks
class NamedAsks(SqlAsks, WholeTableAsks, OrderAsks, RelationAsks, DescriptionAsks, InferenceAsks):
    """The named asks, for any Oracle.

    A question asked before at this price or a higher one gets its stored answer
    again, free and marked `reused`; `fresh=True` buys new noise instead (SR12).
    `timeout`: for how many seconds to wait; what was charged by then stays so, and its answer is kept.
    """

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._sql = Sql(oracle, _joint_designs)

    @property
    def facts(self) -> Facts:
        """Everything public: domain, unit, budget, what remains."""
        return self._oracle.facts

    @property
    def remaining(self) -> Loss:
        """What is left of the budget."""
        return self.facts.remaining

    @property
    def spent(self) -> Loss:
        """What of the budget is gone: all of it less what is left. What is proved of the answers: `facts.proved`."""
        return self.facts.spent

    @property
    def budget(self) -> BudgetReport:
        """The budget as it stands, to read: what is spent, what is left, and what that buys."""
        return BudgetReport.of(self.facts)

    def afford(
        self,
        asks: Sequence[object] | Workload,
        *,
        spend: Loss | None = None,
        law: LawName | None = None,
        bounds: Bounds | None = None,
    ) -> RunForecast:
        """What would be left after each of several asks, in order, and which would be refused; spends nothing.

        Args:
            asks: SQL texts and questions, each alone or as (ask, spend); spends alone; explanations and plans; or what
                `db.plan` gives.
            spend: what each costs that names nothing itself.
            law: "laplace" or "gaussian", where the spend leaves that open; an (epsilon, delta) alone is foretold as one
                number, which has Laplace noise.
            bounds: "auto": the SQL texts are asked so, each a search and an answer.
        """

        def foresee(ask: str | Question, paid: Loss | None) -> Plan | Explanation | None:
            if isinstance(ask, str):
                return self._sql.foresee(ask, spend=paid, law=law, bounds=bounds)
            return self.foresee(ask, spend=paid, law=law)

        return run_forecast(self._oracle, asks, spend, foresee, law)

    def ask(
        self,
        question: Question,
        *,
        spend: Loss | None = None,
        key: str | None = None,
        law: LawName | None = None,
        timeout: float | None = None,
    ) -> Answer | Answers:
        """Ask a question of the language itself; always new noise, always charged."""
        return self._oracle.ask(question, spend=chosen(self._oracle, question, spend, law), key=key)

    def foresee(self, question: Question, *, spend: Loss | None = None, law: LawName | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy of a question; free."""
        return self._oracle.foresee(question, spend=chosen(self._oracle, question, spend, law))

    def __repr__(self) -> str:
        return f"<sulq asks of {self.facts.table}; private>"

    def asking(self, oracle: Oracle) -> NamedAsks:
        """The same named asks on another Oracle."""
        return NamedAsks(oracle)

    # -- named asks

    @of_table
    def count(
        self,
        where: Where = None,
        *,
        by: By = None,
        table: str | None = None,
        spend: Loss | None = None,
        within: float | None = None,
        beta: float = 0.05,
        at_most: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """How many rows satisfy a condition: `db.count("age > 40")`, `db.count(db["age"] > 40)`."""
        question = Sums((Lit(1),), self._rows(where), self._keys(by))
        reading = questions.counted(self.facts, question.where, question.by)
        return self._sums(question, "count", reading, Pay(spend, within, beta, at_most, fresh, law))

    @of_table
    def sum(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        table: str | None = None,
        spend: Loss | None = None,
        within: float | None = None,
        beta: float = 0.05,
        at_most: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
        bounds: Bounds | None = None,
        sampling: bool = False,
    ) -> Answer:
        """The sum of a bounded number; missing values add nothing.

        `bounds`: "auto" searches for where the values lie, from the same spend, and sums values clipped to there.
        `sampling`: the sum of squares is asked along, for what a population's sum is from such a sample.
        """
        fn, partition, facts = named(value), self._keys(by), self.facts
        rows = self._rows(where)
        pay = Pay(spend, within, beta, at_most, fresh, law, bounds, sampling)
        samples = pay.samples

        def ask(item: RowFn, paid: Pay) -> Answer:
            if samples:
                return self._read(lambda _: questions.sampled_total(facts, item, rows, partition), paid, ("sum",))
            question = questions.total(facts, item, rows, partition)
            return self._sums(question, "sum", questions.summed(facts, item, rows, partition), paid)

        return bounded_ask(self._oracle, (fn, rows, partition), pay, ask)

    @of_table
    def histogram(
        self,
        value: object,
        bins: int | Sequence[float | int | str] | None = None,
        *,
        where: Where = None,
        table: str | None = None,
        spend: Loss | None = None,
        within: float | None = None,
        beta: float = 0.05,
        at_most: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """How many rows fall into each bin: edges, a number of equal bins, or every declared value."""
        question = Sums((Lit(1),), self._rows(where), (questions.binned(self.facts, named(value), bins),))
        reading = questions.counted(self.facts, question.where, question.by)
        return self._sums(question, "count", reading, Pay(spend, within, beta, at_most, fresh, law))

    @of_table
    def mean(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        table: str | None = None,
        spend: Loss | None = None,
        within: float | None = None,
        beta: float = 0.05,
        at_most: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
        bounds: Bounds | None = None,
        sampling: bool = False,
    ) -> Answer:
        """The mean of a bounded number over the rows where it is present (SR18).

        `bounds`: "auto" searches for where the values lie, from the same spend; the mean is of values clipped to there.
        `sampling`: the spread is asked along, which tells how far a population's mean is from such a sample's.
        """
        fn, partition = named(value), self._keys(by)
        pay = Pay(spend, within, beta, at_most, fresh, law, bounds, sampling)
        samples, notes = pay.samples, tuple[str, ...]()
        facts = self.facts
        rows = self._rows(where)
        if within is not None and bounds is None:
            pay, notes = prices.mean(self._oracle, fn, rows, partition, pay)

        def ask(item: RowFn, pay: Pay) -> Answer:
            if samples:
                return self._read(lambda _: questions.sampled_mean(facts, item, rows, partition), pay, ("mean",))
            return self._read(lambda paid: questions.mean(facts, item, rows, partition, paid), pay, ("mean",))

        answer = bounded_ask(self._oracle, (fn, rows, partition), pay, ask, mean=True)
        return replace(answer, notes=(*notes, *answer.notes), clock=clock_of(fn, facts.schema))

    @of_table
    def variance(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        ddof: int = 0,
        table: str | None = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
        sampling: bool = False,
    ) -> Answer:
        """The variance of a bounded number over the rows where it is present.

        `sampling`: half of the spend buys moments up to the fourth, which tell its sampling error.
        """
        pay = Pay(spend, fresh=fresh, law=law, sampling=sampling)
        return self._spread(value, where, by, ddof, pay, root=False)

    @of_table
    def std(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        ddof: int = 0,
        table: str | None = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
        sampling: bool = False,
    ) -> Answer:
        """The standard deviation of a bounded number over the rows where it is present; `sampling` as of `variance`."""
        pay = Pay(spend, fresh=fresh, law=law, sampling=sampling)
        return self._spread(value, where, by, ddof, pay, root=True)

    @of_table
    def covariance(
        self,
        columns: Sequence[object],
        *,
        where: Where = None,
        by: By = None,
        norm: Literal["l1", "l2"] | None = None,
        bound: float | None = None,
        table: str | None = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """The covariance matrix of bounded numbers over the rows where all are present.

        `norm`, "l1" or "l2", and `bound`: rows of a larger norm are shortened to it. In L1 the noise then does not
        grow with the number of columns: indicators of which one is 1 have `norm="l1", bound=1` [S4.10]. The norm is of
        the values themselves, about zero; without one each is taken about the middle of its bounds. So it serves values
        about zero, many columns or few that are not zero; of columns far from zero it is much worse than none.
        """
        items = [named(column) for column in several(columns, "Columns")]
        if not items:
            raise QuestionError("bad-question", "A covariance needs at least one column.")
        rows = self._rows(where)
        found = questions.covariance(self.facts, items, rows, self._keys(by), norm=norm, bound=bound)
        names = [questions.title(item) for item in items]
        pairs = tuple(f"{a}*{b}" for i, a in enumerate(names) for b in names[i:])
        return self._read(lambda _: found, Pay(spend, fresh=fresh, law=law), pairs, square=True)

    # -- how the asks become questions

    def _answer(self, question: Question, pay: Pay) -> Answer:
        """One ask: a stored answer that is as accurate is given again, unless new noise is wished for (SR12)."""
        spend = chosen(self._oracle, question, pay.spend, pay.law)
        return cast("Answer", self._oracle.ask(question, spend=spend, reuse=pay.reuse))

    def _read(
        self,
        asked: Callable[[Loss | None], tuple[Sums, AnyReading]],
        pay: Pay,
        names: tuple[str, ...],
        *,
        square: bool = False,
    ) -> Answer:
        """One ask whose question and reading follow the law of its noise: that of least error of what is read."""

        def widths(paid: Loss | None) -> list[float]:
            return reading_widths(self._oracle, *asked(paid), paid)

        spend = nearest(pay.spend, pay.law, lambda: self.facts.budget, widths)
        question, reading = asked(spend)
        answer = cast("Answer", self._oracle.ask(question, spend=spend, reuse=pay.reuse))
        return answer.read(reading, names, square=square)

    def _spread(self, value: object, where: Where, by: By, ddof: int, pay: Pay, *, root: bool) -> Answer:
        facts, fn, partition = self.facts, named(value), self._keys(by)
        rows = self._rows(where)

        def asked(paid: Loss | None) -> tuple[Sums, Reading]:
            if pay.samples:
                return questions.sampled_spread(facts, fn, rows, partition, root=root, ddof=ddof)
            return questions.spread(facts, fn, rows, partition, paid, root=root, ddof=ddof)

        return self._read(asked, pay, ("std" if root else "variance",))

    def _keys(self, by: By) -> Keys:
        """Names or row functions of a partition; where a key can be missing, that is a group too, as in SQL."""
        return tuple(or_missing(fn, self.facts.schema) for fn in questions.keys(by))

    def _sums(self, question: Sums, column: str, reading: Plain, pay: Pay) -> Answer:
        if pay.within is not None:
            pay = prices.sums(self._oracle, question, pay)
        return self._answer(question, pay).read(reading, (column,))
