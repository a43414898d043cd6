"""What keeps a ledger's entries: a file of SQLite's, or a schema of PostgreSQL's that several servers share.

    begin, catch up, append, commit      one transaction, seen whole or not at all
    reading, rows, rollback              one state of the entries, however many others write

A store holds rows and a head and knows nothing of budgets. The writer proposes
on top of the head it has read; a store that cannot keep others out meanwhile
compares the head again as it commits, and says `Behind`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from sulq.curator.ledger.chain import Row


class Busy(Exception):
    """Held by another for too long, or out of reach; nothing was written."""


class Behind(Exception):
    """Another server's entries came first; nothing was written."""


class Doubt(Exception):
    """Nobody could be asked whether it was written; if it is, the chain will say so."""


class Store(ABC):
    """One connection to a ledger's entries; not safe to share between threads without a lock."""

    wait: float  # seconds to wait for others

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction."""

    @abstractmethod
    def append(self, rows: Iterable[Row]) -> None:
        """Add entries and move the head, inside a transaction."""

    @abstractmethod
    def commit(self) -> None:
        """Make the transaction durable; returns only when it is.

        Raises:
            Behind: Another server was first.
            Doubt: The outcome is not known.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Leave everything as it was; also the end of a reading."""

    @abstractmethod
    def reading(self) -> None:
        """Begin to read one state of the entries."""

    @abstractmethod
    def head(self) -> tuple[int, bytes] | None:
        """The place and hash of the last entry, as its transaction wrote them."""

    @abstractmethod
    def rows(self, after: int = 0) -> Iterator[Row]:
        """The entries after a place, in order."""

    @abstractmethod
    def row(self, seq: int) -> Row | None:
        """One entry."""

    @abstractmethod
    def sound(self) -> bool:
        """Whether the structure is whole, and holds our tables and nothing else."""

    @property
    @abstractmethod
    def readonly(self) -> bool:
        """Whether entries cannot be added."""

    @abstractmethod
    def close(self) -> None:
        """Let it go."""
