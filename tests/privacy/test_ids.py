"""Distinct ids are distinct people and equal ones are one, for every type a source has, or its owner is stopped (SR25).

Merging two people doubles what one of them may lose; splitting one in m multiplies it by m (T16, T97).
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq.curator.ledger import notes
from sulq.errors import SetupError
from sulq.kernel.ledger import chain
from sulq.language.domain import Int, Schema
from sulq.language.facts import TableFacts
from sulq.language.privacy import Epsilon, Unit
from sulq.language.relation import Join, Table
from sulq.language.rowfn import lit
from sulq.language.shape import shape
from sulq.language.tally import Tally
from sulq.sources.decode import frames
from sulq.sources.engines import open_dataset
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given
from sulq.testing import exact
from tests import random_tallies
from tests.counts import auditing, count, generator
from tests.loaded import available, loaded
from tests.sources.cases import KEY, ask, open_engine

SCHEMA = Schema("data", (("x", Int(0, 1)),))
SIZE = 100  # ids in a table
Draw = Callable[[random.Random], object]
WORDS = ("7", "7.0", "07", "a7", "A7", "a7 ", " a7", "é", "e\u0301", "ß", "ss", "SS", "K", "\u212a", "a\u200b7", "true")


def near(*middles: int, low: int, high: int) -> Draw:
    """Whole numbers beside those that doubles, or the type, end at."""
    return lambda rng: min(max(rng.choice(middles) + rng.randint(-3, 3), low), high)


def places(draw: Draw, scale: int) -> Draw:
    """Decimals of so many digits after the point."""
    return lambda rng: Decimal(draw(rng)).scaleb(-scale)


def signed(bits: int) -> tuple[int, int]:
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


WHOLE = {
    pa.int8(): near(0, 127, low=-128, high=127),
    pa.int64(): near(0, 2**53, -(2**53), 2**63, -(2**63), low=-(2**63), high=2**63 - 1),
    pa.uint64(): near(0, 2**53, 2**63, 2**64, low=0, high=2**64 - 1),
    pa.decimal128(18, 0): near(2**53, 10**17, -(10**17), low=1 - 10**18, high=10**18 - 1),
    pa.decimal128(38, 0): near(2**53, 10**37, -(10**30), low=1 - 10**38, high=10**38 - 1),
    pa.decimal128(20, 2): places(near(0, 10**19, 700, 2**60, low=1 - 10**20, high=10**20 - 1), 2),
    pa.decimal128(5, 5): places(near(0, 50_000, -50_000, low=-99_999, high=99_999), 5),
    pa.float64(): lambda rng: rng.choice(
        (0.0, -0.0, 7.0, 2.0**53 - 1, 2.0**53 - 2, -(2.0**53) + 1, math.nan, math.inf)
    ),
    pa.float32(): lambda rng: rng.choice((0.0, -0.0, 7.0, 2.0**24 - 1, 2.0**24 - 2)),
}
TIMES = {
    pa.timestamp("ns"): near(0, 10**18, -(10**18), low=signed(64)[0], high=signed(64)[1]),
    pa.timestamp("ns", "UTC"): near(0, 10**18, low=0, high=2 * 10**18),
    pa.timestamp("us"): near(0, 10**15, -(10**15), low=-(10**16), high=10**17),
    pa.timestamp("ms", "Asia/Tokyo"): near(0, 10**12, low=0, high=10**13),
    pa.timestamp("s"): near(0, 10**9, low=0, high=10**10),
    pa.date32(): near(0, 18_262, -700_000, low=-719_162, high=2_932_896),
}
OTHERS = {
    pa.string(): lambda rng: rng.choice(WORDS),
    pa.dictionary(pa.int32(), pa.string()): lambda rng: rng.choice(WORDS),
    pa.bool_(): lambda rng: rng.random() < 0.5,
}
TYPES = WHOLE | TIMES | OTHERS
SECONDS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def identity(kind: pa.DataType, cell: object) -> object:
    """Whom a cell names, by the value of its type; None: nobody."""
    if cell is None or (isinstance(cell, float) and not math.isfinite(cell)):
        return None
    if kind in WHOLE:
        return Fraction(cell)
    if pa.types.is_timestamp(kind):
        return Fraction(cell, SECONDS[kind.unit])
    return cell


def cells(rng: random.Random, kind: pa.DataType) -> list[object]:
    """Ids that lie close together, some of them several times, some missing."""
    return [None if rng.random() < 0.05 else TYPES[kind](rng) for _ in range(SIZE)]


def table(kind: pa.DataType, ids: list[object]) -> pa.Table:
    return pa.table({"id": pa.array(ids, kind), "x": [1] * len(ids)})


def people(data: object, unit: Unit | None = None, schema: Schema = SCHEMA, **more: object) -> int:
    """How many people there are: of each one row is kept."""
    engine = open_engine(data, schema=schema, unit=unit or Unit("id", 1), key=KEY, **more)
    try:
        return engine.sums(ask(schema=schema)).open().tolist()[0][0]
    finally:
        engine.close()


def in_spark(made: pa.Table) -> object:
    """The same rows as a frame of Spark's; the copies of code that `make mutants` breaks have no Spark."""
    from tests import spark

    return spark.frame(made)


