"""Sessions with PostgreSQL: read-only, settled alike whatever a role sets, and silent about what the server says."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable

import psycopg
import pytest

from sulq.addresses import TableAddress
from sulq.errors import SetupError
from sulq.sources.postgres import session
from sulq.sources.postgres.session import SETTLE, SINCE, Sessions, meaning, opened
from tests.loaded import address
from tests.postgres import server
from tests.sources.cases import CANARY
from tests.sources.postgres_cases import at, copies, engine, filled, named, owner, role

# For each setting of a session another value, as a role's own.
OTHERWISE = {
    "search_path": "public", "TimeZone": "Asia/Kolkata", "extra_float_digits": "-5", "jit": "on", "row_security": "on",
    "standard_conforming_strings": "off", "transform_null_equals": "on", "array_nulls": "off", "bytea_output": "escape",
    "IntervalStyle": "sql_standard", "DateStyle": "German, DMY", "quote_all_identifiers": "on",
    "synchronize_seqscans": "on", "lock_timeout": "60001", "statement_timeout": "60002",
    "idle_in_transaction_session_timeout": "60003", "transaction_timeout": "60004",
    "default_transaction_isolation": "serializable", "default_transaction_read_only": "off",
}  # fmt: skip


@pytest.mark.parametrize("setting", OTHERWISE)
def test_a_session_is_settled_whatever_its_role_sets(setting: str) -> None:
    """Every setting is ours, whatever a role's is; control: without us it is the role's."""
    assert set(OTHERWISE) == set(SETTLE)
    with opened(TableAddress.of(at("t"))) as db:
        if db.info.server_version < SINCE.get(setting, 0):
            pytest.skip("this PostgreSQL has no such setting")
    name = role()
    server().do(f"ALTER ROLE {name} SET {setting} = '{OTHERWISE[setting]}'")
    with psycopg.connect(address().replace("//sulq@", f"//{name}@")) as db:
        assert db.execute(f"SHOW {setting}").fetchone()[0] != SETTLE[setting]
    with opened(TableAddress.of(at("t", user=name))) as db:
        assert db.execute(f"SHOW {setting}").fetchone()[0] == SETTLE[setting]


def test_no_setting_is_asked_of_a_server_that_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came with a later version is left out; control: a setting nobody has stops the session."""
    monkeypatch.setitem(SETTLE, "no_such_setting", "1")
    with pytest.raises(SetupError, match="unreadable-data"):
        opened(TableAddress.of(at("t")))
    monkeypatch.setitem(SINCE, "no_such_setting", 10**7)
    opened(TableAddress.of(at("t"))).close()


def test_nothing_can_be_written_unless_that_was_asked_for():
    """And a limit is what it was told to be."""
    with opened(TableAddress.of(at("t"))) as db, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        db.execute("CREATE TABLE public.never (x integer)")
    with opened(TableAddress.of(at("t")), write=True, limit=3) as db:
        assert db.execute("SHOW statement_timeout").fetchone()[0] == "3s"
        db.execute("CREATE TEMPORARY TABLE fleeting (x integer)")  # control


COMPUTING = """
import sys
import psycopg
from sulq.sources.postgres import session as postgres_session
from sulq.addresses import TableAddress
found = postgres_session.opened(TableAddress.of(sys.argv[2])) if sys.argv[1] == "ours" else psycopg.connect(sys.argv[2])
print(found.info.backend_pid, flush=True)
found.execute("SELECT count(*) FROM generate_series(1, 100000) AS a, generate_series(1, 100000) AS b")
"""


