"""Neighbours as bytes: one record of a file, or one row of a frame or table, more or less (T96, T99, SR25).

What is shown for each pair, D and D with one more record: D opens and is answered, and D' either is refused when it is
opened (`malformed-csv`: the owner's stop at `connect`, before anything is spent), exactly when the record by itself is
no record of RFC 4180, or is answered too, and at most k of the kept rows differ either way. No question fails.
"""

from __future__ import annotations

import datetime
import gzip
import random
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import sulq
from sulq import Epsilon, Unit, col
from sulq.curator.engines import csv_file
from sulq.curator.engines.source import Origin, describe
from sulq.curator.engines.tables import Dataset
from sulq.errors import SetupError, SulqError
from sulq.terms.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp
from sulq.terms.engine import sums_of
from sulq.terms.rowfn import lit
from sulq.testing.replay import differences
from tests import spark
from tests.counts import count, generator
from tests.curator.engines.cases import KEY, ask, duck, memory, sums
from tests.curator.engines.test_csv_file import MARK, PIECES, reference
from tests.loaded import Unholdable, loaded
from tests.privacy.cases import run

ROWS = 2
UNIT = Unit("who", rows=ROWS)
NUMBER = ("n", Category(list(range(41))))  # each row of the base has its own
Opened = Callable[[object, Schema], object]
ENGINES: dict[str, Opened] = {
    "duckdb": lambda data, schema: duck(data, UNIT, schema),
    "unprepared": lambda data, schema: duck(data, UNIT, schema, prepared=False),
    "memory": lambda data, schema: memory(data, UNIT, schema),
}


def outcome(opened: Opened, data: object, schema: Schema) -> list[list[list[int]]] | str:
    """The kept rows by number, and how many have no value in each column; or why opening, or asking, was refused."""
    try:
        engine = opened(data, schema)
    except SetupError as error:
        return error.code
    asked = [ask(lit(1), by=(col("n"),), schema=schema)]
    asked += [ask(lit(1), where=col(name).is_missing(), schema=schema) for name in schema.names]
    try:
        return [found.open().tolist() for found in sums_of(engine, asked)]
    except SulqError as error:
        return f"asked: {error.code}"
    finally:
        engine.close()


def within(first: list[list[list[int]]], second: list[list[list[int]]]) -> bool:
    """Whether two tables differ by at most a person's rows, each way."""
    for a, b in zip(first, second, strict=True):
        moved = np.array(b).ravel() - np.array(a).ravel()
        if moved[moved > 0].sum() > ROWS or -moved[moved < 0].sum() > ROWS:
            return False
    return True


# records of a CSV file

CSV = Schema("data", (NUMBER, ("note", Text())))
HEADS = [b"who,n,note", b'"who","n","note"', b'who,"n","note, ""new"""']
NOTES = [b"a", b"", b'"x,y"', b'"p\nq"', b'"5"" pipe"', b'"\r"', "é".encode(), b'""', b" b ", b'","', b'"\n"']


def lines(rng: random.Random) -> list[bytes]:
    """Records of persons, some with several."""
    return [b"p%d,%d,%s\n" % (rng.randrange(8), i, rng.choice(NOTES)) for i in range(rng.randrange(14))]


def hostile(rng: random.Random) -> bytes:
    """The bytes of one record: of a program that writes down what it is given."""
    while True:
        note = b"".join(rng.choices(PIECES, k=rng.randrange(6)))
        fields = [
            rng.choice([b"p1", b"new", note]),
            b"%d" % rng.randrange(41),
            rng.choice(NOTES) if note == b"" else note,
        ]
        fields += [b"more"] * (rng.random() < 0.1)
        written = b",".join(fields[: 2 if rng.random() < 0.1 else 4]) + b"\n"
        alone = reference(b"who,n,note\n" + written)
        if (alone is None and b"\n" not in written[:-1].replace(b'"\n"', b"")) or (alone and len(alone) == 2):
            return written


