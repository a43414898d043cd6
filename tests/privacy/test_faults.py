"""Errors, logs and leftovers: no fault of a row changes what happens, no text carries a cell."""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import math
import os
import traceback
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq import (
    Bool,
    Category,
    Date,
    Epsilon,
    Int,
    Real,
    Sums,
    Text,
    Timestamp,
    Unit,
    bins,
    case,
    col,
    each,
    lit,
    vector,
)
from sulq.compile.plan import draw
from sulq.curator.run import Rows
from sulq.errors import CuratorError, QuestionError, SulqError
from sulq.kernel.private import Private
from sulq.language.facts import Facts
from sulq.language.rowfn import Dot, Lookup, Nearest, Outer, Route, RowFn, Scaled, WithinBall
from sulq.testing.neighbours import SPECIAL, Row
from sulq.testing.replay import differences
from tests.privacy.cases import ENGINES, asking, engine, facts_of, opened, people, run

BAD = [
    {},
    {"gain": 0.0, "age": 0, "debt": math.nan, "score": math.inf},
    {"gain": -math.inf, "age": 2**63 - 1, "score": 1e308, "debt": -1e308},
    {"gain": 5e-324, "age": -(2**63), "score": -0.0, "debt": math.inf},
    {"gain": math.nan, "age": None, "score": None, "debt": None, "city": None, "day": None, "moment": None},
    {"city": "Jaffa", "code": 10**12, "note": "x" * 5000, "day": SPECIAL[Date][1], "moment": SPECIAL[Timestamp][1]},
    {"day": SPECIAL[Date][2], "moment": SPECIAL[Timestamp][2], "note": "\x01\u202e'\"\\", "gain": 200.0},
]


def fault_expressions() -> list[object]:
    """At least 200 expressions in which some row divides by zero, overflows, casts badly or leaves a range."""
    numbers = [col("gain"), col("age"), col("debt"), col("score"), col("gain") - col("gain"), col("age") * 2**50]
    found: list[object] = []
    for a, b in itertools.product(numbers, repeat=2):
        found += [(a / b).clip(-1, 1), (a / (b - b)).clip(0, 5), (a * b * a).clip(-9, 9), (a / b > 2) * 1]
    for a in numbers:
        big = a
        for _ in range(3):
            big = big * 1e50 * a
        found += [
            big.clip(-1, 1), (1 / (a - 3)).clip(-2, 2), (big / big).clip(0, 1), (big - big).clip(0, 1), a.fill(7),
            case((1 / a > 0, (1 / a).clip(0, 9)), otherwise=0), case((a == a + 0, 1), otherwise=2), 1 * (a > 1 / a),
            Dot(vector([a.clip(-50, 200)]), (1e6,)), Dot(vector([(a / a).clip(0, 1)]), (3,)),
            each((a.clip(0, 9) + 2**53) - 2**53) == 1, bins((1 / a).clip(-5, 5), [-5, 0, 5]) == 1,
            (1 / a).clip(-1, 1).is_missing() * 1, ((a + 2**53) - 2**53).clip(-1, 300), (a / 1e-50).clip(-1, 1),
        ]  # fmt: skip
    found += [
        col("day").is_missing() * 1, (col("day") > "2020-02-29") * 1, (col("moment") < "2020-12-31T23:59:59") * 1,
        (col("note") == "'; DROP TABLE data; --") * 1, (col("city") != "Lod") * 1, col("code").isin([1, 2, 5]) * 1,
        Lookup((col("city"), col("code")), tuple((i,) for i in range(9))),
        col("flag") * col("gain"), (~col("flag")) * 1, col("flag").fill(True) * 1,
    ]  # fmt: skip
    return found


VECTORS = [
    vector([(col("gain") / col("debt")).clip(-3, 3), col("score")]),
    WithinBall(vector([col("gain"), col("age")]), 5),
    Outer(WithinBall(vector([col("gain"), (1 / col("age")).clip(0, 1)]), 2)),
    Scaled(WithinBall(vector([col("gain"), col("debt")]), 3), (col("age") / col("score")).clip(-1, 1)),
]
KEYS = [
    bins((1 / col("gain")).clip(-1, 1), [-1, 0, 1]),
    each((col("age") + 2**53) - 2**53),
    Nearest(vector([(col("gain") / col("age")).clip(0, 9), col("debt")]), ((0, 0), (5, -5))),
    Route((bins((1 / col("gain")).clip(-1, 1), [-1, 0, 1]), col("city")), ((0, 1, -1), (1, -2, None, -1))),
]


