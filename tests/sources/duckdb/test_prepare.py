"""The prepared copy: private, whole or not there, and bound to what it was made from."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq import Epsilon
from sulq.compile.statements import kept_table
from sulq.curator.ledger.ledger import Ledger
from sulq.errors import SetupError
from sulq.kernel import keep
from sulq.kernel.layout import joined, summed
from sulq.language.domain import Category, Int, Schema
from sulq.language.privacy import Unit
from sulq.language.rowfn import col, each, lit
from sulq.language.rowfn.writer import KeptRows
from sulq.sources import cell_reading
from sulq.sources.duckdb import kept_rows, prepare
from sulq.sources.duckdb.connection import Connection
from sulq.sources.duckdb.runner import CursorRunner
from tests.sources.cases import CANARY, KEY, SCHEMA, ask, duck, parquet, plain_engine, sums, table


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A Parquet file."""
    return parquet(tmp_path)


def test_it_is_private_and_records_its_origin(data: Path) -> None:
    """Mode 0600; path, size, time, schema, declarations, versions, space and the key's fingerprint; never the key."""
    copy = data.with_suffix(".prepared")
    told: list[float] = []
    engine = duck(data, prepared=copy, space="people", progress=told.append)
    engine.ready()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert told[0] == 0.0
    assert told[-1] == 1.0
    found = prepare.read(Connection(threads=1), copy)
    assert found is not None
    assert set(found) == {
        "format",
        "sulq",
        "duckdb",
        "source",
        "size",
        "modified",
        "schema",
        "declarations",
        "space",
        "key",
    }
    assert json.loads(found["source"]) == {"data": str(data)}
    assert json.loads(found["size"]) == {"data": data.stat().st_size}
    assert found["space"] == "people"
    assert KEY.hex() not in str(found)
    assert sums(engine) == sums(duck(data))
    assert [path.name for path in data.parent.iterdir() if "preparing" in path.name] == []


def test_it_holds_kept_rows_and_declared_columns_alone(tmp_path: Path) -> None:
    """Undeclared columns, persons' names and rows that do not count are not in it."""
    rows = [(CANARY, age, 1.0, "x", None) for age in range(50)]
    data = parquet(tmp_path, table(rows).append_column("other", table(rows).column("who")))
    copy = tmp_path / "p.prepared"
    engine = duck(data, Unit("who", 2), Schema("data", (("age", Int(0, 120)),)), prepared=copy)
    engine.ready()
    columns = engine._connection.root.execute("DESCRIBE SELECT * FROM data.kept").fetchall()
    assert [(name, kind) for name, kind, *_ in columns] == [("c0", "TINYINT"), ("h", "BIGINT"), ("o", "BIGINT")]
    assert engine._connection.root.execute("SELECT count(*) FROM data.kept").fetchone() == (2,)
    engine.close()
    assert CANARY.encode() not in copy.read_bytes()


def test_categories_are_spelled_beside_their_codes(tmp_path: Path) -> None:
    """A key alone is grouped by its text, which DuckDB keeps as a dictionary; two keys, and long lists, by codes."""
    rows = [(f"p{i}", i % 90, 1.0, "xyz"[i % 3], None) for i in range(300)]
    data = parquet(tmp_path, table(rows))
    engine = duck(data, prepared=tmp_path / "p.prepared")
    engine.ready()
    cursor = engine._connection.cursor()
    found = cursor.execute("SELECT DISTINCT c2, d2 FROM data.kept ORDER BY ALL").fetchall()
    assert found == [(0, "000"), (1, "001"), (None, None)]
    tallies = [ask(lit(1), by=(col("city"),)), ask(lit(1), by=(col("city"), each("age")))]
    for tally, key in zip(tallies, ("d2", "c2"), strict=True):
        runner, proposal = CursorRunner(cursor, SCHEMA, engine._kept("data")), engine.propose(tally)
        assert joined(proposal, summed(proposal, runner))[0].tolist() == plain_engine(data).sums(tally).open().tolist()
        assert f"{key} AS k0" in runner.statements[0]
    many = Schema("data", (("city", Category(tuple(range(kept_table.SPELLED + 1)))),))
    assert kept_table.spelled(many) == {}
    engine.close()


