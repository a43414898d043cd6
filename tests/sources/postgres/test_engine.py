"""The PostgreSQL engine: no fault of a row or of the connection gets out, and nothing it says (T30, T31)."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import pytest

import sulq
from sulq.compile.statements.emitter import Emitter
from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.language.domain import Int, Schema
from sulq.language.facts import TableFacts
from sulq.language.privacy import Unit
from sulq.language.relation import Table, Where
from sulq.language.rowfn import col
from sulq.language.rowfn.piece import Piece
from sulq.language.tally import Key, Tally
from sulq.sources.duckdb import runner
from sulq.sources.origin import Origin
from sulq.sources.postgres import engine as postgres_engine
from sulq.sources.tables import Dataset, Given
from tests.certified import certified, certified_groups
from tests.loaded import address, loaded
from tests.postgres import server
from tests.sources import declared
from tests.sources.cases import ASKED, CANARY, KEY, SCHEMA, ask, open_engine, plain_engine, sums, table
from tests.sources.duckdb.test_engine import FAULTY, WORST, faults, questions
from tests.sources.postgres_cases import PostgresEngine, at, copies, engine, filled

KINDS = {
    "x": pa.float64(), "n": pa.int64(), "z": pa.int64(), "c": pa.string(), "d": pa.date32(), "t": pa.string(),
    "w": pa.string(),
}  # fmt: skip


def test_no_expression_fails_because_of_a_row_T30(caplog: pytest.LogCaptureFixture) -> None:
    """More than 200 faulty expressions, with the worst rows there and not: integers, and nothing ever raises."""
    worst = WORST | {"w": [CANARY, "", None, "\\", "'"]}
    there = pa.table({name: pa.array(cells, KINDS[name]) for name, cells in worst.items()})
    engines = [engine(loaded(data), schema=FAULTY) for data in (there, there.slice(0, 0), there.slice(1, 2))]
    oracle = plain_engine(there, schema=FAULTY)
    asked = faults()
    assert len(asked) > 200
    with caplog.at_level(logging.DEBUG):
        for i in range(0, len(asked), 12):
            for tally in questions(asked[i : i + 12]):
                found = [each.sums(tally).open() for each in engines]
                assert found[0].tolist() == oracle.sums(tally).open().tolist()
                assert not found[1].any()
    assert "asked again" not in caplog.text
    assert CANARY not in caplog.text
    for each in engines:
        each.close()


@pytest.mark.by_hand
@pytest.mark.parametrize("what", ["sums", "groups", "listed", "sums_of"])
def test_what_is_certified_is_run_or_nothing_T30_T31(
    what: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A statement that fails after all is one constant error, none of its text is heard of, and nothing else is run."""

    def failing(*_: object, **__: object) -> object:
        raise duckdb.OutOfMemoryException(f"no room for {CANARY}")

    opened = engine(at(filled()), Unit("who", 2))
    asked = {
        "sums": lambda: opened.sums(ASKED[1]),
        "groups": lambda: opened.groups(ASKED[2]),
        "listed": lambda: opened.listed(ask(col("age"))),
        "sums_of": lambda: opened.sums_of([ASKED[0], ASKED[1]]),
    }
    asked[what]()  # control
    monkeypatch.setattr(runner.CursorRunner, "_columns", failing)
    monkeypatch.setattr(runner, "arrow_table", failing)
    with caplog.at_level(logging.DEBUG), pytest.raises(CuratorError, match="engine-failed") as failed:
        asked[what]()
    assert failed.value.__context__ is failed.value.__cause__ is None
    assert "OutOfMemoryException" in caplog.text
    assert CANARY not in caplog.text + str(failed.value)
    opened.close()


def ended(database: object) -> None:
    """End every session an engine keeps, as a server that goes away does."""
    for db in database._sessions._idle:
        server().do(f"SELECT pg_terminate_backend({db.info.backend_pid})")


