"""Looks by processes of their own: each reply to whoever waits for it, a note before an exact count."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

import sulq
from sulq.errors import SetupError
from sulq.service.clerk.file_looks import FileLooks, noted_look
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
