"""The one door between the two halves: whoever is clever sees rows only through an Oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NoReturn, Protocol, cast, runtime_checkable

from sulq.answers.answer import Answer, Answers, Receipt
from sulq.answers.budget import BudgetLeft
from sulq.answers.law_choice import Foreseen, LawName, foreseen_of, nearest
from sulq.answers.plan import Plan
from sulq.errors import BudgetExceeded, QuestionError
from sulq.language.domain import Column
from sulq.language.facts import Facts
from sulq.language.privacy import Epsilon, EpsilonDelta, Event, Loss, Queries, Rho, SubLinear
from sulq.language.question import Holistic, Question, Single, Together
from sulq.language.relation import Table
from sulq.language.rowfn import Col, RowFn
from sulq.language.rowfn.operators import Operators
from sulq.language.space import Cube, Space
from sulq.language.statistic import (
    Degrees,
    Edges,
    Graph,
    MinCut,
    OfGraph,
    SpanningTree,
    ToBoundedDegree,
    ToConnected,
    Triangles,
)


class Oracle(Protocol):
    """Answers questions with noise, and foretells what an answer would cost."""

    @property
    def facts(self) -> Facts:
        """Domain, unit, budget policy, what remains; all public."""
        ...

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        """Pay and answer; `key` makes a repeat of the same ask free of charge and noise.

        `reuse`: give a stored answer to the same question instead, free, if one is as accurate (SR12).
        """
        ...

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy; free, reads no row."""
        ...


def chosen(oracle: Oracle, question: Question, spend: Loss | None, law: LawName | None = None) -> Loss | None:
    """What to spend on a question so that its noise is of the named law, or of the one of least foreseen error."""

    def widths(one: Loss | None) -> Foreseen:
        return foreseen_of(oracle.foresee(question, spend=one))

    return nearest(spend, law, lambda: oracle.facts.budget, widths)


