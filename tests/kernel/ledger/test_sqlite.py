"""The ledger's file: damage of every kind is found, failures stop everything, and the settings hold (T47, T48, T49)."""

from __future__ import annotations

import functools
import gc
import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from sulq.curator.ledger.history import History, load
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import report, verify
from sulq.curator.ledger.turns import SqliteFile, opening
from sulq.errors import CuratorError, SetupError, SulqError
from sulq.kernel.ledger import sqlite
from sulq.kernel.ledger.chain import ORIGIN, Row
from sulq.kernel.ledger.entries import State
from sulq.kernel.ledger.sqlite import MEMORY, SCHEMA
from sulq.language.privacy import Epsilon
from tests.counts import count
from tests.curator.ledger.cases import ask, memory_folder, opened, pure
from tests.privacy.disks import FaultyDisk


@pytest.fixture
def folder() -> object:
    with memory_folder() as found:
        yield found


@functools.cache
def ledger_image(asks: int) -> bytes:
    """The bytes of a ledger with so many asks and some kept answers."""
    with memory_folder() as folder:
        path = folder / "a.ledger"
        with opened(path, Epsilon(100)) as ledger:
            for number in range(asks):
                receipt = ask(ledger, replace(pure("0.01"), draws=()), f"question {number}")
                if number % 3 == 0:
                    ledger.keep(receipt, "1" * number)
        return path.read_bytes()


def read(image: bytes) -> tuple[object, list[Row]] | str:
    """What a ledger of these bytes says, or the code of the refusal to open it."""
    store = SqliteFile(MEMORY)
    try:
        with opening():
            store._db.deserialize("main", image)
            store._db.pragma("journal_mode")
            found = report(load(store, ()))
            return found, list(store.rows())
    except SetupError as error:
        return error.code
    finally:
        store.close()


def flipped(image: bytes, bit: int) -> bytes:
    changed = bytearray(image)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def compact(image: bytes) -> bytes:
    """The same ledger in the smallest pages SQLite has, so that all of its bits can be tried."""
    with memory_folder() as folder:
        (folder / "large").write_bytes(image)
        store = SqliteFile(str(folder / "large"))
        store._db.execute("PRAGMA page_size = 512")
        store._db.execute("VACUUM")
        store.close()
        return (folder / "large").read_bytes()


def test_every_flipped_bit_of_a_small_ledger_is_found_or_means_nothing_T47() -> None:
    """Each flip is refused at opening, or leaves every entry and total as it was (T47)."""
    image = compact(ledger_image(1))
    whole = read(image)
    assert not isinstance(whole, str)
    outcomes = [read(flipped(image, bit)) for bit in range(len(image) * 8)]
    assert all(outcome in (whole, "ledger-damaged") for outcome in outcomes)
    # The rest is unused space: what the entries and the head's hash are made of is found to the last bit.
    meant = sum(len(row.body) + 32 for row in whole[1]) + 32
    assert sum(outcome != whole for outcome in outcomes) >= meant * 8


def outcome_of(image: bytes, rows: list[Row]) -> str:
    """What becomes of a changed image: as `read`, but looking at the first changed entry only.

    `refused` by SQLite, found by the `chain`, found by the `head`, the `same` as before, or `missed`.
    """
    store = SqliteFile(MEMORY)
    try:
        with opening():
            store._db.deserialize("main", image)
            head, found = store.head(), list(store.rows())
    except SetupError as error:
        return "refused" if error.code == "ledger-damaged" else error.code
    finally:
        store.close()
    last = ORIGIN
    for place, row in enumerate(rows, start=1):
        if place > len(found):
            return "head" if head != (place - 1, last) else "missed"
        if (changed := found[place - 1]) != row:
            state = State((), History())
            state.seq, state.hash = place - 1, last
            try:
                state.follow(changed)
            except SetupError as error:
                return "chain" if error.code == "ledger-damaged" else error.code
            except AttributeError:  # it was followed, in a state without a filter
                return "missed"
        last = row.hash
    if len(found) > len(rows) or head != (len(rows), last):
        return "head" if head != (len(found), found[-1].hash) else "missed"
    return "same"


