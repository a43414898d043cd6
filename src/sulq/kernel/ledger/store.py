"""What keeps a ledger's entries: a file of SQLite's, or a schema of PostgreSQL's that several servers share.

    begin, head, rows, append, commit    one transaction, seen whole or not at all
    reading, head, rows, rollback        one state of the entries, however many others write

A store holds rows and a head and knows nothing of budgets. The writer proposes on top of the head it has read; a store
that cannot keep others out meanwhile compares the head again as it commits, and says `Behind`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Final

from sulq.errors import SetupError
from sulq.kernel.ledger.chain import Row

MAX_CHECKED_ENTRIES: Final = 64  # entries that one append looks for, beside the last one
PIECE: Final = 2000  # entries fetched at a time
END: Final = 2**63 - 1


class Busy(Exception):
    """Held by another for too long, or out of reach; nothing was written."""


class Behind(Exception):
    """Another server's entries came first; nothing was written."""


class Doubt(Exception):
    """Nobody could be asked whether it was written; if it is, the chain will say so."""


class Store(ABC):
    """One connection to a ledger's entries; not safe to share between threads without a lock.

    Privacy: each append first makes sure that the tables are as they were made, that the last entry is the one the
    head names, and that no entry is gone from the next `MAX_CHECKED_ENTRIES` in turn. A ledger that was truncated or
    changed under a live process takes no further debit.
    """

    wait: float  # seconds to wait for others
    _checked = 0  # the entry after which the next append looks; 0 once the last look reached the end

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction."""

    @abstractmethod
    def append(self, rows: Sequence[Row]) -> None:
        """Add one entry or more and move the head, inside a transaction."""

    @abstractmethod
    def commit(self) -> None:
        """Make the transaction durable; returns only when it is. Raises `Behind`, or `Doubt` if that is not known."""

    @abstractmethod
    def reading(self) -> None:
        """Begin to read one state of the entries."""

    @abstractmethod
    def rollback(self) -> None:
        """Leave everything as it was; also the end of a reading."""

    @abstractmethod
    def sound(self, *, whole: bool = True) -> bool:
        """Whether the store holds our tables and nothing else; of the `whole` file also whether its pages are sound."""

    @abstractmethod
    def ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Look something up; {0} is the schema of the ledger's tables."""

    @abstractmethod
    def close(self) -> None:
        """Let it go."""

    def head(self) -> tuple[int, bytes] | None:
        """The place and hash of the last entry, as its transaction wrote them."""
        match self.ask("SELECT seq, hash FROM {0}.head"):
            case [(int() as seq, bytes() as digest)]:
                return seq, digest
        return None

    def rows(self, after: int = 0, last: int = END) -> Iterator[Row]:
        """The entries after a place and up to another, in order."""
        many = PIECE
        while many == PIECE:
            piece = f"seq > {after} AND seq <= {last} ORDER BY seq LIMIT {PIECE}"
            found = self.ask(f"SELECT seq, body, hash FROM {{0}}.entries WHERE {piece}")  # noqa: S608 - whole numbers
            many = len(found)
            for row in found:
                yield Row(*row)
                after = row[0]

    def row(self, seq: int) -> Row | None:
        """One entry."""
        return next(self.rows(seq - 1, seq), None)

    def _window(self, seq: int) -> tuple[int, int]:
        """The entries that the next append looks for: after the first place, up to the second."""
        start, end = self._checked, min(self._checked + MAX_CHECKED_ENTRIES, seq)
        self._checked = end if end < seq else 0
        return start, end


def damaged(where: str, why: str) -> SetupError:
    """An error for what cannot be what was written."""
    return SetupError("ledger-damaged", f"The ledger does not verify: {where} {why}.")
