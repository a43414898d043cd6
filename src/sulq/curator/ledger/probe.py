"""Whether a ledger could take a debit now, without one: its file or schema, its anchor, and the room beside both."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from sulq.curator.ledger import history
from sulq.curator.ledger.anchor import Noted, check_not_behind
from sulq.curator.ledger.postgres_place import PostgresPlace
from sulq.curator.ledger.registrations import RegisteringLedger
from sulq.curator.ledger.sources import LedgerCover
from sulq.curator.ledger.turns import SqliteFile
from sulq.errors import SetupError
from sulq.kernel.entropy import random_bytes

BACK: Final = "Put the newest copy back in its place; it is opened again by itself."
ROOM_BYTES: Final = 2**16  # what a debit, its answer and the journal of both take at most, by far


def check_room(folder: Path) -> None:
    """Refuse where so many bytes cannot be written and synced in a folder; nothing is left of them.

    Raises:
        SetupError: `ledger-failed`.
    """
    draft = folder / f".{random_bytes(8).hex()}.room"
    try:
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            draft.unlink()
            left = ROOM_BYTES
            while left:
                left -= os.write(handle, bytes(left))
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        why = f"Nothing can be written in {folder}, where the ledger or its anchor lies: {error.strerror}."
        raise SetupError(
            "ledger-failed", why, "Make room there, or mend the disk; it is tried again by itself."
        ) from error


class ProbedLedger(RegisteringLedger):
    """A ledger that says whether it could take a debit, and what this process last knew of it."""

    _store: SqliteFile | PostgresPlace

    def probe(self) -> None:
        """Refuse where the next debit would fail, before anybody pays for finding out.

        Privacy: what it says follows from files, disks and connections alone. It writes no entry, and reads no row.

        Raises:
            SetupError: `ledger-failed`, `ledger-busy`, `ledger-damaged`, `ledger-rolled-back`, `bad-anchor`. After
                some of them it takes no debit until it is opened again (`failed`).
        """
        anchor = self._anchor
        noted = None if anchor is None else anchor.read()  # before the ledger, which is never behind it
        if anchor is not None and noted is None:
            raise SetupError("bad-anchor", f"The ledger's anchor is not at {anchor.path}.")
        try:
            with self._writer.looking() as (state, store):
                if isinstance(self._store, SqliteFile) and self._store.moved:
                    raise SetupError("ledger-rolled-back", "The ledger's file was moved, removed or replaced.", BACK)
                if noted is not None:
                    check_not_behind(noted, state, store)
                if self._store.readonly:
                    raise SetupError("ledger-failed", "The ledger cannot be written.", "Check its permissions.")
        except SetupError as error:
            if error.code == "ledger-rolled-back":
                self._writer.fail(error)
            raise
        folders = {place.parent for place in (self.path, anchor and anchor.path) if isinstance(place, Path)}
        for folder in sorted(folders):
            check_room(folder)

    @property
    def failed(self) -> bool:
        """Whether it takes no debit until it is opened again: its file or its anchor could not be written (T48)."""
        return not self.usable or (self._anchor is not None and self._anchor.failed)

    @property
    def anchored(self) -> bool:
        """Whether it was opened with an anchor."""
        return self._anchor is not None

    @property
    def last_known(self) -> tuple[int, str]:
        """The last entry that this process knew to be durable, by its place and hash; the file is not read."""
        state = self._writer.state
        return state.seq, state.hash.hex()

    def contains(self, seq: int, digest: str) -> bool:
        """Whether this entry stands in it."""
        return self._contains(seq, digest)

    @property
    def last_noted(self) -> Noted | None:
        """What this process last knew its anchor to say, if it has one; the file is not read."""
        return None if self._anchor is None else self._anchor.noted

    def lacks(self, noted: Noted) -> bool:
        """Whether it neither holds what an anchor once said nor was charged for it since: it was rolled back."""
        with self._writer.looking() as (state, store):
            try:
                check_not_behind(noted, state, store)
            except SetupError as error:
                if error.code != "ledger-rolled-back":
                    raise
                return True
        return False

    @property
    def known_book(self) -> LedgerCover:
        """What it covers, as this process last knew it; the file is not read, and nobody waits for it."""
        opened = self.path if isinstance(self.path, Path) else str(self.path or "")
        covers = history.of(self._writer.state).covers
        return LedgerCover(opened, self.space, self._source_key, covers, self.synthetic)
