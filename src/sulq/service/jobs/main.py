"""The jobs' process: no data, no ledger, no access store, no network; the clerk's socket and its own listener.

Started by the supervisor as `python -m sulq.service.jobs.main`; on its standard input one line of JSON: `listen`, the
listening socket's descriptor; `clerk`, the path of the clerk's socket; `service`, the settings; `key`, what ids of jobs
are marked with; `outside`, the network it must not be in. The process that was started forks the jobs' processes; its
first child manages them.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from functools import partial
from typing import Final, cast

from sulq.service.ipc import SocketPool
from sulq.service.jobs.calls import JobCalls
from sulq.service.jobs.fork_server import ForkServer
from sulq.service.jobs.manager import Jobs
from sulq.service.sandbox import isolation
from sulq.service.settings import Service, Tree

NOWHERE: Final = "/nonexistent"
MIB: Final = 2**20


def main() -> None:
    """Run jobs until told to stop; they end with this process."""
    # No folder here is ours to write; a job's library that only asks where files would lie must not fail at that.
    tempfile.tempdir = tempfile.tempdir or NOWHERE
    isolation.closed()
    rights = isolation.rights()  # of this process and all that it forks
    children = ForkServer.become()  # before there is a thread, a setting or a token
    told = isolation.settings("jobs")
    children.watch(lambda: os._exit(4))  # the next one has another
    service = Service.from_json(cast("Tree", told["service"]))
    outside = cast("int", told["outside"])
    launch = partial(children.start, memory=service.job_memory * MIB, outside=outside)
    line = SocketPool(str(told["clerk"]))
    key = bytes.fromhex(str(told["key"]))
    jobs = Jobs(launch, line.call, slots=service.jobs, limit=service.job_limit, key=key)
    threading.Thread(target=jobs.probe, daemon=True).start()
    apart = isolation.network() not in (0, outside)
    told_apart = {"network": "namespace" if apart else "open", "files": isolation.files(), "rights": rights}
    JobCalls(jobs, line.call, told_apart).serve(socket.socket(fileno=cast("int", told["listen"])))


if __name__ == "__main__":
    main()
