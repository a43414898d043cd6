"""Entries: what they say, what they add up to, and what may be added. No debit takes the totals past the budget.

genesis   person space, unit, budget, keys: the first entry, never repeated
debit     one ask: its event, its question, its place in time
raise     a larger budget
burn      a charge for asks the ledger has lost, as its anchor told
checkpoint  what all entries before it add up to: a later opening may go on from it
These the kernel reads and checks; `NOTES` are kinds that spend nothing, and others' business.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection
from fractions import Fraction
from types import NoneType
from typing import Any, Final, NamedTuple, Protocol, cast

from sulq.errors import BudgetExceeded, QuestionError, SetupError
from sulq.kernel import wire
from sulq.kernel.entropy import random_bytes
from sulq.kernel.facts import Budget, Draw, Epsilon, EpsilonDelta, Event, Rho, Split, SubLinear, Unit
from sulq.kernel.ledger.chain import ORIGIN, Row, canonical, link
from sulq.kernel.ledger.filter import Filter, Totals
from sulq.kernel.ledger.store import Store, damaged

FORMAT: Final = 2  # budgets with a delta have a share for basic composition; format 1 has none
NOTES: Final = frozenset({"anchor", "answer", "checkpoint", "cover", "register", "share"})
KINDS: Final = {kind.__name__: kind for kind in (Draw, Epsilon, EpsilonDelta, Event, Rho, Split, SubLinear, Unit)}
TOTALS: Final = frozenset(Totals._fields)
Body = dict[str, object]


class Genesis(NamedTuple):
    """What was fixed for ever when the person space was created."""

    unit: Unit
    synthetic: bool


def debit(event: Event, /, *, plan_digest: str, **told: object) -> str:
    """One ask, charged; `told` is what else its entry says: the question, who asked it, and when.

    No two debits are one entry, whatever servers or copies are asked the same: each draws noise of its own (T46).
    """
    own = {"kind": "debit", "nonce": random_bytes(16).hex(), "event": wire.to_json(event, KINDS)}
    return canonical(told | own | {"plan_digest": plan_digest})


def parse(row: Row) -> Body:
    """Read an entry's body."""
    with contextlib.suppress(QuestionError):
        body = wire.strict(row.body)
        if isinstance(body, dict):
            return body
    raise damaged(f"entry {row.seq}", "is not a record in JSON")


def value(body: Body, name: str, *kinds: type) -> Any:  # noqa: ANN401 - of one of these kinds
    """A field whose value is of one of these very kinds; what is counted is zero or more."""
    try:
        found = wire.from_json(body.get(name), KINDS)
    except (QuestionError, SetupError) as error:
        raise damaged(f"the field {name}", "is not a value of sulq") from error
    if type(found) not in kinds or (isinstance(found, int) and found < 0):
        raise damaged(f"the field {name}", "is not of its kind")
    return found


def read_genesis(body: Body) -> Genesis:
    """Read the first entry, if this version of sulq knows its format (T91)."""
    if body.get("kind") != "genesis":
        raise damaged("entry 1", "is not the first of a ledger")
    if value(body, "format", int) not in range(1, FORMAT + 1):
        raise SetupError("ledger-format", f"The ledger has format {body['format']}; this sulq knows up to {FORMAT}.")
    unit: Unit = value(body, "unit", Unit)
    if unit.column is not None and "fold" not in cast("Body", body["unit"]):  # from before units said who is one person
        unit = dataclasses.replace(unit, fold="spelling")
    return Genesis(unit, value(body, "synthetic", bool))


def read_budget(body: Body) -> tuple[Budget, Split | None]:
    """Read a budget and how it is divided."""
    budget: Budget = value(body, "budget", Epsilon, Rho, EpsilonDelta, SubLinear)
    return budget, value(body, "split", Split if isinstance(budget, EpsilonDelta) else NoneType)


def read_burn(body: Body) -> dict[str, Totals]:
    """Read what was charged for lost asks."""
    losses = body.get("losses")
    if not isinstance(losses, dict):
        raise damaged("an entry", "burns nothing")
    return {analyst: read_totals(loss) for analyst, loss in losses.items()}


