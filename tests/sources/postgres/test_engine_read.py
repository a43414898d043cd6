"""The kept rows of a copy in DuckDB: every row once, each cell beside its own, whatever is read at a time."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from sulq.errors import SetupError
from sulq.language.domain import Int, Schema, Text
from sulq.language.privacy import Unit
from sulq.language.rowfn import Length, Like, col, lit
from sulq.sources.duckdb.connection import CORE_MEMORY_MIB, Connection, cores, stored_columns
from sulq.sources.postgres import engine as postgres_engine
from tests.postgres import server
from tests.sources.cases import ask
from tests.sources.postgres_cases import PostgresEngine, at, engine, filled

SCHEMA = Schema.of("data", {"n": Int(-(2**53), 2**53), "w": Text()})
ROWS = 5_000


@pytest.fixture(scope="module")
def opened():
    """An engine over rows whose two columns say the same."""
    cells = [None if i % 7 == 0 else i - 2_500 for i in range(ROWS)]
    data = {"who": [str(i) for i in range(ROWS)], "n": cells, "w": [None if n is None else f"\u05d0{n}" for n in cells]}
    found = engine(at(filled(pa.table(data))), Unit("who", 1), SCHEMA)
    found.ready()
    yield found
    found.close()


def copy_of(found: PostgresEngine) -> tuple[str, int]:
    """The one table of an engine's copy, and its number of pages."""
    return found._copy.tables["data"], found._copy.pages["data"]


@pytest.mark.parametrize("some", [1, 3, 512])
def test_every_row_is_read_once_and_whole(opened, some: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of a row stay together, whatever is read at a time; a missing cell is missing."""
    monkeypatch.setattr(postgres_engine, "MAX_READ_TEXT_PAGES", some)
    columns = stored_columns(SCHEMA, owned=True)
    assert columns == {"c0": "BIGINT", "c1": "VARCHAR", "h": "BIGINT", "o": "BIGINT"}
    with closing(Connection()) as made, opened._sessions.one() as db:
        assert postgres_engine.load(db, copy_of(opened), made, "kept", columns) == ROWS
        rows = made.root.execute("SELECT c0, c1, h, o FROM kept").fetchall()
    assert all(text == (None if n is None else f"\u05d0{n}") for n, text, _, _ in rows)
    assert sorted(n for n, *_ in rows if n is not None) == [i - 2_500 for i in range(ROWS) if i % 7]
    assert len({who for *_, who in rows}) == len({h for _, _, h, _ in rows}) == ROWS


def test_the_rows_lie_on_disk_in_bounded_memory(opened) -> None:
    """What the curator's process takes does not grow with them. Control: a connection of another kind has no file."""
    told = "SELECT current_setting('memory_limit'), (SELECT path FROM duckdb_databases() WHERE NOT internal)"
    with closing(opened._connection.cursor()) as cursor:
        limit, place = cursor.execute(told).fetchone()
    number, unit = limit.split()
    assert float(number) * {"MiB": 1, "GiB": 1024}[unit] <= CORE_MEMORY_MIB * cores() * 1.01
    assert Path(place).parent == opened._connection.folder
    with closing(Connection()) as other:
        assert other.root.execute(told).fetchone()[1] is None


def test_a_pass_sees_one_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that somebody deletes between two pages are where they were; the next pass sees what is left."""
    monkeypatch.setattr(postgres_engine, "MAX_READ_PAGES", 1)
    schema = Schema.of("data", {"n": Int(0, ROWS)})
    found = engine(at(filled(pa.table({"n": list(range(ROWS))}))), schema=schema)
    found.ready()
    columns, (relation, count) = stored_columns(schema, owned=False), copy_of(found)
    assert count > 3
    genuine, deleted = postgres_engine._unpacked, []

    def unpacked(cells: object) -> pa.Array:
        if not deleted:
            deleted.append(server().do(f"DELETE FROM {relation} WHERE c0 >= 4000"))
        return genuine(cells)

    monkeypatch.setattr(postgres_engine, "_unpacked", unpacked)
    with closing(Connection()) as made, found._sessions.one() as db:
        assert postgres_engine.load(db, (relation, count), made, "kept", columns) == ROWS
        assert db.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert postgres_engine.load(db, (relation, count), made, "again", columns) == 4_000  # control: they are gone
    found.close()


def test_a_copy_that_lost_rows_or_has_wider_ones_is_refused() -> None:
    """Before the debit: rows are as many as were copied, and of the types the kernel's facts name; control: as it was.

    No text of the database's, and no cell.
    """
    schema = Schema.of("data", {"n": Int(0, 9)})
    name = filled(pa.table({"n": [1, 2, 3]}))
    for harm, code in (("DELETE FROM {} WHERE c0 = 3", "prepared-unusable"), ("UPDATE {} SET c0 = 999", "unreadable")):
        first = engine(at(name), schema=schema, renew=True)
        first.ready()
        assert first.sums(ask(col("n"), schema=schema)).open().tolist() == [[6]]
        server().do(harm.format(copy_of(first)[0]))
        first.close()
        with pytest.raises(SetupError, match=code) as refused:
            engine(at(name), schema=schema).ready()
        assert "999" not in f"{refused.value} {refused.value.__context__}"


def test_an_empty_table_has_no_rows():
    """Nor pages."""
    found = engine(at(filled(pa.table({"n": pa.array([], pa.int64()), "w": pa.array([], pa.string())}))), schema=SCHEMA)
    found.ready()
    assert found.sums(ask(lit(1), schema=SCHEMA)).open().tolist() == [[0]]
    found.close()


def test_long_texts_are_no_outcome_T30():
    """A page can name texts of many megabytes: they are read a few pages at a time, whatever stands in them."""
    schema = Schema.of("data", {"w": Text()})
    name = filled(pa.table({"w": ["x"]}))
    server().do(f"INSERT INTO {name} SELECT repeat('\u05d0', 10000) FROM generate_series(1, 600)")
    found = engine(at(name), schema=schema)
    asked = [ask(lit(1), where=Like(col("w"), "_%_"), schema=schema), ask(Length(col("w")), schema=schema)]
    assert [found.sums(tally).open().tolist() for tally in asked] == [[[600]], [[6_000_001]]]
    found.close()
