"""Counts of vertices by edges, and pairs as bits: exact, and of the stated sensitivity in every norm (SR10)."""

from __future__ import annotations

from sulq.kernel.whole.graphs import Degrees, Edges, Graph
from tests.kernel.whole.small_graphs import far, graphs, moves, pairs, table, worked_out


def test_counts_of_vertices_are_exact_on_all_graphs_of_five() -> None:
    """How many have at least 1, 2, 3 edges, isolated vertices none."""
    for graph in graphs(5):
        own = [sum(v in pair for pair in graph) for v in range(5)]
        found = Degrees(Graph(5), 3).exact(table(graph, 2))
        assert found.tolist() == [sum(d >= n for d in own) for n in (1, 2, 3)]


def test_brute_force_sensitivity_of_degrees_in_every_norm_SR10() -> None:
    """All tables of up to four rows on five vertices stay within what the plan says, k of 1 and 2; a row reaches it.

    Coordinates are L1, squared L2, the largest count's move, and how many counts move. Control: as a row reaches each
    of them, one unit less in any would be passed.
    """
    kinds = pairs(5)
    asked = Degrees(Graph(5), 4)
    values = worked_out(asked.exact, kinds, 4)
    for k in (1, 2):
        said = asked.figure(k)
        alone, swapped = moves(values, kinds, k)
        for found, move in ((alone, said.alone), (swapped, said.swapped)):
            assert all(a <= b for a, b in zip(found, (move.l1, move.l2_squared, move.most, move.bits), strict=True))
        if k == 1:
            assert alone == (said.alone.l1, said.alone.l2_squared, said.alone.most, said.alone.bits) == (2, 4, 2, 2)


def far_apart(common: list[tuple[int, int]], gone: list[tuple[int, int]], come: list[tuple[int, int]]) -> tuple:
    """How far counts of twenty vertices move as some rows go and others come."""
    asked = Degrees(Graph(20), 6)
    first, second = (tuple(asked.exact(table([*common, *more], 2)).tolist()) for more in (gone, come))
    return far(first, second)


def test_the_sensitivity_of_degrees_is_reached_in_every_norm_SR10() -> None:
    """A pair of neighbours for each norm that the plan states, for a row and for two, alone and exchanged.

    Isolated edges move the first count by two; edges among vertices of one edge the second; an edge between
    vertices of different degrees two counts. Control: in no norm would a plan of one unit less do.
    """
    halves = [(0, 1), (2, 3)]  # of vertices that have no other edge
    pairs_of_one = [(4, 5), (6, 7)]
    crossing = [(4, 6), (5, 7)]  # takes four vertices from one edge to two
    star = [(8, v) for v in (9, 10)] + [(11, v) for v in (12, 13, 14)]  # degrees 2 and 3
    fresh = [(15, 16)]
    for k in (1, 2):
        said = Degrees(Graph(20), 6).figure(k)
        alone = far_apart([], [], halves[:k])
        assert alone[:3] == (said.alone.l1, said.alone.l2_squared, said.alone.most) == (2 * k, 4 * k**2, 2 * k)
        swapped = far_apart(pairs_of_one, halves[:k], crossing[:k])
        assert swapped[:3] == (said.swapped.l1, said.swapped.l2_squared, said.swapped.most) == (4 * k, 8 * k**2, 2 * k)
    said = Degrees(Graph(20), 6).figure(1)
    spread = far_apart([*star, *fresh], [(8, 11)], [(15, 17)])  # counts 3 and 4 fall, 1 and 2 rise
    assert spread == (4, 4, 1, 4)
    assert spread[3] == said.swapped.bits


def test_pairs_as_bits_are_exact_and_move_one_by_one() -> None:
    """A bit for each pair in order; one row moves one, an exchange two; control: an exchange moves more than one."""
    for graph in graphs(4):
        found = Edges(Graph(4)).exact(table(graph, 2))
        assert found.tolist() == [int(pair in graph) for pair in pairs(4)]
    values = worked_out(lambda rows: Edges(Graph(4)).exact(rows), pairs(4), 3)
    for k in (1, 2):
        said = Edges(Graph(4)).figure(k)
        alone, swapped = moves(values, pairs(4), k)
        assert alone == (said.alone.l1, said.alone.l2_squared, said.alone.most, said.alone.bits)
        assert swapped[3] <= said.swapped.bits
        if k == 1:
            assert swapped[3] == said.swapped.bits == 2
    assert Edges(Graph(1)).exact(table([], 2)).tolist() == [0]
