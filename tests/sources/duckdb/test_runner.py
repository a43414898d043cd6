"""One question, summed in several ways at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sulq.compile.statements import proposer
from sulq.kernel import layout
from sulq.language.domain import Int, Real, Schema
from sulq.language.rowfn import Bins, Col, Each, OrMissing, RowFn, bins, col, each, lit, lookup, nearest, outer, vector
from tests.sources.cases import ask, duck, parquet, plain_engine, sums, table


def test_sql_and_batches_share_one_question() -> None:
    """Values that SQL sums, values that batches sum and tables that meet counts stand side by side in order."""
    tally = ask(
        lit(1),
        outer(["age", "pay"]),
        col("pay"),
        lookup([col("city")], [[1, 2], [3, 4]]),
        vector(["age"]),
        by=(each(nearest(["age"], [[10], [40.6]])),),
    )
    plain = ask(
        outer(["age", "pay"]),
        lit(1),
        lookup([col("city"), each("age")], [[i, -i] for i in range(242)]),
        by=(col("city"),),
    )
    for prepared in (None, False):
        assert sums(duck(table(), prepared=prepared, batch=1), tally, plain) == sums(
            plain_engine(table()), tally, plain
        )


def test_many_cells_come_back_in_their_places(tmp_path: Path) -> None:
    """A partition of thousands of cells, most of them empty, is filled cell by cell."""
    schema = Schema.of("data", {"age": Int(0, 120), "pay": Real(0, 1000)})
    tally = ask(lit(1), col("pay"), by=(each("age"), bins("pay", [i * 10.0 for i in range(101)])), schema=schema)
    path = parquet(tmp_path)
    assert tally.cells == 12_100
    for prepared in (None, False):
        assert sums(duck(path, schema=schema, prepared=prepared), tally) == sums(
            plain_engine(path, schema=schema), tally
        )


def test_more_bins_than_sql_searches_go_by_batches() -> None:
    """A histogram finer than SQL's search, and a table too large for dense counts, are summed all the same."""
    edges = tuple(sorted({round(i**1.1, 3) for i in range(1_500)}))
    tally = ask(lit(1), by=(Bins(Col("pay"), edges),))
    wide = ask(
        lookup([each("age"), Bins(Col("pay"), tuple(range(900)))], [[i % 7, -1] for i in range(121 * 899)]),
        by=(each(Col("age") > 40),),
    )
    large = ask(
        lookup([each("age"), Bins(Col("pay"), tuple(range(900)))], [[i % 7, -1] for i in range(121 * 899)]),
        by=(Each(Col("age")),),
    )
    assert sums(duck(table()), tally, wide, large) == sums(plain_engine(table()), tally, wide, large)


