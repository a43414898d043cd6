"""The process that counts how declarations fit: its reply in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

import sulq
from sulq.service.clerk.registration import declare
from sulq.service.settings import DatasetSettings
from sulq.service.worker.row_check import counted

CANARY = "Secret-Person-31"


@pytest.mark.parametrize(("rows", "dropped"), [(1, 1), ("auto", 0)])
def test_the_reply_has_counts_and_no_cell(tmp_path: Path, rows: object, dropped: int) -> None:
    """As its settings came through the supervisor; where the number of rows is yet to be chosen none is dropped."""
    (tmp_path / "a.csv").write_text(f"pid,x\na,1\na,77\n{CANARY},{CANARY}\n", encoding="utf-8")
    unit = sulq.Unit("pid", rows=rows)
    declared = declare("a", tmp_path / "a.csv", {"x": (0, 9)}, budget=sulq.Epsilon(1), unit=unit)
    reply = counted(DatasetSettings.from_json(declared.for_worker().to_json()))
    (found,) = reply["ok"]["tables"]
    assert (found["dropped"], found["columns"][0]["above"], found["columns"][0]["unread"]) == (dropped, 1, 1)
    assert CANARY not in str(reply)


def test_what_cannot_be_read_is_one_refusal_T31(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of the bytes is in it, nor in the log."""
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + CANARY.encode())
    declared = declare("a", tmp_path / "a.parquet", {"x": (0, 9)}, budget=sulq.Epsilon(1))
    reply = counted(declared)
    assert reply["error"]["code"] == "unreadable-data"
    assert CANARY not in str(reply) + caplog.text
