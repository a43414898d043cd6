"""Opening and verifying from outside."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sulq.curator.ledger.opening import verify
from sulq.errors import SetupError
from sulq.language.privacy import Epsilon, Unit
from tests.curator.ledger.cases import ask, memory_folder, opened, pure
from tests.curator.ledger.places import STORES, empty
from tests.privacy.disks import Disk


@pytest.fixture
def folder() -> object:
    with memory_folder() as found:
        yield found


def refused(code: str, act: object, *args: object, **kwargs: object) -> None:
    with pytest.raises(SetupError) as refusal:
        act(*args, **kwargs)
    assert refusal.value.code == code


@pytest.mark.parametrize("kind", STORES)
def test_verify_reports_what_the_entries_say(kind: str) -> None:
    """The report has the counts, the totals and the head, and verifying changes no byte of a file."""
    with empty(kind) as path, opened(path) as ledger:
        ledger.keep(ask(ledger, pure("0.25")), "1")
        last = ask(ledger, pure("0.5"))
        ledger.flush()
        before = path.read_bytes() if isinstance(path, Path) else b""
        found = verify(path)
        assert (found.entries, found.debits, found.answers) == (4, 2, 1)
        assert (found.spent, found.remaining, found.budget) == (Epsilon(0.75), Epsilon(0.25), Epsilon(1))
        assert (found.unit, found.synthetic, found.space) == (Unit(), False, ledger.space)
        assert found.head != last.entry  # the answer came after
        assert (path.read_bytes() if isinstance(path, Path) else b"") == before
        assert verify(path, mechanisms=("laplace",)) == found
        refused("ledger-damaged", verify, path, mechanisms=("gaussian",))  # SR22
        for part in ("4 entries", found.head, ledger.space, "epsilon 0.75", "one row"):
            assert part in str(found)


def test_what_is_not_there_is_not_verified(folder: Path) -> None:
    """No file, or a folder in its place."""
    refused("missing-file", verify, folder / "none.ledger")
    refused("missing-file", verify, folder)


def test_verify_works_beside_an_open_ledger_and_without_the_right_to_write(folder: Path) -> None:
    """It reads a ledger in use, and one that is read-only."""
    path = folder / "a.ledger"
    with opened(path) as ledger:
        ask(ledger, pure("0.25"))
        assert verify(path).debits == 1
        ask(ledger, pure("0.25"))
    path.chmod(stat.S_IRUSR)
    assert verify(path).debits == 2


def test_an_unfinished_commit_is_rolled_back_by_whoever_comes_next_T47(folder: Path) -> None:
    """A commit cut short leaves a journal; verify and open restore the last whole state from it (T47)."""
    path = folder / "a.ledger"
    with opened(path) as ledger:
        ask(ledger, pure("0.25"))
    images: list[dict[str, bytes]] = []

    class Camera(Disk):
        def before(self, act: str, name: str, offset: int = 0, data: bytes = b"") -> None:
            images.append({file.name: file.read_bytes() for file in folder.iterdir()})

    disk = Camera()
    with opened(path, vfs=disk.name) as ledger:
        ask(ledger, pure("0.5"))
    disk.unregister()
    unfinished = 0
    for number, image in enumerate(images):
        place = folder / str(number)
        place.mkdir()
        for name, content in image.items():
            (place / name).write_bytes(content)
        unfinished += len(image["a.ledger-journal"]) > 0
        found = verify(place / "a.ledger")
        assert found.spent in (Epsilon(0.25), Epsilon(0.75))
        with opened(place / "a.ledger") as ledger:
            assert ledger.spent == found.spent
    assert unfinished > 5


def test_what_is_no_ledger_is_refused(folder: Path) -> None:
    """Another file, an empty one, a folder: none becomes a ledger, none is changed."""
    path = folder / "a.ledger"
    for content in (b"", b"PAR1 and so on", os.urandom(8192)):
        path.write_bytes(content)
        refused("ledger-damaged", opened, path)
        assert path.read_bytes() == content
    refused("missing-file", opened, folder)
