"""The heart: question to plan to debit to noisy sums to answer, with no way back."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, cast

from sulq.answers import wire
from sulq.answers.answer import Answer, Answers, Receipt
from sulq.answers.plan import Plan
from sulq.answers.released import Released
from sulq.answers.reuse import name_of
from sulq.compile.plan import draw
from sulq.curator.answers import answer_of
from sulq.curator.flights import Flight
from sulq.curator.heavy_shares import HeavyShares
from sulq.curator.ledger.ledger import Ledger, Line
from sulq.curator.ledger.shares import check_analyst
from sulq.curator.runner import Runner
from sulq.language.domain import Schema
from sulq.language.facts import Facts, Heavy, TableFacts, Tables
from sulq.language.privacy import Budget, Loss, Unit
from sulq.language.question import Question

MAX_REMEMBERED_CHARACTERS: Final = 2**14  # of the text of a question whose plan is remembered
MAX_PLANS: Final = 128  # that are remembered of one analyst
MAX_ANALYSTS: Final = 64  # of whom plans are remembered


@dataclass(frozen=True, slots=True)
class PlannedAsk:
    """A question that was planned, and what it is called among stored answers."""

    plan: Plan
    name: str


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """All that a plan follows from, told apart by the question's canonical text and the public declarations."""

    text: str
    spend: Loss | None
    unit: Unit
    budget: Budget
    scope: str  # which tells the schemas, sizes and declared functions of all tables
    versions: tuple[tuple[str, str], ...]
    limit: float | None
    question: Question = field(compare=False)
    facts: Facts = field(compare=False)

    def plan(self) -> Plan:
        """Draw the plan."""
        return draw(self.question, self.facts, self.spend, self.versions, self.limit)


