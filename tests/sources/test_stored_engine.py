"""What engines share: tallies in one pass, errors that are no outcome, and only certified text (T30, T31)."""

from __future__ import annotations

import functools
import logging
from dataclasses import replace

import pytest

from sulq.compile.statements.emitter import Emitter
from sulq.compile.statements.proposer import Proposer
from sulq.errors import CuratorError
from sulq.kernel.programs import Program
from sulq.language.privacy import Unit
from sulq.language.relation import Table, Where
from sulq.language.rowfn import (
    bucket,
    col,
    lit,
    outer,
)
from sulq.language.tally import Key
from sulq.sources import stored_engine
from sulq.sources.duckdb import engine as module
from sulq.sources.duckdb import runner as runner_module
from tests.certified import certified, certified_groups
from tests.sources.cases import CANARY, ask, duck, plain_engine, table

ROWS = table([("ann", 40, 10.0, "x", CANARY), ("bob", 7, 1.0, "y", "1"), ("bob", 8, 9.0, "y", None)])


def broken(prepared: object, monkeypatch: pytest.MonkeyPatch) -> module.DuckEngine:
    """An engine whose SQL fails at the first row, with a text."""
    engine = duck(ROWS, Unit("who", 3), prepared=prepared)
    engine.ready()
    whole = Emitter.relation
    failing = f"(CAST(CASE WHEN random() >= 0 THEN '{CANARY}' END AS INTEGER) > 0)"
    monkeypatch.setattr(Emitter, "relation", lambda self: f"(SELECT * FROM {whole(self)} WHERE {failing})")
    return engine