@pytest.mark.audit
@pytest.mark.parametrize("kind", ENGINES)
def test_T96_one_records_bytes_change_at_most_one_persons_rows(kind: str, tmp_path: Path) -> None:
    """A record is refused exactly where it is none by itself; else it moves its own person's rows."""
    planned = count(f"CSV records added on {kind}", short=24, long=20_000)
    rng, path = generator(f"CSV records on {kind}"), tmp_path / "t.csv"
    seen = {"refused": 0, "answered": 0}
    while sum(seen.values()) < planned:
        names, mark, end = rng.choice(HEADS), rng.choice([b"", MARK]), rng.choice([b"\n", b"\r\n"])
        schema = CSV if b"new" not in names else Schema("data", (NUMBER, ('note, "new"', Text())))
        head, base = mark + names + end, [line[:-1] + end for line in lines(rng)]
        path.write_bytes(head + b"".join(base))
        first = outcome(ENGINES[kind], path, schema)
        assert isinstance(first, list), (head, base, first)
        assert sum(map(sum, first[0])) >= min(len(base), 1), (head, base)
        for _ in range(8):
            record, place = hostile(rng)[:-1] + end, rng.randrange(len(base) + 1)
            path.write_bytes(head + b"".join([*base[:place], record, *base[place:]]))
            second = outcome(ENGINES[kind], path, schema)
            if reference(head + record) is None:
                assert second == "malformed-csv", (head, base, record)
                seen["refused"] += 1
            else:
                assert isinstance(second, list), (head, base, record, second)
                assert within(first, second), (head, base, record, place)
                seen["answered"] += 1
    assert min(seen.values()) > planned // 10


HEADINGS = {
    "CRLF, LF in a name": b'who,n,"note\n(2024)"\r\n',
    "mark, comma and quote": MARK + b'"who, ""id""",n,note\n',
    "mark, LF in the first name": MARK + b'"who\nid",n,note\n',
}


@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize("kind", ENGINES)
def test_T96_a_first_line_that_duckdb_reads_otherwise_is_refused(kind: str, heading: str, tmp_path: Path) -> None:
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
def test_T96_records_that_duckdb_reads_otherwise_stop_the_owner(
    name: str, unit: Unit, prepared: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should DuckDB find more or fewer records than the check: nothing is answered from them, nor their number told."""
    data = b"who,n,note\n" + b"".join(b"p%d,%d,a\n" % (i, i) for i in range(40))
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    checked = csv_file.check
    for more in (0, 1, -1):
        monkeypatch.setattr(csv_file, "check", lambda path, more=more: checked(path) + more)
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
def test_T96_connect_stops_the_owner_before_anything_is_spent(record: bytes, tmp_path: Path) -> None:
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


def test_T96_a_file_that_changes_after_the_check_is_not_read(tmp_path: Path) -> None:
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


def test_T96_the_suite_notices_a_lax_reader(tmp_path: Path) -> None:
    """Control: without the check, DuckDB's lenient reader moves more rows than a person has."""
    path = tmp_path / "t.csv"
    base = [b"p%d,%d,name\n" % (i, i) for i in range(20)]

    def lax() -> list[list[list[int]]]:
        reader = f"read_csv('{path}', header = true, all_varchar = true, delim = ',', quote = '\"', escape = '\"', "
        reader += "auto_detect = false, columns = {'who': 'VARCHAR', 'n': 'INTEGER', 'note': 'VARCHAR'}, "
        reader += "null_padding = true, ignore_errors = true, strict_mode = false, parallel = false)"
        with duckdb.connect() as connection:
            found = connection.execute(f"SELECT n FROM {reader.replace('all_varchar = true, ', '')}").fetchall()
        return [np.bincount([n for (n,) in found if n is not None], minlength=41).tolist()]

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


def pair(rng: random.Random, kinds: Sequence[pa.DataType]) -> tuple[Schema, pa.Table, pa.Table]:
    """Some rows, and the same with one more, whose cells are extreme; both with the columns' declarations."""
    columns = {f"x{i}": (kind, *TYPES[kind]) for i, kind in enumerate(kinds)}
    size = rng.randrange(10)
    people = [f"p{rng.randrange(6)}" for _ in range(size)]
    place, person = rng.randrange(size + 1), rng.choice(["p1", "new"])
    cells = {name: [rng.choice([*usual, None]) for _ in range(size)] for name, (_, _, usual, _) in columns.items()}
    more = {name: rng.choice(extremes) for name, (_, _, _, extremes) in columns.items()}

    def table(*, added: bool) -> pa.Table:
        def put(items: list[object], item: object) -> list[object]:
            return [*items[:place], item, *items[place:]] if added else items

        found = {
            "who": pa.array(put(people, person), pa.string()),
            "n": pa.array(put(list(range(size)), 40), pa.int64()),
        }
        return pa.table(
            found | {name: made(kind, put(cells[name], more[name])) for name, (kind, *_) in columns.items()}
        )

    schema = Schema("data", (NUMBER, *((name, declared) for name, (_, declared, _, _) in columns.items())))
    return schema, table(added=False), table(added=True)


def parquet(table: pa.Table, folder: Path) -> Path:
    pa.parquet.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


def old_parquet(table: pa.Table, folder: Path) -> Path:
    pa.parquet.write_table(table, folder / "t.parquet", use_deprecated_int96_timestamps=True)
    return folder / "t.parquet"


def duckdb_file(table: pa.Table, folder: Path) -> Path:
    (folder / "t.duckdb").unlink(missing_ok=True)
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE data AS SELECT * FROM given")
    return folder / "t.duckdb"


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
    "old parquet": (old_parquet, lambda kind: not pa.types.is_timestamp(kind) or kind.unit == "ns"),
    "pandas": (lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype), lambda _: True),
    "pandas objects": (objects, lambda _: True),
    "polars": (
        lambda table, _: pl.from_arrow(table),
        lambda kind: _valid(kind) and not pa.types.is_decimal256(kind) and kind not in (pa.timestamp("s"), pa.date64()),
    ),
    "duckdb": (duckdb_file, lambda kind: _valid(kind) and kind not in NOT_IN_DUCKDB),
}


