"""The service on a disk that is full, on one that loses its power, by a clock that jumps: never an unpaid answer."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

import sulq
from sulq.answers import wire
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import verify
from sulq.errors import AccessDenied, SulqError
from sulq.service.clerk.access import Access
from sulq.service.clerk.tokens import hashed
from tests.counts import count
from tests.service.kills import PRICE, Seen, asking, question, violations
from tests.service.service import Running, service

WORKER, CLERK = "tests.service.faulty_worker", "tests.service.faulty_clerk"
TEN_YEARS = 10 * 365.25 * 86400


@contextlib.contextmanager
def told(kind: str) -> Iterator[Path]:
    """What tests.service.faulty_clerk is told, and the folder where it is told more: its ledger's, which it reaches."""
    with tempfile.TemporaryDirectory(prefix="sulq-") as name:
        os.environ["SULQ_TEST_CLERK"], os.environ["SULQ_TEST_FOLDER"] = kind, name
        try:
            yield Path(name)
        finally:
            del os.environ["SULQ_TEST_CLERK"], os.environ["SULQ_TEST_FOLDER"]


@dataclass
class Crowd:
    """Analysts who ask over HTTP all the while."""

    seen: Seen
    running: Running

    def answers(self, more: int, seconds: float = 240.0) -> bool:
        """Whether so many more answers come in time."""
        enough, until = len(self.seen.answers) + more, time.monotonic() + seconds
        while len(self.seen.answers) < enough and time.monotonic() < until:
            time.sleep(0.02)
        return len(self.seen.answers) >= enough


@contextlib.contextmanager
def asked(clerk: str = CLERK, **settings: object) -> Iterator[Crowd]:
    """A service under load; at its end what was seen is laid beside what the ledger and the workers wrote down."""
    with service(sulq.Epsilon(1000), web=1, worker=WORKER, clerk=clerk, rate=10**6, **settings) as running:
        seen, stop = Seen(), threading.Event()
        threads = [threading.Thread(target=asking, args=(running, stop, seen, number)) for number in range(4)]
        for thread in threads:
            thread.start()
        try:
            yield Crowd(seen, running)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        running.supervisor.stop()
        while running.supervisor.folder.exists():
            time.sleep(0.05)
        place = Path(str(settings.get("ledger") or running.folder / "survey.ledger"))
        seen.verified = verify(place).debits
        seen.runs = running.noted
        with Ledger.open(place, mechanisms=(), create=False) as ledger:
            seen.debits = {line.seq: line.answer for line in ledger.transcript()}
            seen.spent = ledger.spent.amount


@contextlib.contextmanager
def small_disk() -> Iterator[Path]:
    """A file system of 64 MiB in memory, where this process may make one."""
    with tempfile.TemporaryDirectory(prefix="sulq-") as name:
        command = ["mount", "-t", "tmpfs", "-o", "size=64m,mode=0700", "tmpfs", name]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("this process may not mount a file system; the full disk of SQLite's own layer is tested")
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


