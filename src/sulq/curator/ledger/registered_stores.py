"""Where ledgers are looked for: in the folders of data files, and in the database that tables lie in (T98)."""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import apsw

from sulq.addresses import postgres
from sulq.addresses.defaults import beside, ledger_at, ledger_of
from sulq.curator.ledger import sources
from sulq.curator.ledger.failures import opening
from sulq.curator.ledger.opening import look
from sulq.curator.ledger.postgres_place import Address, PostgresPlace, is_address
from sulq.curator.ledger.postgres_sources import ledgers_in, table_in
from sulq.curator.ledger.postgres_sources import told as told_in
from sulq.curator.ledger.sources import SUFFIX, LedgerCover, Likeness, Source, agree, choose, cover_of, noted
from sulq.errors import SetupError


def covers_in(folders: Iterable[Path]) -> list[LedgerCover]:
    """Every ledger of these folders, as far as it says what it covers.

    Raises:
        SetupError: one cannot be read, and nobody can say what it covers.
    """
    found: dict[Path, LedgerCover] = {}
    for folder in folders:
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            book = _book(path.resolve()) if path.resolve() not in found else None
            if book is not None:
                found[path.resolve()] = book
    return list(found.values())


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
            found.append(Source.file(data, beside(data)))
        elif postgres.is_address(data):
            found.append(table(str(data), name))
        elif isinstance(data, str):
            found.append(Source("spark", data))
    return [source for source in found if source is not None]


def table(url: str, name: str) -> Source | None:
    """A table in PostgreSQL by its database and its oid, with those of the tables under a view or over a partition."""
    schema, name = postgres.TableAddress.of(url).inside(name)
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
    folders = {data.parent for data, _ in private if isinstance(data, Path)}
    url = next((str(data) for data, _ in private if postgres.is_address(data)), None)
    if told is None and len(folders) > 1:
        return begun()
    if told is None:
        books = [*covers_in(folders), *(covers_of(url) if url is not None else [])]
        return choose(sources, books) or begun()
    own = _told(told)
    if own is not None and all(own.knows(source) for source in sources):
        return told
    if new_people and own is None:
        return told
    if new_people and any(noted(source, own) is not Likeness.SAME for source in sources):
        why = (
            "new_people=True is for a ledger that is yet to be begun; this one is there, and does not cover this data."
        )
        raise SetupError("bad-declaration", why, "Name a new ledger, or leave out new_people=True.")
    folders |= {told.resolve().parent} if isinstance(told, Path) else set()
    agree(sources, own, [*covers_in(folders), *(covers_of(url) if url is not None else [])])
    return told


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
        if isinstance(error.__cause__, apsw.NotADBError) and _is_text(path):
            return None
        raise SetupError(
            error.code,
            f"Whether the ledger {path.name!r} covers this data cannot be seen: {error.message}",
            "Restore it, or move it elsewhere if it has nothing to do with this data.",
        ) from None


def _is_text(path: Path) -> bool:
    """Whether a file that SQLite does not take is written in words; a ledger's pages are full of zeros."""
    with path.open("rb") as file:
        start = file.read(1 << 16)
    try:
        return "\x00" not in codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
