"""What a process uses: its own numbers, which move as they should."""

from __future__ import annotations

import os
import sys
import time

import pytest

from sulq.service.process_use import process_use


def test_time_memory_and_open_files_follow_what_the_process_does() -> None:
    """Work adds CPU seconds, a hundred megabytes add to memory, ten pipes add twenty files."""
    before = process_use()
    assert before["start_seconds"] <= time.time()
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    held = bytearray(os.urandom(1)) * 10**8
    pipes = [os.pipe() for _ in range(10)]
    after = process_use()
    for pair in pipes:
        for each in pair:
            os.close(each)
    assert after["cpu_seconds"] >= before["cpu_seconds"] + 0.05
    if not sys.platform.startswith("linux"):
        pytest.skip("memory and files are told where there is /proc")
    assert after["resident_bytes"] >= before["resident_bytes"] + 0.9 * len(held)
    assert after["open_files"] == before["open_files"] + 20
    assert process_use()["open_files"] == before["open_files"]
