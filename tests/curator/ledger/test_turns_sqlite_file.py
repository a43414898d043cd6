"""A ledger's file: begun whole, by one alone, for its owner's eyes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sulq.curator.ledger.turns import SqliteFile
from sulq.errors import SetupError
from sulq.kernel.ledger.chain import ORIGIN, Row, canonical, link
from tests.curator.ledger.cases import ask, memory_folder, opened, pure


@pytest.fixture
def folder() -> object:
    with memory_folder() as found:
        yield found


def test_the_file_is_its_owners_alone(folder: Path) -> None:
    """Ledger and journal have mode 0600 under any umask (T90)."""
    before = os.umask(0)
    try:
        with opened(folder / "a.ledger") as ledger:
            ask(ledger, pure("0.1"))
            modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    finally:
        os.umask(before)
    assert modes == {0o600}
    assert {path.name for path in folder.iterdir()} == {"a.ledger", "a.ledger-journal"}


def test_a_ledger_is_never_begun_over_another(folder: Path) -> None:
    """Who comes second to create a ledger leaves the first one's alone, and no draft behind."""
    path = folder / "a.ledger"
    bodies = [canonical({"n": n}) for n in (1, 2)]
    rows = [[Row(1, body, link(ORIGIN, 1, body))] for body in bodies]
    SqliteFile.create(path, rows[0])
    with pytest.raises(FileExistsError):
        SqliteFile.create(path, rows[1])
    store = SqliteFile(str(path))
    assert list(store.rows()) == rows[0]
    store.close()
    assert [file.name for file in folder.iterdir()] == ["a.ledger"]


def test_a_journal_without_its_ledger_is_not_taken_over(folder: Path) -> None:
    """Beginning a ledger beside a journal left by another would roll that back into it: refused."""
    (folder / "a.ledger-journal").write_bytes(b"something")
    with pytest.raises(SetupError) as refusal:
        opened(folder / "a.ledger")
    assert refusal.value.code == "ledger-damaged"
    (folder / "a.ledger-journal").write_bytes(b"")
    opened(folder / "a.ledger").close()
