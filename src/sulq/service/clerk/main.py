"""The clerk: the one process that writes ledgers. It holds the ledgers and the access store, and no data.

A thread answers each connection from the web; threads that debit at once share
one commit. The curator is the real one; only its rows are elsewhere, behind the
workers' sockets (`pool`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Final, cast

from sulq.errors import CuratorError, QuestionError, SetupError, SulqError
from sulq.service import ipc
from sulq.service.clerk import calls
from sulq.service.clerk.access import Access
from sulq.service.clerk.dataset_manager import DatasetManager
from sulq.service.clerk.readiness import STARTING, Readiness
from sulq.service.clerk.registration import RegisteredStore
from sulq.service.clerk.standing import standing_of
from sulq.service.clerk.worker_pool import OpenDataset
from sulq.service.ipc import Frame
from sulq.service.logs import Counts
from sulq.service.process_use import process_use
from sulq.service.sandbox import isolation
from sulq.service.settings import DatasetSettings, Service
from sulq.version import __version__

BEAT: Final = 1.0
BEATS_A_LOOK: Final = 5  # beats between two looks at the datasets: fixed, whatever is asked
SWITCH_SECONDS: Final = 0.001  # for which a thread keeps the interpreter where others wait for it
GRACE: Final = 5.0  # seconds beyond the limit of a question for calls under way when the server stops

_log = logging.getLogger("sulq.service.clerk.main")  # the module is run, so its name is not its own


class Clerk:
    """Answers calls about the datasets it holds; without `manager` it has none but those it is given."""

    def __init__(
        self,
        access: Access,
        datasets: Mapping[str, OpenDataset] | None = None,
        *,
        manager: DatasetManager | None = None,
    ) -> None:
        self.access = access
        self.counts = Counts() if manager is None else manager.counts
        self.datasets: Mapping[str, OpenDataset] = dict(datasets or {}) if manager is None else manager.datasets
        self._manager = manager
        self._lock = threading.Lock()
        self._open: dict[socket.socket, str] = {}  # each with the dataset that the call under way is about
        self._busy = 0
        self._idle = threading.Condition(self._lock)
        self._stopping = False

    @property
    def manager(self) -> DatasetManager:
        """Who opens datasets."""
        if self._manager is None:
            raise SetupError("not-available", "This server takes on no datasets.")
        return self._manager

    def health(self) -> Frame:
        """Whether the service runs, how it and its workers are cut off, what is certified; nothing of one dataset."""
        found: Frame = {"status": self.readiness()["status"], "version": __version__}
        if self._manager is not None:
            own = "shared" if self._manager.beside_rows else isolation.files()
            found |= {"files": own, "rights": isolation.rights(), "certified": self._manager.certified}
            told = self._manager.workers()
            found["workers"] = {
                name: sorted({str(worker.get(name)) for worker in told}) for name in ("network", "files", "rights")
            }
        return found

    def readiness(self) -> Frame:
        """Whether every dataset can be asked, and which cannot and why, as it was last looked at."""
        if self._manager is not None:
            return self._manager.readiness.told()
        found = Readiness(self.datasets)
        found.look()
        return found.told()

    def metrics(self) -> Frame:
        """Counts since the start, and the state of datasets and workers."""
        workers = [] if self._manager is None else self._manager.workers()
        datasets = [standing_of(held, workers) for _, held in sorted(self.datasets.items())]
        own = {"version": __version__, "process": process_use()}
        return {**own, **self.counts.told(), "datasets": datasets, "workers": workers}

    def serve(self, listener: socket.socket) -> None:
        """Answer every connection in a thread of its own, until `stop`."""
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                if self._stopping:
                    sock.close()
                    return
                self._open[sock] = ""
            threading.Thread(target=self._talk, args=(sock,), daemon=True).start()

    def stop(self, patience: float) -> None:
        """Let calls under way end, take no others, and close what was opened."""
        with self._idle:
            self._stopping = True
            self._idle.wait_for(lambda: self._busy == 0, timeout=patience)
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(SetupError):
            self.access.log.flush()
        if self._manager is not None:
            self._manager.close()

    def let_go(self) -> None:
        """Hang up on calls that wait for a ledger whose disk or database does not answer.

        Their callers hear that nobody knows whether they were charged; what waits for them is free for other datasets.
        """
        stalled = {name for name, held in list(self.datasets.items()) if held.space is not None and held.space.stalled}
        with self._lock:
            for sock in [sock for sock, name in self._open.items() if name in stalled]:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def _reply(self, sock: socket.socket, reply: Frame, *, paid: bool) -> None:
        try:
            ipc.send(sock, reply)
        except QuestionError as error:  # too long; nothing of it was sent
            failed = CuratorError("engine-failed", "The answer is too long.")  # a refusal would say that it was free
            ipc.send(sock, ipc.refusal(failed if paid else error))

    def _talk(self, sock: socket.socket) -> None:
        try:
            with sock:
                while True:
                    frame = ipc.receive_alone(sock)
                    with self._idle:
                        if self._stopping:
                            return
                        self._busy += 1
                        self._open[sock] = str(frame.get("dataset") or "")
                    try:
                        begun = time.thread_time()
                        reply = calls.answer(self, frame)
                        reply["seconds"] = round(time.thread_time() - begun, 6)  # by which the web limits free calls
                        self._reply(sock, reply, paid=frame.get("call") == "ask")
                    finally:
                        with self._idle:
                            self._busy -= 1
                            self._open[sock] = ""
                            self._idle.notify_all()
        except (EOFError, OSError, QuestionError):
            pass  # the other side is gone, or speaks another tongue: it may connect again
        finally:
            with self._lock:
                self._open.pop(sock, None)


def main() -> None:
    """Start as the supervisor says; end in order when it says so, and at once when it is gone."""
    told = isolation.settings("clerk")
    sys.setswitchinterval(SWITCH_SECONDS)
    service = Service.from_json(cast("Frame", told["service"]))
    control = socket.socket(fileno=cast("int", told["control"]))
    listener = socket.socket(fileno=cast("int", told["listen"]))
    manager = DatasetManager(service, control, Counts())
    clerk = Clerk(Access(service.access), manager=manager)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor's to hear
    threading.Thread(target=_hear, args=(control, manager), daemon=True).start()
    given = [DatasetSettings.from_json(tree) for tree in cast("list[Frame]", told["datasets"])]
    expect(manager.datasets, [*(one.name for one in given), *RegisteredStore(service.state / "datasets").names])
    threading.Thread(target=clerk.serve, args=(listener,), daemon=True).start()
    for declared in given:
        manager.take_on(declared, wait=0.0)
    manager.take_on_registered(wait=0.0)
    beats = 0
    while not stopping.wait(BEAT):
        beats += 1
        if manager.readiness.status == STARTING or beats % BEATS_A_LOOK == 0:
            manager.readiness.look()
            clerk.let_go()
    clerk.stop(service.limit + GRACE)
    _log.info("the clerk has stopped")


def expect(datasets: dict[str, OpenDataset], names: Iterable[str]) -> None:
    """Know all datasets by name before the first call: one that is yet to be taken on is not ready, and not missing."""
    datasets.update({name: OpenDataset(name, expected=True) for name in names})


def _hear(control: socket.socket, manager: DatasetManager) -> None:
    while True:
        try:
            manager.heard(ipc.receive(control))
        except (EOFError, OSError, SulqError):
            os._exit(1)  # without a supervisor no overrun could be stopped


if __name__ == "__main__":
    main()