def written(made: pa.Table, place: str, folder: Path) -> object:
    """The same rows from another place."""
    if place == "frame":
        return made
    if place == "polars":
        return pl.from_arrow(made)
    if place == "pandas":
        return pd.DataFrame({name: pd.arrays.ArrowExtensionArray(made.column(name)) for name in made.column_names})
    if place == "postgres":
        return loaded(made)
    if place == "spark":
        return in_spark(made)
    path = folder / f"t.{place}"
    path.unlink(missing_ok=True)
    if place == "parquet":
        pq.write_table(made, path)
    else:
        with duckdb.connect(str(path)) as db:
            db.execute("CREATE TABLE t AS SELECT * FROM made")
    return path


PLACES = {  # place, engine, options: short and long counts of ids
    "frame": ("frame", "duckdb", {}, 100, 4_000),
    "frame, memory": ("frame", "memory", {}, 100, 4_000),
    "parquet": ("parquet", "duckdb", {}, 100, 4_000),
    "parquet, memory": ("parquet", "memory", {}, 100, 4_000),
    "parquet, unprepared": ("parquet", "duckdb", {"prepared": False}, 100, 4_000),
    "duckdb": ("duckdb", "duckdb", {}, 100, 4_000),
    "polars": ("polars", "duckdb", {}, 100, 4_000),
    "pandas": ("pandas", "memory", {}, 100, 4_000),
}
FEW = (pa.decimal128(38, 0), pa.decimal128(20, 2), pa.float64(), pa.timestamp("ns"), pa.timestamp("us"), pa.string())
UNHELD = {  # what a place does not hold as it is
    "duckdb": {pa.timestamp("ns", "UTC")},
    "postgres": {pa.timestamp("ns"), pa.timestamp("ns", "UTC")},
    "spark": {pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.uint64(), pa.timestamp("s"), pa.int8()},
}


