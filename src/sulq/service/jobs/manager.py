"""Work that takes longer than a request: progress while it runs, results while it lasts, an end when asked.

A job runs in a web process (the first, `job_calls`) with its maker's token, and every question it asks
is checked by the clerk like any other: a revoked token stops it. Jobs are kept in
memory, their results up to MAX_RESULTS_BYTES; after a restart their answers are still in the ledger,
and asking the same again is free (SR12). Each kind of job is one entry of KINDS.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import ConfigDict, Field, ValidationError

from sulq.api.named_asks import NamedAsks
from sulq.errors import AccessDenied, CuratorError, QuestionError, SulqError
from sulq.kernel.entropy import random_bytes
from sulq.service.jobs.kind import JobKind, JobStep
from sulq.service.jobs.learn_jobs import learners
from sulq.service.jobs.release_jobs import releases
from sulq.service.web.answer_json import loss_of, sql_json
from sulq.service.web.limits import MAX_PLANNED_QUERIES
from sulq.service.web.openapi import Spend
from sulq.service.web.requests import Body, mistakes
from sulq.service.web.responses import told

MAX_LIVE_JOBS: Final = 4  # jobs of one principal that wait or run
MAX_JOBS_REMEMBERED: Final = 50  # jobs of one principal that are remembered
MAX_RESULTS_BYTES: Final = 96 * 2**20  # of one principal's results, as JSON; the oldest are let go first
MAX_JOBS_RUNNING: Final = 4  # jobs that run at a time


class QueriesBody(Body):
    """Several queries: at one total that is divided so that the worst error is smallest, or each at its own spend."""

    model_config = ConfigDict(title="Queries")

    queries: Annotated[list[str], Field(min_length=1, max_length=256)]
    spend: Spend | None = None
    spends: list[Spend] | None = None
    beta: Annotated[float, Field(gt=0, lt=1)] = 0.05


def _queries(desk: NamedAsks, asked: QueriesBody) -> Iterator[JobStep]:
    if (asked.spend is None) == (asked.spends is None):
        raise QuestionError("spend-missing", "Name one total as spend, or one of spends for each query.")
    if asked.spends is not None:
        spends = [loss_of(tree) for tree in asked.spends]
    else:
        if len(asked.queries) > MAX_PLANNED_QUERIES:
            raise QuestionError("bad-question", f"A total is divided over {MAX_PLANNED_QUERIES} queries at most.")
        total = loss_of(asked.spend)
        spends = [] if total is None else list(desk.plan(asked.queries, spend=total, beta=asked.beta).spends)
    if len(spends) != len(asked.queries):
        raise QuestionError("bad-question", "Give one spend for each query.")
    answers: list[dict[str, object]] = []
    yield JobStep(0, len(spends), {"answers": []})
    for text, spend in zip(asked.queries, spends, strict=True):
        answers.append(sql_json(desk.sql(text, spend=spend)))
        yield JobStep(len(answers), len(spends), {"answers": list(answers)})


# A learner joins by its name in LEARNERS, a release in RELEASES or SELECTIONS; parameters are those of a signature.
KINDS: Final[tuple[JobKind, ...]] = (
    JobKind("queries", "Several queries at one total", QueriesBody, _queries), *learners(), *releases(),
)  # fmt: skip


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

    def start(self, owner: str, dataset: str, kind: str, parameters: object, desk: NamedAsks) -> Job:
        """Take a job on; its parameters are checked now."""
        known = {item.name: item for item in KINDS}
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
        self._pool.submit(self._run, job, asked, desk)
        return job

    def _run(self, job: Job, asked: Body, desk: NamedAsks) -> None:
        self._work(job, asked, desk)
        self._let_go(job)

    def _work(self, job: Job, asked: Body, desk: NamedAsks) -> None:
        if not self._advance(job, "running", None):
            return
        state = "done"
        try:
            for step in job.kind.run(desk, asked):
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
