"""The process that reads a ledger for the clerk: it says what a thread would, takes no turn of asks, and ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import sulq
from sulq.answers import wire
from sulq.curator.ledger import full_check
from sulq.curator.ledger.full_check import LedgerReading, read_ledger
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import place_of
from sulq.curator.ledger.postgres_place import Address
from sulq.errors import CuratorError, SetupError
from sulq.kernel.ledger.store import damaged
from sulq.service.clerk import ledger_reader, request
from sulq.service.clerk.ledger_reader import read_aside
from tests.curator.ledger.cases import ask, opened, pure
from tests.curator.ledger.places import STORES, empty
from tests.service.clerk.test_calls import ONE
from tests.service.service import Running, clerk_alone


@pytest.fixture(params=STORES)
def ledger(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    with empty(request.param) as place, opened(place, sulq.Epsilon(5)) as found:
        for each in range(20):
            found.keep(ask(found, pure("0.001"), f"q{each}"), f'"answer {each}"')
        found.flush()
        yield found


def test_it_says_what_a_thread_of_the_clerk_would(ledger: Ledger) -> None:
    """The same moment and the same checkpoint, of a file and of a schema; and a verification goes by it."""
    place = ledger.path
    at = ledger.verify().entries
    assert read_aside(place, None, at) == read_ledger(place, None, at)
    assert read_aside(place, None, at - 1) != read_aside(place, None, at)
    assert ledger.verify(read=read_aside) == ledger.verify()


def test_what_it_finds_damaged_stops_the_ledger_T47(tmp_path: Path) -> None:
    """Its refusal is raised by the clerk as it was raised there. Control: before the change the ledger is sound."""
    place = tmp_path / "a.ledger"
    with opened(place) as ledger:
        ask(ledger, pure("0.001"))
        ledger.verify(read=read_aside)
        db = apsw.Connection(str(place))
        db.execute("UPDATE entries SET body = replace(body, '\"kind\"', '\"kinp\"') WHERE seq = 2")
        db.close()
        for act in (lambda: ledger.verify(read=read_aside), lambda: ask(ledger, pure("0.001"))):
            with pytest.raises(SetupError) as refusal:
                act()
            assert refusal.value.code == "ledger-damaged"


def test_a_reader_that_lies_or_says_nothing_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A digest of another history is damage; a process that ends without a word is a failure that stops nothing."""
    with opened(tmp_path / "a.ledger") as ledger:
        ask(ledger, pure("0.001"))
        monkeypatch.setattr(ledger_reader, "MODULE", "sulq.version")
        with pytest.raises(CuratorError) as refusal:
            ledger.verify(read=read_aside)
        assert refusal.value.code == "engine-failed"
        ask(ledger, pure("0.001"))

        def other(place: Path | Address, passed: tuple[int, str] | None, at: int) -> LedgerReading:
            found = read_ledger(place, passed, at)
            return found._replace(moment=found.moment._replace(digest="0" * 64))

        with pytest.raises(SetupError, match="differs from what this process enforces"):
            ledger.verify(read=other)


def test_it_yields_to_asks_and_ends_with_the_clerk() -> None:
    """It has a lower priority, and is gone when whoever started it closes its input. Control: till then it waits."""
    command = [sys.executable, "-P", "-m", ledger_reader.MODULE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as reader:
        os.setpriority(os.PRIO_PROCESS, reader.pid, ledger_reader.NICENESS)
        assert os.getpriority(os.PRIO_PROCESS, reader.pid) == ledger_reader.NICENESS > 0
        with pytest.raises(subprocess.TimeoutExpired):
            reader.wait(0.5)
        reader.stdin.close()
        reader.wait(60)


def test_no_password_is_told_on_a_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address goes over the pipe."""
    words: list[str] = []
    real = subprocess.Popen

    def started(command: list[str], **more: object) -> subprocess.Popen[bytes]:
        words.extend(command)
        return real(command, **more)

    monkeypatch.setattr(ledger_reader.subprocess, "Popen", started)
    with pytest.raises((SetupError, CuratorError)):
        read_aside(place_of("postgresql://ann:very-secret@127.0.0.1:1/none?ledger=a"), None, 1)
    assert words
    assert "very-secret" not in " ".join(words)


@pytest.fixture
def running() -> Iterator[Running]:
    with clerk_alone(sulq.Epsilon(10)) as found:
        yield found


def asked(running: Running) -> None:
    body = {**ONE, "spend": wire.to_json(sulq.Epsilon(0.01))}
    running.ask("alice", "ask", body)


def test_an_ask_is_answered_while_the_ledger_is_verified(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading that blocks holds up no ask, no transcript and no budget; both auditors are then told.

    Control: who holds the ledger's writer as long, as readings once did, does.
    """
    begun, go, told = threading.Event(), threading.Event(), []

    def slow(place: Path | Address, passed: tuple[int, str] | None, at: int) -> LedgerReading:
        begun.set()
        assert go.wait(60)
        return read_ledger(place, passed, at)

    monkeypatch.setattr(request, "read_aside", slow)
    asked(running)
    calls = ("verify", "export")
    crowd = [threading.Thread(target=lambda call=call: told.append(running.ask("auditor", call))) for call in calls]
    for each in crowd:
        each.start()
    assert begun.wait(60)
    asked(running)
    assert len(running.ask("auditor", "transcript")["lines"]) == 2
    running.ask("owner", "budget")
    assert not told
    go.set()
    for each in crowd:
        each.join(60)
    assert len(told) == len(calls)

    ledger = running.clerk.datasets["survey"].ledger
    done = threading.Event()
    with ledger._writer.looking():
        asking = threading.Thread(target=lambda: (asked(running), done.set()))
        asking.start()
        assert not done.wait(0.5)
    asking.join(60)
    assert done.is_set()


def test_a_reading_that_takes_too_long_is_asked_for_again(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call says `not-ready`, the reading goes on, and who asks again has what it found: nothing is read twice."""
    go, read = threading.Event(), []

    def slow(place: Path | Address, passed: tuple[int, str] | None, at: int) -> LedgerReading:
        assert go.wait(60)
        read.append(passed)
        return read_ledger(place, passed, at)

    monkeypatch.setattr(request, "read_aside", slow)
    monkeypatch.setattr(request, "MAX_WAIT_SECONDS", 0.05)
    asked(running)
    with pytest.raises(SetupError) as refusal:
        running.ask("auditor", "verify")
    assert refusal.value.code == "not-ready"
    monkeypatch.setattr(request, "MAX_WAIT_SECONDS", 60.0)
    go.set()
    assert running.ask("auditor", "verify")["debits"] == 1
    assert len(read) == 2
    monkeypatch.setattr(full_check, "MAX_WAITING_READERS", 0)
    with pytest.raises(SetupError, match="Too many wait"):
        running.ask("auditor", "verify")


def test_damage_that_nobody_waits_to_hear_of_stops_the_ledger_T47(tmp_path: Path) -> None:
    """A reading that is longer than anybody's patience still counts. Control: until it ends asks are answered."""
    go = threading.Event()

    def slow(*_: object) -> LedgerReading:
        assert go.wait(60)
        raise damaged("entry 2", "is not what was written")

    with opened(tmp_path / "a.ledger") as ledger:
        with pytest.raises(SetupError, match="still being read"):
            ledger.verify(read=slow, patience=0.01)
        ask(ledger, pure("0.001"))
        go.set()
        while ledger.usable:
            threading.Event().wait(0.01)
        with pytest.raises(SetupError) as refusal:
            ask(ledger, pure("0.001"))
        assert refusal.value.code == "ledger-damaged"
