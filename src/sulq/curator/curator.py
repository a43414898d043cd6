"""Curator: the order of an ask. Plan, certify, debit, then run; asks that overlap are joined and answers are made.

Privacy: the debit is durable before any row is read (T43), and one debit buys one draw (SR24).
"""

from __future__ import annotations

import copy
import functools
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol, TypeVar, cast

from sulq.answers import wire
from sulq.answers.answer import Answer, Answers, Receipt
from sulq.answers.budget import BudgetLeft
from sulq.answers.call import debit
from sulq.answers.clocks import clocks_of
from sulq.answers.oracle import MAX_FORECAST_ASKS
from sulq.answers.plan import Part, Plan
from sulq.answers.readings.estimators import Chosen, FirstAbove, Placed, Plain
from sulq.answers.released import Released, heavy_share, kept_rows
from sulq.answers.reuse import name_of, strength
from sulq.answers.wire import Writer
from sulq.compile.plan import draw
from sulq.compile.plan.forms import plan_by_form
from sulq.curator.ledger.ledger import Ledger, Line
from sulq.curator.ledger.shares import check_analyst
from sulq.errors import CuratorError, QuestionError, SulqError
from sulq.language.domain import Schema
from sulq.language.facts import Facts, Heavy, TableFacts, Tables
from sulq.language.privacy import Budget, Event, Loss, Split, Unit
from sulq.language.question import Holistic, Question, Single, Together
from sulq.language.relation import Table
from sulq.language.rowfn import Col, RowFn
from sulq.language.statistic import HeavyPersons


class HeavyShares:
    """Shares that were bought, decoded once each.

    Privacy: read off answers that were paid for and left the curator.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._bought: dict[tuple[int, str, int], Heavy] = {}  # by version, question and how often it was asked

    def of(self, table: str, scopes: Iterable[str], *, fresh: bool) -> Heavy | None:
        """The share of a table that was bought in the first of these scopes; only with `fresh` is the file read."""
        for scope in dict.fromkeys(scopes):
            asked = _name_of_heavy(table, scope)
            known = (self._ledger.version, asked, self._ledger.times(asked))
            if known[2] and fresh and known not in self._bought:
                best = max(self._ledger.kept(asked), key=lambda line: (strength(line.event), -line.seq), default=None)
                if best is not None:
                    (released,) = cast("tuple[Released, ...]", wire.decode(best.answer or ""))
                    self._bought[known] = heavy_share(table, released)
            if known in self._bought:
                return self._bought[known]
        return None


@functools.lru_cache(maxsize=256)
def _name_of_heavy(table: str, scope: str) -> str:
    """What the question for a table's heavy persons is called in the ledger."""
    return name_of(Holistic(HeavyPersons(), over=Table(table)), scope)


T = TypeVar("T")


@dataclass(slots=True)
class Flight:
    """One ask on its way: how far its debit is, and why it failed once that was begun."""

    thread: int = field(default_factory=threading.get_ident)
    begun: bool = False  # the debit may have been written
    charged: bool = False  # it was
    done: threading.Event = field(default_factory=threading.Event)
    failure: SulqError | None = None

    def end(self, error: BaseException) -> None:
        """Note a failure that followed a debit, or may have; a refusal, which was free, is nobody else's."""
        free = isinstance(error, SulqError) and not isinstance(error, CuratorError)
        if self.charged or (self.begun and not free):
            self.failure = error if isinstance(error, SulqError) else _lost()


