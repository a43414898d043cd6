"""The clerk's datasets and the workers that serve them: ledgers opened here, rows opened there.

A dataset is taken on in four steps. Its ledger is opened; the supervisor is
asked for one worker, which is given the person space's key for kept rows; when
that worker says that its rows are open, what it was read from is registered in
the ledger and the curator is ready; then the other workers are started, which
find the prepared copy made.
"""

from __future__ import annotations

import logging
import queue
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

from sulq.curator.curator import Curator
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import covers_in
from sulq.curator.ledger.registry import open_keys, register
from sulq.curator.ledger.shares import Share
from sulq.curator.ledger.sources import Source, agree
from sulq.curator.reuse import ReusingOracle
from sulq.curator.rows_choice import choose_rows
from sulq.errors import AccessDenied, CuratorError, QuestionError, SetupError, SulqError
from sulq.kernel.mechanisms import MECHANISMS
from sulq.language.facts import TableFacts
from sulq.language.sublinear import check_size
from sulq.service import ipc
from sulq.service.clerk.ledger_places import placed
from sulq.service.clerk.registration import Holdings, RegisteredStore, check_chosen
from sulq.service.clerk.worker_pool import OpenDataset, RemoteRows, WorkerAddress, WorkerConnection
from sulq.service.ipc import Frame
from sulq.service.logs import Counts
from sulq.service.schedule import PacedRows, Schedule
from sulq.service.settings import DatasetSettings, Service
from sulq.version import noise_versions

MAX_LOOK_SECONDS: Final = 70.0  # seconds for a look at a file's columns
UNWRITABLE: Final = "ledger-failed"  # a fault that passes
AWAY: Final = "missing-file"  # of a ledger in a database: so does this
RETRY_SECONDS: Final = 10.0  # seconds between tries to reach it
MAX_FIRST_WORD_SECONDS: Final = 20.0  # seconds a registration waits to hear whether its rows could be opened

_log = logging.getLogger(__name__)