@pytest.mark.parametrize("together", [2**17, 1])
def test_several_tables_are_read_from_one_count(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    """Tables with keys in common, written alike but apart: one count for all of them, or one each; the same sums.

    A row that lacks a key counts for the tables that do not read it, as a batch has it; so do rows that a condition
    leaves out, cells of a partition, and a table beside them whose key SQL cannot say.
    """
    rng = np.random.default_rng(5)
    rows = [
        (
            str(i),
            None if rng.random() < 0.2 else int(rng.integers(0, 121)),
            None if rng.random() < 0.2 else float(rng.random() * 1000),
            str(rng.choice(["x", "y", "z"])),
            None,
        )
        for i in range(400)
    ]

    def halves() -> RowFn:
        return bins("pay", [0, 500, 1000])

    city_age = lookup([col("city"), each("age")], rng.integers(-9, 9, (242, 3)).tolist())
    age_pay = lookup([each("age"), halves()], rng.integers(-9, 9, (242, 2)).tolist())
    pay = lookup([halves()], [[1, 2, 3], [4, 5, -6]])
    near = lookup([each(nearest(["age"], [[10], [40.6]]))], [[1, 2], [3, 4]])
    asked = (
        ask(city_age, lit(1), age_pay, pay),
        ask(pay, city_age, age_pay, where=col("pay") < 700),
        ask(age_pay, pay, city_age, by=(col("city"),)),
        ask(pay, near, city_age),
    )
    monkeypatch.setattr(proposer, "TOGETHER", together)
    true = sums(plain_engine(table(rows)), *asked)
    for prepared in (None, False):
        assert sums(duck(table(rows), prepared=prepared), *asked) == true
    whole = [row for row in rows if row[2] is not None]
    assert (
        sums(plain_engine(table(whole)), asked[0])[0][0][:3] != true[0][0][:3]
    )  # control: rows that lack another's key


def test_keys_of_one_label_and_keys_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many tables off one count, some with a key of a single label, in any order; one that reads its key twice."""
    rng = np.random.default_rng(6)
    names = [f"b{i}" for i in range(5)]
    schema = Schema.of("data", {name: Int(0, int(size)) for name, size in zip(names, (1, 2, 0, 1, 3), strict=True)})
    sizes = [column.high + 1 for _, column in schema.columns]
    rows = pa.table({
        name: pa.array([None if rng.random() < 0.1 else int(rng.integers(0, size)) for _ in range(300)])
        for name, size in zip(names, sizes, strict=True)
    })  # fmt: skip
    keys = [each(name) for name in names]
    chosen = [(0, 1), (1, 0), (2,), (4, 2, 0), (0, 2, 4), (3, 1, 4, 0), (2, 3)]
    tables = [
        lookup([keys[i] for i in own], rng.integers(-9, 9, (int(np.prod([sizes[i] for i in own])), 3)).tolist())
        for own in chosen
    ]
    twice = lookup([keys[0], keys[1], keys[0]], rng.integers(-9, 9, (12, 2)).tolist())
    asked = (
        ask(*tables, schema=schema),
        ask(*tables, schema=schema, by=(keys[3],)),
        ask(*tables, schema=schema, where=~(each("b4").is_missing() | each("b0").is_missing())),
        ask(*tables, twice, schema=schema),
    )
    true = sums(plain_engine(rows, schema=schema), *asked)
    assert sums(duck(rows, schema=schema), *asked) == true
    monkeypatch.setattr(proposer, "TOGETHER", 0)
    assert sums(duck(rows, schema=schema), *asked) == true
    monkeypatch.setattr(proposer, "TOGETHER", 2**17)
    monkeypatch.setattr(layout, "_margin", _backwards)
    assert sums(duck(rows, schema=schema), *asked) != true  # control: axes in another order would be seen


def _backwards(counted: np.ndarray, mine: list[int]) -> np.ndarray:
    """The sums of a table for its keys in their own order, whatever order is asked for."""
    return counted.sum(axis=tuple(axis for axis in range(counted.ndim) if axis not in mine)).flatten()


@pytest.mark.parametrize(
    "key",
    [
        OrMissing(Col("city")),
        OrMissing(OrMissing(Col("city"))),
        OrMissing(Each(Col("age"))),
        OrMissing(bins(col("age"), [0, 30, 41])),
        OrMissing(bins(col("pay"), [0, 15, 30])),
    ],
)
def test_rows_that_lack_a_key_have_their_cell(key: RowFn) -> None:
    """Prepared or not, alone or beside another, in one statement with others: the cells of the reference."""
    data = table([("ann", 40, 10.0, "x", "a"), ("bob", 90, 20.5, None, "b"), ("eve", None, None, "y", "c")])
    tallies = (ask(lit(1), by=(key,)), ask(lit(1), by=(key, col("city"))), ask(lit(1), col("pay"), by=(col("city"),)))
    want = sums(plain_engine(data), *tallies)
    for prepared in (None, False):
        engine = duck(data, prepared=prepared)
        assert [found.open().tolist() for found in engine.sums_of(tallies)] == want
        assert sums(engine, *tallies) == want
