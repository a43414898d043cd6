"""Copies of a ledger: a prefix, checked and private, of one that is in use; put back only where nothing is lost."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from sulq.curator.ledger import backup as backups
from sulq.curator.ledger.backup import backup, restore
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import verify
from sulq.errors import SetupError, SulqError
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.entries import State
from sulq.language.privacy import Epsilon, EpsilonDelta
from tests.curator.ledger.cases import MECHANISMS, ask, memory_folder, opened, pure
from tests.curator.ledger.places import STORES, Place, empty, store_at


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of the ledger's, with another for what lies on other volumes."""
    with memory_folder() as found:
        (found / "away").mkdir()
        yield found


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with empty(request.param) as found:
        yield found


@pytest.fixture
def open_to_all() -> Iterator[None]:
    """Files that are made without a word about their mode may be read by everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


def lived(ledger: Ledger, number: int, first: int = 0) -> None:
    for each in range(first, first + number):
        ledger.keep(ask(ledger, pure("0.001"), f"q{each}"), f'"answer {each}"')


def rows(place: Place) -> list[Row]:
    store = store_at(place)
    try:
        return [*store.rows()]
    finally:
        store.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def copied(source: Place, to: Path, **told: object) -> object:
    return backup(source, to, mechanisms=MECHANISMS, **told)


def put_back(copy: Path, place: Path, **told: object) -> backups.Restored:
    return restore(copy, place, mechanisms=MECHANISMS, **told)


def code(refusal: pytest.ExceptionInfo[SulqError]) -> str:
    return refusal.value.code


def test_a_copy_made_during_a_storm_of_debits_is_a_sound_prefix(place: Place, folder: Path) -> None:
    """Copies made while four threads ask verify, and each is what the ledger begins with; nobody who asks is refused.

    Control: a plain copy of the entries without the head that belongs to them does not verify.
    """
    stop = threading.Event()
    asked: list[int] = []
    with opened(place, EpsilonDelta(100, 1e-6)) as ledger:
        lived(ledger, 50)

        def storm(number: int) -> None:
            while not stop.is_set():
                lived(ledger, 1, 1000 * number + len(asked))
                asked.append(number)

        crowd = [threading.Thread(target=storm, args=(number,)) for number in range(1, 5)]
        for each in crowd:
            each.start()
        for number in range(3):
            before = len(asked)
            copied(place, folder / f"{number}.copy")
            while len(asked) < before + 5:
                assert all(each.is_alive() for each in crowd)
        stop.set()
        for each in crowd:
            each.join(60)
        ledger.flush()
        whole = rows(place)
    found = [rows(folder / f"{number}.copy") for number in range(3)]
    for number, copy in enumerate(found):
        assert verify(folder / f"{number}.copy", mechanisms=MECHANISMS).entries == len(copy) >= 50
        assert copy == whole[: len(copy)]
    assert len(found[0]) < len(found[1]) < len(found[2]) < len(whole)
    db = apsw.Connection(str(folder / "0.copy"))
    db.execute("DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries)")
    db.close()
    with pytest.raises(SetupError) as refusal:
        verify(folder / "0.copy")
    assert code(refusal) == "ledger-damaged"


@pytest.mark.usefixtures("open_to_all")
def test_a_copy_is_its_owners_alone_from_its_first_byte(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the umask, every file is 0600 while it is written and after. Control: a file made plainly is 0666."""
    seen: set[int] = set()
    real = State.follow

    def follow(state: State, row: Row) -> None:
        real(state, row)
        seen.update(mode(path) for path in (folder / "away").iterdir())

    (folder / "plain").touch()
    assert mode(folder / "plain") == 0o666
    with opened(folder / "a.ledger") as ledger:
        lived(ledger, 5)
    monkeypatch.setattr(State, "follow", follow)
    copied(folder / "a.ledger", folder / "away" / "a.ledger")
    put_back(folder / "away" / "a.ledger", folder / "away" / "b.ledger")
    assert seen == {0o600}
    assert [mode(path) for path in (folder / "away").iterdir()] == [0o600, 0o600]


