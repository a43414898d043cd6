"""The DuckDB engine: the same integers by SQL and by batches, and no fault or text of a row gets out (T30, T31)."""

from __future__ import annotations

import datetime
import itertools
import math

import pyarrow as pa
import pytest

from sulq.errors import AccessDenied, CuratorError, QuestionError
from sulq.language.domain import Category, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.privacy import Unit
from sulq.language.rowfn import (
    Bins,
    Case,
    Clip,
    Col,
    Fill,
    IsIn,
    Lit,
    RowFn,
    col,
    lit,
    vector,
)
from sulq.sources.duckdb import kept_rows
from tests.sources.cases import ASKED, CANARY, ask, duck, plain_engine, sums, table

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
def test_no_expression_fails_because_of_a_row_T30(prepared: object) -> None:
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
    oracle = plain_engine(there, schema=FAULTY)
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


UNITS = [Unit(), Unit("who", rows=1), Unit(neighbors="zero_out"), Unit(neighbors="replace_one")]


@pytest.mark.by_hand
@pytest.mark.parametrize("unit", UNITS)
def test_without_a_copy_a_question_binds_the_columns_that_it_names(
    unit: Unit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The same sums as from a copy, and where rows are kept by all cells all are looked at.

    Control: a view that lacks a column is noticed, and the question is answered by hand.
    """
    want, real = sums(duck(table(), unit)), kept_rows.select
    narrow, seen = unit.column is None and unit.neighbors != "zero_out", []
    for less in (set(), {"pay"}):

        def select(*given: object, only: set[str] | None = None, less: set[str] = less, **more: object) -> object:
            seen.append(only)
            return real(*given, only=None if only is None else only - less, **more)

        monkeypatch.setattr(kept_rows, "select", select)
        assert sums(duck(table(), unit, prepared=False)) == want
        assert ("by hand" in caplog.text) is bool(less and narrow)
    expected = [{"age", "pay"}, {"city", "pay"}, {"note"}] if narrow else []
    assert [only for only in seen if only is not None] == 2 * expected
