"""What an analyst types, written once on an Oracle: counts, sums, means, variances, histograms.

Nothing here sees a row. Each ask becomes one question and one way to read its
answer, so a mistake here can cost accuracy and never privacy (S0.29).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, Literal, cast

from sulq.answers.answer import Answer, Answers
from sulq.answers.budget import BudgetReport
from sulq.answers.estimators import Plain
from sulq.answers.oracle import ColumnChoice, GraphTable, Oracle
from sulq.answers.plan import Plan, affordable, price_of_mean, price_of_sums, probe
from sulq.answers.sized import Average
from sulq.api import questions
from sulq.api.questions import By, Keys, Pay, Where
from sulq.errors import QuestionError
from sulq.language.estimator import Certificate, Property, Stated
from sulq.language.facts import Facts
from sulq.language.privacy import Epsilon, Loss, Queries, Rho, SubLinear, exactly, probability
from sulq.language.question import Holistic, Question, Sums
from sulq.language.relation import Table
from sulq.language.rowfn import IsMissing, Lit, Not, RowFn, named
from sulq.language.rowfn.base import several
from sulq.language.rowfn.vectors import bounded
from sulq.language.space import Cube
from sulq.language.statistic import Aggregated, Certified, HeavyPersons, Occurring, ToProperty, ToSorted, ToUnique
from sulq.sql.answer import SqlAnswer
from sulq.sql.explain import Explanation, Workload
from sulq.sql.named_asks import count_distinct, or_missing, parts, quantiles
from sulq.sql.released.program import Stat
from sulq.sql.session import Sql, Within

COUNT_FIRST: Final = Fraction(1, 10)  # of at_most: the noisy count bought before a mean is priced (SR7)


class NamedAsks:
    """The named asks, for any Oracle.

    A question asked before at this price or a higher one gets its stored answer
    again, free and marked `reused`; `fresh=True` buys new noise instead (SR12).
    """

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._sql = Sql(oracle)

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

    def ask(self, question: Question, *, spend: Loss | None = None, key: str | None = None) -> Answer | Answers:
        """Ask a question of the language itself; always new noise, always charged."""
        return self._oracle.ask(question, spend=spend, key=key)

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy of a question; free."""
        return self._oracle.foresee(question, spend=spend)

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
    ) -> Answer:
        """How many rows satisfy a condition."""
        question = Sums((Lit(1),), where, self._keys(by))
        return self._sums(question, "count", Pay(spend, within, beta, at_most, fresh))

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
    ) -> Answer:
        """The sum of a bounded number; missing values add nothing."""
        question = questions.total(self.facts, named(value), where, self._keys(by))
        return self._sums(question, "sum", Pay(spend, within, beta, at_most, fresh))

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
    ) -> Answer:
        """How many rows fall into each bin: edges, a number of equal bins, or every declared value."""
        question = Sums((Lit(1),), where, (questions.binned(self.facts, named(value), bins),))
        return self._sums(question, "count", Pay(spend, within, beta, at_most, fresh))

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
    ) -> Answer:
        """The mean of a bounded number over the rows where it is present (SR18)."""
        fn, partition, pay = named(value), self._keys(by), Pay(spend, within, beta, at_most, fresh)
        notes: tuple[str, ...] = ()
        if within is not None:
            price, notes = self._price_of_mean(fn, where, partition, pay)
            pay = replace(pay, spend=price)
        question, reading = questions.mean(self.facts, fn, where, partition, pay.spend)
        answer = self._answer(question, pay)
        return replace(answer, notes=(*notes, *answer.notes)).read(reading, ("mean",))

    def variance(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        ddof: int = 0,
        spend: Loss | None = None,
        fresh: bool = False,
    ) -> Answer:
        """The variance of a bounded number over the rows where it is present."""
        fn, partition = named(value), self._keys(by)
        question, reading = questions.spread(self.facts, fn, where, partition, spend, root=False, ddof=ddof)
        return self._answer(question, Pay(spend, fresh=fresh)).read(reading, ("variance",))

    def std(
        self,
        value: object,
        *,
        where: Where = None,
        by: By = None,
        ddof: int = 0,
        spend: Loss | None = None,
        fresh: bool = False,
    ) -> Answer:
        """The standard deviation of a bounded number over the rows where it is present."""
        fn, partition = named(value), self._keys(by)
        question, reading = questions.spread(self.facts, fn, where, partition, spend, root=True, ddof=ddof)
        return self._answer(question, Pay(spend, fresh=fresh)).read(reading, ("std",))

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
        question, reading = questions.covariance(self.facts, items, where, self._keys(by), norm=norm, bound=bound)
        names = [questions.title(item) for item in items]
        pairs = tuple(f"{a}*{b}" for i, a in enumerate(names) for b in names[i:])
        return self._answer(question, Pay(spend, fresh=fresh)).read(reading, pairs, square=True)

    def quantile(
        self,
        value: object,
        q: float | Sequence[float],
        *,
        where: Where = None,
        by: By = None,
        spend: Loss | None = None,
        fresh: bool = False,
    ) -> Answer:
        """Quantiles of a bounded number, interpolated as PERCENTILE_CONT does; several share one spend."""
        fn, wanted = named(value), parts(q)
        stats = [Stat("quantile_cont", (fn,), q=part) for part in wanted]
        names = tuple(f"{float(part):g}" for part in wanted)
        return quantiles(self._oracle, fn, stats, names, where=where, by=self._keys(by), spend=spend, fresh=fresh)

    def median(
        self, value: object, *, where: Where = None, by: By = None, spend: Loss | None = None, fresh: bool = False
    ) -> Answer:
        """The median of a bounded number."""
        return self.quantile(value, 0.5, where=where, by=by, spend=spend, fresh=fresh)

    def min(
        self, value: object, *, where: Where = None, by: By = None, spend: Loss | None = None, fresh: bool = False
    ) -> Answer:
        """The smallest value of a bounded number."""
        return self._extreme(value, "min", where, by, Pay(spend, fresh=fresh))

    def max(
        self, value: object, *, where: Where = None, by: By = None, spend: Loss | None = None, fresh: bool = False
    ) -> Answer:
        """The largest value of a bounded number."""
        return self._extreme(value, "max", where, by, Pay(spend, fresh=fresh))

    def count_distinct(
        self, value: object, *, where: Where = None, by: By = None, spend: Loss | None = None, fresh: bool = False
    ) -> Answer:
        """How many different values there are; of the person's column, how many people."""
        return count_distinct(self._oracle, named(value), where=where, by=self._keys(by), spend=spend, fresh=fresh)

    # -- SQL

    def sql(
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
        """Answer one SELECT, an error bar on every cell; EXPLAIN SELECT is explained instead, free.

        Args:
            text: the query, in PostgreSQL's way.
            spend: what to pay; its kind chooses the noise.
            within: instead, how accurate the columns must be: a width, or {column: width}.
            beta: the probability with which a width may fail.
            at_most: with `within`, what the price may be at most.
            fresh: new noise at full price, although the same was answered before.
            other: where groups of too few people are not shown, the label of a row for all of them together.
        """
        return self._sql.ask(text, spend=spend, within=within, beta=beta, at_most=at_most, fresh=fresh, other=other)

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
        """What a query would ask, why it costs that, and how accurate it would be; spends nothing, reads no row."""
        return self._sql.explain(text, spend=spend, within=within, beta=beta, at_most=at_most, other=other)

    def plan(
        self, queries: Sequence[str], *, spend: Loss, beta: float = 0.05, known: Sequence[SqlAnswer | None] = ()
    ) -> Workload:
        """Divide a total over queries so that the worst error is smallest; spends nothing.

        An error is measured by the range its value can have by the declared bounds, or
        by an answer that is `known` already (one, or None, for each query).
        """
        return self._sql.plan(queries, spend=spend, beta=beta, known=known)

    # -- statistics of the whole table

    @property
    def graph(self) -> GraphTable:
        """The table whose rows are edges: minimum cuts, spanning trees, triangles, degrees."""
        for table in self.facts.catalogue.tables:
            if table.graph is not None:
                return GraphTable(table.graph, self._oracle, table.schema.table)
        raise QuestionError("bad-question", "No graph is declared here.", 'The owner says: graph=("u", "v", "weight").')

    def distance_from_key(
        self, columns: Sequence[str] | str, *, where: Where = None, spend: Loss | None = None, fresh: bool = False
    ) -> Answer:
        """How many rows must go so that no two agree in these columns."""
        return self._answer(Holistic(ToUnique(_several(columns)), where), Pay(spend, fresh=fresh))

    def distance_from_order(
        self, column: str, *, where: Where = None, spend: Loss | None = None, fresh: bool = False
    ) -> Answer:
        """How many rows must go so that the column never falls; where the places of rows are public."""
        return self._answer(Holistic(ToSorted(column), where), Pay(spend, fresh=fresh))

    def occurring(
        self, columns: Sequence[str] | str, *, where: Where = None, spend: Loss | None = None, fresh: bool = False
    ) -> Answer:
        """For each combination of labels whether any row has it: bits, each flipped by itself [S4.16]."""
        return self._answer(Holistic(Occurring(_several(columns)), where, Cube()), Pay(spend, fresh=fresh))

    def statistic(self, name: str, *, spend: Loss | None = None, fresh: bool = False) -> Answer:
        """A function of all rows that the owner has declared, by its name; its sensitivity is the owner's word."""
        table, told = self.facts.declared(name, Certificate, Stated)
        asked = Certified(name, told.columns, placed=self.facts.placed(table))
        return self._answer(Holistic(asked), Pay(spend, fresh=fresh))

    def distance_from(
        self, name: str, *, where: Where = None, spend: Loss | None = None, fresh: bool = False
    ) -> Answer:
        """How many rows, or edges, must change until the table has a property that the owner has declared, by name."""
        table, told = self.facts.declared(name, Property)
        graph = () if table.graph is None else (table.graph.u, table.graph.v)
        return self._answer(Holistic(ToProperty(name, told.columns or graph), where), Pay(spend, fresh=fresh))

    def heavy_persons(self, *, table: str = "", spend: Loss | None = None, fresh: bool = False) -> Answer:
        """How many persons have more rows than are kept of them (`heavy`), and how many have not (`others`).

        Bought once by the owner, their share stands beside every answer about the table from then on; bought by an
        analyst, beside that one's own answers. Not of groups, and not under a condition.
        """
        if not isinstance(table, str):
            raise QuestionError("bad-question", "table is the name of a table.")
        name = self.facts.table_of(table).schema.table
        return self._answer(Holistic(HeavyPersons(), over=Table(name)), Pay(spend, fresh=fresh))

    def sample_and_aggregate(
        self,
        estimator: str,
        columns: Sequence[str] | str,
        *,
        blocks: int,
        low: float,
        high: float,
        where: Where = None,
        salt: int = 0,
        spend: Loss | None = None,
        fresh: bool = False,
    ) -> Answer:
        """An estimate of each of so many blocks of people, averaged; whatever the estimator is, one block moves.

        Args:
            estimator: mean, median, trimmed_mean, slope, correlation, or one the owner has named.
            columns: what it reads.
            blocks: into how many parts the people are divided: more of them need less noise, and estimate worse.
            low: estimates are cut off here,
            high: and here.
            where: rows that count.
            salt: another number gives another division of the people.
            spend: what to pay.
            fresh: new noise although the same was answered before.
        """
        asked = Aggregated(estimator, _several(columns), blocks, low, high, salt)
        return self._answer(Holistic(asked, where), Pay(spend, fresh=fresh))

    # -- how the asks become questions

    def _answer(self, question: Question, pay: Pay) -> Answer:
        """One ask: a stored answer that is as accurate is given again, unless new noise is wished for (SR12)."""
        return cast("Answer", self._oracle.ask(question, spend=pay.spend, reuse=pay.reuse))

    def _keys(self, by: By) -> Keys:
        """Names or row functions of a partition; where a key can be missing, that is a group too, as in SQL."""
        return tuple(or_missing(fn, self.facts.schema) for fn in questions.keys(by))

    def _sums(self, question: Sums, column: str, pay: Pay) -> Answer:
        if pay.within is not None:
            pay.price_once()
            probed = self._oracle.foresee(question, spend=self._probe(pay.at_most))
            pay = replace(pay, spend=affordable(price_of_sums(probed, pay.within, pay.beta), pay.at_most))
        return self._answer(question, pay).read(Plain(), (column,))

    def _extreme(self, value: object, name: str, where: Where, by: By, pay: Pay) -> Answer:
        fn = named(value)
        return quantiles(
            self._oracle, fn, [Stat(name, (fn,))], (name,),
            where=where, by=self._keys(by), spend=pay.spend, fresh=pay.fresh,
        )  # fmt: skip

    def _probe(self, at_most: Loss | None) -> Epsilon | Rho:
        budget = self.facts.budget
        if isinstance(budget, SubLinear):
            raise QuestionError("spend-kind", "Under SubLinear the noise is fixed; within= has no price.")
        return probe(budget, at_most)

    def _price_of_mean(self, fn: RowFn, where: Where, by: Keys, pay: Pay) -> tuple[Loss, tuple[str, ...]]:
        """The price of a mean that is accurate enough, and a note of what finding it cost (SR7)."""
        pay.price_once()
        spend, beta, at_most = self._probe(pay.at_most), probability(pay.beta), pay.at_most
        question, reading = questions.mean(self.facts, fn, where, by, spend)
        lo, hi, kind = bounded(fn, self.facts.schema)
        width = float(exactly(pay.within, "within", largest=10**60) - reading.rounding)
        if width <= 0:
            raise QuestionError("too-costly", "The grid of this value is coarser than that.")
        if isinstance(reading, Average):
            probed = self._oracle.foresee(question, spend=spend)
            return affordable(price_of_sums(probed, width * reading.size, beta), at_most), ()
        # The declared size bounds the number of values only if every row is kept and none lacks a value.
        whole = where is None and not by and not kind.nullable and self.facts.unit.column is None
        count = self.facts.size if whole else None
        notes: tuple[str, ...] = ()
        if count is None:
            if at_most is None or isinstance(at_most, Queries):
                remedy = "Give at_most=; a tenth of it buys a count first."
                raise QuestionError("spend-missing", "No count is known here.", remedy)
            present = self._answer(Sums((Not(IsMissing(fn)),), where, by), Pay(at_most.share(COUNT_FIRST)))
            low, _ = Plain().interval(present.released, beta / max(present.released.cells, 1))
            count = int(min((end for end in low.ravel() if end >= 1), default=0))  # others are unknown at any price
            notes = (f"a count that set the price cost {present.spent} besides",)
            at_most = at_most.share(1 - COUNT_FIRST)
        probed = self._oracle.foresee(question, spend=spend)
        return affordable(price_of_mean(probed, hi - lo, width, beta, count), at_most), notes


def _several(columns: object) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else cast("tuple[str, ...]", several(columns, "Columns"))