def test_a_database_stops_computing_when_its_client_is_killed_T75_T76() -> None:
    """Soon after, though nothing was sent and no statement has a limit; control: without the setting it goes on."""
    started = [
        subprocess.Popen([sys.executable, "-c", COMPUTING, whose, address()], stdout=subprocess.PIPE, text=True)
        for whose in ("ours", "plain")
    ]
    ours, plain = (int(client.stdout.readline()) for client in started)

    def computes(number: int) -> bool:
        asked = f"SELECT 1 FROM pg_stat_activity WHERE pid = {number} AND state = 'active' AND query LIKE '%count(*)%'"
        return bool(server().do(asked))

    try:
        waited(lambda: computes(ours) and computes(plain))
        for client in started:
            client.kill()
        waited(lambda: not computes(ours))
        assert computes(plain)
    finally:
        for client in started:
            client.kill()
            client.communicate()
        server().do(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN ({ours}, {plain})")


def waited(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not done():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)


def test_a_server_that_refuses_to_notice_is_asked_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems differ in what they can tell; control: where it is not refused it is set."""
    with opened(TableAddress.of(at("t"))) as db:
        assert db.execute("SHOW client_connection_check_interval").fetchone()[0] == "2s"
    for refused in ("SET no_such_setting = '2s'", "SET client_connection_check_interval = 'never'"):
        monkeypatch.setattr(session, "NOTICE", refused)
        with opened(TableAddress.of(at("t"))) as db:
            assert db.execute("SHOW statement_timeout").fetchone()[0] == "0"


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "EUC_JP"])
def test_texts_are_in_utf8_or_refused(encoding: str) -> None:
    """In another encoding they would compare by other bytes; control: the same in UTF8 is opened."""
    for told in (encoding, "UTF8"):
        name = named("texts")
        server().do(f"CREATE DATABASE {name} ENCODING '{told}' LOCALE 'C' TEMPLATE template0")
        url = TableAddress.of(address().replace("/postgres?", f"/{name}?"))
        if told == "UTF8":
            opened(url).close()
            continue
        with pytest.raises(SetupError, match="UTF8"):
            opened(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://sulq:{canary}@/nowhere?host=/nonexistent",
        "postgresql://{canary}@/postgres?host={host}",
        "postgresql://sulq@/{canary}?host={host}",
    ],
)
def test_a_database_that_is_not_there_is_said_to_be_so_T31(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """No server, no such role, no such database: one sentence, with no password, role or text of the server's."""
    host = address().partition("host=")[2]
    with caplog.at_level(logging.DEBUG), pytest.raises(SetupError, match="unreadable-data") as refused:
        opened(TableAddress.of(url.format(canary=CANARY, host=host)))
    shown = str(refused.value).replace(f"postgresql:///{CANARY}", "")  # the database's name is the owner's own
    assert CANARY not in shown + caplog.text


def test_an_address_that_libpq_cannot_read():
    """A word it does not know, without showing the address."""
    with pytest.raises(SetupError, match="bad-config") as refused:
        opened(TableAddress.of(f"postgresql://sulq:{CANARY}@/postgres?colour=blue"))
    assert CANARY not in str(refused.value)


def test_sessions_are_kept_unless_they_failed():
    """The next question takes the same session; one that broke is never seen again; after the end none is kept."""
    sessions = Sessions(TableAddress.of(address()))
    with sessions.one() as db:
        first = db
    with sessions.one() as db:
        assert db is first
        with sessions.one() as other:
            assert other is not first
    with pytest.raises(psycopg.DataError), sessions.one() as db:
        db.execute("SELECT 1 / 0")
    assert db.closed
    sessions.close()
    with sessions.one() as db:
        pass
    assert db.closed


def test_a_reader_that_may_write_is_refused():
    """A superuser, a maker of roles, a member of the owner, one that may write rows, nobody; control: a plain one."""
    name = filled()
    mine = owner(name)
    readers = [
        role("LOGIN SUPERUSER"),
        role("LOGIN CREATEROLE"),
        role("LOGIN BYPASSRLS"),
        role(f"LOGIN IN ROLE {mine}"),
        role("LOGIN IN ROLE pg_write_all_data"),
        role("LOGIN IN ROLE pg_execute_server_program"),
        writer := role(),
        column := role(),
        "nobody_of_that_name",
    ]
    server().do(f"GRANT DELETE ON {name} TO {writer}; GRANT UPDATE (age) ON {name} TO {column}")
    for reader in readers:
        with pytest.raises(SetupError, match="bad-config"):
            engine(at(name, user=mine, reader=reader)).ready()
    engine(at(name, user=mine, reader=role())).ready()


def test_a_reader_that_is_not_let_in_is_refused_before_a_row_is_read():
    """One that cannot log in; control: once it can, the copy is built."""
    name, asker = filled(), role("NOLOGIN")
    url = at(name, user=owner(name), reader=asker)
    with pytest.raises(SetupError, match="reader"):
        engine(url).ready()
    assert copies(name) == []
    server().do(f"ALTER ROLE {asker} LOGIN")
    engine(url).ready()
    assert len(copies(name)) == 1


def test_a_reader_with_members_is_refused():
    """They would read the copy as it does, by inheriting or by becoming it; control: without them it is let in."""
    name, asker = filled(), role()
    mine, member = owner(name), role()
    url = at(name, user=mine, reader=asker)
    server().do(f"GRANT {asker} TO {member}")
    with pytest.raises(SetupError, match="members"):
        engine(url).ready()
    assert copies(name) == []  # before a row was read
    server().do(f"REVOKE {asker} FROM {member}")
    engine(url).ready()
    server().do(f"GRANT {asker} TO {member}; ALTER ROLE {member} NOINHERIT")
    with pytest.raises(SetupError, match="members"):  # a copy that is there already is not asked either
        engine(url).ready()


def test_the_maker_of_a_reader_is_no_member_of_it():
    """From PostgreSQL 16 on a role that makes another is given it, but neither inherits nor can become it."""
    name = filled()
    mine, maker = owner(name), role("LOGIN CREATEROLE")
    asker = named("made")
    with psycopg.connect(address().replace("//sulq@", f"//{maker}@"), autocommit=True) as db:
        db.execute(f"CREATE ROLE {asker} LOGIN")
        newer = db.info.server_version >= 160000
    granted = server().do(f"SELECT count(*) FROM pg_auth_members WHERE roleid = '{asker}'::regrole")
    assert granted == [(int(newer),)]
    engine(at(name, user=mine, reader=asker)).ready()


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("57014", "unreadable-data"),
        ("42501", "unreadable-data"),
        ("42P01", "source-changed"),
        ("42703", "source-changed"),
        ("53100", "prepared-unusable"),
        ("25006", "prepared-unusable"),
        ("22P02", "unreadable-data"),
        (None, "unreadable-data"),
    ],
)
def test_what_an_error_means_holds_none_of_its_text_T31(
    state: str | None, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Chosen by its class; a cell in its text goes nowhere, not even into the log."""
    error = psycopg.Error(f"invalid input: {CANARY}")
    error.sqlstate = state
    with caplog.at_level(logging.DEBUG):
        found = meaning(error)
    assert found.code == code
    assert CANARY not in str(found) + caplog.text
