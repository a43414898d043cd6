"""The ledger in PostgreSQL: one statement a debit, charged once whatever breaks, and every change by hand found."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import verify
from sulq.curator.ledger.postgres_place import QUIET, Address, PostgresPlace
from sulq.errors import CuratorError, SetupError, SulqError
from sulq.kernel.ledger import postgres
from sulq.kernel.ledger.chain import ORIGIN, Row, canonical, link
from sulq.kernel.ledger.store import Behind
from sulq.language.privacy import Epsilon
from tests.curator.ledger.cases import ask, opened, pure
from tests.curator.ledger.places import empty
from tests.postgres import Server, server


@pytest.fixture
def url() -> Iterator[str]:
    with empty("postgres") as found:
        yield found


def refused(code: str, act: Callable[..., object], *args: object, **kwargs: object) -> SulqError:
    with pytest.raises(SulqError) as refusal:
        act(*args, **kwargs)
    assert refusal.value.code == code
    return refusal.value


def schema(url: str) -> str:
    return Address.of(url).ledger


def store_of(ledger: Ledger) -> PostgresPlace:
    store = ledger._writer._store
    assert isinstance(store, PostgresPlace)
    return store


def charged(url: str) -> list[str]:
    """The questions that stand in the chain, which is whole."""
    verify(url)
    with opened(url) as ledger:
        return [line.question for line in ledger.transcript()]


@contextmanager
def stopped(running: Server, how: str = "immediate") -> Iterator[None]:
    """PostgreSQL is down for a while."""
    running.halt(how)
    try:
        yield
    finally:
        running.start()


# --- one order


def test_T42_the_statement_moves_the_head_once(url: str) -> None:
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

    def _named(self, query: str) -> str:
        query = query.replace("AND seq = %(seq)s AND hash = %(hash)b RETURNING one", "RETURNING seq")
        query = query.replace("SET seq = %(last)s", "SET seq = seq + %(last)s - %(seq)s")
        query = query.replace(
            "SELECT %(seq)s + place, body, hash", "SELECT moved.seq - %(last)s + %(seq)s + place, body, hash"
        )
        if "moved AS" in query:
            query += " WHERE %(hash)b IS NOT NULL"
        return super()._named(query)


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


def test_T42_who_comes_second_decides_again(url: str) -> None:
    """Two servers that find room at the same moment: the second is decided again, and refused if it no longer fits."""
    assert together(url, ("0.6", "0.6")) == ["budget-exceeded", "granted"]
    assert verify(url).spent == Epsilon(0.6)
    with empty("postgres") as other:
        assert together(other, ("0.5", "0.5")) == ["granted", "granted"]
        assert verify(other).spent == Epsilon(1)


def test_T42_without_the_comparison_the_budget_is_overspent(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_T48_no_receipt_for_what_lies_in_another_transaction(
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
def test_T43_a_connection_lost_at_any_step_is_mended(step: str, quiet: object, url: str) -> None:
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
def test_T43_an_answer_that_was_not_heard_is_looked_for(
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


def test_T43_a_debit_proposed_anew_instead_is_charged_twice(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a store that takes a lost answer for a lost race makes the writer charge the same ask again."""

    class Forgetful(Deaf):
        def row(self, seq: int) -> Row | None:
            return None

    monkeypatch.setattr("sulq.curator.ledger.opening.PostgresPlace", Forgetful)
    with opened(url) as ledger:
        ask(ledger, pure("0.1"), "ours")
    monkeypatch.undo()
    assert charged(url) == ["ours", "ours"]


def test_T43_a_statement_still_on_its_way_is_not_made_twice(url: str) -> None:
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


def test_T43_an_outage_longer_than_the_wait(url: str) -> None:
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
def test_T43_a_restart_between_two_debits_goes_unnoticed(how: str, url: str) -> None:
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

