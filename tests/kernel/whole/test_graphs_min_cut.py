"""Minimum cuts: exact on all small graphs, one edge moves them by one (S4.12)."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np

from sulq.kernel.whole.graphs import Graph, MinCut
from tests.kernel.whole.small_graphs import graphs, moves, pairs, table, worked_out


def by_definition(vertices: int, weights: dict[tuple[int, int], int]) -> int:
    """The least weight between a set that holds vertex 0 and the rest, over all of them; 0 of one vertex."""
    rest = range(1, vertices)
    sides = (set(s) | {0} for n in range(vertices - 1) for s in itertools.combinations(rest, n))
    return min((sum(w for (a, b), w in weights.items() if (a in s) != (b in s)) for s in sides), default=0)


def test_the_cut_is_exact_on_all_graphs_of_five_vertices_S4_12() -> None:
    """Disconnected graphs and a single vertex are defined: 0, never an error."""
    for vertices in (1, 2, 3, 4, 5):
        for graph in graphs(vertices):
            found = MinCut(Graph(vertices)).exact(table(graph, 2))
            assert found.tolist() == [by_definition(vertices, dict.fromkeys(graph, 1))]


def test_brute_force_sensitivity_of_the_cut_is_what_the_plan_says_S4_12() -> None:
    """Over all tables of up to four rows on three vertices, weights 0, 1/2 and 1, parallel rows among them: exactly 1.

    In every relation, since it is monotone, and k times that for k rows. Control: half of it is passed.
    """
    kinds = [(*pair, w) for pair in pairs(3) for w in (0, 1, 2)]
    values = worked_out(lambda rows: MinCut(Graph(3, one=2)).exact(rows), kinds, 4)
    for k in (1, 2):
        said = MinCut(Graph(3, one=2)).figure(k)
        alone, swapped = moves(values, kinds, k)
        assert (alone[0], swapped[0]) == (said.alone.l1, said.swapped.l1) == (2 * k, 2 * k)
        assert alone[0] > said.alone.l1 // 2  # a halved sensitivity would not do


def test_random_edits_of_K5_move_the_cut_by_one_at_most_S4_12() -> None:
    """Dagger: on K5 with weights in [0, 1] single edits reach a change of 1.000; control: unclipped weights pass it."""
    rng = np.random.default_rng(7)
    most = wild = 0.0
    for _ in range(400):
        weights = rng.integers(0, 1025, len(pairs(5)))
        weights[rng.random(len(weights)) < 0.9] = 1024
        other = weights.copy()
        other[rng.integers(len(weights))] = rng.choice([0, 1024])
        rows = [np.column_stack([pairs(5), w]) for w in (weights, other)]
        a, b = (int(MinCut(Graph(5, one=1024)).exact(r)[0]) for r in rows)
        most = max(most, abs(a - b) / 1024)
        free = [by_definition(5, dict(zip(pairs(5), (3 * r[:, 2]).tolist(), strict=True))) for r in rows]
        wild = max(wild, abs(free[0] - free[1]) / 1024)
    assert most == 1.0
    assert wild == 3.0


def test_it_agrees_with_networkx_on_random_graphs() -> None:
    """Weighted graphs of up to 30 vertices, connected or not; weights of 2^22 units, added without rounding."""
    rng = np.random.default_rng(11)
    for _ in range(20):
        size, one = int(rng.integers(5, 30)), 2**22
        rows = np.column_stack([rng.integers(0, size, (4 * size, 2)), rng.integers(0, one + 1, 4 * size)])
        graph = Graph(size, one=one).edges(rows)
        peer = nx.Graph()
        peer.add_nodes_from(range(size))
        peer.add_weighted_edges_from(zip(*(x.tolist() for x in (graph.low, graph.high, graph.weight)), strict=True))
        expected = nx.stoer_wagner(peer)[0] if nx.is_connected(peer) else 0
        assert MinCut(Graph(size, one=one)).exact(rows).tolist() == [expected]
