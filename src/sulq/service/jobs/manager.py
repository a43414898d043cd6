"""Work that takes longer than a request: progress while it runs, results while it lasts, an end when asked.

A job runs in a web process with its maker's token, and every question it asks
is checked by the clerk like any other: a revoked token stops it. Jobs are kept in
memory, their results up to MAX_RESULTS_BYTES; after a restart their answers are still in the ledger,
and asking the same again is free (SR12).

Of several web processes the first runs all jobs (`LocalJobs`); the others pass on to it what they are
asked (`ForwardedJobs`), over a socket beside the clerk's in the folder that nobody else reaches. It
takes nobody's word for whose a job is: what is passed on comes with the caller's token, and the clerk
says whose that is.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from sulq.errors import AccessDenied, CuratorError, QuestionError, SulqError
from sulq.kernel.entropy import random_bytes
from sulq.service import ipc
from sulq.service.ipc import Frame, SocketPool
from sulq.service.jobs.kind import JobKind, JobStep
from sulq.service.web.requests import Body, Call, ClerkClient, ClerkOracle, mistakes
from sulq.service.web.responses import told

if TYPE_CHECKING:
    from sulq.api.named_asks import NamedAsks

MAX_LIVE_JOBS: Final = 4  # jobs of one principal that wait or run
MAX_JOBS_REMEMBERED: Final = 50  # jobs of one principal that are remembered
MAX_RESULTS_BYTES: Final = 96 * 2**20  # of one principal's results, as JSON; the oldest are let go first
MAX_JOBS_RUNNING: Final = 4  # jobs that run at a time


def kinds() -> tuple[JobKind, ...]:
    """The kinds of job; all learners and releases are loaded for the first who asks, and by no start of the service."""
    from sulq.service.jobs.kinds import KINDS

    return KINDS


@dataclass(slots=True)
class Job:
    """One piece of work; `owner` alone may see it or end it."""

    id: str
    owner: str
    dataset: str
    kind: JobKind
    made: float
    state: str = "waiting"
    step: JobStep = field(default_factory=lambda: JobStep(0, 0, {}))
    over: float = 0.0  # when nothing more was to come
    size: int = 0  # of what it found until then, in bytes
    error: dict[str, str] | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def live(self) -> bool:
        """Whether there is still something to come."""
        return self.state in ("waiting", "running")

    def json(self) -> dict[str, object]:
        """As its maker sees it."""
        return {
            "id": self.id,
            "dataset": self.dataset,
            "kind": self.kind.name,
            "state": self.state,
            "done": self.step.done,
            "total": self.step.total,
            "result": dict(self.step.result) or None,
            "error": self.error,
        }


class Jobs:
    """The jobs of one web process."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._pool = ThreadPoolExecutor(MAX_JOBS_RUNNING, "job")

    def start(self, owner: str, dataset: str, kind: str, parameters: object, asks: NamedAsks) -> Job:
        """Take a job on; its parameters are checked now."""
        known = {item.name: item for item in kinds()}
        if kind not in known:
            raise QuestionError("bad-request", f"A job is one of: {', '.join(known)}.")
        try:
            asked = known[kind].parameters.model_validate(parameters)
        except ValidationError as error:
            raise QuestionError("bad-request", f"The parameters do not fit: {mistakes(error)}.") from None
        job = Job(random_bytes(16).hex(), owner, dataset, known[kind], self._clock())
        with self._lock:
            mine = sorted((item for item in self._jobs.values() if item.owner == owner), key=lambda item: item.made)
            if sum(item.live for item in mine) >= MAX_LIVE_JOBS:
                raise AccessDenied("too-many-jobs", f"{MAX_LIVE_JOBS} jobs of yours are not done yet.")
            for old in [item for item in mine if not item.live][: max(len(mine) - MAX_JOBS_REMEMBERED + 1, 0)]:
                del self._jobs[old.id]
            self._jobs[job.id] = job
        self._pool.submit(self._run, job, asked, asks)
        return job

    def _run(self, job: Job, asked: Body, asks: NamedAsks) -> None:
        self._work(job, asked, asks)
        self._let_go(job)

    def _work(self, job: Job, asked: Body, asks: NamedAsks) -> None:
        if not self._advance(job, "running", None):
            return
        state = "done"
        try:
            for step in job.kind.run(asks, asked):
                if not self._advance(job, "running", step):
                    return
        except SulqError as error:
            state, job.error = "failed", told(error)
        except Exception:  # noqa: BLE001 - whatever it was, the analyst hears one constant (T31)
            state, job.error = "failed", told(CuratorError("engine-failed", ""))
        self._advance(job, state, None)

    def _let_go(self, latest: Job) -> None:
        """Keep at most MAX_RESULTS_BYTES of one principal: the latest whatever its size, of the others the later."""
        size = len(json.dumps(dict(latest.step.result), default=str))
        with self._lock:
            latest.size, latest.over = size, self._clock()
            mine = [job for job in self._jobs.values() if job.owner == latest.owner and job.size and job is not latest]
            left = MAX_RESULTS_BYTES - size
            for job in sorted(mine, key=lambda job: -job.over):
                left -= job.size
                if left < 0:
                    job.step, job.size = JobStep(job.step.done, job.step.total, {}), 0
                    job.error = job.error or told(AccessDenied("result-let-go", "Later results took this one's room."))

    def _advance(self, job: Job, state: str, step: JobStep | None) -> bool:
        """Note a job's progress, unless its maker ended it; what was found until then stays."""
        with self._lock:
            job.step = step or job.step
            if job.live:
                job.state = state
            if not job.live:
                job.ended.set()
            return job.live

    def find(self, owner: str, key: str) -> Job:
        """One's own job."""
        with self._lock:
            job = self._jobs.get(key)
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

    def end(self, owner: str, key: str) -> Job:
        """Ask no further question for a job; what was asked stays paid, and found."""
        job = self.find(owner, key)
        with self._lock:
            if job.live:
                job.state = "cancelled"
        return job

    def close(self) -> None:
        """End all jobs; those at a question finish it."""
        with self._lock:
            for job in self._jobs.values():
                if job.live:
                    job.state = "cancelled"
        self._pool.shutdown(wait=False, cancel_futures=True)


