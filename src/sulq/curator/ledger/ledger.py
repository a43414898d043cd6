"""The ledger of one person space: every ask is charged here, durably, before any row is read."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from sulq.answers import wire
from sulq.answers.receipt import Receipt
from sulq.curator.ledger import history, notes, remaining, transcript
from sulq.curator.ledger.anchor import Anchor, Noted, short_of
from sulq.curator.ledger.founding import compare, raised, refuse_lowered, widened
from sulq.curator.ledger.history import Charge, History, load, pending
from sulq.curator.ledger.keys import Keys, check_key
from sulq.curator.ledger.notes import Line, Registration
from sulq.curator.ledger.opening import Report, connect, place_of, report, verify
from sulq.curator.ledger.postgres_place import Address, PostgresPlace
from sulq.curator.ledger.shares import NOTHING, Share, Standing, check_analyst
from sulq.curator.ledger.signature import Signer
from sulq.curator.ledger.sources import Book, Source, covered, kept_source, source_key
from sulq.curator.ledger.sqlite_file import SqliteFile
from sulq.curator.ledger.turns import SharedWriter
from sulq.errors import CuratorError, QuestionError, SetupError, SulqError
from sulq.kernel.ledger.chain import Seal
from sulq.kernel.ledger.entries import Draft, State
from sulq.kernel.ledger.filter import Totals
from sulq.kernel.ledger.store import Store, damaged
from sulq.language.estimator import Estimator
from sulq.language.privacy import Budget, EpsilonDelta, Event, Loss, Unit

__all__ = ["Ledger", "Line", "Report", "Standing", "reconcile", "verify"]

PENDING: Final = 2**23  # characters of answers that may wait for the next debit
OPEN_WITH: Final = "Open it with its anchor=; if that is lost: `sulq ledger reconcile LEDGER --anchor NEW --lost`."


def nowhere(_: str) -> None:
    """Fail at no step; the crash tests put something else here."""


class Ledger:
    """Append-only, hash-chained, durable; the privacy filter decides on each debit (SR3).

    It has no way to edit, remove or refund an entry (T45, T60). All totals are
    recomputed from the entries at every opening. One object may be shared by
    threads; every process opens its own.
    """

    def __init__(
        self,
        store: SqliteFile | PostgresPlace,
        *,
        path: Path | Address | None,
        mechanisms: Collection[str],
        clock: Callable[[], float],
        failpoint: Callable[[str], None],
        answer_wait: float,
    ) -> None:
        self.path = path
        self._clock = clock
        self._failpoint = failpoint
        self._store = store
        self._waiting: dict[int, str] = {}  # answers that wait for the next transaction, by their debit
        self._mutex = threading.Lock()
        try:
            self._writer = SharedWriter(store, mechanisms, failpoint, follower=History, last=self._add_waiting)
        except BaseException:
            store.close()
            raise
        self._genesis = self._writer.state.genesis
        self._founding = self._history.founding
        self._signer = Signer(self._founding.signing_key)
        self._source_key = source_key(self._founding.receipt_key)
        self._anchor: Anchor | None = None
        self._keys = Keys(answer_wait)
        self._version = self._history.version

    @classmethod
    def open(
        cls,
        path: Path | str | None,
        *,
        mechanisms: Collection[str],
        unit: Unit | None = None,
        budget: Budget | None = None,
        synthetic: bool | None = None,
        open_keys: bool = False,
        create: bool = True,
        wait: float = 5.0,
        answer_wait: float = 60.0,
        vfs: str = "",
        anchor: Path | str | None = None,
        clock: Callable[[], float] = time.time,
        failpoint: Callable[[str], None] = nowhere,
    ) -> Self:
        """Open a person space's ledger, or begin it.

        Args:
            path: The ledger's file or postgresql:// URL; None keeps it in memory, forgotten at exit.
            mechanisms: The names in the mechanism table; an event of any other is refused (SR22).
            unit: Who is protected. None, like the next two, takes what the ledger says.
            budget: What may be lost in total, as last raised.
            synthetic: Whether the data is not private; fixed for ever by the first entry (SR9).
            open_keys: Whether a new EpsilonDelta budget sets half its delta aside for open keys.
            create: Whether to begin a ledger where there is none.
            wait: Seconds to wait for another process that writes.
            answer_wait: Seconds to wait for another thread's answer to the same idempotency key.
            vfs: An apsw file system; the tests of power loss bring their own.
            anchor: A file on another volume where the head is noted before each debit is acknowledged (T46); begun
                where there is none. Once a ledger has one it takes no debit without it.
            clock: Seconds since 1970, written down and never acted upon (T50).
            failpoint: Called with the name of each step of a debit.

        Raises:
            SetupError: It is damaged, in use, of another format, not what was declared, or older than its anchor
                (`ledger-rolled-back`); nothing is spent.
        """
        place = None if path is None else place_of(path)
        outside = None if anchor is None else Path(anchor).resolve()
        if outside is not None and place is None:
            raise SetupError("bad-declaration", "A ledger in memory has nothing to anchor.")
        store = connect(
            place,
            unit=unit,
            budget=budget,
            synthetic=synthetic,
            open_keys=open_keys,
            create=create,
            wait=wait,
            vfs=vfs,
            time=_moment(clock),
            remembered=outside is not None and outside.exists(),
        )
        ledger = cls(
            store, path=place, mechanisms=mechanisms, clock=clock, failpoint=failpoint, answer_wait=answer_wait
        )
        try:
            compare(ledger._writer.state, ledger._founding, unit=unit, budget=budget, synthetic=synthetic)
            if outside is not None:
                ledger._attach(Anchor(outside, ledger.space, ledger._signer, failpoint))
        except SulqError:
            ledger.close()
            raise
        return ledger

    def debit(
        self,
        event: Event,
        *,
        question: str,
        plan_digest: str,
        question_digest: str = "",
        asked: str = "",
        key: str | None = None,
        analyst: str = "",
        dataset: str = "",
    ) -> Receipt:
        """Charge an event; when this returns the debit is on disk and will never be refunded.

        Args:
            event: What the answer will cost.
            question: The canonical JSON of the question, for the transcript.
            plan_digest: What names the plan that is paid for.
            question_digest: What names the question and its price; by default the SHA-256 of its JSON.
            asked: What names the question alone, for free re-answers; by default the same.
            key: An idempotency key. Asked again with the same question it costs
                nothing and the receipt carries the `stored` answer (T44). No analyst meets another's.
            analyst: Whose share is charged; "" is whoever opened the ledger.
            dataset: Which of the person space's datasets is asked, so that who may read of one reads of no other.

        Raises:
            BudgetExceeded: It does not fit the budget, or what of it is this analyst's; nothing was written.
            QuestionError: The budget cannot hold such an event, or the key is taken; nothing was written.
            SetupError: `ledger-busy`, `bad-anchor`, `no-entropy`; nothing was written.
            CuratorError: `ledger-failed`; whether it was written is not known, and no answer may follow.
        """
        self._writer.guard()
        rule = self._writer.state.filter
        rule.check(event)  # here too: within a turn nonsense would fail the debits of others
        remaining.refuse_kind(rule, event)
        question_digest = question_digest or hashlib.sha256(question.encode()).hexdigest()
        if key is not None:
            check_key(key)
        if analyst != "":
            check_analyst(analyst)
        told = {
            "question": question,
            "question_digest": question_digest,
            "asked": asked or question_digest,
            "version": self._version,
            "key": key,
            "time": self._now(),
            "analyst": analyst,
            "dataset": dataset,
        }
        name = None if key is None else (analyst, key)

        def propose(draft: Draft) -> Receipt | int:
            keys = history.of(draft.state).keys
            if name is not None and name in keys:
                return self._again(draft.state, keys[name], question_digest)
            self._guard_anchor(draft.state)
            accounts = pending(draft).charged(draft, analyst, event)
            try:
                seq = draft.debit(event, plan_digest=plan_digest, **told)
            except OSError as error:  # each debit is told from all others by random bytes
                raise SetupError("no-entropy", "The machine gives no random bytes, so nothing can be asked.") from error
            pending(draft).accounts = accounts
            return seq

        if name is not None:
            self._keys.claim(name, question_digest)
        try:
            found = self._writer.take(propose)
            receipt = found if isinstance(found, Receipt) else self._writer.receipt(found)
            self._advance(receipt.seq)
            self._failpoint("before-ack")
        except BaseException:
            self._keys.settle(name)
            raise
        if receipt.stored is not None:
            self._keys.settle(name)
        return receipt

    def keep(self, receipt: Receipt, answer: str, *, at_once: bool = False) -> None:
        """Store the answer to a debit for the transcript.

        It is written with the next debit, at `flush` or at `close`, and lost in a
        crash before that; `at_once` where another process or an idempotency key may
        ask for it again.
        """
        self._writer.guard()
        charge = self._history.charges.get(receipt.seq)
        if charge is None or receipt.entry != charge.entry.hex() or receipt.stored is not None:
            raise CuratorError("bad-receipt", "This ledger gave no such receipt.")
        if charge.answer is not None or receipt.seq in self._unwritten():
            raise CuratorError("bad-receipt", "This debit has its answer already.")
        with self._mutex:
            self._waiting[receipt.seq] = notes.answer(receipt.seq, answer, time=self._now())
        try:
            if sum(map(len, self._unwritten().values())) > PENDING or charge.key is not None or at_once:
                self.flush()
        except SetupError as error:
            if error.code != "ledger-busy":
                raise
            # The debit stands and the answer may go out; it waits here for the next transaction.
        finally:
            self._settle(charge)

    def abandon(self, receipt: Receipt) -> None:
        """Say that a debit will have no answer, so that nobody waits for one; it stays charged (T45)."""
        self._writer.guard()
        charge = self._history.charges.get(receipt.seq)
        if charge is not None:
            self._settle(charge)

    def flush(self) -> None:
        """Write the answers that wait."""
        self._writer.guard()
        if self._unwritten():
            self._writer.take(_flush)

    def register(
        self,
        name: str,
        *,
        declarations: str,
        size: int | None = None,
        source: str = "",
        public: bool = False,
        estimators: tuple[Estimator, ...] = (),
        anew: bool = False,
    ) -> int:
        """Note what data stands under a name, if that is new or said to be; returns the public version.

        The spend stays with the person space, whatever its data is called and
        however often it is registered (T56).
        """
        data = Registration(name, declarations, size, source, public, estimators)

        def propose(draft: Draft) -> int:
            later = pending(draft)
            if anew or later.registered.get(name) != data:
                draft.note(notes.registered(data, time=self._now()))
                later.registered[name] = data
                later.version += 1
            return later.version

        self._version = self._writer.take(propose)
        return self._version

    def cover(self, sources: Iterable[Source], *, new_people: bool = False) -> None:
        """Note the private sources whose people this ledger protects; each once, and again when it is another file.

        Privacy: what an entry keeps of size, time and bytes is a MAC under the ledger's own key (SR25).

        Args:
            sources: What is opened under this ledger.
            new_people: The owner's word that no other ledger protects these people, kept for any auditor to see.
        """

        def propose(draft: Draft) -> None:
            for source in new:
                if not _noted(source, draft.state, self._source_key):
                    draft.note(covered(source, self._source_key, new_people=new_people, time=self._now()))

        with self._writer.looking() as (state, _):
            new = [source for source in sources if not _noted(source, state, self._source_key)]
        new = [source.read() for source in new]  # outside any transaction: a file may be slow to read
        if new:
            self._writer.take(propose)

    @property
    def book(self) -> Book:
        """What it covers, to tell other sources from these."""
        opened = self.path if isinstance(self.path, Path) else str(self.path or "")
        with self._writer.looking() as (state, _):
            return Book(opened, self.space, self._source_key, history.of(state).covers, self.synthetic)

    def kept_source(self, source: str) -> str:
        """What is registered of a source: nothing that tells of its size or time (SR25)."""
        return kept_source(source, self._source_key)

    def registered(self, name: str) -> Registration | None:
        """What was last registered under a name."""
        with self._writer.looking() as (state, _):
            return history.of(state).registered.get(name)

    @property
    def declared_public(self) -> tuple[str, ...]:
        """The tables whose rows, by their owner's word, need no protection (T22)."""
        with self._writer.looking() as (state, _):
            return tuple(sorted(name for name, data in history.of(state).registered.items() if data.public))

    @property
    def declared_estimators(self) -> tuple[tuple[str, Estimator], ...]:
        """The functions that rest on their owner's word, each with the table it is declared for (SR5)."""
        with self._writer.looking() as (state, _):
            found = sorted(history.of(state).registered.items())
        return tuple((name, item) for name, data in found for item in data.estimators)

    def raise_to(self, budget: Budget) -> None:
        """Raise the budget by an entry of its own; the published total is the sum of all time.

        Raises:
            SetupError: `budget-mismatch` if it is of another kind, or lower in any part.
        """

        def propose(draft: Draft) -> None:
            own = draft.filter
            refuse_lowered(own.budget, budget)
            if budget != own.budget:
                split = widened(own.split, budget) if own.split and isinstance(budget, EpsilonDelta) else None
                draft.raise_to(raised(budget, split, time=self._now()))

        self._writer.take(propose)

    def agrees(self, *, unit: Unit, budget: Budget, synthetic: bool, anchor: Path | str | None = None) -> None:
        """Refuse a further dataset of this person space whose owner declares it otherwise than the ledger says (T56).

        Raises:
            SetupError: `unit-mismatch`, `budget-mismatch`, `synthetic-mismatch`, `bad-anchor`; nothing was written.
        """
        with self._writer.looking() as (state, _):
            compare(state, self._founding, unit=unit, budget=budget, synthetic=synthetic)
        told = None if anchor is None else Path(anchor).resolve()
        if told != (None if self._anchor is None else self._anchor.path):
            raise SetupError(
                "bad-anchor",
                "The ledger is open with another anchor than is named here, or with none.",
                "Name the same anchor for every dataset of the ledger.",
            )

    def share(self, analyst: str, share: Share, *, unless_set: bool = False) -> Share:
        """Set what one analyst may spend at most and what is kept for it, as parts of the budget (T54, T55).

        It is an entry, if it is new; a later one replaces it. Without one an
        analyst may spend all that is left, and nothing is kept for it. With
        `unless_set` one that stands already is left as it is. Returns the one that holds now.

        Raises:
            SetupError: `bad-share`: more would be kept for all than there is, or is left.
        """
        check_analyst(analyst)

        def propose(draft: Draft) -> Share:
            later = pending(draft)
            known = later.accounts.shares.get(analyst)
            if known is not None and (unless_set or known == share):
                return known
            later.accounts = later.accounts.given(draft.filter, analyst, share)
            draft.note(notes.shared(analyst, share, time=self._now()))
            return share

        return self._writer.take(propose)

    def standings(self) -> list[Standing]:
        """Every analyst who has a share or has asked: what it may spend, has spent, and has left; the owner's view."""
        with self._writer.looking() as (state, _):
            accounts = history.of(state).accounts
            names = {*accounts.shares, *accounts.spent}
            return [accounts.standing(state.filter, name) for name in sorted(names)]

    def transcript(
        self,
        *,
        analyst: str | None = None,
        datasets: Collection[str] | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> list[Line]:
        """Every ask so far with its event and, where it was kept, its answer.

        Args:
            analyst: Only this one's.
            datasets: Only those that say they were asked of one of these.
            after: Only those of later entries.
            limit: At most so many, the first of them.
        """
        with self._writer.looking() as (state, store):
            found, waiting = history.of(state), self._unwritten()
            if analyst is None and datasets is None and after == 0 and limit is None:
                return transcript.transcript(found, store, waiting)
            return transcript.part(found, store, waiting, analyst=analyst, datasets=datasets, after=after, limit=limit)

    def receipt(self, seq: int, *, analyst: str | None = None, datasets: Collection[str] | None = None) -> str:
        """A receipt of one debit to keep: anyone can check it with the ledger's public key and nothing else (T60).

        Args:
            seq: The entry, as the answer's receipt names it.
            analyst: Any other analyst's is refused, as if it were not there.
            datasets: Likewise one of any other dataset.

        Raises:
            QuestionError: `not-in-ledger`: there is no such debit.
        """
        with self._writer.looking() as (state, store):
            charge = history.of(state).charges.get(seq)
            if charge is None or not transcript.seen(charge, analyst, datasets):
                raise QuestionError("not-in-ledger", f"Entry {seq} is no debit of this ledger.")
            found = transcript.receipt(self.space, store, seq, self._signer.public)
        return wire.encode(replace(found, signature=self._signer.sign(found.message)))

    @property
    def head(self) -> str:
        """The hash of the last entry, which covers all of them."""
        with self._writer.looking() as (state, _):
            return state.hash.hex()

    @property
    def public_key(self) -> str:
        """What checks this ledger's signatures, in hexadecimal; it is public."""
        return self._signer.public

    def kept(self, asked: str, *, key: str | None = None, analyst: str = "") -> list[Line]:
        """The answers given to a question under the present version, for free re-answers (SR12).

        None for an ask whose idempotency `key` was used before: it has an answer of its own (T44).
        """
        with self._writer.looking() as (state, store):
            found = history.of(state)
            if key is not None and (analyst, key) in found.keys:
                return []
            return transcript.kept(found, store, self._unwritten(), question=asked, version=self._version)

    def times(self, asked: str) -> int:
        """How often a question was asked, as far as this process has read the file."""
        return len(self._history.asked.get(asked, ()))

    def again(self, line: Line) -> Receipt:
        """The receipt of a kept answer, which no longer opens any row."""
        charge = self._history.charges[line.seq]
        return Receipt(line.seq, charge.entry.hex(), charge.plan, "", line.answer or "")

    def verify(self) -> Report:
        """Read the whole file again and check it: structure, chain, totals, budget at every entry, head (T47)."""
        with self._writer.looking() as (state, store):
            store.rollback()
            found = load(store, (), thorough=True)
            store.reading()
            for each in (found, state):  # other processes may have written since
                each.catch_up(store)
            mine, theirs = history.of(state), history.of(found)
            if report(found) != report(state) or (theirs.accounts, theirs.anchor) != (mine.accounts, mine.anchor):
                raise damaged("the file", "differs from what this process enforces")
            return report(found)

    def verify_receipt(self, receipt: Receipt, plan_digest: str, event: Event) -> bool:
        """Whether this ledger gave the receipt, for this plan and event."""
        self._writer.guard()
        return self._writer.seal.verifies(receipt, plan_digest, event)

    def redeem(self, receipt: Receipt, plan_digest: str, event: Event) -> bool:
        """Whether the part that sees rows may act on the receipt now: ours, for this plan and event, and once."""
        self._writer.guard()
        return self._writer.seal.redeem(receipt, plan_digest, event)

    @property
    def seal(self) -> Seal:
        """What the part that sees rows checks receipts with."""
        self._writer.guard()
        return self._writer.seal

    @property
    def spent(self) -> Loss:
        """What all answers so far have cost."""
        with self._writer.looking() as (state, _):
            return remaining.spent(state.filter, state.totals)

    @property
    def remaining(self) -> Loss:
        """What is left of the budget."""
        with self._writer.looking() as (state, _):
            return remaining.remaining(state.filter, state.totals)

    def standing(self, *, fresh: bool = True, analyst: str | None = None) -> tuple[Budget, Loss, Loss]:
        """Budget, spent and left: in step with the file, or as this process last knew it, which cannot fail.

        Of an `analyst` it is what that one may know: the budget, which is public, its own spending, and the
        largest loss it could still be granted. None is the whole person space.
        """
        if fresh:
            with self._writer.looking() as (state, _):
                return _standing(state, analyst)
        return _standing(self._writer.state, analyst)

    def rho_left(self, analyst: str | None = None) -> Fraction | None:
        """The largest rho that one ask could still spend, as this process last knew it; None where there is no rho."""
        rule, accounts = self._writer.state.filter, self._history.mark.accounts
        left = remaining.left(rule, accounts.whole) if analyst is None else accounts.left(rule, analyst)
        return remaining.rho(rule, left)

    @property
    def totals(self) -> Totals:
        """The sums the filter enforces."""
        with self._writer.looking() as (state, _):
            return state.totals

    @property
    def budget(self) -> Budget:
        """What may be lost in total, as last raised."""
        with self._writer.looking() as (state, _):
            return state.filter.budget

    @property
    def version(self) -> int:
        """The public version of the data this process registered (SR12)."""
        return self._version

    @property
    def space(self) -> str:
        """The name of the person space, drawn at random."""
        return self._founding.space

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self._genesis.unit

    @property
    def synthetic(self) -> bool:
        """Whether the data is declared not to be private."""
        return self._genesis.synthetic

    @property
    def hash_key(self) -> bytes:
        """The key of the hash that picks a heavy person's kept rows (SR2)."""
        return self._founding.hash_key

    @property
    def usable(self) -> bool:
        """Whether it takes debits: not once its file failed, until it is opened again (T48)."""
        try:
            self._writer.guard()
        except SulqError:
            return False
        return True

    @property
    def durable(self) -> bool:
        """Whether it outlives the process."""
        return self.path is not None

    def close(self) -> None:
        """Write what waits and let the file go."""
        try:
            if self.usable and self._unwritten():
                self._writer.take(_flush)
        finally:
            self._writer.close()

    def give_up(self) -> None:
        """Close it, and remove it if this opening began it: data that could not be opened leaves no ledger behind.

        Privacy: only one that holds its first entry and no other is removed, while nobody can write to it. It has
        charged nothing, and whoever opened it meanwhile is refused at the next entry. One with an anchor stays.
        """
        try:
            with contextlib.suppress(SulqError):  # what stopped the opening is what its owner must hear
                self._writer.remove()
        finally:
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path) if self.path else 'in memory, forgotten at exit'})"

    def _again(self, state: State, seq: int, question_digest: str) -> Receipt:
        """The receipt and the answer given earlier to an idempotency key."""
        charge = history.of(state).charges[seq]
        if charge.question != question_digest:
            raise QuestionError("key-reused", "This idempotency key was used for another question.")
        answer = transcript.stored_answer(history.of(state), self._store, self._unwritten(), seq)
        if answer is None:
            raise QuestionError("answer-lost", "This idempotency key was charged and has no stored answer.")
        return Receipt(seq, charge.entry.hex(), charge.plan, "", answer)

    @property
    def _history(self) -> History:
        return history.of(self._writer.state)

    def _unwritten(self) -> dict[int, str]:
        """The answers that are not in the file yet."""
        with self._mutex:
            charges = self._history.charges
            self._waiting = {seq: body for seq, body in self._waiting.items() if charges[seq].answer is None}
            return dict(self._waiting)

    def _add_waiting(self, draft: Draft) -> None:
        """Answers go with the next transaction that writes anything."""
        if draft.rows or pending(draft).flush:
            for body in self._unwritten().values():
                draft.note(body)

    def _settle(self, charge: Charge) -> None:
        self._keys.settle(None if charge.key is None else (charge.analyst, charge.key))

    def _attach(self, anchor: Anchor) -> None:
        """Go on with an anchor, if this ledger is not behind it; begin one where neither knows of any."""
        noted = anchor.read()
        with self._writer.looking() as (state, store):
            anchored = history.of(state).anchor
            if noted is None and anchored is not None:
                raise SetupError("bad-anchor", f"The ledger's anchor is not at {anchor.path}.")
            if noted is not None:
                _not_behind(noted, state, store)
                if anchored not in (None, noted.name):
                    raise SetupError("bad-anchor", "The ledger has another anchor now.")
        if noted is None:
            # The file comes first: if this is interrupted, the next opening finds it and adopts it.
            noted = anchor.begin(self._history.mark)
        anchor.settle(noted)
        self._name_anchor(noted.name)
        self._anchor = anchor
        if noted.hash in self._history.settled:
            anchor.replace(self._history.mark, noted.name)
            anchor.settle(anchor.read() or noted)

    def _name_anchor(self, name: str) -> None:
        def propose(draft: Draft) -> None:
            if history.of(draft.state).anchor != name:
                draft.note(notes.anchored(name, time=self._now()))

        if self._history.anchor != name:
            self._writer.take(propose)

    def _guard_anchor(self, state: State) -> None:
        """Take no debit that would not be noted outside: a ledger that has an anchor is fail-closed (T46)."""
        anchored = history.of(state).anchor
        if self._anchor is not None:
            self._anchor.guard(anchored)
        elif anchored is not None:
            raise SetupError("bad-anchor", "This ledger has an anchor and was opened without it.", OPEN_WITH)

    def _advance(self, seq: int) -> None:
        """Note a committed debit outside before anyone is told of it."""
        if self._anchor is not None:
            self._failpoint("before-anchor")
            self._anchor.advance(seq, lambda: self._history.mark, self._contains)
            self._failpoint("after-anchor")

    def _contains(self, seq: int, digest: str) -> bool:
        with self._writer.looking() as (_, store):
            row = store.row(seq)
            return row is not None and row.hash.hex() == digest

    def _burn(self, anchor: Anchor, noted: Noted) -> dict[str, Totals]:
        """Charge what an anchor knows of and this ledger does not; returns what was charged to whom."""

        def propose(draft: Draft) -> dict[str, Totals]:
            # While its anchor was in force this ledger took no debit the anchor does not know, unless it was never
            # acknowledged. Under no anchor, or another, it may have: then what both spent is added up.
            known = history.of(draft.state).anchor == noted.name
            spent = pending(draft).accounts.spent if known else {}
            losses = {
                analyst: loss
                for analyst, total in noted.analysts.items()
                if (loss := short_of(spent.get(analyst, NOTHING), total)) != NOTHING
            }
            draft.burn(notes.burnt(losses, name=noted.name, settles=noted.hash, time=self._now()))
            for analyst, loss in losses.items():
                pending(draft).accounts = pending(draft).accounts.charged(analyst, loss)
            return losses

        losses = self._writer.take(propose)
        self._failpoint("after-burn")
        anchor.replace(self._history.mark, noted.name)
        return losses

    def _now(self) -> str:
        return _moment(self._clock)


