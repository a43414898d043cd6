"""What a ledger says: transcript, receipts, standings and declarations. Nothing here writes an entry."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from sulq.answers import wire
from sulq.answers.answer import Receipt
from sulq.curator.ledger import history, shares, transcript
from sulq.curator.ledger.history import History, load
from sulq.curator.ledger.notes import Founding, Line, Registration
from sulq.curator.ledger.opening import Report, report
from sulq.curator.ledger.postgres_place import Address, PostgresPlace
from sulq.curator.ledger.shares import Standing
from sulq.curator.ledger.signature import Signer
from sulq.curator.ledger.sources import LedgerCover, kept_source
from sulq.curator.ledger.turns import SharedWriter, SqliteFile
from sulq.errors import QuestionError, SulqError
from sulq.kernel.ledger.chain import Seal
from sulq.kernel.ledger.entries import Genesis, State
from sulq.kernel.ledger.filter import Totals
from sulq.kernel.ledger.store import damaged
from sulq.language.privacy import Budget, Event, Loss, Unit
from sulq.language.statistic import Estimator


class LedgerView:
    """The reading half of a ledger: what stands in its file, and the answers that wait to be written to it."""

    path: Path | Address | None
    _store: SqliteFile | PostgresPlace
    _waiting: dict[int, str]  # answers that wait for the next transaction, by their debit
    _mutex: threading.Lock
    _writer: SharedWriter
    _genesis: Genesis
    _founding: Founding
    _signer: Signer
    _source_key: bytes
    _version: int

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
    def declared_estimators(self) -> tuple[tuple[str, Estimator], ...]:
        """The functions that rest on their owner's word, each with the table it is declared for (SR5)."""
        with self._writer.looking() as (state, _):
            found = sorted(history.of(state).registered.items())
        return tuple((name, item) for name, data in found for item in data.estimators)

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

    def rho_left(self, analyst: str | None = None) -> Fraction | None:
        """The largest rho that one ask could still spend, as this process last knew it; None where there is no rho."""
        rule, accounts = self._writer.state.filter, self._history.mark.accounts
        left = shares.left_of(rule, accounts.whole) if analyst is None else accounts.left(rule, analyst)
        return shares.rho(rule, left)

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

    @property
    def _history(self) -> History:
        return history.of(self._writer.state)

    def _unwritten(self) -> dict[int, str]:
        """The answers that are not in the file yet."""
        with self._mutex:
            charges = self._history.charges
            self._waiting = {seq: body for seq, body in self._waiting.items() if charges[seq].answer is None}
            return dict(self._waiting)


def _standing(state: State, analyst: str | None) -> tuple[Budget, Loss, Loss]:
    rule, accounts = state.filter, history.of(state).mark.accounts
    if analyst is None:
        return rule.budget, shares.spent_of(rule, accounts.whole), shares.remaining(rule, accounts.whole)
    own = accounts.standing(rule, analyst)
    return rule.budget, own.spent, own.remaining
