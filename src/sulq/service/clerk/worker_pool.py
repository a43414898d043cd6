"""The clerk's connections to its workers: a Runner whose rows lie in other processes.

A plan is certified by a worker before it is paid for. Then it goes to one worker,
with a receipt stamped for that worker alone and for this generation of it. Once that frame is sent whole it is never
sent again, to anyone, unless the worker says that it does not know the plan: if it dies or overruns, the question stays
charged and ends in the one outcome every failure has (T32, T37).
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, cast

from sulq.answers import wire
from sulq.answers.answer import Receipt
from sulq.answers.plan import Plan
from sulq.answers.released import Released
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.reuse import ReusingOracle
from sulq.errors import CuratorError, SetupError, SulqError
from sulq.kernel.ledger.chain import Seal
from sulq.language.privacy import Event
from sulq.service import ipc
from sulq.service.clerk.idle_workers import IdleWorkers
from sulq.service.clerk.person_space import PersonSpace
from sulq.service.ipc import Frame
from sulq.service.logs import request_named, worked
from sulq.service.schedule import PacedRows, Schedule

MAX_START_WAIT_SECONDS: Final = 10.0  # seconds an ask waits, uncharged, for a worker that is being replaced
MAX_RUNS_AHEAD: Final = 16  # runs that may be ahead of one that was charged
HEALTH_CHECK_SECONDS: Final = 1.0  # seconds between looks at an idle worker
MAX_HEALTH_WAIT_SECONDS: Final = 1.0  # seconds that all else waits for them
HEALTHY_REPLIES: Final = {"ready", "certified", "refused", "released"}  # what a worker says whose data is as it was
PASSING_FAULT: Final = "unreadable-data"  # a database that is away may come back, and the same worker goes on
FAILURES: Final = {
    "engine-failed": "The rows could not be summed.",
    "noise-failed": "No noise could be drawn, so nothing is released.",
}

_log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class WorkerConnection:
    """One generation of a worker, connected."""

    name: str
    generation: int
    seal: Seal
    sock: socket.socket
    isolation: Frame
    looked: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class WorkerAddress:
    """A worker as the supervisor announces it."""

    name: str
    generation: int
    path: str
    key: bytes = field(repr=False)


class RemoteRows:
    """A dataset's workers behind sockets; `redeem` is the ledger's, `kill` the supervisor's."""

    def __init__(
        self,
        *,
        limit: float,
        redeem: Callable[[Receipt, str, Event], bool],
        kill: Callable[[str, int], None],
        hello: Callable[[Frame], None],
        event: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._limit = limit
        self._redeem = redeem
        self._kill = kill
        self._hello = hello
        self._event = event
        self._change = threading.Condition()
        self.idle: IdleWorkers[WorkerConnection] = IdleWorkers()
        self._live: dict[str, WorkerConnection] = {}
        self._posted: set[tuple[str, int]] = set()  # one connection for each: a worker listens to one at a time
        self._stopped: SulqError | None = None
        self._closed = False
        self._own = threading.local()  # of each ask: its times, and who certified its plan

    def post(self, post: WorkerAddress) -> None:
        """Connect to a worker that was started; it answers when it has opened its rows, however long that takes."""
        with self._change:
            if (post.name, post.generation) in self._posted:
                return
            self._posted.add((post.name, post.generation))
        threading.Thread(target=self._connect, args=(post,), daemon=True).start()

    @property
    def workers(self) -> list[WorkerConnection]:
        """Those that are connected."""
        with self._change:
            return list(self._live.values())

    @contextmanager
    def until(self, end: float | None, begin: float | None = None) -> Iterator[None]:
        """Bound this thread's runs: none goes on past `end` (monotonic clock), none is paid for after `begin`."""
        self._own.end, self._own.begin = end, begin
        try:
            yield
        finally:
            self._own.end = self._own.begin = None

    def ready(self) -> None:
        """Refuse, before anything is paid, while there is no worker, or its data is not what was registered."""
        with self._change:
            self._change.wait_for(lambda: self._live or self._stopped or self._closed, timeout=MAX_START_WAIT_SECONDS)
            if self._stopped is not None:
                raise stopped()
            if not self._live or self._closed:
                raise SetupError("not-ready", "This dataset's workers are being started.")

    def check(self, plan: Plan, whose: str = "") -> wire.Writer:
        """Have a worker certify a plan, before anything is paid; it is then asked to run it, if it is idle by then.

        Raises:
            QuestionError: `uncertified`, in the worker's words, which follow from public facts alone.
            SetupError: `not-ready`, where no worker said anything of it in time.
        """
        writer = wire.Writer()
        text = writer.text(plan)
        deadline = getattr(self._own, "begin", None)
        self._own.certified = None
        while True:
            worker = self._taken(deadline)
            if worker is None:
                raise SetupError("not-ready", "Too many questions are under way.", "Try again in a moment.")
            if self._sent(worker, {"check": text, "whose": whose, **request_named()}):
                break
        reply = self._heard(worker, self._limit)  # a worker that certifies late is sound all the same
        if reply is not None:
            self._back(worker, reply)
        late = deadline is not None and time.monotonic() > deadline
        if reply is None or late or not reply.keys() & {"certified", "refused", "stopped"}:
            raise SetupError("not-ready", "This dataset's workers are being started.", "Try again in a moment.")
        if "stopped" in reply:
            raise stopped()
        if "refused" in reply:
            ipc.opened({"error": reply["refused"]})
        self._own.certified = (plan, text, worker, whose)
        return writer

    def run(self, plan: Plan, receipt: Receipt) -> tuple[Released, ...]:
        """Have a worker run a plan that was paid for; exactly one is asked, and once.

        The worker runs what the text says, so it is the text that must have been paid for, and it redeems with the
        event that the text says: if another was charged, it runs nothing. One that has certified
        the text is sent the receipt alone; if it does not know the text after all, it has not used the receipt.
        """
        known_plan, text, certified, whose = getattr(self._own, "certified", None) or (None, "", None, "")
        self._own.certified = None
        if known_plan is not plan:
            text, certified, whose = wire.encode(plan), None, ""
        if not self._redeem(receipt, wire.digest_of(text), plan.event):
            raise CuratorError("bad-receipt", "This plan's debit could not be verified.")
        deadline = getattr(self._own, "end", None)
        while True:
            worker = self._taken(deadline, certified)
            if worker is None:
                self._event("no-worker")
                raise _failure("engine-failed")
            stamped = worker.seal.stamp(receipt.seq, receipt.entry, receipt.plan, plan.event)
            known = worker is certified
            limit = self._left(deadline)
            own = {"whose": whose, **request_named()}
            frame = {"run": None if known else text, "receipt": wire.to_json(stamped), **own}
            if not self._sent(worker, frame):  # it died before it heard all of it, so it ran nothing: another may
                continue
            reply = self._heard(worker, limit)
            if reply is not None:
                self._back(worker, reply)
                if known and "unknown" in reply:
                    certified = None
                    continue
            if reply is None or "released" not in reply:
                raise _failure(str((reply or {}).get("failed", "engine-failed")))
            return cast("tuple[Released, ...]", wire.from_json(reply["released"]))

    def _left(self, deadline: float | None) -> float:
        """How long a worker has for an answer."""
        return self._limit if deadline is None else min(self._limit, deadline - time.monotonic())

    def _sent(self, worker: WorkerConnection, frame: Frame) -> bool:
        """Whether a worker was sent all of a frame; if not it is gone."""
        try:
            worker.sock.settimeout(self._limit)
            ipc.send(worker.sock, frame)
        except OSError:
            self._lost(worker)
            return False
        return True

    def _heard(self, worker: WorkerConnection, limit: float) -> Frame | None:
        """A worker's reply; None where it died or overran, and is used no more."""
        try:
            with worked():
                return self._received(worker, limit)
        except (OSError, EOFError, SulqError) as error:
            what = "overrun" if isinstance(error, TimeoutError) else "worker-lost"
            self._event(what)
            _log.error("a question ended with its worker", extra={"worker": worker.name, "what": what})
            self._lost(worker)
            self._kill(worker.name, worker.generation)
        return None

    def _received(self, worker: WorkerConnection, limit: float) -> Frame:
        """The reply, if it is here in time."""
        if limit <= 0:
            raise TimeoutError
        worker.sock.settimeout(limit)
        return ipc.receive_alone(worker.sock)

    def _taken(self, deadline: float | None, wanted: WorkerConnection | None = None) -> WorkerConnection | None:
        """An idle worker, the wanted one if it is idle soon; None where none is in time."""
        patience = MAX_RUNS_AHEAD * self._limit if deadline is None else deadline - time.monotonic()
        live = wanted is not None and self._live.get(wanted.name) is wanted
        return self.idle.take(patience, wanted if live else None)

    def _back(self, worker: WorkerConnection, reply: Frame) -> None:
        worker.looked = time.monotonic()
        stopped = reply.get("stopped")
        read = bool(reply.keys() & HEALTHY_REPLIES)  # a failure says nothing of the data
        if stopped is not None or self._stopped is not None:
            with self._change:
                if stopped is not None:
                    self._stop(stopped)
                elif read and self._stopped is not None and self._stopped.code == PASSING_FAULT:
                    _log.info("a worker reads its data again", extra={"worker": worker.name})
                    self._stopped = None
                self._change.notify_all()
        self.idle.give(worker)

    def _stop(self, told: object) -> None:
        """Take no more asks: the data is not what was registered, and its owner must act."""
        try:
            ipc.opened({"error": told})
        except SulqError as error:
            known = self._stopped
            if known is None or (known.code == PASSING_FAULT and error.code != PASSING_FAULT):
                _log.error("a worker refuses its data", extra={"code": error.code})
                self._stopped = error

    @property
    def stopped(self) -> SulqError | None:
        """Why no more asks are taken, for the owner."""
        return self._stopped

    def _lost(self, worker: WorkerConnection) -> None:
        worker.sock.close()
        with self._change:
            if self._live.get(worker.name) is worker:
                del self._live[worker.name]

    def _connect(self, post: WorkerAddress) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(post.path)
            hello = ipc.receive(sock)
        except (OSError, EOFError, SulqError):
            sock.close()  # it ended while it opened its rows; its successor will be announced
            return
        if hello.get("generation") != post.generation:
            sock.close()
            return
        worker = WorkerConnection(post.name, post.generation, Seal(post.key), sock, cast("Frame", hello["isolation"]))
        try:
            if "stopped" in hello:
                ipc.opened({"error": hello["stopped"]})
            self._hello(hello)
        except SulqError as error:
            sock.close()
            with self._change:
                self._stopped = error
                self._change.notify_all()
            return
        with self._change:
            self._stopped = None
            self._live[post.name] = worker
            self._change.notify_all()
        self.idle.give(worker)

    def look(self) -> None:
        """Ask idle workers whether their data is still what was registered, before anyone pays for finding out.

        One whose database does not answer is waited for aside: other datasets are looked after meanwhile.
        """
        now = time.monotonic()
        due = self.idle.withdraw(lambda worker: now - worker.looked >= HEALTH_CHECK_SECONDS)
        looks = [threading.Thread(target=self._looked_at, args=(worker,), daemon=True) for worker in due]
        for look in looks:
            look.start()
        until = time.monotonic() + MAX_HEALTH_WAIT_SECONDS
        for look in looks:
            look.join(max(until - time.monotonic(), 0.0))

    def _looked_at(self, worker: WorkerConnection) -> None:
        try:
            worker.sock.settimeout(self._limit)
            ipc.send(worker.sock, {"ready": True})
            self._back(worker, self._received(worker, self._limit))
        except (OSError, EOFError, SulqError):
            self._lost(worker)
            self._kill(worker.name, worker.generation)

    def close(self) -> None:
        """Let the workers go."""
        with self._change:
            self._closed = True
            live, self._live = list(self._live.values()), {}
            self._change.notify_all()
        self.idle.close()
        for worker in live:
            worker.sock.close()


def stopped() -> SetupError:
    """What an analyst hears of a dataset whose data is not what was registered; the cause is the owner's (T33)."""
    return SetupError("not-ready", "This dataset is stopped; its owner must look after it.", "Ask its owner.")


def _failure(code: str) -> CuratorError:
    known = code if code in FAILURES else "engine-failed"
    return CuratorError(known, FAILURES[known])


MAX_ASKS_AT_ONCE: Final = 16  # asks between debit and answer at one time; the rest wait before they are charged
MAX_WAIT_SECONDS: Final = 30.0


@dataclass(eq=False, slots=True)
class OpenDataset:
    """A dataset under the clerk's hand; `curator` is None until its first worker has opened the rows."""

    name: str
    ledger: Ledger | None = None
    curator: ReusingOracle | None = None
    fault: SulqError | None = None  # why it could not be opened
    schedule: Schedule | None = None
    rows: RemoteRows | None = None  # None where the curator has rows of its own
    space: PersonSpace | None = None  # None where nobody looks after its ledger
    paced: PacedRows | None = None  # the rows as the curator has them, where there is a schedule
    share_answers: bool = False
    expected: bool = False  # it is known by name alone, and will be taken on
    choosing: bool = False  # the number of rows that are kept of a person is being chosen
    late: int = 0  # answers that missed the tick they were due at
    taken: float = field(default_factory=time.monotonic)  # when it was taken on
    _views: dict[str, ReusingOracle] = field(default_factory=dict)  # by analyst
    _slots: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(MAX_ASKS_AT_ONCE))
    _own: dict[str, threading.BoundedSemaphore] = field(default_factory=dict)  # by analyst
    asks: int = 0  # under way
    _change: threading.Condition = field(default_factory=threading.Condition)

    @property
    def problem(self) -> SulqError | None:
        """Why it cannot be asked, for its owner."""
        away = None if self.space is None else self.space.problem
        return away or self.fault or (None if self.rows is None else self.rows.stopped)

    @property
    def ready(self) -> bool:
        """Whether it can be asked."""
        return self.curator is not None and self.problem is None

    def opened(self) -> tuple[ReusingOracle, Ledger]:
        """Curator and ledger, or why not."""
        if self.problem is not None:
            raise stopped()
        if self.curator is None or self.ledger is None:
            raise SetupError("not-ready", "This dataset is being opened.")
        return self.curator, self.ledger

    def open_ledger(self) -> Ledger:
        """The ledger alone, which is there before the rows are."""
        if self.ledger is None or (self.space is not None and self.space.stalled):
            raise SetupError("not-ready", "This dataset's ledger is not open.", "See why in the list of datasets.")
        return self.ledger

    def open_space(self) -> PersonSpace:
        """Who looks after its ledger."""
        if self.space is None:
            raise SetupError("not-ready", "This dataset's ledger is not looked after.")
        return self.space

    def oracle(self, analyst: str | None) -> ReusingOracle:
        """The curator as one analyst sees it: its own share, its own idempotency keys, its own stored answers (SR12).

        None is the whole person space, for facts alone.
        """
        curator, _ = self.opened()
        if analyst is None:
            return curator
        view = self._views.get(analyst)
        if view is None:
            scope = "" if self.share_answers else None
            view = self._views[analyst] = curator.for_analyst(analyst, scope=scope, dataset=self.name)
        return view

    @contextmanager
    def asking(self) -> Iterator[None]:
        """One ask, from its coming to its reply."""
        with self._change:
            self.asks += 1
        try:
            yield
        finally:
            with self._change:
                self.asks -= 1
                self._change.notify_all()

    def drained(self, patience: float) -> bool:
        """Wait until no ask is under way, so that none is charged for nothing."""
        with self._change:
            return self._change.wait_for(lambda: self.asks == 0, timeout=patience)

    @contextmanager
    def slot(self, whose: str) -> Iterator[None]:
        """A place among the asks under way, so that what was charged never waits long for a worker.

        One analyst has half of them at most: whoever asks much keeps nobody else from asking (T85).
        """
        own = self._own.setdefault(whose, threading.BoundedSemaphore(MAX_ASKS_AT_ONCE // 2))
        until = time.monotonic() + MAX_WAIT_SECONDS
        with _place(own, until), _place(self._slots, until):
            yield


@contextmanager
def _place(slots: threading.BoundedSemaphore, until: float) -> Iterator[None]:
    if not slots.acquire(timeout=max(until - time.monotonic(), 0.0)):
        raise SetupError("not-ready", "Too many questions are under way.", "Try again in a moment.")
    try:
        yield
    finally:
        slots.release()