@pytest.mark.audit
@pytest.mark.parametrize("form", FORMS)
def test_T99_one_rows_cells_change_at_most_one_persons_rows(form: str, tmp_path: Path) -> None:
    """Extreme cells of every type that is read: answered, in every engine, and the other rows are what they were."""
    planned = count(f"rows added to {form}", short=7, long=20_000)
    rng = generator(f"rows added to {form}")
    write, holds = FORMS[form]
    kinds = [kind for kind in TYPES if holds(kind)]
    left: list[pa.DataType] = []
    engines = [name for name in ENGINES if (form, name) != ("duckdb", "memory")]
    for i in range(planned):
        left = left if len(left) >= 4 else rng.sample(kinds, len(kinds))
        schema, base, more = pair(rng, [left.pop() for _ in range(4)])
        opened = ENGINES[engines[i % len(engines)]]
        found = [outcome(opened, write(table, tmp_path), schema) for table in (base, more)]
        assert isinstance(found[0], list), found
        assert isinstance(found[1], list), (found, more.schema)
        assert within(*found), more.schema


@pytest.mark.parametrize("prepared", [None, False, True])
def test_T99_a_parquet_cell_beyond_microseconds_is_beyond_every_bound(prepared: object, tmp_path: Path) -> None:
    """Timestamps saturate and texts that are no UTF-8 are missing; with and without a copy."""
    kinds = {"t": pa.timestamp("ms"), "w": pa.string()}
    cells = {"t": [0, FAR - 1, -FAR, None], "w": [b"a", b"\xff", b"b", b"\xfe"]}
    path = parquet(pa.table({"n": [1, 2, 3, 4]} | {name: made(kinds[name], cells[name]) for name in kinds}), tmp_path)
    schema = Schema("data", (NUMBER, ("t", MOMENT), ("w", Text())))
    asked = [ask(lit(1), where=col("t") == edge, schema=schema) for edge in (MOMENT.lo, MOMENT.hi)]
    asked += [ask(lit(1), where=col(name).is_missing(), schema=schema) for name in "tw"]
    engine = duck(path, Unit(), schema, prepared=tmp_path / "t.prepared" if prepared else prepared)
    try:
        found = sums(engine, *asked)
    except SulqError as error:
        found = error.code
    assert found == sums(memory(path, Unit(), schema), *asked) == [[[1]], [[1]], [[1]], [[2]]]


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("note", [b"a", b"\xff"])
def test_T99_persons_whom_arrow_does_not_read_are_refused_whatever_cells_hold(
    kind: str, note: bytes, tmp_path: Path
) -> None:
    """A cell that DuckDB fails on is read by Arrow: the owner is stopped before there is one."""
    who = pa.array([1, 2], pa.duration("s"))
    path = parquet(pa.table({"who": who, "n": [1, 2], "note": made(pa.string(), [b"a", note])}), tmp_path)
    assert outcome(ENGINES[kind], path, CSV) == "bad-declaration"


