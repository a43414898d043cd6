"""Files and frames: recognised, described, and refused with a code before anything is spent."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from sulq.errors import SetupError
from sulq.language.domain import Int, Schema, Text
from sulq.language.facts import TableFacts
from sulq.language.privacy import Unit
from sulq.language.rowfn import col, lit
from sulq.language.tally import Engine
from sulq.sources.origin import Origin, suffix
from sulq.sources.tables import Dataset, Given
from tests import counts, generate, random_tallies
from tests.counts import count
from tests.sources.cases import KEY, SCHEMA, ask, duck, memory, parquet, plain_engine, sums, table

TWO = Schema("data", (("a", Int(0, 9)), ("b", Text())))
ASKED = [ask(lit(1), col("a"), schema=TWO), ask(lit(1), where=col("b").is_missing(), schema=TWO)]


def refusal(code: str, *given: object, **more: object) -> None:
    """Opening is refused with a code."""
    with pytest.raises(SetupError) as refused:
        duck(*given, **more)
    assert refused.value.code == code


def test_bad_sources_are_refused_with_a_code(tmp_path: Path) -> None:
    """Missing, foreign, broken and unreadable data each have their own refusal."""
    refusal("missing-file", tmp_path / "none.parquet")
    refusal("missing-file", tmp_path)
    refusal("missing-file", "a\x00b.parquet")
    (tmp_path / "data.xlsx").write_bytes(b"x")
    refusal("unreadable-data", tmp_path / "data.xlsx")
    for content in (b"", b"PAR1", b"PAR1" + b"\x00" * 100 + b"PAR1", os.urandom(500)):
        (tmp_path / "broken.parquet").write_bytes(content)
        refusal("unreadable-data", tmp_path / "broken.parquet")
    (tmp_path / "broken.duckdb").write_bytes(b"no database")
    refusal("unreadable-data", tmp_path / "broken.duckdb")
    (tmp_path / "empty.csv").write_bytes(b"")
    refusal("missing-column", tmp_path / "empty.csv")
    refusal("missing-column", table().drop_columns(["pay"]))
    refusal("missing-column", table(), Unit("nobody"))
    refusal("unreadable-data", object())
    refusal("unreadable-data", 17)
    for address in ("postgresql://host/db", "s3://bucket/x.parquet", "https://host/x.parquet"):
        refusal("engine-not-available", address)
    Spark = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})
    assert Origin.of(Spark()).home == "spark"


def test_a_parquet_file_broken_inside_stops_its_owner(tmp_path: Path) -> None:
    """Pages that cannot be read are found before any question, prepared or not, and the text of cells stays inside."""
    path = parquet(tmp_path, pa.table({"a": list(range(5_000)), "b": [f"SECRET{i}" for i in range(5_000)]}))
    whole = bytearray(path.read_bytes())
    for i in range(2_000, 12_000):
        whole[i] ^= 0x5A
    path.write_bytes(whole)
    for prepared in (None, False, tmp_path / "x.prepared"):
        engine = duck(path, schema=TWO, prepared=prepared)
        with pytest.raises(SetupError) as refused:
            engine.ready()
        assert refused.value.code in ("unreadable-data", "prepared-unusable")
        assert "SECRET" not in str(refused.value)
        assert refused.value.__context__ is None
        engine.close()
    assert not (tmp_path / "x.prepared").exists()


@pytest.mark.parametrize(
    "name", ["plain.parquet", "st*r.parquet", "qu?st.parquet", "br[a]ck.parquet", "quo'te.parquet", "year=2020.parquet"]
)
def test_a_path_is_no_pattern(name: str, tmp_path: Path) -> None:
    """Wildcards, quotes and partition-like names in a path are letters."""
    folder = tmp_path / "k=v"
    folder.mkdir()
    parquet(folder, table([("no", 1, 1.0, "x", "no")]), "brack.parquet")
    path = parquet(folder, name=name)
    assert sums(duck(path), ask()) == [[[3]]]
    if set(name) & set("*?["):  # the lock admits no patterns
        refusal("unreadable-data", path, prepared=False)
    else:
        assert sums(duck(path, prepared=False), ask()) == [[[3]]]


def test_the_same_table_in_every_form(tmp_path: Path) -> None:
    """Parquet, CSV, gzipped CSV, a DuckDB file and a frame of one table give one answer, prepared or not."""
    for seed in range(count("tables in every form", short=4, long=100)):
        rng = counts.generator(seed)
        data = generate.table(rng, text=True, size=20)
        forms: list[object] = [data.arrow(), data.parquet(tmp_path / "t.parquet"), data.csv(tmp_path / "t.csv")]
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
        (tmp_path / "t.duckdb").unlink(missing_ok=True)
        with duckdb.connect(str(tmp_path / "t.duckdb")) as file:
            file.register("frame", data.arrow())
            file.execute("CREATE TABLE t AS SELECT * FROM frame")
        forms += [tmp_path / "t.csv.gz", tmp_path / "t.duckdb"]
        tallies = [random_tallies.tally(rng, data.schema, data.unit) for _ in range(3)]
        want = sums(plain_engine(data.arrow(), data.unit, data.schema), *tallies)
        assert sums(plain_engine(tmp_path / "t.csv", data.unit, data.schema), *tallies) == want
        assert sums(plain_engine(tmp_path / "t.parquet", data.unit, data.schema), *tallies) == want
        for form in forms:
            for prepared in (None, False):
                assert sums(duck(form, data.unit, data.schema, prepared=prepared), *tallies) == want, (seed, form)


def test_a_broken_csv_file_stops_its_owner_or_is_answered_T96(tmp_path: Path) -> None:
    """Whatever the bytes, opening is refused by one code, on every engine alike, or every question is answered."""
    rng = counts.generator(3)
    letters = [b"1", b",", b"\n", b'"', b"\r\n", b" ", b"\\", b"\xff", b"\xc3\xa9", b"\x00", b"x", b"1,1\n", b"1,1\n"]
    path = tmp_path / "broken.csv"
    for _ in range(count("broken CSV files", short=40, long=2_000)):
        path.write_bytes(b"a,b\n" + b"".join(rng.choice(letters) for _ in range(rng.randrange(30))))
        for unit in (Unit(), Unit(neighbors="zero_out")):
            opened = partial(duck, path, unit, TWO, prepared=False), partial(plain_engine, path, unit, TWO)
            found = [_outcome(open_it) for open_it in opened]
            assert found[0] == found[1]
            assert isinstance(found[0], list) or "malformed-csv" in str(found[0])


def _outcome(opened: Callable[[], Engine]) -> object:
    try:
        engine = opened()
    except SetupError as error:
        return str(error)
    return sums(engine, *ASKED)


def test_a_table_of_a_duckdb_file_is_named_or_the_only_one(tmp_path: Path) -> None:
    """Several tables need a name; the refusal lists them."""
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as file:
        file.execute("CREATE TABLE one AS SELECT 1 AS a, 'x' AS b")
        file.execute('CREATE TABLE "t""wo" AS SELECT 2 AS a, NULL AS b FROM range(3)')
    with pytest.raises(SetupError, match="one") as refused:
        duck(path, schema=TWO)
    assert refused.value.code == "unreadable-data"
    assert sums(duck(path, schema=TWO, inside='t"wo'), *ASKED) == [[[3, 6]], [[3]]]


def test_one_duckdb_is_asked_about_the_files_of_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its start takes longer than what it is asked; Parquet files, tables of a DuckDB file, and none is left open."""
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table())
        connection.execute("CREATE TABLE a AS FROM given; CREATE TABLE b AS FROM given")
    origins = [(parquet(tmp_path, name=f"{i}.parquet"), None) for i in range(2)] + [(path, "a"), (path, "b")]
    given = tuple(
        Given(Origin.of(data), TableFacts(Schema(f"t{i}", SCHEMA.columns)), inside)
        for i, (data, inside) in enumerate(origins)
    )
    started, connect = [], duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *a, **more: started.append(connect(*a, **more)) or started[-1])
    assert len(Dataset(given, Unit("who", rows=2), KEY).registered()) == 4
    assert len(started) == 1
    with pytest.raises(duckdb.ConnectionException):
        started[0].execute("SELECT 1")
    absent = (*given[:3], replace(given[3], inside="c"))
    for _ in range(2):  # a refusal leaves nothing attached either
        with pytest.raises(SetupError, match="unreadable-data"):
            Dataset(absent, Unit("who", rows=2), KEY).registered()


