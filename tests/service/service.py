"""A running service for tests: a generated dataset, a clerk behind its socket, an owner, two analysts, an auditor."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet
import pytest

import sulq
from sulq.errors import SulqError
from sulq.service.clerk.access import Access
from sulq.service.clerk.main import Clerk
from sulq.service.clerk.registration import declare
from sulq.service.clerk.worker_pool import OpenDataset
from sulq.service.ipc import Frame, SocketPool
from sulq.service.sandbox import launcher
from sulq.service.settings import DatasetSettings, Service
from sulq.service.supervisor import process
from sulq.service.supervisor.main import Supervisor

ROOT = Path(__file__).resolve().parents[2]

ROWS = 2000
COLUMNS = {"age": sulq.Int(0, 120), "income": sulq.Int(0, 100_000), "city": ["Haifa", "Lod", "Yafo"]}

CONNECTS = """
import json, socket, sys
def tried(port):
    try:
        socket.create_connection(("127.0.0.1", int(port)), 30).close()
    except PermissionError:
        return False
    return True
print(json.dumps([tried(port) for port in sys.argv[1:]]))
"""


def survey(path: Path, rows: int = ROWS) -> Path:
    """A small data file: the same rows every time."""
    numbers = range(rows)
    table = pa.table(
        {
            "person": list(numbers),
            "age": [18 + (i * 37) % 70 for i in numbers],
            "income": [(i * 7919) % 100_000 for i in numbers],
            "city": [("Haifa", "Lod", "Yafo")[i % 3] for i in numbers],
        }
    )
    pa.parquet.write_table(table, path)
    return path


@dataclass
class Running:
    """What a test needs of a service: the clerk's socket and a token for each of them."""

    folder: Path
    socket: Path
    tokens: dict[str, str]
    url: str = ""
    clerk: Clerk | None = None
    supervisor: Supervisor | None = None
    line: SocketPool | None = None

    def ask(self, who: str, call: str, body: Frame | None = None, dataset: str | None = "survey") -> Frame:
        """One call of the clerk's table by one of them."""
        if self.line is None:
            self.line = SocketPool(self.socket, timeout=300)
        return self.line.ask(call, token=self.tokens[who], dataset=dataset, body=body)

    def ready(self, dataset: str = "survey", seconds: float = 240.0) -> None:
        """Wait until a dataset can be asked, and every worker of its is there."""
        until = time.monotonic() + seconds
        while True:
            with contextlib.suppress(SulqError):
                found = [d for d in self.ask("owner", "datasets")["datasets"] if d["name"] == dataset]
                if found and found[0]["problem"] is not None:
                    raise AssertionError(found[0]["problem"])
                workers = [w for w in self.ask("owner", "metrics")["workers"] if w["dataset"] == dataset]
                if found and found[0]["ready"] and len(workers) >= self.workers:
                    return
            if time.monotonic() > until:
                raise AssertionError("the service did not become ready")
            time.sleep(0.05)

    workers: int = 0

    @property
    def noted(self) -> list[int]:
        """The receipts that faulty workers acted on, in the order they did."""
        place = self.supervisor._datasets[0].prepared
        return [int(line) for line in (place.with_name(f"{place.name}.d") / "runs.log").read_text().split()]


