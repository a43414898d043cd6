"""Kept rows of a copy as batches: every row once, each cell beside its own, in batches of any size."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pytest

from sulq.curator.engines import postgres_read
from sulq.curator.engines.needed import Needed
from sulq.curator.engines.postgres_read import Reader, by_pages
from sulq.terms.domain import Int, Schema, Text
from sulq.terms.privacy import Unit
from sulq.terms.rowfn import Length, Like, col, lit
from tests.curator.engines.cases import ask
from tests.curator.engines.postgres_cases import at, engine, filled
from tests.postgres import server

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


@pytest.mark.parametrize(("size", "pages"), [(1_000, 1), (7, 512), (10**9, 3), (65_536, 512)])
def test_every_row_is_read_once_and_whole(opened, size: int, pages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of a row stay together, whatever is read at a time; a missing cell is missing."""
    monkeypatch.setattr(postgres_read, "PAGES_OF_TEXT", pages)
    schema, rows, count = opened._table("data")
    wanted = Needed(schema.names)
    wanted.person = True
    reader = Reader(schema, rows, count, wanted, owned=True)
    seen, people = [], set()
    with opened._sessions.one() as db:
        for batch in reader.batches(db, reader.statement(by_pages(rows).relation), {}, size):
            assert 0 < batch.size <= size
            numbers, texts = batch.codes("n"), batch.codes("w")
            for i in range(batch.size):
                gone = numbers.missing is not None and bool(numbers.missing[i])
                assert texts.values[i] == (None if gone else f"\u05d0{numbers.values[i]}")
                seen.append(None if gone else int(numbers.values[i]))
            people |= set(zip(batch.person().tolist(), batch.owner.tolist(), strict=True))
    assert sorted(n for n in seen if n is not None) == [i - 2_500 for i in range(ROWS) if i % 7]
    assert len(seen) == len(people) == ROWS


def test_all_rows_at_once_are_those_rows(opened) -> None:
    """In memory they are the same; of no column there is still a number of rows."""
    schema, rows, count = opened._table("data")
    with opened._sessions.one() as db:
        whole = Reader(schema, rows, count, Needed(schema.names), owned=True).whole(db)
        bare = Reader(schema, rows, count, Needed()).whole(db)
    assert whole.size == bare.size == ROWS
    assert int(whole.codes("n").missing.sum()) == len(range(0, ROWS, 7))
    assert whole.owner is not None


def test_a_pass_sees_one_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that somebody moves or deletes between two pages are where they were; the next pass sees what is left."""
    monkeypatch.setattr(postgres_read, "PAGES", 1)
    schema = Schema.of("data", {"n": Int(0, ROWS)})
    found = engine(at(filled(pa.table({"n": list(range(ROWS))}))), schema=schema)
    found.ready()
    _, rows, count = found._table("data")
    assert count > 3
    reader = Reader(schema, rows, count, Needed(schema.names))
    statement = reader.statement(by_pages(rows).relation)
    with found._sessions.one() as db:
        batches = reader.batches(db, statement, {}, ROWS)
        size = next(batches).size
        server().do(f"DELETE FROM {rows.relation} WHERE {rows.names['n']} >= 4000")
        server().do(f"UPDATE {rows.relation} SET {rows.names['n']} = {rows.names['n']}")
        assert size + sum(batch.size for batch in batches) == ROWS
        assert db.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert reader.whole(db).size < ROWS  # control: they are gone
        left = reader.batches(db, statement, {}, ROWS)
        next(left)
    with found._sessions.one() as other:
        assert other is not db  # one that was left in the middle is not used again
    found.close()


def test_an_empty_table_has_no_rows():
    """Nor pages."""
    found = engine(at(filled(pa.table({"n": pa.array([], pa.int64()), "w": pa.array([], pa.string())}))), schema=SCHEMA)
    found.ready()
    schema, rows, count = found._table("data")
    with found._sessions.one() as db:
        assert Reader(schema, rows, count, Needed(schema.names)).whole(db).size == 0
    found.close()


def test_T30_long_texts_are_no_outcome():
    """A page can name texts of many megabytes: they are read a few pages at a time, whatever stands in them."""
    schema = Schema.of("data", {"w": Text()})
    name = filled(pa.table({"w": ["x"]}))
    server().do(f"INSERT INTO {name} SELECT repeat('\u05d0', 10000) FROM generate_series(1, 600)")
    found = engine(at(name), schema=schema)
    asked = [ask(lit(1), where=Like(col("w"), "_%_"), schema=schema), ask(Length(col("w")), schema=schema)]
    assert [found.sums(tally).open().tolist() for tally in asked] == [[[600]], [[6_000_001]]]
    found.close()