def check(place: str, engine: str, options: dict[str, object], ids: int, folder: Path) -> None:
    """As many people as there are different values, for every type that a place holds."""
    rng = generator(f"ids {place} {engine}")
    for kind in TYPES if place in ("frame", "parquet") or auditing() else FEW:
        if kind in UNHELD.get(place, ()):
            continue
        for _ in range(max(ids // SIZE, 1)):
            drawn = cells(rng, kind)
            want = len({identity(kind, cell) for cell in drawn} - {None})
            got = people(written(table(kind, drawn), place, folder), engine=engine, **options)
            assert got == want, (place, kind)


@pytest.mark.parametrize("where", PLACES)
def test_distinct_ids_are_distinct_people_T97(where: str, tmp_path: Path) -> None:
    """Neighbours past 2^53, in the last digit of a decimal, one nanosecond apart, in other forms of Unicode."""
    place, engine, options, short, long = PLACES[where]
    check(place, engine, options, count(f"ids of each type, {where}", short=short, long=long), tmp_path)


def test_distinct_ids_of_postgresql_are_distinct_people_T97(tmp_path: Path) -> None:
    """As of files."""
    if not available():
        pytest.skip("there is no PostgreSQL")
    check("postgres", "duckdb", {}, count("ids of each type, postgres", short=100, long=500), tmp_path)


def test_distinct_ids_of_spark_are_distinct_people_T97(tmp_path: Path) -> None:
    """As of files: of sixty people with long decimals, each is one."""
    sixty = table(pa.decimal128(38, 0), [Decimal(10**37 + i) for i in range(60)])
    assert people(in_spark(sixty)) == 60
    with pytest.raises(SetupError, match="person-type"):
        people(in_spark(table(pa.float64(), [1.0, math.nan, 2.0**53])))
    declared = Schema("data", (("x", Int(0, 1)), ("id", Int(0, 9))))
    assert people(in_spark(table(pa.string(), ["7", " 007", "7.0", "8", "", None])), schema=declared) == 2
    with pytest.raises(SetupError, match="person-type"):
        people(in_spark(table(pa.string(), ["7", "7e0"])), schema=declared)
    if (ids := count("ids of each type, spark", short=1, long=60)) > 1:
        check("spark", "duckdb", {}, ids, tmp_path)


def test_control_ids_through_doubles_merge_people_T97(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Control: read as before, the same ids are fewer people, and the check above says so."""
    exactly = frames.typed

    def through_doubles(kind: str, item: str, name: str) -> tuple[str, str]:
        form, cell = exactly(kind, item, name)
        return form, f"CAST(CAST({cell} AS DOUBLE) AS VARCHAR)" if form == "number" else cell

    monkeypatch.setattr(frames, "typed", through_doubles)
    with pytest.raises(AssertionError):
        check("frame", "duckdb", {}, SIZE, tmp_path)


ONE = {  # a person as each type of a kind writes it
    "numbers": (
        pa.array([7], pa.int8()), pa.array([7], pa.uint64()), pa.array([7.0]), pa.array([7.0], pa.float32()),
        pa.array([Decimal("7.00")]), pa.array([Decimal(7)], pa.decimal128(38, 0)),
    ),
    "texts": (pa.array(["7"]), pa.array(["7"], pa.large_string()), pa.array(["7"]).dictionary_encode()),
    "times": (
        pa.array([10**9], pa.timestamp("s")), pa.array([10**12], pa.timestamp("ms", "Asia/Tokyo")),
        pa.array([10**15], pa.timestamp("us")), pa.array([10**18], pa.timestamp("ns", "UTC")),
    ),
    "dates": (pa.array([7], pa.date32()), pa.array([7 * 86_400_000], pa.date64())),
    "truth values": (pa.array([True]),),
}  # fmt: skip


def joined(first: object, second: pa.Table, unit: Unit, engine: str, more: tuple = ()) -> int:
    """How many pairs of rows of one person two tables have."""
    tables = (("people", "x", first, more), ("visits", "y", second.rename_columns(["id", "y"]), ()))
    given = [Given(Origin.of(d), TableFacts(Schema(name, ((x, Int(0, 1)), *also)))) for name, x, d, also in tables]
    dataset = Dataset(tuple(given), unit, KEY)
    opened = open_dataset(dataset, engine=engine)
    try:
        pairs = Join(Table("people"), Table("visits"), (), person=True)
        made = random_tallies.question((lit(1),), shape(pairs, dataset.facts).schema)
        return opened.sums(Tally(pairs, made.blocks, None, (), 1)).open().tolist()[0][0]
    finally:
        opened.close()


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_equal_values_are_one_person_in_all_tables_T16(engine: str) -> None:
    """Numbers by value whatever their type, times by instant, texts by bytes; ids of two kinds are refused."""
    rows = {kind: [pa.table({"id": ids, "x": [1]}) for ids in columns] for kind, columns in ONE.items()}
    for columns in rows.values():
        for other in columns[1:]:
            assert joined(columns[0], other, Unit("id"), engine) == 1
    for one, other in itertools.combinations(rows, 2):
        with pytest.raises(SetupError, match="person-type"):
            joined(rows[one][0], rows[other][0], Unit("id"), engine)
        with pytest.raises(SetupError, match="person-type"):
            joined(rows[one][0], rows[other][0], Unit("id", fold="case"), engine)
    for ids in rows["numbers"]:
        assert joined(rows["texts"][0], ids, Unit("id", fold="spelling"), engine) == 1


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_texts_are_people_as_the_owner_folds_them_T16(engine: str) -> None:
    """By bytes; by the case of ASCII letters alone; by spelling as ledgers from before `fold` do."""
    made = table(pa.string(), list(WORDS))
    assert people(made, engine=engine) == len(WORDS)
    assert people(made, Unit("id", fold="case"), engine=engine) == len({w.lower() if w.isascii() else w for w in WORDS})
    alike = (("7", "7.0"), ("a7", "A7", "a7 ", " a7"), ("é", "e\u0301"), ("ss", "SS"), ("K", "\u212a"))
    assert people(made, Unit("id", fold="spelling"), engine=engine) == len(WORDS) - sum(len(one) - 1 for one in alike)


INEXACT = {
    "at 2^53": pa.array([1.0, 2.0**53]),
    "below -2^53": pa.array([1.0, -(2.0**53)]),
    "past 2^53": pa.array([1.0, 1e18]),
    "no whole number": pa.array([1.0, 0.1]),
    "single, at 2^24": pa.array([1.0, 2.0**24], pa.float32()),
    "half, at 2^11": pa.array(np.array([1, 2**11], np.float16)),
}


@pytest.mark.parametrize("what", INEXACT)
def test_ids_that_may_have_been_rounded_stop_the_owner_T97(what: str, tmp_path: Path) -> None:
    """At `connect`, over all rows, whatever the engine and wherever the rows lie; nothing can be asked before."""
    made = pa.table({"id": INEXACT[what], "x": [1, 1]})
    pq.write_table(made, tmp_path / "t.parquet")
    for data, engine in itertools.product((made, tmp_path / "t.parquet"), ("duckdb", "memory")):
        for prepared in (None, False):
            with pytest.raises(SetupError, match="person-type"):
                sulq.connect(
                    data, columns={"x": Int(0, 1)}, unit=Unit("id", fold="spelling" if prepared is None else None),
                    budget=Epsilon(1), engine=engine, prepared=prepared, ledger=tmp_path / f"{prepared}.ledger",
                )  # fmt: skip


def test_what_duckdb_reads_less_exactly_from_parquet_is_refused_T97(tmp_path: Path) -> None:
    """Decimals of more than 38 digits come as doubles, which Arrow reads exactly; INT96 without its nanoseconds."""
    wide = table(pa.decimal256(60, 30), [Decimal(7), Decimal("7.000000000000000000000000000001")])
    fine = table(pa.timestamp("ns"), [1, 2])
    for name, made, options in (("w", wide, {}), ("f", fine, {"use_deprecated_int96_timestamps": True})):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(made, path, **options)
        with pytest.raises(SetupError, match="person-type"):
            people(path)
        assert people(made) == 2
    assert people(tmp_path / "w.parquet", engine="memory") == 2
    with pytest.raises(SetupError, match="person-type"):
        people(tmp_path / "f.parquet", engine="memory")


def test_decimals_in_more_bytes_than_duckdb_reads_are_refused_T97(tmp_path: Path) -> None:
    """Four digits in INT32, of which DuckDB reads 16 bits. Control: there two ids past the precision are one."""
    path = tmp_path / "short.parquet"
    ids = pa.array([Decimal(1), Decimal(1 + 2**16)], pa.decimal128(10, 0)).cast(pa.decimal128(4, 0), safe=False)
    pq.write_table(pa.table({"id": ids, "x": [1, 1]}), path, store_decimal_as_integer=True)
    with duckdb.connect() as own:
        assert own.execute(f"SELECT count(DISTINCT id) FROM read_parquet('{path}')").fetchone() == (1,)
    with pytest.raises(SetupError, match="person-type"):
        people(path)
    assert people(path, engine="memory") == 2
    for digits in (5, 9, 10, 18):
        pq.write_table(table(pa.decimal128(digits, 0), [Decimal(1), Decimal(2)]), path, store_decimal_as_integer=True)
        assert people(path) == 2
    pq.write_table(table(pa.decimal128(4, 0), [Decimal(1), Decimal(2)]), path)  # in as many bytes as four digits need
    assert people(path) == 2


class Odd:
    """An object with a text like another's."""

    def __str__(self) -> str:
        return "odd"


OBJECTS = {  # cells of a pandas column of objects: how many people, or None: refused
    "whole": ([2**64, 2**64 + 1, np.int64(2**63 - 1), 2**63 - 1, None], 3),
    "decimals": ([Decimal(10**30), Decimal(10**30 + 1), Decimal("1E+30"), Decimal("NaN"), Decimal("Infinity")], 2),
    "numbers": ([7, 7.0, Decimal("7.00"), np.float32(7), math.nan], 1),
    "long doubles": ([7, 2.0**53], None),
    "parts": ([7, 0.5], None),
    "texts": (["7", "7.0", "a", "A", "a ", ""], 5),
    "broken texts": (["a", "a\udc80"], None),
    "mixed": ([7, "7"], None),
    "truths": ([True, False, np.True_], 2),
    "truths and numbers": ([True, 1], None),
    "uuids": ([uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=1)], 2),
    "times": ([pd.Timestamp(1), pd.Timestamp(2), pd.NaT, datetime.datetime(1970, 1, 1), np.datetime64(1, "ns")], 3),  # noqa: DTZ001
    "zones": ([pd.Timestamp(0, tz="UTC"), pd.Timestamp(0, tz="Asia/Tokyo"), np.datetime64(0, "s")], 1),
    "dates": ([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)], 2),
    "dates and times": ([datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)], None),  # noqa: DTZ001
    "picoseconds": ([np.datetime64(1, "ps")], None),
    "durations": ([np.timedelta64(1, "s"), np.timedelta64(1, "ms")], None),
    "bytes": ([b"a", b"b"], None),
    "others": ([Odd(), Odd()], None),
    "nothing": ([None, math.nan], 0),
}


