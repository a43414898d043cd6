"""One person space as the clerk keeps it: a ledger in a thread of its own, which opens it again after a fault.

Whatever may wait for the disk or database of one ledger, but for calls about its own datasets, is done in its thread.
So a disk that is full or does not answer, a ledger that was rolled back and a database that is away are the fault of
the datasets of that ledger, and nobody else waits or hears of it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from sulq.curator.ledger.anchor import Noted
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.registry import open_keys
from sulq.curator.ledger.shares import Share
from sulq.errors import CuratorError, SetupError, SulqError
from sulq.kernel.mechanisms import MECHANISMS
from sulq.service.settings import DatasetSettings

TURN_SECONDS: Final = 1.0  # between two looks at a ledger's own word and at its workers
PROBE_SECONDS: Final = 5.0  # between two probes: fixed, whatever is asked
MAX_STALL_SECONDS: Final = 15.0  # that a probe waits for a disk or a database before asks are refused
MAX_PAUSE_SECONDS: Final = 10.0  # between two tries to open a ledger
LONG_LIFE_SECONDS: Final = 30.0  # a ledger that was open so long is opened again at once
DIFFERING: Final = frozenset({"unit-mismatch", "budget-mismatch", "synthetic-mismatch"})  # one dataset's own
ROLLED_BACK: Final = (
    "Put the newest copy back in its place; it is opened again by itself. If there is none, an older copy is taken "
    "when the server is started anew, and what it has forgotten can be spent again: an anchor kept apart would know."
)

_log = logging.getLogger(__name__)


class Known(NamedTuple):
    """What this process last knew of a ledger: its last entry, and what its anchor said, if it has one."""

    seq: int
    digest: str
    noted: Noted | None

    @classmethod
    def of(cls, ledger: Ledger) -> Known:
        """As it stands; no file is read."""
        noted = ledger.last_noted  # before the ledger, which is never behind it
        return cls(*ledger.last_known, noted)

    def stands_in(self, ledger: Ledger) -> bool:
        """Whether a ledger holds all this: it goes on from the last entry, or its anchor's word is kept."""
        if ledger.contains(self.seq, self.digest):
            return True
        return ledger.anchored and self.noted is not None and not ledger.lacks(self.noted)


