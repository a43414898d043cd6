"""Group commit: one thread writes for all who wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from sulq.curator.ledger.turns import Draft, Turn, Turns
from sulq.errors import CuratorError, SulqError


def settle(batch: Sequence[Turn[object]]) -> None:
    for turn in batch:
        turn.run(None)


def test_waiting_threads_are_served_in_one_batch() -> None:
    """While one batch is written, all who come wait and are written together next; each gets its own result."""
    batches: list[int] = []
    gate = threading.Event()

    def work(batch: Sequence[Turn[object]]) -> None:
        gate.wait()
        batches.append(len(batch))
        settle(batch)

    turns = Turns(work)
    results: dict[int, int] = {}

    def ask(number: int) -> None:
        results[number] = turns.take(Turn(lambda _, number=number: number * 10))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(30)]
    for thread in threads:
        thread.start()
    while len(turns._waiting) < 29:
        time.sleep(0.001)
    gate.set()
    for thread in threads:
        thread.join()
    assert sorted(batches) == [1, 29]
    assert results == {n: n * 10 for n in range(30)}


def test_one_refusal_does_not_touch_the_others() -> None:
    """A turn that is refused gets its own error."""

    def refuse(_: Draft) -> int:
        raise CuratorError("ledger-failed", "no")

    turns = Turns(settle)
    with pytest.raises(CuratorError):
        turns.take(Turn(refuse))
    assert turns.take(Turn(lambda _: 1)) == 1


def test_nobody_is_left_waiting_when_the_writer_breaks_down() -> None:
    """If writing raises, the leader sees the error, the rest of its batch get no result, and the queue goes on."""
    gate = threading.Event()
    broken = threading.Event()

    def work(batch: Sequence[Turn[object]]) -> None:
        gate.wait()
        if not broken.is_set():
            broken.set()
            raise KeyboardInterrupt
        if len(batch) > 1:
            raise ZeroDivisionError
        settle(batch)

    turns = Turns(work)
    outcomes: list[object] = []

    def ask() -> None:
        try:
            outcomes.append(turns.take(Turn(lambda _: "done")))
        except (SulqError, KeyboardInterrupt, ZeroDivisionError) as error:
            outcomes.append(type(error))

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    while len(turns._waiting) < 9:
        time.sleep(0.001)
    gate.set()
    for thread in threads:
        thread.join(10)
    assert outcomes.count(KeyboardInterrupt) == 1
    assert outcomes.count(ZeroDivisionError) == 1
    assert outcomes.count(CuratorError) == 8
    assert turns.take(Turn(lambda _: "done")) == "done"


def interrupt() -> None:
    raise KeyboardInterrupt


def test_who_is_interrupted_while_waiting_leaves_the_queue() -> None:
    """A thread that gives up, even one already called to lead, does not hold the others up."""
    turns = Turns(settle)
    turns._led = True  # somebody is writing
    quitter: Turn[object] = Turn(lambda _: 1)
    quitter.woken.wait = interrupt
    with pytest.raises(KeyboardInterrupt):
        turns.take(quitter)
    assert turns._waiting == []
    results: list[object] = []
    quitter.woken.set()
    with pytest.raises(KeyboardInterrupt):
        turns.take(quitter)  # called to lead, and gone
    assert not turns._led
    results.append(turns.take(Turn(lambda _: 2)))
    assert results == [2]


def test_an_interrupted_leader_leaves_the_queue_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a leader waits for others neither blocks the next ask nor lets its own turn through."""
    turns = Turns(settle)
    turns._last = 2  # as if two had been served together: the leader waits for the other

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("sulq.curator.ledger.turns.time.sleep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            turns.take(Turn(lambda _: 1))
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(turns.take(Turn(lambda _: 2))), daemon=True)
    thread.start()
    thread.join(5)
    assert found == [2]
