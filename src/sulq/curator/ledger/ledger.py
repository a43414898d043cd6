"""The ledger of one person space: every ask is charged here, durably, before any row is read."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from sulq.curator.ledger import entries, transcript
from sulq.curator.ledger.entries import Line, Registration, damaged
from sulq.curator.ledger.filter import Totals, widened
from sulq.curator.ledger.keys import Keys, check_key
from sulq.curator.ledger.opening import Report, compare, connect, report, verify
from sulq.curator.ledger.seal import Seal
from sulq.curator.ledger.state import State, load
from sulq.curator.ledger.store import Store
from sulq.curator.ledger.turns import Draft
from sulq.curator.ledger.writer import Writer, flush
from sulq.errors import BudgetExceeded, CuratorError, QuestionError, SetupError, SulqError
from sulq.terms.privacy import Budget, EpsilonDelta, Event, Loss, Split, SubLinear, Unit
from sulq.terms.receipt import Receipt

__all__ = ["Ledger", "Line", "Report", "verify"]

PENDING: Final = 2**23  # characters of answers that may wait for the next debit


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
        store: Store,
        *,
        path: Path | None,
        mechanisms: Collection[str],
        clock: Callable[[], float],
        failpoint: Callable[[str], None],
        answer_wait: float,
    ) -> None:
        self.path = path
        self._clock = clock
        self._failpoint = failpoint
        try:
            self._writer = Writer(store, mechanisms, failpoint)
        except BaseException:
            store.close()
            raise
        self._genesis = self._writer.state.genesis
        self._seal = Seal(self._genesis.receipt_key)
        self._keys = Keys(answer_wait)
        self._version = self._writer.state.version

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
        clock: Callable[[], float] = time.time,
        failpoint: Callable[[str], None] = nowhere,
    ) -> Self:
        """Open a person space's ledger, or begin it.

        Args:
            path: The ledger's file; None keeps it in memory, forgotten at exit.
            mechanisms: The names in the mechanism table; an event of any other is refused (SR22).
            unit: Who is protected. None, like the next two, takes what the ledger says.
            budget: What may be lost in total, as last raised.
            synthetic: Whether the data is not private; fixed for ever by the first entry (SR9).
            open_keys: Whether a new EpsilonDelta budget sets half its delta aside for open keys.
            create: Whether to begin a ledger where there is none.
            wait: Seconds to wait for another process that writes.
            answer_wait: Seconds to wait for another thread's answer to the same idempotency key.
            vfs: An apsw file system; the tests of power loss bring their own.
            clock: Seconds since 1970, written down and never acted upon (T50).
            failpoint: Called with the name of each step of a debit.

        Raises:
            SetupError: It is damaged, in use, of another format, or not what was declared; nothing is spent.
        """
        place = None if path is None else Path(path).resolve()
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
        )
        ledger = cls(
            store, path=place, mechanisms=mechanisms, clock=clock, failpoint=failpoint, answer_wait=answer_wait
        )
        try:
            compare(ledger._writer.state, unit=unit, budget=budget, synthetic=synthetic)
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
    ) -> Receipt:
        """Charge an event; when this returns the debit is on disk and will never be refunded.

        Args:
            event: What the answer will cost.
            question: The canonical JSON of the question, for the transcript.
            plan_digest: What names the plan that is paid for.
            question_digest: What names the question and its price; by default the SHA-256 of its JSON.
            asked: What names the question alone, for free re-answers; by default the same.
            key: An idempotency key. Asked again with the same question it costs
                nothing and the receipt carries the `stored` answer (T44).

        Raises:
            BudgetExceeded: It does not fit; nothing was written.
            QuestionError: The budget cannot hold such an event, or the key is taken; nothing was written.
            SetupError: `ledger-busy`; nothing was written.
            CuratorError: `ledger-failed`; whether it was written is not known, and no answer may follow.
        """
        self._writer.guard()
        self._writer.state.filter.check(event)
        question_digest = question_digest or hashlib.sha256(question.encode()).hexdigest()
        if key is not None:
            check_key(key)
        body = entries.debit(
            event,
            question=question,
            question_digest=question_digest,
            asked=asked,
            plan_digest=plan_digest,
            version=self._version,
            key=key,
            time=self._now(),
        )

        def propose(draft: Draft) -> Receipt:
            if key is not None and key in draft.state.keys:
                return self._again(draft.state, draft.state.keys[key], question_digest)
            totals = draft.filter.add(draft.totals, event)
            if not draft.filter.holds(totals):
                asked, left = draft.filter.asked(event), draft.filter.remaining(draft.totals)
                raise BudgetExceeded("budget-exceeded", f"This would cost {asked}; {left} is left.")
            row = draft.add(body)
            draft.totals = totals
            return self._seal.stamp(row.seq, row.hash, plan_digest)

        if key is not None:
            self._keys.claim(key, question_digest)
        try:
            receipt = self._writer.take(propose)
            self._failpoint("before-ack")
        except BaseException:
            self._keys.settle(key)
            raise
        if receipt.stored is not None:
            self._keys.settle(key)
        return receipt

    def keep(self, receipt: Receipt, answer: str, *, at_once: bool = False) -> None:
        """Store the answer to a debit for the transcript.

        It is written with the next debit, at `flush` or at `close`, and lost in a
        crash before that; `at_once` where another process or an idempotency key may
        ask for it again.
        """
        self._writer.guard()
        charge = self._writer.state.charges.get(receipt.seq)
        if charge is None or not self.verify_receipt(receipt, charge.plan) or receipt.stored is not None:
            raise CuratorError("bad-receipt", "This ledger gave no such receipt.")
        if charge.answer is not None or receipt.seq in self._writer.waiting():
            raise CuratorError("bad-receipt", "This debit has its answer already.")
        body = entries.answer(receipt.seq, answer, time=self._now())
        try:
            if self._writer.later(receipt.seq, body) > PENDING or charge.key is not None or at_once:
                self.flush()
        except SetupError as error:
            if error.code != "ledger-busy":
                raise
            # The debit stands and the answer may go out; it waits here for the next transaction.
        finally:
            self._keys.settle(charge.key)

    def abandon(self, receipt: Receipt) -> None:
        """Say that a debit will have no answer, so that nobody waits for one; it stays charged (T45)."""
        self._writer.guard()
        charge = self._writer.state.charges.get(receipt.seq)
        if charge is not None:
            self._keys.settle(charge.key)

    def flush(self) -> None:
        """Write the answers that wait."""
        self._writer.guard()
        if self._writer.waiting():
            self._writer.take(flush)

    def register(
        self,
        name: str,
        *,
        declarations: str,
        size: int | None = None,
        source: str = "",
        public: bool = False,
        anew: bool = False,
    ) -> int:
        """Note what data stands under a name, if that is new or said to be; returns the public version.

        The spend stays with the person space, whatever its data is called and
        however often it is registered (T56).
        """
        data = Registration(name, declarations, size, source, public)

        def propose(draft: Draft) -> int:
            if anew or draft.registered.get(name) != data:
                draft.add(entries.registered(data, time=self._now()))
                draft.registered[name] = data
                draft.version += 1
            return draft.version

        self._version = self._writer.take(propose)
        return self._version

    def registered(self, name: str) -> Registration | None:
        """What was last registered under a name."""
        with self._writer.reading() as (state, _):
            return state.registered.get(name)

    @property
    def declared_public(self) -> tuple[str, ...]:
        """The tables whose rows, by their owner's word, need no protection (T22)."""
        with self._writer.reading() as (state, _):
            return tuple(sorted(name for name, data in state.registered.items() if data.public))

    def raise_to(self, budget: Budget) -> None:
        """Raise the budget by an entry of its own; the published total is the sum of all time.

        Raises:
            SetupError: `budget-mismatch` if it is of another kind, or lower in any part.
        """

        def propose(draft: Draft) -> None:
            own = draft.filter
            if budget == own.budget:
                return
            _not_lower(own.budget, budget)
            split: Split | None = None
            if own.split is not None and isinstance(budget, EpsilonDelta):
                split = widened(own.split, budget)
            draft.add(entries.raised(budget, split, time=self._now()))
            draft.filter = own.renewed(budget, split)

        self._writer.take(propose)

    def transcript(self) -> list[Line]:
        """Every ask so far with its event and, where it was kept, its answer."""
        with self._writer.reading() as (state, store):
            return transcript.transcript(state, store, self._writer.waiting())

    def kept(self, asked: str, *, key: str | None = None) -> list[Line]:
        """The answers given to a question under the present version, for free re-answers (SR12).

        None for an ask whose idempotency `key` was used before: it has an answer of its own (T44).
        """
        with self._writer.reading() as (state, store):
            if key is not None and key in state.keys:
                return []
            waiting = self._writer.waiting()
            return transcript.kept(state, store, waiting, question=asked, version=self._version)

    def again(self, line: Line) -> Receipt:
        """The receipt of a kept answer, which no longer opens any row."""
        charge = self._writer.state.charges[line.seq]
        return self._seal.stamp(line.seq, charge.entry, charge.plan, stored=line.answer)

    def verify(self) -> Report:
        """Read the whole file again and check it: structure, chain, totals, budget at every entry, head (T47)."""
        with self._writer.reading() as (state, store):
            store.rollback()
            found = report(load(store, (), thorough=True))
            if found != report(state):
                raise damaged("the file", "differs from what this process enforces")
            return found

    def verify_receipt(self, receipt: Receipt, plan_digest: str) -> bool:
        """Whether this ledger gave the receipt, for this plan."""
        self._writer.guard()
        return self._seal.verifies(receipt, plan_digest)

    def redeem(self, receipt: Receipt, plan_digest: str) -> bool:
        """Whether the part that sees rows may act on the receipt now: ours, for this plan, and once."""
        self._writer.guard()
        return self._seal.redeem(receipt, plan_digest)

    @property
    def seal(self) -> Seal:
        """What the part that sees rows checks receipts with."""
        self._writer.guard()
        return self._seal

    @property
    def spent(self) -> Loss:
        """What all answers so far have cost."""
        with self._writer.reading() as (state, _):
            return state.filter.spent(state.totals)

    @property
    def remaining(self) -> Loss:
        """What is left of the budget."""
        with self._writer.reading() as (state, _):
            return state.filter.remaining(state.totals)

    def standing(self, *, fresh: bool) -> tuple[Budget, Loss, Loss]:
        """Budget, spent and left: in step with the file, or as this process last knew it, which cannot fail."""
        if fresh:
            with self._writer.reading() as (state, _):
                return state.filter.budget, state.filter.spent(state.totals), state.filter.remaining(state.totals)
        state = self._writer.state
        return state.filter.budget, state.filter.spent(state.totals), state.filter.remaining(state.totals)

    @property
    def totals(self) -> Totals:
        """The sums the filter enforces."""
        with self._writer.reading() as (state, _):
            return state.totals

    @property
    def budget(self) -> Budget:
        """What may be lost in total, as last raised."""
        with self._writer.reading() as (state, _):
            return state.filter.budget

    @property
    def version(self) -> int:
        """The public version of the data this process registered (SR12)."""
        return self._version

    @property
    def space(self) -> str:
        """The name of the person space, drawn at random."""
        return self._genesis.space

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
        return self._genesis.hash_key

    @property
    def durable(self) -> bool:
        """Whether it outlives the process."""
        return self.path is not None

    def close(self) -> None:
        """Write what waits and let the file go."""
        self._writer.close()

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
        charge = state.charges[seq]
        if charge.question != question_digest:
            raise QuestionError("key-reused", "This idempotency key was used for another question.")
        answer = self._writer.answer(seq)
        if answer is None:
            raise QuestionError("answer-lost", "This idempotency key was charged and has no stored answer.")
        return self._seal.stamp(seq, charge.entry, charge.plan, stored=answer)

    def _now(self) -> str:
        return _moment(self._clock)


def _moment(clock: Callable[[], float]) -> str:
    return datetime.fromtimestamp(clock(), UTC).isoformat(timespec="milliseconds")


def _not_lower(own: Budget, budget: Budget) -> None:
    if type(own) is not type(budget):
        raise SetupError("budget-mismatch", f"A budget of {own} cannot become one of {budget}.", "Keep its kind.")
    if isinstance(own, SubLinear):
        raise SetupError(
            "budget-mismatch",
            "A SubLinear budget cannot be raised: the noise of every answer was fixed by its number of queries.",
            "Begin a new person space, or ask under another budget from the start.",
        )
    lower = budget.exact < own.exact
    if isinstance(own, EpsilonDelta) and isinstance(budget, EpsilonDelta):
        lower = lower or budget.exact_delta < own.exact_delta
    if lower:
        raise SetupError("budget-mismatch", f"A budget is never lowered: {own} to {budget}.", "Raise it or leave it.")
