"""Opening a ledger: created whole or read whole, and refused unless it is what the owner says it is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import apsw

from sulq.curator.ledger import founding, history, remaining
from sulq.curator.ledger.failures import opening
from sulq.curator.ledger.history import load
from sulq.curator.ledger.postgres_place import Address, PostgresPlace, is_address
from sulq.curator.ledger.postgres_sources import refuse_logged
from sulq.curator.ledger.signature import Signer
from sulq.curator.ledger.sources import SUFFIX
from sulq.curator.ledger.sqlite_file import SqliteFile
from sulq.errors import SetupError
from sulq.kernel.ledger.chain import ORIGIN, Row, link
from sulq.kernel.ledger.entries import State
from sulq.kernel.ledger.filter import Totals
from sulq.kernel.ledger.store import Store
from sulq.language.privacy import Budget, Loss, Unit


@dataclass(frozen=True, slots=True)
class Report:
    """What a ledger that verifies says, all of it recomputed from its entries."""

    space: str
    unit: Unit
    budget: Budget
    synthetic: bool
    entries: int
    debits: int
    answers: int
    head: str
    totals: Totals
    spent: Loss
    remaining: Loss
    public_key: str  # what checks the ledger's signatures

    def __str__(self) -> str:
        return (
            f"{self.entries} entries ({self.debits} debits, {self.answers} answers), head {self.head}\n"
            f"person space {self.space}, protects {self.unit}{', synthetic' if self.synthetic else ''}\n"
            f"budget {self.budget}; spent {self.spent}; left {self.remaining}\n"
            f"receipts are signed by {self.public_key}"
        )


def verify(path: Path | str, *, mechanisms: Collection[str] = (), wait: float = 5.0) -> Report:
    """Check a ledger from outside: structure, chain, totals, head; nothing is written.

    Args:
        path: The ledger's file or postgresql:// URL.
        mechanisms: If given, every draw must be of one of these (SR22).
        wait: Seconds to wait for a process that writes.

    Raises:
        SetupError: `ledger-damaged` if anything is not as it was written.
    """
    with opening():
        store = look(place_of(path), wait)
        try:
            return report(load(store, mechanisms, thorough=True))
        finally:
            store.close()


def entry_of(path: Path | str, seq: int, *, wait: float = 5.0) -> tuple[State, Row | None]:
    """Check a ledger from outside and read one of its entries, if there is one; nothing is written."""
    with opening():
        store = look(place_of(path), wait)
        try:
            return load(store, (), thorough=True), store.row(seq)
        finally:
            store.close()


def place_of(path: Path | str) -> Path | Address:
    """Where a ledger lies: a file, or a postgresql:// URL."""
    return Address.of(path) if isinstance(path, str) and is_address(path) else Path(path).resolve()


def look(place: Path | Address, wait: float) -> Store:
    """Connect to a ledger that is there, to read it."""
    missing = SetupError("missing-file", f"There is no ledger at {place}.")
    if isinstance(place, Address):
        store = PostgresPlace(place, wait=wait, looking=True)
        if not store.exists():
            store.close()
            raise missing
        return store
    if not place.is_file():
        raise missing
    journal = place.with_name(place.name + "-journal")
    # SQLite rolls an unfinished transaction back as it opens, and must be allowed to.
    unfinished = journal.exists() and journal.stat().st_size > 0
    flags = apsw.SQLITE_OPEN_READWRITE if unfinished else apsw.SQLITE_OPEN_READONLY
    return SqliteFile(str(place), wait=wait, flags=flags)


def report(state: State) -> Report:
    """Sum a state up."""
    found = history.of(state)
    return Report(
        space=found.founding.space,
        unit=state.genesis.unit,
        budget=state.filter.budget,
        synthetic=state.genesis.synthetic,
        entries=state.seq,
        debits=len(found.charges),
        answers=found.answers,
        head=state.hash.hex(),
        totals=state.totals,
        spent=remaining.spent(state.filter, state.totals),
        remaining=remaining.remaining(state.filter, state.totals),
        public_key=Signer(found.founding.signing_key).public,
    )


def connect(
    path: Path | Address | None,
    *,
    unit: Unit | None,
    budget: Budget | None,
    synthetic: bool | None,
    open_keys: bool,
    create: bool,
    wait: float,
    vfs: str,
    time: str,
    remembered: bool = False,
) -> SqliteFile | PostgresPlace:
    """Connect to a ledger, writing its first entry if there is none; not where an anchor `remembered` one (T46)."""

    def first() -> list[Row]:
        if remembered:
            raise SetupError("ledger-rolled-back", "The ledger is gone and its anchor is not.", "Restore a copy of it.")
        if unit is None or budget is None:
            raise SetupError("missing-file", f"There is no ledger at {path}, and no unit and budget to begin one.")
        body = founding.genesis(
            unit, budget, open_keys=open_keys, synthetic=synthetic is True, time=time, versions=founding.versions()
        )
        return [Row(1, body, link(ORIGIN, 1, body))]

    with opening():
        if path is None:
            return SqliteFile.in_memory(first())
        begin = first if create or remembered else None
        store: SqliteFile | PostgresPlace
        store = _postgres(path, begin, wait) if isinstance(path, Address) else _sqlite(path, begin, wait, vfs)
        try:
            if store.readonly:
                raise SetupError("ledger-failed", f"The ledger {path} cannot be written.", "Check the permissions.")
        except BaseException:
            store.close()
            raise
        return store


def _sqlite(path: Path, first: Callable[[], list[Row]] | None, wait: float, vfs: str) -> SqliteFile:
    begun = False
    if not path.exists():
        if first is None:
            raise SetupError("missing-file", f"There is no ledger at {path}.")
        if not path.name.endswith(SUFFIX):  # it would not be found beside its data (T98)
            why = f"The name of a ledger's file ends in {SUFFIX}; {path.name[:200]!r} does not."
            raise SetupError("bad-declaration", why, f"Write ledger=NAME{SUFFIX}.")
        with contextlib.suppress(FileExistsError):  # another process was first: its ledger is compared with ours
            SqliteFile.create(path, first())
            begun = True
    store = SqliteFile(str(path), wait=wait, vfs=vfs)
    store.begun = begun
    return store


def _postgres(address: Address, first: Callable[[], list[Row]] | None, wait: float) -> PostgresPlace:
    store = PostgresPlace(address, wait=wait)
    try:
        if not store.exists():
            if first is None:
                raise SetupError("missing-file", f"There is no ledger at {address}.")
            refuse_logged(store)
            with contextlib.suppress(FileExistsError):
                PostgresPlace.create(address, first())
                store.begun = True
    except BaseException:
        store.close()
        raise
    return store
