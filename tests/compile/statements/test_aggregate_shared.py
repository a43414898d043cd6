"""Tallies over the same rows are summed by SQL in as few SELECTs as their conditions and aggregates allow."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from sulq.compile.statements import aggregate as shared_module
from sulq.kernel.layout import joined, summed
from sulq.language.domain import Category, Int, Real, Schema
from sulq.language.rowfn import Col, OrMissing, RowFn, bins, col, each, lit, lookup, outer
from sulq.language.tally import Tally
from sulq.sources.duckdb.runner import CursorRunner
from tests import counts
from tests.counts import count
from tests.sources.cases import ask, duck, plain_engine

SCHEMA = Schema.of(
    "data",
    {
        "age": Int(0, 120),
        "pay": Real(0, 1000),
        "city": Category(("x", "y", "z")),
        "kind": Category(tuple(f"k{i}" for i in range(40))),
    },
)
KEYS: tuple[RowFn, ...] = (
    col("city"),
    col("kind"),
    OrMissing(Col("city")),
    each("age"),
    bins("age", [0, 18, 65, 100]),
    bins("pay", [i * 100.0 for i in range(11)]),
    each(col("age") > 40),
)
VALUES: tuple[RowFn, ...] = (
    lit(1),
    col("pay"),
    col("age"),
    col("pay") > 500,
    outer(["age", "pay"]),
    lookup([col("city")], [[1, 2], [3, 4], [5, 6]]),
)
WHERES: tuple[RowFn | None, ...] = (None, None, col("age") > 30, col("city") == "x")


def rows(number: int, rng: random.Random) -> pa.Table:
    """Rows with missing and undeclared cells, and values on every edge."""
    cells = {
        "age": [rng.choice((None, 0, 18, 65, 100, 120, rng.randint(-5, 130))) for _ in range(number)],
        "pay": [rng.choice((None, 0.0, 1000.0, rng.uniform(-10, 1100))) for _ in range(number)],
        "city": [rng.choice((None, "x", "y", "z", "w")) for _ in range(number)],
        "kind": [rng.choice((None, *(f"k{i}" for i in range(42)))) for _ in range(number)],
    }
    kinds = (pa.int64(), pa.float64(), pa.string(), pa.string())
    return pa.table({name: pa.array(cells[name], kind) for name, kind in zip(cells, kinds, strict=True)})


def asked(*values: RowFn, where: RowFn | None = None, by: tuple[RowFn, ...] = ()) -> Tally:
    return ask(*values, where=where, by=by, schema=SCHEMA)


def statements(data: object, tallies: list[Tally], **more: object) -> list[str]:
    """The SELECTs that tallies take together; their sums are those of the reference."""
    engine, plain = duck(data, schema=SCHEMA, **more), plain_engine(data, schema=SCHEMA)
    engine.ready()
    runner = CursorRunner(engine._cursor(engine._connection), *engine._over(tallies[0].over))
    proposal = engine.propose(*tallies)
    assert [sums.tolist() for sums in joined(proposal, summed(proposal, runner))] == [
        plain.sums(tally).open().tolist() for tally in tallies
    ]
    engine.close()
    return runner.statements


def test_one_partition_is_one_grouping() -> None:
    """Counts, sums and means in the same groups are read in one SELECT; another condition is another."""
    by = (col("kind"),)
    tallies = [asked(lit(1), by=by), asked(col("pay"), by=by), asked(col("age"), col("pay"), by=by)]
    data = rows(500, random.Random(1))
    assert len(statements(data, tallies)) == 1
    filtered = [*tallies, asked(lit(1), where=col("age") > 30, by=by), asked(col("pay"), where=col("age") > 30, by=by)]
    assert len(statements(data, filtered)) == 2


def test_partitions_with_the_same_aggregates_are_grouping_sets() -> None:
    """Counts by each key, by pairs, in either order, and over all rows: one SELECT."""
    city, kind, age = col("city"), col("kind"), bins("age", [0, 18, 65, 100])
    partitions = [(), (city,), (kind,), (age,), (city, kind), (kind, city), (city, city), (city, age, kind)]
    tallies = [asked(lit(1), by=by) for by in partitions]
    for number in (0, 1, 700):
        (statement,) = statements(rows(number, random.Random(number)), tallies)
        assert "GROUPING SETS" in statement
    assert len(statements(rows(50, random.Random(2)), [*tallies, asked(col("pay"), by=(kind,))])) == 2


def test_alone_they_take_one_each() -> None:
    """The control: asked one by one, the same tallies take as many SELECTs as there are."""
    data, tallies = rows(50, random.Random(3)), [asked(lit(1), by=(key,)) for key in KEYS]
    assert sum(len(statements(data, [tally])) for tally in tallies) == len(tallies)
    assert len(statements(data, tallies)) == 1


def test_what_sql_cannot_sum_is_left_to_the_fold() -> None:
    """Vectors and tables stand beside shared sums, each in its place."""
    tallies = [
        asked(lit(1), outer(["age", "pay"]), col("pay"), by=(col("city"),)),
        asked(lookup([col("city")], [[1, 2], [3, 4], [5, 6]]), lit(1)),
        asked(col("pay"), lit(1), by=(col("city"),)),
    ]
    assert statements(rows(300, random.Random(4)), tallies)


@pytest.mark.parametrize("prepared", [None, False, "file"])
def test_shared_sums_are_the_sums_alone(prepared: object, tmp_path: Path) -> None:
    """Random tallies over random rows, from memory, a file and unprepared: the integers of the reference engine."""
    rng = counts.generator(11)
    for i in range(count("sets of tallies summed together", short=12, long=2_000)):
        data = rows(rng.choice((0, 1, 40, 400)), rng)
        where = None if prepared != "file" else tmp_path / f"{i}.prepared"
        if prepared == "file":
            pa.parquet.write_table(data, tmp_path / f"{i}.parquet")
        tallies = [
            asked(
                *rng.choices(VALUES, k=rng.randint(1, 3)),
                where=rng.choice(WHERES),
                by=tuple(rng.choices(KEYS, k=rng.randint(0, 2))),
            )
            for _ in range(rng.randint(2, 6))
        ]
        source = tmp_path / f"{i}.parquet" if prepared == "file" else data
        assert statements(source, tallies, prepared=prepared if prepared is False else where)


def test_not_too_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past so many partitions or cells another SELECT is begun."""
    tallies = [asked(lit(1), by=(key,)) for key in KEYS]
    data = rows(100, random.Random(5))
    monkeypatch.setattr(shared_module, "SETS", 3)
    assert len(statements(data, tallies)) == 3
    monkeypatch.setattr(shared_module, "CELLS", 1)
    assert len(statements(data, tallies)) == len(tallies)
