"""Reading a ledger's entries some at a time, on a connection of its own: whoever writes meanwhile waits for none of it.

A ledger only grows, so the entries up to any place are what they were, however many are written after them. SQLite lets
nobody commit while somebody reads: between two pieces the file is let go.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.entries import State
from sulq.kernel.ledger.store import END, Store, damaged

PIECE: Final = 50  # entries between two pauses

# A fork waits until nobody reads, as it waits for writers (kernel.ledger.writer): a child that copied a lock which a
# reader held within SQLite could never open a ledger of its own.
_reading = threading.RLock()
os.register_at_fork(before=_reading.acquire, after_in_parent=_reading.release, after_in_child=_reading.release)


@contextmanager
def unforked() -> Iterator[None]:
    """Be inside a store of one's own, which no fork copies meanwhile."""
    with _reading:
        yield


def pieces(store: Store, after: int, last: int) -> Iterator[list[Row]]:
    """The entries after a place and up to another, some at a time; between two the file is let go."""
    while after < last:
        with unforked():
            piece = [*store.rows(after, min(after + PIECE, last))]
        if not piece:
            return
        yield piece
        after = piece[-1].seq


def read_on(store: Store, state: State, last: int = END) -> None:
    """Follow all entries up to a place, or up to the one that is the last as this begins.

    Raises:
        SetupError: `ledger-damaged`.
    """
    with unforked():
        head = _head(store)
    end = 0 if head is None else min(head[0], last)
    for piece in pieces(store, state.seq, end):
        for row in piece:
            state.follow(row)
    if state.seq == 0 or state.seq < end or (end < last and head != (state.seq, state.hash)):
        raise damaged("the end", "is missing, or was not written by sulq")


def _head(store: Store) -> tuple[int, bytes] | None:
    """The place and hash of the last entry, if the head names the one that is there: looked up in one statement."""
    match store.ask("SELECT seq, hash, (SELECT max(seq) FROM {0}.entries) FROM {0}.head"):
        case [(int() as seq, bytes() as digest, int() as last)] if last == seq:
            return seq, digest
    return None
