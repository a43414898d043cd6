"""A ledger in PostgreSQL that was changed by others: found at the next debit, or when it is opened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sulq.curator.ledger.opening import verify
from sulq.curator.ledger.postgres_place import QUIET_COMMITS
from sulq.kernel.ledger import postgres
from sulq.language.privacy import Epsilon
from tests.curator.ledger.cases import ask, opened, pure
from tests.curator.ledger.on_postgres import refused, schema
from tests.curator.ledger.places import empty
from tests.postgres import server


@pytest.fixture
def url() -> Iterator[str]:
    with empty("postgres") as found:
        yield found


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
def test_what_a_superuser_changes_is_found_T47(how: str, url: str) -> None:
    """A changed, missing or swapped row, or what would change the next one: `verify` and opening refuse (T47)."""
    six(url)
    assert verify(url).debits == 6
    server().do(FORGERIES[how].format(schema(url)))
    refused("ledger-damaged", verify, url)
    refused("ledger-damaged", opened, url, Epsilon(100))


@pytest.mark.parametrize(
    "how", ["an entry doubled", "an entry past the head", "the head moved back", "a table dropped"]
)
def test_damage_under_an_open_ledger_stops_it_T47(how: str, url: str) -> None:
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
def test_a_ledger_changed_under_a_live_process_takes_no_debit_T105(how: str, url: str) -> None:
    """The head is left as it was: the statement that would add the debit finds the change, and nothing is added."""
    six(url)
    with opened(url, Epsilon(100)) as ledger:
        for number in range(QUIET_COMMITS + 2):  # long enough for it not to read the head first
            ask(ledger, pure("0.01"), f"before {number}")
        server().do(CHANGED[how].format(schema(url)))
        count = f"SELECT count(*), (SELECT seq FROM {schema(url)}.head) FROM {schema(url)}.entries"
        before = server().do(count)
        for act in (lambda: ask(ledger, pure("0.01")), lambda: ledger.remaining, ledger.verify):
            refused("ledger-damaged", act)
        assert server().do(count) == before


def test_a_deleted_entry_of_a_long_ledger_is_found_in_turn_T105(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_control_the_statement_without_its_checks_goes_on_T105(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_ledger_set_back_as_a_whole_is_found_by_who_has_it_open_T46(url: str) -> None:
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
