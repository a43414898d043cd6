"""Jobs whose children are threads of the test's, so that kinds of the test's own can run; the frames are the real ones.

What a child of its own process has beside that, limits and an end at once, is tested in jobs/test_fork_server.py.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from sulq.answers import wire
from sulq.api.named_asks import NamedAsks
from sulq.errors import SulqError
from sulq.service import ipc
from sulq.service.ipc import Frame
from sulq.service.jobs import runner
from sulq.service.jobs.calls import JobCalls
from sulq.service.jobs.client import JobsClient
from sulq.service.jobs.manager import Job, Jobs
from sulq.service.web.requests import Call


class NearRunner:
    """A child that is a thread; its end is that of its socket."""

    def __init__(self) -> None:
        self.sock, theirs = socket.socketpair()
        threading.Thread(target=self._work, args=(theirs,), daemon=True).start()

    def _work(self, theirs: socket.socket) -> None:
        with theirs, contextlib.suppress(OSError, EOFError):
            ipc.send(theirs, {"confined": {}})
            runner.work(theirs)

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)


class NearJobs:
    """The jobs' process without the process."""

    def __init__(self, call: Call, **more: object) -> None:
        self.jobs = Jobs(NearRunner, call, **more)
        self.calls = JobCalls(self.jobs, call)
        self.client = JobsClient(lambda frame: ipc._read(ipc.framed(self.calls.reply(frame))[ipc.LENGTH_BYTES :]))


class Several:
    """Jobs that ask databases of the test's, named by tokens of the test's."""

    def __init__(self, **more: object) -> None:
        self._databases: dict[str, NamedAsks] = {}
        self.jobs = Jobs(NearRunner, self._called, **more)

    def start(self, owner: str, dataset: str, kind: str, parameters: object, asks: NamedAsks) -> Job:
        token = f"token-{len(self._databases)}"
        self._databases[token] = asks
        return self.jobs.start(owner, dataset, kind, parameters, token)

    def told(self, job: Job) -> dict[str, object]:
        return self.jobs.json(job)

    def _called(self, frame: Mapping[str, object]) -> Frame:
        """As the clerk does what a job may ask."""
        oracle, body = self._databases[frame["token"]]._oracle, frame["body"]
        assert frame["dataset"] == "survey"
        try:
            if frame["call"] in ("facts", "terms"):
                return {"ok": {"facts": wire.to_json(oracle.facts), "limit": None}}
            if frame["call"] == "afford":
                return {"ok": {"left": wire.to_json(oracle.afford(wire.from_json(body["events"])))}}
            question, spend = wire.from_json(body["question"]), wire.from_json(body["spend"])
            if body.get("stored"):
                return {"ok": {"answer": wire.to_json(oracle.stored(question, spend=spend))}}
            asked = {"key": body["key"], "reuse": body["reuse"]}
            return {"ok": {"answer": wire.to_json(oracle.ask(question, spend=spend, **asked))}}
        except SulqError as error:
            return ipc.refusal(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.jobs.close()
