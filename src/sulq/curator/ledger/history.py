"""What a ledger remembers besides what was spent: whose asks they were, their keys and answers, the data it covers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, cast

from sulq.answers import wire
from sulq.curator.ledger import checkpoints, notes, shares
from sulq.curator.ledger.bins import follows
from sulq.curator.ledger.checkpoints import DebitKind, Index
from sulq.curator.ledger.notes import Founding, Registration, read_founding
from sulq.curator.ledger.shares import Accounts, Share
from sulq.curator.ledger.sources import Cover, cover_from, read_cover, read_registered
from sulq.errors import BudgetExceeded, SetupError
from sulq.kernel.facts import converts
from sulq.kernel.laws import gaussian_holds
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import ORIGIN, Row, canonical, link
from sulq.kernel.ledger.entries import Body, Draft, State
from sulq.kernel.ledger.store import END, Store, damaged
from sulq.language.privacy import Event, Unit
from sulq.language.rows_choice import RowsChoice


@dataclass(frozen=True, slots=True)
class Charge:
    """One debit: what it was for, and whose it was."""

    question: str
    asked: str  # the question apart from its price
    plan: str
    entry: bytes
    key: str | None
    kind: DebitKind


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
        self.index = Index()  # the debits before the last checkpoint; those since are:
        self.charges: dict[int, Charge] = {}
        self.keys: dict[tuple[str, str], int] = {}  # by analyst and key
        self.asked: dict[str, list[int]] = {}
        self.answered: dict[int, int] = {}  # the answers since, by their debits
        self.debits = 0
        self.answers = 0
        self.checkpoint: tuple[int, str] | None = None  # the last one's place and hash
        self.begun_at, self.begun_hash = 0, ""  # the checkpoint that entries were read from
        self.resuming: checkpoints.CheckpointFound | None = None  # the checkpoint that is taken at its word
        self.anchor: str | None = None  # the name of the anchor in force
        self.choice: RowsChoice | None = None  # how many rows of a person are kept, where that was chosen
        self._texts: dict[int, str] = {}  # until then: each debit's question, and each answer, by their entries
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
                debit = notes.whole(body, "of")
                if not self.knows(debit) or self.answer_of(debit) is not None:
                    raise damaged(f"entry {row.seq}", "answers no open debit")
                self._note(row, notes.text(body, "answer"))
                self.answered[debit] = row.seq
                self.answers += 1
            case "register":
                data = notes.read_registration(body)
                self._choice(state, row, data.choice)
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
            case "checkpoint":
                self._checkpoint(state, row, body)

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
        charge = read_charge(row, body, event)
        if charge.key is not None:
            if self.key(analyst, charge.key) is not None:
                raise damaged(f"entry {row.seq}", "uses an idempotency key again")
            self.keys[analyst, charge.key] = row.seq
        self.accounts = accounts
        self.charges[row.seq] = charge
        self.debits += 1
        self._note(row, notes.optional(body, "question") or "")
        self.asked.setdefault(charge.asked, []).append(row.seq)

    def knows(self, seq: int) -> bool:
        """Whether an entry is a debit."""
        return seq in self.charges or seq in self.index

    def charge(self, store: Store, seq: int) -> Charge | None:
        """One debit; of one before the last checkpoint its entry is read again."""
        if seq in self.charges or seq not in self.index:
            return self.charges.get(seq)
        row = checked(store, seq)
        body = entries.parse(row)
        return read_charge(row, body, entries.read_losses(body))

    def answer_of(self, seq: int) -> int | None:
        """Where the answer to a debit is."""
        found = self.answered.get(seq)
        return self.index.answers.get(seq) if found is None else found

    def key(self, analyst: str, key: str) -> int | None:
        """The debit that an idempotency key was used for."""
        found = self.keys.get((analyst, key))
        return self.index.key(analyst, key) if found is None else found

    def asked_by(self, asked: str) -> list[tuple[int, DebitKind]]:
        """The debits that a question was asked by, in order."""
        return [*self.index.asked(asked), *((seq, self.charges[seq].kind) for seq in self.asked.get(asked, ()))]

    def debits_after(self, after: int, wanted: Callable[[DebitKind], bool]) -> Iterator[int]:
        """The debits of kinds that are wanted after a place, in order."""
        yield from self.index.debits(after, wanted)
        yield from (seq for seq, charge in self.charges.items() if seq > after and wanted(charge.kind))

    def due(self, state: State) -> bool:
        """Whether a checkpoint is; none while a number of rows is yet to be chosen, from the texts of entries."""
        last = 0 if self.checkpoint is None else self.checkpoint[0]
        return state.seq - last >= checkpoints.EVERY and (self.founding.histogram_share is None or bool(self.choice))

    def told(self, state: State) -> str:
        """A checkpoint: what the entries come to up to here."""
        accounts, rule = self.accounts, state.filter
        debits = {seq: (charge.kind, charge.asked) for seq, charge in self.charges.items()}
        return canonical(
            {
                "kind": "checkpoint",
                "format": checkpoints.FORMAT,
                "totals": notes.tree_of(state.totals),
                **notes.divided_tree(rule.budget, rule.split),
                "accounts": {
                    "spent": {name: notes.tree_of(totals) for name, totals in accounts.spent.items()},
                    "shares": {name: [str(part) for part in share] for name, share in _parts(accounts)},
                },
                "version": self.version,
                "registered": [notes.registration_tree(data) for data in self.registered.values()],
                "declarations": [
                    [told.seq, told.time, told.asks, *map(_tree, (told.data, told.before))]
                    for told in self.declarations
                ],
                "counts": [self.debits, self.answers],
                "anchor": self.anchor,
                "choice": wire.to_json(self.choice),
                "covers": self.covers,
                "settled": sorted(self.settled),
                "part": checkpoints.part_of(debits, self.keys, self.answered),
                "before": self.checkpoint,
            }
        )

    def _checkpoint(self, state: State, row: Row, body: Body) -> None:
        """Begin at a checkpoint that is taken at its word, or compare it with what was read before it."""
        found, self.resuming = self.resuming, None
        if found is not None:
            self._restore(state, found)
        elif row.body != self.told(state):
            raise damaged(f"entry {row.seq}", "is a checkpoint of another history than stands before it")
        parts = [cast("dict[str, Any]", body["part"])] if found is None else found.parts
        self.index = self.index.extended(parts)
        self.charges, self.keys, self.asked, self.answered = {}, {}, {}, {}
        self.checkpoint = row.seq, row.hash.hex()

    def _restore(self, state: State, found: checkpoints.CheckpointFound) -> None:
        said = found.body
        self.begun_at, self.begun_hash = found.row.seq, found.row.hash.hex()
        spent = {name: entries.read_totals(totals) for name, totals in said["accounts"]["spent"].items()}
        given = {name: Share(*map(Fraction, parts)) for name, parts in said["accounts"]["shares"].items()}
        self.accounts = Accounts(state.totals, spent, given)
        self.version, self.anchor, self.settled = said["version"], said["anchor"], set(said["settled"])
        self.debits, self.answers = said["counts"]
        self.choice = cast("RowsChoice | None", wire.from_json(said["choice"]))
        self.covers = tuple(map(cover_from, said["covers"]))
        self.registered = {data.name: data for data in map(notes.read_registration, said["registered"])}
        self.declarations = tuple(
            Declaration(seq, time, notes.read_registration(data), before and notes.read_registration(before), asks)
            for seq, time, asks, data, before in said["declarations"]
        )

    def _share(self, state: State, row: Row, body: Body) -> None:
        try:
            self.accounts = self.accounts.given(state.filter, notes.text(body, "analyst"), notes.read_share(body))
        except SetupError as error:
            if error.code != "bad-share":
                raise
            raise damaged(f"entry {row.seq}", "sets a share that could not be set") from error

    def _choice(self, state: State, row: Row, choice: RowsChoice | None) -> None:
        """A choice of rows follows from one answered debit, is no more than the first entry allows, and stays."""
        if choice is None:
            return
        most = state.genesis.unit.rows
        if self.choice is None:
            question, answer = (self._texts.get(seq or 0, "") for seq in (choice.entry, self.answer_of(choice.entry)))
            bought = answer and follows(choice, most, question, answer)
        else:
            bought = choice == self.choice
        if not bought or not 1 <= choice.rows <= most:
            raise damaged(f"entry {row.seq}", "chooses rows that could not be chosen")
        self.choice = choice
        self._texts.clear()

    def _note(self, row: Row, text: str) -> None:
        if self.founding.histogram_share is not None and self.choice is None:
            self._texts[row.seq] = text

    def _cover(self, row: Row, body: Body) -> None:
        try:
            self.covers += (read_cover(body),)
        except ValueError as error:
            raise damaged(f"entry {row.seq}", "covers no source") from error


def _tree(data: Registration | None) -> Body | None:
    return None if data is None else notes.registration_tree(data)


def _parts(accounts: Accounts) -> Iterator[tuple[str, tuple[Fraction, Fraction]]]:
    return ((name, (share.share, share.reserve)) for name, share in accounts.shares.items())


def read_charge(row: Row, body: Body, event: Event) -> Charge:
    """What a debit's entry says."""
    question = notes.text(body, "question_digest")
    return Charge(
        question=question,
        # The first entries of format 1 do not say what they asked apart from its price: they serve no re-answer.
        asked=notes.optional(body, "asked") or question,
        plan=notes.text(body, "plan_digest"),
        entry=row.hash,
        key=notes.optional(body, "key"),
        kind=DebitKind(
            notes.optional(body, "analyst") or "",
            notes.optional(body, "dataset") or "",  # which of the person space's was asked, where that was said
            notes.whole(body, "version"),
            event.epsilon,
            event.rho,
        ),
    )


