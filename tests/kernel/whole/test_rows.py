"""Distances from a property: exact by brute force over all tables near, one row moves them by one (S4.11)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

from sulq.kernel.whole.graphs import Graph, ToBoundedDegree, ToConnected
from sulq.kernel.whole.rows import ToSorted, ToUnique
from tests.kernel.whole.small_graphs import graphs, moves, pairs, table, worked_out

Pairs = frozenset[tuple[int, int]]


def nearest(vertices: int, holds: Callable[[Pairs], bool]) -> dict[Pairs, int]:
    """The Hamming distance of every graph from those that have a property, by looking at all of them."""
    every = list(graphs(vertices))
    good = [graph for graph in every if holds(graph)]
    return {graph: min(len(graph ^ other) for other in good) for graph in every}


def connected(graph: Pairs, vertices: int = 4) -> bool:
    peer = nx.Graph(list(graph))
    peer.add_nodes_from(range(vertices))
    return nx.is_connected(peer)


def test_the_distance_from_connected_is_exact_S4_11() -> None:
    """By brute force over all graphs of four vertices; and it is one less than the parts."""
    for graph, far in nearest(4, connected).items():
        assert ToConnected(Graph(4)).exact(table(graph, 2)).tolist() == [far]


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_the_distance_from_bounded_degree_is_exact_S4_11(degree: int) -> None:
    """By brute force over all graphs of five vertices: the matching behind it finds the fewest edges that must go."""
    bounded = {
        graph: max((sum(v in pair for pair in graph) for v in range(5)), default=0) <= degree for graph in graphs(5)
    }
    good = [graph for graph, ok in bounded.items() if ok]
    for graph in bounded:
        far = min(len(graph - other) for other in good if other <= graph)  # adding an edge never helps
        found = ToBoundedDegree(Graph(5), degree).exact(table(graph, 2))
        assert found.tolist() == [far]


def test_the_distance_from_bounded_degree_on_a_larger_graph() -> None:
    """Of random graphs of 12 vertices, against a largest matching: for a bound of 1 all edges but those go."""
    rng = np.random.default_rng(8)
    for _ in range(10):
        graph = {pair for pair in pairs(12) if rng.random() < 0.4}
        kept = nx.max_weight_matching(nx.Graph(list(graph)), maxcardinality=True)
        found = ToBoundedDegree(Graph(12), 1).exact(table(graph, 2))
        assert found.tolist() == [len(graph) - len(kept)]


@pytest.mark.parametrize(
    "asked",
    [ToConnected(Graph(4)), ToBoundedDegree(Graph(4), 1), ToBoundedDegree(Graph(4), 2)],
    ids=["connected", "bounded by 1", "bounded by 2"],
)
def test_brute_force_sensitivity_of_graph_distances_S4_11(asked: ToConnected | ToBoundedDegree) -> None:
    """All tables of up to six rows over four vertices, parallel rows among them: 1 for a row, 1 for an exchange.

    Control: nothing less would do; of D = 2, from a circle of four edges to all six.
    """
    values = worked_out(asked.exact, pairs(4), 6)
    for k in (1, 2):
        said = asked.figure(k)
        alone, swapped = moves(values, pairs(4), k)
        assert (alone[0], swapped[0]) == (said.alone.l1, said.swapped.l1) == (k, k)


def test_the_distance_from_a_key_is_exact_and_moves_by_one_S4_11() -> None:
    """All tables of up to four rows of three values: the fewest whose going leaves different ones; it moves by 1."""
    kinds = [(0,), (1,), (2,)]
    asked = ToUnique(1)
    values = worked_out(asked.exact, kinds, 4)
    for rows, (found,) in values.items():
        kept = max(n for n in range(len(rows) + 1) for c in itertools.combinations(rows, n) if len(set(c)) == n)
        assert found == len(rows) - kept
    for k in (1, 2):
        said = asked.figure(k)
        alone, swapped = moves(values, kinds, k)
        assert (alone[0], swapped[0]) == (said.alone.l1, said.swapped.l1) == (k, k)


def test_the_distance_from_order_is_exact_and_moves_by_one_S4_11() -> None:
    """All tables of four places, three values or blank: one place changed or blanked moves it by one, and does."""
    asked = ToSorted()

    def found(values: tuple[int | None, ...]) -> int:
        rows = [(i, v) for i, v in enumerate(values) if v is not None]
        return int(asked.exact(table(rows[::-1], 2))[0])  # an engine's order is none

    far = {values: found(values) for values in itertools.product((0, 1, 2, None), repeat=4)}
    for values, away in far.items():
        there = [v for v in values if v is not None]
        kept = max(n for n in range(len(there) + 1) for c in itertools.combinations(there, n) if list(c) == sorted(c))
        assert away == len(there) - kept
    gaps = [
        abs(far[a] - far[b])
        for a, b in itertools.combinations(far, 2)
        if sum(x != y for x, y in zip(a, b, strict=True)) == 1
    ]
    assert max(gaps) == 1 == asked.figure(1).swapped.l1


def test_an_approximate_distance_may_move_by_anything_S4_11() -> None:
    """Trap 9, control: a greedy matching is within a factor of two of the largest, and one edge moves it by more."""

    def greedy(rows: list[tuple[int, int]]) -> int:
        seen: set[int] = set()
        for a, b in rows:
            if a not in seen and b not in seen:
                seen |= {a, b}
        return len(rows) - len(seen) // 2

    stars = [(10 * s, 10 * s + 1) for s in range(3)]
    path = [(1, 2), (0, 1), (2, 3)]
    assert greedy(path) - greedy(path[1:]) == 2  # one edge more, two more to go
    assert greedy(stars) == 0
    exact = [int(ToBoundedDegree(Graph(4), 1).exact(table(r, 2))[0]) for r in (path, path[1:])]
    assert exact[0] - exact[1] == 1


def test_the_distance_from_a_code_moves_by_one_and_no_sample_tells_it_S4_14() -> None:
    """S4.14: the distance from a Reed-Solomon code (5 symbols of GF(5), polynomials of degree below 3) moves by one.

    Yet any three symbols are those of a codeword: no algorithm that reads so few tells words of the code from words at
    distance 2. So low sensitivity does not give low sample complexity: the converse of Lemma 1 fails.
    """
    p, size, dimension = 5, 5, 3  # all 5^5 words are looked at
    powers = np.array([[pow(x, e, p) for e in range(dimension)] for x in range(size)])
    codes = np.array(list(itertools.product(range(p), repeat=dimension))) @ powers.T % p
    words = np.array(list(itertools.product(range(p), repeat=size)))
    far = (words[:, None, :] != codes[None]).sum(axis=2).min(axis=1)
    place = {tuple(word): i for i, word in enumerate(words.tolist())}
    for word, own in zip(words.tolist(), far.tolist(), strict=True):
        for i, symbol in itertools.product(range(size), range(p)):
            other = [*word[:i], symbol, *word[i + 1 :]]
            assert abs(own - int(far[place[tuple(other)]])) <= 1
    assert far.max() == size - dimension
    for places in itertools.combinations(range(size), dimension):
        assert len({tuple(code) for code in codes[:, places].tolist()}) == p**dimension


def test_the_distance_from_order_moves_by_one_whatever_orders_the_rows_S4_11() -> None:
    """All tables of up to four rows of two numbers, places equal or not: a row more moves it by one, and an exchange.

    Control: rows of one place in the order in which an engine lists them may move it by more than the rows do.
    """
    kinds = [(place, value) for place in (0, 1) for value in (0, 1, 2)]
    values = worked_out(lambda rows: ToSorted().exact(rows), kinds, 4)
    for k in (1, 2):
        said = ToSorted().figure(k)
        alone, swapped = moves(values, kinds, k)
        assert (alone[0], swapped[0]) == (said.alone.l1, said.swapped.l1) == (k, k)
    upside_down = table([(0, 2), (0, 1), (0, 0)], 2)
    assert ToSorted().exact(upside_down).tolist() == ToSorted().exact(upside_down[::-1]).tolist() == [0]
