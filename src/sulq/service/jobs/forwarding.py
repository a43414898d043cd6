"""Where jobs are asked about: they run in one web process, and the others pass on to it what they are asked.

The first web process has the jobs and listens on a socket of its own for the
others, which lies beside the clerk's in the folder that nobody else reaches. It
takes nobody's word for whose a job is: what is passed on comes with the caller's
token, and the clerk says whose that is.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping

from sulq.api.named_asks import NamedAsks
from sulq.errors import QuestionError, SulqError
from sulq.service import ipc
from sulq.service.ipc import Frame, SocketPool
from sulq.service.jobs.manager import Jobs
from sulq.service.web.clerk_oracle import Call, ClerkClient, ClerkOracle

Body = Mapping[str, object]


class LocalJobs:
    """Jobs of this process."""

    def __init__(self, jobs: Jobs, call: Call) -> None:
        self._jobs = jobs
        self._call = call

    def do(self, what: str, body: Body, *, token: str, owner: str) -> Frame:
        """`what`: start, find, of or end; the job as its maker sees it, or all of them as `jobs`."""
        if what == "start":
            dataset = str(body["dataset"])
            desk = NamedAsks(ClerkOracle(ClerkClient(self._call, token), dataset))
            return self._jobs.start(owner, dataset, str(body["kind"]), body["parameters"], desk).json()
        if what == "of":
            return {"jobs": [job.json() | {"result": None} for job in self._jobs.of(owner)]}
        asked = {"find": self._jobs.find, "end": self._jobs.end}[what]
        return asked(owner, str(body["id"])).json()

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

    def do(self, what: str, body: Body, *, token: str, owner: str) -> Frame:
        """Have it done; whose the token is they find out there."""
        return ipc.opened(self._line.call({"what": what, "body": dict(body), "token": token}))
