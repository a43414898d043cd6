"""Which job runs next: turns by principal, and room for who has nothing running."""

from __future__ import annotations

import random
from collections import Counter, deque

import pytest

from sulq.service.jobs.queue import FairQueue

SLOTS = 4


class FirstCome:
    """The control: whoever came first, with no regard to whose job it is."""

    def __init__(self, slots: int) -> None:
        self._slots, self._running, self._line = slots, 0, deque()

    def add(self, _owner: str, item: str) -> None:
        self._line.append(item)

    def take(self) -> str | None:
        if self._running == self._slots or not self._line:
            return None
        self._running += 1
        return self._line.popleft()


def begun(queue: FairQueue[str] | FirstCome) -> list[str]:
    return list(iter(queue.take, None))


@pytest.mark.parametrize(("kind", "starts"), [(FairQueue, ["bob"]), (FirstCome, [])])
def test_one_principal_s_long_jobs_do_not_hold_up_another(kind: type, starts: list[str]) -> None:
    """Somebody else's first job starts at once beside them. Control: first come, first served, it waits."""
    queue = kind(SLOTS)
    for number in range(SLOTS):
        queue.add("alice", f"alice {number}")
    assert len(begun(queue)) == SLOTS
    queue.add("bob", "bob")
    assert begun(queue) == starts


def test_everybody_has_a_first_job_up_to_twice_the_slots() -> None:
    """As many more run as there are slots, one of each principal; a second job of theirs waits for a slot."""
    queue: FairQueue[str] = FairQueue(SLOTS)
    for number in range(SLOTS):
        queue.add("alice", f"alice {number}")
    begun(queue)
    for owner in ("bob", "carol", "dan", "eve", "frank"):
        queue.add(owner, owner)
        queue.add(owner, f"{owner} again")
    assert begun(queue) == ["bob", "carol", "dan", "eve"]
    for _ in range(SLOTS):
        queue.end("alice")
        assert begun(queue) == (["frank"] if _ == 0 else [])
    queue.end("bob")
    assert begun(queue) == ["bob again"]


def test_principals_take_turns_then_arrival_counts() -> None:
    """With one slot: one of each in turn, each one's in the order they came."""
    queue: FairQueue[str] = FairQueue(1)
    for number in range(3):
        queue.add("alice", f"alice {number}")
    assert begun(queue) == ["alice 0"]
    queue.add("bob", "bob 0")
    queue.add("bob", "bob 1")
    order = begun(queue)  # beside the slot: bob had nothing running
    running = ["alice", "bob"]
    while running:
        queue.end(running.pop(0))
        found = begun(queue)
        order += found
        running += [item.partition(" ")[0] for item in found]
    assert order == ["bob 0", "alice 1", "bob 1", "alice 2"]


def test_what_waits_can_be_taken_out() -> None:
    """Once; what runs cannot."""
    queue: FairQueue[str] = FairQueue(1)
    queue.add("alice", "a")
    queue.add("alice", "b")
    assert begun(queue) == ["a"]
    assert not queue.drop("alice", "a")
    assert not queue.drop("bob", "b")
    assert queue.drop("alice", "b")
    assert not queue.drop("alice", "b")
    queue.end("alice")
    assert begun(queue) == []


@pytest.mark.parametrize("seed", range(20))
def test_nobody_starves_and_nothing_is_kept(seed: int) -> None:
    """Under random loads: at most twice the slots run, one of all beyond the slots, all begin, nothing is left."""
    draw = random.Random(seed)
    queue: FairQueue[tuple[str, int]] = FairQueue(3)
    running: list[tuple[str, int]] = []
    waiting: set[tuple[str, int]] = set()
    for number in range(300):
        owner = draw.choice("aaaaabcd")
        waiting.add((owner, number))
        queue.add(owner, (owner, number))
        for _ in range(draw.randrange(3)):
            if running:
                queue.end(running.pop(draw.randrange(len(running)))[0])
        while (item := queue.take()) is not None:
            assert len(running) < 3 or item[0] not in {other for other, _ in running}
            running.append(item)
            waiting.remove(item)
        idle = {owner for owner, _ in waiting} - {owner for owner, _ in running}
        assert len(running) <= 6
        assert not idle or len(running) == 6, "who has nothing running waits for nobody's second job"
    while running:
        queue.end(running.pop()[0])
        while (item := queue.take()) is not None:
            running.append(item)
            waiting.remove(item)
    assert not waiting
    assert (queue._waiting, queue._running, queue._served) == ({}, Counter(), {})