class DatasetManager:
    """Opens datasets, and speaks with the supervisor over its control socket."""

    def __init__(self, service: Service, control: socket.socket, counts: Counts) -> None:
        self.service = service
        self.datasets: dict[str, OpenDataset] = {}
        self._control = control
        self._sending = threading.Lock()
        self.counts = counts
        self._declared: dict[str, DatasetSettings] = {}
        self._sources: dict[str, object] = {}
        self._ledgers: dict[str, Ledger] = {}
        self._holdings = Holdings()
        self._store = RegisteredStore(service.state / "datasets")
        self._registered: set[str] = set()  # by calls, so that a call may take them away
        self._opening = threading.Lock()
        self._holding = threading.Lock()
        self._choosing = threading.Lock()
        self._trying: threading.Thread | None = None  # to open a ledger again
        self._looks: dict[int, Callable[[Frame], None]] = {}
        self._looked = 0

    def take_on(self, declared: DatasetSettings) -> None:
        """Open a dataset; what is wrong with it is kept for its owner to see, and the others go on."""
        with self._opening:
            held = self._taken_on(declared)
        if held.fault is None:
            self._start(declared, 1)

    def _taken_on(self, declared: DatasetSettings) -> OpenDataset:
        period = declared.schedule or self.service.schedule
        held = OpenDataset(declared.name, schedule=Schedule(period) if period else None)
        held.share_answers = self.service.share_answers
        self._declared[declared.name] = declared
        try:
            self._holdings.take(declared)
            held.ledger = self._ledger(declared)
            check_chosen(declared, held.ledger)
            held.rows = self._rows(declared, held.ledger)
        except SulqError as error:
            held.fault = error
            _log.error("a dataset could not be opened", extra={"dataset": declared.name, "code": error.code})
        self.datasets[declared.name] = held
        return held

    def _ledger(self, declared: DatasetSettings) -> Ledger:
        """The ledger; datasets of one person space share it, and all of them say of it what it says itself (T56)."""
        if declared.ledger not in self._ledgers:
            self._ledgers[declared.ledger] = _opened(declared)
        ledger = self._ledgers[declared.ledger]
        ledger.agrees(
            unit=declared.unit,
            budget=declared.budget,
            synthetic=declared.synthetic,
            basic_share=declared.basic_share,
            key_share=declared.key_share,
            anchor=declared.anchor,
        )
        for analyst, (share, reserve) in declared.shares.items():
            told = Share.of(share, reserve)
            if ledger.share(analyst, told, unless_set=True) != told:  # what the owner set since then holds
                _log.warning(
                    "the ledger has another share than the configuration",
                    extra={"dataset": declared.name, "analyst": analyst},
                )
        return ledger

    def _rows(self, declared: DatasetSettings, ledger: Ledger) -> RemoteRows:
        declared = replace(declared, unit=ledger.unit)  # by which, or by one that was chosen since, its workers keep
        return RemoteRows(
            limit=self.service.limit,
            redeem=ledger.redeem,
            kill=self._kill,
            hello=lambda hello: self._greeted(declared, hello),
            event=self.counts.event,
        )

    def _start(self, declared: DatasetSettings, count: int) -> None:
        ledger = self._ledgers[declared.ledger]
        own = replace(declared, unit=ledger.unit)  # rows are kept by the unit that answers are priced by, whatever else
        settings = {"dataset": own.for_worker().to_json(), "hash_key": ledger.hash_key.hex(), "space": ledger.space}
        self._say({"start": declared.name, "count": count, "settings": settings})

    def _greeted(self, declared: DatasetSettings, hello: Frame) -> None:
        """A worker has opened its rows: the first one's are registered, and any other's must be the same."""
        sources, rows = cast("dict[str, str]", hello["sources"]), cast("dict[str, int]", hello["rows"])
        name = declared.name
        with self._opening:
            if self._sources.setdefault(name, (sources, rows)) != (sources, rows):
                raise SetupError("source-changed", f"The data of {name!r} is not what was registered.")
            held = self.datasets.get(name)
            if held is None:
                raise AccessDenied("closed", "This dataset was taken away.")
            if held.curator is not None or held.choosing:
                return
            try:
                self._cover(declared, held.open_ledger(), cast("list[Frame]", hello.get("covers", [])))
                curator = self._curator(declared, held, sources, rows)
                ledger = held.open_ledger()  # another process may have chosen since this worker was started
                held.choosing = ledger.histogram_share is not None or ledger.unit != declared.unit
            except SulqError:
                del self._sources[name]
                raise
            if held.choosing:  # aside: this worker is asked once it has been greeted
                threading.Thread(target=self._choose_rows, args=(declared, held, curator), daemon=True).start()
                return
            held.curator = curator
        _log.info("a dataset is ready", extra={"dataset": name})
        self._start(replace(declared, renew=False), self.service.workers)

    def _choose_rows(self, declared: DatasetSettings, held: OpenDataset, oracle: ReusingOracle) -> None:
        """Have the number of rows chosen by a worker that keeps the most; then one that keeps so many is started.

        Where it fails nothing is tried again by itself, nor after a restart: what was charged stays so, and the owner
        must hear of it.
        """
        ledger = held.open_ledger()
        try:
            with self._choosing:  # of two datasets of one person space one buys it
                choose_rows(oracle.curator, ledger, again=False)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is not being opened any more
            unknown = CuratorError("engine-failed", "The number of rows could not be chosen.")
            held.fault = error if isinstance(error, SulqError) else unknown
            told = {"dataset": held.name, "code": held.fault.code, "error": type(error).__name__}
            _log.error("the number of rows was not chosen", extra=told)
            return
        with self._opening:
            if self.datasets.get(held.name) is not held or held.rows is None:
                return
            held.rows.close()
            held.rows, held.choosing = self._rows(declared, ledger), False
        self._start(replace(declared, renew=False), 1)

    def _cover(self, declared: DatasetSettings, ledger: Ledger, told: list[Frame]) -> None:
        """Note what the ledger covers, by the word of a worker, who may read it; not what another one covers (T98)."""
        sources = [Source.from_json(tree) for tree in told]
        folders = [self.service.ledgers, None if "://" in declared.ledger else Path(declared.ledger).parent]
        books = [other.book for other in self._ledgers.values() if other.usable]
        agree(sources, ledger.book, books + covers_in(folder for folder in folders if folder is not None))
        ledger.cover(sources)

    def _curator(
        self, declared: DatasetSettings, held: OpenDataset, sources: dict[str, str], rows: dict[str, int]
    ) -> ReusingOracle:
        ledger, rows_of = held.open_ledger(), cast("RemoteRows", held.rows)
        check_size(ledger.budget, declared.tables[0].size)
        held.paced = None if held.schedule is None else PacedRows(rows_of, held.schedule)
        facts: list[TableFacts] = []
        for table in declared.tables:
            name = table.facts.schema.table
            facts.append(replace(table.facts, rows=rows.get(name)))
            register(ledger, facts[-1], source=sources[name], size=table.size, renew=declared.renew)
        curator = Curator(
            held.paced or rows_of,
            ledger,
            facts[0].schema,
            size=declared.tables[0].size,
            versions=noise_versions(),
            tables=() if declared.alone and facts[0].plain else tuple(facts),
            limit=min(self.service.limit, held.schedule.period / 2) if held.schedule else self.service.limit,
            certified=declared.certified,
        )
        return ReusingOracle(curator)

    @property
    def data_root(self) -> Path | None:
        """Where data files may lie that are registered by calls."""
        return self.service.data_root

    @property
    def certified(self) -> bool:
        """Whether the statements of all its datasets are certified by the kernel."""
        return all(declared.certified for declared in list(self._declared.values()))

    @property
    def beside_rows(self) -> bool:
        """Whether it can connect to databases, and some of the rows lie in one."""
        taken = list(self._declared.values())
        connects = any("://" in declared.ledger for declared in taken)
        return connects and any(declared.in_database for declared in taken)

    def hold(self, declared: DatasetSettings) -> bool:
        """Take on a new dataset, and write it down so that it is there after a restart; whether it is ready.

        Waits MAX_FIRST_WORD_SECONDS for a fault; where there is one, nothing is registered. A larger dataset is opened
        meanwhile, and its owner looks at the list.
        """
        with self._holding:
            if declared.name in self.datasets:
                raise QuestionError("name-taken", f"There is a dataset {declared.name!r} already.", "Use another name.")
            declared = placed(declared, self.service, self._store.ledgers)
            place = Path(declared.ledger)
            begun = "://" not in declared.ledger and not place.exists()
            self.take_on(declared)
            try:
                ready = self._first_word(self.datasets[declared.name])
                self._store.put(declared)
            except BaseException:
                self._drop(declared.name, unmake=place if begun else None)
                raise
            self._registered.add(declared.name)
            return ready

    def _first_word(self, held: OpenDataset) -> bool:
        until = time.monotonic() + MAX_FIRST_WORD_SECONDS
        while time.monotonic() < until and not held.ready and held.problem is None:
            time.sleep(0.02)
        problem = held.problem
        if problem is not None:
            raise problem
        return held.ready

    def withdraw(self, name: str) -> None:
        """Take away a dataset that was registered by a call; its data and its ledger stay."""
        with self._holding:
            if name not in self.datasets:
                raise AccessDenied("not-found", "There is no such dataset.")
            if name not in self._registered:
                raise SetupError(
                    "bad-config", f"{name!r} is declared in the server's sulq.toml.", "Remove it there, and start anew."
                )
            self._store.remove(name)
            self._registered.discard(name)
            self._drop(name)
        _log.info("a dataset was taken away", extra={"dataset": name})

    def _drop(self, name: str, *, unmake: Path | None = None) -> None:
        """Let a dataset go, after the asks under way; `unmake`: a ledger that was begun for it and charged nothing."""
        with self._opening:  # it is not taken on anew meanwhile
            held = self.datasets.pop(name)
        period = 0.0 if held.schedule is None else held.schedule.period
        held.drained(self.service.limit + 2 * period)
        with self._opening:
            if held.rows is not None:
                held.rows.close()
                self._say({"drop": name})
            declared = self._declared.pop(name, None)
            self._sources.pop(name, None)
            alone = self._holdings.release(name)
            ledger = self._ledgers.pop(declared.ledger, None) if alone and declared is not None else None
            if ledger is None:
                return
            empty = unmake is not None and ledger.usable and not ledger.transcript(limit=1)
            ledger.close()
            if unmake is not None and empty:
                for path in (unmake, unmake.with_name(f"{unmake.name}-journal")):
                    path.unlink(missing_ok=True)

    def take_on_registered(self) -> None:
        """Open the datasets that were registered by calls; one that cannot be read is its owner's to see."""
        for name, found in self._store.read():
            if name in self.datasets and not self.datasets[name].expected:
                continue  # the configuration has one of that name now
            self._registered.add(name)
            if isinstance(found, DatasetSettings):
                self.take_on(found)
            else:
                self.datasets[name] = OpenDataset(name, fault=found)

    def look(self, path: Path) -> Frame:
        """Names and kinds of a file's columns, by a process that ends with the answer."""
        replies: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        with self._sending:
            self._looked += 1
            number = self._looked
            self._looks[number] = replies.put
        self._say({"look": str(path), "number": number})
        try:
            return ipc.opened(replies.get(timeout=MAX_LOOK_SECONDS))
        except queue.Empty:
            raise SetupError("unreadable-data", "The file could not be looked at.") from None
        finally:
            self._looks.pop(number, None)

    def heard(self, frame: Frame) -> None:
        """What the supervisor says: a worker was started, or a file was looked at."""
        if "worker" in frame:
            held = self.datasets.get(str(frame["dataset"]))
            if held is not None and held.rows is not None:
                key = bytes.fromhex(str(frame["key"]))
                held.rows.post(
                    WorkerAddress(str(frame["worker"]), cast("int", frame["generation"]), str(frame["path"]), key)
                )
        elif "looked" in frame:
            given = self._looks.get(cast("int", frame["looked"]))
            if given is not None:
                given(cast("Frame", frame["reply"]))

    def tick(self) -> bool:
        """Write answers that wait, see whether idle workers are well; False where a ledger must be read anew.

        A ledger whose file could not be written takes no more debits in this process: nobody knows what of the last
        one is on disk until it is opened again (T48). One that could not even be opened, since its disk was full, is
        tried again: the service is back by itself when there is room. So is one in a database that is away.
        """
        whole = True
        for place in list(self._ledgers):
            with self._opening:  # none is taken away meanwhile
                ledger = self._ledgers.get(place)
                if ledger is None:
                    continue
                try:
                    ledger.flush()
                except SulqError as error:
                    _log.error("a ledger could not be written", extra={"code": error.code})
                whole = whole and ledger.usable
        for held in list(self.datasets.values()):
            if held.rows is not None:
                held.rows.look()
        self._try_again()
        return whole

    def _try_again(self) -> None:
        """Try to open a ledger that could not be opened: aside, as a host that does not answer takes its time."""
        if self._trying is not None and self._trying.is_alive():
            return
        for held in sorted(self.datasets.values(), key=lambda held: held.taken):  # each in its turn
            declared = self._declared.get(held.name)
            if held.rows is None and declared is not None and _passes(held, declared):
                self._trying = threading.Thread(target=self._tried, args=(held, declared), daemon=True)
                self._trying.start()
                return

    def _tried(self, held: OpenDataset, declared: DatasetSettings) -> None:
        """Open the ledger without a lock that others wait for; then, if it is still wanted, take the dataset on."""
        ledger: Ledger | None = None
        fault: SulqError | None = None
        try:
            if declared.ledger not in self._ledgers:
                ledger = _opened(declared)
        except SulqError as error:
            fault = error
        with self._opening:
            wanted = self.datasets.get(held.name) is held  # it was not taken away
            if ledger is not None and wanted and declared.ledger not in self._ledgers:
                self._ledgers[declared.ledger] = ledger
            elif ledger is not None:
                ledger.close()
            if not wanted:
                return
            if declared.ledger not in self._ledgers and fault is not None:
                held.fault, held.taken = fault, time.monotonic()
                _log.error("a dataset could not be opened", extra={"dataset": declared.name, "code": fault.code})
                return
            held = self._taken_on(declared)
        if held.fault is None:
            self._start(declared, 1)

    def _kept(self, held: OpenDataset, worker: WorkerConnection) -> Frame:
        """How a worker is kept apart; one that connects to a database could come to a ledger that lies in it."""
        declared = self._declared.get(held.name)
        beside = declared is not None and declared.in_database and self.beside_rows
        return {**worker.isolation, **({"files": "shared"} if beside else {})}

    def workers(self) -> list[Frame]:
        """The connected workers, each with how it is kept apart; which they are is the owner's to know."""
        return [
            {"dataset": held.name, "worker": worker.name, "generation": worker.generation, **self._kept(held, worker)}
            for held in list(self.datasets.values())
            if held.rows is not None
            for worker in held.rows.workers
        ]

    def close(self) -> None:
        """Let workers go and close the ledgers."""
        for held in self.datasets.values():
            if held.rows is not None:
                held.rows.close()
        for ledger in self._ledgers.values():
            ledger.close()

    def _kill(self, worker: str, generation: int) -> None:
        self._say({"kill": worker, "generation": generation})

    def _say(self, frame: Frame) -> None:
        with self._sending:
            ipc.send(self._control, frame)


def _passes(held: OpenDataset, declared: DatasetSettings) -> bool:
    """Whether it is time to try again to open a ledger."""
    code = None if held.fault is None else held.fault.code
    away = code == AWAY and "://" in declared.ledger
    return code == UNWRITABLE or (away and time.monotonic() - held.taken >= RETRY_SECONDS)


def _opened(declared: DatasetSettings) -> Ledger:
    return Ledger.open(
        declared.ledger,
        unit=declared.unit,
        budget=declared.budget,
        synthetic=declared.synthetic,
        open_keys=open_keys(table.facts.schema for table in declared.tables),
        basic_share=declared.basic_share,
        key_share=declared.key_share,
        mechanisms=tuple(MECHANISMS),
        anchor=declared.anchor,
    )
