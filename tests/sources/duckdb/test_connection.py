"""The engine behind the questions is locked: no file, no network, no setting, no variable (T38, T69, T72, T73)."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from pathlib import Path

import duckdb
import pytest

from sulq.language.privacy import Unit
from sulq.sources.duckdb.connection import ASKED_BITS, PERSON_BITS, Connection, memory
from tests.sources.cases import CANARY, duck, parquet, table

ESCAPES = (
    "SELECT * FROM read_text('{f}')", "SELECT * FROM read_blob('{f}')", "SELECT * FROM read_csv('{f}')",
    "SELECT * FROM read_csv_auto('{f}')", "SELECT * FROM sniff_csv('{f}')", "SELECT * FROM read_json('{f}')",
    "SELECT * FROM read_parquet('{f}')", "SELECT * FROM parquet_metadata('{f}')", "SELECT * FROM glob('{d}/*')",
    "SELECT * FROM '{f}'", "COPY (SELECT 1) TO '{d}/out.csv'", "COPY kept FROM '{f}'", "EXPORT DATABASE '{d}/out'",
    "IMPORT DATABASE '{d}'", "ATTACH '{d}/new.duckdb'", "ATTACH '{f}' AS g (READ_ONLY)", "INSTALL httpfs",
    "LOAD httpfs", "LOAD '{d}/x.duckdb_extension'", "SELECT * FROM read_csv('https://example.org/x.csv')",
    "SELECT * FROM 's3://bucket/x.parquet'", "SET threads = 1", "SET enable_external_access = true",
    "SET lock_configuration = false", "SET allowed_paths = ['{f}']", "SET temp_directory = '{d}'", "RESET memory_limit",
    "PRAGMA enable_external_access", "SET home_directory = '{d}'", "CALL force_checkpoint()", "FORCE INSTALL json",
    "SELECT getenv('HOME')", "SELECT * FROM local_variable", "SELECT * FROM CANARY", "CREATE SECRET s (TYPE s3)",
)  # fmt: skip


@pytest.mark.parametrize("prepared", [None, False, "file"])
def test_nothing_outside_can_be_reached_T69_T72_T73(prepared: object, tmp_path: Path) -> None:
    """Every way to a file, the network, a setting or a Python variable is refused, and no file appears."""
    other = tmp_path / "secret.csv"
    other.write_text(f"a,b\n{CANARY},1\n")
    data = parquet(tmp_path)
    copy = tmp_path / "data.prepared"
    engine = duck(data, prepared=copy if prepared == "file" else prepared)
    engine.ready()
    local_variable = table()  # a replacement scan would find it
    before = sorted(path.name for path in tmp_path.iterdir())
    for escape in ESCAPES:
        cursor = engine._connection.cursor()
        with pytest.raises(duckdb.Error):
            cursor.execute(escape.format(f=other, d=tmp_path)).fetchall()
        cursor.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert local_variable.num_rows == 3
    engine.close()


def test_the_same_statements_work_without_the_lock_T69(tmp_path: Path) -> None:
    """Control: unlocked, a file can be read and a setting changed."""
    other = tmp_path / "secret.csv"
    other.write_text(f"a,b\n{CANARY},1\n")
    connection = Connection()
    assert CANARY in str(connection.cursor().execute(f"SELECT content FROM read_text('{other}')").fetchall())
    connection.root.execute("SET threads = 1")
    connection.close()


def test_a_cursor_leaves_nothing_to_the_next_T38() -> None:
    """Temporary tables, variables and prepared statements of one cursor are unknown to another."""
    connection = Connection()
    first = connection.cursor()
    first.execute("CREATE TEMP TABLE left_behind AS SELECT 1 AS x")
    first.execute("SET VARIABLE v = 1")
    second = connection.cursor()
    with pytest.raises(duckdb.Error):
        second.execute("SELECT * FROM left_behind")
    assert second.execute("SELECT getvariable('v')").fetchone() == (None,)
    connection.close()


def test_spilled_rows_lie_in_a_private_folder_that_goes_T31(tmp_path: Path) -> None:
    """What is spilled lies in a folder of mode 0700, removed with the connection, even if nobody closes it."""
    connection = Connection(folder=tmp_path)
    assert stat.S_IMODE(connection.folder.stat().st_mode) == 0o700
    connection.close()
    assert list(tmp_path.iterdir()) == []
    left = Connection(folder=tmp_path)
    left.root.close()
    del left
    assert list(tmp_path.iterdir()) == []


def test_an_engine_takes_at_most_three_tenths_of_the_machine() -> None:
    """The limit is set in every connection, and what needs more is spilled to its own folder."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    assert memory() <= max(256, 0.3 * whole)
    connection = Connection()
    settings = "SELECT current_setting('memory_limit'), current_setting('temp_directory')"
    limit, folder = connection.root.execute(settings).fetchone()
    number, unit = limit.split()
    assert float(number) * {"MiB": 1, "GiB": 1024}[unit] <= memory() * 1.01
    assert folder == str(connection.folder)
    connection.close()


@pytest.mark.parametrize("filed", [False, True])
def test_arrays_of_persons_are_for_keeping_rows_alone(filed: object, tmp_path: Path) -> None:
    """A question's sums of many cells have no such room. Control: while rows are kept they have."""

    def bits(connection: Connection) -> int:
        found = connection.cursor().execute("SELECT current_setting('perfect_ht_threshold')").fetchone()
        return int(found[0])

    engine = duck(parquet(tmp_path), Unit("who", 2), **({"prepared": tmp_path / "copy"} if filed else {}))
    engine.ready()
    assert bits(engine._connection) == ASKED_BITS
    engine.close()
    other = Connection(threads=1)
    other.count_persons(begin=True)
    assert bits(other) == PERSON_BITS
    other.close()


def test_statements_are_interrupted_by_the_threads_that_run_them() -> None:
    """Another thread's question goes on, and the next one finds nothing of it."""
    connection = Connection(threads=1)
    long = "SELECT sum(sqrt(a.range * b.range)) FROM range(1000000) a, range(100000) b"
    failed: list[str] = []
    begun = threading.Event()

    def ask() -> None:
        with contextlib.closing(connection.cursor()) as cursor:
            begun.set()
            try:
                cursor.execute(long).fetchall()
            except duckdb.Error as error:
                failed.append(type(error).__name__)

    thread = threading.Thread(target=ask)
    thread.start()
    begun.wait(30)
    with contextlib.closing(connection.cursor()) as other:
        while thread.is_alive():
            connection.interrupt({thread.ident})
            thread.join(0.02)
        assert other.execute("SELECT 1").fetchall() == [(1,)]
    assert failed == ["InterruptException"]
    connection.close()
    connection.interrupt({thread.ident})
