"""Idempotency keys within one process: of threads that ask the same at once, one is charged and the rest wait (T44)."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Final

from sulq.errors import QuestionError

LONGEST: Final = 200
Name = str | tuple[str, str]  # a key, or an analyst and a key


@dataclass(frozen=True, slots=True)
class Claim:
    """A key whose answer is on its way."""

    question: str
    settled: threading.Event = field(default_factory=threading.Event)


def check_key(key: object) -> None:
    """Refuse what is no idempotency key."""
    if not isinstance(key, str) or not 1 <= len(key) <= LONGEST or not key.isprintable():
        raise QuestionError("bad-question", f"An idempotency key is text of 1 to {LONGEST} printable characters.")


class Keys:
    """The keys this process is answering at the moment; each analyst's are apart from all others'."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._lock = threading.Lock()
        self._claims: dict[Name, Claim] = {}

    def claim(self, key: Name, question: str) -> None:
        """Be the one thread that asks with this key, after any other has its answer."""
        deadline = time.monotonic() + self._wait
        while True:
            with self._lock:
                other = self._claims.setdefault(key, mine := Claim(question))
            if other is mine:
                return
            if other.question != question:
                raise QuestionError("key-reused", "This idempotency key was used for another question.")
            if not other.settled.wait(max(deadline - time.monotonic(), 0.0)):
                raise QuestionError("answer-lost", "The first ask with this idempotency key has no answer yet.")

    def settle(self, key: Name | None) -> None:
        """Let the next thread with this key go on: an answer was kept, or there will be none."""
        with self._lock:
            claim = self._claims.pop(key, None) if key is not None else None
        if claim is not None:
            claim.settled.set()
