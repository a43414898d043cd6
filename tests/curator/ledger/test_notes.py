"""Idempotency keys within a process."""

from __future__ import annotations

import threading
import time

import pytest

from sulq.curator.ledger.notes import Keys, check_key
from sulq.errors import QuestionError


def test_claims_are_taken_one_after_the_other_T44() -> None:
    """Of many threads that claim one key only one holds it at a time, and all get their turn (T44)."""
    keys = Keys(30.0)
    inside, most, done = [0], [0], []
    lock = threading.Lock()

    def work(number: int) -> None:
        keys.claim("k", "q")
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        time.sleep(0.001)
        with lock:
            inside[0] -= 1
        done.append(number)
        keys.settle("k")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert sorted(done) == list(range(20))


def test_another_question_does_not_wait_T44() -> None:
    """A key held for one question is refused to another at once, and other keys are free."""
    keys = Keys(30.0)
    keys.claim("k", "q")
    keys.claim("l", "r")
    with pytest.raises(QuestionError) as refusal:
        keys.claim("k", "r")
    assert refusal.value.code == "key-reused"
    keys.settle("k")
    keys.settle("k")
    keys.settle(None)
    keys.claim("k", "r")


@pytest.mark.parametrize("key", ["", "\0", "é\n", "x" * 201, None, 1])
def test_what_is_no_key_is_refused(key: object) -> None:
    """A key is short printable text."""
    with pytest.raises(QuestionError):
        check_key(key)
    check_key("x" * 200)
