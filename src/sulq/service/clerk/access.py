"""Who may ask: names, roles, the datasets they may see, and the hashes of their tokens.

One small SQLite file, readable by its owner alone. A token is drawn by the
operating system with 256 bits and shown once; the file holds its SHA-256, from
which it cannot be found again, and equal looks at the index tell nothing of a
token of that length (T80). Every look-up reads the file, so that a revocation
counts from the next call on, whichever process wrote it.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self, cast, get_args

import apsw

from sulq.errors import AccessDenied, QuestionError, SetupError
from sulq.kernel.entropy import random_bytes

Role = Literal["owner", "analyst", "auditor"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
TOKEN_BYTES: Final = 32  # of a token; 16 would do
PREFIX: Final = "sulq_"  # so that those who scan texts for secrets can find one
TOKEN_DAYS: Final = 90
MAX_TOKEN_DAYS: Final = 3660
LOCK_MILLISECONDS: Final = 5000  # milliseconds for the file's lock
_DAY: Final = 86400
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_SCHEMA: Final = """CREATE TABLE principals (
    name TEXT PRIMARY KEY COLLATE NOCASE, role TEXT NOT NULL, datasets TEXT, token TEXT NOT NULL UNIQUE,
    created INTEGER NOT NULL, expires INTEGER NOT NULL, revoked INTEGER
) STRICT"""
_FIELDS: Final = "SELECT name, role, datasets, created, expires, revoked FROM principals "


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


def hashed(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


class Access:
    """The access store; may be shared between threads."""

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time) -> None:
        self._path = Path(path)
        self._clock = clock
        self._lock = threading.Lock()
        self._db: apsw.Connection | None = None
        self._place: tuple[int, int] | None = None
        if not self._path.exists():
            self._create()
        with self._lock:
            self._file()

    def find(self, token_hash: str) -> Principal | None:
        """Whose token this is; None if nobody's, or revoked.

        Raises:
            AccessDenied: it was somebody's, but its time has run out.
        """
        found = self._rows("WHERE token = ? AND revoked IS NULL", (token_hash,))
        if not found:
            return None
        if found[0].expires <= self._clock():
            raise AccessDenied("token-expired", "This token's time has run out.")
        return found[0]

    def add(
        self,
        name: str,
        role: str = "analyst",
        datasets: Sequence[str] | None = None,
        days: int = TOKEN_DAYS,
        *,
        replace: bool = False,
    ) -> str:
        """Let somebody in and give the token, this once. With `replace` an earlier token of the name ends now."""
        scope = _checked(name, role, datasets, days)
        token = PREFIX + base64.urlsafe_b64encode(random_bytes(TOKEN_BYTES)).rstrip(b"=").decode()
        now = int(self._clock())
        values = (name, role, scope, hashed(token), now, now + days * _DAY)
        with self._writing() as db:
            known = db.execute("SELECT name, revoked FROM principals WHERE name = ?", (name,)).fetchall()
            if known and not replace and known[0][1] is None:
                raise QuestionError("name-taken", f"{name!r} has a token already.")
            if known:
                name_then = cast("str", known[0][0])  # the name keeps its first spelling: a share goes by it
                db.execute("DELETE FROM principals WHERE name = ?", (name,))
                values = (name_then, *values[1:])
            db.execute("INSERT INTO principals VALUES (?, ?, ?, ?, ?, ?, NULL)", values)
        return token

    def first(self, name: str = "owner") -> str | None:
        """The first owner's token, if there never was an owner; else None."""
        if any(known.role == "owner" for known in self.list()):
            return None
        return self.add(name, "owner", replace=True)

    def revoke(self, name: str) -> None:
        """End somebody's token at once; the name stays in the list."""
        with self._writing() as db:
            asked = (int(self._clock()), name)
            db.execute("UPDATE principals SET revoked = ? WHERE name = ? AND revoked IS NULL", asked)
            changed = db.changes()
        if not changed:
            raise AccessDenied("not-found", "Nobody of that name has a token.", "See the list of analysts.")

    def list(self) -> Sequence[Principal]:
        """Everybody who was ever let in, by name."""
        return self._rows("ORDER BY name", ())

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, which: str, values: tuple[str, ...]) -> Sequence[Principal]:
        with self._lock:
            try:
                rows = self._file().execute(_FIELDS + which, values).fetchall()
            except apsw.Error as error:
                raise _damaged(self._path) from error
        return [_principal(row) for row in rows]

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        """One transaction that holds the file's write lock from its start."""
        with self._lock:
            db = self._file()
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            except apsw.Error as error:
                raise _damaged(self._path) from error
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    def _file(self) -> apsw.Connection:
        """The connection to the file that bears the name now; one put in its place by a restore is seen too."""
        try:
            state = self._path.stat()
        except OSError as error:
            self._drop()
            raise _damaged(self._path) from error
        if state.st_mode & 0o077:
            self._drop()
            raise SetupError("access-damaged", f"{self._path} can be reached by others.", "Give it the mode 0600.")
        place = (state.st_dev, state.st_ino)
        if self._db is None or self._place != place:
            self._drop()
            self._db, self._place = _opened(self._path), place
        return self._db

    def _drop(self) -> None:
        if self._db is not None:
            self._db.close(True)
        self._db = None

    def _create(self) -> None:
        """Write the empty store whole beside its place, then link it there: no half store ever bears the name."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._path.with_name(f".{self._path.name}.{random_bytes(8).hex()}.new")
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        try:
            db = apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READWRITE)
            db.pragma("synchronous", "EXTRA")
            db.execute(_SCHEMA)
            db.close()
            try:
                os.link(draft, self._path)
            except FileExistsError:  # another process was first; theirs is as good
                return
        finally:
            draft.unlink(missing_ok=True)


def _opened(path: Path) -> apsw.Connection:
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        db.set_busy_timeout(LOCK_MILLISECONDS)
        db.pragma("synchronous", "EXTRA")  # a token that was shown, or ended, is so after a power cut too
        db.pragma("trusted_schema", "OFF")
        (schema,) = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
    except (apsw.Error, ValueError) as error:
        raise _damaged(path) from error
    if schema != _SCHEMA:
        db.close()
        raise _damaged(path)
    return db


def _checked(name: object, role: object, datasets: object, days: object) -> str | None:
    """Refuse what is no principal; the scope as it is stored."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise QuestionError("bad-principal", "A name is 1 to 64 letters, digits and . _ @ -, a letter or digit first.")
    if role not in ROLES:
        raise QuestionError("bad-principal", f"A role is one of {', '.join(ROLES)}.")
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MAX_TOKEN_DAYS:
        raise QuestionError("bad-principal", f"A token lives 1 to {MAX_TOKEN_DAYS} days.")
    if datasets is None:
        return None
    several = isinstance(datasets, (list, tuple)) and all(isinstance(item, str) and item for item in datasets)
    if not several:
        raise QuestionError("bad-principal", "Datasets are given as a list of names.")
    if role == "owner":
        raise QuestionError("bad-principal", "An owner reaches every dataset.")
    return json.dumps(sorted(set(cast("Sequence[str]", datasets))))


def _principal(row: tuple[object, ...]) -> Principal:
    name, role, datasets, created, expires, revoked = row
    scope = None if datasets is None else tuple(json.loads(cast("str", datasets)))
    times = cast("tuple[int, int, int | None]", (created, expires, revoked))
    return Principal(cast("str", name), cast("Role", role), scope, *times)


def _damaged(path: Path) -> SetupError:
    return SetupError("access-damaged", f"The access store {path} cannot be read.")