class Curator:
    """The trusted party: answers questions over rows that it alone may run, with new noise each time.

    `sulq.curator.reuse.ReusingOracle` gives stored answers again, around it.
    """

    def __init__(
        self,
        rows: Runner,
        ledger: Ledger,
        schema: Schema,
        *,
        size: int | None,
        versions: tuple[tuple[str, str], ...],
        tables: tuple[TableFacts, ...] = (),
        scope: str = "",
        limit: float | None = None,
        certified: bool = True,
    ) -> None:
        """`limit`: seconds after which an ask is stopped, charged; None where none is. A public fact (T100).

        `certified`: whether the engine runs certified statements alone; a public fact too.
        """
        self._rows = rows
        self._ledger = ledger
        self._schema = schema
        self._size = size
        self._versions = versions
        self._tables = tables
        self._limit = limit
        self._certified = certified
        self._analyst: str | None = None
        self._dataset = ""
        self._scope = self._shared_scope = self._scope_of(scope)
        self._heavy_shares = HeavyShares(ledger)
        self._plans = lru_cache(MAX_ANALYSTS)(lambda _: lru_cache(MAX_PLANS)(PlanInputs.plan))  # each analyst's own

    def _scope_of(self, scope: str | tuple[str, str]) -> str:
        # Data sets of one person space share its version; their names and declarations tell them apart, and `scope`
        # says who is given whose stored answers (SR12, T39).
        return wire.digest((self._schema, self._size, self._tables, scope))

    def for_analyst(self, name: str, *, scope: str | None = None, dataset: str = "") -> Curator:
        """The same curator for one analyst: its share is charged, its idempotency keys are its own (T44, T54).

        Args:
            name: Whom the ledger's entries will name.
            scope: Whose stored answers it is given: all that share this text, "" being those asked without an
                analyst. By default its own alone, so nobody learns from an answer what others asked (SR12, T39).
            dataset: What the ledger's entries will call the data, where a person space has several datasets.
        """
        check_analyst(name)
        view = copy.copy(self)
        view._analyst = name  # noqa: SLF001 - a view is a curator too
        view._dataset = dataset  # noqa: SLF001
        view._scope = self._scope_of(("analyst", name) if scope is None else scope)  # noqa: SLF001
        return view

    @property
    def facts(self) -> Facts:
        """Everything public, as it stands now."""
        return self._facts(fresh=True)

    def _facts(self, *, fresh: bool) -> Facts:
        ledger = self._ledger
        budget, spent, remaining = ledger.standing(fresh=fresh, analyst=self._analyst)
        return Facts(
            self._schema, ledger.unit, budget, spent, remaining, self._size,
            ledger.synthetic, ledger.durable, ledger.version, self._tables, ledger.public_key,
            "everyone" if self._analyst is None else "analyst", self._heavy(fresh=fresh),
            ledger.rho_left(self._analyst), self._certified,
        )  # fmt: skip

    def _heavy(self, *, fresh: bool) -> tuple[Heavy, ...]:
        """The share of persons with more rows than are kept, of each table of which the owner, or this analyst, has it.

        Privacy: read off answers that were paid for and left the curator; only with `fresh` is the ledger's file read.
        """
        tables = Tables(self._ledger.unit, self._tables or (TableFacts(self._schema),))
        scopes = (self._shared_scope, self._scope)
        found = (
            self._heavy_shares.of(table.schema.table, scopes, fresh=fresh)
            for table in tables.tables
            if tables.kept_of(table) is not None
        )
        return tuple(share for share in found if share is not None)

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy; free, reads no row.

        The plan of a question that this analyst asked before is remembered: it follows from public facts alone, and
        nobody's time tells of another's questions (T39).
        """
        facts = self.facts
        if not isinstance(question, Question) or not (spend is None or isinstance(spend, Loss)):
            return draw(question, facts, spend, self._versions, self._limit)  # which refuses it
        text = wire.encode(question)
        given = PlanInputs(
            text, spend, facts.unit, facts.budget, self._scope, self._versions, self._limit, question, facts
        )
        if len(text) > MAX_REMEMBERED_CHARACTERS:
            return given.plan()
        return self._plans(self._analyst)(given)

    def ask(self, question: Question, *, spend: Loss | None = None, key: str | None = None) -> Answer | Answers:
        """Pay and answer. The debit is on disk before any row is read, and is never refunded (T43, T45)."""
        return self.buy(self.plan(question, spend=spend), Flight(), key=key)

    def plan(self, question: Question, *, spend: Loss | None = None) -> PlannedAsk:
        """Plan an ask whose rows are available; free, reads no row."""
        plan = self.foresee(question, spend=spend)
        self._rows.ready()  # here too: a source that changed underneath stops the owner, whatever is stored
        return PlannedAsk(plan, name_of(question, self._scope))

    def buy(self, ask: PlannedAsk, flight: Flight, *, key: str | None = None, reuse: bool = False) -> Answer | Answers:
        """Certify, debit, run and keep, in this order.

        Args:
            ask: What was planned.
            flight: Told how far the debit is.
            key: An idempotency key.
            reuse: Whether another process may ask the same next, so that the answer is written at once.
        """
        plan, question, event = ask.plan, ask.plan.question, ask.plan.event
        writer = self._rows.check(plan, self._analyst or "")
        # The version is part of it: a stored answer means nothing under other declarations (SR12).
        named = (question, event.epsilon, event.rho, event.key_delta, self._ledger.version, self._scope)
        flight.begun = True
        receipt = self._ledger.debit(
            event,
            question=writer.text(question),
            question_digest=wire.digest_of(f"[{','.join(map(writer.text, named))}]"),  # a tuple would be kept for good
            asked=ask.name,
            plan_digest=wire.digest_of(writer.text(plan)),
            key=key,
            analyst=self._analyst or "",
            dataset=self._dataset,
        )
        flight.charged = True
        if receipt.stored is not None:
            return self.answer(plan, receipt, cast("tuple[Released, ...]", wire.decode(receipt.stored)))
        try:
            released = self._rows.run(plan, receipt)
        except BaseException:
            self._ledger.abandon(receipt)
            raise
        self._ledger.keep(receipt, wire.encode(released), at_once=reuse)
        return self.answer(plan, receipt, released)

    def answer(self, plan: Plan, receipt: Receipt, released: tuple[Released, ...]) -> Answer | Answers:
        """Put released integers into the shape of the question; nothing here can fail for want of a file."""
        return answer_of(plan, receipt, released, self._facts(fresh=False))

    @property
    def version(self) -> int:
        """The public version of the data (SR12)."""
        return self._ledger.version

    def stored(self, asked: PlannedAsk, key: str | None) -> list[Line]:
        """What was answered to the same question in this scope and version; nothing to a key that was used."""
        return self._ledger.kept(asked.name, key=key, analyst=self._analyst or "")

    def again(self, plan: Plan, line: Line, released: tuple[Released, ...]) -> Answer | Answers:
        """A stored release as the answer to a plan; its receipt no longer opens any row."""
        return self.answer(plan, self._ledger.again(line), released)
