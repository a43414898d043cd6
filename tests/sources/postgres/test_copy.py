"""The prepared copy in PostgreSQL: one snapshot, the rows a file would keep, built once and whole or not at all."""

from __future__ import annotations

import logging
import threading
import time

import psycopg
import pyarrow as pa
import pytest

from sulq.errors import SetupError
from sulq.language.domain import Int, Real, Schema
from sulq.language.facts import TableFacts
from sulq.language.privacy import Unit
from sulq.language.rowfn import col, lit
from sulq.sources.origin import Origin
from sulq.sources.postgres import copy
from sulq.sources.tables import Dataset, Given
from tests.loaded import address, loaded
from tests.postgres import server
from tests.sources.cases import ASKED, CANARY, ask, plain_engine, sums, table
from tests.sources.postgres_cases import PostgresEngine, at, copies, engine, filled, named, owner

ONE = Schema.of("data", {"x": Int(0, 10**6)})


@pytest.mark.parametrize("unit", [Unit(), Unit("who", 1), Unit("who", 2), Unit("who", 2, "replace_one")])
def test_the_copy_keeps_what_memory_keeps(unit: Unit) -> None:
    """The same rows by the same keyed choice, whatever the unit."""
    data = table([(f"p{i % 7}", i, float(i), "xyz"[i % 3], None if i % 5 else "a") for i in range(60)])
    assert sums(engine(at(filled(data)), unit)) == sums(plain_engine(data, unit))


def test_a_copy_is_built_once_and_shared():
    """Two engines that open at once build one copy; a third finds it."""
    name = filled()
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(engine(at(name)).fingerprint())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.append(engine(at(name)).fingerprint())
    assert len(found) == 5
    assert len(set(found)) == len(copies(name)) == 1


def test_rows_that_come_later_are_not_in_it_until_the_owner_renews():
    """A copy is one snapshot: whatever happens to the table, answers are about the same rows."""
    name = filled(pa.table({"x": [1, 2]}))
    assert sums(engine(at(name), schema=ONE), ask(schema=ONE)) == [[[2]]]
    server().do(f"INSERT INTO {name} VALUES (3)")
    assert sums(engine(at(name), schema=ONE), ask(schema=ONE)) == [[[2]]]
    assert sums(engine(at(name), schema=ONE, renew=True), ask(schema=ONE)) == [[[3]]]
    assert sums(engine(at(name), schema=ONE), ask(schema=ONE)) == [[[3]]]


def test_all_tables_are_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that move from one table to the next while they are read are in one of them; public sizes are of then."""
    first, second = (filled(pa.table({"x": [1, 2, 3]})) for _ in range(2))
    genuine = copy.stream

    def moving(*given: object):
        source, read = genuine(*given)

        class Moving:
            schema = read.schema

            def batches(self, db: psycopg.Connection):
                yield from read.batches(db)
                server().do(f"WITH gone AS (DELETE FROM {first} RETURNING x) INSERT INTO {second} SELECT x FROM gone")

        return source, Moving()

    monkeypatch.setattr(copy, "stream", moving)
    facts = [TableFacts(Schema.of("a", {"x": Int(0, 9)})), TableFacts(Schema.of("b", {"x": Int(0, 9)}), public=True)]
    given = [Given(Origin.of(at(name)), fact) for name, fact in zip((first, second), facts, strict=True)]
    opened = PostgresEngine(Dataset(tuple(given), Unit(), bytes(32)))
    assert [fact.facts.rows for fact in opened.counted().tables] == [None, 3]
    opened.close()
    assert server().do(f"SELECT count(*) FROM {second}") == [(6,)]  # control: they did move


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE {0} ADD COLUMN later integer",
        "ALTER TABLE {0} ALTER COLUMN x TYPE text",
        "ALTER TABLE {0} RENAME COLUMN x TO y; ALTER TABLE {0} RENAME COLUMN z TO x",
        "DROP TABLE {0}; CREATE TABLE {0} (x bigint, z bigint)",
    ],
)
def test_a_table_that_was_altered_stops_the_owner(change: str) -> None:
    """Schema drift, and a table made anew: `source-changed` until the owner takes the rows anew."""
    name = filled(pa.table({"x": [1, 2], "z": [3, 4]}))
    engine(at(name), schema=ONE).ready()
    server().do(change.format(name))
    with pytest.raises(SetupError, match="source-changed"):
        engine(at(name), schema=ONE).ready()
    engine(at(name), schema=ONE, renew=True).ready()


def test_a_table_that_was_dropped_stops_the_owner():
    """Even though its copy is still there."""
    name = filled(pa.table({"x": [1]}))
    engine(at(name), schema=ONE).ready()
    server().do(f"DROP TABLE {name}")
    with pytest.raises(SetupError, match="unreadable-data") as refused:
        engine(at(name), schema=ONE).ready()
    assert name in str(refused.value)


def test_a_table_altered_between_looking_and_reading_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncated or rewritten after the snapshot it would look empty: it is locked first, and compared."""
    name = filled(pa.table({"x": [1, 2]}))
    genuine = copy._snapshot

    def late(*given: object) -> None:
        server().do(f"ALTER TABLE {name} ALTER COLUMN x TYPE numeric")
        genuine(*given)

    monkeypatch.setattr(copy, "_snapshot", late)
    with pytest.raises(SetupError, match="source-changed"):
        engine(at(name), schema=ONE).ready()
    assert copies(name) == []