def test_a_copy_takes_no_others_place(folder: Path) -> None:
    """A file that is there stays as it is, whatever it is and whatever is said; no draft is left.

    Control: an older copy of the same ledger is replaced where it is said.
    """
    with opened(folder / "a.ledger") as ledger:
        lived(ledger, 2)
    (folder / "away" / "copy").write_text("mine")
    for to in ("away/copy", "b.ledger", "a.ledger"):
        with pytest.raises(SetupError) as refusal:
            copied(folder / "a.ledger", folder / to)
        assert code(refusal) == "bad-declaration"
    other = folder / "away" / "other.ledger"
    with opened(other) as ledger:
        lived(ledger, 1)
    for to in (folder / "away" / "copy", other):
        kept = to.read_bytes()
        with pytest.raises(SetupError) as refusal:
            copied(folder / "a.ledger", to, overwrite=True)
        assert code(refusal) == "bad-declaration"
        assert to.read_bytes() == kept
    older = folder / "away" / "older"
    copied(folder / "a.ledger", older)
    with opened(folder / "a.ledger") as ledger:
        lived(ledger, 1, 2)
    copied(folder / "a.ledger", older, overwrite=True)
    assert (verify(older).debits, mode(older)) == (3, 0o600)
    assert not [path for path in folder.iterdir() if path.name.endswith(".new") or "replaced" in path.name]
    left = {path.name.removesuffix("-journal") for path in (folder / "away").iterdir()}
    assert left == {"copy", "older", "other.ledger"}


def test_a_damaged_ledger_is_not_copied(folder: Path) -> None:
    """What does not verify is neither copied nor put back, and leaves no file. Control: mended it is copied."""
    with opened(folder / "a.ledger") as ledger:
        lived(ledger, 3)
    changed = "UPDATE entries SET body = replace(body, ?, ?) WHERE seq = 2"
    db = apsw.Connection(str(folder / "a.ledger"))
    db.execute(changed, ('"kind"', '"kinp"'))
    for act in (copied, put_back):
        with pytest.raises(SetupError) as refusal:
            act(folder / "a.ledger", folder / "away" / "copy.ledger")
        assert code(refusal) == "ledger-damaged"
        assert not [*(folder / "away").iterdir()]
    db.execute(changed, ('"kinp"', '"kind"'))
    db.close()
    copied(folder / "a.ledger", folder / "away" / "copy.ledger")


def test_an_older_copy_is_refused_and_says_what_would_be_forgotten_T46(folder: Path) -> None:
    """Nothing is changed unless it is accepted; then the one that was there is kept beside it.

    Control: a copy that has all that the ledger there has is put back without a word.
    """
    place, copy = folder / "a.ledger", folder / "away" / "copy"
    with opened(place) as ledger:
        lived(ledger, 3)
    copied(place, copy)
    newest = folder / "away" / "newest"
    with opened(place) as ledger:
        lived(ledger, 4, 3)
    copied(place, newest)
    before = place.read_bytes()
    with pytest.raises(SetupError, match="4 of them asks") as refusal:
        put_back(copy, place)
    assert code(refusal) == "ledger-rolled-back"
    assert place.read_bytes() == before
    found = put_back(copy, place, forget=True)
    assert (found.report.debits, verify(place).debits, found.burnt) == (3, 3, {})
    assert found.kept is not None
    assert verify(found.kept).debits == 7
    found = put_back(newest, place)
    assert (found.forgotten, verify(place).debits, mode(place)) == ("", 7, 0o600)
    with opened(place) as ledger:  # a history that the newest copy does not share
        lived(ledger, 1, 7)
    put_back(copy, place, forget=True)
    with opened(place) as ledger:
        lived(ledger, 9, 20)
    with pytest.raises(SetupError, match="another history") as refusal:
        put_back(newest, place)
    assert code(refusal) == "ledger-rolled-back"
    assert {path.name for path in folder.iterdir()} >= {"a.ledger.replaced-1", "a.ledger.replaced-2"}


