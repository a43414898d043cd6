"""What a store and the system say, in our own errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import apsw

from sulq.errors import CuratorError, SetupError
from sulq.kernel.ledger.store import Busy, Doubt, damaged


@contextlib.contextmanager
def opening() -> Iterator[None]:
    """Turn what is said while a ledger is opened or read into our own errors."""
    try:
        with writing():
            yield
    except (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError) as error:
        raise SetupError("missing-file", "The ledger's file cannot be opened.") from error
    except (apsw.IOError, apsw.FullError, apsw.NoMemError) as error:
        raise SetupError("ledger-failed", "The ledger's file cannot be read or written.") from error
    except OSError as error:
        raise SetupError("missing-file", f"The ledger's file cannot be reached: {error.strerror}.") from error
    except (apsw.Error, ValueError) as error:
        raise damaged("the file", "is not a ledger's") from error


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Turn what is said while entries are written into our own errors; a failed file's is the writer's own."""
    try:
        yield
    except (Busy, apsw.BusyError) as error:  # nothing was written
        why = str(error) if isinstance(error, Busy) else "Another process has held the ledger for too long."
        raise SetupError("ledger-busy", why, "Nothing was spent; try again.") from error
    except Doubt as error:
        unknown = "PostgreSQL could not be asked whether the debit was written; if it was, it stays charged."
        raise CuratorError("ledger-failed", unknown, "Ask again once it runs.") from error
