"""The ledger in PostgreSQL: one statement a debit, charged once whatever breaks, and every change by hand found."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import verify
from sulq.curator.ledger.postgres_place import Address, PostgresPlace
from sulq.errors import CuratorError, SetupError, SulqError
from sulq.kernel.ledger import postgres
from sulq.kernel.ledger.chain import ORIGIN, Row, canonical, link
from sulq.kernel.ledger.store import Behind
from sulq.language.privacy import Epsilon
from tests.curator.ledger.cases import ask, opened, pure
from tests.curator.ledger.on_postgres import charged, refused, schema, stopped, store_of
from tests.curator.ledger.places import empty
from tests.postgres import server


@pytest.fixture
def url() -> Iterator[str]:
    with empty("postgres") as found:
        yield found


def test_the_statement_moves_the_head_once_T42(url: str) -> None:
    """Of two decisions on one head the second is not written, not even in part (T42)."""
    opened(url).close()
    one, two = (PostgresPlace(Address.of(url)) for _ in range(2))
    for store in (one, two):
        store.begin()
        seq, last = store.head() or (0, ORIGIN)
        bodies = [canonical({"by": id(store), "n": n}) for n in (1, 2)]
        first = Row(seq + 1, bodies[0], link(last, seq + 1, bodies[0]))
        store.append([first, Row(seq + 2, bodies[1], link(first.hash, seq + 2, bodies[1]))])
    one.commit()
    with pytest.raises(Behind):
        two.commit()
    two.rollback()
    assert len(list(two.rows())) == 3
    assert two.head() == one.head()
    one.close()
    two.close()


class Careless(PostgresPlace):
    """Puts its entries at the end, wherever that is by now."""

    def _send(self, query: str, values: object, *, writes: bool = False) -> object:
        query = query.replace("AND seq = %(seq)s AND hash = %(hash)b RETURNING one", "RETURNING seq")
        query = query.replace("SET seq = %(last)s", "SET seq = seq + %(last)s - %(seq)s")
        query = query.replace(
            "SELECT %(seq)s + place, body, hash", "SELECT moved.seq - %(last)s + %(seq)s + place, body, hash"
        )
        if "moved AS" in query:
            query += " WHERE %(hash)b IS NOT NULL"
        return super()._send(query, values, writes=writes)


def together(url: str, costs: tuple[str, str]) -> list[str]:
    """Two servers decide on the same head, then both write; what came of it."""
    gate = threading.Barrier(2)
    outcomes: list[str] = []

    def work(cost: str) -> None:
        waits = [1]

        def failpoint(step: str) -> None:
            if step == "before-commit" and waits:
                waits.pop()
                gate.wait()

        with opened(url, failpoint=failpoint) as ledger:
            try:
                ask(ledger, pure(cost))
                outcomes.append("granted")
            except SulqError as error:
                outcomes.append(error.code)

    opened(url).close()
    threads = [threading.Thread(target=work, args=(cost,)) for cost in costs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(outcomes)


def test_who_comes_second_decides_again_T42(url: str) -> None:
    """Two servers that find room at the same moment: the second is decided again, and refused if it no longer fits."""
    assert together(url, ("0.6", "0.6")) == ["budget-exceeded", "granted"]
    assert verify(url).spent == Epsilon(0.6)
    with empty("postgres") as other:
        assert together(other, ("0.5", "0.5")) == ["granted", "granted"]
        assert verify(other).spent == Epsilon(1)


def test_without_the_comparison_the_budget_is_overspent_T42(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a store that appends without comparing grants 1.2 of 1, and its chain no longer holds."""
    monkeypatch.setattr("sulq.curator.ledger.opening.PostgresPlace", Careless)
    assert together(url, ("0.6", "0.6")) == ["granted", "granted"]
    assert server().do(f"SELECT seq FROM {schema(url)}.entries ORDER BY seq") == [(1,), (2,), (3,)]
    refused("ledger-damaged", verify, url)


def test_a_refusal_rests_on_the_newest_budget(url: str) -> None:
    """A server that has not looked for a while looks before it says no: another may have raised the budget."""
    with opened(url) as one, opened(url) as two:
        for _ in range(20):  # long enough for it not to read the head first
            ask(one, pure("0.05"))
        refused("budget-exceeded", ask, one, pure("0.5"))
        two.raise_to(Epsilon(2))
        assert ask(one, pure("0.5")).seq == 23
        assert one.remaining == two.remaining == Epsilon(0.5)