@runtime_checkable
class ChoosingOracle(Protocol):
    """Named asks: an Oracle that chooses the law of an (epsilon, delta), unless it is named."""

    def asking(self, oracle: Oracle) -> object:
        """The same named asks on another Oracle."""
        ...

    def ask(self, question: Question, *, spend: Loss | None = None, law: LawName | None = None) -> Answer | Answers:
        """Pay and answer, with noise of the named law."""
        ...

    def foresee(self, question: Question, *, spend: Loss | None = None, law: LawName | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy, with noise of the named law."""
        ...


def ask_as_laid_out(oracle: Oracle, question: Question, spend: Loss | None) -> Answer | Answers:
    """Ask a question whose sums were laid out for the law of its spend, which nobody may then choose anew (0045)."""
    if isinstance(spend, EpsilonDelta) and isinstance(oracle, ChoosingOracle):
        return oracle.ask(question, spend=spend, law="gaussian")
    return oracle.ask(question, spend=spend)


@dataclass(frozen=True, slots=True)
class LaidOutOracle:
    """Named asks that foretell a question as it was laid out, for whoever plans several at one price (0045)."""

    asks: Oracle

    @property
    def facts(self) -> Facts:
        """Everything public."""
        return self.asks.facts

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        """Pay and answer; what is planned is asked by whoever had it planned."""
        return ask_as_laid_out(self.asks, question, spend)

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy in the law of the spend."""
        if isinstance(spend, EpsilonDelta) and isinstance(self.asks, ChoosingOracle):
            return self.asks.foresee(question, spend=spend, law="gaussian")
        return self.asks.foresee(question, spend=spend)


MAX_FORECAST_ASKS: Final = 10_000  # what a forecast adds up one by one


@runtime_checkable
class ForecastingOracle(Protocol):
    """An Oracle that also foretells what asks would leave of its budget."""

    def afford(self, events: Sequence[Event]) -> tuple[BudgetLeft | None, ...]:
        """What would be left after each of these losses, in order; None: it would be refused. Free, reads no row."""
        ...


@runtime_checkable
class KeepingOracle(Protocol):
    """An Oracle that says whether an answer is stored, so that nothing is bought where it is not."""

    def stored(self, question: Question, *, spend: Loss | None = None) -> Answer | Answers | None:
        """What `ask(..., reuse=True)` would give free; None where it would be bought. Free, reads no row."""
        ...


NO_ARRAY: Final = (
    "In place of scikit-learn's StandardScaler take sulq.learn.StandardScaler; of cross_val_score, GridSearchCV and "
    "train_test_split, sulq.learn.cross_validate; of metrics, model.score(X, y, spend=...) and sulq.learn.evaluate."
)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnChoice(Operators):
    """Some declared columns of a database, as learners take them: X or y; one of them stands for its value too."""

    names: tuple[str, ...]
    oracle: Oracle

    def __post_init__(self) -> None:
        schema = self.oracle.facts.schema  # read once: at a far curator each reading is a call
        for fn in self.row:
            fn.kind(schema)  # refuses what is not declared, naming what is

    @property
    def domain(self) -> tuple[Column, ...]:
        """The columns' declared domains."""
        schema = self.oracle.facts.schema
        found = [schema.find(name) for name in self.names]
        return tuple(column for column in found if column is not None)

    @property
    def row(self) -> tuple[Col, ...]:
        """The columns as row functions."""
        return tuple(Col.of(name, self.oracle) for name in self.names)

    def as_row(self) -> RowFn:
        """The one column as a row function, so that `db["age"] > 40` is a condition."""
        if len(self) != 1:
            why = f"{len(self)} columns are no value of a row."
            raise QuestionError("bad-question", why, 'Take them one by one: (db["a"] > 1) & (db["b"] > 2).')
        return self.row[0]

    def __len__(self) -> int:
        return len(self.names)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NoReturn:  # noqa: FBT001 - NumPy's own
        """NumPy, and so scikit-learn's transformers, searches and splits, would have the rows themselves."""
        raise QuestionError("raw-rows", "Private columns are no array: nobody is given their rows.", NO_ARRAY)

    def __repr__(self) -> str:
        return f"Columns({', '.join(self.names)} of {self.oracle.facts.table}; private)"


def as_condition(where: object) -> RowFn | None:
    """A condition that is a row function already."""
    return cast("RowFn | None", where)


@dataclass(frozen=True, slots=True, eq=False)
class GraphTable:
    """A table whose rows are edges; what is asked of it hides edges, and a person's k rows all together.

    Every ask takes `where`, a condition on edges, and gives a stored answer of the same question again
    unless `fresh` (SR12). The graph's own columns are `graph`; `read` makes a condition of what `where` may be.
    """

    graph: Graph
    oracle: Oracle
    table: str = ""
    read: Callable[[object], RowFn | None] = as_condition

    def ask(
        self,
        statistic: OfGraph,
        *,
        spend: Loss | None,
        where: object = None,
        space: Space | None = None,
        fresh: bool = False,
    ) -> Answer:
        """Any statistic of a graph; its answer may lie in a space."""
        if not isinstance(fresh, bool):
            raise QuestionError("bad-question", "fresh is True or False.")
        question = Holistic(statistic, self.read(where), space, Table(self.table))
        return cast("Answer", self.oracle.ask(question, spend=chosen(self.oracle, question, spend), reuse=not fresh))

    def min_cut(self, *, spend: Loss | None = None, where: object = None, fresh: bool = False) -> Answer:
        """The least weight of edges whose removal disconnects the graph; 0 if it is not connected."""
        return self.ask(MinCut(self.graph), spend=spend, where=where, fresh=fresh)

    def spanning_tree_weight(
        self, *, complete: bool = False, spend: Loss | None = None, where: object = None, fresh: bool = False
    ) -> Answer:
        """The weight of a minimum spanning tree, of one for each part together; `complete`: absent pairs weigh 1."""
        return self.ask(SpanningTree(self.graph, complete), spend=spend, where=where, fresh=fresh)

    def triangles(
        self, *, degree: int | None = None, spend: Loss | None = None, where: object = None, fresh: bool = False
    ) -> Answer:
        """How many triangles there are; `degree`: a bound on edges at a vertex, for far less noise."""
        return self.ask(Triangles(self.graph, degree), spend=spend, where=where, fresh=fresh)

    def degrees(self, most: int, *, spend: Loss | None = None, where: object = None, fresh: bool = False) -> Answer:
        """How many vertices have at least 1, 2, ... `most` edges."""
        return self.ask(Degrees(self.graph, most), spend=spend, where=where, fresh=fresh)

    def to_connected(self, *, spend: Loss | None = None, where: object = None, fresh: bool = False) -> Answer:
        """How many edges the graph lacks to be connected."""
        return self.ask(ToConnected(self.graph), spend=spend, where=where, fresh=fresh)

    def to_bounded_degree(
        self, degree: int, *, spend: Loss | None = None, where: object = None, fresh: bool = False
    ) -> Answer:
        """How many edges must go so that no more than `degree` meet at a vertex; of 40 vertices at most.

        Exact, and so slow to work out: of larger graphs ask for `degrees`.
        """
        return self.ask(ToBoundedDegree(self.graph, degree), spend=spend, where=where, fresh=fresh)

    def edges(self, *, spend: Loss | None = None, where: object = None, fresh: bool = False) -> Answer:
        """For each pair of vertices whether it is an edge, each bit flipped with probability 1/(1 + e^(epsilon/S)).

        S is how many pairs one person moves: the unit's rows, twice that under replace_one.
        """
        return self.ask(Edges(self.graph), spend=spend, where=where, space=Cube(), fresh=fresh)

    def __repr__(self) -> str:
        return f"GraphTable({', '.join(self.graph.columns)} of {self.table or self.oracle.facts.table}; private)"


Progress = Callable[[int, int], None]
GRAIN: Final = 10**15
MAX_FORESEEN: Final = 8  # plans that are remembered, of questions that are looked at again
MIN_SPEND: Final[dict[type, Fraction]] = {Epsilon: Fraction(1, 10**5), Rho: Fraction(1, 10**11)}
BUDGET_END_MARGIN: Final = Fraction(1, 10**9)  # so near the end of a budget the rounding of parts counts
ROUNDING_MARGIN: Final = 1 - Fraction(1, 10**9)


class SpendPlan:
    """What a fit may spend, and what it has spent.

    A learner says before its first ask how many steps it plans at most, and for
    each ask which part of the whole it takes. Parts of epsilon, and of rho, add
    up (S2.6, SR3), so a fit whose parts sum to one costs its spend; one that stops
    early has spent less. An (epsilon, delta) is divided as the rho it holds. Under a
    SubLinear budget there is no spend: each scalar is a query, as in the papers [S0.8].
    """

    def __init__(
        self, oracle: Oracle, spend: Loss | None, progress: Progress | None = None, *, reuse: bool = False
    ) -> None:
        self.oracle = oracle
        self._progress = progress
        self._reuse = reuse
        self._done = 0
        self._planned = 0
        self._spends: list[Loss] = []
        self._receipts: list[Receipt] = []
        self._foreseen: dict[tuple[int, Fraction], tuple[Question, Plan]] = {}  # by identity: questions are kept alive
        self.guarantee = "dp"
        self.facts: Facts = oracle.facts  # read once: at a far curator each reading is a call
        self._most = spend
        if isinstance(self.facts.budget, SubLinear):
            if spend is not None and not isinstance(spend, Queries):
                raise QuestionError("spend-kind", "A SubLinear budget is counted in queries; leave spend out.")
            self.whole: Epsilon | Rho | None = None
            self._tight = False
            return
        if spend is None:
            raise QuestionError("spend-missing", "This has a price.", "Name it: spend=Epsilon(1).")
        if isinstance(spend, EpsilonDelta):
            spend = Rho(self.facts.counted(spend).rho)
        if not isinstance(spend, (Epsilon, Rho)):
            raise QuestionError("bad-loss", "spend is a loss such as Epsilon(1) or Rho(0.05).")
        if spend.exact < MIN_SPEND[type(spend)]:  # its smallest parts would buy noise past what integers hold
            raise QuestionError(
                "bad-loss", f"Nothing is learned for {spend}.", f"Spend {float(MIN_SPEND[type(spend)]):g} or more."
            )
        self.whole = spend
        if not reuse:  # what is stored is free; whoever asks for it checks the rest
            affordable(spend, self.facts)
        held = self.facts.rho if isinstance(self.facts.budget, EpsilonDelta) and isinstance(spend, Rho) else None
        self._tight = held is not None and spend.exact > held - BUDGET_END_MARGIN

    @property
    def pure(self) -> bool:
        """Whether the noise is Laplace: sensitivities are then in L1."""
        return isinstance(self.whole, Epsilon)

    @property
    def sublinear(self) -> bool:
        """Whether the papers' own noise is used, at a price in queries."""
        return self.whole is None

    @property
    def queries(self) -> int:
        """How many queries of a SubLinear budget may be asked: what remained before the first, or the spend if less."""
        left = self.facts.remaining
        counts = [loss.queries for loss in (left, self._most) if isinstance(loss, Queries)]
        return min(counts, default=0)

    def plan(self, steps: int, *questions: Question) -> None:
        """Say how many asks there will be at most; `questions` are asked once each, or stand for one step each.

        Under a SubLinear budget all of them together must fit what remains, so that no fit
        stops for want of queries in the middle.
        """
        self._planned = steps
        self._tell()
        if self.sublinear and questions:
            prices = {each: queries(self.oracle, question) for each, question in {id(q): q for q in questions}.items()}
            needed = sum(prices[id(question)] for question in questions)
            if needed > self.queries:
                left = Queries(self.queries)
                raise BudgetExceeded("budget-exceeded", f"This would ask {needed:,} queries; {left} is left.")

    def ask(self, question: Question, part: Fraction | float = 1) -> Answer | Answers:
        """Ask for a part of the whole spend; new noise, or with `reuse` a stored answer if there is one (SR12)."""
        spend = self._within(self.share(part))
        if self._reuse:
            answer = self.oracle.ask(question, spend=spend, reuse=True)
        else:  # named asks, which learners take too, have no such switch
            answer = self.oracle.ask(question, spend=spend)
        self._spends.append(answer.spent)
        self._receipts.append(answer.receipt)
        self.guarantee = (answer.answers[0] if isinstance(answer, Answers) else answer).guarantee
        self._done += 1
        self._tell()
        return answer

    def one(self, question: Single, part: Fraction | float = 1) -> Answer:
        """Ask one question."""
        answer = self.ask(question, part)
        assert isinstance(answer, Answer)  # noqa: S101 - for the type checker
        return answer

    def several(self, question: Together, part: Fraction | float = 1) -> Answers:
        """Ask several questions at one debit."""
        answers = self.ask(question, part)
        assert isinstance(answers, Answers)  # noqa: S101 - likewise
        return answers

    def foresee(self, question: Question, part: Fraction | float = 1) -> Plan:
        """What an ask for a part of the spend would be: its noise, its price; free. The last few are remembered."""
        key = id(question), Fraction(part)
        known = self._foreseen.get(key)
        if known is None:
            known = self._foreseen[key] = question, self.oracle.foresee(question, spend=self.share(part))
            if len(self._foreseen) > MAX_FORESEEN:
                del self._foreseen[next(iter(self._foreseen))]
        return known[1]

    def share(self, part: Fraction | float) -> Epsilon | Rho | None:
        """A part of the whole, rounded down to what ledgers count in: parts that sum to one never pass it."""
        if self.whole is None:
            return None
        grains = math.floor(self.whole.exact * Fraction(part) * GRAIN)
        if self._tight and part != 1:  # the filter rounds each part's loss up: a grain less makes up for it
            grains = max(grains - 1, 1)
        return type(self.whole)(Fraction(grains, GRAIN))

    def _within(self, spend: Epsilon | Rho | None) -> Epsilon | Rho | None:
        """Parts that are floats may sum to a hair more than one: then the last ask gives way, and the budget need not.

        Without it a fit that takes all of a budget would be refused its last question, after the others were paid.
        """
        if self.whole is None or spend is None:
            return None
        left = Fraction(math.floor((self.whole.exact - self._paid()) * GRAIN), GRAIN)
        return type(self.whole)(left) if spend.exact * ROUNDING_MARGIN < left < spend.exact else spend

    def _paid(self) -> Fraction:
        # `amount`, since an answer from reports already given costs nothing (SR19).
        return sum((s.amount for s in self._spends if not isinstance(s, Queries)), start=Fraction(0))

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Of every ask so far."""
        return tuple(self._receipts)

    @property
    def spent(self) -> Loss:
        """The sum of all asks so far."""
        if self.whole is None:
            return Queries(sum(spend.queries for spend in self._spends if isinstance(spend, Queries)))
        return type(self.whole).total(self._paid())

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(min(self._done, self._planned), self._planned)


def queries(oracle: Oracle, question: Question) -> int:
    """How many scalars of a SubLinear budget a question takes; free."""
    price = oracle.foresee(question).spend
    return price.queries if isinstance(price, Queries) else 0


def affordable(spend: Epsilon | Rho, facts: Facts) -> None:
    """Refuse a fit that what is left for several asks cannot hold, before its first ask.

    The ledger decides on each ask anyway; this keeps a fit from stopping half-way. Reports already given answer for
    nothing, whatever spend is named (SR19).
    """
    left = facts.remaining
    if isinstance(facts.budget, Epsilon) and isinstance(spend, Rho):
        raise QuestionError("spend-kind", "A budget of Epsilon cannot hold a spend of Rho.")
    if facts.whose == "reports" or isinstance(left, Queries):
        return
    price: Epsilon | Rho = spend
    if isinstance(left, Rho) and isinstance(spend, Epsilon):
        price = Rho.total(spend.exact**2 / 2)
    elif isinstance(spend, Rho) and facts.rho is not None:
        left = Rho.total(facts.rho)
    if price.amount > left.amount:
        raise BudgetExceeded("budget-exceeded", f"This would cost {price}; {left} is left for several asks.")
