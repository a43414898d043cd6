"""Answers that wait: an ask is one commit, and its answer is written with the next, or soon."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from sulq import Sums, connect, lit
from sulq.curator.ledger import late_answers
from sulq.curator.ledger.opening import verify
from sulq.errors import SetupError
from sulq.kernel.ledger.sqlite import SqliteStore
from sulq.language.domain import Int
from sulq.language.privacy import Epsilon
from tests.curator.ledger.cases import ask, memory_folder, opened, pure


def answers_of(path: Path) -> int:
    return verify(path).answers


def commits_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows by one with each commit to a file."""
    found: list[int] = []
    commit = SqliteStore.commit
    monkeypatch.setattr(SqliteStore, "commit", lambda self: (found.append(1), commit(self))[1])
    return found


def test_an_ask_is_one_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Named asks one after another are a commit each; with an idempotency key there are two."""
    monkeypatch.setattr(late_answers, "WAIT_SECONDS", 60)
    with memory_folder() as folder:
        (folder / "d.csv").write_text("x\n1\n2\n")
        with connect(folder / "d.csv", columns={"x": Int(0, 9)}, budget=Epsilon(100)) as db:
            db.count(spend=Epsilon(1))
            commits = commits_of(monkeypatch)
            for number in range(5):
                db.count(spend=Epsilon(1 + number / 9), fresh=True)
            assert len(commits) == 5
            assert answers_of(db._ledger.path) == 5  # each went with the next debit; the last one waits
            assert db.count(spend=Epsilon(1)).reused  # of the answer that waits, or was written
            assert len(commits) == 5
            db.ask(Sums((lit(1),)), spend=Epsilon(1), key="k")
            assert len(commits) == 7
        assert len(commits) == 7
        assert answers_of(db._ledger.path) == 7


def test_an_answer_is_written_where_no_debit_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a moment. Control: where the moment is longer it waits for the next transaction."""
    monkeypatch.setattr(late_answers, "WAIT_SECONDS", 60)
    with memory_folder() as folder:
        with opened(folder / "a.ledger") as ledger:
            ledger.keep(ask(ledger, pure("0.1")), "1")
            time.sleep(0.3)
            assert answers_of(folder / "a.ledger") == 0
        monkeypatch.setattr(late_answers, "WAIT_SECONDS", 0.01)
        with opened(folder / "a.ledger") as ledger:
            ledger.keep(ask(ledger, pure("0.1")), "2")
            until = time.monotonic() + 30
            while answers_of(folder / "a.ledger") < 2 and time.monotonic() < until:
                time.sleep(0.01)
            assert answers_of(folder / "a.ledger") == 2


def test_a_process_that_ends_without_closing_writes_its_answers() -> None:
    """A script that closes nothing leaves its last answer behind; killed, it loses it and the debit stands."""
    program = (
        "import os, sys; from pathlib import Path; from tests.curator.ledger.cases import ask, opened, pure\n"
        "ledger = opened(Path(sys.argv[1])); ledger.keep(ask(ledger, pure('0.1')), '1')\n"
        "os._exit(0) if len(sys.argv) > 2 else None"
    )
    with memory_folder() as folder:
        for name, more, answers in (("a", [], 1), ("b", ["killed"], 0)):
            path = folder / f"{name}.ledger"
            subprocess.run([sys.executable, "-c", program, str(path), *more], check=True)
            assert (verify(path).debits, answers_of(path)) == (1, answers)


def test_a_database_that_is_dropped_leaves_its_answer_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened once more in one process, closed or not, the ledger has the answer: asked again it is free."""
    monkeypatch.setattr(late_answers, "WAIT_SECONDS", 60)
    with memory_folder() as folder:
        (folder / "d.csv").write_text("x\n1\n2\n")

        def asked() -> bool:
            db = connect(folder / "d.csv", columns={"x": Int(0, 9)}, budget=Epsilon(100))
            return bool(db.count(spend=Epsilon(1)).reused)

        found = []
        for _ in range(3):
            found.append(asked())
            gc.collect()
        assert found == [False, True, True]


def test_an_answer_that_was_promised_is_written_or_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a key and a busy file the ask ends in an error, and the answer is written when the file is free."""
    monkeypatch.setattr(late_answers, "WAIT_SECONDS", 0.05)
    with memory_folder() as folder, opened(folder / "a.ledger", wait=0.1) as ledger:
        receipt = ledger.debit(pure("0.1"), question="q", plan_digest="p", key="k")
        other = apsw.Connection(str(folder / "a.ledger"))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SetupError) as refused:
            ledger.keep(receipt, "1")
        assert refused.value.code == "ledger-busy"
        other.execute("ROLLBACK")
        other.close()
        until = time.monotonic() + 30
        while answers_of(folder / "a.ledger") < 1 and time.monotonic() < until:
            time.sleep(0.01)
        assert answers_of(folder / "a.ledger") == 1
        assert ledger.debit(pure("0.1"), question="q", plan_digest="p", key="k").stored == "1"