@pytest.mark.parametrize("lost", [False, True])
def test_what_an_anchor_noted_is_burnt_when_an_older_copy_is_put_back_T46(folder: Path, *, lost: bool) -> None:
    """With the ledger gone its anchor alone knows: refused, then charged, and the ledger opens; nothing is free again.

    Control: a copy that the anchor does not find old is put back and nothing is burnt.
    """
    place, copy, anchor = folder / "a.ledger", folder / "away" / "copy", folder / "away" / "a.anchor"
    with opened(place, anchor=anchor) as ledger:
        lived(ledger, 3)
        copied(place, copy)
        lived(ledger, 4, 3)
        spent = ledger.spent
    if lost:
        place.unlink()
    with pytest.raises(SetupError) as refusal:
        put_back(copy, place)
    assert code(refusal) == "bad-anchor"
    with pytest.raises(SetupError, match="4 asks that its anchor noted") as refusal:
        put_back(copy, place, anchor=anchor)
    assert code(refusal) == "ledger-rolled-back"
    assert place.exists() is not lost
    found = put_back(copy, place, anchor=anchor, forget=True)
    assert sum(loss.events for loss in found.burnt.values()) == 4
    assert verify(place).spent == found.report.spent == spent
    with opened(place, anchor=anchor) as ledger:
        lived(ledger, 1, 9)
    copied(place, folder / "away" / "new")
    found = put_back(folder / "away" / "new", place, anchor=anchor)
    assert (found.forgotten, found.burnt) == ("", {})


def test_a_ledger_of_other_people_is_not_replaced_whatever_is_said_T98(folder: Path) -> None:
    """The wrong path is no way to lose a ledger. Control: its own copy is put there."""
    for name in ("a", "b"):
        with opened(folder / f"{name}.ledger") as ledger:
            lived(ledger, 2)
        copied(folder / f"{name}.ledger", folder / "away" / name)
    for told in ({}, {"forget": True}):
        with pytest.raises(SetupError) as refusal:
            put_back(folder / "away" / "a", folder / "b.ledger", **told)
        assert code(refusal) == "bad-declaration"
    put_back(folder / "away" / "b", folder / "b.ledger")


def test_a_ledger_that_cannot_be_read_is_replaced_when_it_is_accepted(folder: Path) -> None:
    """Nobody knows what it held, so it is said; it is kept, with the journal that belongs to it and to no other."""
    place, copy = folder / "a.ledger", folder / "away" / "copy"
    with opened(place) as ledger:
        lived(ledger, 3)
    copied(place, copy)
    place.write_bytes(bytes(5000))
    journal = folder / "a.ledger-journal"
    journal.write_bytes(b"the journal of a transaction that was cut off")
    with pytest.raises(SetupError, match="cannot be read") as refusal:
        put_back(copy, place)
    assert code(refusal) == "ledger-rolled-back"
    found = put_back(copy, place, forget=True)
    assert found.kept is not None
    assert found.kept.read_bytes() == bytes(5000)
    assert not journal.exists()
    with opened(place) as ledger:
        lived(ledger, 1, 3)


def test_who_has_the_replaced_ledger_open_writes_to_it_no_more(folder: Path) -> None:
    """A debit after the copy was put back is refused rather than written where nobody reads it."""
    place, copy = folder / "a.ledger", folder / "away" / "copy"
    with opened(place, Epsilon(5)) as ledger:
        lived(ledger, 2)
        ledger.flush()
        copied(place, copy)
        put_back(copy, place)
        with pytest.raises(SulqError) as refusal:
            ask(ledger, pure("0.001"), "late")
        assert code(refusal) == "ledger-failed"
    assert verify(place).debits == 2


def test_a_ledger_in_postgresql_is_put_back_by_its_own_tools() -> None:
    """It is refused and says what to use."""
    with pytest.raises(SetupError, match="own tools") as refusal:
        restore("copy", "postgresql://nowhere/base?ledger=a", mechanisms=MECHANISMS)
    assert "pg_restore" in refusal.value.remedy