@pytest.mark.parametrize("kind", ENGINES)
def test_no_fault_of_a_row_changes_the_outcome_T30(kind: str) -> None:
    """Over 200 faulty expressions, with a person of rows of every bad kind present or absent: equal outcomes (T30).

    Bar: identical class and bytes; 0 engine errors. Control: an engine that raises on a cell (test_replay).
    """
    base = people("HLY")
    facts = facts_of(Unit("pid", rows=len(BAD)), Epsilon(100))
    scalars = [fn for fn in fault_expressions() if _planned(fn, facts)]
    assert len(scalars) >= 200
    asked = [Sums(tuple(scalars[i : i + 25])) for i in range(0, len(scalars), 25)]
    asked += [Sums((col("gain"), *VECTORS), None, (key,)) for key in KEYS]
    asked += [Sums((lit(1),), fn > 0) for fn in scalars[::25]]
    programs = [asking(question, Epsilon(1)) for question in asked]
    unit = Unit("pid", rows=len(BAD))
    bad = [people("H", **(cells | {"pid": "bad"}))[0] for cells in BAD]
    with engine(kind, base, unit) as source:
        first = run(source, programs, unit, Epsilon(100))
    assert not any("Error" in outcome.split()[0] for outcome in first.outcomes)
    with engine(kind, base + bad, unit) as source:
        assert differences(first, run(source, programs, unit, Epsilon(100), earlier=first)) == []


def _planned(fn: RowFn, facts: Facts) -> bool:
    """Whether a plan takes the expression; what it refuses it refuses for every row alike."""
    try:
        draw(Sums((fn,)), facts, Epsilon(1))
    except QuestionError:
        return False
    return True


class Cell(Exception):
    """An engine's own error, with a cell in it."""


class Leaky:
    """An engine whose errors print a row."""

    def ready(self) -> None:
        """Nothing to do."""

    def sums(self, tally: object) -> Private:
        raise Cell("Could not convert string 'CANARY-7f3' to INT32") from ValueError("CANARY-7f3")

    def close(self) -> None:
        """Nothing to do."""


def everything_in(error: BaseException) -> str:
    """All texts an error leads to: its own, its cause's, its context's, and the printed traceback."""
    texts, front, seen = [], [error], set()
    while front:
        one = front.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        texts += [str(one), repr(one), *map(str, getattr(one, "__notes__", []))]
        front += [one.__cause__, one.__context__]
    texts.append("".join(traceback.format_exception(error)))
    return "\n".join(texts)


def test_an_engine_error_leaves_no_trace_but_its_code_T31_S0_1(caplog: pytest.LogCaptureFixture) -> None:
    """The analyst gets one constant error that leads to no other; the log names the kind of failure only (T31, S0.1).

    Control: the same engine called directly shows the cell.
    """
    caplog.set_level(logging.DEBUG, "sulq")
    with opened(pa.table({"x": [1]}), columns={"x": Int(0, 1)}) as db:
        db._oracle.curator._rows = Rows(Leaky(), db._ledger.redeem)
        with pytest.raises(CuratorError) as caught:
            db.count(spend=Epsilon(1))
        assert caught.value.code == "engine-failed"
        assert caught.value.__context__ is None
        assert db.spent == Epsilon(1)
    assert "CANARY" not in everything_in(caught.value)
    assert "CANARY" not in caplog.text
    assert "Cell" in caplog.text
    with pytest.raises(Cell) as direct:
        Leaky().sums(None)
    assert "CANARY" in everything_in(direct.value)


CANARY = "CANARY-7f3"
NUMBER = 918_273_645  # a number no bound or label contains
MESS = {
    "age": ["12", CANARY, str(NUMBER), "", "0x10", "1e400"],
    "gain": ["1.5", CANARY, f"{NUMBER}.5", "nan", "inf", "--"],
    "city": ["Lod", CANARY, "", "Lod", "\ufeffLod", CANARY],
    "day": ["2020-02-30", CANARY, "9999-99-99", "2020-05-05", "", "5/5/2020"],
    "moment": ["2020-05-05T25:61:61", CANARY, "", "2020-05-05 10:00:00", "now", "12"],
    "flag": ["yes", CANARY, "true", "2", "", "TRUE"],
    "note": [CANARY, CANARY, "a,b", 'say "hi"', "", "x"],
    "pid": [CANARY, CANARY, f"{NUMBER}", "a", "", "b"],
}
DECLARED = {
    "age": Int(0, 100), "gain": Real(-50, 200), "city": Category(("Haifa", "Lod")), "flag": Bool(), "note": Text(),
    "day": Date("2020-01-01", "2020-12-31"), "moment": Timestamp("2020-01-01T00:00:00", "2021-01-01T00:00:00"),
}  # fmt: skip


