"""Looks by processes of their own: each reply to whoever waits for it, a note before an exact count."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

import sulq
from sulq.curator.ledger.opening import covers_at
from sulq.curator.ledger.sources import Source
from sulq.errors import SetupError
from sulq.service.clerk.file_looks import FileLooks, known_books, noted_look, refuse_copies, refuse_known
from sulq.service.clerk.registration import declare
from sulq.service.ipc import Frame


def test_each_reply_goes_to_whoever_waits_for_it() -> None:
    """Numbers tell them apart; one that nobody waits for is dropped, and one that never comes is refused."""
    said: list[Frame] = []
    looks = FileLooks(said.append)
    found: list[Frame] = []
    threads = [threading.Thread(target=lambda: found.append(looks.take({"look": "a"}, 10.0))) for _ in range(2)]
    for thread in threads:
        thread.start()
    while len(said) < 2:
        pass
    for frame in said:
        looks.heard({"looked": frame["number"], "reply": {"ok": {"n": frame["number"]}}})
    for thread in threads:
        thread.join()
    assert sorted(each["n"] for each in found) == [1, 2]
    looks.heard({"looked": 1, "reply": {"ok": {}}})
    with pytest.raises(SetupError, match="could not be looked at"):
        looks.take({"look": "a"}, 0.01)


def test_a_look_at_rows_is_noted_beside_the_ledger_SR28(tmp_path: Path) -> None:
    """Before any process is started for it; refused where a ledger covers the rows, or lies in a database."""
    (tmp_path / "a.csv").write_text("x\n1\n", encoding="utf-8")
    declared = declare("a", tmp_path / "a.csv", {"x": (0, 9)}, budget=sulq.Epsilon(1))
    noted_look(declared)
    assert (tmp_path / "a.looked").exists()
    (tmp_path / "a.ledger").touch()
    with pytest.raises(SetupError) as covered:
        noted_look(declared)
    assert covered.value.code == "covered-source"
    with pytest.raises(SetupError) as refused:
        noted_look(replace(declared, ledger="postgresql://localhost/x?ledger=a"))
    assert refused.value.code == "not-available"


def refused(call: object) -> bool:
    try:
        call()
    except SetupError as error:
        return error.code == "covered-source"
    return False


def test_a_file_of_any_dataset_is_not_counted_wherever_its_ledger_lies_SR28(tmp_path: Path) -> None:
    """By path, by link, by size, as a public table too, its ledger there or not; control: another file is."""
    (tmp_path / "a.csv").write_text("x\n1\n", encoding="utf-8")
    (tmp_path / "link.csv").hardlink_to(tmp_path / "a.csv")
    (tmp_path / "same.csv").write_text("x\n2\n", encoding="utf-8")
    (tmp_path / "d.csv").write_text("x\n1\n2\n", encoding="utf-8")
    words = {"budget": sulq.Epsilon(1)}
    for ledger in (str(tmp_path / "far" / "x.ledger"), "postgresql://localhost/x?ledger=a"):
        ours = declare("a", tmp_path / "a.csv", {"x": (0, 9)}, ledger=ledger, **words)
        found = {
            name: refused(
                lambda name=name, ours=ours: refuse_known(
                    declare(
                        "t", {"d": tmp_path / "d.csv", "t": tmp_path / name}, {"d": {"x": (0, 9)}, "t": {"x": (0, 9)}},
                        public=("t",), **words,
                    ),
                    [ours], [], None,
                )
            )
            for name in ("a.csv", "link.csv", "same.csv", "d.csv")
        }  # fmt: skip
        assert found == {"a.csv": True, "link.csv": True, "same.csv": True, "d.csv": False}


def test_a_copy_is_known_by_its_bytes_and_a_ledger_that_is_away_refuses_T98(tmp_path: Path) -> None:
    """What a worker says of bytes is compared with every ledger; control: before it is read nobody can tell."""
    (tmp_path / "far").mkdir()
    (tmp_path / "a.csv").write_text("x\n1\n", encoding="utf-8")
    ledger = tmp_path / "far" / "x.ledger"
    with sulq.connect(
        tmp_path / "a.csv", columns={"x": (0, 9)}, budget=sulq.Epsilon(1), ledger=ledger, unit=sulq.Unit()
    ):
        pass
    (tmp_path / "a.csv").rename(tmp_path / "far" / "gone.csv")
    (tmp_path / "c.csv").write_text("x\n1\n", encoding="utf-8")
    books = known_books([], {}, {str(ledger)})
    assert [book.opened for book in books] == [book.opened for book in covers_at([ledger])]
    source = Source.file(tmp_path / "c.csv")
    refuse_copies([source.unread()], books)
    assert refused(lambda: refuse_copies([source.read()], books))
    ledger.unlink()
    assert refused(lambda: known_books([], {}, {str(ledger)}))
    assert refused(lambda: known_books([], {}, {"postgresql://localhost/x?ledger=a"}))
