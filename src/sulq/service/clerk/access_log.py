"""The access log: every administrative act and every ask, in one file to which entries are only added.

It is kept as a ledger is: a SQLite file of the kernel's, each entry chained by a hash to all before it. An
administrative act is written down before it is done, and what came of it before it is answered; if it cannot be
written down it is refused (`access-failed`). Asks are written some at a time, within a second: what was charged, the
ledger says. Asks that could not be written while the file was out of reach are counted, and the count is an entry.

It holds names, addresses, datasets, prices and codes: no token and no hash of one, no word of a question, nothing of
a row. `entry` of an ask is its debit's place in the ledger.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast

import apsw

from sulq.curator.ledger.opening import look
from sulq.curator.ledger.turns import SqliteFile
from sulq.errors import SetupError, SulqError
from sulq.kernel.ledger.chain import ORIGIN, Row, canonical, link
from sulq.kernel.ledger.store import END, Busy, Store, damaged

FLUSH_SECONDS: Final = 1.0  # for which what may wait is gathered
LOCK_SECONDS: Final = 5.0  # for another process that writes
MAX_WAITING_ENTRIES: Final = 10_000  # further ones are counted
MAX_STRANGERS_WAITING: Final = 10  # attempts of nobody who is known, of those that wait
ENDS: Final = (
    "SELECT (SELECT seq FROM {0}.head), (SELECT hash FROM {0}.head), (SELECT max(seq) FROM {0}.entries)"  # one state
)
Body = dict[str, object]

_log = logging.getLogger(__name__)


class AccessEntry(NamedTuple):
    """An entry as it is read."""

    seq: int
    body: Body

    def told(self) -> Body:
        """As JSON."""
        return {"seq": self.seq, **self.body}


class AccessLog:
    """The log of one state folder; may be shared between threads, and several processes may add to it."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time, vfs: str = "") -> None:
        self.path = path
        self._clock = clock
        self._vfs = vfs
        self._file: SqliteFile | None = None
        self._known: tuple[int, bytes] | None = None  # the last entry that was seen
        self._io = threading.Lock()  # held by whoever is inside the file
        self._change = threading.Condition()
        self._waiting: deque[tuple[str, bool]] = deque()  # with whether nobody known tried it
        self._strangers = 0  # of those that wait
        self._lost = 0
        self._writer: threading.Thread | None = None
        self._closed = False

    def write(self, what: str, **told: object) -> int:
        """Add an entry, after all that wait; it is durable when this returns.

        Raises:
            SetupError: `access-failed` if it could not be written.
        """
        return self._flush(self._body(what, told))

    @contextlib.contextmanager
    def act(self, what: str, **told: object) -> Iterator[None]:
        """An administrative act: written down before it is done, and again with what came of it before it is answered.

        Raises:
            SetupError: `access-failed` if it could not be written down; nothing was done then.
        """
        begun = self.write(what, **told, outcome="begun")
        outcome = "interrupted"
        try:
            yield
            outcome = "ok"
        except SulqError as error:
            outcome = error.code
            raise
        except Exception:
            outcome = "engine-failed"
            raise
        finally:
            own = {**told, "of": begun, "outcome": outcome}
            try:
                self.write(what, **own)
            except SetupError:  # it is done, and its beginning stands
                self.later(what, **own)

    def later(self, what: str, **told: object) -> None:
        """Add an entry within a second, with others; whoever calls does not wait for the file."""
        body, stranger = self._body(what, told), told.get("who") is None
        with self._change:
            if len(self._waiting) >= MAX_WAITING_ENTRIES or (stranger and self._strangers >= MAX_STRANGERS_WAITING):
                self._lost += 1
                return
            self._strangers += stranger
            self._waiting.append((body, stranger))
            if self._writer is None and not self._closed:
                self._writer = threading.Thread(target=self._keep_writing, name="sulq access log", daemon=True)
                self._writer.start()
            self._change.notify()

    def flush(self) -> None:
        """Write what waits.

        Raises:
            SetupError: `access-failed`; it goes on waiting.
        """
        self._flush()

    def page(self, after: int, limit: int) -> tuple[list[AccessEntry], int]:
        """Entries after a place, the oldest first, and the place of the last one there is."""
        with contextlib.suppress(SetupError):
            self._flush()
        if not self.path.is_file():
            return [], 0
        with reading(self.path) as store:
            last = (store.head() or (0, ORIGIN))[0]  # first: others go on writing
            return [_entry(row) for row in store.rows(after, min(after + limit, last))], last

    def close(self) -> None:
        """Write what waits, and let go of the file."""
        with self._change:
            self._closed = True
            writer = self._writer
            self._change.notify()
        if writer is not None:
            writer.join()
        try:
            self._flush()
        except SetupError:
            _log.error(
                "the access log ended with entries that could not be written", extra={"count": len(self._waiting)}
            )
        with self._io:
            self._drop()

    def _body(self, what: str, told: Mapping[str, object]) -> str:
        return canonical({"what": what, "when": int(self._clock()), **told})

    def _keep_writing(self) -> None:
        failing = False
        while True:
            with self._change:
                self._change.wait_for(lambda: self._closed or self._waiting)
                self._change.wait_for(lambda: self._closed, timeout=FLUSH_SECONDS)
                if self._closed:
                    return
            try:
                self._flush()
                failing = False
            except SetupError as error:
                if not failing:
                    _log.error("the access log cannot be written", extra={"code": error.code})
                failing = True
            except Exception as error:  # noqa: BLE001 - whatever it was, what waits is tried again, and is bounded
                _log.error("the access log cannot be written", extra={"error": type(error).__name__})

    def _flush(self, *more: str) -> int:
        """Write what waits and then `more`, in one transaction; the place of the last entry."""
        with self._io:
            with self._change:
                waiting, lost = list(self._waiting), self._lost
            gap = [self._body("gap", {"lost": lost})] if lost else []
            bodies = [*(body for body, _ in waiting), *gap, *more]
            if bodies:
                with _own_errors(self.path):
                    self._append(bodies)
            with self._change:
                for _, stranger in waiting:
                    self._waiting.popleft()
                    self._strangers -= stranger
                self._lost -= lost
            return 0 if self._known is None else self._known[0]

    def _append(self, bodies: Sequence[str]) -> None:
        try:
            store = self._opened()
            store.begin()
            seq, digest = self._seen(store)
            rows = []
            for body in bodies:
                digest = link(digest, seq + 1, body)
                rows.append(Row(seq + 1, body, digest))
                seq += 1
            store.append(rows)
            store.commit()
            self._known = seq, digest
        except BaseException:
            self._drop()  # what was not committed is rolled back as the file is opened again
            raise

    def _seen(self, store: Store) -> tuple[int, bytes]:
        """The last entry, once what others added since the last look is followed."""
        head = store.head()
        if head is None:
            raise damaged("the head", "is gone")
        if self._known is not None:
            if head[0] < self._known[0]:
                raise damaged("the head", "went back behind what was read from it before")
            if follow(store, *self._known) != head:
                raise _cut_off()
        return head

    def _opened(self) -> SqliteFile:
        if not self.path.exists():
            if self._known is not None:
                raise SetupError("access-failed", f"The access log {self.path} is gone.")
            with contextlib.suppress(FileExistsError):  # another process was first
                SqliteFile.create(self.path, ())
        if self.path.stat().st_mode & 0o077:
            raise SetupError("access-failed", f"{self.path} can be reached by others.", "Give it the mode 0600.")
        if self._file is None:
            self._file = SqliteFile(str(self.path), wait=LOCK_SECONDS, vfs=self._vfs)
        return self._file

    def _drop(self) -> None:
        if self._file is not None:
            with contextlib.suppress(apsw.Error):
                self._file.close()
        self._file = None