def test_who_always_comes_second_is_told_to_come_again(url: str) -> None:
    """If others are first each time until the wait is over, it is `ledger-busy` and nothing is spent."""
    with opened(url, Epsilon(100)) as other:

        def failpoint(step: str) -> None:
            if step == "before-commit":
                ask(other, pure("0.001"), "theirs")

        with opened(url, Epsilon(100), wait=0.2, failpoint=failpoint) as ledger:
            refused("ledger-busy", ask, ledger, pure("0.1"), "ours")
        assert {line.question for line in other.transcript()} == {"theirs"}


@pytest.mark.parametrize("begun", ["begun", ""])
def test_no_receipt_for_what_lies_in_another_transaction_T48(
    begun: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever leaves one open before the statement: what it adds is not durable. Control: without one it is charged."""
    real = PostgresPlace._enter

    def enter(self: PostgresPlace) -> object:
        found = real(self)
        if begun:
            self._run("BEGIN")
        return found

    monkeypatch.setattr(PostgresPlace, "_enter", enter)
    with opened(url) as ledger:
        if begun:
            refused("ledger-failed", ask, ledger, pure("0.25"))
        else:
            ask(ledger, pure("0.25"))
    assert len(charged(url)) == (0 if begun else 1)


def test_a_lock_held_too_long_costs_nothing(url: str) -> None:
    """Somebody sits on the head: the debit waits a bounded time, then nothing is spent and a later one works."""
    with opened(url, wait=0.1) as ledger, psycopg.connect(Address.of(url).url) as other:
        other.execute(f"SELECT * FROM {schema(url)}.head FOR UPDATE")
        refused("ledger-busy", ask, ledger, pure("0.1"))
        other.rollback()
        assert ledger.totals.events == 0
        assert ask(ledger, pure("0.1")).seq == 2


# --- what breaks


def cut(store: PostgresPlace) -> None:
    """Cut the wire under a connection; the server learns of it when it next writes or reads."""
    assert store._db is not None
    with socket.socket(fileno=os.dup(store._db.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)


class Breaking:
    """Breaks the connection at a step of the debit, a number of times."""

    def __init__(self, step: str, times: int) -> None:
        self.step, self.left = step, times
        self.ledger: Ledger | None = None

    def __call__(self, name: str) -> None:
        if name == self.step and self.left and self.ledger is not None:
            self.left -= 1
            cut(store_of(self.ledger))


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("step", ["before-begin", "after-begin", "before-commit", "after-commit"])
def test_a_connection_lost_at_any_step_is_mended_T43(step: str, quiet: object, url: str) -> None:
    """Whenever the connection breaks, the debit is made once and its receipt is that of the entry (T43)."""
    breaking = Breaking(step, 1)
    with opened(url, failpoint=breaking) as ledger:
        for number in range(12 if quiet else 1):
            ask(ledger, pure("0.01"), f"before {number}")
        breaking.ledger = ledger
        receipt = ask(ledger, pure("0.1"), "ours")
        assert breaking.left == 0
        assert ask(ledger, pure("0.1"), "after").seq == receipt.seq + 1
    assert charged(url)[-2:] == ["ours", "after"]
    store = PostgresPlace(Address.of(url))
    row = store.row(receipt.seq)
    store.close()
    assert row is not None
    assert row.hash.hex() == receipt.entry


class Deaf(PostgresPlace):
    """Hears no answer to the first sending of a debit, made or not; then does something else before the next."""

    heard = 0
    made = True
    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def _connected(self, deadline: float) -> psycopg.Connection:
        db = super()._connected(deadline)
        return _Muffled(self, db) if self._rows else db  # type: ignore[return-value]


class _Muffled:
    def __init__(self, store: Deaf, db: psycopg.Connection) -> None:
        self._store, self._db = store, db
        self.autocommit, self.info = db.autocommit, db.info

    def execute(self, query: str, *args: object, **kwargs: object) -> object:
        if "moved AS" in query and not self._store.heard:
            type(self._store).heard = 1
            if self._store.made:
                self._db.execute(query, *args, **kwargs)
            self._db.close()
            self._store.meanwhile()
            raise psycopg.OperationalError("the connection is gone")
        return self._db.execute(query, *args, **kwargs)


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize("other", [True, False])
def test_an_answer_that_was_not_heard_is_looked_for_T43(
    made: object,
    other: object,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Written or not, and whatever another server wrote since, the ask is charged once and acknowledged (T43)."""
    with opened(url) as beside:
        kind = type("Once", (Deaf,), {"made": made})
        if other:
            kind.meanwhile = staticmethod(lambda: ask(beside, pure("0.2"), "theirs"))
        monkeypatch.setattr("sulq.curator.ledger.opening.PostgresPlace", kind)
        with opened(url) as ledger:
            receipt = ask(ledger, pure("0.1"), "ours", key="k")
            assert kind.heard == 1
            ledger.keep(receipt, "41")
            assert ask(ledger, pure("0.1"), "ours", key="k").stored == "41"
        monkeypatch.undo()
    order = ["ours", "theirs"] if made else ["theirs", "ours"]
    assert charged(url) == (order if other else ["ours"])
    assert receipt.seq == (3 if other and not made else 2)


def test_a_debit_proposed_anew_instead_is_charged_twice_T43(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a store that takes a lost answer for a lost race makes the writer charge the same ask again."""

    class Forgetful(Deaf):
        def row(self, seq: int) -> Row | None:
            return None

    monkeypatch.setattr("sulq.curator.ledger.opening.PostgresPlace", Forgetful)
    with opened(url) as ledger:
        ask(ledger, pure("0.1"), "ours")
    monkeypatch.undo()
    assert charged(url) == ["ours", "ours"]


def test_a_statement_still_on_its_way_is_not_made_twice_T43(url: str) -> None:
    """The wire is cut while the server still works on the statement: sent again, only one of the two is made (T43)."""
    with opened(url, wait=60.0) as ledger, psycopg.connect(Address.of(url).url) as other:
        ask(ledger, pure("0.1"), "before")
        other.execute(f"SELECT * FROM {schema(url)}.head FOR UPDATE")
        receipts: list[int] = []
        thread = threading.Thread(target=lambda: receipts.append(ask(ledger, pure("0.1"), "ours").seq))
        thread.start()

        look = f"SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%{schema(url)}%'"
        end = time.monotonic() + 30
        for expected in (1, 2):  # the first sending stays at work in the server when its wire is cut
            while (found := len(server().do(look))) < expected and time.monotonic() < end:
                time.sleep(0.01)
            assert found == expected
            if expected == 1:
                cut(store_of(ledger))
        other.rollback()
        thread.join()
        assert receipts == [3]
    assert charged(url) == ["before", "ours"]


def test_an_outage_longer_than_the_wait_T43(url: str) -> None:
    """What was under way has no known outcome and no answer; later asks cost nothing; then it goes on (T43)."""
    running = server()
    ledger = opened(url, wait=0.3)
    for number in range(12):  # it no longer reads the head first
        ask(ledger, pure("0.01"), f"before {number}")
    with stopped(running):
        assert isinstance(refused("ledger-failed", ask, ledger, pure("0.1"), "in doubt"), CuratorError)
        for _ in range(2):
            assert isinstance(refused("ledger-busy", ask, ledger, pure("0.1"), "free"), SetupError)
            refused("ledger-busy", lambda: ledger.remaining)
            refused("ledger-busy", ledger.verify)
    ledger.keep(ask(ledger, pure("0.1"), "after"), "1")
    ledger.verify()
    ledger.close()
    found = charged(url)
    assert found[-1] == "after"
    assert "free" not in found
    assert len(found) == len(set(found))


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_restart_between_two_debits_goes_unnoticed_T43(how: str, url: str) -> None:
    """PostgreSQL restarted in order or by a crash: the open ledger goes on, nothing acknowledged is lost (T43)."""
    with opened(url) as ledger:
        ask(ledger, pure("0.1"), "before")
        server().restart(how)
        ask(ledger, pure("0.1"), "after")
        server().restart(how)
        assert ledger.remaining == Epsilon(0.8)
    assert charged(url) == ["before", "after"]


def test_one_state_is_read_however_many_write(url: str) -> None:
    """While one reads, what another commits is not seen; a reading whose connection breaks is given up, not patched."""
    with opened(url) as ledger:
        ask(ledger, pure("0.1"))
        reader = PostgresPlace(Address.of(url))
        reader.reading()
        before = reader.head()
        ask(ledger, pure("0.1"))
        assert reader.head() == before
        assert len(list(reader.rows())) == 2
        cut(reader)
        with pytest.raises(postgres.Busy):
            reader.head()
        reader.rollback()
        assert len(list(reader.rows())) == 3
        reader.close()


def test_a_long_ledger_is_read_in_pieces(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few are fetched at a time, all entries come once and in order."""
    with opened(url) as ledger:
        for _ in range(9):
            ask(ledger, pure("0.1"))
    store = PostgresPlace(Address.of(url))
    for piece in (1, 3, 10, 11):
        monkeypatch.setattr("sulq.kernel.ledger.store.PIECE", piece)
        assert [row.seq for row in store.rows()] == list(range(1, 11))
    store.close()


# --- what is done by hand