@pytest.mark.parametrize("what", OBJECTS)
@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_objects_are_people_by_their_own_type_T97(what: str, engine: str) -> None:
    """Each cell of a column of objects by its exact value; of several kinds, or without one, they are refused."""
    ids, want = OBJECTS[what]
    frame = pd.DataFrame({"id": pd.Series(ids, dtype=object), "x": 1})
    if want is None:
        with pytest.raises(SetupError, match="person-type"):
            people(frame, engine=engine)
    else:
        assert people(frame, engine=engine) == want


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_digits_in_a_csv_file_are_numbers_where_their_owner_declares_them_T16(engine: str, tmp_path: Path) -> None:
    """Texts by default, so that a table of numbers beside them is refused; declared Int, they are numbers."""
    path = tmp_path / "people.csv"
    path.write_text("id,x\n7,1\n007,1\n 7.0,1\n+7.,1\n-0,1\n0.00,1\n12345678901234567890123,1\n.5,1\n,1\n")
    whole = table(pa.int64(), [7])
    declared = (("id", Int(0, 9)),)
    assert people(path, engine=engine) == 8
    with pytest.raises(SetupError, match="person-type"):
        joined(path, whole, Unit("id", 9), engine)
    assert joined(path, whole, Unit("id", 9), engine, declared) == 4
    assert joined(path, table(pa.decimal128(23, 0), [Decimal(12345678901234567890123)]), Unit("id"), engine, declared)
    path.write_text("id,x\n7,1\n7e0,1\n")
    with pytest.raises(SetupError, match="person-type"):
        sulq.connect(
            path, columns={"id": Int(0, 9), "x": Int(0, 1)}, unit=Unit("id"), budget=Epsilon(1), engine=engine,
        )  # fmt: skip