def verify(path: Path) -> tuple[int, str]:
    """Check a log from outside, structure, chain and head; how many entries it has, and the hash of the last.

    Raises:
        SetupError: `access-damaged` if anything is not as it was written.
    """
    with reading(path) as store:
        head, last = _ends(store)
        if head is None or follow(store, 0, ORIGIN, last) != head:
            raise _cut_off()
        if not store.sound():
            raise damaged("the file", "is not whole, or holds more or less than a log")
        return head[0], head[1].hex()


def entries(path: Path) -> Iterator[AccessEntry]:
    """The entries there are now, the oldest first, each checked to follow the one before, up to the head."""
    with reading(path) as store:
        head, last = _ends(store)
        seq, digest = 0, ORIGIN
        for row in store.rows(0, last):
            seq, digest = _next(seq, digest, row)
            yield _entry(row)
        if (seq, digest) != head:
            raise _cut_off()


def hash_at(path: Path, seq: int) -> str | None:
    """The hash of one entry; None if there is none at that place."""
    with reading(path) as store:
        row = store.row(seq)
        return None if row is None else row.hash.hex()


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Store]:
    """A log that is there, to read it.

    No lock is held from one look to the next, so nobody who reads keeps others from writing: the log only grows, and
    what stood at the first look is followed.
    """
    if not path.is_file():
        raise SetupError("missing-file", f"There is no access log at {path}.", "`sulq serve` begins it.")
    with _own_errors(path):
        store = look(path, LOCK_SECONDS)
        try:
            yield store
        finally:
            store.close()


def follow(store: Store, seq: int, digest: bytes, last: int = END) -> tuple[int, bytes]:
    """Check all entries after one, up to another; the last of them, and its hash."""
    for row in store.rows(seq, last):
        seq, digest = _next(seq, digest, row)
    return seq, digest


def _ends(store: Store) -> tuple[tuple[int, bytes] | None, int]:
    """The head, and the place of the last entry, which is the head's: both in one look, as others write meanwhile."""
    ((seq, digest, last),) = store.ask(ENDS)
    return None if seq is None else (seq, digest), last or 0


def _cut_off() -> SetupError:
    return damaged("the end", "is missing, or was not written by sulq")


def _next(seq: int, digest: bytes, row: Row) -> tuple[int, bytes]:
    if row.seq != seq + 1:
        raise damaged(f"entry {seq + 1}", f"is missing before entry {row.seq}")
    if link(digest, row.seq, row.body) != row.hash:
        raise damaged(f"entry {row.seq}", "is not what was written, or not in its place")
    return row.seq, row.hash


def _entry(row: Row) -> AccessEntry:
    return AccessEntry(row.seq, cast("Body", json.loads(row.body)))


@contextlib.contextmanager
def _own_errors(path: Path) -> Iterator[None]:
    """Say of the access log what the ledger's code says of ledgers."""
    try:
        yield
    except SulqError as error:
        if error.code != "ledger-damaged":
            raise
        why = error.message.removeprefix("The ledger does not verify: ")
        restore = "Keep the file as it is, find out who changed it, and move it away: a new one is begun."
        raise SetupError("access-damaged", f"The access log {path} does not verify: {why}", restore) from error
    except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError) as error:
        raise SetupError("access-damaged", f"The access log {path} cannot be read.") from error
    except (apsw.Error, OSError, Busy) as error:
        raise SetupError("access-failed", f"The access log {path} cannot be written.") from error
