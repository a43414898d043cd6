"""The DuckDB engine: the same integers by SQL and by batches, and no fault or text of a row gets out (T30, T31)."""

from __future__ import annotations

import datetime
import functools
import itertools
import logging
import math
from dataclasses import replace

import pyarrow as pa
import pytest

from sulq.compile.emit.emitter import Emitter
from sulq.compile.statements.proposer import Proposer
from sulq.errors import AccessDenied, CuratorError, QuestionError
from sulq.kernel.programs import Program
from sulq.language.domain import Category, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.privacy import Unit
from sulq.language.relation import Table, Where
from sulq.language.rowfn import (
    Bins,
    Case,
    Clip,
    Col,
    Fill,
    IsIn,
    Lit,
    RowFn,
    bucket,
    col,
    lit,
    outer,
    vector,
)
from sulq.language.tally import Key
from sulq.sources.duckdb import engine as module
from sulq.sources.duckdb import question as questions_module
from tests.certified import certified, certified_groups
from tests.sources.cases import ASKED, CANARY, ask, duck, memory, table

FAULTY = Schema.of(
    "data",
    {
        "x": Real(-1e30, 1e30),
        "n": Int(-(2**53), 2**53),
        "z": Int(0, 0),
        "c": Category(("a", "b")),
        "d": Date("0001-01-01", "9999-12-31"),
        "t": Timestamp("1700-01-01T00:00", "2250-01-01T00:00"),
        "w": Text(),
    },
)


def faults() -> list[RowFn]:
    """Expressions that would divide by zero, overflow, leave a table or a calendar, on some row."""
    x, n, z = col("x"), col("n"), col("z")
    zeros = [z, x - x, n - n, z * x, x * 0, n * z, (x > 0) * 0, Fill(z / z, 0), z - z, n * 0 - z, -z]
    divided = [1 / zero for zero in zeros] + [x / zero for zero in zeros] + [zero / zero for zero in zeros]
    divided += [(1 / zero) / (1 / zero) for zero in zeros] + [1 / (1 / zero) for zero in zeros]
    large: list[RowFn] = [x, n]
    for _ in range(14):
        large.append(large[-1] * large[len(large) % 2])
    large += [x * 1e60 * 1e60 * 1e60 * 1e60 * 1e60 * 1e60, n * n * n * n * 1e60 * 1e60 * 1e60 * 1e60 * 1e60]
    moments = [
        col("d") * col("d"),
        col("t") * col("t") * col("t"),
        col("d") / z,
        col("t") - col("d"),
        1 / (col("d") - col("d")),
    ]
    mixed = [Case(((x > n, a),), b) for a, b in itertools.pairwise(divided + large)]
    filled = [Fill(fn, 1e60) for fn in divided + large]
    return divided + large + moments + mixed + filled


def questions(fns: list[RowFn]) -> list[object]:
    """Ways to ask about numbers that may be anything, several at once: one that fails would fail them all."""
    bounded = [Clip(fn, -5, 5) for fn in fns]
    held = [Case((((fn > 0) | IsIn(fn, (1, 2)), Lit(1)),), Lit(0)) for fn in fns]
    return [
        ask(*bounded, *held, schema=FAULTY),
        ask(vector(bounded), where=fns[0] != fns[-1], schema=FAULTY),
        ask(lit(1), by=(Bins(fns[0], (-1.0, 0.0, 1e60)),), schema=FAULTY),
    ]


WORST = {
    "x": [math.inf, math.nan, -0.0, 5e-324, 1e308],
    "n": [2**63 - 1, -(2**63), 0, None, 1],
    "z": [0, 1, None, 0, 0],
    "c": ["a", CANARY, None, "b", "a"],
    "d": [datetime.date.max, datetime.date.min, None, datetime.date(1970, 1, 1), datetime.date(2020, 2, 29)],
    "t": ["9999-12-31T23:59:59.999999", "0001-01-01", CANARY, "2020-02-30", None],
    "w": [CANARY, "", None, "\x00", "'"],
}