def read_totals(tree: object) -> Totals:
    """Read sums as they were written."""
    if not isinstance(tree, dict) or {"delta", *tree} != TOTALS:  # which sums of before have not
        raise damaged("an entry", "has totals that are none")
    return Totals(**{name: value(tree, name, bool if name == "pure" else int) for name in tree})


def read_losses(body: Body) -> Event:
    """Read what a debit cost, leaving aside the draws behind it: opening a long ledger reads each of them."""
    event = body.get("event")
    if not isinstance(event, dict) or event.get("kind") != "Event":
        raise damaged("a debit", "has no event")
    epsilon, basic = (None if event.get(name) is None else _fraction(event[name]) for name in ("epsilon", "basic"))
    rho, keys = _fraction(event.get("rho")), _fraction(event.get("key_delta"))
    delta = _fraction(event["delta"]) if "delta" in event else Fraction(0)
    return Event(epsilon, rho, keys, value(event, "queries", int), basic=basic, delta=delta)


def check_sums(body: Body, totals: Totals, rule: Filter) -> None:
    """Refuse a checkpoint that does not say what the entries before it add up to, and under which budget."""
    said = (read_totals(body.get("totals")), *read_budget(body)) if body.get("kind") == "checkpoint" else None
    if said not in (None, (totals, rule.budget, rule.split)):
        raise damaged("a checkpoint", "has other totals, or another budget, than the entries before it")


def _fraction(tree: object) -> Fraction:
    text = tree.get("value") if isinstance(tree, dict) else None
    top, slash, bottom = text.partition("/") if isinstance(text, str) else ("", "", "")
    if not (slash and top.isdecimal() and bottom.isdecimal() and int(bottom)):  # no sign: a loss is never negative
        raise damaged("a debit", "has a loss that is not a number")
    return Fraction(int(top), int(bottom))


class Follower(Protocol):
    """Who remembers more of the entries than what they add up to."""

    def follow(self, state: State, row: Row, body: Body, event: Event | None) -> None:
        """Take an entry that the state has taken; `event` is that of a debit."""


class State:
    """The truth of a ledger up to its last entry.

    Privacy: at every entry the totals of all debits and burns are those of the entries before, and within the budget
    but for burns; an entry of a kind that is not known might spend, and is refused.
    """

    def __init__(self, mechanisms: Collection[str], follower: Follower) -> None:
        self._mechanisms = mechanisms
        self.follower = follower
        self.seq, self.hash = 0, ORIGIN
        self.whole = True  # whether all entries were read, from the first one on
        self.totals = Totals()
        self.genesis: Genesis
        self.filter: Filter

    def follow(self, row: Row) -> None:
        """Take the next entry, if it is the next one."""
        if not (isinstance(row.body, str) and isinstance(row.hash, bytes) and isinstance(row.seq, int)):
            raise damaged("an entry", "is not of the kind that was written")
        if row.seq != self.seq + 1:
            raise damaged(f"entry {self.seq + 1}", f"is missing before entry {row.seq}")
        if link(self.hash, row.seq, row.body) != row.hash:
            raise damaged(f"entry {row.seq}", "is not what was written, or not in its place")
        body = parse(row)
        self.follower.follow(self, row, body, self._apply(row, body))
        self.seq, self.hash = row.seq, row.hash

    def resume(self, first: Row, before: Row, row: Row) -> None:
        """Begin at a checkpoint, `row`; `before` is the entry before it, `first` the ledger's first.

        Privacy: its totals were those of all entries before as it was written (`Draft.note`). That the file is still
        what was written, an anchor says, or a reading of all of it.
        """
        self.follow(first)
        told = _told(row.body, {"checkpoint"})
        self.totals, self.filter = read_totals(told.get("totals")), Filter(*read_budget(told), self._mechanisms)
        self.seq, self.hash, self.whole = before.seq, before.hash, False
        self.follow(row)

    def _apply(self, row: Row, body: Body) -> Event | None:
        if row.seq == 1:
            self.genesis = read_genesis(body)
            self.filter = Filter(*read_budget(body), self._mechanisms)
            return None
        match body.get("kind"):
            case "debit":
                event = read_losses(body)
                self.totals += self.filter.cost(event)
                if not self.filter.holds(self.totals):
                    raise damaged(f"entry {row.seq}", "takes the totals past the budget")
                return event
            case "raise":
                budget, split = read_budget(body)
                if type(budget) is not type(self.filter.budget):
                    raise damaged(f"entry {row.seq}", "changes the kind of the budget")
                self.filter = Filter(budget, split, self._mechanisms)
            case "burn":  # what was lost was spent, whatever the limits were: a burn is never too much
                self.totals = sum(read_burn(body).values(), self.totals)
            case kind if kind not in NOTES:
                raise SetupError("ledger-format", f"Entry {row.seq} is of a kind this sulq does not know: {kind!r}.")
        check_sums(body, self.totals, self.filter)
        return None

    def catch_up(self, store: Store) -> None:
        """Follow what other processes appended since; inside a transaction."""
        head = store.head()
        if head == (self.seq, self.hash):
            return
        if head is None or head[0] <= self.seq:
            raise damaged("the head", "went back behind what was read from it before")
        for row in store.rows(self.seq):
            self.follow(row)
        if head != (self.seq, self.hash):
            raise damaged("the end", "is missing, or was not written by sulq")