class PersonSpace:
    """One ledger: opened, probed and, when it failed, closed and opened again, with growing pauses, by its thread.

    Privacy: a ledger whose last write failed is read from its place before it takes a debit (T48). What this process
    knew to be durable must stand in what it opens, or it takes none: an older copy would grant a budget again. With an
    anchor, what this process knew the anchor to say must stand there, or have been charged since: both may be rolled
    back together (T46). A ledger that was there is never begun anew.
    """

    def __init__(
        self,
        place: str,
        declared: Callable[[str], Sequence[DatasetSettings]],
        known: MutableMapping[str, Known],
        *,
        serve: Callable[[PersonSpace], None],
        lost: Callable[[PersonSpace], None],
    ) -> None:
        """Begin with no ledger.

        Args:
            place: The ledger's file or address.
            declared: The datasets of the ledger, as their owners declare them.
            known: What this process last knew, of each ledger.
            serve: Called at each turn while the ledger is open.
            lost: Called when it is not any more.
        """
        self.place = place
        self.ledger: Ledger | None = None
        self.lock = threading.RLock()  # of what is written into the ledger besides asks
        self.choosing = threading.Lock()  # of the number of rows that are kept of a person
        self._declared = declared
        self._known = known
        self._serve = serve
        self._lost = lost
        self._fault: SulqError | None = None
        self._begun: float | None = None  # since when its thread waits for the ledger
        self._open_since = self._due = self._probed = 0.0
        self._pause = 0.0
        self._ended = False
        self._unmake: Path | None = None
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sulq person space", daemon=True)

        self._thread.start()

    def wake(self) -> None:
        """Take the next turn now: a dataset came."""
        self._wake.set()

    @property
    def problem(self) -> SulqError | None:
        """Why its datasets cannot be asked, for their owner."""
        return (
            SetupError("ledger-failed", "The ledger's disk or database does not answer.")
            if self.stalled
            else self._fault
        )

    @property
    def stalled(self) -> bool:
        """Whether whoever asks the ledger for something waits for nobody knows how long."""
        begun = self._begun
        return begun is not None and time.monotonic() - begun > MAX_STALL_SECONDS

    def close(self, patience: float, *, unmake: Path | None = None) -> None:
        """Let the ledger go; waits so long for its disk and no longer.

        `unmake`: the file is removed, if nothing was ever charged to it.
        """
        self._unmake = unmake
        self._ended = True
        self._wake.set()
        if patience > 0 and self._thread.is_alive():
            self._thread.join(patience)

    def _run(self) -> None:
        while not self._ended:
            self._wake.clear()
            try:
                self.turn()
            except Exception as error:  # noqa: BLE001 - one turn that fails is not the last
                _log.error("a ledger's turn failed", extra={"error": type(error).__name__})
            self._wake.wait(TURN_SECONDS)
        if self.ledger is not None:
            self._end(self.ledger)

    def _end(self, ledger: Ledger) -> None:
        self._known[self.place] = Known.of(ledger)
        unmake = self._unmake
        empty = unmake is not None and ledger.usable and not ledger.transcript(limit=1)
        ledger.close()
        if unmake is not None and empty:
            del self._known[self.place]
            for path in (unmake, unmake.with_name(f"{unmake.name}-journal")):
                path.unlink(missing_ok=True)

    def turn(self) -> None:
        """Open the ledger if it is not open and a try is due; probe it if that is due; then have it served."""
        if self.ledger is not None and (self.ledger.failed or time.monotonic() - self._probed >= PROBE_SECONDS):
            self._probe(self.ledger)
        if self.ledger is None and time.monotonic() >= self._due:
            self._open()
        if self.ledger is not None:
            self._serve(self)

    def _probe(self, ledger: Ledger) -> None:
        """Whether it would take a debit; one that takes none until it is opened again is let go."""
        try:
            with self.waiting():
                ledger.flush()
                ledger.probe()
        except SulqError as error:
            self._fail(error)
        else:
            self._fault = None
        self._probed = time.monotonic()
        if ledger.failed:
            self._let_go(ledger)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Its thread does what may wait for the ledger's disk or database."""
        self._begun = time.monotonic()
        try:
            yield
        finally:
            self._begun = None

    @contextmanager
    def held(self, patience: float) -> Iterator[None]:
        """Nothing but asks is written into the ledger meanwhile; where that is not to be had in time, it goes on."""
        alone = self.lock.acquire(timeout=patience)
        try:
            yield
        finally:
            if alone:
                self.lock.release()

    def _let_go(self, ledger: Ledger) -> None:
        """Close it; its datasets are taken on anew once it is open again."""
        self._fault = self._fault or CuratorError("ledger-failed", "The ledger could not be written.")
        with self.lock:
            self._known[self.place] = Known.of(ledger)
            self.ledger = None
        self._lost(self)
        try:
            ledger.close()
        except SulqError as error:  # an answer that waited is lost, as in a crash; its debit stands
            _log.warning("a ledger's last answers were not written", extra={"code": error.code})
        now = time.monotonic()
        self._pause = 0.0 if now - self._open_since >= LONG_LIFE_SECONDS else self._longer()
        self._due = now + self._pause

    def _longer(self) -> float:
        return min(max(2 * self._pause, TURN_SECONDS), MAX_PAUSE_SECONDS)

    def _open(self) -> None:
        """Try to open it, with every safeguard of opening, and as what this process knows of it."""
        known, begun = self._known.get(self.place), time.monotonic()
        whole = self._fault is not None and self._fault.code == "ledger-damaged"  # wherever that was found
        try:
            ledger = self._opened(create=known is None, whole=whole)
            try:
                if known is not None and not known.stands_in(ledger):
                    why = f"The ledger is not the one that this server knows: entry {known.seq} is missing or another."
                    raise SetupError("ledger-rolled-back", why, ROLLED_BACK)
                ledger.probe()
            except BaseException:
                ledger.give_up() if known is None else ledger.close()
                raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
            unknown = CuratorError("ledger-failed", f"The ledger could not be opened ({type(error).__name__}).")
            self._fail(error if isinstance(error, SulqError) else unknown)
            self._pause, now = self._longer(), time.monotonic()
            self._due = now + max(self._pause, 4 * (now - begun))  # a long ledger takes long to read in vain
        else:
            if known is not None:
                _log.info("a ledger is open again", extra={"entries": ledger.last_known[0]})
            self._open_since = self._probed = time.monotonic()
            self.ledger, self._fault = ledger, None

    def _opened(self, *, create: bool, whole: bool) -> Ledger:
        """The ledger, as one of its datasets declares it: one that declares it otherwise stops no other."""
        first: SulqError | None = None
        for declared in self._declared(self.place):
            try:
                return opened(declared, create=create, whole=whole)
            except SulqError as error:
                first = first or error
                if error.code not in DIFFERING:
                    raise
        raise first or SetupError("not-ready", "The datasets of this ledger were taken away.")

    def _fail(self, error: SulqError) -> None:
        if self._fault is None or self._fault.code != error.code:
            names = ", ".join(
                declared.name for declared in self._declared(self.place)
            )  # an address may hold a password
            _log.error("a ledger cannot be used", extra={"code": error.code, "datasets": names})
        self._fault = error


def opened(declared: DatasetSettings, *, create: bool, whole: bool) -> Ledger:
    """The ledger of a dataset, as its owner declares it."""
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
        create=create,
        whole=whole,
    )


def agree_with(declared: DatasetSettings, ledger: Ledger) -> None:
    """Datasets of one person space share its ledger, and all of them say of it what it says itself (T56)."""
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
