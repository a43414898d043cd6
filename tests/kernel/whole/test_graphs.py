"""Rows as edges: vertices from declarations, pairs either way round, weights cut off, and again when added (SR10)."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.kernel.facts import Refused
from sulq.kernel.whole.graphs import Graph, MinCut, SpanningTree
from tests.kernel.whole.small_graphs import table


def test_vertices_are_the_declared_ones_SR10() -> None:
    """The number of vertices follows from the declaration, whatever rows there are, none among them."""
    public = Graph(7, 3, 4)
    assert (public.vertices, public.units, public.pairs) == (7, 4, 21)
    assert public.edges(table([], 3)).graph == public


def test_parallel_rows_add_up_to_one_at_most_SR10() -> None:
    """Rows of a pair, either way round, are one edge; weights are cut off for each row, and then for the pair."""
    rows = table([(1, 0, 1), (0, 1, 1), (2, 1, 3), (1, 2, 9), (2, 2, 4), (3, 2, -5)], 3)
    found = Graph(4, one=4).edges(rows)
    assert list(zip(found.low, found.high, found.weight, strict=True)) == [(0, 1, 2), (1, 2, 4), (2, 3, 0)]
    assert found.degrees().tolist() == [1, 2, 2, 1]


def test_an_edge_without_a_weight_column_weighs_one() -> None:
    """Each pair once, of weight 1, however often rows name it; numbers are counted from the lowest vertex."""
    found = Graph(3, 5).edges(table([(5, 6), (6, 5), (7, 6)], 2))
    assert found.low.tolist() == [0, 1]
    assert found.high.tolist() == [1, 2]
    assert found.weight.tolist() == [1, 1]


def test_many_rows_are_the_same_graph_in_any_order() -> None:
    """The order of rows changes nothing."""
    rng = np.random.default_rng(5)
    rows = np.column_stack([rng.integers(0, 30, (500, 2)), rng.integers(0, 9, 500)])
    first, second = (Graph(30, one=8).edges(given) for given in (rows, rows[rng.permutation(500)]))
    assert all((getattr(first, n) == getattr(second, n)).all() for n in ("low", "high", "weight"))


def test_what_names_no_vertex_is_no_edge_SR10() -> None:
    """A number out of bounds, however far, leaves its own row out and no other."""
    rows = table([(5, 6), (4, 5), (7, 8), (-(2**62), 5), (6, 2**62)], 2)
    found = Graph(3, 5).edges(rows)
    assert list(zip(found.low, found.high, strict=True)) == [(0, 1)]


def test_rows_whose_weights_pass_64_bits_together_weigh_one_SR10() -> None:
    """However many rows of a pair there are, they are cut off at one; control: added in 64 bits they are nothing."""
    graph = Graph(2, one=2**58)
    rows = table([(0, 1, 2**58)] * 64, 3)
    assert rows[:, 2].sum() == 0
    assert graph.edges(rows).weight.tolist() == [2**58]
    most = SpanningTree(Graph(2, one=2**53)).figure(1).alone.l1
    rows = table([(0, 1, 2**53)] * 2**11, 3)
    values = [int(SpanningTree(Graph(2, one=2**53)).exact(rows[:n])[0]) for n in (0, 1, 2**10, 2**11 - 1, 2**11)]
    assert values == [0, most, most, most, most]


@pytest.mark.parametrize("numbers", [(0,), (2.0,), (True,), (2, 0, 0), (2, 0.5), (2**20, 0, 2**31), (2**32,)])
def test_numbers_that_no_graph_has_are_refused(numbers: tuple) -> None:
    """Fractions, truth values, nothing at all, and more than 64 bits tell apart."""
    with pytest.raises(Refused):
        Graph(*numbers)


def test_weights_that_doubles_do_not_hold_are_refused() -> None:
    """A cut adds all pairs, a tree compares single weights; control: one unit less is not."""
    with pytest.raises(Refused):
        MinCut(Graph(3, one=2**53 // 3 + 1)).figure(1)
    assert MinCut(Graph(3, one=2**53 // 3)).figure(1).alone.l1 == 2**53 // 3
    with pytest.raises(Refused):
        SpanningTree(Graph(3, one=2**53 + 1)).figure(1)