def checked(store: Store, seq: int) -> Row:
    """One entry, if it still is what was chained to the one before."""
    before, row = store.row(seq - 1), store.row(seq)
    if before is None or row is None or link(before.hash, seq, row.body) != row.hash:
        raise damaged(f"entry {seq}", "is not what was written")
    return row


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


def unit_of(state: State) -> Unit:
    """Who is protected: the first entry's unit, with the number of rows that was chosen since."""
    choice = of(state).choice
    return state.genesis.unit if choice is None else replace(state.genesis.unit, rows=choice.rows)


def erasures(registered: Mapping[str, Registration]) -> int:
    """How often a person was erased from a table; it only grows, so that a change of it says that rows are gone."""
    return sum(len(known.erased) for known in registered.values())


def pending(draft: Draft) -> Pending:
    """What is pending in a draft; the same for all who propose to it."""
    if not isinstance(draft.extra, Pending):
        draft.extra = Pending(draft)
    return draft.extra


def begun(store: Store, mechanisms: Collection[str], last: int = END, *, thorough: bool = False) -> State:
    """A state to read a ledger into: at its last checkpoint up to a place, or empty where there is none.

    Privacy: what stands before that checkpoint is not read. Its totals are as good as the file: an anchor that noted a
    later entry vouches for both, and `load` reads all of it (docs/decisions/0059).
    """
    follower = History(mechanisms, thorough=thorough)
    state = State(mechanisms, follower)
    try:
        found = checkpoints.find(store, last) if last else None
        if found is not None:
            follower.resuming = found
            state.resume(found.first, found.previous, found.row)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise damaged("a checkpoint", "cannot be read") from error
    return state


def load(store: Store, mechanisms: Collection[str], *, thorough: bool = False) -> State:
    """Read a ledger from its first entry to its last and check all of it (T47)."""
    return entries.load(store, State(mechanisms, History(mechanisms, thorough=thorough)))
