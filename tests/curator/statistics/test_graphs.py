"""Rows as edges: vertices from declarations, pairs either way round, weights cut off, and again when added (SR10)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.curator.statistics.graphs import edges, frame
from sulq.errors import QuestionError
from sulq.terms.engine import Block
from sulq.terms.rowfn.scalar import Col
from tests.curator.statistics.small_graphs import blocks, table


def test_SR10_vertices_are_the_declared_ones() -> None:
    """The number of vertices follows from the declaration, whatever rows there are, none among them."""
    public = frame(blocks(7, 4, low=3))
    assert (public.vertices, public.one, public.pairs, public.step) == (7, 4, 21, Fraction(1, 4))
    assert edges(blocks(7, 4), table([], 3)).frame == frame(blocks(7, 4))


def test_SR10_parallel_rows_add_up_to_one_at_most() -> None:
    """Rows of a pair, either way round, are one edge; weights are cut off for each row, and then for the pair."""
    rows = table([(1, 0, 1), (0, 1, 1), (2, 1, 3), (1, 2, 9), (2, 2, 4), (3, 2, -5)], 3)
    found = edges(blocks(4, 4), rows)
    assert list(zip(found.low, found.high, found.weight, strict=True)) == [(0, 1, 2), (1, 2, 4), (2, 3, 0)]
    assert found.degrees().tolist() == [1, 2, 2, 1]


def test_an_edge_without_a_weight_column_weighs_one() -> None:
    """Each pair once, of weight 1, however often rows name it; numbers are counted from the lowest vertex."""
    found = edges(blocks(3, low=5), table([(5, 6), (6, 5), (7, 6)], 2))
    assert found.low.tolist() == [0, 1]
    assert found.high.tolist() == [1, 2]
    assert found.weight.tolist() == [1, 1]


def test_a_weight_on_a_grid_coarser_than_one_is_refused() -> None:
    """A unit of weight must go into 1."""
    wide = Block(Col("w"), Fraction(2), (0,), (10,), vector=False)
    with pytest.raises(QuestionError) as refused:
        frame((*blocks(3), wide))
    assert refused.value.code == "wrong-kind"
    with pytest.raises(QuestionError) as refused:
        frame(blocks(2**20, 2**31))  # pair and weight must go into one whole number
    assert refused.value.code == "too-large"


def test_many_rows_are_the_same_graph_in_any_order() -> None:
    """The order of rows changes nothing."""
    rng = np.random.default_rng(5)
    rows = np.column_stack([rng.integers(0, 30, (500, 2)), rng.integers(0, 9, 500)])
    first, second = (edges(blocks(30, 8), given) for given in (rows, rows[rng.permutation(500)]))
    assert all((getattr(first, n) == getattr(second, n)).all() for n in ("low", "high", "weight"))
