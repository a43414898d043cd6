"""Spanning trees: exact on small graphs, one row moves them by one and an exchange by two (S4.12)."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pytest

from sulq.kernel.whole.graphs import Graph, SpanningTree
from tests.kernel.whole.small_graphs import moves, pairs, table, worked_out


def peer(vertices: int, one: int, rows: np.ndarray, *, complete: bool) -> int:
    """The same by networkx: a forest of the edges there are, or a tree where absent pairs weigh 1."""
    graph = Graph(vertices, one=one).edges(rows)
    found = nx.Graph()
    found.add_nodes_from(range(vertices))
    if complete:
        found.add_weighted_edges_from((a, b, one) for a, b in pairs(vertices))
    found.add_weighted_edges_from(zip(*(x.tolist() for x in (graph.low, graph.high, graph.weight)), strict=True))
    return int(sum(data["weight"] for *_, data in nx.minimum_spanning_edges(found)))


@pytest.mark.parametrize("complete", [False, True], ids=["forest", "complete"])
def test_the_weight_is_exact_and_defined_for_every_graph_S4_12(*, complete: bool) -> None:
    """All graphs of four vertices with weights 0, 1/2 and 1 or no edge; of none too: as networkx has it."""
    for weights in itertools.product((None, 0, 1, 2), repeat=6):
        rows = table([(*p, w) for p, w in zip(pairs(4), weights, strict=True) if w is not None], 3)
        found = SpanningTree(Graph(4, one=2), complete).exact(rows)
        assert found.tolist() == [peer(4, 2, rows, complete=complete)]
    assert SpanningTree(Graph(1, one=2), complete).exact(table([], 3)).tolist() == [0]


@pytest.mark.parametrize("complete", [False, True], ids=["forest", "complete"])
def test_brute_force_sensitivity_of_the_tree_is_what_the_plan_says_S4_12(*, complete: bool) -> None:
    """Over all tables of up to four rows on three vertices: 1 as a row comes or goes, 2 as one is exchanged.

    Control: half of it is passed.
    """
    kinds = [(*pair, w) for pair in pairs(3) for w in (0, 1, 2)]
    values = worked_out(lambda rows: SpanningTree(Graph(3, one=2), complete).exact(rows), kinds, 4)
    said = SpanningTree(Graph(3, one=2), complete).figure(1)
    alone, swapped = moves(values, kinds, 1)
    assert (alone[0], swapped[0]) == (said.alone.l1, said.swapped.l1) == (2, 4)
    alone, swapped = moves(values, kinds, 2)
    twice = SpanningTree(Graph(3, one=2), complete).figure(2)
    assert said.alone.l1 < alone[0] <= twice.alone.l1
    assert swapped[0] <= twice.swapped.l1


def test_control_a_tree_that_knows_no_disconnected_graph_is_not_private_S4_12() -> None:
    """Negative control: infinity, or an error, for graphs that are not connected tells neighbours apart for certain."""

    def naive(rows: np.ndarray) -> float:
        graph = nx.Graph()
        graph.add_nodes_from(range(3))
        graph.add_weighted_edges_from(rows.tolist())
        tree = nx.minimum_spanning_edges(graph)
        return sum(data["weight"] for *_, data in tree) if nx.is_connected(graph) else math.inf

    whole, less = table([(0, 1, 1), (1, 2, 1)], 3), table([(0, 1, 1)], 3)
    assert abs(naive(whole) - naive(less)) == math.inf
    ours = [int(SpanningTree(Graph(3, one=2)).exact(rows)[0]) for rows in (whole, less)]
    assert abs(ours[0] - ours[1]) <= 2


def test_random_edits_of_K5_move_the_tree_by_one_at_most_S4_12() -> None:
    """Dagger: on K5 with weights in [0, 1] single edits change the complete graph's tree by at most 1.000."""
    rng = np.random.default_rng(3)
    most = 0
    for _ in range(400):
        weights = np.where(rng.random(10) < 0.6, 1024, rng.integers(0, 1025, 10))
        other = weights.copy()
        other[rng.integers(10)] = rng.choice([0, 1024])
        rows = [np.column_stack([pairs(5), w]) for w in (weights, other)]
        a, b = (int(SpanningTree(Graph(5, one=1024), complete=True).exact(r)[0]) for r in rows)
        most = max(most, abs(a - b))
    assert 0.99 < most / 1024 <= 1.0


def test_it_agrees_with_networkx_on_larger_graphs() -> None:
    """Random graphs of 200 vertices and several parts, weights of 2^22 units; sparse, and with edges to spare.

    In the dense ones most weights are equal, and some vertices have heavy edges alone.
    """
    rng = np.random.default_rng(2)
    for size, heaviest in ((300, 2**22), (3000, 3), (4000, 2**22)):
        rows = np.column_stack([rng.integers(0, 190, (size, 2)), rng.integers(0, heaviest + 1, size)])
        rows[(rows[:, :2] < 9).any(axis=1), 2] = 2**22
        for complete in (False, True):
            found = SpanningTree(Graph(200, one=2**22), complete).exact(rows)
            assert found.tolist() == [peer(200, 2**22, rows, complete=complete)]
