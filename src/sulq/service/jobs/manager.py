"""Jobs of all principals: which runs when, how long, with what memory; progress, results while they last, an end.

Each job runs in a child of its own (`Launch`), which may be ended at once. The child has no token: it asks through
here, and its maker's token is put to its calls of one dataset's questions and of nothing else, so that every question
is checked by the clerk like any other and a revoked token stops the job. Jobs are kept in memory, their results up
to MAX_RESULTS_BYTES; when this process ends they are gone, and whoever asks for one hears so, by the job's id.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from pydantic import ValidationError

from sulq.errors import AccessDenied, CuratorError, QuestionError, SulqError
from sulq.kernel.entropy import random_bytes
from sulq.service import ipc
from sulq.service.ipc import Frame
from sulq.service.jobs import kinds
from sulq.service.jobs.kind import JobKind, JobStep
from sulq.service.jobs.queue import FairQueue
from sulq.service.settings import JOB_LIMIT_SECONDS, JOBS
from sulq.service.web.requests import DENIED, Call, mistakes
from sulq.service.web.responses import told

MAX_LIVE_JOBS: Final = 4  # jobs of one principal that wait or run
MAX_JOBS_REMEMBERED: Final = 50  # jobs of one principal that are remembered
MAX_RESULTS_BYTES: Final = 96 * 2**20  # of one principal's results, as JSON; the oldest are let go first
MAX_JOB_BYTES: Final = 48 * 2**20  # of one job's result: it must fit a frame with room to spare
MAX_AWAY_SECONDS: Final = 60.0  # a question waits so long for a clerk or a dataset that is being started
RETRY_SECONDS: Final = 0.5
PAUSE_FACTOR: Final = 2  # as long as an ask of a job took, for others' asks, before its maker's jobs ask again
MAX_PAUSE_SECONDS: Final = 2.0
CALLS: Final = frozenset({"facts", "ask", "terms", "afford"})  # what a job may ask of the clerk
ID_BYTES: Final = 16  # of which the second half shows that the id was given out, and to whom

_log = logging.getLogger(__name__)


class JobRunner(Protocol):
    """A child that runs one job: the socket to it, which ends when it does, and the way to end it."""

    @property
    def sock(self) -> socket.socket:
        """Frames as in jobs.runner."""

    def kill(self) -> None:
        """End it at once."""


Launch = Callable[[], JobRunner]


@dataclass(eq=False, slots=True)
class Job:
    """One piece of work; `owner` alone may see it or end it."""

    id: str
    owner: str
    dataset: str
    kind: JobKind
    made: float
    parameters: object = field(repr=False)
    token: str = field(repr=False)  # its maker's, while there are questions to ask
    state: str = "waiting"
    step: JobStep = field(default_factory=lambda: JobStep(0, 0, {}))
    deadline: float | None = None  # while it runs
    over: float = 0.0  # when nothing more was to come
    size: int = 0  # of what it found so far, in bytes
    error: dict[str, str] | None = None
    runner: JobRunner | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def live(self) -> bool:
        """Whether there is still something to come."""
        return self.state in ("waiting", "running")

    def json(self, now: float) -> dict[str, object]:
        """As its maker sees it."""
        left = None if self.deadline is None or self.state != "running" else max(int(self.deadline - now), 0)
        return {
            "id": self.id,
            "dataset": self.dataset,
            "kind": self.kind.name,
            "state": self.state,
            "done": self.step.done,
            "total": self.step.total,
            "seconds_left": left,
            "result": dict(self.step.result) or None,
            "error": self.error,
        }


class Jobs:
    """The jobs of the service.

    Args:
        launch: starts a child.
        call: reaches the clerk.
        slots: jobs that run at a time; see jobs.queue.
        limit: seconds a job may run.
        key: the same for the processes that follow this one, so that they know its ids.
        clock: for tests.
    """

    def __init__(
        self,
        launch: Launch,
        call: Call,
        *,
        slots: int = JOBS,
        limit: float = JOB_LIMIT_SECONDS,
        key: bytes | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._launch = launch
        self._call = call
        self._limit = limit
        self._key = random_bytes(ID_BYTES) if key is None else key
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._queue: FairQueue[Job] = FairQueue(slots)
        self._asking: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)  # by principal
        self._closed = False
        self.confined: Frame = {}  # what the latest child gave up

    def start(self, owner: str, dataset: str, kind: str, parameters: object, token: str) -> Job:
        """Take a job on; its parameters are checked now."""
        known = {item.name: item for item in kinds.KINDS}
        if kind not in known:
            raise QuestionError("bad-request", f"A job is one of: {', '.join(known)}.")
        try:
            known[kind].parameters.model_validate(parameters)
        except ValidationError as error:
            raise QuestionError("bad-request", f"The parameters do not fit: {mistakes(error)}.") from None
        job = Job(self._named(owner), owner, dataset, known[kind], self._clock(), parameters, token)
        with self._lock:
            mine = sorted((item for item in self._jobs.values() if item.owner == owner), key=lambda item: item.made)
            if sum(item.live for item in mine) >= MAX_LIVE_JOBS:
                raise AccessDenied("too-many-jobs", f"{MAX_LIVE_JOBS} jobs of yours are not done yet.")
            for old in [item for item in mine if not item.live][: max(len(mine) - MAX_JOBS_REMEMBERED + 1, 0)]:
                del self._jobs[old.id]
            self._jobs[job.id] = job
            self._queue.add(owner, job)
        self._fill()
        return job

    def _fill(self) -> None:
        """Run what may run."""
        with self._lock:
            while not self._closed and (job := self._queue.take()) is not None:
                job.deadline = self._clock() + self._limit
                threading.Thread(target=self._run, args=(job,), daemon=True).start()

    def _run(self, job: Job) -> None:
        """One job from its child's start to its end."""
        timer = threading.Timer(self._limit, self._overrun, (job,))
        timer.daemon = True
        timer.start()
        try:
            error = self._attend(job)
        except Exception as failed:  # noqa: BLE001 - its kind is the operator's to see, and the slot must be free again
            _log.error("a job could not be run", extra={"error": type(failed).__name__})
            error = told(CuratorError("engine-failed", ""))
        timer.cancel()
        with self._lock:
            if job.live:
                job.state, job.error = ("done", None) if error is None else ("failed", error)
            job.parameters, job.token, job.runner = None, "", None
            self._queue.end(job.owner)
        self._let_go(job)
        code = "" if job.error is None else job.error["code"]
        _log.info("a job ended", extra={"job": job.kind.name, "state": job.state, "code": code})
        job.ended.set()
        self._fill()

    def _attend(self, job: Job) -> dict[str, str] | None:
        """Hear a child out; the error it ended with, if it did."""
        runner = self._launch()
        with runner.sock:
            with self._lock:
                job.runner = runner
                live = job.live
            if not live:  # it was ended while the child was started
                runner.kill()
                return None
            try:
                ipc.send(runner.sock, {"dataset": job.dataset, "kind": job.kind.name, "parameters": job.parameters})
                while True:
                    frame = ipc.receive(runner.sock)
                    if "call" in frame:
                        ipc.send(runner.sock, self._asked(job, frame))
                    elif "confined" in frame:
                        self._begin(job, _frame(frame["confined"]))
                    elif "done" in frame:
                        self._advance(job, frame)
                    else:
                        return self._last(frame)
            except QuestionError as error:  # what it found, or what it sent, is too long or is no frame
                return told(error)
            except (EOFError, OSError):
                return told(AccessDenied("job-lost", "The process that ran this job has ended before the job."))
            finally:
                runner.kill()

    def _last(self, frame: Frame) -> dict[str, str] | None:
        try:
            ipc.opened(frame if "error" in frame else {"ok": {}})
        except SulqError as error:
            return told(error)
        return None

    def _asked(self, job: Job, frame: Frame) -> Frame:
        """A job's call of the clerk, with its maker's token.

        Of all jobs of a principal one asks at a time, and then pauses twice as long as it took: however many jobs ask,
        they keep no more than a third of the time from asks that somebody waits for.
        """
        if frame["call"] not in CALLS:
            return ipc.refusal(AccessDenied("forbidden", "A job asks questions of its dataset and calls nothing else."))
        asked = {"call": frame["call"], "token": job.token, "dataset": job.dataset, "body": frame.get("body")}
        until = self._clock() + MAX_AWAY_SECONDS
        while True:
            with self._asking[job.owner]:
                begun = self._clock()
                try:
                    reply = dict(self._call(asked) if job.live else ipc.refusal(CuratorError("engine-failed", "")))
                except SulqError as error:
                    reply = ipc.refusal(error)
                if job.live:
                    time.sleep(min(PAUSE_FACTOR * (self._clock() - begun), MAX_PAUSE_SECONDS))
            code = _frame(reply.get("error")).get("code")
            if code in DENIED:
                self._stop(job, "failed", _told(reply))
            if code != "not-ready" or not job.live or self._clock() > until:  # nothing is paid of what is not ready
                return reply
            time.sleep(RETRY_SECONDS)

    def _begin(self, job: Job, confined: Frame) -> None:
        """Its child is there, and has given up what it must."""
        self.confined = confined
        with self._lock:
            if job.live:
                job.state = "running"

    def _advance(self, job: Job, frame: Frame) -> None:
        """Note a job's progress, unless it was ended; what was found until then stays."""
        result = _frame(frame["result"])
        size = len(json.dumps(result))
        if "answers" in frame:
            size += job.size + len(json.dumps(frame["answers"]))
            result["answers"] = [*_list(job.step.result.get("answers")), *_list(frame["answers"])]
        if size > MAX_JOB_BYTES:
            raise QuestionError("too-large", "What the job found is too long to be kept.")
        with self._lock:
            job.step, job.size = JobStep(_whole(frame["done"]), _whole(frame["total"]), result), size

    def _overrun(self, job: Job) -> None:
        text = f"The job was ended after {self._limit:g} seconds; what it had found until then is here."
        self._stop(job, "failed", told(AccessDenied("job-overrun", text)))

    def _stop(self, job: Job, state: str, error: dict[str, str] | None = None) -> None:
        """End a job now, whatever it does; a question that is under way ends by itself, and stays paid."""
        with self._lock:
            if not job.live:
                return
            waited = self._queue.drop(job.owner, job)
            job.state, job.error = state, error
            runner = job.runner
            if waited:
                job.parameters, job.token, job.over = None, "", self._clock()
        if runner is not None:
            runner.kill()
        if waited:
            job.ended.set()

    def _let_go(self, latest: Job) -> None:
        """Keep at most MAX_RESULTS_BYTES of one principal: the latest whatever its size, of the others the later."""
        with self._lock:
            latest.over = self._clock()
            mine = [job for job in self._jobs.values() if job.owner == latest.owner and job.over and job is not latest]
            left = MAX_RESULTS_BYTES - latest.size
            for job in sorted((job for job in mine if job.size), key=lambda job: -job.over):
                left -= job.size
                if left < 0:
                    job.step, job.size = JobStep(job.step.done, job.step.total, {}), 0
                    job.error = job.error or told(AccessDenied("result-let-go", "Later results took this one's room."))

    def find(self, owner: str, key: str) -> Job:
        """One's own job."""
        with self._lock:
            job = self._jobs.get(key)
        if job is None and hmac.compare_digest(
            self._mark(owner, key[:ID_BYTES]), key[ID_BYTES:].encode(errors="replace")
        ):
            raise AccessDenied("job-lost", "The server keeps no jobs when it is started again, and of many the latest.")
        if job is None or job.owner != owner:
            raise AccessDenied("not-found", "There is no such job.")
        return job

    def of(self, owner: str) -> list[Job]:
        """One's own jobs, the latest first."""
        with self._lock:
            mine = [job for job in self._jobs.values() if job.owner == owner]
        return sorted(mine, key=lambda job: -job.made)

    def states(self) -> Frame:
        """How many jobs of all principals are in each state."""
        with self._lock:
            return dict(Counter(job.state for job in self._jobs.values()))

    def json(self, job: Job) -> dict[str, object]:
        """A job as its maker sees it now."""
        with self._lock:
            return job.json(self._clock())

    def end(self, owner: str, key: str) -> Job:
        """End a job; what was asked stays paid, and found."""
        job = self.find(owner, key)
        self._stop(job, "cancelled")
        return job

    def probe(self) -> None:
        """Start a child without a job, to see what it gives up on this machine."""
        runner = self._launch()
        with runner.sock, contextlib.suppress(EOFError, OSError, QuestionError):
            self.confined = _frame(ipc.receive(runner.sock).get("confined"))
        runner.kill()

    def close(self) -> None:
        """End all jobs; questions under way are finished by the clerk."""
        with self._lock:
            self._closed = True
            live = [job for job in self._jobs.values() if job.live]
        for job in live:
            self._stop(job, "cancelled")

    def _named(self, owner: str) -> str:
        """An id that nobody guesses, and that a later process knows to have been its maker's."""
        first = random_bytes(ID_BYTES // 2).hex()
        return first + self._mark(owner, first).decode()

    def _mark(self, owner: str, first: str) -> bytes:
        said = f"{first} {owner}".encode(errors="replace")
        return hmac.new(self._key, said, hashlib.sha256).hexdigest()[:ID_BYTES].encode()


def _told(reply: Frame) -> dict[str, str]:
    """A refusal of the clerk's as its reader is told it."""
    try:
        ipc.opened(reply)
    except SulqError as error:
        return told(error)
    raise ValueError("no refusal")


def _frame(value: object) -> Frame:
    return dict(value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
