"""The PostgreSQL engine: no fault of a row or of the connection gets out, and nothing it says (T30, T31)."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import sulq
from sulq.curator.engines import open_engine, postgres_question
from sulq.curator.engines.source import Origin
from sulq.curator.engines.tables import Dataset, Given
from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.terms.domain import Int, Schema
from sulq.terms.engine import Tally
from sulq.terms.facts import TableFacts
from sulq.terms.privacy import Unit
from sulq.terms.relation import Table, Where
from sulq.terms.rowfn import col, lit
from tests.curator.engines.cases import ASKED, CANARY, KEY, SCHEMA, ask, memory, sums, table
from tests.curator.engines.postgres_cases import PostgresEngine, at, copies, engine, filled
from tests.curator.engines.test_duckdb import FAULTY, WORST, faults, questions
from tests.loaded import address, loaded
from tests.postgres import server

KINDS = {
    "x": pa.float64(), "n": pa.int64(), "z": pa.int64(), "c": pa.string(), "d": pa.date32(), "t": pa.string(),
    "w": pa.string(),
}  # fmt: skip


def test_T30_no_expression_fails_because_of_a_row(caplog: pytest.LogCaptureFixture) -> None:
    """More than 200 faulty expressions, with the worst rows there and not: integers, and PostgreSQL never raises."""
    worst = WORST | {"w": [CANARY, "", None, "\\", "'"]}
    there = pa.table({name: pa.array(cells, KINDS[name]) for name, cells in worst.items()})
    engines = [engine(loaded(data), schema=FAULTY) for data in (there, there.slice(0, 0), there.slice(1, 2))]
    oracle = memory(there, schema=FAULTY)
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
def test_T30_T31_an_error_of_the_database_is_no_outcome(
    what: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A statement that fails after all is worked out by hand; none of the error's text is heard of."""

    def failing(*_: object) -> object:
        raise psycopg.DataError(f"invalid input syntax: {CANARY}")

    opened = engine(at(filled()), Unit("who", 2))
    oracle = memory(table(), Unit("who", 2))
    monkeypatch.setattr(postgres_question.PostgresQuestion, "few", failing)
    monkeypatch.setattr(postgres_question.PostgresQuestion, "fold", failing)
    with caplog.at_level(logging.DEBUG):
        for tally in ASKED:
            assert answers(opened, what, tally) == answers(oracle, what, tally)
    assert CANARY not in caplog.text
    opened.close()


def answers(opened: object, what: str, tally: Tally) -> object:
    """What an engine answers, as plain values."""
    if what == "groups":
        found = opened.groups(tally).open()
        return found.keys, found.sums.tolist(), found.persons.tolist()
    if what == "listed":
        number = ask(col("age"))
        return sorted(opened.listed(Tally(number.over, number.blocks, tally.where, (), 1)).open().tolist())
    if what == "sums":
        return opened.sums(tally).open().tolist()
    return [found.open().tolist() for found in sulq.terms.engine.sums_of(opened, [tally, tally, ask(lit(1))])]


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
    assert opened.sums(ASKED[0]).open().tolist() == before  # and in the middle of one it is asked again
    opened.close()


def test_T31_a_connection_lost_in_a_question_is_charged_and_the_next_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One outcome without a word of the server's; nothing is given back, and the next question is answered."""
    name = filled()
    db = sulq.connect(
        at(name), table="data", columns={"age": sulq.Int(0, 120)}, budget=sulq.Epsilon(3), ledger=tmp_path / "l.ledger"
    )
    db.prepare()
    genuine = postgres_question.PostgresQuestion.few

    def lost(*_: object) -> object:
        raise psycopg.OperationalError(f"server closed the connection: {CANARY}")

    with caplog.at_level(logging.DEBUG), monkeypatch.context() as patch:
        patch.setattr(postgres_question.PostgresQuestion, "few", lost)
        patch.setattr(postgres_question.PostgresQuestion, "by_hand", lost)
        with pytest.raises(CuratorError, match="engine-failed") as failed:
            db.count(spend=sulq.Epsilon(1))
    assert CANARY not in f"{failed.value} {failed.value.__context__} {failed.value.__cause__} {caplog.text}"
    assert db.remaining == sulq.Epsilon(2)
    assert postgres_question.PostgresQuestion.few is genuine
    assert isinstance(db.count(spend=sulq.Epsilon(1)).value, int)
    assert db.remaining == sulq.Epsilon(1)
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


@pytest.mark.by_hand
def test_a_copy_taken_anew_elsewhere_stops_who_has_the_old_one():
    """Before the debit; and a question that is already under way never meets the new rows."""
    name = filled()
    old = engine(at(name))
    old.ready()
    engine(at(name), renew=True).ready()
    with pytest.raises(SetupError, match="source-changed"):
        old.ready()
    with pytest.raises(CuratorError, match="engine-failed"):
        old.sums(ASKED[0])
    old.close()
    (schema,) = copies(name)
    last = engine(at(name))
    last.ready()
    server().do(f"DROP SCHEMA {schema} CASCADE")
    with pytest.raises(SetupError, match="source-changed"):
        last.ready()


def test_derived_rows_are_worked_out_in_memory():
    """A relation that is no table has the integers of the reference."""
    over = Where(Table("data"), col("age") > 40)
    tallies = [Tally(over, tally.blocks, tally.where, tally.by, tally.cells) for tally in ASKED]
    assert sums(engine(at(filled())), *tallies) == sums(memory(table()), *tallies)


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
def test_SR11_units_whose_places_are_public_are_refused(neighbors: str) -> None:
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
    """Threads have each their own session, and all the same integers."""
    opened = engine(at(filled()), Unit("who", 2))
    wanted = sums(memory(table(), Unit("who", 2)))
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
