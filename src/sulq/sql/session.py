"""SQL before an Oracle: text in, an answer, an explanation or a plan of several out.

One query is one question and one debit. Everything here is the free half: what it
gets wrong costs accuracy or money, never privacy (S0.29).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final, cast

from sulq.answers.answer import Answers
from sulq.answers.estimators import Plain
from sulq.answers.oracle import Oracle
from sulq.answers.plan import Plan, affordable, probe
from sulq.answers.reuse import nothing
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Queries, Rho, SubLinear, probability
from sulq.language.question import Question, Sums, Together
from sulq.language.relation import Table
from sulq.language.rowfn import IsMissing, Lit, Not
from sulq.sql.answer import SqlAnswer
from sulq.sql.compile import compile as compiled_of
from sulq.sql.explain import Explanation, Planned, Workload
from sulq.sql.forecast import LEANS, UNDECLARED_SIZE_ROWS, ErrorForecast, Off, amount, divided, price, slip, wished
from sulq.sql.parse.text import reader
from sulq.sql.released.program import GroupStatistics, TableProgram
from sulq.sql.released.render import prepare, sources_of
from sulq.sql.rows.values import both

COUNT_FIRST: Final = Fraction(1, 10)  # of at_most: the noisy counts bought before a quotient is priced (SR7)
REST: Final = "a total less the groups shown, so each group adds its noise"
Within = float | Mapping[str, float] | None
Rows = Callable[[Plan], int]  # how many rows a group may be taken to have


class Sql:
    """Queries in SQL, for any Oracle."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
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
    ) -> SqlAnswer | Explanation:
        """Answer a query at one debit; of EXPLAIN SELECT only the explanation, free."""
        facts, beta = self._oracle.facts, probability(beta)
        forecast = self._forecast(text, facts, other)
        if forecast.compiled.explain:
            return self._explained(forecast, spend, within, beta, at_most)
        if not isinstance(fresh, bool):
            raise QuestionError("bad-question", "fresh is True or False.")
        paid: tuple[str, ...] = ()
        if within is not None:
            one_price(spend)
            spend, paid = self._price(forecast, within, beta, at_most)
        asked = prepare(forecast.program, facts, spend, other)
        if asked.question is None:
            table = asked.read([])
            return SqlAnswer(table, None, nothing(facts.remaining), facts.remaining, facts.unit, "dp")
        answers = cast("Answers", self._oracle.ask(asked.question, spend=spend, reuse=not fresh))
        one = answers[0]
        table = asked.read([answer.released for answer in answers])
        return SqlAnswer(
            table, answers, one.spent, one.remaining, one.unit,
            one.guarantee, one.receipt, one.reused, (*table.notes, *paid, *one.notes),
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
    ) -> Explanation:
        """What a query would ask, cost and be worth; spends nothing, reads no row."""
        facts, beta = self._oracle.facts, probability(beta)
        return self._explained(self._forecast(text, facts, other), spend, within, beta, at_most)

    def plan(
        self, texts: Sequence[str], *, spend: Loss, beta: float = 0.05, known: Sequence[SqlAnswer | None] = ()
    ) -> Workload:
        """Divide a total over queries so that the worst error, relative to what values can be, is smallest."""
        facts, beta = self._oracle.facts, probability(beta)
        if not isinstance(texts, (list, tuple)) or not texts or not isinstance(known, (list, tuple)):
            raise QuestionError("bad-question", "A plan is made for a list of queries, and of answers known already.")
        if not isinstance(spend, (Epsilon, Rho, EpsilonDelta)) or isinstance(facts.budget, SubLinear):
            raise QuestionError("spend-kind", "A plan divides a total: Epsilon, Rho or EpsilonDelta.")
        if known and len(known) != len(texts):
            raise QuestionError("bad-question", "Give an answer, or None, for each query.")
        if not all(one is None or isinstance(one, SqlAnswer) for one in known):
            raise QuestionError("bad-question", "What is known already is an answer of db.sql, or None.")
        rows = facts.size or UNDECLARED_SIZE_ROWS
        forecasts = [self._forecast(text, facts) for text in texts]
        units = [_units(one, spend, rows, known[i] if known else None) for i, one in enumerate(forecasts)]
        kind: type[Epsilon | Rho] = Epsilon if isinstance(spend, Epsilon) else Rho
        errors = [
            _error(one, kind, unit, beta, lambda _: rows, priced=False)
            for one, unit in zip(forecasts, units, strict=True)
        ]
        whole = facts.counted(spend) if isinstance(spend, EpsilonDelta) else spend
        parts = divided(errors, amount(whole), squared=kind is Rho)
        made = []
        for forecast, unit, part in zip(forecasts, units, parts, strict=True):
            share = whole.share(part)
            widths = forecast.widths(forecast.plan(share), rows=rows, beta=beta, whole=True)
            error = max((width / unit[i] for i, width in enumerate(widths)), default=0.0)
            shown = tuple((name, width) for name, width in zip(forecast.names, widths, strict=True) if width)
            made.append(Planned(forecast.compiled.text, share, error, shown, forecast.explained(share, beta)))

        def asker(text: str, share: Loss) -> SqlAnswer:
            return cast("SqlAnswer", self.ask(text, spend=share))

        return Workload(tuple(made), spend, rows, asker)

    # -- what it would cost

    def _forecast(self, text: str, facts: Facts, other: str | None = None) -> ErrorForecast:
        def foresee(question: Question, spend: Loss | None) -> Plan:
            return self._oracle.foresee(question, spend=spend)

        return ErrorForecast(compiled_of(text, facts, self._read), facts, foresee, other)

    def _explained(
        self, forecast: ErrorForecast, spend: Loss | None, within: Within, beta: float, at_most: Loss | None
    ) -> Explanation:
        facts, other = forecast.facts, forecast.other
        last = (f"row {other[:80]!r}: {REST}",) if isinstance(other, str) else ()  # what is no text is refused below
        notes: tuple[str, ...] = ()
        if within is not None:
            one_price(spend)
            kind, rows = _kind(facts, at_most), facts.size or UNDECLARED_SIZE_ROWS
            wishes = wished(within, forecast.names)
            spend = price(_error(forecast, kind, wishes, beta, lambda _: rows, priced=True), kind)
            notes = (f"priced for {rows:,} rows a group; asking buys a count first where it matters (SR7)",)
        elif spend is None and not isinstance(facts.budget, SubLinear):
            spend = example(facts)
            notes = (f"no spend was named: this is for {spend}",)
        try:
            return forecast.explained(spend, beta, (*notes, *last))
        except QuestionError as error:
            if error.code != "open-keys" or not notes or not isinstance(facts.budget, EpsilonDelta):
                raise
            spend = EpsilonDelta(facts.budget.exact / 10, facts.budget.exact_delta / 10)
            return forecast.explained(spend, beta, (f"no spend was named: this is for {spend}", *last))

    def _price(
        self, forecast: ErrorForecast, within: Within, beta: float, at_most: Loss | None
    ) -> tuple[Loss, tuple[str, ...]]:
        """The smallest spend that is accurate enough, given counts that are declared or bought (SR7), and a note."""
        kind = _kind(forecast.facts, at_most)
        wishes = wished(within, forecast.names)
        trial = forecast.plan(kind(1))
        count: int | None = UNDECLARED_SIZE_ROWS
        paid: tuple[str, ...] = ()
        if any(not forecast.sure(trial, column, beta) for column in wishes):
            count = _declared(forecast.program, forecast.facts)
            if count is None:
                if at_most is None or isinstance(at_most, Queries):
                    remedy = "Give at_most=; a tenth of it buys a count first."
                    raise QuestionError("spend-missing", "No count is known here.", remedy)
                count, cost = self._bought(forecast.program, at_most, beta)
                paid = (f"a count that set the price cost {cost} besides",)
                at_most = at_most.share(1 - COUNT_FIRST)

        def left(plan: Plan) -> int:
            return max((count or 0) - slip(plan, beta), 0)

        return affordable(price(_error(forecast, kind, wishes, beta, left, priced=True), kind), at_most), paid

    def _bought(self, program: TableProgram, at_most: Epsilon | Rho | EpsilonDelta, beta: float) -> tuple[int, Loss]:
        """A lower bound on the number of values in every group that has any, for a part of at_most; what it cost.

        A group of which not even one row is sure (the one of missing keys, most often) is
        left out: no price makes its quotients accurate, and its error bars say so.
        """
        questions = tuple(_counts(groups) for groups in sources_of(program) if groups.stats)
        answers = cast("Answers", self._oracle.ask(Together(questions), spend=at_most.share(COUNT_FIRST), reuse=True))
        draws = sum(answer.released.draws for answer in answers)
        lows = [low for answer in answers for low in Plain().interval(answer.released, beta / draws)[0].ravel()]
        return int(min((low for low in lows if low >= 1), default=0)), answers[0].spent


