"""A process of the server ends with those it cannot be without."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from sulq.service.sandbox import launcher

TIED = "import time; from sulq.service.sandbox import isolation; isolation.tied(); print(flush=True); time.sleep(300)"


@pytest.mark.parametrize("unread", [b"", b"unread"])
def test_a_worker_ends_with_its_relay_however_that_ended(unread: bytes) -> None:
    """Whether its end of the channel was closed in order or with something unread in it: at once, without a word."""
    ours, theirs = socket.socketpair()
    told = {**os.environ, launcher.RELAY: str(theirs.fileno())}
    worker = subprocess.Popen(
        [sys.executable, "-c", TIED], pass_fds=[theirs.fileno()], env=told, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert worker.stdout.readline() == "\n"
    theirs.sendall(unread)
    theirs.close()
    assert worker.poll() is None
    ours.close()
    try:
        _, said = worker.communicate(timeout=60)
    finally:
        worker.kill()
        worker.communicate()
    assert (worker.returncode, said) == (4, "")