@pytest.mark.parametrize("form", ["arrow", "parquet", "duckdb"])
def test_T99_a_question_is_replayed_over_an_extreme_cell_of_each_type(form: str, tmp_path: Path) -> None:
    """Record and replay through a fresh opening: what differs between the two is paid for, and nothing fails (RP)."""
    rng, (write, holds) = generator(f"replayed extremes of {form}"), FORMS[form]
    kinds = [kind for kind in TYPES if holds(kind)]
    for kind in kinds if count(f"types replayed from {form}", short=3, long=len(kinds)) > 3 else rng.sample(kinds, 3):
        schema, base, more = pair(rng, [kind])
        programs = [
            lambda desk: desk.count(spend=Epsilon(0.5)),
            lambda desk: desk.count(col("x0").is_missing(), spend=Epsilon(0.5)),
            lambda desk: desk.histogram("n", spend=Epsilon(0.5)),
        ]
        for opened in (ENGINES["duckdb"], ENGINES["memory"])[: 1 if form == "duckdb" else 2]:
            engine = opened(write(base, tmp_path), schema)
            first = run(engine, programs, UNIT, Epsilon(9), schema=schema)
            engine.close()
            assert not any("Error" in found.split()[0] for found in first.outcomes), (kind, first.outcomes)
            engine = opened(write(more, tmp_path), schema)
            assert differences(first, run(engine, programs, UNIT, Epsilon(9), schema=schema, earlier=first)) == [], kind
            engine.close()


def test_T99_the_suite_notices_a_question_that_a_cell_makes_fail(tmp_path: Path) -> None:
    """The control: DuckDB alone fails on a cell that `connect` let through, and not on the file without it."""
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


@pytest.mark.audit
def test_T99_one_row_of_a_table_in_postgresql() -> None:
    """Extreme cells of PostgreSQL's types are answered."""
    from tests.curator.engines.postgres_cases import engine

    rng = generator("rows added in PostgreSQL")
    done, planned = 0, count("rows added in PostgreSQL", short=2, long=2_000)
    while done < planned:
        schema, base, more = pair(rng, rng.sample(IN_POSTGRES, 4))
        try:
            tables = [loaded(base), loaded(more)]
        except Unholdable:
            continue
        found = [outcome(lambda url, schema: engine(url, UNIT, schema), url, schema) for url in tables]
        assert isinstance(found[0], list), found
        assert isinstance(found[1], list), found
        assert within(*found), more.schema
        done += 1


def test_T99_a_text_of_any_length_in_postgresql() -> None:
    """A free text is cut, and a longer one of another column is missing, before they are sent: no row stops COPY."""
    from tests.curator.engines.postgres_cases import engine, named
    from tests.postgres import server

    name = named("long")
    server().do(f"CREATE TABLE {name} (who text, n integer, note text, c text)")
    server().do(
        f"INSERT INTO {name} VALUES ('a', 1, 'x', 'x'), ('b', 2, repeat('\"', 20000000), repeat('y', 20000000))"
    )
    schema = Schema("data", (NUMBER, ("note", Text()), ("c", Category(["x", "y"]))))
    found = outcome(lambda url, schema: engine(url, UNIT, schema), loaded_at(name), schema)
    assert isinstance(found, list)
    assert [item[0][0] for item in found[1:]] == [0, 0, 1]


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
def test_T99_one_row_of_a_frame_of_spark() -> None:
    """Extreme cells of Spark's types are answered."""
    from sulq.curator.engines.spark.engine import SparkEngine

    spark.needed()
    rng = generator("rows added on Spark")

    def opened(frame: object, schema: Schema) -> object:
        return SparkEngine(Dataset.one(Origin.of(frame), schema, UNIT, KEY))

    for _ in range(count("rows added on Spark", short=1, long=200)):
        schema, base, more = pair(rng, rng.sample(IN_SPARK, 4))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [outcome(opened, spark.frame(table), schema) for table in (base, more)]
        assert isinstance(found[0], list), found
        assert isinstance(found[1], list), found
        assert within(*found), more.schema