def reconcile(
    path: Path | str,
    anchor: Path | str,
    *,
    mechanisms: Collection[str],
    lost: bool = False,
    wait: float = 5.0,
    clock: Callable[[], float] = time.time,
    failpoint: Callable[[str], None] = nowhere,
) -> dict[str, Totals]:
    """Make a ledger that is behind its anchor usable again: burn what the anchor knows was spent and it does not.

    The spend afterwards is nowhere less than the anchor says (T46). With `lost`
    the anchor itself is gone, and a new one is begun where it is to be.

    Raises:
        SetupError: There is no such ledger or anchor, or they are not of one person space; nothing was written.
    """
    outside = Path(anchor).resolve()
    with Ledger.open(path, mechanisms=mechanisms, create=False, wait=wait, clock=clock, failpoint=failpoint) as ledger:
        held = Anchor(outside, ledger.space, ledger._signer, failpoint)  # noqa: SLF001 - of this file
        noted = held.read()
        known = ledger._history  # noqa: SLF001
        if noted is None and not lost:
            raise SetupError("bad-anchor", f"There is no anchor at {anchor}.")
        if lost and noted is not None and noted.name == known.anchor:
            raise SetupError("bad-anchor", "The anchor is there: it is not lost.", "Leave out --lost.")
        if noted is None:
            noted = held.begin(known.mark)
        if noted.space != ledger.space:
            raise SetupError("bad-anchor", "The anchor belongs to another person space.", "Restore its own ledger.")
        if not ledger._contains(noted.seq, noted.hash):  # noqa: SLF001
            return ledger._burn(held, noted)  # noqa: SLF001
        if lost:
            ledger._name_anchor(noted.name)  # noqa: SLF001
        return {}


