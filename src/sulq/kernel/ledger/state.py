"""What the entries add up to: replayed one by one, the same when written as when read back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Protocol

from sulq.errors import SetupError
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import ORIGIN, Row, link
from sulq.kernel.ledger.entries import Body, Genesis
from sulq.kernel.ledger.filter import Filter, Totals
from sulq.kernel.ledger.store import Store, damaged
from sulq.kernel.losses import Budget, Event, Unit


class Follower(Protocol):
    """Who remembers more of the entries than what they add up to."""

    def follow(self, state: State, row: Row, body: Body, event: Event | None) -> None:
        """Take an entry that the state has taken; `event` is that of a debit."""


class State:
    """The truth of a ledger up to its last entry.

    Privacy: at every entry the totals of all debits and burns are those of the entries before, and within the budget
    but for burns; an entry of a kind that is not known might spend, and is refused.
    """

    def __init__(self, mechanisms: Collection[str], follower: Follower, *, thorough: bool = False) -> None:
        self._mechanisms = mechanisms
        self._thorough = thorough  # whether to read every event whole
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
        event = None
        if row.seq == 1:
            self.genesis = entries.read_genesis(body)
            self.filter = Filter(self.genesis.budget, self.genesis.split, self._mechanisms)
        else:
            event = self._apply(row, body)
        self.follower.follow(self, row, body, event)
        self.seq, self.hash = row.seq, row.hash

    def _apply(self, row: Row, body: Body) -> Event | None:
        match body.get("kind"):
            case "debit":
                return self._debit(row, body)
            case "raise":
                budget, split = entries.read_budget(body)
                if type(budget) is not type(self.filter.budget):
                    raise damaged(f"entry {row.seq}", "changes the kind of the budget")
                self.filter = self.filter.renewed(budget, split)
            case "burn":  # what was lost was spent, whatever the limits were: a burn is never too much
                self.totals = sum(entries.read_burn(body).values(), self.totals)
            case kind if kind not in entries.NOTES:
                raise SetupError("ledger-format", f"Entry {row.seq} is of a kind this sulq does not know: {kind!r}.")
        return None

    def _debit(self, row: Row, body: Body) -> Event:
        event = entries.read_event(body) if self._thorough else entries.read_losses(body)
        if self._thorough and self._mechanisms and not {draw.mechanism for draw in event.draws} <= {*self._mechanisms}:
            raise damaged(f"entry {row.seq}", "was drawn by a mechanism that has no row")
        self.totals += self.filter.cost(event)
        if not self.filter.holds(self.totals):
            raise damaged(f"entry {row.seq}", "takes the totals past the budget")
        return event

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


def load(
    store: Store, mechanisms: Collection[str], follower: Callable[[], Follower], *, thorough: bool = False
) -> State:
    """Read a ledger from its first entry to its last and check all of it (T47)."""
    state = State(mechanisms, follower(), thorough=thorough)
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


def compare(state: State, *, unit: Unit | None, budget: Budget | None, synthetic: bool | None) -> None:
    """Refuse declarations that differ from the ledger's own: the ledger holds the truth (T56)."""
    own: Genesis = state.genesis
    if unit is not None and unit.fold is None and own.implied and unit.column is not None:
        unit = replace(unit, fold=own.unit.fold)  # who says nothing of ids means what the ledger has always done
    if unit is not None and unit != own.unit:
        raise SetupError("unit-mismatch", f"The ledger protects {own.unit}; it was opened for {unit}.")
    if budget is not None and budget != state.filter.budget:
        raise SetupError("budget-mismatch", f"The ledger's budget is {state.filter.budget}, not {budget}.")
    if synthetic is not None and synthetic != own.synthetic:
        kind = "synthetic" if own.synthetic else "private"
        raise SetupError("synthetic-mismatch", f"The ledger was created for {kind} data.")
