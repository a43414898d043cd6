"""Engines from the outside: files and frames alike, the prepared copy, the lock, the functions SQL may use."""

from __future__ import annotations

import gzip
import json
import random
import time
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import sulq
from sulq.curator.engines import open_engine, prepare
from sulq.curator.engines.connection import Connection
from sulq.curator.engines.duckdb import DuckEngine, Question
from sulq.curator.engines.emit import FUNCTIONS
from sulq.curator.engines.memory import MemoryEngine
from sulq.curator.engines.source import Origin
from sulq.errors import CuratorError, SetupError
from sulq.terms.domain import Bool, Category, Date, Int, Real, Schema
from sulq.terms.privacy import Unit
from sulq.terms.rowfn import col, lit
from tests import generate

KEY = b"k" * 32
SCHEMA = Schema.of(
    "people",
    {
        "age": Int(0, 120),
        "pay": Real(0, 1000),
        "city": Category(("a", "b")),
        "ok": Bool(),
        "day": Date("2020-01-01", "2020-12-31"),
    },
)
ROWS = pa.table(
    {
        "who": [1, 1, 2, 3, 3, 3, None, 4],
        "age": [30, 31, 200, -5, None, 40, 50, 60],
        "pay": [1.5, 2.25, 5000.0, -3.0, None, 7.0, 8.0, 9.0],
        "city": ["a", "b", "c", "a", None, "b", "a", "b"],
        "ok": [True, False, None, True, True, False, True, False],
        "day": pa.array(
            ["2020-02-03", "2019-01-01", None, "2021-01-01", "2020-05-05", "2020-06-06", "2020-07-07", "2020-08-08"]
        ).cast(pa.date32()),
    }
)
UNIT = Unit("who", rows=2)


def everything() -> object:
    """A tally that touches every column."""
    values = [lit(1), col("age"), col("pay"), col("ok"), col("day") >= "2020-03-01"]
    return generate.question(values, SCHEMA, by=[col("city")])


def summed(engine: object) -> list[list[int]]:
    engine.ready()
    found = engine.sums(everything()).open().tolist()
    engine.close()
    return found


def sources(folder: Path) -> dict[str, object]:
    """The same rows in every form connect takes."""
    pq.write_table(ROWS, folder / "p.parquet")
    pc.write_csv(ROWS, folder / "p.csv")
    with gzip.open(folder / "p2.csv.gz", "wb") as packed:
        packed.write((folder / "p.csv").read_bytes())
    with duckdb.connect(str(folder / "p.duckdb")) as con:
        con.register("t", ROWS)
        con.execute("CREATE TABLE people AS SELECT * FROM t")
    frames = {"arrow": ROWS, "pandas": ROWS.to_pandas(), "polars": pl.from_arrow(ROWS)}
    return frames | {name: folder / name for name in ("p.parquet", "p.csv", "p2.csv.gz", "p.duckdb")}


def test_every_source_gives_the_same_integers(tmp_path: Path) -> None:
    """Parquet, CSV as text, gzip, DuckDB files and frames agree to the bit, prepared or not, on both engines."""
    want = summed(MemoryEngine(Origin.of(ROWS), SCHEMA, UNIT, KEY))
    for name, data in sources(tmp_path).items():
        file = isinstance(data, Path)
        ways = [None, False, *([tmp_path / f"{name}.prepared"] if file else [])]
        for prepared in ways:
            engine = open_engine(
                data,
                schema=SCHEMA,
                unit=UNIT,
                key=KEY,
                prepared=prepared,
                table="people" if name == "p.duckdb" else None,
            )
            assert summed(engine) == want, (name, prepared)
        if not file:
            assert summed(open_engine(data, schema=SCHEMA, unit=UNIT, key=KEY, engine="memory")) == want


def test_SR2_SR12_a_copy_of_another_key_or_declaration_is_built_anew(tmp_path: Path) -> None:
    """A prepared copy serves one key, unit and set of declarations; others get their own integers."""
    pq.write_table(ROWS, tmp_path / "p.parquet")
    path = tmp_path / "p.prepared"
    first = summed(DuckEngine(Origin.of(tmp_path / "p.parquet"), SCHEMA, UNIT, KEY, prepared=path))
    made = path.stat().st_mtime_ns
    assert summed(DuckEngine(Origin.of(tmp_path / "p.parquet"), SCHEMA, UNIT, KEY, prepared=path)) == first
    assert path.stat().st_mtime_ns == made  # used as it is
    other = summed(DuckEngine(Origin.of(tmp_path / "p.parquet"), SCHEMA, Unit("who", rows=1), KEY, prepared=path))
    assert other != first
    assert path.stat().st_mtime_ns != made
    assert path.stat().st_mode & 0o777 == 0o600


def test_SR12_a_changed_source_stops_the_owner_until_renewed(tmp_path: Path) -> None:
    """Other bytes under the same name are refused, then taken with renew=True; the spend stays (T56)."""
    path = tmp_path / "p.parquet"
    columns = dict(SCHEMA.columns)
    pq.write_table(ROWS, path)
    with sulq.connect(path, columns=columns, unit=UNIT, budget=sulq.Epsilon(5)) as db:
        db.count(spend=sulq.Epsilon(1))
    time.sleep(0.01)
    pq.write_table(ROWS.slice(1), path)
    with pytest.raises(SetupError) as refused:
        sulq.connect(path, columns=columns, unit=UNIT, budget=sulq.Epsilon(5))
    assert refused.value.code == "source-changed"
    with sulq.connect(path, columns=columns, unit=UNIT, budget=sulq.Epsilon(5), renew=True) as db:
        db.count(spend=sulq.Epsilon(1))
        assert db.remaining == sulq.Epsilon(3)
        assert db.facts.version == 2


