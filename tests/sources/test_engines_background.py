"""Rows made ready aside: one thread, progress, waiting, and a failure that is heard once."""

from __future__ import annotations

import threading

import pytest

from sulq.errors import SetupError
from sulq.sources.engines import Preparation


class Slow:
    """Something to make ready that goes on when it is told to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()
        self.failure = failure
        self.done = 0

    def ready(self) -> None:
        self.begun.set()
        assert self.go.wait(30)
        if self.failure is not None:
            raise self.failure
        self.done += 1


def test_it_is_made_ready_aside_with_progress() -> None:
    """Progress is there while it works and None before and after; the owner's own function is told too."""
    slow, told = Slow(), list[float]()
    aside = Preparation(slow.ready, told.append)
    assert aside.part is None
    aside.start()
    aside.start()  # a second start changes nothing
    assert slow.begun.wait(30)
    assert aside.part == 0.0
    aside.tell(0.5)
    assert aside.part == 0.5
    slow.go.set()
    aside.wait()
    assert (aside.part, slow.done, told) == (None, 1, [0.5])


def test_who_needs_the_rows_waits() -> None:
    """`ready` comes back only after the thread is done."""
    slow = Slow()
    aside = Preparation(slow.ready)
    aside.start()
    came = threading.Event()
    waiting = threading.Thread(target=lambda: (aside.ready(), came.set()))
    waiting.start()
    assert not came.wait(0.2)
    slow.go.set()
    waiting.join(30)
    assert came.is_set()


def test_a_failure_is_heard_once_by_the_next() -> None:
    """Raised where the rows are needed; the one after that tries again."""
    slow = Slow(SetupError("unreadable-data", "No."))
    slow.go.set()
    aside = Preparation(slow.ready)
    aside.start()
    aside.wait()
    slow.failure = None
    with pytest.raises(SetupError):
        aside.ready()
    assert slow.done == 0
    aside.ready()
    assert slow.done == 1
