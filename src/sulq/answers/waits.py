"""Questions that run aside, so that who asked may stop waiting: after a timeout, by Ctrl-C, or cancelled.

Python raises a KeyboardInterrupt in the main thread alone, wherever that is: in the middle of a transaction of the
ledger, or in DuckDB, which looks for signals now and then and gives up in words of its own. So a question of the main
thread runs in another one, and the main thread does nothing but wait (docs/decisions/0080-ending-a-call.md).
"""

from __future__ import annotations

import contextvars
import math
import threading
import time
import weakref
from collections.abc import Callable, Collection
from typing import Any, Final, Generic, TypeVar

from sulq.answers.call import UserCall, current, within
from sulq.errors import AccessDenied, CuratorError, SulqError

MAX_END_SECONDS: Final = 10.0  # for which questions that were cancelled are waited for
BEAT_SECONDS: Final = 0.02

T = TypeVar("T")

_aside: contextvars.ContextVar[bool] = contextvars.ContextVar("sulq_aside", default=False)


class Work(Generic[T]):
    """One piece of work of a call: who does it, and what came of it."""

    def __init__(self, call: UserCall, do: Callable[[], T]) -> None:
        self.call = call
        self.thread = 0
        self.over = False
        self.do = do
        self._found: list[T] = []
        self._error: BaseException | None = None
        self._woken = threading.Lock()
        self._woken.acquire()

    def run(self) -> None:
        """Do it, in whatever thread this is."""
        try:
            self._found.append(self.do())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._error = error
        finally:
            self.over = True
            self.wake()

    def wait(self, seconds: float | None) -> bool:
        """Wait until it is over, or somebody wakes who waits; False: so much time went by.

        A signal that comes just before a thread begins to wait does not end the wait, so it is begun again and again.
        """
        until = math.inf if seconds is None else time.monotonic() + seconds
        while not self._woken.acquire(timeout=max(0.0, min(BEAT_SECONDS, until - time.monotonic()))):
            if time.monotonic() >= until:
                return False
        return True

    @property
    def answered(self) -> bool:
        """Whether it has a result, and no error."""
        return bool(self._found)

    def wake(self) -> None:
        """Let whoever waits go on."""
        try:
            self._woken.release()
        except RuntimeError:  # it was done before
            return

    def result(self) -> T:
        """What came of it."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # the error's own frames hold this
        return self._found[0]


class Waits:
    """The questions of one database that are under way.

    `far`: they are answered elsewhere, so whether a debit was written is not waited for.
    """

    def __init__(self, *, far: bool = False) -> None:
        self._far = far
        self._lock = threading.Lock()
        self._calls: weakref.WeakSet[UserCall] = weakref.WeakSet()
        self._under_way: set[Work[Any]] = set()
        self._ended = False

    def run(self, do: Callable[[], T], *, always: bool = True) -> T:
        """Do it here or aside, as whoever called may stop waiting; not `always`: aside only if there is a deadline."""
        call = current()
        if call is None:
            call = UserCall()
        elif call.reason is not None:
            raise call.error()
        main = threading.current_thread() is threading.main_thread()
        wanted = call.deadline is not None or (always and not call.attended and (main or self._far))
        aside, work = wanted and not _aside.get(), Work(call, do)
        if not aside and not always:
            return do()
        with self._lock:
            if self._ended:
                raise AccessDenied("closed", "This database is closed.")
            self._calls.add(call)
            self._under_way.add(work)
        return self._apart(work) if aside else self._here(work)

    def _here(self, work: Work[T]) -> T:
        work.thread = threading.get_ident()
        try:
            with within(work.call):
                return work.do()
        except CuratorError as error:
            if work.call.reason == "cancelled" and error.code == "engine-failed":
                raise work.call.error() from None
            raise
        finally:
            work.over = True
            self._under_way.discard(work)

    def _apart(self, work: Work[T]) -> T:
        call, context = work.call, contextvars.copy_context()

        def run() -> None:
            work.thread = threading.get_ident()
            try:
                context.run(_entered, work)
            finally:
                self._under_way.discard(work)

        thread = threading.Thread(target=run, name="sulq question", daemon=True)
        try:
            if call.left == 0.0:
                call.stop("timed-out")
                raise call.error()
            thread.start()
            if not work.wait(call.left):
                call.stop("timed-out")
            if call.reason is not None and not self._far:
                call.settle(lambda: work.over)
        except SulqError:
            self._under_way.discard(work)  # which was not begun
            raise
        except BaseException as error:  # what a signal's handler raises: Ctrl-C, or the caller's own
            call.stop("interrupted")
            if not thread.is_alive():
                self._under_way.discard(work)
            if not self._far:
                call.settle(lambda: work.over)
            call.explain(error)
            raise
        if not work.over or (call.reason == "cancelled" and not work.answered):
            raise call.error()
        return work.result()

    def cancel(
        self, interrupt: Callable[[Collection[int]], None] = lambda _: None, *, wait: float = MAX_END_SECONDS
    ) -> bool:
        """End all calls under way: who waits goes on at once, and `interrupt` ends what their threads do.

        Returns whether all of it ended within so many seconds.
        """
        with self._lock:
            calls, works = list(self._calls), list(self._under_way)
        for call in calls:
            call.stop("cancelled")
        until = time.monotonic() + wait
        for work in works:
            work.wake()
        while any(not work.over for work in works):
            if time.monotonic() > until:
                return False
            interrupt({work.thread for work in works if not work.over})  # again: a statement may only begin now
            time.sleep(BEAT_SECONDS)
        return True

    def end(self, interrupt: Callable[[Collection[int]], None]) -> bool:
        """Cancel all, and refuse what comes from here on; whether all of it ended."""
        with self._lock:
            self._ended = True
        return self.cancel(interrupt)


def _entered(work: Work[T]) -> None:
    _aside.set(True)
    with within(work.call):
        work.run()
