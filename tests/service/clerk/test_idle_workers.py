"""Handing out workers: to whom it is known first, to one ask at a time, and to nobody when it is over."""

from __future__ import annotations

import threading
import time

import pytest

from sulq.service.clerk import idle_workers
from sulq.service.clerk.idle_workers import IdleWorkers


def taking(idle: IdleWorkers[str], patience: float, wanted: str | None = None) -> tuple[threading.Thread, list[object]]:
    """A thread that waits for a worker; it is among those that wait when this returns."""
    found: list[object] = []
    before = len(idle._waiting)
    thread = threading.Thread(target=lambda: found.append(idle.take(patience, wanted)))
    thread.start()
    until = time.monotonic() + 30
    while len(idle._waiting) == before and time.monotonic() < until:
        time.sleep(0.001)
    return thread, found


def test_workers_are_handed_out_in_the_order_they_came() -> None:
    """Nobody waits while one is idle, and nobody gets one that is not."""
    idle: IdleWorkers[str] = IdleWorkers()
    assert idle.take(0.01) is None
    idle.give("a")
    idle.give("b")
    assert (idle.take(1), idle.take(1, "a"), len(idle)) == ("a", "b", 0)


def test_a_worker_goes_to_the_ask_it_has_certified_before_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was charged waits for the worker that knows it, and goes before what is yet to be certified."""
    monkeypatch.setattr(idle_workers, "MAX_WANTED_SECONDS", 60)
    idle: IdleWorkers[str] = IdleWorkers()
    first, any_ = taking(idle, 60)
    second, own = taking(idle, 60, "a")
    idle.give("a")
    second.join()
    assert (own, any_) == (["a"], [])
    idle.give("b")
    first.join()
    assert any_ == ["b"]


def test_an_ask_waits_a_moment_for_its_worker_and_then_takes_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is busy for long, or gone, holds up nothing that was charged."""
    monkeypatch.setattr(idle_workers, "MAX_WANTED_SECONDS", 0.01)
    idle: IdleWorkers[str] = IdleWorkers()
    idle.give("b")
    assert idle.take(60, "gone") == "b"
    waiting, found = taking(idle, 60, "gone")
    time.sleep(0.05)
    idle.give("b")
    waiting.join()
    assert found == ["b"]


def test_every_worker_is_given_once_however_many_wait() -> None:
    """Threads that take and give for a while never share a worker, and none is lost."""
    idle: IdleWorkers[str] = IdleWorkers()
    names = ["a", "b", "c"]
    for name in names:
        idle.give(name)
    held = dict.fromkeys(names, 0)
    wrong: list[str] = []

    def work(place: int) -> None:
        for number in range(200):
            worker = idle.take(30, names[(place + number) % 3] if number % 2 else None)
            if worker is None or held[worker]:
                wrong.append(str(worker))
                return
            held[worker] += 1
            held[worker] -= 1
            idle.give(worker)

    crowd = [threading.Thread(target=work, args=(place,)) for place in range(8)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert not wrong
    assert sorted(idle.withdraw(lambda _: True)) == names


def test_nobody_is_left_waiting_when_it_is_over() -> None:
    """Closed, it wakes all that wait, and gives nothing more."""
    idle: IdleWorkers[str] = IdleWorkers()
    waiting, found = taking(idle, 60)
    idle.close()
    waiting.join()
    assert (found, idle.take(60)) == ([None], None)