def _kind(facts: Facts, at_most: Loss | None) -> type[Epsilon | Rho]:
    """The kind of loss a price is looked for in."""
    if isinstance(facts.budget, SubLinear):
        raise QuestionError("spend-kind", "Under SubLinear the noise is fixed; within= has no price.")
    return type(probe(facts.budget, at_most))


def one_price(spend: Loss | None) -> None:
    """Refuse two prices for one ask."""
    if spend is not None:
        raise QuestionError("bad-question", "Name spend or within, not both.")


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
        whole = isinstance(groups.over, Table) and groups.where is None and not groups.keys
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


def _units(forecast: ErrorForecast, spend: Loss, rows: int, known: SqlAnswer | None) -> dict[int, float]:
    """What each column's error is measured by: an answer already released, or the range declared bounds allow."""
    declared = dict(enumerate(forecast.scales(forecast.plan(spend), rows=rows)))
    table = {} if known is None else known.to_dict()
    released = [
        max((abs(float(v)) for v in table.get(name, []) if isinstance(v, (int, float))), default=0.0)
        for name in forecast.names
    ]
    return {i: released[i] or scale for i, scale in declared.items()}


def _error(
    forecast: ErrorForecast,
    kind: type[Epsilon | Rho],
    units: Mapping[int, float],
    beta: float,
    rows: Rows,
    *,
    priced: bool,
) -> Off:
    """How far off a query would be at a spend: its worst column, in units of what is wished for.

    `priced`: every group has `rows` and values lie anywhere in their bounds; else all groups together have `rows`.
    """

    def off(spend: float) -> float:
        try:
            plan = forecast.plan(kind(spend))
        except QuestionError as error:
            if error.code != "too-little-noise":
                raise
            return 0.0 if priced and spend >= 1 else math.inf
        if plan is None:
            return 0.0
        leans = LEANS if priced else LEANS[:1]
        widths = forecast.widths(plan, rows=rows(plan), beta=beta, leans=leans, whole=not priced)
        return max((widths[column] / unit for column, unit in units.items()), default=0.0)

    return off
