"""What the entries add up to: replayed one by one, the same when written as when read back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from sulq.curator.ledger.shares import Accounts
from sulq.curator.ledger.sources import Cover, read_cover, read_registered
from sulq.errors import SetupError
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import ORIGIN, Row, link
from sulq.kernel.ledger.entries import Body, Genesis, Registration, damaged
from sulq.kernel.ledger.filter import Filter, Totals
from sulq.kernel.ledger.store import Store


@dataclass(slots=True)
class Charge:
    """One debit: what it was for and where its answer is."""

    question: str
    plan: str
    entry: bytes
    version: int
    key: str | None
    analyst: str = ""
    dataset: str = ""  # which of the person space's datasets was asked, where that was said
    answer: int | None = None
    epsilon: Fraction | None = None  # what it cost, to find the strongest of several answers by
    rho: Fraction = Fraction(0)


class Mark(NamedTuple):
    """A moment of a ledger: its last entry and what all entries up to it add up to."""

    seq: int
    hash: bytes
    accounts: Accounts


class State:
    """The truth of a ledger up to its last entry."""

    def __init__(self, mechanisms: Collection[str], *, thorough: bool = False) -> None:
        self._mechanisms = mechanisms
        self._thorough = thorough  # whether to read every event whole
        self.seq = 0
        self.hash = ORIGIN
        self.accounts = Accounts()
        self.version = 0
        self.registered: dict[str, Registration] = {}
        self.charges: dict[int, Charge] = {}
        self.keys: dict[tuple[str, str], int] = {}  # by analyst and key
        self.asked: dict[str, list[int]] = {}
        self.answers = 0
        self.anchor: str | None = None  # the name of the anchor in force
        self.covers: tuple[Cover, ...] = ()  # the private sources it protects the people of
        self.settled: set[str] = set()  # what anchors had noted of histories that were lost, and was charged since
        self.mark = Mark(0, ORIGIN, self.accounts)  # one value, so that a thread may look at it at any time
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
        if row.seq == 1:
            self.genesis = entries.read_genesis(body)
            self.filter = Filter(self.genesis.budget, self.genesis.split, self._mechanisms)
        else:
            self._apply(row, body)
        self.seq, self.hash = row.seq, row.hash
        self.mark = Mark(row.seq, row.hash, self.accounts)

    @property
    def totals(self) -> Totals:
        """The sums the filter enforces."""
        return self.accounts.whole

    def _apply(self, row: Row, body: Body) -> None:
        match body.get("kind"):
            case "debit":
                self._debit(row, body)
            case "answer":
                charge = self.charges.get(entries.whole(body, "of"))
                if charge is None or charge.answer is not None:
                    raise damaged(f"entry {row.seq}", "answers no open debit")
                entries.text(body, "answer")
                charge.answer = row.seq
                self.answers += 1
            case "register":
                data = entries.read_registration(body)
                self.registered[data.name] = data
                known = None if data.public else read_registered(data.source)
                self.covers += () if known is None else (known,)
                self.version += 1
            case "raise":
                budget, split = entries.read_budget(body)
                if type(budget) is not type(self.filter.budget):
                    raise damaged(f"entry {row.seq}", "changes the kind of the budget")
                self.filter = self.filter.renewed(budget, split)
            case "share":
                self._share(row, body)
            case "anchor":
                self.anchor = entries.text(body, "name")
            case "burn":
                self._burn(body)
            case "cover":
                self._cover(row, body)
            case kind:
                raise SetupError("ledger-format", f"Entry {row.seq} is of a kind this sulq does not know: {kind!r}.")

    def _debit(self, row: Row, body: Body) -> None:
        event = entries.read_event(body) if self._thorough else entries.read_losses(body)
        if self._thorough and self._mechanisms and not {draw.mechanism for draw in event.draws} <= {*self._mechanisms}:
            raise damaged(f"entry {row.seq}", "was drawn by a mechanism that has no row")
        analyst = entries.optional(body, "analyst") or ""
        accounts = self.accounts.charged(analyst, self.filter.cost(event))
        if not accounts.hold(self.filter, analyst):
            raise damaged(f"entry {row.seq}", "takes the totals past the budget, a share or others' reserves")
        charge = Charge(
            question=entries.text(body, "question_digest"),
            plan=entries.text(body, "plan_digest"),
            entry=row.hash,
            version=entries.whole(body, "version"),
            key=entries.optional(body, "key"),
            analyst=analyst,
            dataset=entries.optional(body, "dataset") or "",
            epsilon=event.epsilon,
            rho=event.rho,
        )
        if charge.key is not None:
            if (analyst, charge.key) in self.keys:
                raise damaged(f"entry {row.seq}", "uses an idempotency key again")
            self.keys[analyst, charge.key] = row.seq
        self.accounts = accounts
        self.charges[row.seq] = charge
        # The first entries of format 1 do not say what they asked apart from its price: they serve no re-answer.
        self.asked.setdefault(entries.optional(body, "asked") or charge.question, []).append(row.seq)

    def _share(self, row: Row, body: Body) -> None:
        try:
            self.accounts = self.accounts.given(self.filter, entries.text(body, "analyst"), entries.read_share(body))
        except SetupError as error:
            if error.code != "bad-share":
                raise
            raise damaged(f"entry {row.seq}", "sets a share that could not be set") from error

    def _cover(self, row: Row, body: Body) -> None:
        try:
            self.covers += (read_cover(body),)
        except ValueError as error:
            raise damaged(f"entry {row.seq}", "covers no source") from error

    def _burn(self, body: Body) -> None:
        # What was lost was spent, whatever the limits were: a burn is never too much.
        for analyst, loss in entries.read_burn(body).items():
            self.accounts = self.accounts.charged(analyst, loss)
        self.settled.add(entries.text(body, "settles"))
        self.anchor = entries.text(body, "name")

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


def load(store: Store, mechanisms: Collection[str], *, thorough: bool = False) -> State:
    """Read a ledger from its first entry to its last and check all of it (T47)."""
    state = State(mechanisms, thorough=thorough)
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