def test_a_session_that_broke_between_questions_costs_nothing():
    """It is noticed before the debit, and made anew."""
    opened = engine(at(filled()))
    opened.ready()
    before = opened.sums(ASKED[0]).open().tolist()
    ended(opened)
    opened.ready()
    assert opened.sums(ASKED[0]).open().tolist() == before
    ended(opened)
    assert opened.sums(ASKED[0]).open().tolist() == before  # and rows that are here need none
    opened.close()


def test_a_connection_lost_while_the_copy_is_read_costs_nothing_T31(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The owner hears a sentence without a word of the server's, nothing is spent, and the next try works."""
    name = filled()
    given = {"table": "data", "columns": {"age": sulq.Int(0, 120)}, "budget": sulq.Epsilon(3)}

    def lost(*_: object) -> object:
        raise psycopg.OperationalError(f"server closed the connection: {CANARY}")

    with caplog.at_level(logging.DEBUG), monkeypatch.context() as patch:
        patch.setattr(postgres_engine, "load", lost)
        with pytest.raises(SetupError, match="unreadable-data") as failed:
            sulq.connect(at(name), **given, ledger=tmp_path / "l.ledger").prepare()
    assert CANARY not in f"{failed.value} {failed.value.__context__} {failed.value.__cause__} {caplog.text}"
    db = sulq.connect(at(name), **given, ledger=tmp_path / "l.ledger")
    assert isinstance(db.count(spend=sulq.Epsilon(1)).value, int)
    assert db.remaining == sulq.Epsilon(2)
    db.close()


def test_a_server_that_stays_away_stops_questions_before_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ready` says so: nothing is spent."""
    opened = engine(at(filled()))
    opened.ready()

    def away() -> object:
        raise psycopg.OperationalError(CANARY)

    monkeypatch.setattr(opened._sessions, "one", away)
    with pytest.raises(SetupError, match="unreadable-data") as refused:
        opened.ready()
    assert CANARY not in f"{refused.value} {refused.value.__context__}"
    opened.close()


def test_a_copy_taken_anew_elsewhere_stops_who_has_the_old_one():
    """Before the debit; and a question that is already under way never meets the new rows."""
    name = filled()
    old = engine(at(name))
    old.ready()
    before = old.sums(ASKED[0]).open().tolist()
    server().do(f"INSERT INTO {name} SELECT * FROM {name}")
    engine(at(name), renew=True).ready()
    with pytest.raises(SetupError, match="source-changed"):
        old.ready()
    assert old.sums(ASKED[0]).open().tolist() == before
    old.close()
    (schema,) = copies(name)
    last = engine(at(name))
    last.ready()
    assert last.sums(ASKED[0]).open().tolist() != before
    server().do(f"DROP SCHEMA {schema} CASCADE")
    with pytest.raises(SetupError, match="source-changed"):
        last.ready()


def test_derived_rows_are_those_of_the_reference():
    """A relation that is no table has the integers of the reference."""
    over = Where(Table("data"), col("age") > 40)
    tallies = [Tally(over, tally.blocks, tally.where, tally.by, tally.cells) for tally in ASKED]
    assert sums(engine(at(filled())), *tallies) == sums(plain_engine(table()), *tallies)


def test_every_statement_is_certified_before_the_debit_SR5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clamp left out of the text is refused, free, before a row is read; control: with it there is an answer."""
    unit = Unit("who", 2)
    opened = engine(at(filled()), unit)
    assert all(block is not None for tally in ASKED for block in certified(opened, [tally])[0])
    assert certified_groups(opened, replace(ASKED[2], by=(Key(col("note"), ()),)))[0].rows == 2
    db = sulq.connect(
        at(filled()),
        table="data",
        columns={"age": sulq.Int(0, 120)},
        budget=sulq.Epsilon(3),
        ledger=tmp_path / "l.ledger",
    )
    db.sum("age", spend=sulq.Epsilon(1))
    monkeypatch.setattr(Emitter, "units", lambda *_: (Piece("(2 * c0)"), True))
    with pytest.raises(sulq.errors.QuestionError, match="uncertified"):
        db.sum("age", spend=sulq.Epsilon(0.5), fresh=True)  # at a price whose certificate is not remembered
    assert db.remaining == sulq.Epsilon(2)
    db.close()
    opened.close()


def test_an_owners_function_sees_the_rows_that_duckdb_gives_it_S4_27(tmp_path: Path) -> None:
    """Exact numbers of a stated function and of a distance, and a choice, by certified listings; missing cells too."""
    told = {"columns": {"age": Int(0, 40)}, "unit": declared.UNIT, "budget": sulq.Epsilon(900), "synthetic": True}
    with sulq.connect(table(), **told, estimators=declared.OWN) as db:
        expected = declared.asked(db)
    with sulq.connect(at(filled()), table="data", **told, estimators=declared.OWN, ledger=tmp_path / "l.ledger") as db:
        assert db.facts.certified
        assert declared.asked(db) == expected
    assert expected[0][1] > 0


def test_what_cannot_be_opened_is_refused():
    """Two databases, a frame beside a database, another engine, a place for the copy, and what was closed."""
    name = filled()
    schema = Schema.of("other", {"age": Int(0, 120)})

    def several(*urls: object) -> Dataset:
        facts = [TableFacts(Schema.of(f"t{i}", {"age": Int(0, 120)})) for i in range(len(urls))]
        given = [Given(Origin.of(url), fact) for url, fact in zip(urls, facts, strict=True)]
        return Dataset(tuple(given), Unit(), KEY)

    with pytest.raises(SetupError, match="one PostgreSQL database"):
        PostgresEngine(several(at(name), at(name, user="another")))
    for data, more in (
        (at(name), {"engine": "memory"}),
        (table(), {"engine": "postgres"}),
    ):
        with pytest.raises(SetupError, match="engine-not-available"):
            open_engine(data, schema=schema, unit=Unit(), key=KEY, **more)
    for prepared in (False, "copy.prepared"):
        with pytest.raises(SetupError, match="bad-declaration"):
            open_engine(at(name), schema=schema, unit=Unit(), key=KEY, prepared=prepared)
    opened = engine(at(name))
    opened.close()
    with pytest.raises(AccessDenied, match="closed"):
        opened.ready()


@pytest.mark.parametrize("neighbors", ["zero_out", "replace_one"])
def test_units_whose_places_are_public_are_refused_SR11(neighbors: str) -> None:
    """One row replaced moves others in a table of PostgreSQL; control: with a person no place is spoken of."""
    name = filled(pa.table({"who": ["a", "b", "c"], "age": [1, 2, 3]}))
    in_order = f"SELECT who FROM {name}"
    assert server().do(in_order) == [("a",), ("b",), ("c",)]
    server().do(f"UPDATE {name} SET age = 9 WHERE who = 'a'")
    assert server().do(in_order) == [("b",), ("c",), ("a",)]  # why: one row was replaced, and each has another place
    with pytest.raises(SetupError, match="no places"):
        engine(at(name), Unit(neighbors=neighbors))
    if neighbors == "replace_one":
        engine(at(name), Unit("who", neighbors=neighbors), Schema.of("data", {"age": Int(0, 9)})).ready()


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pip line."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SetupError, match="missing-extra") as refused:
        open_engine(address(table="t"), schema=SCHEMA, unit=Unit(), key=KEY)
    assert "pip install 'sulq[postgres]'" in str(refused.value)


def test_questions_are_asked_side_by_side():
    """Threads have each their own cursor, and all the same integers."""
    opened = engine(at(filled()), Unit("who", 2))
    wanted = sums(plain_engine(table(), Unit("who", 2)))
    found: list[list[list[list[int]]]] = []

    def work() -> None:
        found.append([opened.sums(tally).open().tolist() for tally in ASKED])

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 6
    opened.close()