class LocalJobs:
    """Jobs of this process."""

    def __init__(self, jobs: Jobs, call: Call) -> None:
        self._jobs = jobs
        self._call = call

    def do(self, what: str, body: Mapping[str, object], *, token: str, owner: str) -> Frame:
        """`what`: start, find, of or end; the job as its maker sees it, or all of them as `jobs`."""
        if what == "start":
            from sulq.api.named_asks import NamedAsks

            dataset = str(body["dataset"])
            asks = NamedAsks(ClerkOracle(ClerkClient(self._call, token), dataset))
            return self._jobs.start(owner, dataset, str(body["kind"]), body["parameters"], asks).json()
        if what == "of":
            return {"jobs": [job.json() | {"result": None} for job in self._jobs.of(owner)]}
        asked = {"find": self._jobs.find, "end": self._jobs.end}[what]
        return asked(owner, str(body["id"])).json()

    def states(self) -> Frame:
        """How many jobs are in each state."""
        return self._jobs.states()

    def serve(self, listener: socket.socket) -> None:
        """Do what other web processes pass on, a thread for each connection, as long as this process lives."""
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(sock,), daemon=True).start()

    def _talk(self, sock: socket.socket) -> None:
        try:
            with sock:
                while True:
                    ipc.send(sock, self._passed_on(ipc.receive(sock)))
        except (EOFError, OSError, QuestionError):
            pass  # the other process is gone, or what was found is too long for a frame

    def _passed_on(self, frame: Frame) -> Frame:
        if frame["what"] == "states":
            return {"ok": self.states()}
        token = str(frame["token"])
        try:
            owner = str(ClerkClient(self._call, token).ask("whoami")["name"])
            return {"ok": self.do(str(frame["what"]), frame["body"], token=token, owner=owner)}  # type: ignore[arg-type]  # written by ForwardedJobs
        except SulqError as error:
            return ipc.refusal(error)


class ForwardedJobs:
    """Jobs of another web process."""

    def __init__(self, line: SocketPool) -> None:
        self._line = line

    def do(self, what: str, body: Mapping[str, object], *, token: str, owner: str) -> Frame:
        """Have it done; whose the token is they find out there."""
        return ipc.opened(self._line.call({"what": what, "body": dict(body), "token": token}))

    def states(self) -> Frame:
        """How many jobs are in each state."""
        return ipc.opened(self._line.call({"what": "states"}))
