"""Who may ask: names, roles, the datasets they may see, and the hashes of their tokens and of the console's sessions.

One small SQLite file (`access_file`), readable by its owner alone. A token is drawn by the
operating system with 256 bits and shown once; the file holds its SHA-256, from
which it cannot be found again, and equal looks at the index tell nothing of a
token of that length (T80). Every look-up reads the file, so that a revocation
counts from the next call on, whichever process wrote it.

A name has at most two live tokens: while one is rotated, the old one is good until the overlap ends. A name that was
revoked is never given again, and some owner always has a live token: each change is judged in its own transaction.
A session stands for the token that it was begun with, and ends with it.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self, cast, get_args

import apsw

from sulq.errors import AccessDenied, QuestionError, SetupError
from sulq.service.clerk import access_file
from sulq.service.clerk.access_file import damaged
from sulq.service.clerk.access_log import AccessLog
from sulq.service.clerk.tokens import (
    MAX_OVERLAP_SECONDS,
    MAX_TOKEN_DAYS,
    OVERLAP_SECONDS,
    PREFIX,
    SESSION_PREFIX,
    TOKEN_DAYS,
    drawn,
    hashed,
)

Role = Literal["owner", "analyst", "auditor"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
ALL: Final = "all"  # in place of names of datasets: every one there is, also later ones
MAX_SESSIONS: Final = 20  # of one name; the one that was not used for longest makes room
MAX_SESSION_SECONDS: Final = 12 * 3600
MAX_IDLE_SECONDS: Final = 2 * 3600  # of a session that is not used
NOTED_SECONDS: Final = 60  # a session's use is written down once in so many seconds
_DAY: Final = 86400
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_LIVE_OWNERS: Final = """SELECT count(DISTINCT name) FROM principals JOIN tokens USING (name)
    WHERE role = 'owner' AND revoked IS NULL AND expires > ?"""
_FIELDS: Final = "SELECT p.name, role, datasets, p.created, t.expires, revoked FROM principals p "
_BY_TOKEN: Final = _FIELDS + "JOIN tokens t ON t.name = p.name WHERE t.hash = ? AND revoked IS NULL"
_BY_SESSION: Final = (
    _FIELDS.replace(" FROM", ", s.used FROM")
    + """JOIN tokens t ON t.name = p.name JOIN sessions s ON s.token = t.hash
    WHERE s.hash = ? AND revoked IS NULL AND s.created > ? AND s.used > ?"""
)
_LIST: Final = _FIELDS.replace("t.expires", "max(t.expires)") + (
    "LEFT JOIN tokens t ON t.name = p.name GROUP BY p.name ORDER BY p.name"
)


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody with a token. `datasets`: the names it reaches; None for all there are. Times are in Unix seconds."""

    name: str
    role: Role
    datasets: tuple[str, ...] | None
    created: int
    expires: int
    revoked: int | None = None

    def sees(self, dataset: str) -> bool:
        """Whether this one may know of a dataset."""
        return self.datasets is None or dataset in self.datasets


def nearest(name: str, known: Iterable[str]) -> str:
    """What a name that is not known may have been meant for, to end a sentence with."""
    found = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.0)
    return f"; the nearest name is {found[0]!r}" if found else ""


