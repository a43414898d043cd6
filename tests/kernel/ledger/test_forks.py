"""A fork never falls into the middle of a transaction."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from sulq.curator.ledger.opening import verify
from sulq.terms.privacy import Epsilon
from tests.curator.ledger.cases import ask, memory_folder, opened, pure


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # later Pythons warn of what is tested here
def test_T67_a_fork_waits_for_the_end_of_a_debit() -> None:
    """Forked while another thread writes, a child finds no transaction open and may close what it inherited (T67)."""
    with memory_folder() as folder:
        path: Path = folder / "a.ledger"
        inside = threading.Event()

        def slow(step: str) -> None:
            if step == "before-commit":
                inside.set()
                time.sleep(0.01)

        ledger = opened(path, Epsilon(100), failpoint=slow)
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                ask(ledger, pure("0.01"))

        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(15):
            inside.clear()
            inside.wait()
            child = os.fork()
            if child == 0:  # pragma: no cover - the child reports by its exit code
                idle = not ledger._writer._store._db.in_transaction
                ledger._writer._store.close()  # what the end of a child's interpreter does
                os._exit(0 if idle else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        thread.join()
        events = ledger.totals.events
        ledger.close()
        assert verify(path).totals.events == events >= 15