def test_a_build_that_fails_leaves_nothing_behind(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy appears whole or not at all, and no half-built file stays."""

    def broken(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(prepare, "fill", broken)
    with pytest.raises(SetupError):
        duck(data, prepared=data.with_suffix(".prepared")).ready()
    assert list(data.parent.iterdir()) == [data]


def made(copy: Path) -> int:
    """Which file this is."""
    return copy.stat().st_ino


def test_it_is_used_again_and_rebuilt_for_other_declarations(data: Path) -> None:
    """The same facts use the same copy; another unit, schema, space, key or version builds a new one."""
    copy = data.with_suffix(".prepared")
    sums(duck(data, prepared=copy))
    first = made(copy)
    sums(duck(data, prepared=copy))
    assert made(copy) == first
    for more in ({"unit": Unit("who", 1)}, {"space": "other"}, {"schema": Schema("data", (("age", Int(0, 99)),))}):
        before = made(copy)
        sums(duck(data, prepared=copy, **more), ask(lit(1), schema=more.get("schema", SCHEMA)))
        assert made(copy) != before
        sums(duck(data, prepared=copy))
    before = made(copy)
    engine = duck(data, prepared=copy)
    object.__setattr__(engine._tables[0], "key", b"other")
    sums(engine)
    assert made(copy) != before


def test_a_changed_source_stops_the_owner_until_renewed_SR12(data: Path) -> None:
    """Another size or time is refused; renew=True builds the copy from the new data."""
    copy = data.with_suffix(".prepared")
    assert sums(duck(data, prepared=copy), ask()) == [[[3]]]
    parquet(data.parent, table([("ann", 1, 1.0, "x", None)] * 5))
    with pytest.raises(SetupError) as refused:
        duck(data, prepared=copy).ready()
    assert refused.value.code == "source-changed"
    assert sums(duck(data, prepared=copy, renew=True), ask()) == [[[5]]]
    assert sums(duck(data, prepared=copy), ask()) == [[[5]]]


def test_a_moved_source_is_the_same_source(data: Path, tmp_path: Path) -> None:
    """A folder that was moved keeps its copies: size and time are what counts."""
    copy = data.with_suffix(".prepared")
    sums(duck(data, prepared=copy))
    before = made(copy)
    moved = tmp_path / "moved.parquet"
    data.rename(moved)
    sums(duck(moved, prepared=copy))
    assert made(copy) == before


def test_a_foreign_file_is_not_overwritten(data: Path) -> None:
    """What is no prepared copy is left alone and named, unless the owner says renew."""
    copy = data.with_suffix(".prepared")
    copy.write_text("my thesis")
    with pytest.raises(SetupError) as refused:
        duck(data, prepared=copy).ready()
    assert refused.value.code == "prepared-unusable"
    assert copy.read_text() == "my thesis"
    sums(duck(data, prepared=copy, renew=True))
    assert prepare.read(Connection(threads=1), copy)


def test_a_folder_that_cannot_be_written_is_said(data: Path) -> None:
    """A missing folder is the owner's to make."""
    with pytest.raises(SetupError) as refused:
        duck(data, prepared=data.parent / "none" / "x.prepared").ready()
    assert refused.value.code == "prepared-unusable"


def test_a_frame_has_no_copy_on_disk(tmp_path: Path) -> None:
    """A frame cannot be recognised again, so it is prepared in memory."""
    with pytest.raises(SetupError) as refused:
        duck(table(), prepared=tmp_path / "x.prepared")
    assert refused.value.code == "bad-declaration"


def test_leftovers_of_a_crash_are_removed_and_running_builds_are_not(data: Path) -> None:
    """A folder whose builder is gone is cleaned; one whose lock is held, or that is young, stays."""
    copy = data.with_suffix(".prepared")
    prefix = f".{copy.name}.preparing-"
    stale, young, old = (data.parent / f"{prefix}{name}" for name in ("stale", "young", "old"))
    for folder in (stale, young, old):
        folder.mkdir()
    (stale / "lock").touch()
    os.utime(old, (time.time() - 2 * prepare.ABANDONED_SECONDS,) * 2)
    with prepare._folder(copy) as running:
        sums(duck(data, prepared=copy))
        assert running.exists()
    assert [folder.exists() for folder in (stale, young, old, running)] == [False, True, False, False]


def test_a_killed_build_leaves_no_copy(data: Path) -> None:
    """A process killed while it builds leaves nothing at the copy's place; the next one builds it whole."""
    copy = data.with_suffix(".prepared")
    program = textwrap.dedent(f"""
        import os, signal, sys
        from pathlib import Path
        from sulq.sources.duckdb import prepare
        from tests.sources.cases import duck
        prepare.fill = lambda *given, **more: os.kill(os.getpid(), signal.SIGKILL)
        duck(Path({str(data)!r}), prepared=Path({str(copy)!r})).ready()
    """)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[3],
        env=os.environ | {"PYTHONPATH": "src:."},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert not copy.exists()
    assert any(data.parent.glob(f".{copy.name}.preparing-*"))
    assert sums(duck(data, prepared=copy)) == sums(duck(data))
    assert not any(data.parent.glob(f".{copy.name}.preparing-*"))


def test_two_builders_at_once_both_end_with_a_whole_copy(data: Path) -> None:
    """Whoever comes last replaces an equal copy; the one already open goes on reading its own."""
    copy = data.with_suffix(".prepared")
    first, second = duck(data, prepared=copy), duck(data, prepared=copy)
    first.ready()
    want = first.sums(ask()).open().tolist()
    prepare.build(copy, second._tables, recorded=prepare.facts(second._tables), progress=None)
    assert first.sums(ask()).open().tolist() == want
    first.close()
    assert sums(second, ask()) == [want]


@pytest.mark.parametrize("prepared", ["file", "memory", "none"])
@pytest.mark.parametrize("unit", [Unit(), Unit("who", rows=1)], ids=str)
def test_a_csv_file_read_as_another_number_of_records_is_refused_T96(unit: Unit, prepared: str, tmp_path: Path) -> None:
    """One record more or fewer than RFC 4180 finds stops the owner. Control: the number it finds is accepted."""
    path = tmp_path / "data.csv"
    path.write_text("who,age,pay,city,note\nann,40,1,x,a\nann,41,2,y,\nbob,,,,\n,7,1,x,b\n", encoding="utf-8")
    copies = {"file": tmp_path / "data.prepared", "memory": None, "none": False}
    for off, refused in ((0, False), (1, True), (-1, True)):
        engine = duck(path, unit, prepared=copies[prepared])
        ((file, found),) = engine._records.items()
        assert found == (4, True)
        engine._records = {file: found._replace(records=4 + off)}
        (tmp_path / "data.prepared").unlink(missing_ok=True)
        if not refused:
            engine.ready()
        else:
            with pytest.raises(SetupError) as stopped:
                engine.ready()
            assert stopped.value.code == "unreadable-data"
            assert "RFC 4180" in str(stopped.value)
        engine.close()
        (tmp_path / "data.prepared").unlink(missing_ok=True)


# Mistakes planted in what prepares rows: each contradicts a fact that certificates rest on, and the kernel's check of
# the prepared tables finds it before anything is paid.

PEOPLE = pa.table(
    {
        "pid": [i // 5 for i in range(60)],
        "x": [i % 70 for i in range(60)],
        "g": ["abcd"[i % 4] if i % 7 else None for i in range(60)],
        "n": [i % 3 if i % 5 else None for i in range(60)],
    }
)
REGIONS = pa.table({"code": [1, 2, 2], "name": ["n", "s", "s"]})
MISTAKES: dict[str, tuple[str, str]] = {  # a piece of the statement of kept rows, and what is written instead
    "a clamp left out": ("WHEN b0 > 6 THEN 6", "WHEN b0 > 6 THEN TRY_CAST(b0 AS BIGINT)"),
    "all rows of each person": ("n0 <= 3", "n0 <= 30"),
    "rows that are nobody's": ("JOIN (SELECT *, rowid", "LEFT JOIN (SELECT * REPLACE (-person AS person), rowid"),
    "one number for persons of two parts": ("rowid * 2 + 1", "rowid * 2"),
    "codes counted from 1": ("AS BIGINT) - 1 AS c1", "AS BIGINT) AS c1"),
    "a default left out": ("coalesce(CASE", "nullif(CASE"),
    "another type": ("TRY_CAST(c0 AS TINYINT)", "TRY_CAST(c0 AS SMALLINT)"),
    "another hash in each row": (", h, o FROM", ", h + coalesce(c0, 0) AS h, o FROM"),
    "hashes of more bits": ("sha256(u), 1, 15", "sha256(u), 1, 16"),
}
SPELLED = {  # in files alone
    "a code spelled wrong": ("c1 + 1) AS d1", "c1 + 2) AS d1"),
}


def mistaken(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> list[bool]:
    """Kept rows by another statement; says for each table that is made whether it is another."""
    real, changed = prepare._create, []

    def wrong(connection: Connection, name: str, rows: KeptRows, **more: Any) -> None:
        relation = rows.relation.replace(old, new)
        changed.append(relation != rows.relation)
        real(connection, name, replace(rows, relation=relation), **more)

    monkeypatch.setattr(prepare, "_create", wrong)
    return changed


def connected(prepared: Path | None, data: Path, **more: Any) -> sulq.Database:
    """A table of people with several rows each."""
    if not data.exists():
        pq.write_table(PEOPLE, data)
    given = PEOPLE if prepared is None else data
    columns = {"x": sulq.Int(0, 6), "g": sulq.Category(tuple("abcd")), "n": sulq.Int(0, 5, missing=False)}
    unit = Unit("pid", rows=3)
    return sulq.connect(given, columns=columns, unit=unit, budget=Epsilon(9), synthetic=True, prepared=prepared, **more)


@pytest.mark.parametrize(
    ("name", "place"),
    [*((name, "memory") for name in MISTAKES), ("a clamp left out", "file"), *((name, "file") for name in SPELLED)],
)
def test_a_mistake_in_preparing_stops_the_owner(
    name: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is spent, nothing is said of a row. Control: without the check the answer is given away."""
    if "parts" in name:
        monkeypatch.setattr(prepare, "MAX_PERSONS", 7)
        monkeypatch.setattr(prepare, "MAX_UNCOUNTED_ROWS", 7)
    copy = tmp_path / "copy" if place == "file" else None
    changed = mistaken(monkeypatch, *(MISTAKES | SPELLED)[name])
    with connected(copy, tmp_path / "people.parquet") as db:
        before = db.facts.spent
        with pytest.raises(SetupError) as stopped:
            db.sum("x", spend=Epsilon(1))
        assert any(changed)
        assert stopped.value.code == "unfit-rows"
        assert db.facts.spent == before
        monkeypatch.setattr(keep, "check", lambda *_: None)
        db.sum("x", spend=Epsilon(1))
        assert db.facts.spent == Epsilon(1)


@pytest.mark.parametrize("place", ["memory", "file"])
def test_rows_without_a_mistake_are_answered_from(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control of the mistakes: the same rows, read as they should be."""
    mistaken(monkeypatch, "", "")
    with connected(tmp_path / "copy" if place == "file" else None, tmp_path / "people.parquet") as db:
        db.sum("x", spend=Epsilon(1))


@pytest.mark.parametrize("left_out", ["twice", "rows_at_most"])
def test_a_public_table_that_is_not_as_said_stops_the_owner(left_out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is not unique, or more rows than are public: joins with it would have more rows than was certified."""
    regions = REGIONS if left_out == "twice" else REGIONS.slice(0, 2)
    if left_out == "twice":
        monkeypatch.setattr(kept_rows, "twice", lambda _: None)
    else:
        monkeypatch.setattr("sulq.api.database.rows_at_most", lambda *_: 1)
    columns = {
        "people": {"x": sulq.Int(0, 69)},
        "regions": {"code": sulq.Int(0, 9), "name": sulq.Category(("n", "s"))},
    }

    def opened() -> sulq.Database:
        return sulq.connect(
            {"people": PEOPLE, "regions": regions},
            columns=columns,
            keys={"regions": "code"},
            public=["regions"],
            unit=Unit("pid", rows=3),
            budget=Epsilon(9),
            synthetic=True,
        )

    with pytest.raises(SetupError, match="unfit-rows"):
        opened()
    monkeypatch.setattr(keep, "check", lambda *_: None)
    opened().close()


def test_a_copy_is_checked_each_time_it_is_opened(tmp_path: Path) -> None:
    """What it records of itself proves nothing of its rows: whoever can write the file could write both."""
    copy, data = tmp_path / "copy", tmp_path / "people.parquet"
    with connected(copy, data, ledger=tmp_path / "people.ledger") as db:
        db.sum("x", spend=Epsilon(1))
    with closing(duckdb.connect(str(copy))) as connection:
        connection.execute("UPDATE kept SET c0 = 100 WHERE o = 1")
    with connected(copy, data, ledger=tmp_path / "people.ledger") as db:
        with pytest.raises(SetupError, match="unfit-rows"):
            db.sum("x", spend=Epsilon(1), fresh=True)
        assert db.facts.spent == Epsilon(1)


def test_it_is_checked_once_and_before_the_debit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks later neither waits for it nor can cause it."""
    done: list[str] = []
    real, debit = keep.check, Ledger.debit
    monkeypatch.setattr(keep, "check", lambda *known: (done.append("check"), real(*known)))
    monkeypatch.setattr(Ledger, "debit", lambda *paid, **more: (done.append("debit"), debit(*paid, **more))[1])
    with connected(tmp_path / "copy", tmp_path / "people.parquet") as db:
        for _ in range(3):
            db.sum("x", spend=Epsilon(1), fresh=True)
    assert done == ["check", "debit", "debit", "debit"]


def test_a_reading_of_several_records_stops_the_owner_SR25(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One record's cell would have followed from all others; nothing is read and nothing spent. Control: unplanted."""
    real = cell_reading._clamped
    with connected(None, tmp_path / "people.parquet") as db:
        before = db.facts.spent
        monkeypatch.setattr(cell_reading, "_clamped", lambda item, *more: real(f"(max({item}) OVER ())", *more))
        with pytest.raises(SetupError, match="unfit-rows"):
            db.sum("x", spend=Epsilon(1))
        assert db.facts.spent == before
        monkeypatch.setattr(cell_reading, "_clamped", real)
        db.sum("x", spend=Epsilon(1))
