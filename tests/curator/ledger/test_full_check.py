"""A ledger is verified on a connection of its own: asks go on, and what was verified before is not read again."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sulq.curator.ledger import checkpoints, full_check, reading
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import place_of, verify
from sulq.curator.ledger.postgres_place import Address
from sulq.errors import SetupError
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.entries import State
from sulq.kernel.ledger.store import damaged
from sulq.language.privacy import EpsilonDelta
from tests.curator.ledger.cases import MECHANISMS, ask, opened, pure
from tests.curator.ledger.places import STORES, Place, empty
from tests.postgres import server

EVERY = 50


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a checkpoint every few entries."""
    monkeypatch.setattr(checkpoints, "EVERY", EVERY)


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with empty(request.param) as found:
        yield found


def lived(ledger: Ledger, number: int) -> None:
    for each in range(number):
        ledger.keep(ask(ledger, pure("0.001"), f"q{each}"), f'"answer {each}"')


def begin(place: Place) -> Ledger:
    return opened(place, EpsilonDelta(10, 1e-6))


def changed(place: Place, seq: int) -> None:
    """Change one letter of an entry, as a disk or a careless hand does."""
    text = f"UPDATE {{0}}.entries SET body = replace(body, '\"kind\":', '\"kinp\":') WHERE seq = {seq}"
    if isinstance(place, str):
        server().do(text.format(place_of(place).ledger))
        return
    import apsw

    db = apsw.Connection(str(place))
    db.execute(text.format("main"))
    db.close()


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The entries that are followed from now on."""
    found: list[int] = []
    real = State.follow

    def follow(state: State, row: Row) -> None:
        found.append(row.seq)
        real(state, row)

    monkeypatch.setattr(State, "follow", follow)
    return found


def test_what_was_verified_is_read_on_from_its_last_checkpoint_T47(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second reading begins at the last checkpoint of the first, says what one from outside says, and `whole` not.

    Control: the first reading, and each whole one, read every entry.
    """
    with begin(place) as ledger:
        lived(ledger, 120)
        ledger.flush()
        read = counted(monkeypatch)
        first = ledger.verify()
        assert read == [*range(1, first.entries + 1)]
        read.clear()
        assert ledger.verify() == first
        assert len(read) <= EVERY + 6
        assert first.entries > 4 * EVERY
        lived(ledger, 40)
        ledger.flush()
        again = ledger.verify()
        assert again == verify(place)
        assert again.debits == 160
        read.clear()
        assert ledger.verify(whole=True) == again
        assert len(read) == again.entries


def test_damage_since_the_last_reading_is_found_and_older_damage_by_a_whole_one_T47(place: Place) -> None:
    """After a verified checkpoint every changed entry is found; before it `whole` and the command find one."""
    with begin(place) as ledger:
        lived(ledger, 120)
        ledger.flush()
        ledger.verify()
        changed(place, 3)
        ledger.verify()  # goes by what it read before, as the guide says
        with pytest.raises(SetupError) as refusal:
            verify(place)
        assert refusal.value.code == "ledger-damaged"
        with pytest.raises(SetupError) as refusal:
            ledger.verify(whole=True)
        assert refusal.value.code == "ledger-damaged"
        with pytest.raises(SetupError) as refusal:  # what was found stops the ledger
            ask(ledger, pure("0.001"), "after")
        assert refusal.value.code == "ledger-damaged"


@pytest.mark.parametrize("which", ["checkpoint", "last"])
def test_a_changed_checkpoint_or_later_entry_is_found_T47(place: Place, which: str) -> None:
    """The checkpoint that a reading begins at, and all after it, are the ones that were written."""
    with begin(place) as ledger:
        lived(ledger, 120)
        ledger.flush()
        report = ledger.verify()
        passed = ledger._verification and ledger._verification._passed
        assert passed
        changed(place, passed[0] if which == "checkpoint" else report.entries)
        with pytest.raises(SetupError) as refusal:
            ledger.verify()
        assert refusal.value.code == "ledger-damaged"