def messy(folder: Path, suffix: str) -> Path:
    """A file whose cells are mostly wrong, with canaries in all of them."""
    path = folder / f"mess{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.table(MESS), path)
        return path
    quoted = [
        [f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in cells] for cells in zip(*MESS.values(), strict=True)
    ]
    path.write_text("\n".join([",".join(MESS), *map(",".join, quoted)]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_no_cell_appears_in_answers_errors_logs_or_the_ledger_T31(
    kind: str, suffix: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Canaries in bad cells of every kind: none in what is returned, raised, printed, logged or kept (T31, T88).

    Bar: 0 hits; the prepared copy, which is as private as the data, excepted. Control: the scan finds them in the data.
    """
    caplog.set_level(logging.DEBUG)
    path = messy(tmp_path, suffix)
    seen = io.StringIO()
    options = {"columns": DECLARED, "unit": Unit("pid", rows=2), "budget": Epsilon(100), "engine": kind}
    with sulq.connect(path, **options) as db:
        for ask in (
            lambda: db.count(spend=Epsilon(1)),
            lambda: db.mean("age", by="city", spend=Epsilon(1)),
            lambda: db.sum("gain", where=col("day") > "2020-02-01", spend=Epsilon(1)),
            lambda: db.count((col("moment") < "2020-06-01T00:00:00") | col("flag"), spend=Epsilon(1)),
            lambda: db.count(col("note") == "x", spend=Epsilon(1)),
            lambda: db.covariance(["age", "gain"], spend=Epsilon(1)),
            lambda: db.count(by=["city", "flag"], spend=Epsilon(1)),
            lambda: db.count(by="note", spend=Epsilon(1)),
            lambda: db.sum("note", spend=Epsilon(1)),
            lambda: db.count(col("pid") == "a", spend=Epsilon(1)),
            lambda: db.count(col("city") == "Akko", spend=Epsilon(1)),
            lambda: db.sum("age", spend=Epsilon(1000)),
        ):
            try:
                answer = ask()
                print(answer, answer.value, answer.to_dict(), answer._repr_html_(), answer.receipt, file=seen)
            except SulqError as error:
                print(everything_in(error), file=seen)
        print(db, db.facts, db.transcript(), db.verify(), vars(db), db[["age"]], file=seen)
        with contextlib.suppress(Exception):
            print(db._oracle, db._engine, vars(db._engine).keys(), file=seen)
    output = capfd.readouterr()
    kept = (tmp_path / "mess.ledger").read_bytes()
    texts = {
        "seen": seen.getvalue(),
        "out": output.out,
        "err": output.err,
        "log": caplog.text,
        "ledger": kept.decode("latin-1"),
    }
    for where, text in texts.items():
        assert CANARY not in text, where
        assert str(NUMBER) not in text, where
    assert "TextIO" not in seen.getvalue()
    assert CANARY.encode() in path.read_bytes()
    leftovers = [p for p in tmp_path.rglob("*") if p.is_file() and CANARY.encode() in p.read_bytes()]
    assert {p.suffix for p in leftovers} <= {suffix, ".prepared"}


@pytest.mark.parametrize("kind", ENGINES)
def test_one_question_leaves_nothing_for_the_next_T38(kind: str) -> None:
    """Asking first, failing first or asking something else first changes no later bytes (T38)."""
    rows: list[Row] = people("HLY")
    last = asking(Sums((col("gain"),), None, (col("city"),)), Epsilon(1))
    before = [
        [],
        [asking(Sums((col("age"),), col("city") == "Lod", (each(col("flag")),)), Epsilon(1))],
        [asking(Sums((col("nothing"),)), Epsilon(1)), asking(Sums((col("note"),)), Epsilon(1))],
        [asking(Sums((Outer(vector([col("gain"), col("age")])),)), Epsilon(1)), last, last],
    ]
    given = set()
    with engine(kind, rows, Unit()) as source:
        for programs in before:
            found = run(source, [*programs, last], Unit(), Epsilon(10))
            given.add((found.calls[-1].given.tobytes(), found.calls[-1].law, found.entries[-1].question))
    assert len(given) == 1


@pytest.mark.parametrize("kind", ENGINES)
def test_the_data_is_opened_for_reading_alone_T38(kind: str, tmp_path: Path) -> None:
    """Asking leaves the source file as it was and writes nothing but the ledger and the prepared copy (T38, T90)."""
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"x": [1, 2, 3]}), path)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    old = os.umask(0o022)
    try:
        with sulq.connect(path, columns={"x": Int(0, 9)}, budget=Epsilon(9), engine=kind) as db:
            db.sum("x", spend=Epsilon(1))
    finally:
        os.umask(old)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    others = {p.name: p.stat().st_mode & 0o077 for p in tmp_path.iterdir() if p != path}
    assert set(others) <= {"people.ledger", "people.prepared", "people.ledger-journal"}
    assert others.get("people.prepared", 0) == 0
    assert others["people.ledger"] == 0