class Access:
    """The access store; may be shared between threads."""

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time) -> None:
        self._path = Path(path)
        self._clock = clock
        self._lock = threading.Lock()
        self._db: apsw.Connection | None = None
        self._place: tuple[int, int] | None = None
        self.log = AccessLog(self._path.with_suffix(".log"), clock=clock)
        if not self._path.exists():
            access_file.create(self._path)
        with self._lock:
            self._file()

    def find(self, shown: str) -> Principal | None:
        """Whose token, or session, this is the hash of; None if nobody's, or ended.

        Raises:
            AccessDenied: it was somebody's, but the token's time has run out.
        """
        found, now = self._rows(_BY_TOKEN, shown), int(self._clock())
        if not found:
            found = self._rows(_BY_SESSION, shown, now - MAX_SESSION_SECONDS, now - MAX_IDLE_SECONDS)
            if found and cast("int", found[0][-1]) <= now - NOTED_SECONDS:
                self._note(shown, now)
        if not found:
            return None
        who = _principal(found[0])
        if who.expires <= self._clock():
            raise AccessDenied("token-expired", "This token's time has run out.")
        return who

    def add(
        self,
        name: str,
        role: str = "analyst",
        datasets: Sequence[str] | Literal["all"] = (),
        days: int = TOKEN_DAYS,
        *,
        replace: bool = False,
    ) -> str:
        """Let somebody in and give the token, this once. With `replace` the earlier tokens of the name end now.

        `datasets`: the names of those it may see, or "all"; an owner reaches every dataset.
        """
        scope = _checked(name, role, datasets, days)
        with self._changing() as change:
            known = change.db.execute("SELECT name, revoked FROM principals WHERE name = ?", (name,)).fetchall()
            if known and known[0][1] is not None:
                raise QuestionError("name-revoked", f"{name!r} was revoked, and a revoked name is never given again.")
            if known and not replace:
                raise QuestionError("name-taken", f"{name!r} has a token already.")
            if known:
                name = cast("str", known[0][0])  # the name keeps its first spelling: a share goes by it
                change.end("DELETE FROM tokens WHERE name = ?", name)
                change.db.execute("DELETE FROM principals WHERE name = ?", (name,))
            change.db.execute("INSERT INTO principals VALUES (?, ?, ?, ?, NULL)", (name, role, scope, change.now))
            return change.token(name, change.now + days * _DAY)

    def rotate(
        self, name: str, overlap: int = OVERLAP_SECONDS, days: int = TOKEN_DAYS, *, holder: str | None = None
    ) -> str:
        """Give a name a new token, this once; the one before is good for `overlap` more seconds, an older one ends.

        A `holder` of the name's latest token, by its hash, gets one that lives as long as that one would have.

        Raises:
            AccessDenied: `forbidden` where the holder's is a session, or an older token.
        """
        if isinstance(overlap, bool) or not isinstance(overlap, int) or not 0 <= overlap <= MAX_OVERLAP_SECONDS:
            raise QuestionError("bad-principal", f"An overlap is 0 to {MAX_OVERLAP_SECONDS // _DAY} days.")
        _check_days(days)
        with self._changing() as change:
            spelt = change.live_name(name)
            query = "SELECT hash, expires FROM tokens WHERE name = ? ORDER BY made DESC LIMIT 1"
            newest = change.db.execute(query, (spelt,)).fetchall()
            if holder is not None and (not newest or newest[0][0] != holder):
                raise AccessDenied("forbidden", "A token is rotated by whoever shows the latest one, or by an owner.")
            kept = cast("str", newest[0][0]) if newest and overlap else ""
            change.end("DELETE FROM tokens WHERE name = ? AND hash <> ?", spelt, kept)
            change.db.execute(
                "UPDATE tokens SET expires = min(expires, ?) WHERE name = ?", (change.now + overlap, spelt)
            )
            until = change.now + days * _DAY if holder is None else cast("int", newest[0][1])
            return change.token(spelt, until)

    @property
    def ownerless(self) -> bool:
        """Whether there never was an owner."""
        return not any(known.role == "owner" for known in self.list())

    def first(self, name: str = "owner") -> str | None:
        """The first owner's token, if there never was an owner; else None."""
        return self.add(name, "owner", replace=True) if self.ownerless else None

    def revoke(self, name: str) -> None:
        """End somebody's tokens and sessions at once; the name stays in the list, and is never given again."""
        with self._changing() as change:
            spelt = change.live_name(name)
            change.db.execute("UPDATE principals SET revoked = ? WHERE name = ?", (change.now, spelt))
            change.end_sessions(spelt)

    def begin_session(self, token_hash: str) -> str:
        """A session of the console's for the holder of a token; its id, this once.

        Raises:
            AccessDenied: `forbidden` if it is none of a token: a session begins no other.
        """
        session = drawn(SESSION_PREFIX)
        with self._changing() as change:
            found = change.db.execute("SELECT name FROM tokens WHERE hash = ?", (token_hash,)).fetchall()
            if not found:
                raise AccessDenied("forbidden", "A session is begun with a token.")
            over = (change.now - MAX_SESSION_SECONDS, change.now - MAX_IDLE_SECONDS)
            change.db.execute("DELETE FROM sessions WHERE created <= ? OR used <= ?", over)
            mine = "SELECT s.hash FROM sessions s JOIN tokens t ON s.token = t.hash WHERE t.name = ?"
            room = f"DELETE FROM sessions WHERE hash IN ({mine} ORDER BY used DESC LIMIT -1 OFFSET ?)"  # noqa: S608 - constants
            change.db.execute(room, (found[0][0], MAX_SESSIONS - 1))
            values = (hashed(session), token_hash, change.now, change.now)
            change.db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?)", values)
        return session

    def end_session(self, shown: str) -> None:
        """End one session at once; the hash of a token ends none."""
        with self._changing() as change:
            change.db.execute("DELETE FROM sessions WHERE hash = ?", (shown,))

    def end_sessions(self, name: str) -> None:
        """End all sessions of a name at once."""
        with self._changing() as change:
            change.end_sessions(name)

    def list(self) -> Sequence[Principal]:
        """Everybody who was ever let in, by name; `expires` is that of the latest token."""
        return [_principal(row) for row in self._rows(_LIST)]

    def close(self) -> None:
        """Let go of the file, and of the log once all is written."""
        self.log.close()
        with self._lock:
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, query: str, *values: object) -> Sequence[tuple[object, ...]]:
        with self._lock:
            try:
                return self._file().execute(query, cast("tuple[str, ...]", values)).fetchall()
            except apsw.Error as error:
                raise damaged(self._path) from error

    def _note(self, session: str, now: int) -> None:
        """Note that a session is used; where that cannot be written, it only ends sooner."""
        with suppress(SetupError), self._writing() as db:
            db.execute("UPDATE sessions SET used = ? WHERE hash = ?", (now, session))

    @contextmanager
    def _changing(self) -> Iterator[_Change]:
        """One change of who may come in, judged and made in one transaction: the last owner stays (T80)."""
        with self._writing() as db:
            change = _Change(db, int(self._clock()))
            before = change.owners()
            yield change
            if before and not change.owners():
                raise AccessDenied("last-owner", "This would leave the server without an owner.")

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        """One transaction that holds the file's write lock from its start."""
        with self._lock:
            db = self._file()
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            except (apsw.FullError, apsw.IOError, apsw.ReadOnlyError) as error:
                raise SetupError("access-failed", f"The access store {self._path} cannot be written.") from error
            except apsw.Error as error:
                raise damaged(self._path) from error
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    def _file(self) -> apsw.Connection:
        """The connection to the file that bears the name now; one put in its place by a restore is seen too."""
        try:
            state = self._path.stat()
        except OSError as error:
            self._drop()
            raise damaged(self._path) from error
        if state.st_mode & 0o077:
            self._drop()
            raise SetupError("access-damaged", f"{self._path} can be reached by others.", "Give it the mode 0600.")
        place = (state.st_dev, state.st_ino)
        if self._db is None or self._place != place:
            self._drop()
            self._db, self._place = access_file.opened(self._path), place
        return self._db

    def _drop(self) -> None:
        if self._db is not None:
            self._db.close(True)
        self._db = None