FORGERIES = {
    "two bodies swapped": """UPDATE {0}.entries SET body =
        (SELECT body FROM {0}.entries e WHERE e.seq = 9 - entries.seq) WHERE seq IN (4, 5)""",
    "two entries swapped": """UPDATE {0}.entries SET seq = -seq WHERE seq IN (4, 5);
        UPDATE {0}.entries SET seq = 9 + seq WHERE seq < 0""",
    "an entry doubled": """INSERT INTO {0}.entries
        SELECT seq + 1, body, hash FROM {0}.entries ORDER BY seq DESC LIMIT 1; UPDATE {0}.head SET seq = seq + 1""",
    "an entry past the head": """INSERT INTO {0}.entries
        SELECT seq + 1, body, hash FROM {0}.entries ORDER BY seq DESC LIMIT 1""",
    "an entry removed": "DELETE FROM {0}.entries WHERE seq = 4",
    "an entry removed, the rest moved up": """DELETE FROM {0}.entries WHERE seq = 4;
        UPDATE {0}.entries SET seq = -seq WHERE seq > 4; UPDATE {0}.entries SET seq = -seq - 1 WHERE seq < 0;
        UPDATE {0}.head SET seq = seq - 1""",
    "the first entry removed": "DELETE FROM {0}.entries WHERE seq = 1",
    "the last entry removed": "DELETE FROM {0}.entries WHERE seq = (SELECT max(seq) FROM {0}.entries)",
    "all but the first removed": "DELETE FROM {0}.entries WHERE seq > 1",
    "a loss made smaller": "UPDATE {0}.entries SET body = replace(body, '1/100', '1/999')",
    "a budget made larger": "UPDATE {0}.entries SET body = replace(body, '100', '900') WHERE seq = 1",
    "one letter changed": "UPDATE {0}.entries SET body = replace(body, 'question 2', 'question 3')",
    "a hash emptied": "UPDATE {0}.entries SET hash = '' WHERE seq = 4",
    "the head moved back": """UPDATE {0}.head SET seq = seq - 1,
        hash = (SELECT hash FROM {0}.entries e WHERE e.seq = head.seq - 1)""",
    "the head's hash changed": "UPDATE {0}.head SET hash = sha256('')",
    "the head removed": "DELETE FROM {0}.head",
    "no entries at all": "TRUNCATE {0}.entries; UPDATE {0}.head SET seq = 0, hash = sha256('')",
    "a table dropped": "DROP TABLE {0}.head",
    "another table added": "CREATE TABLE {0}.more (a int)",
    "a view added": "CREATE VIEW {0}.more AS SELECT 1",
    "another column": "ALTER TABLE {0}.entries ADD more text",
    "a trigger planted": """CREATE FUNCTION {0}.eat() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER eat BEFORE INSERT ON {0}.entries FOR EACH ROW EXECUTE FUNCTION {0}.eat()""",
    "a rule planted": "CREATE RULE eat AS ON INSERT TO {0}.entries DO INSTEAD NOTHING",
    "rows hidden by a policy": "ALTER TABLE {0}.entries ENABLE ROW LEVEL SECURITY",
    "tables a crash empties": "ALTER TABLE {0}.entries SET UNLOGGED",
    "a child table": "CREATE TABLE {0}_child () INHERITS ({0}.entries)",
    "no primary key": "ALTER TABLE {0}.entries DROP CONSTRAINT entries_pkey",
}  # fmt: skip


def six(url: str) -> None:
    """A ledger with six asks."""
    with opened(url, Epsilon(100)) as ledger:
        for number in range(6):
            ledger.keep(ask(ledger, pure("0.01"), f"question {number}"), "1")


@pytest.mark.parametrize("how", FORGERIES)
def test_T47_what_a_superuser_changes_is_found(how: str, url: str) -> None:
    """A changed, missing or swapped row, or what would change the next one: `verify` and opening refuse (T47)."""
    six(url)
    assert verify(url).debits == 6
    server().do(FORGERIES[how].format(schema(url)))
    refused("ledger-damaged", verify, url)
    refused("ledger-damaged", opened, url, Epsilon(100))


@pytest.mark.parametrize(
    "how", ["an entry doubled", "an entry past the head", "the head moved back", "a table dropped"]
)
def test_T47_damage_under_an_open_ledger_stops_it(how: str, url: str) -> None:
    """Forged while a server has it open, the next debit finds it, and every later call refuses (T47)."""
    six(url)
    with opened(url, Epsilon(100)) as ledger:
        server().do(FORGERIES[how].format(schema(url)))
        for act in (lambda: ask(ledger, pure("0.01")), lambda: ledger.remaining, ledger.verify):
            refused("ledger-damaged", act)