def test_a_copy_that_fails_half_way_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one transaction: the earlier copy stays, and is used."""
    name = filled(pa.table({"x": [1, 2]}))
    before = engine(at(name), schema=ONE).fingerprint()
    monkeypatch.setattr(copy.session, "record", lambda *_: (_ for _ in ()).throw(psycopg.DataError))
    with pytest.raises(SetupError, match="unreadable-data"):
        engine(at(name), schema=ONE, renew=True).ready()
    monkeypatch.undo()
    assert engine(at(name), schema=ONE).fingerprint() == before
    assert len(copies(name)) == 1


def test_what_cannot_be_read_is_said_without_a_cell_T31(caplog: pytest.LogCaptureFixture) -> None:
    """A view that fails on a cell: the owner hears that it failed, and nobody hears the cell."""
    name = filled(table([(CANARY, 1, 1.0, CANARY, CANARY)]))
    server().do(f"CREATE VIEW {name}_v AS SELECT city::integer AS x FROM {name}")
    with caplog.at_level(logging.DEBUG), pytest.raises(SetupError, match="unreadable-data") as refused:
        engine(at(f"{name}_v"), schema=ONE).ready()
    with pytest.raises(psycopg.DataError, match=CANARY):  # control: PostgreSQL's own text shows it
        server().do(f"SELECT * FROM {name}_v")
    assert CANARY not in f"{refused.value} {refused.value.__context__} {refused.value.__cause__} {caplog.text}"


def test_preparing_ends_at_the_limit_of_the_address():
    """A slow view is stopped, said to be so; without the limit it is read."""
    name = named("slow")
    server().do(f"CREATE VIEW {name} AS SELECT 1 AS x FROM (SELECT sum(n) FROM generate_series(1, 9000000) AS n) AS s")
    started = time.monotonic()
    with pytest.raises(SetupError, match="limit"):
        engine(at(name, limit="0.1"), schema=ONE).ready()
    assert time.monotonic() - started < 5
    engine(at(name), schema=ONE).ready()


def test_rows_that_a_policy_hides_are_not_quietly_left_out():
    """A role to which row-level security applies cannot prepare; one whom it does not can."""
    name = filled(pa.table({"x": [1, 2]}))
    mine = owner(name)
    server().do(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY; CREATE POLICY one ON {name} USING (x = 1)")
    with pytest.raises(SetupError, match="unreadable-data"):
        engine(at(name, user=mine), schema=ONE).ready()
    assert sums(engine(at(name), schema=ONE), ask(schema=ONE)) == [[[2]]]


def test_a_role_that_may_not_read_or_make_a_schema_is_told_so():
    """What it needs is said; the database's own text is not."""
    name = filled()
    mine = owner(name)
    server().do(f"REVOKE CREATE ON DATABASE postgres FROM {mine}")
    with pytest.raises(SetupError, match="CREATE on the database"):
        engine(at(name, user=mine)).ready()
    server().do(f"GRANT CREATE ON DATABASE postgres TO {mine}; REVOKE SELECT ON {name} FROM {mine}")
    with pytest.raises(SetupError, match="SELECT on the tables"):
        engine(at(name, user=mine)).ready()


@pytest.mark.parametrize("rows", [0, 1, 3, 70_000])
def test_any_number_of_rows(rows: int) -> None:
    """None, one, and more than are sent at a time, at the ends of 2^53."""
    schema = Schema.of("data", {"n": Int(-(2**53), 2**53), "r": Real(-(2**20), 2**20)})
    cells = [(2**53, -(2**53), None, 2**53 - 1, 0)[i % 5] for i in range(rows)]
    reals = [(float("nan"), float("inf"), -0.0, 5e-324, None, 0.1)[i % 6] for i in range(rows)]
    data = pa.table({"n": pa.array(cells, pa.int64()), "r": pa.array(reals, pa.float64())})
    asked = [ask(lit(1), col("n"), col("r"), schema=schema), ask(col("n"), where=col("n") > 0, schema=schema)]
    url = loaded(data)
    assert sums(engine(url, schema=schema), *asked) == sums(plain_engine(data, schema=schema), *asked)


def test_progress_is_told():
    """From nothing to all."""
    told: list[float] = []
    engine(at(filled()), progress=told.append).ready()
    assert (told[0], told[-1]) == (0.0, 1.0)
    assert sums(engine(address(table=filled())), *ASKED) == sums(plain_engine(table()), *ASKED)
