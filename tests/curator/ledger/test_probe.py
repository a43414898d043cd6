"""What a ledger says of itself between debits: it writes no entry, and notices what would stop the next one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sulq.curator.ledger import probe
from sulq.curator.ledger.probe import check_room
from sulq.curator.ledger.turns import SqliteFile
from sulq.errors import SetupError
from sulq.language.privacy import Epsilon
from tests.curator.ledger.cases import ask, memory_folder, opened, pure
from tests.curator.ledger.places import STORES, empty


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as found:
        yield found


def test_a_probe_adds_no_entry_and_leaves_no_file(folder: Path) -> None:
    """However often, in between debits: head, file and folder are as before. Control: a debit moves the head."""
    with opened(folder / "a.ledger", Epsilon(1), anchor=folder / "a.anchor") as ledger:
        ask(ledger, pure("0.1"))
        before = (ledger.head, ledger.last_known, (folder / "a.ledger").read_bytes(), sorted(folder.iterdir()))
        for _ in range(3):
            ledger.probe()
        assert before == (
            ledger.head, ledger.last_known, (folder / "a.ledger").read_bytes(), sorted(folder.iterdir())
        )  # fmt: skip
        assert not ledger.failed
        assert ledger.anchored
        ask(ledger, pure("0.1"))
        assert ledger.head != before[0]
        assert ledger.contains(*before[1])
        assert ledger.contains(*ledger.last_known)
        assert not ledger.contains(ledger.last_known[0], before[1][1])


def test_what_it_covers_is_known_without_its_file(folder: Path) -> None:
    """The same as its file says, also when that cannot be read any more. Control: the file's own word cannot be had."""
    with opened(folder / "a.ledger", Epsilon(1)) as ledger:
        assert ledger.known_book == ledger.book
        known = ledger.known_book
        (folder / "a.ledger").write_bytes(b"")
        with pytest.raises(SetupError):
            ledger.book  # noqa: B018 - it is read
        assert ledger.known_book == known


def test_a_file_that_was_moved_ends_the_ledger(folder: Path) -> None:
    """It would be written where nobody looks for it. Control: in its place it is well."""
    with opened(folder / "a.ledger", Epsilon(1)) as ledger:
        ledger.probe()
        (folder / "a.ledger").rename(folder / "b.ledger")
        with pytest.raises(SetupError) as refused:
            ledger.probe()
        assert refused.value.code == "ledger-rolled-back"
        assert ledger.failed
    with opened(folder / "b.ledger", Epsilon(1)) as ledger:
        ledger.probe()


def test_a_file_that_cannot_be_written_is_said_to_be_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes debits again when it can. Control: before and after it is well."""
    with opened(folder / "a.ledger", Epsilon(1)) as ledger:
        ledger.probe()
        with monkeypatch.context() as patch:
            patch.setattr(SqliteFile, "readonly", True)
            with pytest.raises(SetupError) as refused:
                ledger.probe()
            assert refused.value.code == "ledger-failed"
        assert not ledger.failed
        ledger.probe()


def test_room_is_tried_for_by_writing_and_given_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left, whether there was room or not; a folder that is gone is no room."""
    written = []
    usual = os.write

    def short(handle: int, data: bytes) -> int:
        written.append(usual(handle, data[:1000]))
        return written[-1]

    monkeypatch.setattr(probe.os, "write", short)
    check_room(folder)
    assert sum(written) == probe.ROOM_BYTES
    assert list(folder.iterdir()) == []
    monkeypatch.setattr(probe.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(SetupError, match="Input/output error"):
        check_room(folder)
    assert list(folder.iterdir()) == []
    with pytest.raises(SetupError) as refused:
        check_room(folder / "gone")
    assert refused.value.code == "ledger-failed"


@pytest.mark.parametrize("kind", STORES)
def test_a_ledger_is_probed_wherever_it_lies(kind: str) -> None:
    """In a file and in PostgreSQL."""
    with empty(kind) as where, opened(where, Epsilon(1)) as ledger:
        ledger.probe()
