"""Copies of a ledger: made while it is in use, put back only where nothing is forgotten unheard.

A ledger only grows, so its entries up to any place are a whole ledger, as it stood then. A copy is written entry by
entry, each checked against the chain: nobody who writes waits for it, and what is not sound is never copied.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from sulq.curator.ledger import history
from sulq.curator.ledger.anchor import Anchor, check_not_behind, short_of
from sulq.curator.ledger.full_check import looking
from sulq.curator.ledger.history import History
from sulq.curator.ledger.ledger import nowhere, reconcile
from sulq.curator.ledger.notes import Signer
from sulq.curator.ledger.opening import Report, place_of, report, verify
from sulq.curator.ledger.postgres_place import Address
from sulq.curator.ledger.reading import pieces
from sulq.curator.ledger.sources import SUFFIX
from sulq.curator.ledger.turns import SqliteFile, opening, sync_directory
from sulq.errors import SetupError, SulqError
from sulq.kernel.entropy import random_bytes
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.entries import State
from sulq.kernel.ledger.filter import Totals
from sulq.kernel.ledger.store import Store, damaged

BATCH: Final = 5000  # entries of a copy that are synced together
DEBIT: Final = '"kind":"debit"'  # in the entry of each ask


@dataclass(frozen=True, slots=True)
class Restored:
    """What a ledger says that was put back, what of the one before it has not, and where that one lies now."""

    report: Report
    forgotten: str  # in words; "" where nothing is
    burnt: dict[str, Totals]
    kept: Path | None


def backup(path: Path | str, to: Path | str, *, mechanisms: Collection[str], overwrite: bool = False) -> Report:
    """Copy a ledger, in use or not, into a file: as it stood when this began, checked, mode 0600 and synced.

    Args:
        path: The ledger's file or postgresql:// URL; of one in PostgreSQL the copy is a file too.
        to: Where the copy is to lie. It bears that name when it is whole, and not before.
        mechanisms: Every draw must be of one of these (SR22).
        overwrite: Whether it may take the place of an older copy; of no other file.

    Raises:
        SetupError: `ledger-damaged`: there is nothing to be copied; `bad-declaration`: the place is taken, or is one
            where the copy would be found beside the ledger.
    """
    place, target = place_of(path), Path(to).resolve()
    beside = target.name.endswith(SUFFIX) and isinstance(place, Path) and target.parent == place.parent
    if beside or target == place:
        why = f"A copy beside its ledger that ends in {SUFFIX} would be taken for a second ledger of the same people."
        raise SetupError("bad-declaration", why, "Put it into another folder, best on another volume.")
    if target.exists() and not overwrite:
        raise SetupError("bad-declaration", f"{target.name!r} is there already.", "Name another file, or --overwrite.")
    with opening(), looking(place) as store, _drafted(target) as draft:
        state = _copied(store, draft, mechanisms)
        if not target.exists():
            _new(draft, target)
            return report(state)
        with _held(target) as there:
            if _lost(state, store, there, target):
                why = f"{target.name!r} is no older copy of this ledger, and is not overwritten."
                raise SetupError("bad-declaration", why, "Name another file.")
            draft.replace(target)
            sync_directory(target.parent)
        return report(state)


def restore(
    copy: Path | str,
    path: Path | str,
    *,
    mechanisms: Collection[str],
    anchor: Path | str | None = None,
    forget: bool = False,
) -> Restored:
    """Put a copy of a ledger in its place, mode 0600 and synced, while nobody writes to the one that is there.

    What is replaced is kept beside it. Where the copy is behind its anchor, what it does not know was spent is burnt.

    Args:
        copy: A copy, as `backup` made it.
        path: The ledger's file.
        mechanisms: Every draw must be of one of these (SR22).
        anchor: The ledger's anchor, if it has one.
        forget: Whether entries may be lost that the ledger there has, or its anchor noted, and the copy has not.

    Raises:
        SetupError: `ledger-rolled-back`: the copy is older; the message says by how much. `bad-anchor`: the ledger has
            an anchor that is not named. `bad-declaration`: what is there is no ledger of these people. In each case
            nothing was changed.
    """
    place = place_of(path)
    if isinstance(place, Address):
        why = "A ledger in PostgreSQL is put back by PostgreSQL's own tools."
        raise SetupError("bad-declaration", why, "Use pg_dump --schema and pg_restore, then `sulq ledger reconcile`.")
    source = place_of(copy)
    if source == place:
        raise SetupError("bad-declaration", "The copy and the ledger are the same file.")
    with opening(), looking(source) as store, _drafted(place) as draft:
        state = _copied(store, draft, mechanisms)
        behind = _behind_anchor(state, store, anchor)
        if behind is None and not forget:
            why = "This ledger has an anchor, and nothing else tells whether the copy is old."
            raise SetupError("bad-anchor", why, "Name it: --anchor ANCHOR. If it is lost: --forget.")
        with _held(place) as there:
            forgotten = "; ".join(filter(None, [behind, _lost(state, store, there, place)]))
            if forgotten and not forget:
                why = f"The copy is older than what it would replace. It would forget {forgotten}."
                raise SetupError("ledger-rolled-back", why, "Find a newer copy, or accept this with --forget.")
            kept = _replaced(draft, place)
    burnt = {} if not behind or anchor is None else reconcile(place, anchor, mechanisms=mechanisms)
    return Restored(verify(place, mechanisms=mechanisms) if burnt else report(state), forgotten, burnt, kept)


@contextlib.contextmanager
def _drafted(target: Path) -> Iterator[Path]:
    """A file beside a place, for its owner alone from its first byte, which goes unless it is given that place."""
    draft = target.with_name(f".{target.name}.{random_bytes(8).hex()}.new")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        yield draft
    finally:
        for left in (draft, draft.with_name(f"{draft.name}-journal")):
            left.unlink(missing_ok=True)


def _copied(store: Store, draft: Path, mechanisms: Collection[str]) -> State:
    """Write the entries up to the present last one into an empty file, each followed and checked (T47)."""
    state = State(mechanisms, History(mechanisms, thorough=True))
    head = store.head()
    copy = SqliteFile(str(draft))
    try:
        copy.fill(())
        waiting: list[Row] = []
        for piece in pieces(store, 0, 0 if head is None else head[0]):
            for row in piece:
                state.follow(row)
            waiting += piece
            if len(waiting) >= BATCH:
                _append(copy, waiting)
        _append(copy, waiting)
    finally:
        copy.close()
    if state.seq == 0 or head != (state.seq, state.hash):
        raise damaged("the end", "is missing, or was not written by sulq")
    return state


def _append(copy: SqliteFile, rows: list[Row]) -> None:
    if rows:
        copy.begin()
        copy.append(rows)
        copy.commit()
        rows.clear()


def _new(draft: Path, target: Path) -> None:
    """Give a draft a name that no file bears."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise SetupError("bad-declaration", f"{target.name!r} is there already.", "Name another file.") from None
    sync_directory(target.parent)