def networks() -> bool:
    """Whether a process can be given a network of its own, with a loopback that is up: tried in a child."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = os.fork()
        if not child:
            os._exit(0 if launcher.cut_network() and launcher.hand_over_listeners({}, ours) else 1)
        return os.waitpid(child, 0)[1] == 0


def need_network(*, there: bool) -> None:
    """Skip where the kernel gives out none, in .ci/run too: machines may be so, and a server says so there."""
    if not there:
        pytest.skip("this kernel gives out no networks")


def connections(allowed: dict[str, object], ports: list[int]) -> list[bool]:
    """Which ports of this machine a process reaches that was kept apart in this way."""
    command = [sys.executable, "-P", launcher.__file__, sys.executable, "-P", "-c", CONNECTS, *map(str, ports)]
    line = json.dumps(allowed) + "\n"
    return json.loads(
        subprocess.run(command, input=line, capture_output=True, text=True, check=True, timeout=300).stdout
    )


def let_in(access: Access) -> dict[str, str]:
    """An owner, two analysts and an auditor."""
    return {
        "owner": access.add("owner", "owner"),
        "alice": access.add("alice", "analyst", ["survey"]),
        "bob": access.add("bob", "analyst", ["survey"]),
        "auditor": access.add("auditor", "auditor", "all"),
    }


@contextlib.contextmanager
def clerk_alone(budget: sulq.Epsilon | None = None) -> Iterator[Running]:
    """A clerk in this process whose rows are in this process too: the calls without the processes."""
    with tempfile.TemporaryDirectory(prefix="sulq-") as name:
        folder = Path(name)
        database = sulq.connect(
            survey(folder / "survey.parquet"), columns=COLUMNS, unit=sulq.Unit("person"),
            budget=budget or sulq.Epsilon(100), synthetic=True,
        )  # fmt: skip
        curator = database._oracle
        held = OpenDataset("survey", ledger=database._ledger, curator=curator)
        with Access(folder / "access.db") as access:
            tokens = let_in(access)
            clerk = Clerk(access, {"survey": held})
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(str(folder / "ledger.sock"))
            listener.listen(64)
            thread = threading.Thread(target=clerk.serve, args=(listener,), daemon=True)
            thread.start()
            running = Running(folder, folder / "ledger.sock", tokens, clerk=clerk)
            try:
                yield running
            finally:
                if running.line is not None:
                    running.line.close()
                listener.shutdown(socket.SHUT_RDWR)
                listener.close()
                thread.join(60)
                clerk.stop(5)
                database.close()


@contextlib.contextmanager
def service(
    budget: object = None,
    *,
    web: int = 0,
    workers: int = 2,
    rows: int = ROWS,
    worker: str = "",
    clerk: str = "",
    jobs_part: str = "",
    shares: dict[str, tuple[float, float]] | None = None,
    ledger: str | None = None,
    anchor: Path | None = None,
    prepared: Path | Literal[False] | None = None,
    renew: bool = False,
    more: tuple[DatasetSettings, ...] = (),
    estimators: dict[str, str] | None = None,
    data: str | None = None,
    wait: bool = True,
    **settings: object,
) -> Iterator[Running]:
    """The whole service in processes of its own, supervised by a thread of this one.

    `web=1` once there is somebody to speak HTTP to; `url` is then set. `worker`, `clerk`
    and `jobs_part`: modules of the tests' to run in their place. `data`: the address of the
    rows, where they lie in a database. `settings` are Service's.
    """
    with tempfile.TemporaryDirectory(prefix="sulq-") as name, found_by_children(worker, clerk, jobs_part):
        folder = Path(name)
        declared = declare(
            "survey", data or survey(folder / "survey.parquet", rows), COLUMNS, unit=sulq.Unit("person"),
            budget=budget or sulq.Epsilon(100), synthetic=True, shares=shares, ledger=ledger,
            anchor=anchor, prepared=prepared, renew=renew, estimators=estimators,
        )  # fmt: skip
        told = Service(folder / "state", port=0, workers=workers, web=web, data_root=folder, **settings)  # type: ignore[arg-type]
        with Access(told.access) as access:
            tokens = let_in(access)
        supervisor = Supervisor(told, [declared, *more])
        supervisor.start()
        thread = threading.Thread(target=supervisor.run, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{supervisor.port}" if web else ""
        running = Running(folder, supervisor.clerk, tokens, url, supervisor=supervisor, workers=workers)
        try:
            if wait:
                running.ready()
            yield running
        finally:
            if running.line is not None:
                running.line.close()
            supervisor.stop()
            thread.join(240)
        assert not thread.is_alive(), "the supervisor did not stop"


@contextlib.contextmanager
def found_by_children(worker: str, clerk: str = "", jobs: str = "") -> Iterator[None]:
    """Let child processes find this tree, and put modules in the place of workers, clerk and jobs' process."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), *([before] if before else [])])
    usual = dict(process.PARTS)
    process.PARTS.update(
        {part: module for part, module in (("worker", worker), ("clerk", clerk), ("jobs", jobs)) if module}
    )
    try:
        yield
    finally:
        process.PARTS.update(usual)
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
