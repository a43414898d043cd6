"""Asks about all columns at once: a description of the table, and correlations of its numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from sulq.answers.answer import Answer, Answers
from sulq.answers.call import timed_asks
from sulq.answers.law_choice import LawName, foreseen_of, nearest
from sulq.answers.oracle import Oracle
from sulq.answers.plan import Plan
from sulq.answers.readings.joint import Correlation, pair_sums
from sulq.answers.readings.sampling import AnyReading
from sulq.api import questions
from sulq.api.questions import Pay, Where
from sulq.api.relations import of_table
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.privacy import Loss
from sulq.language.question import Question, Sums
from sulq.language.rowfn import RowFn, named
from sulq.language.rowfn.base import several
from sulq.sql.description import DescriptionRequest, DescriptionWish, description, wished_columns
from sulq.sql.description_table import Description, DescriptionPlan


@timed_asks
class DescriptionAsks(ABC):
    """The asks that are about several columns together."""

    _oracle: Oracle

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """Everything public."""

    @abstractmethod
    def _rows(self, where: Where) -> RowFn | None:
        """A condition as a row function."""

    @abstractmethod
    def _read(
        self,
        asked: Callable[[Loss | None], tuple[Sums, AnyReading]],
        pay: Pay,
        names: tuple[str, ...],
        *,
        square: bool = False,
    ) -> Answer:
        """One ask whose question and reading follow the law of its noise."""

    @of_table
    def describe(
        self,
        columns: Sequence[str] | None = None,
        *,
        where: Where = None,
        table: str | None = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
        interval: bool | None = None,
        charts: bool | None = None,
    ) -> Description:
        """Counts, missing cells, means, deviations, quartiles and categories of columns, for one price at one debit.

        Args:
            columns: which ones; all that are declared, but for the person's, where none are named.
            where: rows that count.
            table: of several tables, the one that is described.
            spend: what to pay; it is divided over the columns from what is declared of them, and the answer says how.
            fresh: new noise although the same was answered before.
            law: "laplace" or "gaussian", where the spend leaves that open.
            timeout: for how many seconds it is waited for.
            interval: whether intervals of quartiles are bought; without them the quartiles are nearer. Left out: they
                are, and of more than 50 columns of numbers there are no quartiles.
            charts: whether a small histogram of each number is bought. Left out: likewise.
        """
        if not isinstance(fresh, bool):
            raise QuestionError("bad-question", "fresh is True or False.")
        request, paid = self._described(columns, where, spend, law, interval=interval, charts=charts)
        answers = cast("Answers", self._oracle.ask(request.question, spend=paid, reuse=not fresh))
        return Description(request, answers, answers[0].notes)

    @of_table
    def describe_plan(
        self,
        columns: Sequence[str] | None = None,
        *,
        where: Where = None,
        table: str | None = None,
        spend: Loss | None = None,
        law: LawName | None = None,
        interval: bool | None = None,
        charts: bool | None = None,
    ) -> DescriptionPlan:
        """What `describe` would ask, what it costs and how the spend is divided; spends nothing."""
        request, paid = self._described(columns, where, spend, law, interval=interval, charts=charts)
        return DescriptionPlan(request, self._oracle.foresee(request.question, spend=paid))

    def _described(
        self,
        columns: Sequence[str] | None,
        where: Where,
        spend: Loss | None,
        law: LawName | None,
        *,
        interval: bool | None,
        charts: bool | None,
    ) -> tuple[DescriptionRequest, Loss | None]:
        """The question, and the spend that buys the law of noise of least error."""
        if not all(told is None or isinstance(told, bool) for told in (interval, charts)):
            raise QuestionError("bad-question", "interval and charts are True or False.")
        facts = self.facts
        wish = DescriptionWish(wished_columns(facts, columns), self._rows(where), interval, charts)
        made: dict[Loss | None, DescriptionRequest] = {}

        def foresee(question: Question, paid: Loss | None) -> Plan:
            return self._oracle.foresee(question, spend=paid)

        def asked(paid: Loss | None) -> DescriptionRequest:
            if paid not in made:
                made[paid] = description(facts, wish, paid, foresee)
            return made[paid]

        paid = nearest(spend, law, lambda: facts.budget, lambda one: foreseen_of(foresee(asked(one).question, one)))
        return asked(paid), paid

    @of_table
    def corr(
        self,
        columns: Sequence[object],
        *,
        where: Where = None,
        table: str | None = None,
        spend: Loss | None = None,
        fresh: bool = False,
        law: LawName | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """The correlation of each pair of bounded numbers, over the rows where all of them are present.

        `value` is by pairs, `matrix` the matrix; with sampling an interval is by Fisher's z beside the noise.
        """
        items = [named(column) for column in several(columns, "Columns")]
        names = tuple(questions.title(item) for item in items)
        if len(items) < 2 or len(set(names)) < len(names):
            raise QuestionError("bad-question", "A correlation is of two or more different columns.")
        found = questions.covariance(self.facts, items, self._rows(where), (), counted=True)
        answer = self._read(lambda _: found, Pay(spend, fresh=fresh, law=law), names)
        return replace(
            answer,
            released=pair_sums(answer.released, len(items)),
            reading=Correlation((found[1].halves[0], found[1].halves[1]), found[1].rounding),
            keys=(("column", names), ("with", names)),
            columns=("correlation",),
            pairs=True,
        )