def filled(disk: Path) -> Callable[[], None]:
    """Fill a file system to the last byte; what is returned empties it again."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (2**20, 2**12, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass
    return ballast.unlink


def test_a_full_disk_gives_no_unpaid_answer_and_the_service_is_back_when_there_is_room_T48() -> None:
    """SQLite is told that no space is left: no answers until there is; then answers again, by itself (T48)."""
    with told("full") as folder, asked(ledger=str(folder / "survey.ledger")) as crowd:
        assert crowd.answers(10)
        for _ in range(2):
            (folder / "full").touch()
            # What was paid for before may still be on its way; then nothing may come.
            assert any(not crowd.answers(1, seconds=2.0) for _ in range(15)), "answers came while no debit was written"
            had = len(crowd.seen.answers)
            (folder / "full").unlink()
            assert crowd.answers(10), crowd.seen.refusals
            assert len(crowd.seen.answers) > had
    assert violations(crowd.seen) == []
    assert crowd.seen.refusals["ledger-failed"] + crowd.seen.refusals["engine-failed"] > 0


def test_a_full_file_system_likewise_T48() -> None:
    """The same on a small file system that is filled to the last byte and emptied again."""
    with small_disk() as disk, asked("", ledger=str(disk / "survey.ledger")) as crowd:
        assert crowd.answers(10)
        empty = filled(disk)
        time.sleep(2.0)
        empty()
        assert crowd.answers(10), crowd.seen.refusals
        crowd.running.ready()
        place = disk / "survey.ledger"
        assert place.exists()
    assert violations(crowd.seen) == []


def test_no_power_cut_of_the_clerks_disk_loses_an_acknowledged_debit_T43_T48() -> None:
    """Its disk loses what was not synced, in the middle of anything, again and again (T43).

    Bar: 0 answers without a debit. Control: a disk whose sync does nothing (below).
    """
    assert violations(powered("power", count("T43 power cuts of the service's clerk", short=2, long=100))) == []


def test_a_clerk_on_a_disk_that_does_not_sync_is_noticed_T43() -> None:
    """Control: with syncs that do nothing, answers are left without debits, or the ledger cannot be read."""
    outcomes = []
    for _ in range(4):
        try:
            outcomes.append(bool(violations(powered("no-sync", 2, patience=6.0))))
        except (SulqError, AssertionError):
            outcomes.append(True)
        if any(outcomes):
            break
    assert any(outcomes)


def powered(kind: str, cuts: int, *, patience: float = 120.0) -> Seen:
    """Ask until the power was cut so often, and then some more."""
    with told(kind) as folder, asked(ledger=str(folder / "survey.ledger")) as crowd:
        said, until = folder / "cuts", time.monotonic() + patience * cuts
        while not said.exists() or len(said.read_text().split()) < cuts:
            assert time.monotonic() < until, crowd.seen.refusals
            time.sleep(0.05)
        (folder / "calm").touch()
        assert crowd.answers(5, patience), crowd.seen.refusals
    return crowd.seen


def test_a_clock_that_jumps_ten_years_gives_no_spend_back_T50() -> None:
    """Ten years on, tokens have run out and are refused; ten years back they are good; the ledger counts on (T50).

    Bar: what is spent never falls. Control: the tokens' expiry does follow the clock, so it did jump.
    """
    with (
        told("clock") as folder,
        service(sulq.Epsilon(1), clerk=CLERK, ledger=str(folder / "survey.ledger")) as running,
    ):
        numbers = itertools.count(1)
        spent = []

        def spend() -> None:
            running.ask("alice", "ask", question(next(numbers)))
            spent.append(wire.from_json(running.ask("owner", "budget")["spent"]).amount)

        spend()
        for jump in (-TEN_YEARS, 0.0, TEN_YEARS, 0.0, -TEN_YEARS):
            (folder / "clock").write_text(str(jump))
            if jump > 0:
                with pytest.raises(AccessDenied) as refused:
                    spend()
                assert refused.value.code == "token-expired"
            else:
                spend()
        assert spent == [n * sulq.Epsilon(PRICE).exact for n in range(1, len(spent) + 1)]
        running.ask("owner", "revoke", {"name": "bob"}, dataset=None)
        (folder / "clock").write_text("0")
        with pytest.raises(AccessDenied) as revoked:
            running.ask("bob", "whoami", dataset=None)
        assert revoked.value.code == "unauthorized"  # an end by hand does not wait for any clock


def test_a_token_lives_by_the_clock_of_its_store_T50(tmp_path: Path) -> None:
    """What a jump does to expiry, said once: forward ends tokens early, back lets them live until the clock is set."""
    now = [1_000_000_000.0]
    with Access(tmp_path / "access.db", clock=lambda: now[0]) as access:
        token = hashed(access.add("ann", "analyst", ["survey"], days=30))
        now[0] += TEN_YEARS
        with pytest.raises(AccessDenied):
            access.find(token)
        now[0] -= 2 * TEN_YEARS
        assert access.find(token) is not None
        now[0] += TEN_YEARS
        access.revoke("ann")
        now[0] -= TEN_YEARS
        assert access.find(token) is None


def test_answers_stop_at_the_budget_however_many_ask_at_once_T42() -> None:
    """Over HTTP, by twelve analysts at once with room for 30: 30 answers, then refusals; 0 overspend (T42, T52)."""
    with service(sulq.Epsilon(0.03), web=1, rate=10**6) as running:
        answers: list[int] = []
        codes: list[str] = []

        def ask(number: int) -> None:
            headers = {"Authorization": f"Bearer {running.tokens['alice' if number % 2 else 'bob']}"}
            with httpx.Client(base_url=running.url, headers=headers, timeout=120) as client:
                for turn in range(5):
                    reply = client.post("/v1/datasets/survey/ask", json=question(100 * number + turn))
                    if reply.status_code == 200:
                        answers.append(wire.from_json(reply.json()["answer"]).receipt.seq)
                    else:
                        codes.append(f"{reply.status_code} {reply.json()['error']['code']}")

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == len(set(answers)) == 30
        assert set(codes) == {"402 budget-exceeded"}
        assert wire.from_json(running.ask("owner", "budget")["spent"]).amount == sulq.Epsilon(0.03).exact
