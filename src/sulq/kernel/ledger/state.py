"""What the entries add up to, and what may be added: no debit takes the totals past the budget."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from sulq.errors import BudgetExceeded, SetupError
from sulq.kernel import wire
from sulq.kernel.facts import Event, SubLinear
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import ORIGIN, Row, link
from sulq.kernel.ledger.entries import Body, Genesis
from sulq.kernel.ledger.filter import Filter, Totals
from sulq.kernel.ledger.store import Store, damaged


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
        self.seq = 0
        self.hash = ORIGIN
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
        body = entries.parse(row)
        self.follower.follow(self, row, body, self._apply(row, body))
        self.seq, self.hash = row.seq, row.hash

    def _apply(self, row: Row, body: Body) -> Event | None:
        if row.seq == 1:
            self.genesis = entries.read_genesis(body)
            self.filter = Filter(self.genesis.budget, self.genesis.split, self._mechanisms)
            return None
        match body.get("kind"):
            case "debit":
                event = entries.read_losses(body)
                self.totals += self.filter.cost(event)
                if not self.filter.holds(self.totals):
                    raise damaged(f"entry {row.seq}", "takes the totals past the budget")
                return event
            case "raise":
                budget, split = entries.read_budget(body)
                if type(budget) is not type(self.filter.budget):
                    raise damaged(f"entry {row.seq}", "changes the kind of the budget")
                self.filter = Filter(budget, split, self._mechanisms)
            case "burn":  # what was lost was spent, whatever the limits were: a burn is never too much
                self.totals = sum(entries.read_burn(body).values(), self.totals)
            case kind if kind not in entries.NOTES:
                raise SetupError("ledger-format", f"Entry {row.seq} is of a kind this sulq does not know: {kind!r}.")
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
        self.debits: dict[
            int, tuple[str, str, Event]
        ] = {}  # by its entry's place: its hash, what was paid for, and how much
        # What the state will say once these entries are written.
        self.totals: Totals = state.totals
        self.filter: Filter = state.filter
        self.extra: object = None  # what those who propose keep for each other

    def debit(self, event: Event, /, *, plan_digest: str, **told: object) -> int:
        """Charge an event; returns the place of its entry, of which there is a receipt once it is durable.

        Privacy: the entry says what is paid and for what, and the totals with it are within the budget.

        Raises:
            BudgetExceeded: It does not fit the budget.
        """
        self.filter.check(event)
        totals = self.totals + self.filter.cost(event)
        if not self.filter.holds(totals):
            raise BudgetExceeded("budget-exceeded", "This would take the spending past the budget.")
        row = self._add(entries.debit(event, plan_digest=plan_digest, **told))
        self.totals = totals
        self.debits[row.seq] = (row.hash.hex(), plan_digest, event)
        return row.seq

    def burn(self, body: str) -> None:
        """Charge asks the ledger has lost, as its anchor told: never too much."""
        losses = entries.read_burn(_told(body, {"burn"}))
        self._add(body)
        self.totals = sum(losses.values(), self.totals)

    def raise_to(self, body: str) -> None:
        """Raise the budget.

        Privacy: the order was fixed before the first ask and stays. Each level (E, D) a budget may reach is then a
        filter of its own over the same sums, and the answers given while the budget was at most (E, D) are within it,
        as no limit is lowered (docs/theory/filter.md). Under a SubLinear budget the noise of answers was fixed by its
        number of queries.
        """
        own, rule = self.filter, Filter(*entries.read_budget(_told(body, {"raise"})), self.filter.mechanisms)
        if isinstance(own.budget, SubLinear) or not rule.admits_all_of(own):
            raise SetupError("budget-mismatch", f"A budget of {own.budget} cannot become one of {rule.budget}.")
        self._add(body)
        self.filter = rule

    def note(self, body: str) -> Row:
        """Add an entry that spends nothing."""
        _told(body, entries.NOTES)
        return self._add(body)

    def _add(self, body: str) -> Row:
        """Put an entry after the last one."""
        last = self.rows[-1] if self.rows else Row(self.state.seq, "", self.state.hash)
        row = Row(last.seq + 1, body, link(last.hash, last.seq + 1, body))
        self.rows.append(row)
        return row


def load(store: Store, state: State) -> State:
    """Read a ledger into an empty state, from its first entry to its last, and check all of it (T47)."""
    store.reading()
    try:
        state.catch_up(store)
        if state.seq == 0:
            raise damaged("the first entry", "is missing")
        if not store.sound():
            raise damaged("the file", "is not whole, or holds more than a ledger")
    finally:
        store.rollback()
    return state


def _told(body: str, kinds: Collection[str]) -> Body:
    """What an entry says, if it is of one of these kinds."""
    told = wire.strict(body)
    if not isinstance(told, dict) or told.get("kind") not in kinds:
        raise ValueError("an entry of another kind than is charged, or noted")
    return told
