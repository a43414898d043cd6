"""The jobs' process as the web processes call it; loads no learner and no release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from sulq.errors import SulqError
from sulq.service import ipc
from sulq.service.ipc import Frame
from sulq.service.web.requests import Call

MAX_CALL_SECONDS: Final = 60.0  # a call of the jobs' process, which may just be started
MAX_HEALTH_SECONDS: Final = 1.0


def nobody(_frame: Mapping[str, object]) -> Frame:
    """In place of a call where there is no such process."""
    raise ipc.away()


class JobsClient:
    """Calls of the jobs' process; `hasty` is for what must not wait."""

    def __init__(self, call: Call = nobody, hasty: Call | None = None) -> None:
        self._call = call
        self._hasty = call if hasty is None else hasty
        self._kinds: list[dict[str, object]] = []

    def do(self, what: str, body: Mapping[str, object], *, token: str) -> Frame:
        """`what`: start, find, of or end; the job as its maker sees it, or all of them as `jobs`."""
        return ipc.opened(self._call({"what": what, "body": dict(body), "token": token}))

    def kinds(self) -> list[dict[str, object]]:
        """The kinds of job; asked for once, as they are the program's own."""
        if not self._kinds:
            self._kinds = cast("list[dict[str, object]]", self.do("kinds", {}, token="")["kinds"])
        return self._kinds

    def states(self) -> Frame:
        """How many jobs of all principals are in each state.

        Raises:
            CuratorError: the process does not answer.
        """
        return ipc.opened(self._hasty({"what": "states", "body": {}, "token": ""}))

    def health(self) -> Frame:
        """How the process and its children are kept apart; nothing where it does not answer."""
        try:
            return ipc.opened(self._hasty({"what": "health", "body": {}, "token": ""}))
        except SulqError:
            return {}
