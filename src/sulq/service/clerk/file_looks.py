"""What the clerk has looked up in files that it may not read: each time by a process that ends with the answer."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, cast

from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import covers_at, covers_in, covers_near, sources_of
from sulq.curator.ledger.registry import note_look
from sulq.curator.ledger.sources import LedgerCover, Source, covering, shown
from sulq.errors import SetupError
from sulq.service import ipc
from sulq.service.clerk.registration import identities
from sulq.service.ipc import Frame
from sulq.service.settings import DatasetSettings, covered_of

MAX_LOOK_SECONDS: Final = 70.0  # seconds for a look at a file's columns
MAX_CHECK_SECONDS: Final = 110.0  # seconds for counting how declarations fit; the web waits a little longer


class FileLooks:
    """Looks under way, each by its number; the supervisor starts the processes and passes on what they say.

    Privacy: what a check counts is exact. It is handed to the one call that waits for it, and kept nowhere.
    """

    def __init__(self, say: Callable[[Frame], None]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._last = 0
        self._waiting: dict[int, queue.SimpleQueue[Frame]] = {}

    def take(self, frame: Frame, seconds: float) -> Frame:
        """Have one process look, and wait for what it says."""
        replies: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        with self._lock:
            self._last += 1
            number = self._last
            self._waiting[number] = replies
        self._say({**frame, "number": number})
        try:
            return ipc.opened(replies.get(timeout=seconds))
        except queue.Empty:
            raise SetupError("unreadable-data", "The file could not be looked at.") from None
        finally:
            self._waiting.pop(number, None)

    def heard(self, frame: Frame) -> None:
        """Pass on what a process said, if somebody waits for it still."""
        waiting = self._waiting.get(cast("int", frame["looked"]))
        if waiting is not None:
            waiting.put(cast("Frame", frame["reply"]))


def noted_look(declared: DatasetSettings) -> None:
    """Note beside its ledger that the owner of a dataset looks at exact counts over its rows (SR28).

    Privacy: over HTTP only rows that no ledger covers yet are counted. Of others an owner's token, which may be stolen,
    gives answers through noise alone; who has the host has the rows.
    """
    if "://" in declared.ledger:
        why = "The note that you looked is left beside a ledger's file; this ledger lies in a database."
        raise SetupError("not-available", why, "Count by the database's own means, and tell your analysts.")
    if Path(declared.ledger).exists():
        raise _covered("A ledger covers these rows already")
    sizes = {table.facts.schema.table: table.size for table in declared.tables}
    note_look(Path(declared.ledger), [table.facts for table in declared.tables], declared.unit, sizes)


def known_books(
    declared: Iterable[DatasetSettings], ledgers: Mapping[str, Ledger | None], noted: Collection[str]
) -> list[LedgerCover]:
    """What every ledger of the server covers.

    Args:
        declared: the datasets it has.
        ledgers: those that are open, by where they lie.
        noted: where those lie that rows were ever registered under.

    Raises:
        SetupError: `covered-source`: one is away, and nobody can say what it covers. Or one cannot be read.
    """
    books: list[LedgerCover] = []
    for place in sorted({item.ledger for item in declared} | {*noted}):
        held = ledgers.get(place)
        found = [held.known_book] if held is not None else [] if "://" in place else covers_at([Path(place)])
        if not found:
            name = shown(place if "://" in place else Path(place))
            raise _covered(f"The ledger {name} of this server is not open, and it may cover these rows")
        books += found
    return books


def refuse_known(
    declared: DatasetSettings, others: Iterable[DatasetSettings], books: list[LedgerCover], ledgers: Path | None
) -> None:
    """Refuse to count files of any table, public ones too, that are a dataset's private rows, or may be.

    Files of one size may be copies, which the clerk may not read; their bytes are compared by `refuse_copies` too, as
    the file that was copied may be away.

    Args:
        declared: what is to be counted.
        others: the datasets that the server has.
        books: what its ledgers cover.
        ledgers: its folder of ledgers.

    Raises:
        SetupError: `covered-source`, or a ledger near the files cannot be read.
    """
    private = [table for other in others for table in other.tables if not table.facts.public]
    taken = {each for table in private for each in identities(table)}
    sizes = {size for table in private for size in _sizes(table.files)}
    for table in declared.tables:
        if not taken.isdisjoint(identities(table)):
            raise _covered("A dataset of this server has these rows already")
        if not sizes.isdisjoint(_sizes(table.files)):
            raise _covered("A file of these is as long as a file of a dataset of this server, and may be a copy of it")
    files = [file for table in declared.tables for file in table.files]
    sources = [source.unread() for source in _sources(declared)]
    near = covers_near([file for file in files if file.exists()], sources)
    refuse_copies(sources, [*books, *near, *(covers_in([ledgers]) if ledgers is not None else [])])


def refuse_copies(sources: Iterable[Source], books: list[LedgerCover]) -> None:
    """Refuse what a ledger covers, or may: by its path, its place on disk or, where these were read, by its bytes.

    Raises:
        SetupError: `covered-source`.
    """
    for source in sources:
        if covering(source, books):
            raise _covered("A ledger covers these rows already, or may")


def _sources(declared: DatasetSettings) -> list[Source]:
    """The files of all tables, and the folders and patterns that name them."""
    named = [item for table in declared.tables for item in (*table.files, *covered_of(table.data))]
    return sources_of([(item, "") for item in dict.fromkeys(named) if not isinstance(item, Path) or item.exists()])


def _sizes(files: Iterable[Path]) -> set[int]:
    return {file.stat().st_size for file in files if file.exists()}


def _covered(why: str) -> SetupError:
    told = f"{why}: over HTTP rows are counted before they are registered, and not after."
    return SetupError("covered-source", told, "Run `sulq check` where the data is.")
