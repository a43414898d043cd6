"""What a ledger says: transcript, receipts, standings and declarations. Nothing here writes an entry."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Final, cast

from sulq.answers import wire
from sulq.answers.answer import Receipt
from sulq.answers.budget import BudgetLeft
from sulq.answers.signed_receipt import SignedReceipt
from sulq.curator.ledger import history, notes, shares
from sulq.curator.ledger.checkpoints import DebitKind
from sulq.curator.ledger.full_check import LedgerMoment, Read, Verification, looking, read_ledger
from sulq.curator.ledger.history import Charge, Declaration, History, checked, load
from sulq.curator.ledger.notes import Founding, Line, Registration, Signer, signed
from sulq.curator.ledger.opening import Report, entry_of, report
from sulq.curator.ledger.postgres_place import Address, PostgresPlace
from sulq.curator.ledger.reading import pieces, unforked
from sulq.curator.ledger.shares import Standing
from sulq.curator.ledger.sources import LedgerCover, kept_source
from sulq.curator.ledger.transcript import all_lines, lines_at
from sulq.curator.ledger.turns import SharedWriter, SqliteFile, opening
from sulq.errors import QuestionError, SulqError
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import Row, Seal
from sulq.kernel.ledger.entries import Genesis, State
from sulq.kernel.ledger.filter import Totals
from sulq.kernel.ledger.store import damaged
from sulq.language.estimator import Estimator
from sulq.language.privacy import Budget, Event, Loss, Split, Unit

MAX_STRONGEST_ANSWERS: Final = 4  # of a question, pure or not, that are read for a free re-answer


def seen(debit: DebitKind, analyst: str | None, datasets: Collection[str] | None) -> bool:
    """Whether a debit may be shown to whoever sees this analyst's and these datasets' (None: all).

    A debit that does not say which dataset it was of is shown to those who see all of them (T79).
    """
    return analyst in (None, debit.analyst) and (datasets is None or debit.dataset in datasets)


def read_receipt(space: str, row: Row, public_key: str) -> SignedReceipt:
    """The receipt of an entry, without its signature."""
    body = entries.parse(row)
    event = entries.read_losses(body)
    return SignedReceipt(
        space=space,
        seq=row.seq,
        entry=row.hash.hex(),
        plan=notes.text(body, "plan_digest"),
        question=notes.text(body, "question_digest"),
        epsilon=event.epsilon,
        rho=event.rho,
        key_delta=event.key_delta,
        queries=event.queries,
        analyst=notes.optional(body, "analyst") or "",
        time=notes.text(body, "time"),
        public_key=public_key,
    )


def check_receipt(text: str | bytes, *, key: str | None = None, ledger: Path | str | None = None) -> SignedReceipt:
    """Read a receipt that someone kept, if its ledger signed every word of it.

    Args:
        text: The receipt, as it was given.
        key: The ledger's public key, as its owner published it. Without it, and without the ledger, the receipt
            is only shown to be whole: whoever made it brought the key it is checked with.
        ledger: The ledger, to see that the entry is still there and says the same.

    Raises:
        QuestionError: `bad-signature`: changed, not a receipt, or signed by another key; `not-in-ledger`.
        SetupError: The ledger cannot be read or does not verify.
    """
    try:
        receipt = wire.decode(text)
    except SulqError as error:
        raise QuestionError("bad-signature", "This is not a signed receipt.") from error
    if not isinstance(receipt, SignedReceipt):
        raise QuestionError("bad-signature", "This is not a signed receipt.")
    if key is not None and receipt.public_key != key.strip().lower():
        raise QuestionError("bad-signature", "The receipt was signed by another key.")
    if not signed(receipt.message, receipt.signature, receipt.public_key):
        raise QuestionError("bad-signature", "The receipt was changed after it was signed.")
    if ledger is not None:
        _stands(receipt, ledger)
    return receipt


def _stands(receipt: SignedReceipt, ledger: Path | str) -> None:
    state, row = entry_of(ledger, receipt.seq)
    own = history.of(state).founding
    public = Signer(own.signing_key).public
    if receipt.space != own.space or receipt.public_key != public:
        raise QuestionError("not-in-ledger", "The receipt is of another ledger.")
    if row is None or not history.of(state).knows(receipt.seq):
        raise QuestionError("not-in-ledger", f"The ledger has no debit at entry {receipt.seq}.")
    if read_receipt(own.space, row, public) != replace(receipt, signature=""):
        raise QuestionError("not-in-ledger", f"Entry {receipt.seq} of the ledger is another one: it was rewritten.")


class LedgerView:
    """The reading half of a ledger: what stands in its file, and the answers that wait to be written to it."""

    path: Path | Address | None
    _store: SqliteFile | PostgresPlace
    _waiting: dict[int, str]  # answers that wait for the next transaction, by their debit
    _mutex: threading.Lock
    _paging: threading.Lock  # held by whoever reads a transcript: one at a time
    _writer: SharedWriter
    _verification: Verification | None  # of what is in no memory
    _genesis: Genesis
    _founding: Founding
    _signer: Signer
    _source_key: bytes
    _version: int
    _erasures: int

    @property
    def book(self) -> LedgerCover:
        """What it covers, to tell other sources from these."""
        opened = self.path if isinstance(self.path, Path) else str(self.path or "")
        with self._writer.looking() as (state, _):
            return LedgerCover(opened, self.space, self._source_key, history.of(state).covers, self.synthetic)

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
    def declarations(self) -> tuple[Declaration, ...]:
        """Everything that was declared of the data, in order: what was changed after answers stays visible (SR28)."""
        with self._writer.looking() as (state, _):
            return history.of(state).declarations

    @property
    def declared_estimators(self) -> tuple[tuple[str, Estimator], ...]:
        """The functions that rest on their owner's word, each with the table it is declared for (SR5)."""
        with self._writer.looking() as (state, _):
            found = sorted(history.of(state).registered.items())
        return tuple((name, item) for name, data in found for item in data.estimators)

    def standings(self, *, fresh: bool = True) -> list[Standing]:
        """Every analyst's account: in step with the file, or as this process last knew it, which cannot fail."""
        if not fresh:
            return self._history.mark.accounts.standings(self._writer.state.filter)
        with self._writer.looking() as (state, _):
            return history.of(state).accounts.standings(state.filter)

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
        everything = analyst is None and datasets is None and after == 0 and limit is None
        with self._writer.looking() as (state, store):
            found, waiting, last = history.of(state), self._unwritten(), state.seq
            shown = found.debits_after(after, lambda debit: seen(debit, analyst, datasets))
            places = [] if everything else [(seq, found.answer_of(seq)) for seq in itertools.islice(shown, limit)]
            if self.path is None:
                return all_lines(store.rows(0, last), waiting) if everything else lines_at(store, waiting, places)
        with self._paging, opening(), looking(self.path) as own:  # nobody who asks waits for it
            if everything:
                return all_lines(itertools.chain.from_iterable(pieces(own, 0, last)), waiting)
            lines: list[Line] = []
            for place in places:
                with unforked():
                    lines += lines_at(own, waiting, [place])
            return lines

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
            charge = history.of(state).charge(store, seq)
            if charge is None or not seen(charge.kind, analyst, datasets):
                raise QuestionError("not-in-ledger", f"Entry {seq} is no debit of this ledger.")
            found = read_receipt(self.space, checked(store, seq), self._signer.public)
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
        """The strongest answers given to a question under the present version, for free re-answers (SR12).

        However often a question was asked anew, finding its best answers reads no more of the file.
        None for an ask whose idempotency `key` was used before: it has an answer of its own (T44).
        """
        with self._writer.looking() as (state, store):
            found, waiting = history.of(state), self._unwritten()
            if key is not None and found.key(analyst, key) is not None:
                return []
            if history.erasures(found.registered) != self._erasures:  # persons were erased since it was opened
                return []
            charges = {
                seq: debit
                for seq, debit in found.asked_by(asked)
                if debit.version == self._version and (found.answer_of(seq) is not None or seq in waiting)
            }
            pure = {seq: charge.epsilon for seq, charge in charges.items() if charge.epsilon is not None}
            others = {seq: charge.rho for seq, charge in charges.items() if charge.epsilon is None}
            strongest = sorted(pure, key=lambda seq: (-pure[seq], seq))[:MAX_STRONGEST_ANSWERS]
            strongest += sorted(others, key=lambda seq: (-others[seq], seq))[:MAX_STRONGEST_ANSWERS]
            return lines_at(store, waiting, [(seq, found.answer_of(seq)) for seq in strongest])

    def times(self, asked: str) -> int:
        """How often a question was asked, as far as this process has read the file."""
        return len(self._history.asked_by(asked))

    def again(self, line: Line) -> Receipt:
        """The receipt of a kept answer, which no longer opens any row."""
        with self._writer.looking() as (state, store):
            charge = cast("Charge", history.of(state).charge(store, line.seq))
        return Receipt(line.seq, charge.entry.hex(), charge.plan, "", line.answer or "")

    def verify(self, *, whole: bool = False, read: Read = read_ledger, patience: float | None = None) -> Report:
        """Read the ledger again and check it: structure, chain, totals, budget at every entry, head (T47).

        It is read on a connection of its own, so that nobody waits for it. Unless `whole`, what this process has
        verified before is read from the last checkpoint in it.

        Args:
            whole: Whether to read it from its first entry.
            read: Reads it: here, or in another process.
            patience: Seconds to wait for a reading, of which there is one at a time; None waits for its end.
        """
        if self._verification is None:  # in memory, which no other connection sees
            with self._writer.looking() as (state, store):
                store.rollback()
                if LedgerMoment.of(load(store, (), thorough=True)) != LedgerMoment.of(state):
                    raise damaged("the file", "differs from what this process enforces")
                return report(state)
        self._writer.guard()
        return self._verification.report(self._moment, whole=whole, read=read, patience=patience)

    def _moment(self) -> tuple[LedgerMoment, Report]:
        with self._writer.looking() as (state, _):
            return LedgerMoment.of(state), report(state)

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
            return shares.spent_of(state.filter, state.totals)

    @property
    def remaining(self) -> Loss:
        """What is left of the budget."""
        with self._writer.looking() as (state, _):
            return shares.remaining(state.filter, state.totals)

    def standing(self, *, fresh: bool = True, analyst: str | None = None) -> tuple[Budget, Loss, Loss]:
        """Budget, spent and left: in step with the file, or as this process last knew it, which cannot fail.

        Of an `analyst` it is what that one may know: the budget, which is public, its own spending, and the
        largest loss it could still be granted. None is the whole person space.
        """
        if fresh:
            with self._writer.looking() as (state, _):
                return _standing(state, analyst)
        return _standing(self._writer.state, analyst)

    def after(self, events: Sequence[Event], analyst: str | None = None) -> tuple[BudgetLeft | None, ...]:
        """What would be left after each of these, in order; None: it would be refused. In step with the file."""
        with self._writer.looking() as (state, _):
            rule, accounts = state.filter, history.of(state).mark.accounts
        return accounts.after(rule, analyst, events)  # which never change: nobody waits for the adding up

    def rho_left(self, analyst: str | None = None) -> Fraction | None:
        """The rho that asks may still share, as this process last knew it; None where there is no rho."""
        rule, accounts = self._writer.state.filter, self._history.mark.accounts
        left = shares.left_of(rule, accounts.whole) if analyst is None else accounts.left(rule, analyst)
        return shares.rho(rule, left)

    def proved(self, analyst: str | None = None) -> Loss:
        """The loss that is proved of all answers, or of one analyst's, as this process last knew it."""
        rule, accounts = self._writer.state.filter, self._history.mark.accounts
        own = accounts.whole if analyst is None else accounts.spent.get(analyst, shares.NOTHING)
        return shares.proved(rule, own)

    @property
    def split(self) -> Split | None:
        """How an EpsilonDelta budget is divided, as this process last knew it."""
        return self._writer.state.filter.split

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
        return history.unit_of(self._writer.state)

    @property
    def synthetic(self) -> bool:
        """Whether the data is declared not to be private."""
        return self._genesis.synthetic

    @property
    def hash_key(self) -> bytes:
        """The key of the hash that picks a heavy person's kept rows (SR2)."""
        return self._founding.hash_key

    def guard(self) -> None:
        """Refuse a forked child of the process that opened it; a closed ledger; one whose file failed (T48, T67)."""
        self._writer.guard()

    @property
    def usable(self) -> bool:
        """Whether it takes debits: not once its file failed, until it is opened again (T48)."""
        try:
            self.guard()
        except SulqError:
            return False
        return True

    @property
    def durable(self) -> bool:
        """Whether it outlives the process."""
        return self.path is not None

    @property
    def _history(self) -> History:
        return history.of(self._writer.state)

    def _unwritten(self) -> dict[int, str]:
        """The answers that are not in the file yet."""
        with self._mutex:
            found = self._history
            self._waiting = {seq: body for seq, body in self._waiting.items() if found.answer_of(seq) is None}
            return dict(self._waiting)


def _standing(state: State, analyst: str | None) -> tuple[Budget, Loss, Loss]:
    rule, accounts = state.filter, history.of(state).mark.accounts
    if analyst is None:
        return rule.budget, shares.spent_of(rule, accounts.whole), shares.remaining(rule, accounts.whole)
    own = accounts.standing(rule, analyst)
    return rule.budget, own.spent, own.remaining