def test_a_build_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy appears whole or not at all, and no half-built file stays."""
    pq.write_table(ROWS, tmp_path / "p.parquet")

    def broken(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(prepare, "fill", broken)
    engine = DuckEngine(Origin.of(tmp_path / "p.parquet"), SCHEMA, UNIT, KEY, prepared=tmp_path / "p.prepared")
    with pytest.raises(SetupError):
        engine.ready()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.parquet"]


def test_preparing_tells_how_far_it_is(tmp_path: Path) -> None:
    """The progress callback ends at 1."""
    pq.write_table(ROWS, tmp_path / "p.parquet")
    told: list[float] = []
    DuckEngine(
        Origin.of(tmp_path / "p.parquet"), SCHEMA, UNIT, KEY, prepared=tmp_path / "p", progress=told.append
    ).ready()
    assert told[-1:] == [1.0]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{0}')",
        "SELECT * FROM read_text('{0}')",
        "COPY (SELECT 1) TO '{0}.out'",
        "ATTACH '{0}.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "SET enable_external_access = true",
        "SELECT * FROM ROWS",
        "SELECT * FROM glob('{0}*')",
    ],
)
def test_T69_T72_the_engine_is_locked(sql: str, tmp_path: Path) -> None:
    """Second wall: even SQL that no question can write reaches no file, network, setting or Python variable."""
    path = tmp_path / "secret.csv"
    path.write_text("a\n1\n")
    connection = Connection()
    connection.lock()
    with pytest.raises(duckdb.Error):
        connection.cursor().execute(sql.format(path)).fetchall()
    connection.close()


def used(sql: str) -> set[str]:
    """Names of the functions in a statement, by DuckDB's own parser."""
    con = duckdb.connect()
    tree = json.loads(con.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()[0])
    assert tree["error"] is False, tree
    found, front = set(), [tree]
    while front:
        node = front.pop()
        if isinstance(node, dict):
            if node.get("function_name"):
                found.add(node["function_name"])
            front += list(node.values())
        elif isinstance(node, list):
            front += node
    return found


def test_T18_T70_sql_uses_listed_functions_and_no_text_of_a_question() -> None:
    """Every statement over generated questions parses again, uses functions of the list alone, and holds no name."""
    rng = random.Random(11)
    statements: set[str] = set()
    for _ in range(25):
        data = generate.table(rng)
        engine = DuckEngine(Origin.of(data.arrow()), data.schema, data.unit, KEY)
        engine.ready()
        for _ in range(8):
            tally = generate.tally(rng, data.schema, data.unit)
            question = Question(engine._connection.cursor(), data.schema, engine._rows, tally)
            question.sums()
            statements |= set(question.statements)
            for name in data.schema.names:
                assert not any(f'"{name}"' in statement for statement in question.statements)
        engine.close()
    assert len(statements) > 100
    functions = set().union(*(used(statement) for statement in statements))
    assert functions - FUNCTIONS == set()
    assert used("SELECT pg_sleep(1)") - FUNCTIONS == {"pg_sleep"}  # control: a function that is not listed is seen


def test_T30_T31_a_failure_of_the_engine_is_one_constant_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever DuckDB says, the analyst gets the code and the log the class; neither gets the text."""
    engine = DuckEngine(Origin.of(ROWS), SCHEMA, UNIT, KEY)
    engine.ready()

    def failing(_: object) -> None:
        raise duckdb.ConversionException("Could not convert 'SECRET-123'")

    monkeypatch.setattr(Question, "sums", failing)
    with pytest.raises(CuratorError) as refused:
        engine.sums(everything())
    assert refused.value.code == "engine-failed"
    assert "SECRET" not in str(refused.value) + caplog.text
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


def test_T38_a_question_leaves_nothing_for_the_next() -> None:
    """The same tally gives the same integers before and after others; no temporary folder outlives the engine."""
    engine = DuckEngine(Origin.of(ROWS), SCHEMA, UNIT, KEY)
    engine.ready()
    before = engine.sums(everything()).open().tolist()
    folder = engine._connection.folder
    rng = random.Random(5)
    for _ in range(10):
        engine.sums(generate.tally(rng, SCHEMA, UNIT))
    assert engine.sums(everything()).open().tolist() == before
    engine.close()
    assert not folder.exists()


@pytest.mark.parametrize("kind", [DuckEngine, MemoryEngine])
def test_SR2_removing_a_person_leaves_all_others_rows(kind: type) -> None:
    """Kept rows of a person do not depend on anyone else: the sums change by that person's rows alone."""
    rng = random.Random(8)
    rows = pd.DataFrame({"who": [rng.randrange(6) for _ in range(60)], "age": [rng.randrange(120) for _ in range(60)]})
    schema = Schema.of("t", {"age": Int(0, 120)})
    tally = generate.question([lit(1), col("age")], schema, by=[sulq.each("age")])

    def kept(frame: pd.DataFrame) -> list[list[int]]:
        engine = kind(Origin.of(pa.Table.from_pandas(frame, preserve_index=False)), schema, Unit("who", rows=3), KEY)
        engine.ready()
        return engine.sums(tally).open().tolist()

    whole = kept(rows)
    alone = [kept(rows[rows.who == who]) for who in range(6)]
    assert whole == [[sum(p[c][i] for p in alone) for i in range(2)] for c in range(121)]
    assert sum(cell[0] for cell in whole) == 18
