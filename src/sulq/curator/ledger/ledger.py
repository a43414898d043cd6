"""The ledger of one person space: every ask is charged here, durably, before any row is read."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Collection
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Final, Self, cast

from sulq.answers.answer import Receipt
from sulq.curator.ledger import history, notes, shares
from sulq.curator.ledger.anchor import Anchor, moment, noted_place
from sulq.curator.ledger.full_check import FullCheck, Verification
from sulq.curator.ledger.history import Charge, pending
from sulq.curator.ledger.late_answers import LateAnswers, flush_of
from sulq.curator.ledger.notes import Keys, Line, Signer, check_key
from sulq.curator.ledger.opening import Report, connect, place_of, verify
from sulq.curator.ledger.postgres_place import Address, PostgresPlace
from sulq.curator.ledger.probe import ProbedLedger
from sulq.curator.ledger.shares import Standing, check_analyst
from sulq.curator.ledger.sources import source_key
from sulq.curator.ledger.transcript import stored_answer
from sulq.curator.ledger.turns import SharedWriter, SqliteFile
from sulq.errors import CuratorError, QuestionError, SetupError, SulqError
from sulq.kernel.ledger.entries import Draft, State
from sulq.kernel.ledger.filter import Totals
from sulq.kernel.ledger.store import END
from sulq.language.privacy import Budget, Event, Unit

__all__ = ["Ledger", "Line", "Report", "Standing", "reconcile", "verify"]

MAX_WAITING_CHARACTERS: Final = 2**23  # characters of answers that may wait for the next debit


def nowhere(_: str) -> None:
    """Fail at no step; the crash tests put something else here."""


class Ledger(ProbedLedger):
    """Append-only, hash-chained, durable; the privacy filter decides on each debit (SR3).

    It has no way to edit, remove or refund an entry (T45, T60). All totals are recomputed from the entries at every
    opening. One object may be shared by threads; every process opens its own.
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
        last: int,
    ) -> None:
        self.path = path
        self._clock = clock
        self._failpoint = failpoint
        self._store = store
        self._waiting: dict[int, str] = {}  # answers that wait for the next transaction, by their debit
        self._mutex, self._paging = threading.Lock(), threading.Lock()
        flush_of(path)
        try:

            def empty() -> State:  # read anew, it goes on from a checkpoint that this opening has followed
                known = self._history.checkpoint if hasattr(self, "_writer") else None
                return history.begun(store, mechanisms, last if known is None else known[0])

            self._writer = SharedWriter(store, empty, failpoint, first=_checkpoint, last=self._add_waiting)
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
        self._erasures = history.erasures(self._history.registered)  # the rows that it opens are without these persons
        self._late = LateAnswers(self)
        self._check: FullCheck | None = None
        self._verification = None if path is None else Verification(path, self._writer.fail)
        begun = (self._history.begun_at, self._history.begun_hash)
        if path is not None and begun[0]:
            self._check = FullCheck(path, mechanisms, begun, self._writer.fail)

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
        basic_share: Fraction | None = None,
        key_share: Fraction | None = None,
        create: bool = True,
        wait: float = 5.0,
        answer_wait: float = 60.0,
        vfs: str = "",
        anchor: Path | str | None = None,
        whole: bool = False,
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
            open_keys: Whether a new EpsilonDelta budget sets a part of its delta aside for open keys.
            basic_share: What part of the other delta is for basic composition; None takes what the ledger says.
            key_share: What part of delta is for open keys, whatever `open_keys` says; None takes what the ledger says.
            create: Whether to begin a ledger where there is none.
            wait: Seconds to wait for another process that writes.
            answer_wait: Seconds to wait for another thread's answer to the same idempotency key.
            vfs: An apsw file system; the tests of power loss bring their own.
            anchor: A file on another volume where the head is noted before each debit is acknowledged (T46); begun
                where there is none. Once a ledger has one it takes no debit without it.
            whole: Whether to read it from its first entry. By default it is read from its last checkpoint, with an
                anchor from the last one that the anchor vouches for, and the entries before aside.
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
        parts = {"basic": basic_share, "keys": key_share}
        store = connect(
            place,
            unit=unit,
            budget=budget,
            synthetic=synthetic,
            open_keys=open_keys,
            **parts,
            create=create,
            wait=wait,
            vfs=vfs,
            time=moment(clock),
            remembered=outside is not None and outside.exists(),
        )
        last = 0 if whole else END if outside is None else noted_place(outside)
        ledger = cls(
            store,
            path=place,
            mechanisms=mechanisms,
            clock=clock,
            failpoint=failpoint,
            answer_wait=answer_wait,
            last=last,
        )
        try:
            state, choice = ledger._writer.state, ledger.choice
            notes.compare(
                state, ledger._founding, unit=unit, budget=budget, synthetic=synthetic, choice=choice, **parts
            )
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
            key: An idempotency key. Asked again with the same question it costs nothing and the receipt carries the
                `stored` answer (T44). No analyst meets another's.
            analyst: Whose share is charged; "" is whoever opened the ledger.
            dataset: Which of the person space's datasets is asked, so that who may read of one reads of no other.

        Raises:
            BudgetExceeded: It does not fit the budget, or what of it is this analyst's; nothing was written.
            QuestionError: The budget cannot hold such an event, or the key is taken; nothing was written.
            SetupError: `ledger-busy`, `bad-anchor`, `no-entropy`; `not-ready`: persons were erased since it was opened;
                nothing was written.
            CuratorError: `ledger-failed`; whether it was written is not known, and no answer may follow.
        """
        self._writer.guard()
        rule = self._writer.state.filter
        rule.check(event)  # here too: within a turn nonsense would fail the debits of others
        shares.refuse_kind(rule, event)
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
            if history.erasures(pending(draft).registered) != self._erasures:
                why = "Persons' rows were erased since this dataset was opened, so nothing is answered from its rows."
                raise SetupError("not-ready", why, "Open it again; of a server, its owner restarts it.")
            used = None if name is None else history.of(draft.state).key(*name)
            if used is not None:
                return self._again(draft.state, used, question_digest)
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

        It is written with the next debit, or after a moment, and lost in a crash before that: asked again it is a new
        debit (SR24). With `at_once`, and where the debit has an idempotency key, it is durable when this returns.
        """
        self._writer.guard()
        charge = self._charge(receipt.seq)
        if charge is None or receipt.entry != charge.entry.hex() or receipt.stored is not None:
            raise CuratorError("bad-receipt", "This ledger gave no such receipt.")
        if self._history.answer_of(receipt.seq) is not None or receipt.seq in self._unwritten():
            raise CuratorError("bad-receipt", "This debit has its answer already.")
        with self._mutex:
            self._waiting[receipt.seq] = notes.answer(receipt.seq, answer, time=self._now())
        try:
            if sum(map(len, self._unwritten().values())) > MAX_WAITING_CHARACTERS or charge.key is not None or at_once:
                self.flush()
        except SetupError as error:
            if error.code != "ledger-busy":
                raise
            # The debit stands; the answer waits for the next transaction, and may go out where nobody was promised it.
            if charge.key is not None or at_once:
                why = "The ledger is busy: the answer is paid for and kept, and not yet written."
                again = "Open it again" if charge.key is None else "Ask again with the same key"
                raise SetupError("ledger-busy", why, f"{again}: it costs nothing more.") from error
        finally:
            if self._unwritten():
                self._late.note()
            self._settle(charge)

    def abandon(self, receipt: Receipt) -> None:
        """Say that a debit will have no answer, so that nobody waits for one; it stays charged (T45)."""
        self._writer.guard()
        charge = self._charge(receipt.seq)
        if charge is not None:
            self._settle(charge)

    def flush(self) -> None:
        """Write the answers that wait."""
        self._writer.guard()
        if self._unwritten():
            self._writer.take(_flush)

    def close(self) -> None:
        """Write what waits and let the file go."""
        try:
            if self.usable and self._unwritten():
                self._writer.take(_flush)
        finally:
            self._late.stop()
            if self._check is not None:
                self._check.stop()
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
        charge = cast("Charge", history.of(state).charge(self._store, seq))
        if charge.question != question_digest:
            raise QuestionError("key-reused", "This idempotency key was used for another question.")
        answer = stored_answer(history.of(state), self._store, self._unwritten(), seq)
        if answer is None:
            raise QuestionError("answer-lost", "This idempotency key was charged and has no stored answer.")
        return Receipt(seq, charge.entry.hex(), charge.plan, "", answer)

    def _add_waiting(self, draft: Draft) -> None:
        """Answers go with the next transaction that writes anything."""
        if draft.rows or pending(draft).flush:
            for body in self._unwritten().values():
                draft.note(body)

    def _settle(self, charge: Charge) -> None:
        self._keys.settle(None if charge.key is None else (charge.kind.analyst, charge.key))

    def _charge(self, seq: int) -> Charge | None:
        """One debit, from memory if it is of late."""
        found = self._history.charges.get(seq)
        if found is None:
            with self._writer.looking() as (state, store):
                found = history.of(state).charge(store, seq)
        return found


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
    ledger = Ledger.open(
        path, mechanisms=mechanisms, create=False, wait=wait, clock=clock, failpoint=failpoint, whole=True
    )
    with ledger:  # read whole: what is burnt is what all its entries lack
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


def _checkpoint(draft: Draft) -> None:
    """Begin a transaction with a checkpoint, where one is due: it speaks of all entries before it."""
    found = history.of(draft.state)
    if found.due(draft.state):
        draft.note(found.told(draft.state))


def _flush(draft: Draft) -> None:
    """Write the answers that wait, even if nothing else is written."""
    pending(draft).flush = True
