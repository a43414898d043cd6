"""A worker: one dataset's rows, read-only, and the noise drawn beside them; one question at a time.

It acts on a plan only with a receipt stamped by its own seal, and once (T43,
T60): the seal's key is new for each worker that is started, and comes to it
through the supervisor's pipe. Whatever else reaches its socket is refused. What
leaves it are released integers, or one of three codes; and before a debit, from public
facts alone, whether the kernel certifies a plan, or why not.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import select
import socket
import threading
from dataclasses import replace
from typing import Final, cast

from sulq.answers import wire
from sulq.answers.answer import Receipt
from sulq.compile.plan.estimators import load
from sulq.curator.ledger.opening import sources_of
from sulq.curator.run import Rows
from sulq.errors import CuratorError, QuestionError, SetupError, SulqError
from sulq.kernel.ledger.chain import Seal
from sulq.service import ipc
from sulq.service.ipc import Frame
from sulq.service.logs import during
from sulq.service.sandbox import isolation
from sulq.service.settings import DatasetSettings
from sulq.service.worker import database
from sulq.sources import engines
from sulq.sources.engines import Counting, OpenEngine, check_rows, open_dataset
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given, rows_at_most

MAX_OPEN_FILES: Final = 256
MAX_SPILL_TIMES_MEMORY: Final = 16  # from a setting, as no limit may follow from the rows (T32)
HANG_UP_EVENT: Final = getattr(select, "POLLRDHUP", select.POLLHUP)  # macOS has no word for half a hang-up

_log = logging.getLogger("sulq.service.worker.main")  # the module is run, so its name is not its own


class OpenRows:
    """The rows, opened, and what the clerk must know of them: nothing but public facts."""

    def __init__(
        self, declared: DatasetSettings, key: bytes, space: str, seal: Seal, erased: tuple[str, ...] = ()
    ) -> None:
        given, places = [], []
        self.rows: dict[str, int] = {}
        for table in declared.tables:
            place = database.near(table.data) if isinstance(table.data, str) else table.data
            origin, facts = Origin.of(place), table.facts
            if facts.public:
                count = rows_at_most(origin, facts.schema, table.inside)
                self.rows[facts.schema.table] = count
                facts = replace(facts, rows=count)
            given.append(Given(origin, facts, table.inside))
            places.append(place)
        dataset = Dataset(tuple(given), declared.unit, key, space, erased)
        self.engine: OpenEngine = open_dataset(dataset, prepared=declared.prepared, renew=declared.renew)
        check_rows(dataset, declared.tables[0].size, self.engine)
        if isinstance(self.engine, Counting):
            public = [given.facts for given in self.engine.counted().tables if given.facts.public]
            self.rows = {facts.schema.table: facts.rows or 0 for facts in public}
        self.engine.ready()
        names = [table.facts.schema.table for table in declared.tables]
        self.sources = {name: self.engine.fingerprint(name) for name in names}
        private = [
            (source, given.inside or given.facts.schema.table)
            for given, place in zip(dataset.tables, places, strict=True)
            for source in given.origin.covered or (place,)
            if not given.facts.public
        ]
        self.covers = [source.read().to_json() for source in sources_of(private)]
        own = load([table.facts for table in declared.tables], declared.unit)
        self.run = Rows(self.engine, seal.redeem, own=own, budget=declared.budget, unit=declared.unit)


class ClerkConnection:
    """One connection of the clerk's, and whether the clerk is still at its other end."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._busy = False
        self._gone = False
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def heard(self) -> Frame:
        """The next frame, if its reply has somebody to go to."""
        frame = ipc.receive_alone(self._sock)
        self._busy = True
        if self._gone:
            raise EOFError
        return frame

    def said(self, reply: Frame) -> None:
        """Send a reply."""
        self._busy = False
        ipc.send(self._sock, reply)

    def _watch(self) -> None:
        """End, question in hand, when the clerk that would have stopped an overrun is gone."""
        poll = select.poll()
        poll.register(self._sock, HANG_UP_EVENT)
        poll.poll()
        self._gone = True
        if self._busy:
            os._exit(3)

    def close(self) -> None:
        """Let the connection go; the watcher wakes and ends."""
        self._busy = False
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._watcher.join()
        self._sock.close()


