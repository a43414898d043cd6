"""What a ledger asks of its PostgreSQL: no log of its keys, commits that reach the disk, a role that only adds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from sulq.curator.ledger.opening import verify
from sulq.curator.ledger.postgres_place import Address
from tests.curator.ledger.cases import ask, opened, pure
from tests.curator.ledger.on_postgres import charged, refused, schema, store_of
from tests.curator.ledger.places import empty
from tests.postgres import server


@pytest.fixture
def url() -> Iterator[str]:
    with empty("postgres") as found:
        yield found


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
def test_no_ledger_is_begun_where_its_keys_would_be_logged_T105(name: str, value: str, url: str) -> None:
    """Its first entry holds keys: a session whose server writes values into its log may not begin a ledger."""
    assert name in refused("statements-logged", opened, settled(url, **{name: value})).message
    refused("missing-file", verify, url)  # nothing is left of it
    if name in ("log_statement", "log_min_duration_statement"):  # statements hold no value of their own
        opened(settled(url, **{name: value, "log_parameter_max_length": "0"})).close()


def test_statements_that_begin_a_ledger_hold_no_key_T105(url: str) -> None:
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


def test_statements_do_not_matter_to_a_ledger_that_is_there_T105(url: str) -> None:
    """Only its beginning writes keys: opened and asked it may be, wherever statements are logged."""
    opened(url).close()
    with opened(settled(url, log_statement="mod")) as ledger:
        ask(ledger, pure("0.1"))


def test_a_server_that_may_lose_a_commit_is_refused_T48(url: str) -> None:
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
def test_a_commit_waits_for_the_disk_whatever_the_roles_default_T48(theirs: str, ours: str, url: str) -> None:
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


def test_a_role_that_can_only_add_is_enough_T60(url: str) -> None:
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
