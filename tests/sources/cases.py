"""What the engines' tests share: a small table, its declarations, and the ways to open it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from sulq.language.domain import Category, Int, Real, Schema, Text
from sulq.language.privacy import Unit
from sulq.language.rowfn import RowFn, col, lit
from sulq.language.tally import Tally
from sulq.sources.duckdb.engine import DuckEngine, MemoryEngine
from sulq.sources.engines import OpenEngine, open_dataset
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset
from tests import random_tallies
from tests.sources.plain_engine import PlainEngine

KEY = bytes(range(32))
SCHEMA = Schema.of("data", {"age": Int(0, 120), "pay": Real(0, 1000), "city": Category(("x", "y")), "note": Text()})
CANARY = "SECRET-SSN-123"


def table(rows: Sequence[tuple[object, ...]] = ()) -> pa.Table:
    """Rows of (who, age, pay, city, note) in Arrow."""
    rows = rows or [("ann", 40, 10.0, "x", "a"), ("bob", 41, 20.5, "y", None), ("eve", None, None, "z", "c")]
    kinds = {"who": pa.string(), "age": pa.int64(), "pay": pa.float64(), "city": pa.string(), "note": pa.string()}
    cells = list(zip(*rows, strict=True))
    return pa.table({name: pa.array(cells[i], kind) for i, (name, kind) in enumerate(kinds.items())})


def ask(*values: RowFn, where: RowFn | None = None, by: Sequence[RowFn] = (), schema: Schema = SCHEMA) -> Tally:
    """A tally as the plan would make it."""
    return random_tallies.question(values or (lit(1),), schema, where=where, by=by)


ASKED = (
    ask(),
    ask(col("age"), col("pay"), where=col("pay") >= 0),
    ask(lit(1), col("pay"), by=(col("city"),)),
    ask(lit(1), where=col("note") == "a"),
)


def open_engine(
    data: object, *, schema: Schema, unit: Unit, key: bytes, table: str | None = None, space: str = "", **more: object
) -> OpenEngine:
    """One table of a file, a frame or a database, as `open_dataset` opens it."""
    return open_dataset(Dataset.one(Origin.of(data), schema, unit, key, inside=table, space=space), **more)


def duck(
    data: object,
    unit: Unit | None = None,
    schema: Schema = SCHEMA,
    *,
    space: str = "",
    inside: str | None = None,
    **more: object,
) -> DuckEngine:
    """A DuckDB engine over data."""
    dataset = Dataset.one(Origin.of(data), schema, unit or Unit(), KEY, inside=inside, space=space)
    return DuckEngine(dataset, **more)


def memory(data: object, unit: Unit | None = None, schema: Schema = SCHEMA, **more: object) -> MemoryEngine:
    """The memory engine over data."""
    return MemoryEngine(Dataset.one(Origin.of(data), schema, unit or Unit(), KEY), **more)


def plain_engine(data: object, unit: Unit | None = None, schema: Schema = SCHEMA, **more: object) -> PlainEngine:
    """What every engine is compared with: cells and sums by plain Python."""
    return PlainEngine(Dataset.one(Origin.of(data), schema, unit or Unit(), KEY), **more)


def sums(engine: object, *tallies: Tally) -> list[list[list[int]]]:
    """Exact sums of tallies, and the engine closed."""
    try:
        return [engine.sums(tally).open().tolist() for tally in tallies or ASKED]
    finally:
        engine.close()


def parquet(folder: Path, data: pa.Table | None = None, name: str = "data.parquet") -> Path:
    """A table as a Parquet file."""
    pa.parquet.write_table(table() if data is None else data, folder / name)
    return folder / name
