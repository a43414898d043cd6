"""What rounding does to a number that a row function means: bounded, and not by much more than it is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq import Int, Real, col
from sulq.language.domain import Schema
from sulq.language.rowfn import Fill, RowFn
from sulq.select.selection import rounding

GRID = 0.25
SCHEMA = Schema.of("t", {"a": Real(0, 8, grid=GRID), "b": Real(2, 5, grid=GRID), "n": Int(1, 9)})
FUNCTIONS = {
    "a": (col("a"), lambda row: row["a"]),
    "3 a": (col("a") * 3, lambda row: 3 * row["a"]),
    "a / 4": (col("a") / 4, lambda row: row["a"] / 4),
    "a + b": (col("a") + col("b"), lambda row: row["a"] + row["b"]),
    "a - b": (col("a") - col("b"), lambda row: row["a"] - row["b"]),
    "a b": (col("a") * col("b"), lambda row: row["a"] * row["b"]),
    "a / b": (col("a") / col("b"), lambda row: row["a"] / row["b"]),
    "n a": (col("n") * col("a"), lambda row: row["n"] * row["a"]),
    "filled": (Fill(col("a") * 2, 0), lambda row: 2 * row["a"]),
}


def rounded(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Values as a column's grid has them."""
    return np.clip(np.floor(values / GRID + 0.5) * GRID, low, high)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rounded_cells_are_within_the_bound(name: str) -> None:
    """No true value is further from what its rounded cells give; a quarter of the bound is passed (the control)."""
    fn, meant = FUNCTIONS[name]
    rng = np.random.default_rng(1)
    rows = {"a": rng.uniform(0, 8, 200_000), "b": rng.uniform(2, 5, 200_000), "n": rng.integers(1, 10, 200_000)}
    off = np.abs(meant(rows) - meant(rows | {"a": rounded(rows["a"], 0, 8), "b": rounded(rows["b"], 2, 5)}))
    bound = float(rounding(fn, SCHEMA))
    assert off.max() <= bound
    assert off.max() > bound / 4


@pytest.mark.parametrize("fn", [col("n"), col("n") * 2], ids=["n", "2 n"])
def test_whole_numbers_are_what_they_are(fn: RowFn) -> None:
    """But for what doubles round."""
    assert rounding(fn, SCHEMA) < Fraction(1, 10**9)