class Worker:
    """Answers the clerk over one connection after another."""

    def __init__(self, opened: OpenRows, hello: Frame) -> None:
        self._opened = opened
        self._hello = {**hello, "sources": opened.sources, "rows": opened.rows, "covers": opened.covers}

    def serve(self, listener: socket.socket) -> None:
        """Serve whoever connects, one at a time."""
        while True:
            talk = ClerkConnection(listener.accept()[0])
            try:
                talk.said(self._hello)
                while True:
                    talk.said(self.answer(talk.heard()))
            except (EOFError, OSError, SulqError):
                talk.close()  # the clerk is gone, and will connect again

    def answer(self, frame: Frame) -> Frame:
        """What one frame gets: released integers, a code, or word that the data is no longer what was registered.

        A plan to be checked gets its certificate, or why it has none: the words follow from public facts alone.
        """
        with during(frame.get("request"), str(frame.get("whose", ""))):
            return self._answer(frame)

    def _answer(self, frame: Frame) -> Frame:
        try:
            self._opened.run.ready()
            if "check" in frame:
                self._opened.run.check_text(_text(frame["check"]), str(frame.get("whose", "")))
                return {"certified": True}
            return self._run(frame) if "run" in frame else {"ready": True}
        except QuestionError as error:
            return {"refused": ipc.refusal(error)["error"]}
        except CuratorError as error:
            return {"failed": error.code}
        except SulqError as error:
            return {"stopped": ipc.refusal(error)["error"]}
        except Exception as error:  # noqa: BLE001 - one outcome for every failure after the debit
            _log.error("a question failed", extra={"error": type(error).__name__})
        return {"failed": "engine-failed"}

    def _run(self, frame: Frame) -> Frame:
        receipt = wire.from_json(frame.get("receipt"))
        if not isinstance(receipt, Receipt):
            return {"failed": "bad-receipt"}
        text = None if frame["run"] is None else _text(frame["run"])
        whose = str(frame.get("whose", ""))
        if text is None and not self._opened.run.knows(receipt.plan, whose):
            return {"unknown": True}  # the receipt is as good as before
        released = self._opened.run.run_text(text, receipt, whose)
        return {"released": [wire.to_json(item) for item in released]}


def _text(told: object) -> str:
    if not isinstance(told, str):
        raise CuratorError("bad-receipt", "A plan is a text.")
    return told


def main() -> None:
    """Start as the supervisor says: give up what is not needed, open the rows, then listen."""
    told = isolation.settings("worker")
    declared = DatasetSettings.from_json(cast("Frame", told["dataset"]))
    memory = cast("int", told["memory"]) << 20
    if declared.in_database:
        engines.load("postgres")  # a library looks for others as it is loaded, by programs that are refused afterwards
        isolation.tied()
    with contextlib.suppress(Exception):  # scipy, where there is one that works, is loaded before the limits hold
        importlib.import_module("scipy.sparse")
    isolated = isolation.confine(
        memory,
        MAX_OPEN_FILES,
        outside=cast("int", told["outside"]),
        written=MAX_SPILL_TIMES_MEMORY * memory,
        database=declared.in_database,
    )
    hello: Frame = {"worker": told["name"], "generation": told["generation"], "isolation": isolated}
    listener = socket.socket(fileno=cast("int", told["listen"]))
    try:
        if declared.in_database and "relay" not in str(isolated["network"]):
            raise SetupError(
                "engine-not-available",
                "This machine gives a worker no network of its own, and so no way to its database and nowhere else.",
                "Allow user namespaces, with the rights in them that some systems take away (AppArmor's "
                "kernel.apparmor_restrict_unprivileged_userns), or ask by `sulq query` or from Python.",
            )
        opened = OpenRows(
            declared,
            bytes.fromhex(str(told["hash_key"])),
            str(told["space"]),
            Seal(bytes.fromhex(str(told["key"]))),
            tuple(cast("list[str]", told.get("erased", []))),
        )
    except SulqError as error:  # the owner's to hear, through the clerk; then the supervisor tries again
        _log.error("the rows could not be opened", extra={"code": error.code, "worker": str(told["name"])})
        sock, _ = listener.accept()
        ipc.send(sock, {**hello, "stopped": ipc.refusal(error)["error"]})
        sock.close()
        raise SystemExit(1) from None
    _log.info("a worker is ready", extra={"worker": str(told["name"]), "network": str(isolated["network"])})
    Worker(opened, hello).serve(listener)


if __name__ == "__main__":
    main()
