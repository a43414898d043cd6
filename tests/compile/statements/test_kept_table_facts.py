"""The facts that certificates follow from are those of the tables that lie in DuckDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from sulq.compile.statements import kept_table
from sulq.kernel.facts import OWNER
from sulq.language.domain import Bool, Category, Date, Int, Real, Schema, Text
from sulq.language.privacy import Unit
from sulq.language.rowfn import col, lit
from sulq.sources.duckdb.engine import DuckEngine
from tests.certified import certified
from tests.sources.cases import ask, duck, parquet, table

SCHEMA = Schema.of(
    "data",
    {
        "age": Int(0, 120), "pay": Real(0, 1000), "city": Category(("x", "y")), "note": Text(),
        "far": Int(-(2**40), 2**40, missing=False, default=0), "day": Date("2020-01-01", "2020-12-31"), "flag": Bool(),
    },
)  # fmt: skip


def engine(folder: Path, prepared: str, unit: Unit) -> DuckEngine:
    """A table of every kind of column, in a file or in memory."""
    data = table().append_column("far", [[2**50, -5, None]]).append_column("day", [["2020-02-02", "1999-01-01", None]])
    path = parquet(folder, data.append_column("flag", [[True, None, False]]))
    columns = dict(SCHEMA.columns) | ({"far": Int(-(2**40), 2**40)} if unit.neighbors == "zero_out" else {})
    return duck(
        path, unit, Schema.of("data", columns), prepared=path.with_suffix(".prepared") if prepared == "file" else None
    )


@pytest.mark.parametrize("prepared", ["file", "memory"])
@pytest.mark.parametrize(
    "unit", [Unit(), Unit("who", rows=2), Unit(None, 1, "replace_one"), Unit("who", 2, "zero_out")], ids=str
)
def test_names_types_and_intervals_are_the_stored_ones(unit: Unit, prepared: str, tmp_path: Path) -> None:
    """Each column of the facts is there with that type; its cells lie within its interval, missing only where said."""
    opened = engine(tmp_path, prepared, unit)
    opened.ready()
    (known,) = kept_table.stored_facts(opened.tables, opened._kept).tables
    connection = opened._connection
    assert connection is not None
    name = ".".join(known.name)
    stored = {row[0]: row[1] for row in connection.root.execute(f"DESCRIBE {name}").fetchall()}
    assert {column: kind.type for column, kind in known.columns} == {k: v for k, v in stored.items() if k != OWNER}
    assert known.owned == (OWNER in stored)
    for column, kind in known.columns:
        asked = f"SELECT min({column}), max({column}), count(*) FILTER (WHERE {column} IS NULL) FROM {name}"
        low, high, missing = connection.root.execute(asked).fetchone() or (None, None, 0)
        assert kind.missing or missing == 0
        if kind.low is not None and kind.high is not None and low is not None:
            assert kind.low <= int(low) <= int(high) <= kind.high
    opened.close()


def test_what_is_folded_has_no_certificate_and_what_is_summed_has(tmp_path: Path) -> None:
    """Of one tally, by block; of rows that are read anew, none: their types are the source's."""
    tally = ask(lit(1), col("pay"), schema=SCHEMA)
    opened = engine(tmp_path, "memory", Unit("who", rows=2))
    (blocks,) = certified(opened, [tally])
    assert [block is not None and block.rows for block in blocks] == [2, 2]
    assert certified(duck(parquet(tmp_path), prepared=False), [ask()]) == [(None,)]