class Flights:
    """The asks of one curator that are on their way.

    Privacy: who waits is given what stored answers give, under the same rule: an answer that has left the curator, to
    somebody of the same scope. A failure after a debit is the failure of all that waited for it, so no question is
    charged again without being asked again.
    Source: SR12.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Hashable, Flight] = {}

    def one(self, name: Hashable, stored: Callable[[], T | None], buy: Callable[[Flight], T]) -> T:
        """What is `stored`, or else what this thread buys while all others that ask for the same name wait.

        Whoever waited looks for a stored answer again; if the first was refused, the next asks for itself.
        """
        mine = Flight()
        while (other := self._enter(name, mine)) is not mine:
            if other.thread == mine.thread:  # asked from within its own answer: waiting would never end
                return _first(stored(), lambda: buy(mine))
            other.done.wait()
            if other.failure is not None:
                raise type(other.failure)(other.failure.code, other.failure.message, other.failure.remedy)
            found = stored()
            if found is not None:
                return found
        try:
            return _first(stored(), lambda: buy(mine))
        except BaseException as error:
            mine.end(error)
            raise
        finally:
            with self._lock:
                del self._flights[name]
            mine.done.set()

    def _enter(self, name: Hashable, mine: Flight) -> Flight:
        with self._lock:
            return self._flights.setdefault(name, mine)


def _first(found: T | None, otherwise: Callable[[], T]) -> T:
    return otherwise() if found is None else found


def _lost() -> CuratorError:
    return CuratorError("engine-failed", "The same question, asked at the same moment, was charged and interrupted.")


class Runner(Protocol):
    """Runs plans that were paid for; certifies them before."""

    def ready(self) -> None:
        """Make the kept rows available before anything is paid; releases nothing."""
        ...

    def check(self, plan: Plan, whose: str = "") -> Writer:
        """Refuse a plan that the kernel does not certify, before anything is paid; where rows are elsewhere, there.

        `whose`: the asker, whose certificates are remembered apart (T39). Returns the writer that wrote the plan's
        canonical text: an ask serialises its plan once.
        """
        ...

    def run(self, plan: Plan, receipt: Receipt) -> tuple[Released, ...]:
        """Exact sums and their noise, for a plan that was paid for and once."""
        ...


def answer_of(plan: Plan, receipt: Receipt, released: tuple[Released, ...], facts: Facts) -> Answer | Answers:
    """Put released integers into the shape of the question; nothing here can fail for want of a file."""
    notes = (*facts.cautions, *(() if facts.durable else ("the ledger is in memory and forgotten at exit",)))
    questions = plan.question.questions if isinstance(plan.question, Together) else (plan.question,)
    answers = tuple(
        Answer(
            found, _reading(part), keys_of(part), names_of(part), plan.spend, facts.remaining, plan.unit,
            plan.guarantee, plan.event, receipt, receipt.stored is not None, total=facts.spent, pairs=part.pairs,
            notes=(*_told(asked, part, found, facts), *notes), clocks=clocks_of(part, keys_of(part), facts),
        )
        for asked, part, found in zip(questions, plan.parts, released, strict=True)
    )  # fmt: skip
    return Answers(answers) if isinstance(plan.question, Together) else answers[0]


def _told(asked: Single, part: Part, released: Released, facts: Facts) -> tuple[str, ...]:
    """What of an answer rests on the owner's word (SR5), and which rows it is about."""
    rests = () if part.whole is None or not part.whole.declared else (f"rests on the {part.whole.declared}",)
    if part.whole is not None and isinstance(part.whole.statistic, HeavyPersons):
        return (str(heavy_share("", released)),)
    return (*kept_rows(asked, facts), *rests)


def _reading(part: Part) -> Plain | Chosen | FirstAbove | Placed:
    if part.whole is not None:
        if part.whole.weights:
            return Chosen(part.whole.weights if max(part.whole.weights) > 1 else ())
        return Plain() if part.whole.placed is None else Placed(part.whole.placed, part.whole.unit)
    if part.thresholds is not None:
        return FirstAbove(part.tally.blocks[0].step)
    return Plain() if part.score is None else Chosen()


def keys_of(part: Part) -> tuple[tuple[str, tuple[object, ...]], ...]:
    """Names and labels of a part's keys, names made different."""
    found: dict[str, tuple[object, ...]] = {}
    for key in part.by:
        name = base = _name(key.fn)
        while name in found:
            name = f"{base}_{len(found)}"
        found[name] = key.labels
    return tuple(found.items())


def names_of(part: Part) -> tuple[str, ...]:
    """Names of a part's columns."""
    if part.whole is not None:
        return part.names
    if part.score is not None:
        return ("choice",)
    if part.thresholds is not None:
        return ("first",)
    found = [] if part.people is None else ["people"]
    for block in part.tally.blocks:
        base = _name(block.fn)
        found += [base] if block.width == 1 else [f"{base}_{i}" for i in range(block.width)]
    often = Counter(found)
    return tuple(name if often[name] == 1 else f"{name}_{i}" for i, name in enumerate(found))


