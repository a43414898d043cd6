"""SQL before an Oracle: text in, an answer, an explanation or a plan of several out.

One query is one question and one debit. Everything here is the free half: what it
gets wrong costs accuracy or money, never privacy (S0.29).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, cast

from sulq.answers import wire
from sulq.answers.answer import Answers
from sulq.answers.auto_bounds import Bounds, check_bounds, check_most, divided_spend, question_of, search, total_spent
from sulq.answers.law_choice import BETA, LawName, cheapest, count_first, kinds, nearest
from sulq.answers.oracle import ForecastingOracle, Oracle
from sulq.answers.plan import Plan, affordable
from sulq.answers.readings.estimators import Plain
from sulq.answers.reuse import nothing
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.privacy import Epsilon, EpsilonDelta, EpsilonKeys, Event, Loss, Queries, Rho, SubLinear, probability
from sulq.language.question import Choose, Question, Sums, Together
from sulq.language.relation import Table
from sulq.language.rowfn import IsMissing, Lit, Not, RowFn
from sulq.sql.answer import SqlAnswer
from sulq.sql.auto_bounds import QuerySearch
from sulq.sql.compile import compile as compiled_of
from sulq.sql.division import weights_of
from sulq.sql.explain import Explanation
from sulq.sql.forecast import UNDECLARED_SIZE_ROWS, ErrorForecast, error_at, price, slip, wished
from sulq.sql.joint import JointPlanner
from sulq.sql.parse.text import reader
from sulq.sql.planned_total import Division, QueryErrors
from sulq.sql.released.program import GroupStatistics, TableProgram, listing
from sulq.sql.released.render import sources_of
from sulq.sql.rows.values import both
from sulq.sql.workload import Workload

REST: Final = "a total less the groups shown, so each group adds its noise"
NO_OPEN_PLAN: Final = (
    "A plan divides a total over queries whose keys are declared.",
    "Ask the query with undeclared keys by itself, or declare the categories.",
)
NO_SEARCH: Final = "there are no bounds to search for here: all of the spend goes to the answer"
Within = float | Mapping[str, float] | None
Rows = Callable[[Plan], int]  # how many rows a group may be taken to have


@dataclass(frozen=True, slots=True)
class SqlPay:
    """What a query is paid with: a spend, or the accuracy that sets its price, and the law of noise if one is named."""

    spend: Loss | None
    within: Within
    beta: float
    at_most: Loss | None
    law: LawName | None
    bounds: Bounds | None = None


class Sql:
    """Queries in SQL, for any Oracle."""

    def __init__(self, oracle: Oracle, planner: JointPlanner | None = None) -> None:
        self._oracle = oracle
        self._planner = planner  # of counts of a plan that are asked as one design; None: each by itself
        self._read = reader()

    def ask(
        self,
        text: str,
        *,
        spend: Loss | None = None,
        within: Within = None,
        beta: float = 0.05,
        at_most: Loss | None = None,
        fresh: bool = False,
        other: str | None = None,
        law: LawName | None = None,
        bounds: Bounds | None = None,
        interval: bool = True,
    ) -> SqlAnswer | Explanation:
        """Answer a query at one debit, two with a search for bounds; of EXPLAIN SELECT the explanation, free."""
        facts, beta = self._oracle.facts, probability(beta)
        forecast = self._forecast(text, facts, other, spend=spend, within=within, interval=interval)
        pay = SqlPay(spend, within, beta, at_most, law, bounds)
        if forecast.compiled.explain:
            return self._explained(forecast, pay)
        if not isinstance(fresh, bool):
            raise QuestionError("bad-question", "fresh is True or False.")
        if bounds is not None:
            return self._bounded(forecast, pay, fresh=fresh)
        paid: tuple[str, ...] = ()
        if within is not None:
            one_price(spend)
            forecast, spend, paid = self._price(forecast, pay)
        else:
            spend = forecast.nearest(spend, law, beta)
        return self._answered(forecast, spend, paid, fresh=fresh)

    def _answered(
        self, forecast: ErrorForecast, spend: Loss | None, paid: tuple[str, ...], *, fresh: bool
    ) -> SqlAnswer:
        facts = forecast.facts
        asked = forecast.prepared(spend)
        if asked.question is None:
            table = asked.read([])
            return SqlAnswer(table, None, nothing(facts.remaining), facts.remaining, facts.unit, "dp")
        answers = cast("Answers", self._oracle.ask(asked.question, spend=spend, reuse=not fresh))
        one = answers[0]
        released = [answer.released for answer in answers]
        table = asked.read(released)
        return SqlAnswer(
            table, answers, one.spent, one.remaining, one.unit,
            one.guarantee, one.receipt, one.reused, (*table.notes, *paid, *one.notes),
            again=asked.sampled(released, one.unit),
        )  # fmt: skip

    def explain(
        self,
        text: str,
        *,
        spend: Loss | None = None,
        within: Within = None,
        beta: float = 0.05,
        at_most: Loss | None = None,
        other: str | None = None,
        law: LawName | None = None,
        bounds: Bounds | None = None,
        interval: bool = True,
    ) -> Explanation:
        """What a query would ask, cost and be worth; spends nothing, reads no row."""
        facts, beta = self._oracle.facts, probability(beta)
        forecast = self._forecast(text, facts, other, spend=spend, within=within, interval=interval)
        return self._explained(forecast, SqlPay(spend, within, beta, at_most, law, bounds))

    def foresee(
        self, text: str, *, spend: Loss | None = None, law: LawName | None = None, bounds: Bounds | None = None
    ) -> Plan | Explanation | None:
        """What a query would ask and cost; None where nothing private is asked, and for EXPLAIN, which is free.

        With a search for bounds, an explanation: it has the plans of both asks.
        """
        forecast = self._forecast(text, self._oracle.facts, spend=spend)
        if forecast.compiled.explain:
            return None
        if bounds is not None:
            return self._foretold_search(forecast, SqlPay(spend, None, BETA, None, law, bounds))
        return forecast.plan(forecast.nearest(spend, law, BETA))

    def plan(
        self,
        texts: Sequence[str],
        *,
        spend: Loss,
        beta: float = 0.05,
        known: Sequence[SqlAnswer | None] = (),
        law: LawName | None = None,
        weights: Sequence[float] | None = None,
        interval: bool = True,
    ) -> Workload:
        """Divide a total over queries so that their mean relative error, by what each counts, is least."""
        facts, beta = self._oracle.facts, probability(beta)
        if not isinstance(texts, (list, tuple)) or not texts or not isinstance(known, (list, tuple)):
            raise QuestionError("bad-question", "A plan is made for a list of queries, and of answers known already.")
        if not isinstance(spend, (Epsilon, Rho, EpsilonDelta)) or isinstance(facts.budget, SubLinear):
            raise QuestionError("spend-kind", "A plan divides a total: Epsilon, Rho or EpsilonDelta.")
        if known and len(known) != len(texts):
            raise QuestionError("bad-question", "Give an answer, or None, for each query.")
        if not all(one is None or isinstance(one, SqlAnswer) for one in known):
            raise QuestionError("bad-question", "What is known already is an answer of db.sql, or None.")
        keys: dict[object, RowFn] = {}
        forecasts = [replace(self._forecast(text, facts, spend=spend, interval=interval), keys=keys) for text in texts]
        if any(one.compiled.explain for one in forecasts):
            raise QuestionError(
                "bad-question", "A plan is made of queries; EXPLAIN asks for none.", "Leave EXPLAIN out."
            )
        counted = weights_of(weights, len(texts))
        divisions: dict[Loss, Division] = {}

        def widths(one: Loss | None) -> list[float]:
            if isinstance(one, EpsilonKeys):
                raise QuestionError("open-keys", *NO_OPEN_PLAN)
            total = cast("Epsilon | Rho | EpsilonDelta", one)
            errors = QueryErrors.of(forecasts, total, beta, known, counted)
            divisions[total] = Division.of(errors, total, self._planner)
            found = (query.error for query in divisions[total].queries)
            return [math.fsum(weight * error for weight, error in zip(counted, found, strict=True))]

        total = cast("Loss", nearest(spend, law, lambda: facts.budget, widths))
        if total not in divisions:
            widths(total)
        return Workload.of(
            divisions[total],
            self._oracle,
            lambda text, share: cast("SqlAnswer", self.ask(text, spend=share, interval=interval)),
        )

    # -- what it would cost

    def _forecast(
        self,
        text: str,
        facts: Facts,
        other: str | None = None,
        *,
        spend: Loss | None,
        within: Within = None,
        interval: bool = True,
    ) -> ErrorForecast:
        if not isinstance(interval, bool):
            raise QuestionError("bad-question", "interval is True or False.")
        if not (spend is None or isinstance(spend, Loss)):
            raise QuestionError("bad-loss", "spend is a loss such as Epsilon(0.1) or Rho(0.005).")
        known: dict[tuple[str, Loss | None], Plan] = {}

        def foresee(question: Question, spend: Loss | None) -> Plan:
            text = wire.encode(question), spend
            if text not in known:
                known[text] = self._oracle.foresee(question, spend=spend)
            return known[text]

        compiled = compiled_of(text, facts, self._read)
        # No delta would find groups: a price that is worked out has none.
        pure = isinstance(spend, (Epsilon, Rho)) or within is not None or isinstance(facts.budget, SubLinear)
        compiled = replace(compiled, program=listing(compiled.program, pure=pure))
        return ErrorForecast(compiled, facts, foresee, other, interval)

    def _bounded(self, forecast: ErrorForecast, pay: SqlPay, *, fresh: bool) -> SqlAnswer:
        """Search for where the values lie, then answer of values clipped to there; a refusal is free of charge."""
        asked, first, rest = self._searched(forecast, pay)
        if first is None or forecast.plan(rest) is None:
            return self._answered(forecast, rest, (NO_SEARCH,), fresh=fresh)
        values = list(asked.values.values())
        replace(forecast, compiled=replace(forecast.compiled, program=asked.narrowest())).plan(rest)  # or is refused
        found = search(self._oracle, values, first, forecast.plan(rest), reuse=not fresh)
        program = asked.clipped(dict(zip(asked.values, found.clips, strict=True)))
        forecast = replace(forecast, compiled=replace(forecast.compiled, program=program))
        answer, before = self._answered(forecast, rest, (), fresh=fresh), found.answers[0]
        return replace(
            answer,
            spent=total_spent(before.spent, answer.spent),
            reused=answer.reused and before.reused,
            notes=(*found.told(asked.names, answer.spent), *answer.notes),
            clips=found.named(asked.names),
        )

    def _searched(self, forecast: ErrorForecast, pay: SqlPay) -> tuple[QuerySearch, Loss | None, Loss | None]:
        """What is searched for, for how much (None: nothing is), and what is left for the answer, in its law."""
        check_bounds(pay.bounds, forecast.facts, pay.within)
        asked = QuerySearch.of(forecast.program, forecast.facts)
        check_most(pay.spend, pay.at_most, forecast.facts)
        first, rest = divided_spend(pay.spend) if asked.values else (None, pay.spend)
        return asked, first, forecast.nearest(rest, pay.law, pay.beta)

    def _foretold_search(self, forecast: ErrorForecast, pay: SqlPay) -> Explanation:
        """What a search and then the query would cost; the accuracy is that of the declared bounds."""
        asked, first, rest = self._searched(forecast, pay)
        found = forecast.explained(rest, pay.beta)
        if first is None or found.plan is None:
            return self._left(replace(found, notes=(*found.notes, NO_SEARCH)))
        search_plan = self._oracle.foresee(question_of([*asked.values.values()]), spend=first)
        return self._left(replace(found, search=search_plan))

    def _explained(self, forecast: ErrorForecast, pay: SqlPay) -> Explanation:
        if pay.bounds is not None:
            check_bounds(pay.bounds, forecast.facts, pay.within)
            found = self._foretold_search(forecast, replace(pay, spend=pay.spend or example(forecast.facts)))
            return found if pay.spend else replace(found, notes=(*found.notes, _unnamed(found.price)))
        facts, other = forecast.facts, forecast.other
        last = (f"row {other[:80]!r}: {REST}",) if isinstance(other, str) else ()  # what is no text is refused below
        notes: tuple[str, ...] = ()
        spend, rows = pay.spend, facts.size or UNDECLARED_SIZE_ROWS
        if pay.within is not None:
            one_price(spend)
            forecast, spend = self._cheapest(
                forecast, replace(pay, at_most=None), kinds(facts.budget, pay.at_most, pay.law), rows
            )
            notes = (f"priced for {rows:,} rows a group; asking buys a count first where it matters (SR7)",)
        elif spend is None and not isinstance(facts.budget, SubLinear):
            spend = example(facts)
            notes = (_unnamed(spend),)
        else:
            spend = forecast.nearest(spend, pay.law, pay.beta)
            notes = self._other_law(forecast, pay, spend)
        try:
            return self._left(forecast.explained(spend, pay.beta, (*notes, *last)))
        except QuestionError as error:
            if error.code != "open-keys" or not notes or not isinstance(facts.budget, EpsilonDelta):
                raise
            tenth = EpsilonDelta(facts.budget.exact / 10, facts.budget.exact_delta / 10)
            spend = forecast.nearest(tenth, pay.law, pay.beta)
            notes = (_unnamed(tenth), *last)
            return self._left(forecast.explained(spend, pay.beta, notes))

    def _other_law(self, forecast: ErrorForecast, pay: SqlPay, spend: Loss | None) -> tuple[str, ...]:
        """What Gaussian noise would leave, where Laplace noise was nearer and takes more of a budget for many asks."""
        pure = isinstance(spend, (Epsilon, EpsilonKeys))
        if not isinstance(pay.spend, EpsilonDelta) or pay.law is not None or not pure:
            return ()
        plan = forecast.plan(pay.spend)
        if plan is None or not isinstance(self._oracle, ForecastingOracle):
            return ()
        (left,) = self._oracle.afford((plan.event,))
        told = "be refused" if left is None else f"leave {left.remaining}"
        return (f'Laplace noise is nearer here; law="gaussian", farther off, would {told}',)

    def _left(self, found: Explanation) -> Explanation:
        """The explanation with what asking would leave of the budget."""
        if found.plan is None or not isinstance(self._oracle, ForecastingOracle):
            return found
        plans = (found.plan,) if found.search is None else (found.search, found.plan)
        left = self._oracle.afford([plan.event for plan in plans])
        return replace(found, left=left[-1], fits=None not in left)

    def _price(self, forecast: ErrorForecast, pay: SqlPay) -> tuple[ErrorForecast, Loss, tuple[str, ...]]:
        """The smallest spend that is accurate enough, given counts that are declared or bought (SR7), and a note."""
        wanted = kinds(forecast.facts.budget, pay.at_most, pay.law)
        _layouts(forecast, wanted[0](1))  # or is refused, before a count is bought
        trial = forecast.plan(wanted[0](1))
        count: int | None = UNDECLARED_SIZE_ROWS
        paid: tuple[str, ...] = ()
        if any(not forecast.sure(trial, column, pay.beta) for column in wished(pay.within, forecast.names)):
            count = _declared(forecast.program, forecast.facts)
            if count is None:
                first, rest = count_first(pay.at_most)
                count, cost = self._bought(forecast.program, first, pay.beta)
                paid, pay = (f"a count that set the price cost {cost} besides",), replace(pay, at_most=rest)
        return *self._cheapest(forecast, pay, wanted, count or 0, bought=True), paid

    def _cheapest(
        self,
        forecast: ErrorForecast,
        pay: SqlPay,
        wanted: tuple[type[Epsilon | Rho], ...],
        rows: int,
        *,
        bought: bool = False,
    ) -> tuple[ErrorForecast, Epsilon | Rho]:
        """The price by the law that takes the least of what is left, and how the query is asked for it.

        `rows`: how many a group has; where they were `bought`, less what noise may have added to their number.
        """
        wishes = wished(pay.within, forecast.names)

        def left(plan: Plan) -> int:
            return max(rows - slip(plan, pay.beta), 0) if bought else rows

        asked: dict[Loss, ErrorForecast] = {}

        def priced(kind: type[Epsilon | Rho]) -> Epsilon | Rho:
            found: Epsilon | Rho | None = None
            for one in _layouts(forecast, kind(1)):
                off = error_at(one, kind, wishes, pay.beta, left)
                if found is None or off(float(found.exact)) <= 1:  # another may be cheaper
                    found = price(off, kind)
                    asked[found] = one
            return affordable(cast("Epsilon | Rho", found), pay.at_most, forecast.facts)

        def event(loss: Loss) -> Event:
            plan = asked[loss].plan(loss)
            return Event(None, Fraction(0)) if plan is None else plan.event

        found = cheapest(forecast.facts, wanted, priced, event)
        return asked[found], found

    def _bought(self, program: TableProgram, spend: Loss, beta: float) -> tuple[int, Loss]:
        """A lower bound on the number of values in every group that has any; what it cost.

        A group of which not even one row is sure (the one of missing keys, most often) is
        left out: no price makes its quotients accurate, and its error bars say so.
        """
        questions = tuple(_counts(groups) for groups in sources_of(program) if groups.stats)
        answers = cast("Answers", self._oracle.ask(Together(questions), spend=spend, reuse=True))
        draws = sum(answer.released.draws for answer in answers)
        lows = [low for answer in answers for low in Plain().interval(answer.released, beta / draws)[0].ravel()]
        return int(min((low for low in lows if low >= 1), default=0)), answers[0].spent


def one_price(spend: Loss | None) -> None:
    """Refuse two prices for one ask."""
    if spend is not None:
        raise QuestionError("bad-question", "Name spend or within, not both.")


def _layouts(forecast: ErrorForecast, spend: Loss) -> tuple[ErrorForecast, ...]:
    """The ways to ask a query whose intervals are priced: without any choice, most often cheaper, or as it is asked.

    Raises:
        QuestionError: where a quantile is chosen and no interval is bought.
    """
    question = forecast.prepared(spend).question
    if question is None or not any(isinstance(one, Choose) for one in question.questions):
        return (forecast,)
    if not forecast.interval:
        raise QuestionError(
            "bad-question",
            "within= is the width of an interval, and with interval=False quantiles have none.",
            "Leave out interval=False, or name spend= instead.",
        )
    return replace(forecast, counted=True), forecast


def _unnamed(spend: Loss | None) -> str:
    return f"no spend was named: this is for {spend}"


def example(facts: Facts) -> Loss:
    """A spend to explain with where none was named: a tenth of the budget."""
    budget = facts.budget
    if isinstance(budget, EpsilonDelta):
        return Epsilon(budget.exact / 10)
    return budget.share(Fraction(1, 10)) if isinstance(budget, (Epsilon, Rho)) else Queries(1)


def _declared(program: TableProgram, facts: Facts) -> int | None:
    """The declared size, where it is the number of values of every group: all rows kept, none without a value."""
    if facts.size is None or facts.unit.column is not None:
        return None
    for groups in sources_of(program):
        first = isinstance(groups.over, Table) and groups.over.name in ("", facts.table)  # the size is its alone
        whole = first and groups.where is None and not groups.keys
        schema = facts.table_of(groups.over.name).schema if isinstance(groups.over, Table) else facts.schema
        present = all(
            stat.where is None and not stat.distinct and not any(arg.kind(schema).nullable for arg in stat.args)
            for stat in groups.stats
        )
        if not whole or not present:
            return None
    return facts.size


def _counts(groups: GroupStatistics) -> Sums:
    """How many values each statistic of each group rests on."""
    if any(stat.distinct for stat in groups.stats):
        raise QuestionError("bad-question", "within= has no price for DISTINCT values.", "Name spend= instead.")
    there = (both(*(Not(IsMissing(arg)) for arg in stat.args), stat.where) for stat in groups.stats)
    values = tuple(Lit(1) if fn is None else fn for fn in there)
    return Sums(values, groups.where, groups.keys, (), groups.over)
