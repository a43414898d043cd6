"""A fork waits until no ledger of this process is inside SQLite, so a child inherits nothing half done.

SQLite must not be used across a fork: a child that closed an inherited
connection in the middle of a transaction would roll the parent's debit back.
Between transactions an inherited connection holds no lock and no journal, and
the child is refused every use of it.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Held(Protocol):
    """What is kept still while a process forks."""

    def hold(self) -> None:
        """Wait for the end of a transaction and let none begin."""

    def release(self) -> None:
        """Let transactions begin again."""


_open: weakref.WeakSet[Held] = weakref.WeakSet()
_forking = threading.RLock()
_held: list[Held] = []


def watch(ledger: Held) -> None:
    """Keep a ledger still during forks for as long as it lives."""
    with _forking:
        _open.add(ledger)


def _before() -> None:
    _forking.acquire()
    _held[:] = list(_open)
    for ledger in _held:
        ledger.hold()


def _after() -> None:
    for ledger in _held:
        ledger.release()
    _held.clear()
    _forking.release()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
