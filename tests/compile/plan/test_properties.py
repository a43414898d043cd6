"""Properties of small tables: every table is asked of, once, from public facts; what is too many is refused (S4.28)."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from sulq.compile.plan import properties
from sulq.compile.plan.properties import MAX_TABLES, members
from sulq.errors import SetupError
from sulq.kernel.whole import graphs
from sulq.kernel.whole.asked import Asked, exact
from sulq.kernel.whole.graphs import Edges
from sulq.kernel.whole.metric import Nearest
from sulq.language.domain import Bool, Category, Int, Real, Schema, Vertices
from sulq.language.estimator import Property
from sulq.language.facts import TableFacts
from sulq.language.privacy import Unit
from sulq.language.statistic import Graph
from tests.figures import figure

COLUMNS = (("a", Int(2, 3)), ("b", Category(("x", "y", "z"))), ("c", Real(0, 1, grid=0.5)), ("yes", Bool()))
TABLE = TableFacts(Schema("t", COLUMNS))


def graph(vertices: int) -> TableFacts:
    ends = Vertices(1, vertices)
    return TableFacts(Schema("t", (("u", ends), ("v", ends))), graph=Graph("u", "v"))


@pytest.mark.parametrize("neighbors", ["add_remove", "zero_out", "replace_one"])
def test_every_table_is_asked_of_once_S4_28(neighbors: str) -> None:
    """All multisets of up to three rows of six cells; of exactly three where rows are exchanged.

    Each is told as its rows' values, and kept as how many rows each combination has, the last column's fastest.
    """
    seen: list[np.ndarray] = []
    found = members(
        "own", Property(("a", "b"), 3), lambda rows: seen.append(rows) or True, TABLE, Unit(neighbors=neighbors)
    )
    cells = [(a, b) for a in (2, 3) for b in (0, 1, 2)]
    sizes = (3,) if neighbors == "replace_one" else range(4)
    expected = [list(rows) for size in sizes for rows in itertools.combinations_with_replacement(cells, size)]
    assert sorted([tuple(row) for row in rows.tolist()] for rows in seen) == sorted(expected)
    for rows, counts in zip(seen, found.tolist(), strict=True):
        told = Counter(tuple(row) for row in rows.tolist())
        assert counts == [told[cell] for cell in cells]
    assert found.dtype == np.int64


def test_values_are_in_their_own_measure() -> None:
    """Of a grid its numbers, of truth values 0 and 1; a table without rows is of as many columns."""
    seen: list[list] = []
    members(
        "own", Property(("c", "yes"), 1), lambda rows: seen.append(rows.tolist()) or rows.shape[1] == 2, TABLE, Unit()
    )
    assert seen == [[], *([[c, yes]] for c in (0.0, 0.5, 1.0) for yes in (0.0, 1.0))]


def test_every_graph_is_asked_of_once_S4_28() -> None:
    """All 64 of four vertices, each as a symmetric truth matrix; kept as a bit for each pair, (0, 1) first.

    The property is a triangle: 23 of 64 graphs have one, counted by hand in the test below.
    """
    seen = set()

    def triangle(joined: np.ndarray) -> bool:
        assert joined.dtype == np.bool_
        assert (joined == joined.T).all()
        assert not joined.diagonal().any()
        seen.add(joined.tobytes())
        return int(np.trace(np.linalg.matrix_power(joined.astype(int), 3))) > 0

    found = members("own", Property(), triangle, graph(4), Unit())
    pairs = list(itertools.combinations(range(4), 2))
    by_hand = [
        bits
        for bits in itertools.product((0, 1), repeat=6)
        if any(
            all(bits[pairs.index(p)] for p in itertools.combinations(three, 2))
            for three in itertools.combinations(range(4), 3)
        )
    ]
    assert len(seen) == 64
    assert sorted(map(tuple, found.tolist())) == sorted(by_hand)
    assert len(by_hand) == 23


def test_too_many_tables_are_refused_in_public_S4_28(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven vertices, or many rows of several cells; control: six vertices, and as many tables as are looked at."""

    def never(_table: np.ndarray) -> bool:
        raise AssertionError("asked of a table")

    for told, table in ((Property(), graph(7)), (Property(), graph(100)), (Property(("a", "b"), 40), TABLE)):
        with pytest.raises(SetupError, match=f"at most {MAX_TABLES:,}") as refused:
            members("own", told, never, table, Unit())
        assert refused.value.code == "bad-declaration"
    assert 2**15 <= MAX_TABLES < 2**21
    assert math.comb(8, 2) == 28
    monkeypatch.setattr(properties, "MAX_TABLES", 28)
    assert len(members("own", Property(("a",), 6), lambda _: True, TABLE, Unit())) == 28
    monkeypatch.setattr(properties, "MAX_TABLES", 27)
    with pytest.raises(SetupError):
        members("own", Property(("a",), 6), lambda _: True, TABLE, Unit())