def _name(fn: RowFn) -> str:
    """A column's own name where a row function reads just one, else its kind."""
    if isinstance(fn, Col):
        return fn.name
    parts = fn.parts()
    return _name(parts[0]) if len(parts) == 1 else type(fn).__name__.lower()


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
    split: Split | None
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
        self.limit = limit
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
        return self.current_facts(fresh=True)

    def current_facts(self, *, fresh: bool, shares: bool = False) -> Facts:
        """As this process last knew it, or `fresh`; `shares`: with those bought of heavy persons, read once each."""
        ledger = self._ledger
        budget, spent, remaining = ledger.standing(fresh=fresh, analyst=self._analyst)
        return Facts(
            self._schema, ledger.unit, budget, spent, remaining, self._size,
            ledger.synthetic, ledger.durable, ledger.version, self._tables, ledger.public_key,
            "everyone" if self._analyst is None else "analyst", self._heavy(fresh=fresh or shares),
            ledger.rho_left(self._analyst), self._certified, ledger.split, ledger.proved(self._analyst),
            ledger.choice, looked=ledger.looked({self._schema.table, *(item.schema.table for item in self._tables)}),
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

        The plan of a question that this analyst asked before, with the same numbers in its condition or others, is
        remembered: it follows from public facts alone, and nobody's time tells of another's questions (T39).
        """
        return self._foreseen(question, spend, self.facts)

    def _foreseen(self, question: Question, spend: Loss | None, facts: Facts) -> Plan:
        if not isinstance(question, Question) or not (spend is None or isinstance(spend, Loss)):
            return draw(question, facts, spend, self._versions, self.limit)  # which refuses it
        return plan_by_form(question, facts, lambda asked: self._drawn(asked, spend, facts))

    def _drawn(self, question: Question, spend: Loss | None, facts: Facts) -> Plan:
        text = wire.encode(question)
        own = (self._scope, self._versions, self.limit)
        given = PlanInputs(text, spend, facts.unit, facts.budget, facts.split, *own, question, facts)
        if len(text) > MAX_REMEMBERED_CHARACTERS:
            return given.plan()
        return self._plans(self._analyst)(given)

    def afford(self, events: Sequence[Event]) -> tuple[BudgetLeft | None, ...]:
        """What would be left for this analyst after each of these losses; None: it would be refused. Free."""
        if len(events) > MAX_FORECAST_ASKS:
            raise QuestionError("too-large", f"A forecast is of at most {MAX_FORECAST_ASKS:,} asks.")
        return self._ledger.after(events, self._analyst)

    def ask(self, question: Question, *, spend: Loss | None = None, key: str | None = None) -> Answer | Answers:
        """Pay and answer. The debit is on disk before any row is read, and is never refunded (T43, T45)."""
        return self.buy(self.plan(question, spend=spend), Flight(), key=key)

    def plan(self, question: Question, *, spend: Loss | None = None) -> PlannedAsk:
        """Plan an ask whose rows are available; free, reads no row.

        What it follows from is as this process last knew it, so that nobody waits for a commit: the debit decides by
        the newest state. Only where the number of kept rows is yet to be chosen is the ledger looked at. A forked child
        is refused before it comes to an engine whose threads it lacks (T67).
        """
        self._ledger.guard()
        choosing = self._ledger.histogram_share is not None
        plan = self._foreseen(question, spend, self.current_facts(fresh=choosing, shares=True))
        self._rows.ready()  # here too: a source that changed underneath stops the owner, whatever is stored
        return PlannedAsk(plan, name_of(question, self._scope))

    def buy(
        self, ask: PlannedAsk, flight: Flight, *, key: str | None = None, at_once: bool = False
    ) -> Answer | Answers:
        """Certify, debit, run and keep, in this order.

        Args:
            ask: What was planned.
            flight: Told how far the debit is.
            key: An idempotency key.
            at_once: Whether the answer is durable before it is given.
        """
        plan, question, event = ask.plan, ask.plan.question, ask.plan.event
        writer = self._rows.check(plan, self._analyst or "")
        # The version is part of it: a stored answer means nothing under other declarations (SR12).
        named = (question, event.epsilon, event.rho, event.key_delta, self._ledger.version, self._scope)
        with debit() as charged:  # refused where nobody waits for the answer any more
            flight.begun = True
            receipt = self._ledger.debit(
                event,
                question=writer.text(question),
                question_digest=wire.digest_of(f"[{','.join(map(writer.text, named))}]"),  # a tuple would be kept
                plan_digest=wire.digest_of(writer.text(plan)),
                asked=ask.name, key=key, analyst=self._analyst or "", dataset=self._dataset,
            )  # fmt: skip
            flight.charged = True
            if receipt.stored is None:
                charged(receipt.seq, plan.spend)
        if receipt.stored is not None:
            return self.answer(plan, receipt, cast("tuple[Released, ...]", wire.decode(receipt.stored)))
        try:
            released = self._rows.run(plan, receipt)
        except BaseException:
            self._ledger.abandon(receipt)
            raise
        self._ledger.keep(receipt, wire.encode(released), at_once=at_once)
        return self.answer(plan, receipt, released)

    def answer(self, plan: Plan, receipt: Receipt, released: tuple[Released, ...]) -> Answer | Answers:
        """Put released integers into the shape of the question; nothing here can fail for want of a file."""
        return answer_of(plan, receipt, released, self.current_facts(fresh=False))

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
