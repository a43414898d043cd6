"""What keeps a ledger's entries: a file of SQLite's, or a schema of PostgreSQL's that several servers share.

    begin, catch up, append, commit      one transaction, seen whole or not at all
    reading, rows, rollback              one state of the entries, however many others write

A store holds rows and a head and knows nothing of budgets. The writer proposes
on top of the head it has read; a store that cannot keep others out meanwhile
compares the head again as it commits, and says `Behind`.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Final

import apsw

from sulq.errors import SetupError
from sulq.kernel.ledger.chain import Row

MAX_CHECKED_ENTRIES: Final = 64  # entries that one append looks for, beside the last one


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
    begun = False  # whether this opening wrote the first entry
    _checked = 0  # the entry after which the next append looks; 0 once the last look reached the end

    def _window(self, seq: int) -> tuple[int, int]:
        """The entries that the next append looks for: after the first place, up to the second."""
        start = self._checked
        end = min(start + MAX_CHECKED_ENTRIES, seq)
        self._checked = end if end < seq else 0
        return start, end

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
    def remove(self) -> None:
        """Remove a ledger that holds its first entry and no other; nobody writes to it meanwhile."""

    @abstractmethod
    def close(self) -> None:
        """Let it go."""


def damaged(where: str, why: str) -> SetupError:
    """An error for what cannot be what was written."""
    return SetupError("ledger-damaged", f"The ledger does not verify: {where} {why}.")


@contextlib.contextmanager
def opening() -> Iterator[None]:
    """Turn what the store and the system say while a ledger is opened or read into our own errors."""
    try:
        yield
    except Busy as error:
        raise busy(str(error)) from error
    except apsw.BusyError as error:
        raise busy() from error
    except (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError) as error:
        raise SetupError("missing-file", "The ledger's file cannot be opened.") from error
    except (apsw.IOError, apsw.FullError, apsw.NoMemError) as error:
        raise SetupError("ledger-failed", "The ledger's file cannot be read or written.") from error
    except OSError as error:
        raise SetupError("missing-file", f"The ledger's file cannot be reached: {error.strerror}.") from error
    except (apsw.Error, ValueError) as error:
        raise damaged("the file", "is not a ledger's") from error


def busy(why: str = "Another process has held the ledger for too long.") -> SetupError:
    """The ledger could not be had in time; nothing was written."""
    return SetupError("ledger-busy", why, "Nothing was spent; try again.")
