"""A ledger's place in PostgreSQL: addresses, connections, rights, and servers that meet."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import sulq
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import verify
from sulq.curator.ledger.postgres_place import Address, PostgresPlace, is_address
from sulq.errors import BudgetExceeded, SetupError
from sulq.language.privacy import Epsilon
from tests.curator.ledger.cases import ask, opened, pure
from tests.curator.ledger.on_postgres import refused, schema, store_of
from tests.curator.ledger.places import empty
from tests.postgres import server


@pytest.fixture
def url() -> Iterator[str]:
    with empty("postgres") as found:
        yield found


@pytest.mark.parametrize(
    ("url", "handed_on", "ledger"),
    [
        ("postgresql://h/db", "postgresql://h/db", "sulq"),
        ("postgres://h:1,i:2/db?ledger=survey", "postgres://h:1,i:2/db", "survey"),
        (
            "postgresql:///db?host=%2Frun&ledger=a_1&sslmode=require",
            "postgresql:///db?host=%2Frun&sslmode=require",
            "a_1",
        ),
    ],
)
def test_the_ledgers_name_is_ours_and_the_rest_is_handed_on(url: str, handed_on: str, ledger: str) -> None:
    """`ledger=` is taken out of the URL; all else is PostgreSQL's own, to the letter."""
    assert is_address(url)
    found = Address.of(url)
    assert (found.url, found.ledger) == (handed_on, ledger)


@pytest.mark.parametrize(
    "name", ["", "Survey", "pg_catalog", "public", "information_schema", "a;b", 'a"b', "1a", "a" * 64]
)
def test_a_name_that_is_no_schemas_is_refused(name: str) -> None:
    """Nothing that would need quotes, and nobody else's schema."""
    refused("bad-config", Address.of, f"postgresql://h/db?ledger={name}")
    refused("bad-config", Address.of, "postgresql://h/db?ledger=a&ledger=b")


def test_paths_are_no_addresses(tmp_path: Path) -> None:
    """Only the two schemes lead to PostgreSQL."""
    assert not any(is_address(place) for place in (tmp_path, "a.ledger", "postgresql:a", None, "mysql://h/db"))


def test_no_text_shows_a_password(url: str) -> None:
    """Neither the address, nor the ledger, nor a refusal, also where the URL is written wrongly."""
    for text in ("postgresql://u:hunter2@h/db", "postgresql://u:hun/ter2@h/db?password=hunter2", "postgresql://h/db"):
        assert "ter2" not in f"{Address.of(text)} {Address.of(text)!r}"
    for start in ("postgresql://u:hunter2@", "postgresql://u:hun/ter2@", "postgresql://u:hun%ter2@"):
        with pytest.raises(SetupError) as refusal:
            opened(f"{start}/postgres?host=/nowhere&port=1", wait=0.01)
        assert "ter2" not in str(refusal.value)
    with opened(url.replace("//sulq@", "//sulq:hunter2@")) as ledger:
        assert repr(ledger) == f"Ledger(postgresql:///postgres?ledger={schema(url)})"
        assert ledger.durable


def test_what_cannot_be_reached_says_so(url: str) -> None:
    """No server, no such database, no such role, and no ledger: nothing is begun, and the text says what to check."""
    unreachable = f"postgresql:///postgres?host=/nowhere&ledger={schema(url)}"
    refused("missing-file", opened, unreachable, wait=0.1)
    start = time.monotonic()
    refused("missing-file", opened, url.replace("/postgres?", "/no_such_database?"), wait=30.0)
    refused("missing-file", opened, url.replace("//sulq@", "//no_such_role@"), wait=30.0)
    assert time.monotonic() - start < 10  # waiting would not help, so nobody waits
    assert "no ledger at postgresql:///postgres?ledger=" in refused("missing-file", opened, url, create=False).message
    refused("missing-file", verify, url)
    refused("missing-file", Ledger.open, url, mechanisms=())


def test_a_missing_extra_names_its_pip_line(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without psycopg the owner is told what to install."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "psycopg" else found(name))
    assert "pip install 'sulq[postgres]'" in str(refused("missing-extra", opened, url))


def test_connect_takes_a_url_for_its_ledger(url: str, tmp_path: Path) -> None:
    """`sulq.connect(ledger="postgresql://...")` keeps the budget there and the prepared copy beside the data."""
    data = tmp_path / "people.csv"
    data.write_text("age\n" + "30\n" * 40, encoding="utf-8")
    options = {"columns": {"age": sulq.Int(0, 120)}, "ledger": url}
    refused("missing-file", sulq.connect, data, **options)
    for _ in range(2):
        with sulq.connect(data, budget=Epsilon(1), **options) as db:
            db.count(spend=Epsilon(0.25), fresh=True)
    with sulq.connect(data, **options) as db:
        assert db.remaining == Epsilon(0.5)
    assert {path.name for path in tmp_path.iterdir()} == {"people.csv", "people.prepared"}
    assert verify(url).debits == 2


def test_ledgers_of_one_database_know_nothing_of_each_other(url: str) -> None:
    """Each schema is a person space with its own budget."""
    with empty("postgres") as other, opened(url) as one, opened(other) as two:
        ask(one, pure(1))
        ask(two, pure("0.5"))
        assert (one.spent, two.spent) == (Epsilon(1), Epsilon(0.5))
        assert one.space != two.space


def test_servers_that_meet_take_turns(url: str) -> None:
    """Of servers that write without a pause none is left behind."""
    stop = time.monotonic() + 2
    done = [0] * 4

    def work(number: int) -> None:
        with opened(url, Epsilon(1000), wait=30.0) as ledger:
            while time.monotonic() < stop:
                ask(ledger, pure("0.0001"))
                done[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert min(done) > max(done) / 4, done


def test_a_server_that_does_not_move_on_holds_nobody_up_for_long(url: str) -> None:
    """The queue is a courtesy: behind one that sits in it the others go on without it."""
    with opened(url) as ledger, psycopg.connect(Address.of(url).url) as other:
        other.execute(f"SELECT pg_advisory_lock({store_of(ledger)._key})")
        ask(ledger, pure("0.1"))
        assert server().do("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(1,)]
    with opened(url) as ledger:
        ask(ledger, pure("0.1"))
        assert server().do("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]


def test_a_server_that_only_reads_is_refused(url: str) -> None:
    """Where nothing can be written a ledger is not opened, and can be verified."""
    opened(url).close()
    reading = f"{url}&options=-c%20default_transaction_read_only%3Don"
    assert "cannot be written" in refused("ledger-failed", opened, reading).message
    assert verify(reading).debits == 0


def test_verifying_writes_nothing(url: str) -> None:
    """`verify` works through a session that cannot write, beside a ledger in use."""
    with opened(url) as ledger:
        ask(ledger, pure("0.1"))
        store = PostgresPlace(Address.of(url), looking=True)
        assert store.readonly
        store.close()
        assert verify(url).debits == 1
        with pytest.raises(BudgetExceeded):
            ask(ledger, pure(2))
