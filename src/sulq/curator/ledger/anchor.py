"""The anchor: the head and the totals noted on another volume, so that an old ledger cannot pass for the new (T46).

A copy of a ledger is whole in itself; only something outside it can tell that it
is old. The anchor is written and synced after each commit and before the debit
is acknowledged. So a ledger may be ahead of its anchor, by debits nobody was
told of, and never behind. One process after another may write it: each first
makes sure that what it replaces is part of its own history.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Final

from sulq.answers import wire
from sulq.curator.ledger import history, notes
from sulq.curator.ledger.history import Mark, pending
from sulq.curator.ledger.notes import Signer, compare, signed
from sulq.curator.ledger.shares import NOTHING
from sulq.curator.ledger.turns import sync_directory
from sulq.curator.ledger.view import LedgerView
from sulq.errors import CuratorError, SetupError, SulqError
from sulq.kernel.entropy import random_bytes
from sulq.kernel.ledger import entries
from sulq.kernel.ledger.chain import canonical
from sulq.kernel.ledger.entries import Draft, State
from sulq.kernel.ledger.filter import Totals
from sulq.kernel.ledger.store import Store, damaged
from sulq.language.privacy import Budget, Unit

OPEN_WITH: Final = "Open it with its anchor=; if that is lost: `sulq ledger reconcile LEDGER --anchor NEW --lost`."
FORMAT: Final = 1
DOMAIN: Final = b"sulq anchor 1\0"  # what is signed as an anchor is good for nothing else


@dataclass(frozen=True, slots=True)
class Noted:
    """What an anchor says: up to which entry a ledger was once durable, and what it had spent."""

    space: str
    name: str  # of the anchor, drawn at random: a ledger knows which one is its own
    seq: int
    hash: str
    whole: Totals
    analysts: dict[str, Totals] = field(default_factory=dict)

    def text(self, signer: Signer) -> str:
        """The anchor's file."""
        body = self._body()
        return canonical(body | {"signature": signer.sign(DOMAIN + canonical(body).encode())})

    def _body(self) -> dict[str, object]:
        analysts = {analyst: notes.tree_of(totals) for analyst, totals in self.analysts.items()}
        return {
            "kind": "anchor",
            "format": FORMAT,
            "space": self.space,
            "name": self.name,
            "seq": self.seq,
            "hash": self.hash,
            "whole": notes.tree_of(self.whole),
            "analysts": analysts,
        }

    @classmethod
    def read(cls, text: bytes, public: str) -> Noted:
        """Read an anchor's file, if it is whole and signed by this ledger's key."""
        try:
            body = wire.strict(text)
            if not isinstance(body, dict) or body.pop("kind", None) != "anchor" or body.pop("format", None) != FORMAT:
                raise damaged("the anchor", "is not one")
            analysts = body.get("analysts")
            if not isinstance(analysts, dict):
                raise damaged("the anchor", "is not whole")
            noted = cls(
                notes.text(body, "space"),
                notes.text(body, "name"),
                notes.whole(body, "seq"),
                notes.text(body, "hash"),
                entries.read_totals(body.get("whole")),
                {analyst: entries.read_totals(totals) for analyst, totals in analysts.items()},
            )
            signature = notes.text(body, "signature")
        except SulqError as error:
            raise SetupError("bad-anchor", "The ledger's anchor is damaged.") from error
        written = canonical(noted._body() | {"signature": signature}).encode() == text
        if not written or not signed(DOMAIN + canonical(noted._body()).encode(), signature, public):
            raise SetupError("bad-anchor", "The anchor was not signed by this ledger, or was changed since.")
        return noted