def test_nobody_waits_for_a_reading_of_the_whole_ledger(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a reading debits are written, transcripts are read, and the reading tells of its beginning.

    Control: who holds the writer meanwhile, as readings once did, keeps a debit waiting.
    """
    with begin(place) as ledger:
        lived(ledger, 120)
        ledger.flush()
        middle, go = threading.Event(), threading.Event()

        class Slow(State):
            def follow(self, row: Row) -> None:
                if row.seq == EVERY:
                    middle.set()
                    assert go.wait(30)
                super().follow(row)

        monkeypatch.setattr(full_check, "State", Slow)
        reports: list[int] = []
        slow = threading.Thread(target=lambda: reports.append(ledger.verify().debits))
        slow.start()
        assert middle.wait(30)
        lived(ledger, 5)
        assert len(ledger.transcript(after=1)) == len(ledger.transcript()) == 125
        go.set()
        slow.join(30)
        assert reports == [120]

        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with ledger._writer.looking():
                held.set()
                assert go.wait(30)

        go.clear()
        holder = threading.Thread(target=hold)
        holder.start()
        assert held.wait(30)
        asking = threading.Thread(target=lambda: (lived(ledger, 1), done.set()))
        asking.start()
        assert not done.wait(0.3)
        go.set()
        for thread in (holder, asking):
            thread.join(30)
        assert done.is_set()


def test_who_comes_while_the_ledger_is_read_shares_the_next_reading(place: Place) -> None:
    """Of many who verify at once each has a report of a moment after it asked, from two readings in all.

    Control: who come one after another have a reading each.
    """
    read: list[int] = []
    begun, go = threading.Event(), threading.Event()

    def slow(where: Path | Address, passed: tuple[int, str] | None, at: int) -> full_check.LedgerReading:
        read.append(at)
        begun.set()
        assert go.wait(30)
        return full_check.read_ledger(where, passed, at)

    with begin(place) as ledger:
        lived(ledger, 20)
        ledger.flush()
        reports: list[int] = []
        crowd = [threading.Thread(target=lambda: reports.append(ledger.verify(read=slow).debits)) for _ in range(7)]
        crowd[0].start()
        assert begun.wait(30)
        lived(ledger, 5)
        ledger.flush()
        for each in crowd[1:]:
            each.start()
        while ledger._verification._waiting < len(crowd):
            time.sleep(0.001)
        assert threading.active_count() < 3 * len(crowd)
        with pytest.raises(SetupError) as refusal:  # and who has no patience hears it: the reading goes on
            ledger.verify(read=slow, patience=0.01)
        assert refusal.value.code == "not-ready"
        go.set()
        for each in crowd:
            each.join(30)
        assert sorted(reports) == [20, *[25] * 6]
        assert len(read) == 2
        assert [ledger.verify(read=slow).debits for _ in range(3)] == [25] * 3
        assert len(read) == 5


def test_who_waits_reads_in_the_own_thread_T67(place: Place) -> None:
    """No thread ends as the call does: a fork then would copy a lock of OpenSSL's. Control: a server's caller has one.

    Interrupted, in its reading or while it waits for another's, the caller hears it, and the next reading is whole.
    """
    readers: list[threading.Thread] = []

    def noting(where: Path | Address, passed: tuple[int, str] | None, at: int) -> full_check.LedgerReading:
        readers.append(threading.current_thread())
        return full_check.read_ledger(where, passed, at)

    def interrupted(*_: object) -> full_check.LedgerReading:
        raise KeyboardInterrupt

    class Stopped:
        """A lock at which the wait is interrupted."""

        def __enter__(self) -> None:
            raise KeyboardInterrupt

        def __exit__(self, *_: object) -> None: ...

    with begin(place) as ledger:
        lived(ledger, 1)
        ledger.verify(read=noting)
        ledger.verify(read=noting, patience=30)
        assert readers[0] is threading.current_thread()
        assert readers[1] is not readers[0]
        verification = ledger._verification
        with pytest.raises(KeyboardInterrupt):
            ledger.verify(read=interrupted)
        real, verification._one = verification._one, Stopped()
        with pytest.raises(KeyboardInterrupt):
            ledger.verify(read=noting)
        verification._one = real
        assert not verification._next
        assert verification._waiting == 0
        assert ledger.verify(read=noting).debits == 1


def test_a_server_rests_between_readings_as_long_as_the_last_one_took(place: Place) -> None:
    """So an auditor in a loop leaves asks half of the time. Control: a caller without patience waits for no rest."""
    took, spans = 0.3, []

    def slow(where: Path | Address, passed: tuple[int, str] | None, at: int) -> full_check.LedgerReading:
        begun = time.monotonic()
        found = full_check.read_ledger(where, passed, at)
        time.sleep(took)
        spans.append((begun, time.monotonic()))
        return found

    with begin(place) as ledger:
        lived(ledger, 1)
        for _ in range(3):
            ledger.verify(read=slow, patience=30)
        ledger.verify(read=slow)
    rests = [after[0] - before[1] for before, after in itertools.pairwise(spans)]
    assert min(rests[:2]) >= took
    assert rests[2] < took


def test_a_crowd_that_waits_for_one_reading_is_bounded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each who waits holds a thread of a server: past so many the next is refused, and may ask again.

    Control: with room for all of them nobody is.
    """
    go = threading.Event()

    def slow(where: Path | Address, passed: tuple[int, str] | None, at: int) -> full_check.LedgerReading:
        assert go.wait(30)
        return full_check.read_ledger(where, passed, at)

    with begin(place) as ledger:
        lived(ledger, 1)
        for most in (3, 4):
            monkeypatch.setattr(full_check, "MAX_WAITING_READERS", most)
            go.clear()
            crowd = [threading.Thread(target=ledger.verify, kwargs={"read": slow, "patience": 30}) for _ in range(3)]
            for each in crowd:
                each.start()
            while ledger._verification._waiting < len(crowd):
                time.sleep(0.001)
            with pytest.raises(SetupError, match="Too many" if most == 3 else "still being read"):
                ledger.verify(read=slow, patience=0.01)
            go.set()
            for each in crowd:
                each.join(30)


def test_a_ledger_opened_by_another_process_is_verified_to_its_end(place: Place) -> None:
    """Entries of others since the last reading are read too."""
    with begin(place) as ledger:
        lived(ledger, 60)
        ledger.verify()
        with Ledger.open(place, mechanisms=MECHANISMS) as other:
            lived(other, 60)
        assert ledger.verify() == verify(place)


class SlowStore:
    """A store whose reader is inside it until told to go on."""

    def __init__(self) -> None:
        self.inside, self.release = threading.Event(), threading.Event()

    def ask(self, _query: str) -> None:
        self.inside.set()
        self.release.wait(60)
        raise damaged("the end", "is missing")

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("guarded", [True, False])
def test_a_fork_waits_for_whoever_reads_T67(monkeypatch: pytest.MonkeyPatch, *, guarded: bool) -> None:
    """A child would copy locks that a reader holds within SQLite. Control: with a lock that no fork takes it is made.

    `release` is set after a while by a timer: only a fork that waits finds it set.
    """
    if not guarded:
        monkeypatch.setattr(reading, "_reading", threading.RLock())
    store = SlowStore()
    monkeypatch.setattr(full_check, "look", lambda *_: store)

    def read() -> None:
        with pytest.raises(SetupError):
            full_check.read_ledger(Path("a.ledger"), None, 1)

    reader = threading.Thread(target=read)
    reader.start()
    assert store.inside.wait(60)
    timer = threading.Timer(1.0, store.release.set)
    timer.start()
    child = os.fork()
    if child == 0:  # pragma: no cover - runs in the child
        os._exit(0)
    assert store.release.is_set() is guarded
    os.waitpid(child, 0)
    reader.join()
    timer.join()
