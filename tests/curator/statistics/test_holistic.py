"""The table of statistics: complete, total, the same in any order of rows, and of the shapes it says (conformance)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.curator.statistics import holistic
from sulq.terms import statistic as terms
from sulq.terms.engine import Block
from sulq.terms.plan import Whole
from sulq.terms.rowfn.scalar import Col
from sulq.terms.space import Box, Cube
from tests.curator.statistics.small_graphs import blocks

GRAPH = terms.Graph("u", "v", "w")
ASKED = {
    terms.MinCut: terms.MinCut(GRAPH),
    terms.SpanningTree: terms.SpanningTree(GRAPH),
    terms.Triangles: terms.Triangles(GRAPH, 3),
    terms.Degrees: terms.Degrees(GRAPH, 4),
    terms.Edges: terms.Edges(GRAPH),
    terms.ToConnected: terms.ToConnected(GRAPH),
    terms.ToBoundedDegree: terms.ToBoundedDegree(GRAPH, 1),
    terms.ToUnique: terms.ToUnique(("u", "v", "w")),
    terms.ToSorted: terms.ToSorted("u"),
    terms.Occurring: terms.Occurring(("u", "v", "w")),
}


def whole(kind: type, space: object = None) -> tuple[Whole, tuple[Block, ...]]:
    own = blocks(6, 4)
    if kind is terms.ToSorted:
        own = (Block(Col("place"), Fraction(1), (0,), (2**40,), vector=False), own[0])
    figure = holistic.STATISTICS[kind].figure(ASKED[kind], own, 1)
    return Whole(ASKED[kind], figure.step, figure.width, space), own


def rows(kind: type, rng: np.random.Generator, size: int) -> np.ndarray:
    if kind is terms.ToSorted:
        return np.column_stack([rng.permutation(size), rng.integers(0, 6, size)])
    return np.column_stack([rng.integers(0, 6, (size, 2)), rng.integers(0, 5, size)])


def test_every_statistic_of_the_language_is_worked_out_somewhere() -> None:
    """Two need functions that the owner names, one needs no row; all others are in the table, and nothing else is."""
    apart = {terms.Aggregated, terms.Certified, terms.HeavyPersons}
    assert set(holistic.STATISTICS) == set(terms.STATISTICS) - apart == set(ASKED)


@pytest.mark.parametrize("kind", holistic.STATISTICS, ids=lambda kind: kind.__name__)
def test_a_statistic_is_total_and_has_no_order(kind: type) -> None:
    """No rows, one, many: defined, of the stated width, the same in any order; within its move as a row comes."""
    rng = np.random.default_rng(9)
    bound, own = whole(kind)
    figure = holistic.STATISTICS[kind].figure(ASKED[kind], own, 1)
    for size in (0, 1, 2, 30):
        table = rows(kind, rng, size)
        found = holistic.exact(bound, own, table, {})
        assert found.shape == (1, bound.width)
        assert found.dtype == np.int64
        assert (found == holistic.exact(bound, own, table[rng.permutation(size)], {})).all()
        if size:
            assert np.abs(found - holistic.exact(bound, own, table[1:], {})).sum() <= figure.alone.l1


def test_a_space_gives_distances_and_the_cube_gives_bits() -> None:
    """Minus the distance of each point; bits as they are."""
    bound, own = whole(terms.ToConnected, Box(0, 7))
    table = np.array([(0, 1, 4)])
    assert holistic.exact(bound, own, table, {}).tolist() == [[-4, -3, -2, -1, 0, -1, -2, -3]]
    bound, own = whole(terms.Edges, Cube())
    assert set(holistic.exact(bound, own, table, {}).ravel().tolist()) == {0, 1}
    bound, own = whole(terms.ToConnected, Box())
    assert holistic.exact(bound, own, table, {}).tolist() == [[4]]


def test_a_statistic_of_another_shape_than_planned_is_an_error() -> None:
    """What would show a row by its shape never reaches the noise."""
    bound, own = whole(terms.Edges)
    with pytest.raises(TypeError):
        holistic.exact(Whole(bound.statistic, bound.step, bound.width + 1), own, np.zeros((0, 3), dtype=np.int64), {})
    with pytest.raises(LookupError):
        holistic.exact(Whole(terms.Certified("f", ("a",)), Fraction(1), 1), own, np.zeros((0, 2), dtype=np.int64), {})
