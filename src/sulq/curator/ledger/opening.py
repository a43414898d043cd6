"""Opening a ledger: created whole or read whole, and refused unless it is what the owner says it is."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import apsw

from sulq.addresses import (
    TableAddress,
    beside_all,
    ledger_at,
    ledger_folders,
    ledger_of,
    partitions_within,
    scattered,
)
from sulq.addresses import is_address as is_table_address
from sulq.curator.ledger import history, notes, shares, sources
from sulq.curator.ledger.history import History
from sulq.curator.ledger.notes import Signer
from sulq.curator.ledger.postgres_place import Address, PostgresPlace, is_address, ledgers_in, refuse_logged, table_in
from sulq.curator.ledger.postgres_place import told as told_in
from sulq.curator.ledger.reading import read_on
from sulq.curator.ledger.sources import (
    SUFFIX,
    LedgerCover,
    Likeness,
    Source,
    agree,
    choose,
    cover_of,
    covering,
    is_text_file,
    noted,
    shown,
)
from sulq.curator.ledger.turns import SqliteFile, opening
from sulq.data_files import Pattern
from sulq.errors import SetupError, SetupWarning
from sulq.kernel.ledger.chain import ORIGIN, Row, link
from sulq.kernel.ledger.entries import State
from sulq.kernel.ledger.filter import Totals
from sulq.kernel.ledger.store import Store, damaged
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
    proved: Loss  # the loss that is proved of all answers

    def __str__(self) -> str:
        return (
            f"{self.entries} entries ({self.debits} debits, {self.answers} answers), head {self.head}\n"
            f"person space {self.space}, protects {self.unit}{', synthetic' if self.synthetic else ''}\n"
            f"budget {self.budget}; spent {self.spent}; left {self.remaining}; proved of all answers: {self.proved}\n"
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
            return report(read_whole(store, mechanisms))
        finally:
            store.close()


def read_whole(store: Store, mechanisms: Collection[str]) -> State:
    """Read a ledger from its first entry to its present last one, and check all of it (T47).

    Who writes to it meanwhile waits for nothing but, at the end, SQLite's check of a file's pages: 2 seconds for 1 GB.

    Raises:
        SetupError: `ledger-damaged`.
    """
    state = State(mechanisms, History(mechanisms, thorough=True))
    read_on(store, state)
    if not store.sound():
        raise damaged("the file", "is not whole, or holds more or less than a ledger")
    return state


def entry_of(path: Path | str, seq: int, *, wait: float = 5.0) -> tuple[State, Row | None]:
    """Check a ledger from outside and read one of its entries, if there is one; nothing is written."""
    with opening():
        store = look(place_of(path), wait)
        try:
            return read_whole(store, ()), store.row(seq)
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
        unit=history.unit_of(state),
        budget=state.filter.budget,
        synthetic=state.genesis.synthetic,
        entries=state.seq,
        debits=found.debits,
        answers=found.answers,
        head=state.hash.hex(),
        totals=state.totals,
        spent=shares.spent_of(state.filter, state.totals),
        remaining=shares.remaining(state.filter, state.totals),
        public_key=Signer(found.founding.signing_key).public,
        proved=shares.proved(state.filter, state.totals),
    )


def connect(
    path: Path | Address | None,
    *,
    unit: Unit | None,
    budget: Budget | None,
    synthetic: bool | None,
    open_keys: bool,
    basic: Fraction | None,
    keys: Fraction | None,
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
        more = {"time": time, "versions": notes.versions()}
        own = synthetic is True
        body = notes.genesis(unit, budget, open_keys=open_keys, synthetic=own, basic=basic, keys=keys, **more)
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


def covers_in(folders: Iterable[Path], *, readable: bool = False) -> list[LedgerCover]:
    """Every ledger of these folders, as far as it says what it covers; `readable`: but for those of other users.

    Raises:
        SetupError: one cannot be read, and nobody can say what it covers.
    """
    paths = [path for folder in folders for path in sorted(folder.glob(f"*{SUFFIX}"))]
    return covers_at(path for path in paths if not readable or os.access(path, os.R_OK))


def covers_at(paths: Iterable[Path]) -> list[LedgerCover]:
    """The ledgers that these files are, each once, as far as they say what they cover; those that are gone are none.

    Raises:
        SetupError: one cannot be read, and nobody can say what it covers.
    """
    books = [_book(path) for path in dict.fromkeys(path.resolve() for path in paths if path.is_file())]
    return [book for book in books if book is not None]


def covers_of(url: str) -> list[LedgerCover]:
    """Every ledger in a database that this role may read."""
    store = _reached(url)
    if store is None:
        return []
    with opening():
        try:
            return [cover_of(ledger_at(url, name), rows) for name, rows in ledgers_in(store)]
        finally:
            store.close()


def _reached(url: str) -> PostgresPlace | None:
    """The database that tables lie in; where it cannot be reached, whoever opens the tables says why."""
    try:
        return PostgresPlace(Address.of(ledger_at(url, "sulq")), looking=True)
    except SetupError as error:
        if error.code in ("missing-file", "ledger-failed", "bad-config"):
            return None
        raise


def sources_of(private: Iterable[tuple[object, str]]) -> list[Source]:
    """What is known of private tables, each a path, an address or a frame with its name inside; of a frame nothing."""
    found: list[Source | None] = []
    for data, name in private:
        if isinstance(data, Path):
            own = beside_all([data])
            found.append(Source("folder", str(data), own=str(own)) if data.is_dir() else Source.file(data, own))
        elif isinstance(data, Pattern):
            found.append(Source("pattern", data.told))
        elif is_table_address(data):
            found.append(table(str(data), name))
        elif isinstance(data, str):
            found.append(Source("spark", data))
    return [source for source in found if source is not None]


def table(url: str, name: str) -> Source | None:
    """A table in PostgreSQL by its database and its oid, with those of the tables under a view or over a partition."""
    schema, name = TableAddress.of(url).inside(name)
    store = _reached(url)
    if store is None:
        return None
    with opening():
        try:
            within, numbers = table_in(store, schema, name)
        finally:
            store.close()
    own = ""
    with contextlib.suppress(SetupError):  # no schema of ours can be called so
        own = ledger_of(url, f"{schema}.{name}")
    return Source("table", f"{schema}.{name}", within, numbers, own=own)


def ledger_place(
    sources: Sequence[Source],
    told: Path | str | None,
    begun: Callable[[], Path | str | None],
    private: Iterable[tuple[object, str]],
    *,
    new_people: bool = False,
) -> Path | str | None:
    """The ledger of private tables: the one that was told, the one that covers them, or where to begin one.

    Privacy: people whom one ledger here protects get no second budget from another (T98). What decides is where the
    data lies, and whether its bytes are those of data that a ledger covers; the owner alone hears of it, before
    anything is asked.

    Args:
        sources: What is known of the tables.
        told: The ledger their owner names.
        begun: Where to begin one.
        private: The tables, by path, address or frame.
        new_people: The owner's word that the ledger told protects people whom no other does.

    Raises:
        SetupError: `covered-source`, `several-ledgers`, `bad-declaration`, or a ledger there cannot be read.
    """
    files = [data for data, _ in private if isinstance(data, Path)]
    url = next((str(data) for data, _ in private if is_table_address(data)), None)
    if told is None:
        if files:
            beside_all(files)  # refuses those of which a ledger beside one would not be found from another
        if any(data.scattered for data, _ in private if isinstance(data, Pattern)):
            raise scattered()
        books = [*covers_near(files, sources), *(covers_of(url) if url is not None else [])]
        found = choose(sources, books)
        check_reach(found, files)
        return found or begun()
    own = _told(told)
    # No other can cover them more surely than one that surely does, nor one that cannot be read.
    if own is not None and all(noted(source, own) is Likeness.SAME for source in sources):
        return told
    if new_people and own is None:
        with contextlib.suppress(SetupError):  # one that cannot be read is no reason against its owner's word
            books = covers_near(files, sources)
            _warn_of_covered(sources, [book for book in books if not book.synthetic])
        return told
    if new_people:
        why = (
            "new_people=True is for a ledger that is yet to be begun; this one is there, and does not cover this data."
        )
        raise SetupError("bad-declaration", why, "Name a new ledger, or leave out new_people=True.")
    books = covers_near(files, sources, [told.resolve().parent] if isinstance(told, Path) else [])
    agree(sources, own, [*books, *(covers_of(url) if url is not None else [])])
    return told


def _warn_of_covered(sources: Sequence[Source], books: Sequence[LedgerCover]) -> None:
    """Tell an owner whose word is that these are other people that a ledger here covers the very same file."""
    for source in sources:
        unnamed = replace(source, own="")  # a ledger of the name that this file's would have may be another's
        found = [place for place, likeness in covering(unnamed, books).items() if likeness is Likeness.SAME]
        if found:
            why = f"{source.name[:200]!r} is covered by the ledger {shown(found[0])}, which knows its path or its bytes"
            word = "By new_people=True these are other people: if they are the same, they have a second budget."
            warnings.warn(f"{why}. {word}", SetupWarning, stacklevel=4)


def covers_near(data: Collection[Path], sources: Sequence[Source], more: Iterable[Path] = ()) -> list[LedgerCover]:
    """The ledgers that may cover data files: those near them and in `more`, and of those above what surely does.

    A folder's ledger lies beside it under any name, and the folder may be called otherwise since: from a part it is
    found in some folder above.

    Raises:
        SetupError: one cannot be read, and nobody can say what it covers.
    """
    near = ledger_folders(data).union(more)
    above = covers_in({folder for file in data for folder in file.parents} - near, readable=True)
    return [*covers_in(near), *(book for book in above if any(_is_sure(source, book) for source in sources))]


def _is_sure(source: Source, book: LedgerCover) -> bool:
    return covering(source, [book]).get(book.opened) is Likeness.SAME


def check_reach(place: Path | str | None, data: Iterable[Path]) -> None:
    """Refuse a ledger that lies beside some of these files and folders and would not be found from the others.

    Raises:
        SetupError: `bad-declaration`.
    """
    if not isinstance(place, Path):
        return
    for each in data:
        part = each / "any" if each.is_dir() else each  # a part that may come to the folder
        partitions = partitions_within(each) if each.is_dir() else []
        if place.parent not in {*part.parents, *ledger_folders([part]), *partitions}:
            raise SetupError(
                "bad-declaration",
                f"The ledger {shown(place)} covers some of this data, and would not be found from {each.name[:200]!r}.",
                "Move it beside the folder that holds all of it, or write ledger=PATH, every time.",
            )


def _told(told: Path | str) -> LedgerCover | None:
    """The ledger its owner names, if it is there."""
    if isinstance(told, str) and is_address(told):
        with opening():
            address = Address.of(told)
            store = PostgresPlace(address, looking=True)
            try:
                return cover_of(told, told_in(store, address.ledger)) if store.exists() else None
            finally:
                store.close()
    path = Path(told).resolve()
    return _book(path) if path.is_file() else None


def _book(path: Path) -> LedgerCover | None:
    """A ledger's file; None for a text that bears such a name. Anything else may be what is left of a ledger."""
    try:
        with opening():
            store = look(path, 5.0)
            try:
                return cover_of(path, sources.told(store))
            finally:
                store.close()
    except SetupError as error:
        if isinstance(error.__cause__, apsw.NotADBError) and is_text_file(path):
            return None
        raise SetupError(
            error.code,
            f"Whether the ledger {path.name!r} covers this data cannot be seen: {error.message}",
            "Restore it; if it has nothing to do with this data, move it, or name the data's own: ledger=..., "
            "and new_people=True where that is yet to be begun.",
        ) from None