class Draft:
    """Entries of one transaction, on top of a state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.rows: list[Row] = []
        # What was charged, by its entry's place: the entry's hash, the digest of the plan, the event.
        self.debits: dict[int, tuple[str, str, Event]] = {}
        # What the state will say once these entries are written.
        self.totals: Totals = state.totals
        self.filter: Filter = state.filter
        self.extra: object = None  # what those who propose keep for each other

    def debit(self, event: Event, /, *, plan_digest: str, **told: object) -> int:
        """Charge an event; returns the place of its entry, of which there is a receipt once it is durable.

        Privacy: the entry says what is paid and for what, and the totals with it are within the budget.
        """
        self.filter.check(event)
        totals = self.totals + self.filter.cost(event)
        if not self.filter.holds(totals):
            raise BudgetExceeded("budget-exceeded", "This would take the spending past the budget.")
        row = self._add(debit(event, plan_digest=plan_digest, **told))
        self.totals = totals
        self.debits[row.seq] = (row.hash.hex(), plan_digest, event)
        return row.seq

    def burn(self, body: str) -> None:
        """Charge asks the ledger has lost, as its anchor told: never too much."""
        losses = read_burn(_told(body, {"burn"}))
        self._add(body)
        self.totals = sum(losses.values(), self.totals)

    def raise_to(self, body: str) -> None:
        """Raise the budget.

        Privacy: the order was fixed before the first ask and stays, and no limit is lowered. Each level (E, D) that a
        budget reaches is a filter of its own over the same sums, and answers given up to it are within it
        (docs/theory/filter.md). Under a SubLinear budget the noise of answers was fixed by its number of queries.
        """
        own, rule = self.filter, Filter(*read_budget(_told(body, {"raise"})), self.filter.mechanisms)
        if isinstance(own.budget, SubLinear) or not rule.admits_all_of(own):
            raise SetupError("budget-mismatch", f"A budget of {own.budget} cannot become one of {rule.budget}.")
        self._add(body)
        self.filter = rule

    def note(self, body: str) -> Row:
        """Add an entry that spends nothing; a checkpoint only if it says what all entries before it add up to."""
        check_sums(_told(body, NOTES), self.totals, self.filter)
        return self._add(body)

    def _add(self, body: str) -> Row:
        """Put an entry after the last one."""
        last = self.rows[-1] if self.rows else Row(self.state.seq, "", self.state.hash)
        row = Row(last.seq + 1, body, link(last.hash, last.seq + 1, body))
        self.rows.append(row)
        return row


def load(store: Store, state: State) -> State:
    """Read a ledger into a state, from its first entry or a checkpoint to its last, and check it (T47)."""
    store.reading()
    try:
        state.catch_up(store)
        if state.seq == 0 or not store.sound(whole=state.whole):
            raise damaged("the file", "is not whole, or holds more or less than a ledger")
    finally:
        store.rollback()
    return state


def _told(body: str, kinds: Collection[str]) -> Body:
    """What an entry says, if it is of one of these kinds."""
    told = wire.strict(body)
    if not isinstance(told, dict) or told.get("kind") not in kinds:
        raise ValueError("an entry of another kind than is charged, or noted")
    return told