def test_fingerprints_tell_of_the_file_and_nothing_else(tmp_path: Path) -> None:
    """Name, size and time of a file; a frame is only a frame."""
    path = parquet(tmp_path)
    origin = Origin.of(str(path))
    assert origin.fingerprint == f"data.parquet {path.stat().st_size} {path.stat().st_mtime_ns}"
    assert Origin.of(table()).fingerprint == "frame"
    assert [suffix(Path(name)) for name in ("a.CSV.GZ", "a.csv", "b.Parquet", "c.parquet.gz")] == [
        ".csv",
        ".csv",
        ".parquet",
        "",
    ]


def test_a_source_that_changed_underneath_stops_its_owner(tmp_path: Path) -> None:
    """A file touched after it was opened is not read again until it is registered anew."""
    path = parquet(tmp_path)
    for opened in (plain_engine, memory, duck, lambda path: duck(path, prepared=False)):
        engine = opened(path)
        engine.ready()
        os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
        with pytest.raises(SetupError) as refused:
            engine.ready()
        assert refused.value.code == "source-changed"
        engine.close()


def test_parquet_statistics_without_nan_are_not_believed_T6(tmp_path: Path) -> None:
    """NaN in a file whose statistics leave it out is missing, as it is in a frame."""
    data = pa.table(
        {
            "who": ["a"] * 4,
            "age": [1.0, 2.0, float("nan"), 2.0],
            "pay": [5.0, float("nan"), 5.0, 5.0],
            "city": ["x"] * 4,
            "note": ["n"] * 4,
        }
    )
    path = parquet(tmp_path, data)
    asked = (
        ask(col("age"), col("pay"), lit(1)),
        ask(lit(1), where=col("pay") <= 900),
        ask(lit(1), where=~col("age").is_missing()),
    )
    want = sums(plain_engine(data), *asked)
    assert [want[1], want[2]] == [[[3]], [[3]]]
    for prepared in (None, False):
        assert sums(duck(path, prepared=prepared), *asked) == want
    assert SCHEMA.names[0] == "age"


def test_duckdb_by_itself_believes_them_T6(tmp_path: Path) -> None:
    """Control: read without the option, the same file's NaN is not even NaN."""
    path = parquet(tmp_path, pa.table({"x": [1.0, float("nan")]}))
    assert duckdb.execute(f"SELECT count(*) FROM read_parquet('{path}') WHERE x <= 5").fetchone() == (2,)