class Anchor:
    """One anchor's file, as one opening of its ledger writes it; threads whose debits were committed share a write."""

    def __init__(self, path: Path, space: str, signer: Signer, failpoint: Callable[[str], None]) -> None:
        self.path = path
        self._space = space
        self._signer = signer
        self._failpoint = failpoint
        self._mutex = threading.Lock()
        self._last: Noted | None = None  # as it stood when this opening last saw it
        self._text = b""  # likewise, its bytes, where this opening wrote it
        self._dead = False

    def read(self) -> Noted | None:
        """What the anchor says now; None where there is no such file.

        Raises:
            SetupError: `bad-anchor`: it cannot be read, is damaged, or was not signed by this ledger.
        """
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SetupError("bad-anchor", f"The ledger's anchor cannot be read: {error.strerror}.") from error
        return Noted.read(text, self._signer.public)

    def begin(self, mark: Mark) -> Noted:
        """Write a new anchor where there is none, under a name of its own; another process may have been first."""
        with self._opening(), self._alone():
            found = self.read()
            if found is None:
                found = self._note(mark, random_bytes(16).hex())
                self._write(found)
            return found

    def settle(self, noted: Noted) -> None:
        """Go on from what the anchor says, which the ledger contains."""
        self._last = noted

    @property
    def noted(self) -> Noted | None:
        """What this opening last knew it to say; the file is not read."""
        return self._last

    @property
    def failed(self) -> bool:
        """Whether a write failed, after which nobody knows what it says."""
        return self._dead

    def guard(self, name: str | None) -> None:
        """Refuse to go on after a failed write, or with an anchor that is not the ledger's own."""
        if self._dead:
            raise _failed()
        if self._last is None or name != self._last.name:
            raise SetupError("bad-anchor", "Meanwhile the ledger was given another anchor.")

    def advance(self, seq: int, latest: Callable[[], Mark], contains: Callable[[int, str], bool]) -> None:
        """Note the ledger's latest moment, if the anchor is not as far as this entry yet; durable on return.

        Raises:
            CuratorError: `ledger-failed`; it could not be written, and the debit must not be acknowledged.
            SetupError: `ledger-rolled-back`; it was written by another copy of this ledger.
        """
        with self._mutex:
            last = self._last
            if last is None or self._dead:
                raise _failed()
            if last.seq >= seq:
                return
            try:
                self._advance(last, latest, contains)
            except BaseException as error:
                self._dead = True  # whatever it was, nobody knows what the other volume holds now
                if isinstance(error, OSError):
                    raise _failed() from error
                raise

    def _advance(self, last: Noted, latest: Callable[[], Mark], contains: Callable[[int, str], bool]) -> None:
        with self._alone():
            found = last if self.path.read_bytes() == self._text else self.read()
            if found is None:
                raise FileNotFoundError("the anchor is gone")
            if found != last and not (found.name == last.name and contains(found.seq, found.hash)):
                raise SetupError("ledger-rolled-back", "Another copy of this ledger has written the anchor.")
            noted = self._note(latest(), last.name)
            if found.seq < noted.seq:
                self._write(noted)
            self._last = max(found, noted, key=lambda each: each.seq)

    def _note(self, mark: Mark, name: str) -> Noted:
        return Noted(self._space, name, mark.seq, mark.hash.hex(), mark.accounts.whole, dict(mark.accounts.spent))

    def replace(self, mark: Mark, name: str) -> None:
        """Write the anchor anew after its gap was burnt."""
        with self._opening(), self._alone():
            self._write(self._note(mark, name))

    def _write(self, noted: Noted) -> None:
        """Replace the file in one step: synced under another name, renamed, and the directory synced too."""
        draft = self.path.with_name(f".{self.path.name}.{random_bytes(8).hex()}.new")
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            try:
                self._text = noted.text(self._signer).encode()
                _all(handle, self._text)
                os.fsync(handle)
            finally:
                os.close(handle)
            self._failpoint("anchor-written")
            draft.replace(self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
        self._failpoint("anchor-renamed")
        sync_directory(self.path.parent)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time: an anchor never goes back."""
        lock = os.open(self.path.with_name(f".{self.path.name}.lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # a child that was forked meanwhile holds the file open, not the lock
            os.close(lock)

    @contextlib.contextmanager
    def _opening(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SetupError("bad-anchor", f"The ledger's anchor cannot be written: {error.strerror}.") from error


def _failed() -> CuratorError:
    return CuratorError("ledger-failed", "The ledger's anchor could not be written; the debit stands, unanswered.")


def _all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def short_of(own: Totals, other: Totals) -> Totals:
    """What totals lack of others in each part: with it added, they are nowhere less."""
    return Totals(
        max(other.epsilon - own.epsilon, 0),
        other.pure or not own.pure,
        max(other.rho - own.rho, 0),
        max(other.blended - own.blended, 0),
        max(other.key_delta - own.key_delta, 0),
        max(other.queries - own.queries, 0),
        max(other.events - own.events, 0),
        max(other.delta - own.delta, 0),
    )


class AnchoredLedger(LedgerView):
    """A ledger whose debits are noted outside it before anyone is told of them, if it has an anchor (T46)."""

    _anchor: Anchor | None
    _clock: Callable[[], float]
    _failpoint: Callable[[str], None]

    def agrees(
        self,
        *,
        unit: Unit,
        budget: Budget,
        synthetic: bool,
        basic_share: Fraction | None = None,
        key_share: Fraction | None = None,
        anchor: Path | str | None = None,
    ) -> None:
        """Refuse a further dataset of this person space whose owner declares it otherwise than the ledger says (T56).

        Raises:
            SetupError: `unit-mismatch`, `budget-mismatch`, `synthetic-mismatch`, `bad-anchor`; nothing was written.
        """
        with self._writer.looking() as (state, _):
            said = {"basic": basic_share, "keys": key_share}
            choice = history.of(state).choice
            compare(state, self._founding, unit=unit, budget=budget, synthetic=synthetic, choice=choice, **said)
        told = None if anchor is None else Path(anchor).resolve()
        if told != (None if self._anchor is None else self._anchor.path):
            raise SetupError(
                "bad-anchor",
                "The ledger is open with another anchor than is named here, or with none.",
                "Name the same anchor for every dataset of the ledger.",
            )

    def _attach(self, anchor: Anchor) -> None:
        """Go on with an anchor, if this ledger is not behind it; begin one where neither knows of any."""
        noted = anchor.read()
        with self._writer.looking() as (state, store):
            anchored = history.of(state).anchor
            if noted is None and anchored is not None:
                raise SetupError("bad-anchor", f"The ledger's anchor is not at {anchor.path}.")
            if noted is not None:
                check_not_behind(noted, state, store)
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
        return moment(self._clock)


def check_not_behind(noted: Noted, state: State, store: Store) -> None:
    """Refuse a ledger that does not contain what an anchor noted, or says less (`ledger-rolled-back`)."""
    if noted.space != history.of(state).founding.space:
        raise SetupError("ledger-rolled-back", "The anchor remembers another person space than this ledger's.")
    if (noted.seq < history.of(state).begun_at and noted.hash not in history.of(state).settled) or _less(noted, state):
        raise SetupError("ledger-rolled-back", "The ledger says less than its anchor noted, or was not checked by it.")
    row = store.row(noted.seq)
    if (row is None or row.hash.hex() != noted.hash) and noted.hash not in history.of(state).settled:
        what = "is older than its anchor" if noted.seq > state.seq else "is not the history its anchor noted"
        raise SetupError("ledger-rolled-back", f"The ledger {what}: entry {noted.seq} is missing or another.")


def _less(noted: Noted, state: State) -> bool:
    """Whether a ledger says less, of all or of one analyst, than its anchor noted."""
    own = history.of(state).accounts
    parts = [(own.whole, noted.whole), *((own.spent.get(name, NOTHING), all_) for name, all_ in noted.analysts.items())]
    return any(short_of(mine, told) != NOTHING for mine, told in parts)


def noted_place(path: Path) -> int:
    """The entry that an anchor's file names, before anyone knew that its ledger signed it; 0 where it names none."""
    try:
        seq = json.loads(path.read_bytes())["seq"]
    except (OSError, ValueError, LookupError, TypeError):
        return 0
    return seq if type(seq) is int and seq > 0 else 0


def moment(clock: Callable[[], float]) -> str:
    """The time of an entry, to the millisecond; written down and never acted upon (T50)."""
    return datetime.fromtimestamp(clock(), UTC).isoformat(timespec="milliseconds")
