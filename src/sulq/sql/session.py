"""SQL before an Oracle: text in, an answer, an explanation or a plan of several out.

One query is one question and one debit. Everything here is the free half: what it
gets wrong costs accuracy or money, never privacy (S0.29).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final, cast

from sulq.answers.answer import Answers
from sulq.answers.estimators import Plain
from sulq.answers.oracle import Oracle
from sulq.answers.plan import Plan
from sulq.answers.pricing import affordable, probe
from sulq.answers.reuse import nothing
from sulq.errors import QuestionError
from sulq.language.facts import Facts
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Queries, Rho, SubLinear, probability
from sulq.language.question import Question, Sums, Together
from sulq.language.relation import Table
from sulq.language.rowfn import IsMissing, Lit, Logic, Not, RowFn
from sulq.sql.answer import SqlAnswer
from sulq.sql.compile import Compiled
from sulq.sql.compile import compile as compiled_of
from sulq.sql.expected_error import SOME, Foreteller, slip, wished
from sulq.sql.explain import Explanation
from sulq.sql.parse.text import reader
from sulq.sql.price import Off, amount, divided, price
from sulq.sql.released.forecast import LEANS
from sulq.sql.released.render import prepare, sources_of
from sulq.sql.rows.statistics import Groups, Stat
from sulq.sql.workload import Planned, Workload

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
        compiled = compiled_of(text, facts, self._read)
        if compiled.explain:
            return self._explained(
                text, compiled, facts, spend=spend, within=within, beta=beta, at_most=at_most, other=other
            )
        if not isinstance(fresh, bool):
            raise QuestionError("bad-question", "fresh is True or False.")
        paid: tuple[str, ...] = ()
        if within is not None:
            one_price(spend)
            spend, paid = self._price(compiled, facts, within, beta, at_most, other=other)
        asked = prepare(compiled.program, facts, spend, other)
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
        compiled = compiled_of(text, facts, self._read)
        return self._explained(
            text, compiled, facts, spend=spend, within=within, beta=beta, at_most=at_most, other=other
        )

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
        rows = facts.size or SOME
        tellers = [self._teller(compiled_of(text, facts, self._read), facts) for text in texts]
        rulers = [_ruler(teller, spend, rows, known[i] if known else None) for i, teller in enumerate(tellers)]
        one: type[Epsilon | Rho] = Epsilon if isinstance(spend, Epsilon) else Rho
        offs = [_relative(teller, one, ruler, rows, beta) for teller, ruler in zip(tellers, rulers, strict=True)]
        parts = divided(offs, amount(spend), squared=one is Rho)
        made = []
        for text, teller, ruler, part in zip(texts, tellers, rulers, parts, strict=True):
            share = spend.share(part)
            widths = teller.widths(teller.plan(share), rows=rows, beta=beta, whole=True)
            error = max((w / r for w, r in zip(widths, ruler, strict=True)), default=0.0)
            shown = tuple((name, width) for name, width in zip(teller.names, widths, strict=True) if width)
            made.append(Planned(text, share, error, shown, teller.explained(text, share, beta)))

        def asker(text: str, share: Loss) -> SqlAnswer:
            return cast("SqlAnswer", self.ask(text, spend=share))

        return Workload(tuple(made), spend, rows, asker)

    # -- what it would cost

    def _teller(self, compiled: Compiled, facts: Facts, other: str | None = None) -> Foreteller:
        return Foreteller(compiled.program, facts, self._foresee, other)

    def _foresee(self, question: Question, spend: Loss | None) -> Plan:
        return self._oracle.foresee(question, spend=spend)

    def _explained(
        self,
        text: str,
        compiled: Compiled,
        facts: Facts,
        *,
        spend: Loss | None,
        within: Within,
        beta: float,
        at_most: Loss | None,
        other: str | None,
    ) -> Explanation:
        teller = self._teller(compiled, facts, other)
        last = () if other is None else (f"row {str(other)[:80]!r}: {REST}",)
        notes: tuple[str, ...] = ()
        if within is not None:
            one_price(spend)
            kind = type(self._probe(facts, at_most))
            rows = facts.size or SOME
            spend = price(self._off(teller, kind, wished(within, teller.names), beta, lambda _: rows), kind)
            notes = (f"priced for {rows:,} rows a group; asking buys a count first where it matters (SR7)",)
        elif spend is None and not isinstance(facts.budget, SubLinear):
            spend = example(facts)
            notes = (f"no spend was named: this is for {spend}",)
        try:
            return teller.explained(text, spend, beta, (*notes, *last))
        except QuestionError as error:
            if error.code != "open-keys" or not notes or not isinstance(facts.budget, EpsilonDelta):
                raise
            spend = EpsilonDelta(facts.budget.exact / 10, facts.budget.exact_delta / 10)
            return teller.explained(text, spend, beta, (f"no spend was named: this is for {spend}", *last))

    def _price(
        self, compiled: Compiled, facts: Facts, within: Within, beta: float, at_most: Loss | None, *, other: str | None
    ) -> tuple[Loss, tuple[str, ...]]:
        """The smallest spend that is accurate enough, given counts that are declared or bought (SR7), and a note."""
        teller = self._teller(compiled, facts, other)
        kind = type(self._probe(facts, at_most))
        wishes = wished(within, teller.names)
        trial = teller.plan(kind(1))
        count: int | None = SOME
        paid: tuple[str, ...] = ()
        if any(not teller.sure(trial, column, beta) for column in wishes):
            count = _declared(compiled, facts)
            if count is None:
                if at_most is None or isinstance(at_most, Queries):
                    remedy = "Give at_most=; a tenth of it buys a count first."
                    raise QuestionError("spend-missing", "No count is known here.", remedy)
                count, cost = self._bought(compiled, at_most, beta)
                paid = (f"a count that set the price cost {cost} besides",)
                at_most = at_most.share(1 - COUNT_FIRST)

        def left(plan: Plan) -> int:
            return max((count or 0) - slip(plan, beta), 0)

        return affordable(price(self._off(teller, kind, wishes, beta, left), kind), at_most), paid

    def _off(
        self, teller: Foreteller, kind: type[Epsilon | Rho], wishes: Mapping[int, float], beta: float, rows: Rows
    ) -> Off:
        def off(spend: float) -> float:
            try:
                plan = teller.plan(kind(spend))
            except QuestionError as error:
                if error.code != "too-little-noise":
                    raise
                return float("inf") if spend < 1 else 0.0
            if plan is None:
                return 0.0
            widths = teller.widths(plan, rows=rows(plan), beta=beta, leans=LEANS)
            return max(widths[column] / wish for column, wish in wishes.items())

        return off

    def _bought(self, compiled: Compiled, at_most: Epsilon | Rho | EpsilonDelta, beta: float) -> tuple[int, Loss]:
        """A lower bound on the number of values in every group that has any, for a part of at_most; what it cost.

        A group of which not even one row is sure (the one of missing keys, most often) is
        left out: no price makes its quotients accurate, and its error bars say so.
        """
        questions = tuple(_counts(groups) for groups in sources_of(compiled.program) if groups.stats)
        answers = cast("Answers", self._oracle.ask(Together(questions), spend=at_most.share(COUNT_FIRST), reuse=True))
        draws = sum(answer.released.draws for answer in answers)
        lows = [low for answer in answers for low in Plain().interval(answer.released, beta / draws)[0].ravel()]
        return int(min((low for low in lows if low >= 1), default=0)), answers[0].spent

    def _probe(self, facts: Facts, at_most: Loss | None) -> Epsilon | Rho:
        if isinstance(facts.budget, SubLinear):
            raise QuestionError("spend-kind", "Under SubLinear the noise is fixed; within= has no price.")
        return probe(facts.budget, at_most)


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


def _declared(compiled: Compiled, facts: Facts) -> int | None:
    """The declared size, where it is the number of values of every group: all rows kept, none without a value."""
    if facts.size is None or facts.unit.column is not None:
        return None
    for groups in sources_of(compiled.program):
        whole = isinstance(groups.over, Table) and groups.where is None and not groups.keys
        schema = facts.table_of(groups.over.name).schema if isinstance(groups.over, Table) else facts.schema
        present = all(
            stat.where is None and not stat.distinct and not any(arg.kind(schema).nullable for arg in stat.args)
            for stat in groups.stats
        )
        if not whole or not present:
            return None
    return facts.size


def _counts(groups: Groups) -> Sums:
    """How many values each statistic of each group rests on."""
    if any(stat.distinct for stat in groups.stats):
        raise QuestionError("bad-question", "within= has no price for DISTINCT values.", "Name spend= instead.")
    values: list[RowFn] = [_present(stat) for stat in groups.stats]
    return Sums(tuple(values), groups.where, groups.keys, (), groups.over)


def _present(stat: Stat) -> RowFn:
    conditions = [*(Not(IsMissing(arg)) for arg in stat.args), *(() if stat.where is None else (stat.where,))]
    if not conditions:
        return Lit(1)
    return conditions[0] if len(conditions) == 1 else Logic("and", tuple(conditions))


def _ruler(teller: Foreteller, spend: Loss, rows: int, known: SqlAnswer | None) -> tuple[float, ...]:
    """What each column's error is measured by: an answer already released, or the range declared bounds allow."""
    declared = teller.scales(teller.plan(spend), rows=rows)
    if known is None:
        return declared
    table = known.to_dict()
    released = [
        max((abs(float(v)) for v in table.get(name, []) if isinstance(v, (int, float))), default=0.0)
        for name in teller.names
    ]
    return tuple(value or scale for value, scale in zip(released, declared, strict=True))


def _relative(teller: Foreteller, kind: type[Epsilon | Rho], ruler: tuple[float, ...], rows: int, beta: float) -> Off:
    def off(spend: float) -> float:
        try:
            plan = teller.plan(kind(spend))
        except QuestionError as error:
            if error.code != "too-little-noise":
                raise
            return float("inf")
        widths = teller.widths(plan, rows=rows, beta=beta, whole=True)
        return max((width / scale for width, scale in zip(widths, ruler, strict=True)), default=0.0)

    return off
