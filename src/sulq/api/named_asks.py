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
from sulq.answers.estimators import Plain, Reading
from sulq.answers.law_choice import LawName, nearest
from sulq.answers.oracle import ColumnChoice, Oracle, chosen
from sulq.answers.plan import Plan
from sulq.api import prices, questions
from sulq.api.bounds import bounded_ask
from sulq.api.inference_asks import InferenceAsks
from sulq.api.questions import By, Keys, Pay, Where
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
from sulq.sql.named_asks import count_distinct, or_missing, parts, quantiles
from sulq.sql.released.program import Stat
from sulq.sql.session import Sql
from sulq.sql.workload import Workload


def _joint_designs(questions: Mapping[int, Sums], weights: Mapping[int, float], facts: Facts) -> Iterable[Designs]:
    """The planner of counts that are asked as one; releases are loaded when somebody plans a workload."""
    made = importlib.import_module("sulq.release.joint_counts").joint_designs(questions, weights, facts)
    return cast("Iterable[Designs]", made)


class NamedAsks(SqlAsks, WholeTableAsks, InferenceAsks):
    """The named asks, for any Oracle.

    A question asked before at this price or a higher one gets its stored answer
    again, free and marked `reused`; `fresh=True` buys new noise instead (SR12).
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
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, law: LawName | None = None
    ) -> Answer | Answers:
        """Ask a question of the language itself; always new noise, always charged."""
        return self._oracle.ask(question, spend=chosen(self._oracle, question, spend, law), key=key)

    def foresee(self, question: Question, *, spend: Loss | None = None, law: LawName | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy of a question; free."""
        return self._oracle.foresee(question, spend=chosen(self._oracle, question, spend, law))

    def __getitem__(self, names: str | Sequence[str]) -> ColumnChoice:
        """Private handles on columns, as learners take them: db[["age", "income"]], db["smoker"]."""
        listed = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, (list, tuple)) else ()
        if not listed or not all(isinstance(name, str) for name in listed):
            raise QuestionError("bad-question", 'A database is asked for columns by name: db["a"], db[["a", "b"]].')
        return ColumnChoice(listed, self._oracle)

    def asking(self, oracle: Oracle) -> NamedAsks:
        """The same named asks on another Oracle."""
        return NamedAsks(oracle)

    # -- named asks

    def count(
        self,
        where: Where = None,
        *,
        by: By = None,
        spend: Loss | None = None,
        within: float | None = None,
        beta: float = 0.05,
        at_most: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
    ) -> Answer:
        """How many rows satisfy a condition."""
        question = Sums((Lit(1),), where, self._keys(by))
        return self._sums(question, "count", Pay(spend, within, beta, at_most, fresh, law))

    def sum(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        spend: Loss | None = None,
        within: float | None = None,
        beta: float = 0.05,
        at_most: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        bounds: Bounds | None = None,
    ) -> Answer:
        """The sum of a bounded number; missing values add nothing.

        `bounds`: "auto" searches for where the values lie, from the same spend, and sums values clipped to there.
        """
        fn, partition, pay = named(value), self._keys(by), Pay(spend, within, beta, at_most, fresh, law, bounds)
        return bounded_ask(
            self._oracle, (fn, where, partition), pay,
            lambda item, paid: self._sums(questions.total(self.facts, item, where, partition), "sum", paid),
        )  # fmt: skip

    def histogram(
        self,
        value: object,
        bins: int | Sequence[float | int | str] | None = None,
        *,
        where: Where = None,
        spend: Loss | None = None,
        within: float | None = None,
        beta: float = 0.05,
        at_most: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
    ) -> Answer:
        """How many rows fall into each bin: edges, a number of equal bins, or every declared value."""
        question = Sums((Lit(1),), where, (questions.binned(self.facts, named(value), bins),))
        return self._sums(question, "count", Pay(spend, within, beta, at_most, fresh, law))

    def mean(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        spend: Loss | None = None,
        within: float | None = None,
        beta: float = 0.05,
        at_most: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        bounds: Bounds | None = None,
    ) -> Answer:
        """The mean of a bounded number over the rows where it is present (SR18).

        `bounds`: "auto" searches for where the values lie, from the same spend; the mean is of values clipped to there.
        """
        fn, partition, pay = named(value), self._keys(by), Pay(spend, within, beta, at_most, fresh, law, bounds)
        notes: tuple[str, ...] = ()
        if within is not None and bounds is None:
            pay, notes = prices.mean(self._oracle, fn, where, partition, pay)
        facts = self.facts

        def ask(item: RowFn, pay: Pay) -> Answer:
            return self._read(lambda paid: questions.mean(facts, item, where, partition, paid), pay, ("mean",))

        answer = bounded_ask(self._oracle, (fn, where, partition), pay, ask, mean=True)
        return replace(answer, notes=(*notes, *answer.notes))

    def variance(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        ddof: int = 0,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
    ) -> Answer:
        """The variance of a bounded number over the rows where it is present."""
        return self._spread(value, where, by, ddof, Pay(spend, fresh=fresh, law=law), root=False)

    def std(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        ddof: int = 0,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
    ) -> Answer:
        """The standard deviation of a bounded number over the rows where it is present."""
        return self._spread(value, where, by, ddof, Pay(spend, fresh=fresh, law=law), root=True)

    def covariance(
        self,
        columns: Sequence[object],
        *,
        where: Where = None,
        by: By = None,
        norm: Literal["l1", "l2"] | None = None,
        bound: float | None = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
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
        found = questions.covariance(self.facts, items, where, self._keys(by), norm=norm, bound=bound)
        names = [questions.title(item) for item in items]
        pairs = tuple(f"{a}*{b}" for i, a in enumerate(names) for b in names[i:])
        return self._read(lambda _: found, Pay(spend, fresh=fresh, law=law), pairs, square=True)

    def quantile(
        self,
        value: object,
        q: float | Sequence[float],
        *,
        where: Where = None,
        by: By = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        interval: bool = True,
    ) -> Answer:
        """Quantiles of a bounded number, as PERCENTILE_CONT does; several share one spend.

        One to three are chosen among the values of a public grid by rank, many are read from one tree of counts.
        `interval=False`: no part of the spend buys an interval, and what is chosen is nearer.
        """
        fn, wanted = named(value), parts(q)
        stats = [Stat("quantile_cont", (fn,), q=part) for part in wanted]
        names = tuple(f"{float(part):g}" for part in wanted)
        return quantiles(
            self._oracle, fn, stats, names,
            where=where, by=self._keys(by), spend=spend, fresh=fresh, law=law, interval=interval,
        )  # fmt: skip

    def median(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        interval: bool = True,
    ) -> Answer:
        """The median of a bounded number."""
        return self.quantile(value, 0.5, where=where, by=by, spend=spend, fresh=fresh, law=law, interval=interval)

    def min(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        interval: bool = True,
    ) -> Answer:
        """The smallest value of a bounded number."""
        return self._extreme(value, "min", where, by, Pay(spend, fresh=fresh, law=law), interval=interval)

    def max(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        interval: bool = True,
    ) -> Answer:
        """The largest value of a bounded number."""
        return self._extreme(value, "max", where, by, Pay(spend, fresh=fresh, law=law), interval=interval)

    def count_distinct(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
    ) -> Answer:
        """How many different values there are; of the person's column, how many people."""
        return count_distinct(
            self._oracle, named(value), where=where, by=self._keys(by), spend=spend, fresh=fresh, law=law
        )

    # -- how the asks become questions

    def _answer(self, question: Question, pay: Pay) -> Answer:
        """One ask: a stored answer that is as accurate is given again, unless new noise is wished for (SR12)."""
        spend = chosen(self._oracle, question, pay.spend, pay.law)
        return cast("Answer", self._oracle.ask(question, spend=spend, reuse=pay.reuse))

    def _read(
        self,
        asked: Callable[[Loss | None], tuple[Sums, Reading]],
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

        def asked(paid: Loss | None) -> tuple[Sums, Reading]:
            return questions.spread(facts, fn, where, partition, paid, root=root, ddof=ddof)

        return self._read(asked, pay, ("std" if root else "variance",))

    def _keys(self, by: By) -> Keys:
        """Names or row functions of a partition; where a key can be missing, that is a group too, as in SQL."""
        return tuple(or_missing(fn, self.facts.schema) for fn in questions.keys(by))

    def _sums(self, question: Sums, column: str, pay: Pay) -> Answer:
        if pay.within is not None:
            pay = prices.sums(self._oracle, question, pay)
        return self._answer(question, pay).read(Plain(), (column,))

    def _extreme(self, value: object, name: str, where: Where, by: By, pay: Pay, *, interval: bool) -> Answer:
        fn = named(value)
        return quantiles(
            self._oracle, fn, [Stat(name, (fn,))], (name,),
            where=where, by=self._keys(by), spend=pay.spend, fresh=pay.fresh, law=pay.law, interval=interval,
        )  # fmt: skip
