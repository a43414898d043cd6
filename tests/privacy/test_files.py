"""Neighbours as bytes: one record of a file, or one row of a frame or table, more or less (T96, T99, SR25).

What is shown for each pair, D and D with one more record: D opens and is answered, and D' either is refused when it is
opened (`malformed-csv`: the owner's stop at `connect`, before anything is spent), exactly when the record by itself is
no record of RFC 4180, or is answered too, and at most k of the kept rows differ either way. No question fails.
"""

from __future__ import annotations

import datetime
import functools
import gzip
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

import sulq
from sulq import Epsilon, Unit, col
from sulq.errors import SetupError, SulqError
from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.rowfn import each, lit, position
from sulq.sources.decode import csv_file
from sulq.sources.duckdb import engine as duckdb_engine
from sulq.sources.duckdb.engine import DuckEngine, MemoryEngine
from sulq.sources.origin import Origin
from sulq.sources.source import describe
from sulq.sources.tables import Dataset
from sulq.testing.replay import differences
from tests import spark
from tests.counts import auditing, count, generator
from tests.loaded import Unholdable, loaded
from tests.privacy.cases import run
from tests.privacy.families import (
    NUMBER,
    NUMBERS,
    UNIT,
    Family,
    Kept,
    Opened,
    Source,
    kept,
    neighbours,
    within,
)
from tests.sources.cases import KEY, ask, duck, memory, plain_engine, sums
from tests.sources.decode.test_csv_file import MARK, PIECES, reference

ENGINES: dict[str, Opened] = {
    "duckdb": DuckEngine,
    "unprepared": partial(DuckEngine, prepared=False),
    "memory": MemoryEngine,
}
# How many tables are opened together: alone, too, since what one needs is then not done for the others.
TOGETHER = {"duckdb": (1, 12, 24), "unprepared": (1, 4, 8), "memory": (1, 4, 8)}


def outcome(opened: Opened, data: object, schema: Schema) -> Kept | str:
    """The kept rows of one table, or why it was refused."""
    found = kept(opened, [(data, None)], [schema])
    return found if isinstance(found, str) else found[0]


