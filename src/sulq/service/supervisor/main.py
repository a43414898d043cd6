"""The supervisor: starts the server's processes, starts them again when they die, ends a worker that overruns.

It opens neither data nor ledgers. It holds every listening socket, so that a
process that was replaced is found where its predecessor was, and draws a new
seal's key for each worker it starts: a receipt stamped for one is worth nothing
to the next (T60).
"""

from __future__ import annotations

import functools
import json
import logging
import queue
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

from sulq.errors import SetupError, SulqError
from sulq.kernel.entropy import random_bytes
from sulq.service import ipc
from sulq.service.ipc import Frame
from sulq.service.sandbox import isolation
from sulq.service.settings import DatasetSettings, Service
from sulq.service.supervisor.process import Process, RunFolder, launched, sweep

BACKLOG: Final = 256
LOOK_MEMORY: Final = 2048
LOOK_SECONDS: Final = 60.0
CHECK_SECONDS: Final = 100.0  # less than the web waits for a call
WEB_GRACE: Final = 25.0
CLERK_GRACE: Final = 10.0
WORKER_GRACE: Final = 2.0
JOBS_GRACE: Final = 2.0

_log = logging.getLogger(__name__)


class Supervisor:
    """Runs the service until it is told to stop."""

    def __init__(self, service: Service, datasets: Sequence[DatasetSettings]) -> None:
        self._service = service
        self._datasets = datasets
        self._due: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()  # None: stop
        self._processes: dict[str, Process] = {}
        self._keys: dict[str, str] = {}
        self._job_key = random_bytes(32).hex()  # by which a jobs' process knows the ids of those before it
        self._listeners: dict[str, socket.socket] = {}
        self._control: socket.socket | None = None
        self._stopping = False
        self._places = 0  # datasets that were given workers
        self._outside = isolation.network()
        for left in sweep():
            _log.warning("removed what a killed server left", extra={"folder": left.name})
        self._own = RunFolder()  # nobody else reaches the sockets
        self.folder = self._own.path
        self._counts = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 - of the web processes, as long as they run
        self.port = 0

    @property
    def clerk(self) -> Path:
        """Where the clerk listens."""
        return self.folder / "ledger.sock"

    @property
    def jobs(self) -> Path:
        """Where the jobs' process listens."""
        return self.folder / "jobs.sock"

    def start(self) -> None:
        """Listen, then start the clerk, the web and the jobs' process; workers follow on the clerk's word."""
        try:
            self._listen("clerk", self.clerk)
            if self._service.web > 0:
                self._listeners["web"] = self._public()
                self.port = self._listeners["web"].getsockname()[1]
                self._listen("jobs", self.jobs)
        except BaseException:
            self._clean()
            raise
        self._start_clerk()
        for number in range(self._service.web):
            self._start_web(number)
        if self._service.web > 0:
            self._start_jobs()

    def run(self) -> None:
        """Do what is due until `stop`; then end web, jobs, clerk and workers, in this order."""
        while (act := self._due.get()) is not None:
            act()
        self._end()

    def stop(self) -> None:
        """End the service; from any thread, or a signal."""
        self._due.put(None)

    def pids(self) -> dict[str, int]:
        """The processes that run, by name."""
        running = [(name, process.running) for name, process in list(self._processes.items())]
        return {name: child.pid for name, child in running if child is not None and child.poll() is None}

    def _listen(self, name: str, path: Path) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        listener.listen(BACKLOG)
        self._listeners[name] = listener

    def _public(self) -> socket.socket:
        host, port = self._service.host, self._service.port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            raise SetupError(
                "bad-config", f"{host}:{port} cannot be listened on: {error.strerror}.", "Choose another port."
            ) from None
        return listener

    def _start_clerk(self) -> None:
        if self._control is not None:
            self._control.close()
        self._control, theirs = socket.socketpair()
        listener = self._listeners["clerk"].fileno()
        settings = {
            "service": self._service.to_json(),
            "datasets": [declared.to_json() for declared in self._datasets],
            "listen": listener,
            "control": theirs.fileno(),
        }
        clerk = self._processes.setdefault("clerk", Process("clerk", "clerk", {}, folder=self.folder / "clerk"))
        clerk.settings, clerk.fds = settings, (listener, theirs.fileno())
        self._start(clerk)
        theirs.close()
        threading.Thread(target=self._hear, args=(self._control,), daemon=True).start()

    def _start_web(self, number: int) -> None:
        """One of the web processes."""
        listener = self._listeners["web"].fileno()
        settings: dict[str, object] = {
            "service": self._service.to_json(),
            "clerk": str(self.clerk),
            "jobs": str(self.jobs),
            "listen": listener,
        }
        fds = [listener]
        if self._service.web > 1:
            fds.append(self._counts.fileno())
            settings["counts"] = [self._counts.fileno(), number, self._service.web]
        web = Process(f"web-{number}", "web", settings, tuple(fds))
        self._processes[web.name] = web
        self._start(web)

    def _start_jobs(self) -> None:
        listener = self._listeners["jobs"].fileno()
        settings: dict[str, object] = {
            "service": self._service.to_json(),
            "clerk": str(self.clerk),
            "listen": listener,
            "key": self._job_key,
            "outside": self._outside,
        }
        jobs = Process("jobs", "jobs", settings, (listener,))
        self._processes[jobs.name] = jobs
        self._start(jobs)

    def _start(self, process: Process) -> None:
        if self._stopping or not self._kept(process):
            return
        more: Frame = {}
        if process.part == "worker":
            self._keys[process.name] = random_bytes(32).hex()
            more = {"key": self._keys[process.name], "memory": self._service.memory, "outside": self._outside}
        process.start(lambda generation: self._due.put(lambda: self._ended(process, generation)), more)
        if process.part == "worker":
            self._announce(process)

    def _ended(self, process: Process, generation: int) -> None:
        if self._stopping or generation != process.generation or not self._kept(process):
            return
        code = None if process.running is None else process.running.returncode
        pause = process.pause()
        _log.warning("a process ended", extra={"child": process.name, "code": str(code), "pause": pause})
        if process.part == "clerk":
            time.sleep(pause)
            self._start_clerk()
        elif pause:
            timer = threading.Timer(pause, self._due.put, (lambda: self._start(process),))
            timer.daemon = True
            timer.start()
        else:
            self._start(process)

    def _hear(self, control: socket.socket) -> None:
        """Pass on what this clerk says, as long as it lives."""
        try:
            while True:
                self._due.put(functools.partial(self._said, ipc.receive(control)))
        except (EOFError, OSError, SulqError):
            return

    def _said(self, frame: Frame) -> None:
        if "start" in frame:
            self._workers(str(frame["start"]), cast("int", frame["count"]), cast("Frame", frame["settings"]))
        elif "kill" in frame:
            process = self._processes.get(str(frame["kill"]))
            if process is not None and process.part == "worker" and process.generation == frame.get("generation"):
                process.kill()
        elif "drop" in frame:
            self._drop(str(frame["drop"]))
        elif "look" in frame or "check" in frame:
            threading.Thread(target=self._look, args=(frame,), daemon=True).start()

    def _workers(self, dataset: str, count: int, settings: Frame) -> None:
        """See to it that a dataset has so many workers; those that run are announced, to a clerk that is new."""
        known = [p for p in self._processes.values() if p.part == "worker" and p.settings["for"] == dataset]
        for process in known:
            same = all(_opens(process.settings.get(name)) == _opens(value) for name, value in settings.items())
            process.settings = {**process.settings, **settings}
            if same:
                self._announce(process)
            else:
                process.kill()  # it opened its rows as another declaration said; its successor is announced
        if known:
            prefix = known[0].name.partition(".")[0]
        else:
            prefix = f"worker-{self._places}"  # names of datasets make no paths
            self._places += 1
        for number in range(len(known), count):
            name = f"{prefix}.{number}"
            self._listen(name, self.folder / f"{name}.sock")
            listener = self._listeners[name].fileno()
            own = {**settings, "for": dataset, "listen": listener}
            process = Process(name, "worker", own, (listener,), self.folder / name)
            self._processes[name] = process
            self._start(process)

    def _kept(self, process: Process) -> bool:
        """Whether a process is still one of this service's."""
        return self._processes.get(process.name) is process

    def _drop(self, dataset: str) -> None:
        """End the workers of a dataset that was taken away, and close what they listened on."""
        gone = [p for p in self._processes.values() if p.part == "worker" and p.settings["for"] == dataset]
        for process in gone:
            del self._processes[process.name]
            process.kill()
            self._keys.pop(process.name, None)
            self._listeners.pop(process.name).close()
            (self.folder / f"{process.name}.sock").unlink(missing_ok=True)

    def _announce(self, process: Process) -> None:
        """Tell the clerk of a worker, with the key that stamps receipts for it."""
        self._tell(
            {
                "worker": process.name,
                "dataset": process.settings["for"],
                "generation": process.generation,
                "path": str(self.folder / f"{process.name}.sock"),
                "key": self._keys[process.name],
            }
        )

    def _look(self, frame: Frame) -> None:
        """Have a process look at a file's columns, or at how declarations fit rows, and pass on what it says."""
        part, seconds = ("look", LOOK_SECONDS) if "look" in frame else ("check", CHECK_SECONDS)
        folder = Path(tempfile.mkdtemp(prefix=f"{part}-", dir=self.folder))
        settings: Frame = {"dataset": frame.get("check"), "memory": self._service.memory}
        if part == "look":
            settings = {"path": frame["look"], "partitions": frame["partitions"], "memory": LOOK_MEMORY}
        looking = launched(part, {**settings, "outside": self._outside}, (), folder, stdout=subprocess.PIPE)
        limit = threading.Timer(seconds, looking.kill)
        limit.start()
        try:  # its standard input stays open until it has ended: a child without one takes itself for orphaned
            reply = cast("Frame", json.loads(looking.stdout.read() if looking.stdout is not None else b""))
        except ValueError:
            reply = ipc.refusal(SetupError("unreadable-data", "The file could not be looked at."))
        limit.cancel()
        looking.wait()
        for pipe in (looking.stdin, looking.stdout):
            if pipe is not None:
                pipe.close()
        shutil.rmtree(folder, ignore_errors=True)
        self._tell({"looked": frame["number"], "reply": reply})

    def _tell(self, frame: Frame) -> None:
        try:
            if self._control is not None:
                ipc.send(self._control, frame)
        except OSError:
            pass  # that clerk has ended; the next one asks for what it needs

    def _end(self) -> None:
        self._stopping = True
        grace = {
            "web": WEB_GRACE,
            "jobs": JOBS_GRACE,
            "clerk": self._service.limit + CLERK_GRACE,
            "worker": WORKER_GRACE,
        }
        for part, patience in grace.items():
            ending = [
                threading.Thread(target=process.stop, args=(patience,))
                for process in self._processes.values()
                if process.part == part
            ]
            for thread in ending:
                thread.start()
            for thread in ending:
                thread.join()
        self._clean()
        _log.info("the service has stopped")

    def _clean(self) -> None:
        for listener in self._listeners.values():
            listener.close()
        if self._control is not None:
            self._control.close()
        self._counts.close()
        self._own.remove()


def _opens(setting: object) -> object:
    """What of a worker's setting says which rows it opens: to renew a copy is said once, and then no more."""
    return {**setting, "renew": False} if isinstance(setting, dict) else setting
