"""What the web processes ask of the jobs' process, over a socket in the folder that nobody else reaches.

Nobody's word is taken for whose a job is: each call comes with its caller's token, and the clerk says whose that is.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from typing import cast

from sulq.errors import QuestionError, SulqError
from sulq.service import ipc
from sulq.service.ipc import Frame
from sulq.service.jobs import kinds
from sulq.service.jobs.manager import Jobs
from sulq.service.web.requests import Call, ClerkClient


def offers() -> list[dict[str, object]]:
    """The kinds of job, the JSON schemas of their parameters and their forms."""
    return [
        {"name": kind.name, "title": kind.title, "parameters": kind.parameters.model_json_schema(), "form": kind.form}
        for kind in kinds.KINDS
    ]


class JobCalls:
    """The calls: kinds, health and states of anyone; start, find, of and end by whom a token names."""

    def __init__(self, jobs: Jobs, call: Call, health: Mapping[str, object] | None = None) -> None:
        self._jobs = jobs
        self._call = call
        self._health = dict(health or {})

    def reply(self, frame: Mapping[str, object]) -> Frame:
        """Do what a frame says."""
        try:
            return {"ok": self._done(str(frame["what"]), cast("Frame", frame["body"]), str(frame["token"]))}
        except SulqError as error:
            return ipc.refusal(error)

    def _done(self, what: str, body: Frame, token: str) -> Frame:
        if what == "kinds":
            return {"kinds": offers()}
        if what == "health":
            return {**self._health, "runners": self._jobs.confined}
        if what == "states":
            return self._jobs.states()
        owner = str(ClerkClient(self._call, token).ask("whoami")["name"])
        if what == "of":
            return {"jobs": [self._jobs.json(job) | {"result": None} for job in self._jobs.of(owner)]}
        if what == "start":
            dataset, kind = str(body["dataset"]), str(body["kind"])
            return self._jobs.json(self._jobs.start(owner, dataset, kind, body["parameters"], token))
        asked = {"find": self._jobs.find, "end": self._jobs.end}[what]
        return self._jobs.json(asked(owner, str(body["id"])))

    def serve(self, listener: socket.socket) -> None:
        """Answer, a thread for each connection, as long as this process lives."""
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
                    ipc.send(sock, self.reply(ipc.receive(sock)))
        except (EOFError, OSError, QuestionError):
            pass  # the other process is gone, or what was found is too long for a frame