def test_ledgers_from_before_keep_their_fold_T97(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule stands in the first entry: an older ledger folds by spelling, unsaid or said, and others are refused."""
    made = table(pa.string(), ["A7", "a7 ", "b"])
    options = {"columns": {"x": Int(0, 1)}, "budget": Epsilon(1), "synthetic": True}

    def opened(name: str, fold: str | None) -> tuple[float, str | None]:
        unit = Unit("id", fold=fold)
        with sulq.connect(made, unit=unit, ledger=tmp_path / name, **options) as db:
            return exact(db).count().value, db.facts.unit.fold

    begun = notes.genesis

    def before(*given: object, **more: object) -> str:
        body = json.loads(begun(*given, **more))
        del body["unit"]["fold"]
        return chain.canonical(body)

    with monkeypatch.context() as earlier:
        earlier.setattr(notes, "genesis", before)
        assert opened("old.ledger", None) == (2, "spelling")
    assert opened("old.ledger", None) == opened("old.ledger", "spelling") == (2, "spelling")
    assert opened("new.ledger", None) == (3, None)
    for name, fold in (("old.ledger", "case"), ("new.ledger", "spelling"), ("new.ledger", "case")):
        with pytest.raises(SetupError, match="unit-mismatch") as refused:
            opened(name, fold)
        assert f"folded by {fold}" in str(refused.value)