def together(rng: random.Random, kind: str, *, left: int, pairs: int) -> int:
    """How many families to open tables of together, each with so many pairs, where so many cases are left."""
    return max(1, min(rng.choice(TOGETHER[kind]), left // pairs))


# records of a CSV file

CSV = Schema("data", (NUMBER, ("note", Text())))
HEADS = [b"who,n,note", b'"who","n","note"', b'who,"n","note, ""new"""']
NOTES = [b"a", b"", b'"x,y"', b'"p\nq"', b'"5"" pipe"', b'"\r"', "é".encode(), b'""', b" b ", b'","', b'"\n"']


def lines(rng: random.Random) -> list[bytes]:
    """Records of persons, some with several."""
    return [b"p%d,%d,%s\n" % (rng.randrange(8), i, rng.choice(NOTES)) for i in range(rng.randrange(14))]


def hostile(rng: random.Random, number: int) -> bytes:
    """The bytes of one record with its number: of a program that writes down what it is given."""
    while True:
        note = b"".join(rng.choices(PIECES, k=rng.randrange(6)))
        fields = [
            rng.choice([b"p1", b"new", note]),
            b"%d" % number,
            rng.choice(NOTES) if note == b"" else note,
        ]
        fields += [b"more"] * (rng.random() < 0.1)
        written = b",".join(fields[: 2 if rng.random() < 0.1 else 4]) + b"\n"
        alone = reference(b"who,n,note\n" + written)
        if (alone is None and b"\n" not in written[:-1].replace(b'"\n"', b"")) or (alone and len(alone) == 2):
            return written


def csv_family(rng: random.Random, name: str, more: int) -> tuple[Family[bytes], list[bytes]]:
    """A file and some hostile records that are records by themselves; and the file with one besides that is none.

    Of those files there are as many as such records were written before enough of the others.
    """
    names, mark, end = rng.choice(HEADS), rng.choice([b"", MARK]), rng.choice([b"\n", b"\r\n"])
    head, base = mark + names + end, [line[:-1] + end for line in lines(rng)]
    added: list[tuple[int, bytes]] = []
    none: list[tuple[int, bytes]] = []

    def content(chosen: frozenset[int], *others: tuple[int, bytes]) -> bytes:
        parts, last = [head], 0
        for place, record in sorted([*(added[i] for i in chosen), *others], key=lambda item: item[0]):
            parts += [*base[last:place], record]
            last = place
        return b"".join([*parts, *base[last:]])

    while len(added) < more:
        record, place = hostile(rng, NUMBERS - 1 - len(added))[:-1] + end, rng.randrange(len(base) + 1)
        (none if reference(head + record) is None else added).append((place, record))
    refused = [content(frozenset(i for i in range(more) if rng.random() < 0.5), record) for record in none]
    note = "note" if b"new" not in names else 'note, "new"'
    return Family(Schema(name, (NUMBER, (note, Text()))), more, content), refused


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
def test_one_records_bytes_change_at_most_one_persons_rows_T96(kind: str, tmp_path: Path) -> None:
    """A record is refused exactly where it is none by itself; else it moves its own person's rows."""
    planned = count(f"CSV records added on {kind}", short=24, long=2_000)
    rng, more = generator(f"CSV records on {kind}"), 4 if auditing() else 1
    seen = {"refused": 0, "answered": 0}

    def put(contents: list[bytes]) -> list[Source]:
        paths = [tmp_path / f"t{i}.csv" for i in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        return [(path, None) for path in paths]

    while sum(seen.values()) < planned:
        number = together(rng, kind, left=planned - sum(seen.values()), pairs=2 * more * 2 ** (more - 1))
        made = [csv_family(rng, f"t{i}", more) for i in range(number)]
        families = [family for family, _ in made]
        found = neighbours(ENGINES[kind], families, [rng.randrange(16) for _ in families], put)
        seen["answered"] += sum(family.pairs for family in families)
        for (family, refused), rows in zip(made, found, strict=True):
            assert rows[0].any() or len(reference(family.content(frozenset())) or []) == 1
            for content in refused:
                ((path, _),) = put([content])
                assert outcome(ENGINES[kind], path, family.schema) == "malformed-csv", content
                seen["refused"] += 1
    assert planned < 1000 or min(seen.values()) > planned // 10  # of few, none may be refused


HEADINGS = {
    "CRLF, LF in a name": b'who,n,"note\n(2024)"\r\n',
    "mark, comma and quote": MARK + b'"who, ""id""",n,note\n',
    "mark, LF in the first name": MARK + b'"who\nid",n,note\n',
}


@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize("kind", ENGINES)
def test_a_first_line_that_duckdb_reads_otherwise_is_refused_T96(kind: str, heading: str, tmp_path: Path) -> None:
    """DuckDB alone finds no rows below such names, or one more (the control)."""
    data, path = HEADINGS[heading], tmp_path / "t.csv"
    end = b"\r\n" if data.endswith(b"\r\n") else b"\n"
    path.write_bytes(data + b"".join(b"p%d,%d,a%b" % (i, i, end) for i in range(40)))
    assert outcome(ENGINES[kind], path, CSV) == "malformed-csv"
    if kind == "duckdb":
        plain = Schema("data", tuple((name, Text()) for name in csv_file.header(path)))
        with duckdb.connect() as connection:
            read = describe(Origin.of(path), plain, Unit(), None).relation
            assert connection.execute(f"SELECT count(*) FROM {read}").fetchone() != (40,)


@pytest.mark.parametrize("prepared", [None, False, True])
@pytest.mark.parametrize("unit", [UNIT, Unit()])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_records_that_duckdb_reads_otherwise_stop_the_owner_T96(
    name: str, unit: Unit, prepared: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should DuckDB find more or fewer records than the check: nothing is answered from them, nor their number told."""
    data = b"who,n,note\n" + b"".join(b"p%d,%d,a\n" % (i, i) for i in range(40))
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    checked = csv_file.check
    for more in (0, 1, -1):
        monkeypatch.setattr(csv_file, "check", lambda path, more=more: (checked(path)[0] + more, checked(path)[1]))
        copy = tmp_path / f"{more}.prepared"
        engine = duck(path, unit, CSV, prepared=copy if prepared else prepared)
        if more:
            with pytest.raises(SetupError, match="unreadable-data") as refused:
                engine.ready()
            assert "40" not in str(refused.value)
            assert not copy.exists()
        else:
            assert sums(engine, ask(lit(1), schema=CSV)) == [[[40]]]
        engine.close()


@pytest.mark.parametrize("record", [b'x1,"5\\" pipe",1\n', b'x1,"abc,1\n', b"x1,1,a\ry9,2,b\n"])
def test_connect_stops_the_owner_before_anything_is_spent_T96(record: bytes, tmp_path: Path) -> None:
    """The records of the report: among 300 sound lines, at the front, in the middle and at the end."""
    base = [b"p%d,%d,name\n" % (i, i % 40) for i in range(300)]
    path, columns = tmp_path / "t.csv", {"n": Int(0, 40), "note": Text()}
    for place in (0, 150, 300):
        path.write_bytes(b"who,n,note\n" + b"".join([*base[:place], record, *base[place:]]))
        for engine in ("duckdb", "memory"):
            with pytest.raises(SetupError) as refused:
                sulq.connect(path, columns=columns, unit=UNIT, budget=Epsilon(1), engine=engine)
            assert refused.value.code == "malformed-csv"
            assert f"Line {place + 2} " in refused.value.message


def test_a_file_that_changes_after_the_check_is_not_read_T96(tmp_path: Path) -> None:
    """The rows that are kept are of the bytes that were checked; a copy made of them needs no second check."""
    path, columns = tmp_path / "t.csv", {"n": Int(0, 40), "note": Text()}
    path.write_bytes(b"who,n,note\np1,1,a\n")
    opened = partial(sulq.connect, path, columns=columns, unit=UNIT, budget=Epsilon(9))
    with opened() as db:
        path.write_bytes(b'who,n,note\np1,1,a\np2,2,"b\n')
        with pytest.raises(SetupError, match="source-changed"):
            db.count(spend=Epsilon(1))
    with pytest.raises(SetupError, match="malformed-csv"):
        opened(renew=True)
    path.write_bytes(b"who,n,note\np1,1,a\np2,2,b\n")
    with opened(renew=True) as db:
        db.prepare()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_file, "check", lambda _: pytest.fail("checked again"))
        with opened() as db:
            db.count(spend=Epsilon(1))


def test_the_suite_notices_a_lax_reader_T96(tmp_path: Path) -> None:
    """Control: without the check, DuckDB's lenient reader moves more rows than a person has."""
    path = tmp_path / "t.csv"
    base = [b"p%d,%d,name\n" % (i, i) for i in range(20)]

    def lax() -> Kept:
        reader = f"read_csv('{path}', header = true, all_varchar = true, delim = ',', quote = '\"', escape = '\"', "
        reader += "auto_detect = false, columns = {'who': 'VARCHAR', 'n': 'INTEGER', 'note': 'VARCHAR'}, "
        reader += "null_padding = true, ignore_errors = true, strict_mode = false, parallel = false)"
        with duckdb.connect() as connection:
            found = connection.execute(f"SELECT n FROM {reader.replace('all_varchar = true, ', '')}").fetchall()
        return np.bincount([n for (n,) in found if n is not None], minlength=41)[:, None]

    path.write_bytes(b"who,n,note\n" + b"".join(base))
    first = lax()
    path.write_bytes(b"who,n,note\n" + b"".join([*base[:3], b'x1,"abc,1\n', *base[3:]]))
    assert not within(first, lax())


# rows of typed columns

FAR = 2**63 - 1
MOMENT = Timestamp("1960-01-01T00:00:00", "2020-01-01T00:00:00")
NOT_UTF8 = [b"\xff", b"a\xff", b"\xed\xa0\x80", b"\xc3"]
FLOATS = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7e308]


def whole(bits: int, *, signed: bool) -> list[int]:
    """The ends of an integer type."""
    return [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] if signed else [0, 2**bits - 1]


def digits(places: int) -> list[Decimal]:
    """The ends of a decimal type."""
    return [Decimal("9" * places), Decimal("-" + "9" * places)]


# For each physical type: what it is declared, ordinary cells and extreme ones, as what lies in Arrow's buffers.
TYPES: dict[pa.DataType, tuple[Column, Sequence[object], Sequence[object]]] = {
    pa.bool_(): (Bool(), [True, False], [None]),
    pa.int8(): (Int(0, 9), [3], whole(8, signed=True)),
    pa.int16(): (Int(0, 9), [3], whole(16, signed=True)),
    pa.int32(): (Category([1, 3]), [3], whole(32, signed=True)),
    pa.int64(): (Int(0, 9), [3], whole(64, signed=True)),
    pa.uint8(): (Real(0, 9), [3], whole(8, signed=False)),
    pa.uint16(): (Int(0, 9), [3], whole(16, signed=False)),
    pa.uint32(): (Int(0, 9), [3], whole(32, signed=False)),
    pa.uint64(): (Int(0, 9), [3], whole(64, signed=False)),
    pa.float16(): (Real(0, 9), [1.5], [np.nan, np.inf, -np.inf, -0.0, 65504.0, 6e-8]),
    pa.float32(): (Int(0, 9), [1.5], FLOATS),
    pa.float64(): (Real(0, 9), [1.5], FLOATS),
    pa.decimal128(9, 2): (Real(0, 9), [Decimal("1.5")], [Decimal("9999999.99"), Decimal("-9999999.99")]),
    pa.decimal128(38, 0): (Int(0, 9), [Decimal(3)], digits(38)),
    pa.decimal256(76, 0): (Real(0, 9), [Decimal(3)], digits(76)),
    pa.string(): (Text(), [b"a", b""], [*NOT_UTF8, b"x" * 50_000, b"\0", "é".encode()]),
    pa.large_string(): (Category(["a", "b"]), [b"a", b"c"], [*NOT_UTF8, b"x" * 50_000]),
    pa.dictionary(pa.int32(), pa.string()): (Int(0, 9), [b"3", b" 4 "], [*NOT_UTF8, b"1" * 400, b"1e999"]),
    pa.date32(): (Date("1960-01-01", "2020-01-01"), [0, 9], [2**31 - 1, -(2**31)]),
    pa.date64(): (
        Date("1960-01-01", "2020-01-01"),
        [0, 86_400_000],
        [2**44 * 86_400_000 // 2**10, -86_400_000 * 2**30],
    ),
    pa.timestamp("s"): (MOMENT, [0, 9], [FAR // 1000, -(FAR // 1000)]),
    pa.timestamp("ms"): (MOMENT, [0, 9], [FAR, -FAR - 1]),
    pa.timestamp("us"): (MOMENT, [0, 9], [FAR, -FAR - 1, -FAR]),
    pa.timestamp("ns"): (MOMENT, [0, 9], [FAR, -FAR]),
    pa.timestamp("ms", "UTC"): (MOMENT, [0, 9], [FAR, -FAR]),
    pa.timestamp("us", "Asia/Tokyo"): (Text(), [0, 9], [FAR, -FAR]),
}


def made(kind: pa.DataType, cells: Sequence[object]) -> pa.Array:
    """An array of a type, of what lies in its buffers: also of what Arrow's constructors would refuse."""
    if pa.types.is_dictionary(kind):
        return made(kind.value_type, cells).dictionary_encode()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        binary = pa.array(cells, pa.binary() if pa.types.is_string(kind) else pa.large_binary())
        return pa.Array.from_buffers(kind, len(cells), binary.buffers())
    if pa.types.is_temporal(kind):
        return pa.array(cells, pa.int32() if pa.types.is_date32(kind) else pa.int64()).view(kind)
    if pa.types.is_float16(kind):
        return pa.array([None if cell is None else np.float16(cell) for cell in cells], kind)
    return pa.array(cells, kind)


def stops(kind: pa.DataType, cell: object) -> bool:
    """Whether DuckDB's reader of Parquet stops at a cell, so that Arrow reads all files that are opened together."""
    if pa.types.is_timestamp(kind):
        return kind.unit in ("s", "ms")
    return isinstance(cell, bytes) and cell in NOT_UTF8


def family(
    rng: random.Random,
    kinds: Sequence[pa.DataType],
    more: int = 1,
    *,
    extremes: Callable[[pa.DataType], Sequence[object]] = lambda kind: TYPES[kind][2],
    name: str = "data",
) -> Family[pa.Table]:
    """Some rows, and more of which each has extreme cells; with the columns' declarations."""
    columns = {f"x{i}": (kind, *TYPES[kind][:2]) for i, kind in enumerate(kinds)}
    size = rng.randrange(10)
    people = [f"p{rng.randrange(6)}" for _ in range(size)]
    places = [rng.randrange(size + 1) for _ in range(more)]
    persons = [rng.choice(["p1", "p2", "new"]) for _ in range(more)]
    cells = {column: [rng.choice([*usual, None]) for _ in range(size)] for column, (*_, usual) in columns.items()}
    added = {column: [rng.choice(extremes(kind)) for _ in range(more)] for column, (kind, *_) in columns.items()}

    def content(chosen: frozenset[int]) -> pa.Table:
        def put(items: Sequence[object], others: Sequence[object]) -> list[object]:
            found = list(items)
            for i in sorted(chosen, key=lambda i: -places[i]):
                found.insert(places[i], others[i])
            return found

        found = {
            "who": pa.array(put(people, persons), pa.string()),
            "n": pa.array(put(range(size), range(NUMBERS - 1, NUMBERS - 1 - more, -1)), pa.int64()),
        }
        typed = {column: made(kind, put(cells[column], added[column])) for column, (kind, *_) in columns.items()}
        return pa.table(found | typed)

    schema = Schema(name, (NUMBER, *((column, declared) for column, (_, declared, _) in columns.items())))
    whose = dict(enumerate(people)) | {NUMBERS - 1 - i: person for i, person in enumerate(persons)}
    return Family(schema, more, content, whose)


def pair(rng: random.Random, kinds: Sequence[pa.DataType]) -> tuple[Schema, pa.Table, pa.Table]:
    """Some rows, and the same with one more."""
    found = family(rng, kinds)
    return found.schema, found.content(frozenset()), found.content(frozenset([0]))


def parquet(table: pa.Table, path: Path) -> Path:
    pa.parquet.write_table(table, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def parquet_parts(table: pa.Table, path: Path) -> Path:
    """The same rows in three files, one of which may be empty."""
    path.mkdir(exist_ok=True)
    for i in range(3):
        rows = range(i, table.num_rows, 3)
        pa.parquet.write_table(table.take(pa.array(rows, pa.int64())), path / f"{i}.parquet")
    return path


def old_parquet(table: pa.Table, path: Path) -> Path:
    pa.parquet.write_table(table, path.with_suffix(".parquet"), use_deprecated_int96_timestamps=True)
    return path.with_suffix(".parquet")


def duckdb_file(tables: Sequence[pa.Table], path: Path) -> list[Source]:
    """All tables in one file; it is written by one DuckDB for all, whose start takes longer than all else."""
    found = path.with_suffix(".duckdb")
    found.unlink(missing_ok=True)
    with _writer().cursor() as connection:
        connection.execute(f"ATTACH '{found}' AS written")
        for i, table in enumerate(tables):
            connection.register("given", table)
            connection.execute(f"CREATE TABLE written.data{i} AS SELECT * FROM given")
        connection.execute("DETACH written")
    return [(found, f"data{i}") for i in range(len(tables))]


@functools.cache
def _writer() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def objects(table: pa.Table, _: Path) -> pd.DataFrame:
    """A pandas frame of Python's own objects: texts with half a surrogate pair where there is no UTF-8."""

    def cell(item: object) -> object:
        return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else item

    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        flat = column.cast(kind) if pa.types.is_dictionary(column.type) else column
        if pa.types.is_temporal(kind):
            flat = flat.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
            items = [None if item is None else _moment(item) for item in flat.to_pylist()]
        else:
            text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            items = [cell(item) for item in (flat.cast(pa.large_binary()) if text else flat).to_pylist()]
        columns[name] = pd.Series(items, dtype=object)
    return pd.DataFrame(columns)


def _moment(item: int) -> object:
    return datetime.datetime(2000 if 0 <= item < 10**9 else 9999, 1, 1)  # noqa: DTZ001 - UTC without saying so


def _valid(kind: pa.DataType) -> bool:
    """Whether a type cannot hold what is no UTF-8."""
    return not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind))


NOT_IN_DUCKDB = (pa.float16(), pa.decimal256(76, 0), pa.timestamp("ms", "UTC"))
FORMS: dict[str, tuple[Callable[[pa.Table, Path], object], Callable[[pa.DataType], bool]]] = {
    "arrow": (lambda table, _: table, lambda _: True),
    "parquet": (parquet, lambda _: True),
    "parquet parts": (parquet_parts, lambda _: True),
    "old parquet": (old_parquet, lambda kind: not pa.types.is_timestamp(kind) or kind.unit == "ns"),
    "pandas": (lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype), lambda _: True),
    "pandas objects": (objects, lambda _: True),
    "polars": (
        lambda table, _: pl.from_arrow(table),
        lambda kind: _valid(kind) and not pa.types.is_decimal256(kind) and kind not in (pa.timestamp("s"), pa.date64()),
    ),
    "duckdb": (
        lambda table, path: duckdb_file([table], path)[0][0],
        lambda kind: _valid(kind) and kind not in NOT_IN_DUCKDB,
    ),
}


@pytest.mark.audit
@pytest.mark.parametrize("form", FORMS)
def test_one_rows_cells_change_at_most_one_persons_rows_T99(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Extreme cells of every type that is read: answered, in every engine, and the other rows are what they were."""
    planned = count(f"rows added to {form}", short=7, long=2_000)
    rng = generator(f"rows added to {form}")
    rewritten = []
    rewrite = duckdb_engine.rewrite
    monkeypatch.setattr(duckdb_engine, "rewrite", lambda *given: [rewritten.append(1), rewrite(*given)][1])
    write, holds = FORMS[form]
    kinds = [kind for kind in TYPES if holds(kind)]
    left: list[pa.DataType] = []
    more = 4 if auditing() else 1
    done = {name: 0 for name in ENGINES if (form, name) != ("duckdb", "memory")}

    rounds = dict.fromkeys(done, 0)

    def calm(kind: pa.DataType) -> Sequence[object]:
        return [cell for cell in TYPES[kind][2] if not stops(kind, cell)] or [None]

    def put(tables: list[pa.Table]) -> list[Source]:
        if form == "duckdb":
            return duckdb_file(tables, tmp_path / "t")
        return [(write(table, tmp_path / f"t{i}"), None) for i, table in enumerate(tables)]

    while sum(done.values()) < planned:
        engine = min(done, key=done.__getitem__)
        rounds[engine] += 1
        # Every other time DuckDB reads all of the Parquet files itself.
        extremes = calm if "parquet" in form and rounds[engine] % 2 else lambda kind: TYPES[kind][2]
        families = []
        for i in range(together(rng, engine, left=planned // (2 * len(done)), pairs=more * 2 ** (more - 1))):
            left = left if len(left) >= 4 else rng.sample(kinds, len(kinds))
            families.append(family(rng, [left.pop() for _ in range(4)], more, extremes=extremes, name=f"t{i}"))
        before = len(rewritten)
        neighbours(ENGINES[engine], families, [rng.randrange(16) for _ in families], put)
        assert extremes is not calm or len(rewritten) == before
        done[engine] += sum(family.pairs for family in families)


@pytest.mark.parametrize("prepared", [None, False, True])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("unit", [Unit(), Unit("n"), Unit(neighbors="replace_one")], ids=["row", "who", "place"])
def test_a_parquet_cell_beyond_microseconds_is_beyond_every_bound_T99(
    prepared: object, unit: Unit, *, several: bool, tmp_path: Path
) -> None:
    """Timestamps saturate and texts that are no UTF-8 are missing; with and without a copy, in one file and in parts.

    In parts beside a partition's value, and with places that go on.
    """
    kinds = {"t": pa.timestamp("ms"), "w": pa.string()}
    cells = {"t": [0, FAR - 1, -FAR, None], "w": [b"a", b"\xff", b"b", b"\xfe"]}
    rows = pa.table({"n": [1, 2, 3, 4]} | {name: made(kinds[name], cells[name]) for name in kinds})
    schema = Schema("data", (NUMBER, ("t", MOMENT), ("w", Text())))
    if several:
        for i, (first, size) in enumerate(((0, 1), (1, 3))):
            (tmp_path / "t" / f"year={i}").mkdir(parents=True)
            parquet(rows.slice(first, size), tmp_path / "t" / f"year={i}" / "rows")
        path, schema = tmp_path / "t", replace(schema, columns=(*schema.columns, ("year", Int(0, 9))))
    else:
        path = parquet(rows, tmp_path / "t")
    asked = [ask(lit(1), where=col("t") == edge, schema=schema) for edge in (MOMENT.lo, MOMENT.hi)]
    asked += [ask(lit(1), where=col(name).is_missing(), schema=schema) for name in "tw"]
    want = [[[1]], [[1]], [[1]], [[2]]]
    if several:
        asked.append(ask(lit(1), by=(each("year"),), schema=schema))
        want.append(sums(plain_engine(rows.append_column("year", pa.array([0, 1, 1, 1])), unit, schema), asked[-1])[0])
    if unit.positions_are_public:
        asked.append(ask(lit(1), where=(position() == 1) & (col("n") == 2), schema=schema))
        want.append([[1]])
    engine = duck(path, unit, schema, prepared=tmp_path / "t.prepared" if prepared else prepared)
    try:
        found = sums(engine, *asked)
    except SulqError as error:
        found = error.code
    assert found == sums(memory(path, unit, schema), *asked) == want


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("note", [b"a", b"\xff"])
def test_persons_whom_arrow_does_not_read_are_refused_whatever_cells_hold_T99(
    kind: str, note: bytes, tmp_path: Path
) -> None:
    """A cell that DuckDB fails on is read by Arrow: the owner is stopped before there is one."""
    who = pa.array([1, 2], pa.duration("s"))
    path = parquet(pa.table({"who": who, "n": [1, 2], "note": made(pa.string(), [b"a", note])}), tmp_path / "t")
    found = outcome(ENGINES[kind], path, CSV)
    assert isinstance(found, str), "sums, where nobody may be asked"
    assert found == "bad-declaration"


@pytest.mark.parametrize("form", ["arrow", "parquet", "duckdb"])
def test_a_question_is_replayed_over_an_extreme_cell_of_each_type_T99(form: str, tmp_path: Path) -> None:
    """Record and replay through a fresh opening: what differs between the two is paid for, and nothing fails (RP)."""
    rng, (write, holds) = generator(f"replayed extremes of {form}"), FORMS[form]
    kinds = [kind for kind in TYPES if holds(kind)]
    for kind in kinds if count(f"types replayed from {form}", short=3, long=len(kinds)) > 3 else rng.sample(kinds, 3):
        schema, base, more = pair(rng, [kind])
        programs = [
            lambda asks: asks.count(spend=Epsilon(0.5)),
            lambda asks: asks.count(col("x0").is_missing(), spend=Epsilon(0.5)),
            lambda asks: asks.histogram("n", spend=Epsilon(0.5)),
        ]
        for opened in (ENGINES["duckdb"], ENGINES["memory"])[: 1 if form == "duckdb" else 2]:
            engine = opened(Dataset.one(Origin.of(write(base, tmp_path / "t")), schema, UNIT, KEY))
            first = run(engine, programs, UNIT, Epsilon(9), schema=schema)
            engine.close()
            assert not any("Error" in found.split()[0] for found in first.outcomes), (kind, first.outcomes)
            engine = opened(Dataset.one(Origin.of(write(more, tmp_path / "t")), schema, UNIT, KEY))
            assert differences(first, run(engine, programs, UNIT, Epsilon(9), schema=schema, earlier=first)) == [], kind
            engine.close()


@pytest.mark.parametrize("fault", ["a row of another person", "a cell of another person", "three rows", "a failure"])
def test_the_suite_notices_a_row_that_moves_others_T99(fault: str) -> None:
    """Control: a table of which other rows are read otherwise once it holds an extreme one, or which fails then."""
    found = family(random.Random(3), [pa.int64(), pa.string()], 2)
    numbers = [n for n, who in (found.whose or {}).items() if who not in (found.whose[40], found.whose[39])]
    assert len(numbers) > 2

    def faulty(table: pa.Table) -> Source:
        if 40 in table["n"].to_pylist():
            gone = {"a row of another person": numbers[:1], "three rows": numbers[:3]}.get(fault, [])
            table = table.filter(pc.invert(pc.is_in(table["n"], pa.array(gone, pa.int64()))))
            if fault == "a cell of another person":
                blank = pc.if_else(pc.equal(table["n"], numbers[0]), 7, table["x0"])
                table = table.set_column(2, "x0", blank)
            if fault == "a failure":
                table = table.drop_columns("x0")
        return table, None

    neighbours(MemoryEngine, [found], [0], lambda tables: [(table, None) for table in tables])
    with pytest.raises(AssertionError):
        neighbours(MemoryEngine, [found], [0], lambda tables: [faulty(table) for table in tables])


def test_the_suite_notices_a_question_that_a_cell_makes_fail_T99(tmp_path: Path) -> None:
    """Control: DuckDB alone fails on a cell that `connect` let through, and not on the file without it."""
    for kind in (pa.timestamp("ms"), pa.string()):
        usual, extremes = TYPES[kind][1:]
        for cells, fails in ((usual, False), ([*usual, extremes[1]], True)):
            pa.parquet.write_table(pa.table({"x": made(kind, cells)}), tmp_path / "t.parquet")
            with duckdb.connect() as connection:
                read = connection.sql(f"SELECT sum(hash(x)) FROM '{tmp_path}/t.parquet'")
                if fails:
                    with pytest.raises(duckdb.Error):
                        read.fetchall()
                else:
                    read.fetchall()


# tables elsewhere

IN_POSTGRES = [
    kind
    for kind in TYPES
    if _valid(kind) and not pa.types.is_unsigned_integer(kind) and not pa.types.is_decimal256(kind)
    and kind not in (pa.float16(), pa.int8(), pa.date64())
]  # fmt: skip


@functools.cache
def holdable(kind: pa.DataType) -> list[object]:
    """The extreme cells of a type that PostgreSQL can hold; none where it holds not even ordinary ones."""

    def held(cells: Sequence[object]) -> bool:
        try:
            loaded(pa.table({"x": made(kind, cells)}))
        except Unholdable:
            return False
        return True

    usual, extremes = TYPES[kind][1:]
    return [cell for cell in extremes if held([cell])] if held(usual) else []


@pytest.mark.audit
def test_one_row_of_a_table_in_postgresql_T99() -> None:
    """Extreme cells of PostgreSQL's types are answered."""
    from sulq.sources.postgres.engine import PostgresEngine

    rng = generator("rows added in PostgreSQL")
    done, planned = 0, count("rows added in PostgreSQL", short=2, long=400)
    kinds, more = [kind for kind in IN_POSTGRES if holdable(kind)], 5 if auditing() else 1
    while done < planned:
        families = [family(rng, rng.sample(kinds, 4), more, extremes=holdable, name=f"t{i}") for i in range(2)]
        turns = [rng.randrange(16) for _ in families]
        neighbours(PostgresEngine, families, turns, lambda tables: [(loaded(table), None) for table in tables])
        done += sum(family.pairs for family in families)


def test_a_text_of_any_length_in_postgresql_T99() -> None:
    """A free text is cut, and a longer one of another column is missing, before they are sent: no row stops COPY."""
    from sulq.sources.postgres.engine import PostgresEngine
    from tests.postgres import server
    from tests.sources.postgres_cases import named

    name = named("long")
    server().do(f"CREATE TABLE {name} (who text, n integer, note text, c text)")
    server().do(
        f"INSERT INTO {name} VALUES ('a', 1, 'x', 'x'), ('b', 2, repeat('\"', 20000000), repeat('y', 20000000))"
    )
    schema = Schema("data", (NUMBER, ("note", Text()), ("c", Category(["x", "y"]))))
    found = outcome(PostgresEngine, loaded_at(name), schema)
    assert not isinstance(found, str)
    assert found.sum(axis=0).tolist() == [2, 0, 0, 1]


def loaded_at(name: str) -> str:
    from tests.loaded import address

    return address(table=name)


IN_SPARK = [
    kind
    for kind in TYPES
    if not pa.types.is_unsigned_integer(kind) and not pa.types.is_decimal256(kind) and not pa.types.is_dictionary(kind)
    and kind not in (pa.float16(), pa.date64(), pa.large_string())
    and not (pa.types.is_timestamp(kind) and kind.unit != "us")
]  # fmt: skip


@pytest.mark.audit
def test_one_row_of_a_frame_of_spark_T99() -> None:
    """Extreme cells of Spark's types are answered."""
    from sulq.sources.spark.engine import SparkEngine

    spark.needed()
    rng = generator("rows added on Spark")
    done, planned = 0, count("rows added on Spark", short=1, long=40)
    more = 5 if auditing() else 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while done < planned:
            found = family(rng, rng.sample(IN_SPARK, 4), more)
            neighbours(SparkEngine, [found], [0], lambda tables: [(spark.frame(table), None) for table in tables])
            done += found.pairs