def _not_behind(noted: Noted, state: State, store: Store) -> None:
    if noted.space != history.of(state).founding.space:
        raise SetupError("ledger-rolled-back", "The anchor remembers another person space than this ledger's.")
    row = store.row(noted.seq)
    if (row is None or row.hash.hex() != noted.hash) and noted.hash not in history.of(state).settled:
        what = "is older than its anchor" if noted.seq > state.seq else "is not the history its anchor noted"
        raise SetupError("ledger-rolled-back", f"The ledger {what}: entry {noted.seq} is missing or another.")


def _standing(state: State, analyst: str | None) -> tuple[Budget, Loss, Loss]:
    rule, accounts = state.filter, history.of(state).mark.accounts
    if analyst is None:
        return rule.budget, remaining.spent(rule, accounts.whole), remaining.remaining(rule, accounts.whole)
    own = accounts.standing(rule, analyst)
    return rule.budget, own.spent, own.remaining


def _noted(source: Source, state: State, key: bytes) -> bool:
    return any(cover.knows(source, key) for cover in history.of(state).covers if cover.kind != "name")


def _moment(clock: Callable[[], float]) -> str:
    return datetime.fromtimestamp(clock(), UTC).isoformat(timespec="milliseconds")


def _flush(draft: Draft) -> None:
    """Write the answers that wait, even if nothing else is written."""
    pending(draft).flush = True
