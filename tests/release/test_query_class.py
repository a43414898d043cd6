"""Row functions on the cells of a small domain: the same as on rows, on a grid, or refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sulq
from sulq import col
from sulq.language.domain import Schema
from sulq.release.query_class import QueryClass
from sulq.release.space import CellSpace
from tests.learn.cases import refused

SCHEMA = Schema.of("t", {"age": sulq.Int(0, 9), "city": ["H", "L", "Y"], "a": sulq.Bool(missing=False)})
SPACE = CellSpace.of(["age", "city", "a"], SCHEMA, 5)  # ages two by two


@pytest.mark.parametrize(
    ("fn", "plain"),
    [
        (col("age") >= 4, lambda row: row[0] >= 4),
        ((col("city") == "L") & ~col("a"), lambda row: row[1] == "L" and not row[2]),
        (col("a") * 0.25 + (col("age") < 2) * 0.5, lambda row: 0.25 * row[2] + 0.5 * (row[0] < 2)),
        (sulq.lit(0.2), lambda _: 0.2),
        (col("city").isin(["H", "Y"]), lambda row: row[1] != "L"),
        ((col("age") / 0).clip(0, 1), lambda _: 0),
    ],
)
def test_cells_say_what_rows_say_S3_32(fn: object, plain: object) -> None:
    """For each cell, and each of its values, the row function in plain Python."""
    found = QueryClass.of({"q": fn}, SPACE, SCHEMA)
    for cell, (interval, city, a) in enumerate(itertools.product(range(5), "HLY", (False, True))):
        for age in (2 * interval, 2 * interval + 1):
            assert found.units[0, cell] / found.grid == pytest.approx(float(plain((age, city, a))))
    assert found.boolean is bool(np.isin(found.units / found.grid, (0, 1)).all())


def test_the_grid_is_the_common_one_S3_32() -> None:
    """Halves and thirds are sixths; what lies on no grid of one over 10,000 is refused."""
    both = {"half": col("a") * 0.5, "third": col("a") * 1 / 3}
    assert QueryClass.of(both, SPACE, SCHEMA).grid == 6
    refused("bad-parameter", QueryClass.of, {"q": col("a") * 0.123456}, SPACE, SCHEMA)
    refused("bad-parameter", QueryClass.of, {"q": col("age") == 3}, SPACE, SCHEMA)
