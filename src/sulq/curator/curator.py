"""The heart: question to plan to debit to noisy sums to answer, with no way back."""

from __future__ import annotations

import copy
import functools
from collections import Counter
from dataclasses import replace
from typing import cast

from sulq.answers import wire
from sulq.answers.answer import Answer, Answers
from sulq.answers.estimators import Chosen, FirstAbove, Placed, Plain
from sulq.answers.plan import Part, Plan
from sulq.answers.receipt import Receipt
from sulq.answers.released import Released
from sulq.answers.reuse import name_of, nothing, rearranged, serves, strength
from sulq.answers.row_bounding import heavy_share, kept_rows
from sulq.compile.plan import draw
from sulq.curator.flights import Flight, Flights
from sulq.curator.ledger.ledger import Ledger, Line
from sulq.curator.ledger.shares import check_analyst
from sulq.curator.runner import Runner
from sulq.language.domain import Schema
from sulq.language.facts import Facts, Heavy, TableFacts, Tables
from sulq.language.privacy import Loss
from sulq.language.question import Holistic, Question, Single, Together
from sulq.language.relation import Table
from sulq.language.rowfn import Col, RowFn
from sulq.language.statistic import HeavyPersons


class Curator:
    """The trusted party: an Oracle over rows it alone may run."""

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
        self._flights = Flights()  # shared by all views
        self._place = self._shown = self._placed(scope)
        self._bought: dict[tuple[int, str, int], Heavy] = {}  # by version, question and how often it was asked

    def _placed(self, scope: str | tuple[str, str]) -> str:
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
        view._place = self._placed(("analyst", name) if scope is None else scope)  # noqa: SLF001
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
        unit = self._ledger.unit
        tables = Tables(unit, self._tables or (TableFacts(self._schema),))
        return tuple(
            found
            for table in tables.tables
            if tables.kept_of(table) is not None
            for found in [self._share(table.schema.table, fresh=fresh)]
            if found is not None
        )

    def _share(self, table: str, *, fresh: bool) -> Heavy | None:
        for place in dict.fromkeys((self._shown, self._place)):
            asked = _name_of_heavy(table, place)
            known = (self._ledger.version, asked, self._ledger.times(asked))
            if known[2] and fresh and known not in self._bought:
                lines = self._ledger.kept(asked)
                best = max(lines, key=lambda line: (strength(line.event), -line.seq), default=None)
                if best is not None:
                    (released,) = cast("tuple[Released, ...]", wire.decode(best.answer or ""))
                    self._bought[known] = heavy_share(table, released)
            if known in self._bought:
                return self._bought[known]
        return None

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy; free, reads no row."""
        return draw(question, self.facts, spend, self._versions, self._limit)

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        """Pay and answer. The debit is on disk before any row is read, and is never refunded (T43, T45).

        With `reuse` a stored answer to the same question is given instead, if it is as accurate as
        what this ask would buy: then nothing is debited, no row is read and no noise is drawn (SR12, T10).
        Of such asks that are on their way at once, for one price, one is charged and all get its answer (T102).
        """
        plan = draw(question, self.facts, spend, self._versions, self._limit)
        self._rows.ready()  # here too: a source that changed underneath stops the owner, whatever is stored
        asked = name_of(question, self._place)
        if not reuse:
            return self._buy(plan, Flight(), asked, key)
        event, analyst = plan.event, self._analyst or ""
        return self._flights.one(
            (asked, self._ledger.version, plan.guarantee, event.epsilon, event.rho, event.key_delta),
            lambda: self._stored(plan, self._ledger.kept(asked, key=key, analyst=analyst)),
            lambda flight: self._buy(plan, flight, asked, key, reuse=True),
        )

    def _buy(self, plan: Plan, flight: Flight, asked: str, key: str | None, *, reuse: bool = False) -> Answer | Answers:
        question, event = plan.question, plan.event
        writer = wire.Writer()  # one for all: the plan holds the question's tables and trees again
        text = writer.text(plan)
        self._rows.check(plan, text, self._analyst or "")
        flight.begun = True
        receipt = self._ledger.debit(
            event,
            question=writer.text(question),
            # The version is part of it: a stored answer means nothing under other declarations (SR12).
            question_digest=wire.digest_of(
                writer.text((question, event.epsilon, event.rho, event.key_delta, self._ledger.version, self._place))
            ),
            asked=asked,
            plan_digest=wire.digest_of(text),
            key=key,
            analyst=self._analyst or "",
            dataset=self._dataset,
        )
        flight.charged = True
        if receipt.stored is not None:
            return self.answer(plan, receipt, cast("tuple[Released, ...]", wire.decode(receipt.stored)))
        try:
            released = self._rows.run(plan, receipt, text)
        except BaseException:
            self._ledger.abandon(receipt)
            raise
        self._ledger.keep(receipt, wire.encode(released), at_once=reuse)  # another process may ask the same next
        return self.answer(plan, receipt, released)

    def _stored(self, plan: Plan, lines: list[Line]) -> Answer | Answers | None:
        """The strongest stored answer that is as accurate as the plan would be, if any; the first of equals."""
        asked = wire.encode(plan.question)
        for line in sorted(lines, key=lambda line: (*(-part for part in strength(line.event)), line.seq)):
            released = cast("tuple[Released, ...]", wire.decode(line.answer or ""))
            if line.question != asked:  # the same question, in other words
                released = rearranged(released, cast("Question", wire.decode(line.question)), plan.question)
            if serves(released, line.event, plan):
                note = f"reused: entry {line.seq} of the ledger, free; fresh=True draws new noise at full price"
                found = self.answer(plan, self._ledger.again(line), released)
                given = tuple(
                    replace(item, spent=nothing(plan.spend), event=line.event, notes=(*item.notes, note))
                    for item in (found if isinstance(found, Answers) else (found,))
                )
                return Answers(given) if isinstance(found, Answers) else given[0]
        return None

    def answer(self, plan: Plan, receipt: Receipt, released: tuple[Released, ...]) -> Answer | Answers:
        """Put released integers into the shape of the question; nothing here can fail for want of a file."""
        facts = self._facts(fresh=False)
        notes = (*facts.cautions, *(() if facts.durable else ("the ledger is in memory and forgotten at exit",)))
        questions = plan.question.questions if isinstance(plan.question, Together) else (plan.question,)
        answers = tuple(
            Answer(
                found, _reading(part), keys_of(part), names_of(part), plan.spend, facts.remaining, plan.unit,
                plan.guarantee, plan.event, receipt, receipt.stored is not None,
                (*_told(asked, part, found, facts), *notes), total=facts.spent, pairs=part.pairs,
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


@functools.lru_cache(maxsize=256)
def _name_of_heavy(table: str, place: str) -> str:
    """What the question for a table's heavy persons is called in the ledger."""
    return name_of(Holistic(HeavyPersons(), over=Table(table)), place)


def _reading(part: Part) -> Plain | Chosen | FirstAbove | Placed:
    if part.whole is not None:
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