@pytest.mark.parametrize("prepared", [None, False])
def test_T30_no_expression_fails_because_of_a_row(prepared: object) -> None:
    """More than 200 faulty expressions, with the worst rows there and not there: always integers, never an error."""
    kinds = {
        "x": pa.float64(),
        "n": pa.int64(),
        "z": pa.int64(),
        "c": pa.string(),
        "d": pa.date32(),
        "t": pa.string(),
        "w": pa.string(),
    }
    there = pa.table({name: pa.array(cells, kinds[name]) for name, cells in WORST.items()})
    engines = [duck(data, schema=FAULTY, prepared=prepared) for data in (there, there.slice(0, 0), there.slice(1, 2))]
    oracle = memory(there, schema=FAULTY)
    expressions = faults()
    assert len(expressions) >= 200
    for start in range(0, len(expressions), 12):
        for tally in questions(expressions[start : start + 12]):
            try:
                found = [engine.sums(tally).open().tolist() for engine in engines]
            except CuratorError:
                pytest.fail(f"an engine error on {[block.fn for block in tally.blocks]}")
            assert found[0] == oracle.sums(tally).open().tolist()
            assert not any(map(any, found[1]))
    for engine in engines:
        engine.close()


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
def test_T30_an_error_of_the_engine_is_not_an_outcome(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where SQL without a certificate fails because of a row, the reference meaning answers; the log has its kind."""
    engine = broken(False, monkeypatch)
    plain = memory(ROWS, Unit("who", 3))
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
def test_T31_a_failure_has_a_code_and_no_text(
    prepared: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where certified text fails, or rows cannot even be fetched, the error that may name a cell becomes a constant."""
    engine = broken(prepared, monkeypatch)

    def fails(cursor: object, *_: object, **__: object) -> None:
        cursor.execute(f"SELECT CAST('{CANARY}' AS INTEGER)").fetchall()

    if prepared is False:
        monkeypatch.setattr(module, "fetched", fails)
    for asked in (lambda: engine.sums(ask(col("age"))), lambda: engine.sums_of([ask(col("age")), ask(lit(1))])):
        with caplog.at_level(logging.DEBUG), pytest.raises(CuratorError) as failed:
            asked()
        assert failed.value.code == "engine-failed"
        assert failed.value.__context__ is failed.value.__cause__ is None
        assert CANARY not in caplog.text + str(failed.value)
    assert ("by hand" in caplog.text) is (prepared is False)  # what was certified is run, or nothing
    assert "Exception" in caplog.text
    engine.close()


def test_T31_duckdb_by_itself_names_the_cell() -> None:
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
    whole, certified = questions_module.fold_all, questions_module.matrix.fold

    def counted(tallies: object, *rest: object, **more: object) -> object:
        passes.append(len(tallies))
        return whole(tallies, *rest, **more)

    def run(program: Program, *rest: object, **more: object) -> object:
        passes.append(sum(each.kind == "products" for each in program.sums))
        return certified(program, *rest, **more)

    monkeypatch.setattr(questions_module, "fold_all", counted)
    monkeypatch.setattr(questions_module.matrix, "fold", run)
    tallies = [
        ask(col("age"), outer(["age", "pay"]), where=col("pay") > 2),
        ask(lit(1), by=(col("city"),)),
        ask(outer(["pay"]), lit(1), by=(col("city"),)),
        replace(ask(outer(["age"])), over=Where(Table(), col("age") > 20)),
    ]
    engine, plain = duck(ROWS, Unit("who", 3), prepared=prepared), memory(ROWS, Unit("who", 3))
    found = [sums.open().tolist() for sums in engine.sums_of(tallies)]
    assert found == [plain.sums(tally).open().tolist() for tally in tallies]
    assert sorted(passes) == [1, 2]
    assert engine.sums_of([]) == ()
    engine.close()


@pytest.mark.by_hand
def test_T30_an_error_in_a_shared_pass_is_not_an_outcome(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the one pass without a certificate fails because of a row each tally is asked alone, and then by hand."""
    engine, plain = broken(False, monkeypatch), memory(ROWS, Unit("who", 3))
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
        real = getattr(questions_module.Question, name)

        def noted(self: object, asked: object, *, real: object = real) -> object:
            ran.append(asked.scan.sql)
            return real(self, asked)

        monkeypatch.setattr(questions_module.Question, name, noted)
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
    monkeypatch.setattr(module, "fetched", lambda *_, **__: pytest.fail("rows were read by hand"))
    for asked in asks:
        ran.clear()
        with caplog.at_level(logging.DEBUG), pytest.raises(CuratorError) as failed:
            asked(engine)
        assert failed.value.code == "engine-failed"
        assert failed.value.__context__ is failed.value.__cause__ is None
        assert len(ran) == 1
    assert CANARY not in caplog.text
    engine.close()


def test_a_closed_engine_answers_nothing() -> None:
    """After close there are no rows and no connection."""
    engine = duck(table())
    engine.ready()
    engine.close()
    engine.close()
    with pytest.raises(AccessDenied) as refused:
        engine.sums(ASKED[0])
    assert refused.value.code == "closed"


def test_a_question_the_plan_would_refuse_is_refused_here_too() -> None:
    """An undeclared category as a literal has no code (SR21)."""
    with pytest.raises(QuestionError):
        ask(Lit(1), where=Col("city") == CANARY).where.kind(FAULTY)


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
