"""Counts of one web process, and how several know each other's: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator

import pytest

from sulq.service.logs import BOUNDS
from sulq.service.web.counts import HEAD_BYTES, PART_BYTES, RequestCounts, SharedCounts


@pytest.fixture
def fd() -> Iterator[int]:
    with tempfile.TemporaryFile() as file:
        yield file.fileno()


def test_requests_are_counted_by_what_is_bounded() -> None:
    """A method that nobody defined and an address without a route have one label between them."""
    counts = RequestCounts()
    counts.request("GET", "/v1/me", 200, 0.005)
    counts.request("GET", "/v1/me", 200, 99.0)
    counts.request("BREW", "/v1/me", 405, 0.006, "bad-request")
    counts.request("GET", "", 404, 0.0, "not-found")
    told = counts.told()
    assert [list(each.values()) for each in told["requests"]] == [
        ["GET", "/v1/me", "200", 2], ["none", "/v1/me", "405", 1], ["none", "none", "404", 1],
    ]  # fmt: skip
    assert told["times"][0]["counts"] == [1, *[0] * (len(BOUNDS) - 1), 1]
    assert told["times"][0]["sum"] == 99.005
    assert told["refusals"] == [{"code": "bad-request", "count": 1}, {"code": "not-found", "count": 1}]


def test_each_process_tells_of_all(fd: int) -> None:
    """The one that is asked has its own counts as they are, and others' as they wrote them; the same from each."""
    first, second, third = (SharedCounts(fd, number, 3) for number in range(3))
    assert first.all({"a": 1}) == {"web-0": {"a": 1}}
    second.put({"b": 1})
    second.put({"b": 2})
    assert first.all({"a": 1}) == {"web-0": {"a": 1}, "web-1": {"b": 2}}
    first.put({"a": 1})
    assert third.all({"c": 0}) == {"web-0": {"a": 1}, "web-1": {"b": 2}, "web-2": {"c": 0}}
    assert SharedCounts().all({"a": 1}) == {"web-0": {"a": 1}}


def test_counts_that_are_half_written_or_too_long_are_left_out(fd: int) -> None:
    """A part whose sum does not fit is not read; one that would reach into the next part is not written."""
    first, second = SharedCounts(fd, 0, 2), SharedCounts(fd, 1, 2)
    second.put({"b": 1})
    os.pwrite(fd, b"9", PART_BYTES + HEAD_BYTES + 6)
    assert first.all({}) == {"web-0": {}}
    second.put({"b": 1})
    assert "web-1" in first.all({})
    first.put({"a": "x" * PART_BYTES})
    assert SharedCounts(fd, 1, 2).all({}) == {"web-1": {}}


def test_counts_are_read_whole_while_they_are_written(fd: int) -> None:
    """A writer that never rests is read whole each time it is read at all."""
    writer, reader = SharedCounts(fd, 1, 2), SharedCounts(fd, 0, 2)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            writer.put({"n": [number] * (number % 50)})

    thread = threading.Thread(target=write)
    thread.start()
    try:
        read = [told["web-1"]["n"] for _ in range(2000) if "web-1" in (told := reader.all({}))]
    finally:
        stop.set()
        thread.join()
    assert len(read) > 100
    assert all(len(set(each)) <= 1 for each in read)
