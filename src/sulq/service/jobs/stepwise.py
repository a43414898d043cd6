"""Work of a job that goes on from one question to the next only when the job does.

It runs in a thread of its own, in the web process, and asks the clerk like any other caller,
question by question; it holds no rows. So a job that was ended asks nothing more.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from sulq.answers.oracle import Progress
from sulq.errors import CuratorError
from sulq.service.jobs.kind import JobStep

T = TypeVar("T")


class Ended(BaseException):
    """The job was ended: no further question may be asked. Not an error, so that no learner can catch it as one."""


class Stepwise(Generic[T]):
    """Work that tells its progress, and takes each step only when the job comes for the next."""

    def __init__(self, work: Callable[[Progress], T]) -> None:
        self.total = 0
        self.found: T
        self._steps: queue.SimpleQueue[JobStep | Exception | None] = queue.SimpleQueue()
        self._next = threading.Semaphore(0)
        self._ended = False
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)

    def steps(self) -> Iterator[JobStep]:
        """The steps of the work, then `found` is there; whoever stops asking ends it before its next question."""
        self._thread.start()
        try:
            while (found := self._steps.get()) is not None:
                if isinstance(found, Exception):
                    raise found
                yield found
                self._next.release()
        finally:
            self._ended = True
            self._next.release()

    def _run(self, work: Callable[[Progress], T]) -> None:
        try:
            self.found = work(self._tell)
            self._steps.put(None)
        except Ended:
            return
        except Exception as error:  # noqa: BLE001 - it is raised where the job runs
            self._steps.put(error)
        except BaseException:  # noqa: BLE001 - a job must end, whatever ends its work
            self._steps.put(CuratorError("engine-failed", "The work was broken off."))

    def _tell(self, done: int, planned: int) -> None:
        self.total = planned
        self._steps.put(JobStep(done, planned, {}))
        self._next.acquire()
        if self._ended:
            raise Ended