def test_a_property_that_no_table_has_or_that_fails_is_refused_in_public_S4_28() -> None:
    """There is no distance to nothing; an error is of a made-up table, so its kind is told. Control: one has it."""

    def fails(rows: np.ndarray) -> bool:
        return rows[0, 0] > 1

    for function, word in (
        (lambda _: False, "No table"),
        (fails, "IndexError"),
        (lambda rows: rows == 1, "ValueError"),
    ):
        with pytest.raises(SetupError, match=word):
            members("own", Property(("a",), 2), function, TABLE, Unit())
    assert members("own", Property(("a",), 2), lambda rows: len(rows) == 0, TABLE, Unit()).tolist() == [[0, 0]]
    with pytest.raises(SetupError, match="no graph is declared"):
        members("own", Property(), lambda _: True, TABLE, Unit())
    with pytest.raises(SetupError, match="no declared column"):
        members("own", Property(("gone",), 2), lambda _: True, TABLE, Unit())


def not_expanding(joined: np.ndarray) -> bool:
    """Whether some set of at most half the vertices has fewer edges out of it than members (DMNS06, section 3.2)."""
    size = len(joined)
    sets = [s for n in range(1, size // 2 + 1) for s in itertools.combinations(range(size), n)]
    return any(joined[np.ix_(s, [v for v in range(size) if v not in s])].sum() < len(s) for s in sets)


def test_the_distance_from_not_expanding_is_exact_and_moves_by_one_S4_28() -> None:
    """All 1,024 graphs of five vertices: as a search from each by edges that change finds it, edge by edge.

    Every edge moves it by one at most, and some do.
    """
    points = members("own", Property(), not_expanding, graph(5), Unit())
    asked = Asked(Edges(graphs.Graph(5)), Nearest("own"))
    pairs = list(itertools.combinations(range(5), 2))
    far = dict.fromkeys(map(tuple, points.tolist()), 0)
    layer = list(far)
    while layer:  # breadth first from all that have the property: the least number of edges, by definition
        flips = {(*bits[:i], 1 - bits[i], *bits[i + 1 :]): far[bits] + 1 for bits in layer for i in range(10)}
        layer = [bits for bits in flips if bits not in far]
        far |= {bits: flips[bits] for bits in layer}
    assert len(far) == 2**10
    assert max(far.values()) >= 2
    for bits, distance in list(far.items())[::17]:
        rows = np.array([pair for pair, there in zip(pairs, bits, strict=True) if there], dtype=np.int64).reshape(-1, 2)
        assert exact(asked, rows, {"own": points}).tolist() == [[distance]]
    steps = {abs(far[bits] - far[(*bits[:i], 1 - bits[i], *bits[i + 1 :])]) for bits in far for i in range(10)}
    assert steps == {0, 1}
    figure(
        "S4.28",
        "largest change as one edge does, of edges until a graph of five vertices is not expanding",
        max(steps),
        1,
    )