class _Change(NamedTuple):
    """A change under way: its transaction, and the time it is made at."""

    db: apsw.Connection
    now: int

    def owners(self) -> int:
        """How many owners have a token that is good now."""
        return cast("int", self.db.execute(_LIVE_OWNERS, (self.now,)).fetchall()[0][0])

    def live_name(self, name: str) -> str:
        """A name that was let in and not revoked, as it was first spelt."""
        query = "SELECT name FROM principals WHERE name = ? AND revoked IS NULL"
        found = self.db.execute(query, (name,)).fetchall()
        if not found:
            raise AccessDenied("not-found", "Nobody of that name has a token.", "See the list of analysts.")
        return cast("str", found[0][0])

    def token(self, name: str, expires: int) -> str:
        """A new token of a name."""
        token = drawn(PREFIX)
        self.db.execute("INSERT INTO tokens VALUES (NULL, ?, ?, ?, ?)", (hashed(token), name, self.now, expires))
        return token

    def end(self, which: str, *values: str) -> None:
        """End tokens, and the sessions that stood for them."""
        self.db.execute(which, values)
        self.db.execute("DELETE FROM sessions WHERE token NOT IN (SELECT hash FROM tokens)")

    def end_sessions(self, name: str) -> None:
        """End all sessions of a name."""
        self.db.execute("DELETE FROM sessions WHERE token IN (SELECT hash FROM tokens WHERE name = ?)", (name,))


def _checked(name: object, role: object, datasets: object, days: object) -> str | None:
    """Refuse what is no principal; the scope as it is stored."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise QuestionError("bad-principal", "A name is 1 to 64 letters, digits and . _ @ -, a letter or digit first.")
    if role not in ROLES:
        raise QuestionError("bad-principal", f"A role is one of {', '.join(ROLES)}.")
    _check_days(days)
    if datasets == ALL:
        return None
    several = isinstance(datasets, (list, tuple)) and all(isinstance(item, str) and item for item in datasets)
    if not several:
        raise QuestionError("bad-principal", 'Datasets are given as a list of names, or as "all".')
    if role == "owner" and datasets:
        raise QuestionError("bad-principal", "An owner reaches every dataset.")
    return None if role == "owner" else json.dumps(sorted(set(cast("Sequence[str]", datasets))))


def _check_days(days: object) -> None:
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MAX_TOKEN_DAYS:
        raise QuestionError("bad-principal", f"A token lives 1 to {MAX_TOKEN_DAYS} days.")


def _principal(row: tuple[object, ...]) -> Principal:
    name, role, datasets, created, expires, revoked = row[:6]
    scope = None if datasets is None else tuple(json.loads(cast("str", datasets)))
    times = cast("tuple[int, int, int | None]", (created, expires, revoked))
    return Principal(cast("str", name), cast("Role", role), scope, *times)
