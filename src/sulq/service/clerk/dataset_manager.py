"""The clerk's datasets and the workers that serve them: ledgers opened here, rows opened there.

A dataset is taken on in four steps. Its ledger is opened, in the thread of its person space; the supervisor is asked
for one worker, which is given the person space's key for kept rows; when that worker says that its rows are open, what
it was read from is registered in the ledger and the curator is ready; then the other workers are started, which find
the prepared copy made. A ledger that failed is opened again by its thread, and its datasets are taken on anew.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

from sulq.curator.curator import Curator
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.registry import register
from sulq.curator.ledger.sources import Likeness, Source, noted
from sulq.curator.reuse import ReusingOracle
from sulq.curator.rows_choice import choose_rows
from sulq.errors import AccessDenied, CuratorError, QuestionError, SetupError, SulqError
from sulq.language.facts import TableFacts
from sulq.language.sublinear import check_size
from sulq.service import ipc
from sulq.service.clerk import file_looks
from sulq.service.clerk.ledger_places import placed
from sulq.service.clerk.person_space import Known, PersonSpace, agree_with
from sulq.service.clerk.readiness import Readiness
from sulq.service.clerk.registration import Holdings, RegisteredStore, check_chosen, refuse_covered
from sulq.service.clerk.worker_pool import OpenDataset, RemoteRows, WorkerAddress, WorkerConnection
from sulq.service.ipc import Frame
from sulq.service.logs import Counts
from sulq.service.schedule import PacedRows, Schedule
from sulq.service.settings import DatasetSettings, Service
from sulq.version import noise_versions

PASSING: Final = frozenset({"ledger-busy", "ledger-failed"})  # faults of a ledger that a worker is not to blame for
MAX_OPEN_SECONDS: Final = 60.0  # seconds that whoever takes a dataset on waits for its ledger
MAX_TURN_SECONDS: Final = 60.0  # seconds that registering waits for another registration
GRACE_SECONDS: Final = 5.0  # seconds for asks under way when their ledger failed, or the service stops
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
        self._spaces: dict[str, PersonSpace] = {}  # by their ledgers
        self._known: dict[str, Known] = {}  # what was last known of ledgers, also of those let go
        self._holdings = Holdings()
        self._store = RegisteredStore(service.state / "datasets")
        self._registered: set[str] = set()  # by calls, so that a call may take them away
        self._lock = threading.Lock()  # of the names above; nobody waits for a disk or a database within it
        self._taking = threading.Lock()  # of whose rows are whose
        self._holding = threading.Lock()  # of calls that register and withdraw
        self._covering = threading.Lock()  # of what is covered for the first time
        self._looks = file_looks.FileLooks(self._say)
        self.readiness = Readiness(self.datasets)

    def take_on(self, declared: DatasetSettings, wait: float = MAX_OPEN_SECONDS) -> OpenDataset:
        """Open a dataset; what is wrong with it is kept for its owner to see, and the others go on.

        Its ledger is opened aside; `wait`: seconds to wait for that.
        """
        with self._taking:
            held = self._taken(declared)
        until = time.monotonic() + wait
        while time.monotonic() < until and held.rows is None and held.problem is None:
            time.sleep(0.005)
        return held

    def _taken(self, declared: DatasetSettings) -> OpenDataset:
        held = self._fresh(declared, None)
        try:
            self._holdings.take(declared)
        except SulqError as error:
            held.fault = error
            _log.error("a dataset could not be opened", extra={"dataset": declared.name, "code": error.code})
        with self._lock:
            self._declared[declared.name], self.datasets[declared.name] = declared, held
            if held.fault is not None:
                return held
            held.space = self._spaces.get(declared.ledger)
            if held.space is None:
                place = declared.ledger
                held.space = PersonSpace(place, self._under, self._known, serve=self._serve, lost=self._lost)
                self._spaces[place] = held.space
        held.space.wake()
        return held

    def _fresh(self, declared: DatasetSettings, space: PersonSpace | None) -> OpenDataset:
        period = declared.schedule or self.service.schedule
        schedule = Schedule(period) if period else None
        return OpenDataset(declared.name, schedule=schedule, space=space, share_answers=self.service.share_answers)

    def _under(self, place: str) -> list[DatasetSettings]:
        """The datasets of a ledger as they are declared."""
        with self._lock:
            return [declared for declared in self._declared.values() if declared.ledger == place]

    def _of(self, space: PersonSpace) -> list[tuple[OpenDataset, DatasetSettings]]:
        """The datasets of a person space."""
        with self._lock:
            found = [(self.datasets.get(name), declared) for name, declared in self._declared.items()]
        return [(held, declared) for held, declared in found if held is not None and held.space is space]

    def _serve(self, space: PersonSpace) -> None:
        """Take on the datasets of an open ledger that wait for it; see whether the idle workers of others are well."""
        for held, declared in self._of(space):
            if _hindered(held):
                self._renew(held, declared)
            elif held.rows is not None:
                held.rows.look()
            elif held.fault is None:
                self._take(space, held, declared)

    def _take(self, space: PersonSpace, held: OpenDataset, declared: DatasetSettings) -> None:
        with space.lock, space.waiting():
            ledger = space.ledger
            if ledger is None or self.datasets.get(held.name) is not held:
                return
            try:
                agree_with(declared, ledger)
                held.ledger = ledger
                check_chosen(declared, ledger)
            except SulqError as error:
                if not ledger.failed and error.code not in PASSING:
                    held.fault = error
                    _log.error("a dataset could not be opened", extra={"dataset": held.name, "code": error.code})
                return
            held.rows = self._rows(held, declared, ledger)
            self._start(declared, ledger, 1)

    def _renew(self, held: OpenDataset, declared: DatasetSettings) -> None:
        """Put a dataset that is yet to be opened in the place of one, if that was not taken away."""
        fresh = self._fresh(declared, held.space)
        with self._lock:
            if self.datasets.get(held.name) is not held:
                return
            fresh.late, self.datasets[held.name] = held.late, fresh
        if held.rows is not None:
            held.rows.close()

    def _lost(self, space: PersonSpace) -> None:
        """Let the datasets of a ledger that failed wait for it; asks under way have a moment to end."""
        gone = self._of(space)
        for held, _ in gone:
            held.fault = held.fault or space.problem  # whoever has it in hand asks it nothing more
        until = time.monotonic() + GRACE_SECONDS
        for held, declared in gone:
            held.drained(max(until - time.monotonic(), 0.0))
            self._renew(held, declared)

    def _rows(self, held: OpenDataset, declared: DatasetSettings, ledger: Ledger) -> RemoteRows:
        declared = replace(declared, unit=ledger.unit)  # by which, or by one that was chosen since, its workers keep
        return RemoteRows(
            limit=self.service.limit,
            redeem=ledger.redeem,
            kill=self._kill,
            hello=lambda hello: self._greeted(held, declared, hello),
            event=self.counts.event,
        )

    def _start(self, declared: DatasetSettings, ledger: Ledger, count: int) -> None:
        own = replace(declared, unit=ledger.unit)  # rows are kept by the unit that answers are priced by, whatever else
        rows: Frame = {"hash_key": ledger.hash_key.hex(), "space": ledger.space, "erased": list(ledger.erased)}
        settings: Frame = {"dataset": own.for_worker().to_json(), **rows}
        self._say({"start": declared.name, "count": count, "settings": settings})

    def _greeted(self, held: OpenDataset, declared: DatasetSettings, hello: Frame) -> None:
        """A worker has opened its rows: the first one's are registered, and any other's must be the same."""
        sources, rows = cast("dict[str, str]", hello["sources"]), cast("dict[str, int]", hello["rows"])
        name, space = declared.name, held.open_space()
        with space.lock:
            ledger = held.open_ledger()
            if self.datasets.get(name) is not held or space.ledger is not ledger:
                raise AccessDenied("closed", "This dataset was taken away.")
            if self._sources.setdefault(name, (sources, rows)) != (sources, rows):
                raise SetupError("source-changed", f"The data of {name!r} is not what was registered.")
            if held.curator is not None or held.choosing:
                return
            try:
                self._cover(declared, ledger, cast("list[Frame]", hello.get("covers", [])))
                curator = self._curator(declared, held, sources, rows)
                # Another process may have chosen since this worker was started.
                held.choosing = ledger.histogram_share is not None or ledger.unit != declared.unit
            except SulqError:
                del self._sources[name]
                raise
            if held.choosing:  # aside: this worker is asked once it has been greeted
                threading.Thread(target=self._choose_rows, args=(declared, held, curator), daemon=True).start()
                return
            held.curator = curator
            with self._lock:  # to renew is said once, however often its ledger is opened again
                if name in self._declared:
                    self._declared[name] = replace(self._declared[name], renew=False)
            _log.info("a dataset is ready", extra={"dataset": name})
            self._start(replace(declared, renew=False), ledger, self.service.workers)

    def _choose_rows(self, declared: DatasetSettings, held: OpenDataset, oracle: ReusingOracle) -> None:
        """Have the number of rows chosen by a worker that keeps the most; then one that keeps so many is started.

        Where it fails nothing is tried again by itself, nor after a restart: what was charged stays so, and the owner
        must hear of it.
        """
        ledger, space = held.open_ledger(), held.open_space()
        try:
            with space.choosing:  # of two datasets of one person space one buys it
                choose_rows(oracle.curator, ledger, again=False)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is not being opened any more
            unknown = CuratorError("engine-failed", "The number of rows could not be chosen.")
            held.fault = error if isinstance(error, SulqError) else unknown
            told = {"dataset": held.name, "code": held.fault.code, "error": type(error).__name__}
            _log.error("the number of rows was not chosen", extra=told)
            return
        with space.lock:
            if self.datasets.get(held.name) is not held or held.rows is None:
                return
            held.rows.close()
            held.rows, held.choosing = self._rows(held, declared, ledger), False
            self._start(replace(declared, renew=False), ledger, 1)

    def _cover(self, declared: DatasetSettings, ledger: Ledger, told: list[Frame]) -> None:
        """Note what the ledger covers, by the word of a worker, who may read it; not what another one covers (T98).

        Of what this one surely covers none is asked: no other covers it more surely, and one may be damaged or away.
        """
        sources = [Source.from_json(tree) for tree in told]
        own = ledger.known_book
        if all(noted(source, own) is Likeness.SAME for source in sources):
            ledger.cover(sources)
            return
        with self._covering:  # of two that would cover the same one is refused
            with self._lock:
                others = [space.ledger for space in self._spaces.values()]
            books = [other.known_book for other in others if other is not None]
            place, ledgers = declared.ledger, self.service.ledgers
            refuse_covered(sources, own, books, ledger=place, ledgers=ledgers, store=self._store)
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
        with self._turn():
            if declared.name in self.datasets:
                raise QuestionError("name-taken", f"There is a dataset {declared.name!r} already.", "Use another name.")
            declared = placed(declared, self.service, self._store.ledgers)
            place = Path(declared.ledger)
            begun = "://" not in declared.ledger and not place.exists() and declared.anchor is None
            held = self.take_on(declared, wait=0.0)
            try:
                ready = self._first_word(held.name)
                self._store.put(declared)
            except BaseException:
                self._drop(declared.name, unmake=place if begun else None)
                raise
            self._registered.add(declared.name)
            return ready

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """One registration at a time; one that waits for a disk keeps the next waiting, but not for ever."""
        if not self._holding.acquire(timeout=MAX_TURN_SECONDS):
            raise SetupError("not-ready", "Another dataset is being registered.", "Try again in a moment.")
        try:
            yield
        finally:
            self._holding.release()

    def _first_word(self, name: str) -> bool:
        until = time.monotonic() + MAX_FIRST_WORD_SECONDS
        while time.monotonic() < until and not self.datasets[name].ready and self.datasets[name].problem is None:
            time.sleep(0.02)
        problem = self.datasets[name].problem
        if problem is not None:
            raise problem
        return self.datasets[name].ready

    def withdraw(self, name: str) -> None:
        """Take away a dataset that was registered by a call; its data and its ledger stay."""
        with self._turn():
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
        with self._lock:  # it is not taken on anew meanwhile
            held = self.datasets.pop(name)
            declared = self._declared.pop(name, None)
        period = 0.0 if held.schedule is None else held.schedule.period
        held.drained(self.service.limit + 2 * period)
        with contextlib.nullcontext() if held.space is None else held.space.held(GRACE_SECONDS):
            if held.rows is not None:  # after this no worker of its is started
                held.rows.close()
                self._say({"drop": name})
        self._sources.pop(name, None)
        with self._taking, self._lock:
            alone = self._holdings.release(name)
            space = self._spaces.pop(declared.ledger, None) if alone and declared is not None else None
        if space is not None:
            space.close(MAX_OPEN_SECONDS, unmake=unmake)

    def take_on_registered(self, wait: float = MAX_OPEN_SECONDS) -> None:
        """Open the datasets that were registered by calls; one that cannot be read is its owner's to see."""
        for name, found in self._store.read():
            if name in self.datasets and not self.datasets[name].expected:
                continue  # the configuration has one of that name now
            self._registered.add(name)
            if isinstance(found, DatasetSettings):
                self.take_on(found, wait)
            else:
                self.datasets[name] = OpenDataset(name, fault=found)

    def look(self, path: Path, partitions: Sequence[str] = ()) -> Frame:
        """Names and kinds of a file's columns."""
        return self._looks.take({"look": str(path), "partitions": list(partitions)}, file_looks.MAX_LOOK_SECONDS)

    def check(self, declared: DatasetSettings) -> Frame:
        """How declarations fit the rows that they are about; that their owner looks is noted first (SR28)."""
        noted = self._store.ledgers
        with self._lock:
            others, spaces = list(self._declared.values()), dict(self._spaces)
        books = file_looks.known_books(others, {place: space.ledger for place, space in spaces.items()}, noted.values())
        file_looks.refuse_known(declared, others, books, self.service.ledgers)
        file_looks.noted_look(placed(declared, self.service, noted))
        found = self._looks.take({"check": declared.for_worker().to_json()}, file_looks.MAX_CHECK_SECONDS)
        file_looks.refuse_copies([Source.from_json(tree) for tree in cast("list[Frame]", found.pop("covers"))], books)
        return found

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
            self._looks.heard(frame)

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
        """Let workers go and close the ledgers, each as long as its disk takes and no other's."""
        for held in self.datasets.values():
            if held.rows is not None:
                held.rows.close()
        with self._lock:
            spaces = list(self._spaces.values())
        for space in spaces:
            space.close(0.0)
        until = time.monotonic() + GRACE_SECONDS
        for space in spaces:
            space.close(max(until - time.monotonic(), 0.0))

    def _kill(self, worker: str, generation: int) -> None:
        self._say({"kill": worker, "generation": generation})

    def _say(self, frame: Frame) -> None:
        with self._sending:
            ipc.send(self._control, frame)


def _hindered(held: OpenDataset) -> bool:
    """Whether its workers were there and its ledger was not: then it is taken on anew."""
    stopped = None if held.rows is None or held.curator is not None or held.choosing else held.rows.stopped
    return stopped is not None and stopped.code in PASSING