def test_flipped_bits_of_a_ledger_of_200_entries_are_found_T47() -> None:
    """In a ledger of 200 asks no flip changes an entry, drops one or moves the head unnoticed (T47)."""
    image = ledger_image(200)
    whole = read(image)
    assert not isinstance(whole, str)
    bits = range(len(image) * 8)
    number = count("T47 bits, 200 entries", short=1_500, long=len(bits))
    outcomes: Counter[str] = Counter()
    for place, bit in enumerate(random.sample(bits, number)):
        outcomes[outcome_of(flipped(image, bit), whole[1])] += 1
        if place % 1_000 == 0:  # what a refusal's traceback holds is a whole file, and the collector counts objects
            gc.collect()
    assert set(outcomes) <= {"refused", "chain", "head", "same"}
    assert outcomes["chain"] > number / 2  # SQLite by itself would have let these pass
    for bit in random.sample(bits, count("T47 bits, 200 entries, read whole", short=150, long=10_000)):
        assert read(flipped(image, bit)) in (whole, "ledger-damaged"), bit


def test_the_shorter_check_is_not_blind_T47() -> None:
    """Control: an intact file that does not say what is expected is missed by the chain, and said so."""
    image = ledger_image(3)
    rows = read(image)[1]
    assert outcome_of(image, rows) == "same"
    assert outcome_of(flipped(image, image.index(b"question 1") * 8), rows) == "chain"
    assert outcome_of(image, [*rows[:-1], rows[-1]._replace(body=rows[-1].body + " ")]) == "missed"
    assert outcome_of(image, rows[:-1]) == "missed"


def test_flips_in_the_file_header_never_cost_a_debit_T47(folder: Path) -> None:
    """From a file with a flip in SQLite's header a ledger is refused or whole, and stays so when written (T47)."""
    image = ledger_image(4)
    path = folder / "a.ledger"
    for bit in random.sample(range(800), count("T47 bits, file header", short=300, long=800)):
        path.write_bytes(flipped(image, bit))
        try:
            with opened(path, Epsilon(100)) as ledger:
                assert ledger.totals.events == 4
                ask(ledger, pure("0.01"))
        except SulqError:
            continue
        try:
            events = verify(path).totals.events
        except SetupError:
            continue
        assert events == 5


def test_a_ledger_cut_anywhere_is_refused_T47(folder: Path) -> None:
    """Cut at any byte, also to nothing, a ledger is refused and never begun anew (T47)."""
    image = ledger_image(4)
    cuts = {sector + near for sector in range(0, len(image), 512) for near in (-1, 0, 1)}
    cuts |= set(random.sample(range(len(image)), count("T47 cuts", short=200, long=len(image))))
    path = folder / "a.ledger"
    for cut in sorted(cuts - {-1}):
        path.write_bytes(image[:cut])
        with pytest.raises(SetupError) as refusal:
            opened(path, Epsilon(100))
        assert refusal.value.code == "ledger-damaged", cut
        assert path.stat().st_size == cut


FORGERIES = {
    "two bodies swapped": """UPDATE entries SET body = (SELECT body FROM entries e WHERE e.seq = 9 - entries.seq)
        WHERE seq IN (4, 5)""",
    "two entries swapped": """UPDATE entries SET seq = -seq WHERE seq IN (4, 5);
        UPDATE entries SET seq = 9 + seq WHERE seq < 0""",
    "an entry doubled": """INSERT INTO entries SELECT max(seq) + 1, body, hash FROM entries;
        UPDATE head SET seq = (SELECT max(seq) FROM entries)""",
    "an earlier entry doubled": """INSERT INTO entries SELECT 1 + (SELECT max(seq) FROM entries), body, hash
        FROM entries WHERE seq = 3; UPDATE head SET seq = seq + 1, hash = (SELECT hash FROM entries WHERE seq = 3)""",
    "an entry removed": "DELETE FROM entries WHERE seq = 4",
    "an entry removed, the rest moved up": """DELETE FROM entries WHERE seq = 4;
        UPDATE entries SET seq = -seq WHERE seq > 4; UPDATE entries SET seq = -seq - 1 WHERE seq < 0;
        UPDATE head SET seq = seq - 1""",
    "the first entry removed": "DELETE FROM entries WHERE seq = 1",
    "the tail removed": "DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries)",
    "all but the first removed": "DELETE FROM entries WHERE seq > 1",
    "a loss made smaller": "UPDATE entries SET body = replace(body, '1/100', '1/999')",
    "a budget made larger": "UPDATE entries SET body = replace(body, '100', '900') WHERE seq = 1",
    "a hash emptied": "UPDATE entries SET hash = x'' WHERE seq = 4",
    "the head moved back": "UPDATE head SET seq = seq - 1, hash = (SELECT hash FROM entries WHERE seq = head.seq - 1)",
    "the head's hash changed": "UPDATE head SET hash = zeroblob(32)",
    "the head removed": "DELETE FROM head",
    "no entries at all": "DELETE FROM entries; UPDATE head SET seq = 0, hash = zeroblob(32)",
    "a trigger planted": "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries WHERE seq = 4; END",
    "a table dropped": "DROP TABLE head",
    "another table added": "CREATE TABLE more (a)",
}


