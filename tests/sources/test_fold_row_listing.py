"""Rows as integers: what counts, in whole units, the same on every engine."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from sulq import Unit, col
from sulq.language.domain import Int, Schema, Vertices
from sulq.language.relation import Table
from sulq.language.rowfn import Bucket, Col, Position
from sulq.language.tally import BLANK, Block, Tally
from sulq.sources.fold import listed
from sulq.testing import neighbours
from tests.loaded import loaded
from tests.privacy.cases import KEY, seeded
from tests.sources.cases import open_engine

COLUMNS = dict(neighbours.COLUMNS)


def tally(*names: str, where: object = None, first: object = None) -> Tally:
    own = [Block(Col(n), COLUMNS[n].step, (COLUMNS[n].low,), (COLUMNS[n].high,), vector=False) for n in names]
    head = [] if first is None else [Block(first, Fraction(1), (0,), (2**40,), vector=False)]
    return Tally(Table(), (*head, *own), where, (), 1)


@pytest.mark.parametrize(
    ("unit", "asked"),
    [
        (Unit(), tally("age", "gain")),
        (Unit("pid", 2), tally("code", "city", where=col("flag"))),
        (Unit("pid", 2), tally("score", first=Bucket(5, 3))),
        (Unit(None, 1, "zero_out"), tally("day", first=Position())),
        (Unit(None, 1, "replace_one"), tally("moment", "debt", where=col("gain") > 5, first=Position())),
    ],
)
def test_engines_list_the_same_rows(unit: Unit, asked: Tally) -> None:
    """DuckDB, prepared or not, and memory give the same integers, order aside; generated rows with all bad cells."""
    rng = seeded(f"listed {unit}")
    for _ in range(5):
        rows = neighbours.table(rng, unit, 8)
        found = []
        for kind, prepared in (("memory", None), ("duckdb", None), ("duckdb", False)):
            source = open_engine(
                neighbours.arrow(rows), schema=neighbours.SCHEMA, unit=unit, key=KEY, space="t", engine=kind,
                prepared=prepared,
            )  # fmt: skip
            table = source.listed(asked).open()
            source.close()
            assert table.dtype == np.int64
            assert table.shape[1] == len(asked.blocks)
            found.append(sorted(map(tuple, table.tolist())))
        assert found[0] == found[1] == found[2]


def test_rows_with_a_missing_value_or_an_unknown_condition_do_not_count() -> None:
    """Control: without the condition more rows count."""

    class Rows:
        schema, size, seen = neighbours.SCHEMA, 4, {}

        def codes(self, name: str) -> object:
            from sulq.language.kinds import Cells

            values = {"age": [1, 2, 3, 999], "flag": [1, 1, 0, 1]}[name]
            gone = {"age": [False, True, False, False], "flag": [False, False, False, True]}[name]
            return Cells(np.array(values), np.array(gone))

    assert listed(tally("age"), Rows()).tolist() == [[1], [3], [100]]  # clamped to its bounds
    assert listed(tally("age", where=col("flag")), Rows()).tolist() == [[1]]
    blanks = listed(tally("age", "flag"), Rows(), blanks=True)
    assert blanks.tolist() == [[1, 1], [BLANK, 1], [3, 0], [100, BLANK]]  # as many rows as there are


@pytest.mark.parametrize("unit", [Unit(None, 1, "zero_out"), Unit(None, 1, "replace_one")], ids=str)
def test_with_blanks_every_row_is_listed_in_its_place_S4_13(unit: Unit) -> None:
    """As many as there are, whatever they lack, on every engine; control: without blanks there are fewer."""
    rng = seeded(f"blanks {unit}")
    fewer = 0
    for number in range(5):
        rows = neighbours.table(rng, unit, 8)
        for i in (0, 3, len(rows) - 1)[: 2 * number]:  # blanked ones too, the first and the last among them
            rows[i] |= dict.fromkeys(COLUMNS)
        asked = tally("gain", "city", first=Position())
        found = []
        for kind, prepared in (("memory", None), ("duckdb", None), ("duckdb", False)):
            source = open_engine(
                neighbours.arrow(rows), schema=neighbours.SCHEMA, unit=unit, key=KEY, space="t", engine=kind,
                prepared=prepared,
            )  # fmt: skip
            table = source.listed(asked, blanks=True).open()
            fewer += len(source.listed(asked).open()) < len(rows)
            source.close()
            assert sorted(table[:, 0].tolist()) == list(range(len(rows)))
            found.append(sorted(map(tuple, table.tolist())))
        assert found[0] == found[1] == found[2]
        cities = [row["city"] for row in rows]
        assert all((found[0][i][2] == BLANK) == (city not in COLUMNS["city"].values) for i, city in enumerate(cities))
    assert fewer


CELLS = {
    "whole": pa.array([3, 5, 2, 6, -1, 2**63 - 1, None, 4], pa.int64()),
    "wide": pa.array([3, 5, 2, 6, 2**63, 2**64 - 1, None, 4], pa.uint64()),
    "number": pa.array([3.0, 5.0, 2.0, 6.0, 4.5, float("nan"), float("inf"), 4.0], pa.float64()),
    "text": pa.array(["3", " 5 ", "2", "6", "4.5", "x", None, "4"], pa.string()),
    "truth": pa.array([True, False, None, True, True, False, None, True], pa.bool_()),
}


@pytest.mark.parametrize("kind", CELLS)
def test_a_number_that_is_no_vertex_is_missing_and_never_clamped_SR10(kind: str) -> None:
    """Of vertices 3 to 5 those cells count that are one, in every kind of source column, on every engine.

    Control: the same column as an Int puts what is outside onto its bounds.
    """
    data = pa.table({"u": CELLS[kind]})
    low, high = (0, 0) if kind == "truth" else (3, 5)
    listings: dict[type, list[list[int]]] = {Vertices: [], Int: []}
    for column in (Vertices(low, high), Int(low, high + (kind == "truth"))):
        block = Block(Col("u"), Fraction(1), (column.low,), (column.high,), vector=False)
        for engine, prepared in (("memory", None), ("duckdb", None), ("duckdb", False), ("postgres", None)):
            schema = Schema("data", (("u", column),))
            given = loaded(data) if engine == "postgres" else data
            source = open_engine(
                given, schema=schema, unit=Unit(), key=KEY, space="t", engine=engine, prepared=prepared
            )
            table = source.listed(Tally(Table(), (block,), None, (), 1)).open()
            sums = source.sums(Tally(Table(), (block,), None, (), 1)).open()
            source.close()
            assert sums.tolist() == [[table.sum()]]
            listings[type(column)].append(sorted(table[:, 0].tolist()))
    expected = [0, 0] if kind == "truth" else [3, 4, 5]
    assert listings[Vertices] == [expected] * 4
    assert listings[Int] == [listings[Int][0]] * 4
    assert len(listings[Int][0]) > len(expected)
