"""What a ledger remembers besides what was spent: whose asks they were, their keys and answers, the data it covers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, cast

from sulq.curator.ledger import notes, shares
from sulq.curator.ledger.notes import Founding, Registration, read_founding
from sulq.curator.ledger.shares import Accounts
from sulq.curator.ledger.sources import Cover, read_cover, read_registered
from sulq.errors import BudgetExceeded, SetupError
from sulq.kernel.facts import converts
from sulq.kernel.laws import gaussian_holds
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import ORIGIN, Row
from sulq.kernel.ledger.entries import Body, Draft, State
from sulq.kernel.ledger.store import Store, damaged
from sulq.language.privacy import Event


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


class Declaration(NamedTuple):
    """What an owner declared under a name, in which entry, what stood there before, and after how many asks (SR28)."""

    seq: int
    time: str
    data: Registration
    before: Registration | None
    asks: int

    @property
    def late(self) -> str:
        """How to say that it came after answers had been given; nothing of what was declared before the first."""
        word = "declared" if self.before is None else "changed"
        return f"({word} after {self.asks} ask{'s' if self.asks > 1 else ''})" if self.asks else ""


class Mark(NamedTuple):
    """A moment of a ledger: its last entry and what all entries up to it add up to."""

    seq: int
    hash: bytes
    accounts: Accounts


class History:
    """What the entries say up to the last one."""

    def __init__(self, mechanisms: Collection[str] = (), *, thorough: bool = False) -> None:
        self._mechanisms = frozenset(mechanisms)
        self._thorough = thorough  # whether to read every event whole, and find its mechanisms among these
        self.founding: Founding
        self.accounts = Accounts()
        self.version = 0
        self.registered: dict[str, Registration] = {}
        self.declarations: tuple[Declaration, ...] = ()  # in order; data that changed under the same words is not one
        self.charges: dict[int, Charge] = {}
        self.keys: dict[tuple[str, str], int] = {}  # by analyst and key
        self.asked: dict[str, list[int]] = {}
        self.answers = 0
        self.anchor: str | None = None  # the name of the anchor in force
        self.covers: tuple[Cover, ...] = ()  # the private sources it protects the people of
        self.settled: set[str] = set()  # what anchors had noted of histories that were lost, and was charged since
        self.mark = Mark(0, ORIGIN, self.accounts)  # one value, so that a thread may look at it at any time

    def follow(self, state: State, row: Row, body: Body, event: Event | None) -> None:
        """Take an entry that the state has taken."""
        if event is not None:
            self._debit(state, row, body, event)
        else:
            self._apply(state, row, body)
        self.mark = Mark(row.seq, row.hash, self.accounts)

    def _apply(self, state: State, row: Row, body: Body) -> None:
        match body.get("kind"):
            case "genesis":
                self.founding = read_founding(body)
            case "answer":
                charge = self.charges.get(notes.whole(body, "of"))
                if charge is None or charge.answer is not None:
                    raise damaged(f"entry {row.seq}", "answers no open debit")
                notes.text(body, "answer")
                charge.answer = row.seq
                self.answers += 1
            case "register":
                data = notes.read_registration(body)
                before = self.registered.get(data.name)
                if before is None or replace(before, source=data.source) != data:
                    told = Declaration(
                        row.seq, notes.optional(body, "time") or "", data, before, self.accounts.whole.events
                    )
                    self.declarations += (told,)
                self.registered[data.name] = data
                known = None if data.public else read_registered(data.source)
                self.covers += () if known is None else (known,)
                self.version += 1
            case "share":
                self._share(state, row, body)
            case "anchor":
                self.anchor = notes.text(body, "name")
            case "burn":
                for analyst, loss in entries.read_burn(body).items():
                    self.accounts = self.accounts.charged(analyst, loss)
                self.settled.add(notes.text(body, "settles"))
                self.anchor = notes.text(body, "name")
            case "cover":
                self._cover(row, body)

    def _debit(self, state: State, row: Row, body: Body, event: Event) -> None:
        if self._thorough:
            whole = notes.read_event(body)
            if self._mechanisms and not {draw.mechanism for draw in whole.draws} <= self._mechanisms:
                raise damaged(f"entry {row.seq}", "was drawn by a mechanism that has no row")
            pair = whole.basic or 0, whole.delta
            known = converts(whole.rho, *pair) or gaussian_holds(whole.rho, whole.draws, *pair)
            if whole.basic is not None and not known:
                raise damaged(f"entry {row.seq}", "has an epsilon and delta that are less than its loss")
        analyst = notes.optional(body, "analyst") or ""
        accounts = self.accounts.charged(analyst, state.filter.cost(event))
        if not accounts.hold(state.filter, analyst):
            raise damaged(f"entry {row.seq}", "takes the totals past the budget, a share or others' reserves")
        charge = Charge(
            question=notes.text(body, "question_digest"),
            plan=notes.text(body, "plan_digest"),
            entry=row.hash,
            version=notes.whole(body, "version"),
            key=notes.optional(body, "key"),
            analyst=analyst,
            dataset=notes.optional(body, "dataset") or "",
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
        self.asked.setdefault(notes.optional(body, "asked") or charge.question, []).append(row.seq)

    def _share(self, state: State, row: Row, body: Body) -> None:
        try:
            self.accounts = self.accounts.given(state.filter, notes.text(body, "analyst"), notes.read_share(body))
        except SetupError as error:
            if error.code != "bad-share":
                raise
            raise damaged(f"entry {row.seq}", "sets a share that could not be set") from error

    def _cover(self, row: Row, body: Body) -> None:
        try:
            self.covers += (read_cover(body),)
        except ValueError as error:
            raise damaged(f"entry {row.seq}", "covers no source") from error


class Pending:
    """What the history will be once a draft is written."""

    def __init__(self, draft: Draft) -> None:
        history = of(draft.state)
        self.accounts: Accounts = history.accounts
        self.registered: dict[str, Registration] = dict(history.registered)
        self.version: int = history.version
        self.flush = False  # whether waiting answers are to be written even if nothing else is

    def charged(self, draft: Draft, analyst: str, event: Event) -> Accounts:
        """The accounts after a charge, if it is within the analyst's share and leaves what is kept for others.

        Raises:
            BudgetExceeded: It is not, or it does not fit the budget.
        """
        rule = draft.filter
        accounts = self.accounts.charged(analyst, rule.cost(event))
        if not accounts.hold(rule, analyst):
            raise BudgetExceeded("budget-exceeded", shares.refusal(rule, event, self.accounts.left(rule, analyst)))
        return accounts


def of(state: State) -> History:
    """The history of a ledger that was opened here."""
    return cast("History", state.follower)


def pending(draft: Draft) -> Pending:
    """What is pending in a draft; the same for all who propose to it."""
    if not isinstance(draft.extra, Pending):
        draft.extra = Pending(draft)
    return draft.extra


def load(store: Store, mechanisms: Collection[str], *, thorough: bool = False) -> State:
    """Read a ledger from its first entry to its last and check all of it (T47)."""
    return entries.load(store, State(mechanisms, History(mechanisms, thorough=thorough)))