@pytest.mark.parametrize("how", FORGERIES)
def test_swapped_doubled_and_missing_entries_are_found_T47(how: str, folder: Path) -> None:
    """Whatever is done to the tables by hand is refused, by opening and by `verify` alike (T47)."""
    path = folder / "a.ledger"
    path.write_bytes(ledger_image(6))
    verify(path)
    apsw.Connection(str(path)).execute(FORGERIES[how])
    for act in (lambda: opened(path, Epsilon(100)), lambda: verify(path)):
        with pytest.raises(SetupError) as refusal:
            act()
        assert refusal.value.code == "ledger-damaged"


def test_damage_under_an_open_ledger_is_found_by_the_next_debit_T47(folder: Path) -> None:
    """Entries forged by another process stop a ledger that is already open (T47)."""
    path = folder / "a.ledger"
    path.write_bytes(ledger_image(6))
    with opened(path, Epsilon(100)) as ledger:
        apsw.Connection(str(path)).execute(FORGERIES["an entry doubled"])
        for act in (lambda: ask(ledger, pure("0.01")), lambda: ledger.remaining, ledger.verify):
            with pytest.raises(SetupError) as refusal:
                act()
            assert refusal.value.code == "ledger-damaged"


CHANGED = {
    "all entries truncated": "DELETE FROM entries",
    **{
        how: FORGERIES[how]
        for how in (
            "an entry removed", "the first entry removed", "the tail removed", "all but the first removed",
            "a trigger planted",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("how", CHANGED)
def test_a_file_changed_under_a_live_process_takes_no_debit_T105(how: str, folder: Path) -> None:
    """The head is left as it was: the debit's own transaction finds the change, and adds nothing."""
    path = folder / "a.ledger"
    path.write_bytes(ledger_image(6))
    with opened(path, Epsilon(100)) as ledger:
        ask(ledger, pure("0.01"))
        other = apsw.Connection(str(path))
        other.execute(CHANGED[how])
        before = other.execute("SELECT count(*), (SELECT seq FROM head) FROM entries").fetchall()
        for act in (lambda: ask(ledger, pure("0.01")), lambda: ledger.remaining, ledger.verify):
            with pytest.raises(SetupError) as refusal:
                act()
            assert refusal.value.code == "ledger-damaged"
        assert other.execute("SELECT count(*), (SELECT seq FROM head) FROM entries").fetchall() == before
        other.close()


@pytest.mark.parametrize("how", ["written over", "put in its place"])
def test_an_older_file_under_a_live_process_is_refused_T105(how: str, folder: Path) -> None:
    """A copy of before the last debits, whole in itself, put back while the ledger is open: no debit is granted."""
    path, older = folder / "a.ledger", folder / "older"
    with opened(path) as ledger:
        ask(ledger, pure("0.4"))
        shutil.copy(path, older)
        ask(ledger, pure("0.4"))
        if how == "written over":
            path.write_bytes(older.read_bytes())
        else:
            older.rename(path)
        for _ in range(2):
            with pytest.raises(SulqError) as refusal:
                ask(ledger, pure("0.2"))
            assert refusal.value.code in {"ledger-damaged", "ledger-failed"}
    assert verify(path).spent == Epsilon(0.4)


FAULTS = [(apsw.IOError, ""), (apsw.FullError, "write"), (apsw.IOError, "sync")]


def assert_dead(ledger: Ledger) -> None:
    for act in (lambda: ask(ledger, pure("0.1")), lambda: ledger.remaining, ledger.verify, ledger.flush):
        with pytest.raises(CuratorError) as refusal:
            act()
        assert refusal.value.code == "ledger-failed"


@pytest.mark.parametrize("lasting", ["once", "lasting"])
@pytest.mark.parametrize(("error", "only"), FAULTS, ids=["EIO", "ENOSPC", "fsync"])
def test_a_failing_disk_stops_the_ledger_T48(error: type, only: str, lasting: str, folder: Path) -> None:
    """At whatever call the disk fails, no receipt follows, later calls refuse, and nothing granted is lost (T48)."""
    failures = 0
    for number in range(1, 200):
        path = folder / f"{number}.ledger"
        opened(path).close()
        disk = FaultyDisk(number, error, lasting=lasting == "lasting", only=only)
        ledger = opened(path, vfs=disk.name)
        disk.armed = True
        granted = []
        try:
            for _ in range(4):
                granted.append(ask(ledger, pure("0.1")))
                ledger.keep(granted[-1], "1" * 5000)
        except CuratorError:
            assert disk.failed
        if not disk.failed:
            break
        failures += 1
        assert_dead(ledger)
        ledger.close()
        disk.unregister()
        verify(path)
        with opened(path) as again:  # the disk is well again
            seqs = {line.seq for line in again.transcript()}
            assert {receipt.seq for receipt in granted} <= seqs
            assert len(seqs) <= len(granted) + 1
            ask(again, pure("0.1"))
    assert failures > 10
    assert len(granted) == 4  # the last round went without a fault


def test_a_ledger_that_moved_is_not_written_T48(folder: Path) -> None:
    """If the file is deleted or replaced while it is open, no debit is granted into the void (T48)."""
    for how in ("deleted", "replaced"):
        path = folder / f"{how}.ledger"
        ledger = opened(path)
        ask(ledger, pure("0.1"))
        if how == "deleted":
            path.unlink()
        else:
            shutil.copy(path, folder / "copy")
            (folder / "copy").rename(path)
        with pytest.raises(CuratorError) as refusal:
            ask(ledger, pure("0.1"))
        assert refusal.value.code == "ledger-failed"
        ledger.close()


def test_the_sqlite_in_use_is_new_enough_and_settled_T49() -> None:
    """SQLite is not older than 3.51.3, keeps a rollback journal, and syncs all it can (T49)."""
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)
    with memory_folder() as folder:
        opened(folder / "a.ledger").close()
        store = SqliteFile(str(folder / "a.ledger"))
        assert store._db.pragma("journal_mode") == "truncate"
        assert store._db.pragma("synchronous") == 3
        store.close()


def test_an_old_sqlite_is_refused_T49(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: the versions with the WAL-reset bug are refused at once (T49)."""
    for version in ("3.40.1", "3.51.2"):
        monkeypatch.setattr(sqlite.apsw, "sqlite_lib_version", lambda version=version: version)
        with pytest.raises(SetupError) as refusal:
            opened()
        assert refusal.value.code == "ledger-failed"
        assert version in refusal.value.message


def test_a_ledger_switched_to_wal_is_refused_T49(folder: Path) -> None:
    """A ledger another program put into WAL mode is not opened (T49)."""
    path = folder / "a.ledger"
    opened(path).close()
    other = apsw.Connection(str(path))
    other.pragma("journal_mode", "WAL")
    other.close()
    with pytest.raises(SetupError) as refusal:
        opened(path)
    assert refusal.value.code == "ledger-damaged"


def test_the_schema_is_what_the_file_holds() -> None:
    """The tables read back as they were written, to the letter."""
    store = SqliteFile.in_memory([])
    assert tuple(sql for (sql,) in store._db.execute("SELECT sql FROM sqlite_schema ORDER BY name")) == SCHEMA
    assert store.sound()
    store.close()


def test_a_busy_ledger_is_waited_for_and_then_refused(folder: Path) -> None:
    """A lock held by another is waited for a bounded time; then nothing is spent and a later try works."""
    path = folder / "a.ledger"
    with opened(path, wait=0.05) as ledger:
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SetupError) as refusal:
            ask(ledger, pure("0.1"))
        assert refusal.value.code == "ledger-busy"
        other.execute("ROLLBACK")
        assert ledger.totals.events == 0
        # A reader holds the commit itself up.
        other.execute("BEGIN")
        other.execute("SELECT * FROM head").fetchall()
        with pytest.raises(SulqError) as refusal:
            ask(ledger, pure("0.1"))
        assert refusal.value.code == "ledger-busy"
        other.execute("ROLLBACK")
        other.close()
        assert ask(ledger, pure("0.1")).seq == 2