@pytest.mark.by_hand
def test_an_error_of_the_engine_is_not_an_outcome_T30(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where SQL without a certificate fails because of a row, the reference meaning answers; the log has its kind."""
    engine = broken(False, monkeypatch)
    plain = plain_engine(ROWS, Unit("who", 3))
    asked = (col("age"), lit(1), col("pay"), outer(["age", "pay"]))
    tallies = [ask(*asked), ask(*asked, where=bucket(2) == 1), ask(*asked, by=(col("city"),))]
    tallies.append(replace(tallies[0], over=Where(Table(), col("age") > 20)))
    with caplog.at_level(logging.DEBUG):
        for tally in tallies:
            assert engine.sums(tally).open().tolist() == plain.sums(tally).open().tolist()
        groups = replace(tallies[0], by=(Key(col("note"), ()),), where=bucket(3) >= 0)
        found, wanted = engine.groups(groups).open(), plain.groups(groups).open()
    assert (found.keys, found.sums.tolist()) == (wanted.keys, wanted.sums.tolist())
    assert found.persons.tolist() == wanted.persons.tolist()
    assert "ConversionException" in caplog.text
    assert CANARY not in caplog.text
    engine.close()


@pytest.mark.by_hand
@pytest.mark.parametrize("prepared", [None, False])
def test_a_failure_has_a_code_and_no_text_T31(
    prepared: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where certified text fails, or rows cannot even be fetched, the error that may name a cell becomes a constant."""
    engine = broken(prepared, monkeypatch)

    def fails(cursor: object, *_: object, **__: object) -> None:
        cursor.execute(f"SELECT CAST('{CANARY}' AS INTEGER)").fetchall()

    if prepared is False:
        monkeypatch.setattr(stored_engine, "fetch", fails)
    for asked in (lambda: engine.sums(ask(col("age"))), lambda: engine.sums_of([ask(col("age")), ask(lit(1))])):
        with caplog.at_level(logging.DEBUG), pytest.raises(CuratorError) as failed:
            asked()
        assert failed.value.code == "engine-failed"
        assert failed.value.__context__ is failed.value.__cause__ is None
        assert CANARY not in caplog.text + str(failed.value)
    assert ("by hand" in caplog.text) is (prepared is False)  # what was certified is run, or nothing
    assert "Exception" in caplog.text
    engine.close()


def test_duckdb_by_itself_names_the_cell_T31() -> None:
    """Control: the error behind that constant does hold the cell's text."""
    engine = duck(table([("ann", 40, 10.0, "x", CANARY)]))
    engine.ready()
    with pytest.raises(module.duckdb.Error, match=CANARY):
        engine._connection.cursor().execute("SELECT CAST(c3 AS INTEGER) FROM kept").fetchall()
    engine.close()


@pytest.mark.parametrize("prepared", [None, False])
def test_several_tallies_take_one_pass(prepared: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked together, tallies over the same rows are folded once; each has the sums it has alone, in its place."""
    passes = []
    certified = runner_module.matrix.fold

    def run(program: Program, *rest: object, **more: object) -> object:
        passes.append(sum(each.kind == "products" for each in program.sums))
        return certified(program, *rest, **more)

    monkeypatch.setattr(runner_module.matrix, "fold", run)
    tallies = [
        ask(col("age"), outer(["age", "pay"]), where=col("pay") > 2),
        ask(lit(1), by=(col("city"),)),
        ask(outer(["pay"]), lit(1), by=(col("city"),)),
        replace(ask(outer(["age"])), over=Where(Table(), col("age") > 20)),
    ]
    engine, plain = duck(ROWS, Unit("who", 3), prepared=prepared), plain_engine(ROWS, Unit("who", 3))
    found = [sums.open().tolist() for sums in engine.sums_of(tallies)]
    assert found == [plain.sums(tally).open().tolist() for tally in tallies]
    assert sorted(passes) == [1, 2]
    assert engine.sums_of([]) == ()
    engine.close()


@pytest.mark.by_hand
def test_an_error_in_a_shared_pass_is_not_an_outcome_T30(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the one pass without a certificate fails because of a row each tally is asked alone, and then by hand."""
    engine, plain = broken(False, monkeypatch), plain_engine(ROWS, Unit("who", 3))
    tallies = [ask(col("age")), ask(lit(1), by=(col("city"),))]
    with caplog.at_level(logging.DEBUG):
        found = [sums.open().tolist() for sums in engine.sums_of(tallies)]
    assert found == [plain.sums(tally).open().tolist() for tally in tallies]
    assert "asked again by hand, each alone: ConversionException" in caplog.text
    assert CANARY not in caplog.text
    engine.close()


@pytest.mark.by_hand
def test_of_a_prepared_copy_nothing_is_run_that_was_not_certified(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A certified statement that fails all the same is one constant error: no other text, and nothing by hand.

    Control: the same without the failure is answered, by the very statements that are certified.
    """
    ran: list[str] = []
    for name in ("_columns", "groups"):
        real = getattr(runner_module.CursorRunner, name)

        def noted(self: object, asked: object, *, real: object = real) -> object:
            ran.append(asked.scan.sql)
            return real(self, asked)

        monkeypatch.setattr(runner_module.CursorRunner, name, noted)
    tallies = [ask(col("age")), ask(lit(1), by=(col("city"),))]
    groups = replace(tallies[0], by=(Key(col("note"), ()),))
    asks = (lambda e: e.sums(tallies[0]), lambda e: e.sums_of(tallies), lambda e: e.groups(groups))
    whole = duck(ROWS, Unit("who", 3), prepared=None)
    for asked in asks:
        asked(whole)
    proposals = [whole.propose(tallies[0]), whole.propose(*tallies)]
    texts = [statement.scan.sql for proposal in proposals for statement in proposal.statements]
    assert ran[:-1] == texts
    whole.close()
    engine = broken(None, monkeypatch)
    monkeypatch.setattr(stored_engine, "fetch", lambda *_, **__: pytest.fail("rows were read by hand"))
    for asked in asks:
        ran.clear()
        with caplog.at_level(logging.DEBUG), pytest.raises(CuratorError) as failed:
            asked(engine)
        assert failed.value.code == "engine-failed"
        assert failed.value.__context__ is failed.value.__cause__ is None
        assert len(ran) == 1
    assert CANARY not in caplog.text
    engine.close()


@pytest.mark.parametrize("asked", ["sums", "shared", "groups"])
def test_what_was_certified_is_what_runs(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is proposed once for an ask: a proposer that writes another text later has no say. Control: other objects."""
    engine = duck(ROWS, Unit("who", 3))
    tallies = [ask(col("age"), by=(col("city"),)), ask(lit(1), by=(col("city"),))][: 2 if asked == "shared" else 1]
    made = []

    def proposed(self: Proposer, *given: object, real: object, **more: object) -> object:
        made.append(given)
        return real(self, *given, **more)

    for name in ("propose", "groups"):
        monkeypatch.setattr(Proposer, name, functools.partialmethod(proposed, real=getattr(Proposer, name)))
    for several in (tallies, [replace(tally) for tally in tallies]):
        made.clear()
        if asked == "groups":
            certified_groups(engine, several[0])
            engine.groups(several[0])
        else:
            certified(engine, several)
            engine.sums_of(several)
        assert len(made) == 1
    engine.close()