CHANGED = {
    "all entries truncated": "TRUNCATE {0}.entries",
    "the head's table unlogged": "ALTER TABLE {0}.head SET UNLOGGED",
    **{
        how: FORGERIES[how]
        for how in (
            "an entry removed", "the first entry removed", "the last entry removed", "all but the first removed",
            "another column", "a trigger planted", "a rule planted", "rows hidden by a policy",
            "tables a crash empties", "a child table", "no primary key",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("how", CHANGED)
def test_T105_a_ledger_changed_under_a_live_process_takes_no_debit(how: str, url: str) -> None:
    """The head is left as it was: the statement that would add the debit finds the change, and nothing is added."""
    six(url)
    with opened(url, Epsilon(100)) as ledger:
        for number in range(QUIET + 2):  # long enough for it not to read the head first
            ask(ledger, pure("0.01"), f"before {number}")
        server().do(CHANGED[how].format(schema(url)))
        count = f"SELECT count(*), (SELECT seq FROM {schema(url)}.head) FROM {schema(url)}.entries"
        before = server().do(count)
        for act in (lambda: ask(ledger, pure("0.01")), lambda: ledger.remaining, ledger.verify):
            refused("ledger-damaged", act)
        assert server().do(count) == before


def test_T105_a_deleted_entry_of_a_long_ledger_is_found_in_turn(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each append looks for the last entry and for some others in turn: the last is missed at once, others soon."""
    monkeypatch.setattr("sulq.kernel.ledger.store.MAX_CHECKED_ENTRIES", 4)
    six(url)
    with opened(url, Epsilon(100)) as ledger:
        for number in range(20):
            ask(ledger, pure("0.01"), f"sound {number}")
        server().do(f"DELETE FROM {schema(url)}.entries WHERE seq = 9")
        refused("ledger-damaged", lambda: [ask(ledger, pure("0.01"), f"after {number}") for number in range(20)])
    with empty("postgres") as other, opened(other) as ledger:
        for number in range(8):
            ask(ledger, pure("0.01"), f"sound {number}")
        server().do(f"DELETE FROM {schema(other)}.entries WHERE seq = 9")
        refused("ledger-damaged", ask, ledger, pure("0.01"))


def test_T105_control_the_statement_without_its_checks_goes_on(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: the comparison of the head alone, as it was, adds debits to a truncated ledger."""
    before, _, rest = postgres.APPEND.partition("WHERE (")
    after = rest.partition("AND seq = %(seq)s AND hash = %(hash)b RETURNING one")
    bare = f"{before}WHERE %(sound)s <> '' AND %(low)s::int <= %(high)s::int {after[1]}{after[2]}"
    monkeypatch.setattr(postgres, "APPEND", bare)
    six(url)
    with opened(url, Epsilon(100)) as ledger:
        server().do(f"TRUNCATE {schema(url)}.entries")
        ask(ledger, pure("0.01"))
        assert server().do(f"SELECT count(*) FROM {schema(url)}.entries") == [(1,)]


def test_T46_a_ledger_set_back_as_a_whole_is_found_by_who_has_it_open(url: str) -> None:
    """An older state, whole in itself as after a failover, is refused by a server that has seen a later one (T46)."""
    with opened(url) as ledger:
        ask(ledger, pure("0.1"))
        ask(ledger, pure("0.1"))
        name = schema(url)
        server().do(f"DELETE FROM {name}.entries WHERE seq = 3; UPDATE {name}.head SET seq = 2, hash = "
                    f"(SELECT hash FROM {name}.entries WHERE seq = 2)")  # fmt: skip
        verify(url)  # by itself it is sound
        refused("ledger-damaged", ask, ledger, pure("0.1"))


# --- settings and rights

LOGGING = {
    "log_statement": ("all", "mod"),
    "log_min_duration_statement": ("0", "1000"),
    "log_min_duration_sample": ("0",),
    "log_transaction_sample_rate": ("0.5",),
    "log_parameter_max_length_on_error": ("-1",),
    "auto_explain.log_min_duration": ("0",),
    "pgaudit.log_parameter": ("on",),
}


def settled(url: str, **settings: str) -> str:
    """The address of a session with these settings."""
    return f"{url}&options=" + "%20".join(f"-c%20{name}%3D{value}" for name, value in settings.items())


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in LOGGING.items() for value in values])
def test_T105_no_ledger_is_begun_where_its_keys_would_be_logged(name: str, value: str, url: str) -> None:
    """Its first entry holds keys: a session whose server writes values into its log may not begin a ledger."""
    assert name in refused("statements-logged", opened, settled(url, **{name: value})).message
    refused("missing-file", verify, url)  # nothing is left of it
    if name in ("log_statement", "log_min_duration_statement"):  # statements hold no value of their own
        opened(settled(url, **{name: value, "log_parameter_max_length": "0"})).close()


def test_T105_statements_that_begin_a_ledger_hold_no_key(url: str) -> None:
    """With statements logged and their parameters not, the server's log has the statements and none of the keys."""
    log = server()._home / "log"
    before = log.stat().st_size
    quiet = settled(url, log_statement="all", log_parameter_max_length="0")
    with opened(quiet) as ledger:
        ask(ledger, pure("0.1"))
        keys = [ledger.hash_key.hex(), ledger._founding.receipt_key.hex(), ledger._founding.signing_key.hex()]
    written = log.read_text(encoding="utf-8", errors="replace")[before:]
    assert f"INSERT INTO {schema(url)}.entries" in written
    assert not any(key in written for key in keys)


def test_T105_statements_do_not_matter_to_a_ledger_that_is_there(url: str) -> None:
    """Only its beginning writes keys: opened and asked it may be, wherever statements are logged."""
    opened(url).close()
    with opened(settled(url, log_statement="mod")) as ledger:
        ask(ledger, pure("0.1"))


def test_T48_a_server_that_may_lose_a_commit_is_refused(url: str) -> None:
    """With fsync off nothing is durable: no ledger is begun or opened (T48)."""
    opened(url).close()
    try:
        server().do("ALTER SYSTEM SET fsync = off")
        server().do("SELECT pg_reload_conf()")
        while server().do("SHOW fsync") != [("off",)]:
            time.sleep(0.01)
        assert "fsync" in refused("ledger-failed", opened, url).message
    finally:
        server().do("ALTER SYSTEM RESET fsync")
        server().do("SELECT pg_reload_conf()")
    while server().do("SHOW fsync") != [("on",)]:
        time.sleep(0.01)
    opened(url).close()


@pytest.mark.parametrize(
    ("theirs", "ours"), [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")]
)
def test_T48_a_commit_waits_for_the_disk_whatever_the_roles_default(theirs: str, ours: str, url: str) -> None:
    """A role or database set to return early, or to another isolation, does not change how debits are made (T48)."""
    server().do(f"""CREATE ROLE hasty SUPERUSER LOGIN; ALTER ROLE hasty SET synchronous_commit = {theirs};
        ALTER ROLE hasty SET default_transaction_isolation = 'serializable';
        ALTER ROLE hasty SET search_path = nowhere""")
    try:
        with opened(url.replace("sulq@", "hasty@")) as ledger:
            ask(ledger, pure("0.1"))
            store = store_of(ledger)
            found = [store.ask(f"SHOW {name}") for name in ("synchronous_commit", "transaction_isolation")]
            assert found == [[(ours,)], [("read committed",)]]
    finally:
        server().do(f"DROP SCHEMA {schema(url)} CASCADE; DROP ROLE hasty")


RIGHTS = """
CREATE ROLE clerk LOGIN;
GRANT USAGE ON SCHEMA {0} TO clerk;
GRANT SELECT, INSERT ON {0}.entries TO clerk;
GRANT SELECT, UPDATE ON {0}.head TO clerk;
"""


def test_T60_a_role_that_can_only_add_is_enough(url: str) -> None:
    """With the rights the page recommends a server can debit, and its role can change or remove no entry (T60)."""
    page = Path(__file__).parents[3] / "docs" / "operate" / "postgresql.md"
    recommended = page.read_text(encoding="utf-8").replace("survey", "{0}")
    assert all(line in recommended for line in RIGHTS.strip().splitlines())
    opened(url).close()
    server().do(RIGHTS.format(schema(url)))
    try:
        theirs = url.replace("sulq@", "clerk@")
        with opened(theirs) as ledger:
            ask(ledger, pure("0.1"))
            ledger.verify()
            for text in (
                "UPDATE {0}.entries SET body = ''",
                "DELETE FROM {0}.entries",
                "TRUNCATE {0}.entries",
                "DROP TABLE {0}.entries",
                "ALTER TABLE {0}.entries DISABLE TRIGGER ALL",
                "CREATE TABLE {0}.more (a int)",
            ):
                with psycopg.connect(Address.of(theirs).url) as db, pytest.raises(psycopg.errors.InsufficientPrivilege):
                    db.execute(text.format(schema(url)))
        # What is left to a thief of this role is to spoil the head, which every server notices.
        with psycopg.connect(Address.of(theirs).url) as db:
            db.execute(
                f"UPDATE {schema(url)}.head SET seq = 1, hash = (SELECT hash FROM {schema(url)}.entries WHERE seq = 1)"
            )
        refused("ledger-damaged", opened, theirs)
        server().do(
            f"UPDATE {schema(url)}.head SET seq = 2, hash = (SELECT hash FROM {schema(url)}.entries WHERE seq = 2)"
        )
        assert charged(url) == ["how many?"]
        # To look, reading is enough; to open it is not.
        server().do(f"REVOKE INSERT ON {schema(url)}.entries FROM clerk")
        assert verify(theirs).debits == 1
        assert "cannot be written" in refused("ledger-failed", opened, theirs).message
        with empty("postgres") as none:
            assert "may not begin" in refused("ledger-failed", opened, none.replace("sulq@", "clerk@")).message
            server().do(f"CREATE SCHEMA {schema(none)} AUTHORIZATION clerk")
            opened(none.replace("sulq@", "clerk@")).close()
    finally:
        server().do(f"DROP SCHEMA {schema(url)} CASCADE; DROP OWNED BY clerk; DROP ROLE clerk")