def _replaced(draft: Path, target: Path) -> Path | None:
    """Give a draft its name in one step; where the file went that bore it before, which is kept."""
    if not target.exists():
        _new(draft, target)
        return None
    kept = _kept(target)
    draft.replace(target)
    sync_directory(target.parent)
    return kept


def _kept(target: Path) -> Path:
    """Another name for a file and for the journal of a transaction that was cut off in it: it goes with its file."""
    number = 1
    while True:
        kept = target.with_name(f"{target.name}.replaced-{number}")
        with contextlib.suppress(FileExistsError):
            os.link(target, kept)
            break
        number += 1
    journal = target.with_name(f"{target.name}-journal")
    if journal.exists() and journal.stat().st_size:
        journal.rename(kept.with_name(f"{kept.name}-journal"))
    return kept


def _behind_anchor(state: State, store: Store, told: Path | str | None) -> str | None:
    """What the anchor noted and the copy has not, in words; "" where it has all; None where it is not named."""
    found = history.of(state)
    if told is None:
        return None if found.anchor is not None else ""
    signer = Signer(found.founding.signing_key)
    noted = Anchor(Path(told).resolve(), found.founding.space, signer, nowhere).read()
    if noted is None:
        raise SetupError("bad-anchor", f"There is no anchor at {told}.", "Name it; if it is lost, leave it out.")
    if noted.space != found.founding.space:
        raise SetupError("bad-anchor", "The anchor belongs to another person space.", "Name the ledger's own.")
    try:
        check_not_behind(noted, state, store)
    except SetupError:
        asks = short_of(state.totals, noted.whole).events
        return f"{asks} asks that its anchor noted, up to entry {noted.seq} (the copy ends with {state.seq})"
    return ""


@contextlib.contextmanager
def _held(place: Path) -> Iterator[SqliteFile | None]:
    """The ledger that is there, to which nobody writes meanwhile; None where there is none, or it cannot be read."""
    if not place.exists():
        yield None
        return
    store = None
    try:
        store = SqliteFile(str(place))
        store.begin()
    except (SulqError, apsw.Error) as error:
        if store is not None:
            store.close()
        if isinstance(error, apsw.BusyError):
            raise
        store = None
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def _lost(state: State, copy: Store, there: SqliteFile | None, place: Path) -> str:
    """What the ledger that is there has and the copy has not, in words; "" where it has all of it."""
    if there is None:
        return "" if not place.exists() else "whatever the ledger there holds, which cannot be read"
    try:
        head, first = there.head(), there.row(1)
        if head is None or first is None:
            return "whatever the ledger there holds, which is not whole"
        same = json.loads(first.body)["space"] == history.of(state).founding.space
        last = there.row(state.seq)
        asks = sum(DEBIT in row.body for row in there.rows(state.seq))
    except (SulqError, apsw.Error, ValueError, LookupError, TypeError):
        return "whatever the ledger there holds, which cannot be read"
    if not same:
        why = f"{place.name!r} is the ledger of other people than the copy's."
        raise SetupError("bad-declaration", why, "Name the ledger's own place, or move this one away first.")
    shared = copy.row(head[0])
    if shared is not None and shared.hash == head[1]:
        return ""
    if last is None or last.hash != state.hash:
        return f"entries of the ledger there, which has another history than the copy and {head[0]} entries"
    return f"{head[0] - state.seq} entries of the ledger there, {asks} of them asks"
