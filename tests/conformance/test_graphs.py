"""Real graphs: exact statistics agree with networkx and the reference, releases find planted cuts (S4.12)."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sulq
from sulq import Epsilon, Real, col
from tests import counts
from tests.data import need
from tests.loaded import available, loaded

NAMES = ("karate", "lesmis", "netscience", "ca-GrQc", "ego-facebook")


def read(name: str) -> tuple[pa.Table, list[int]]:
    """A graph's rows and its vertices, those that occur."""
    table = pyarrow.csv.read_csv(need(f"graphs/{name}.csv"))
    ends = np.concatenate([table["u"].to_numpy(), table["v"].to_numpy()])
    return table, np.unique(ends).tolist()


def opened(table: object, vertices: list[int], *, names: list[str] | None = None, **options: object) -> object:
    columns: dict[str, object] = {"u": vertices, "v": vertices}
    graph: tuple[str, ...] = ("u", "v")
    if "weight" in (table.column_names if names is None else names):
        columns["weight"], graph = Real(0, 1), ("u", "v", "weight")
    return sulq.connect(table, columns=columns, graph=graph, budget=Epsilon(900), synthetic=True, **options)


def peer(table: pa.Table, vertices: list[int]) -> nx.Graph:
    """The same graph in networkx, weights cut off at 1 on the declared grid."""
    graph = nx.Graph()
    graph.add_nodes_from(vertices)
    weights = table["weight"].to_numpy().astype(float) if "weight" in table.column_names else np.ones(len(table))
    units = np.floor(np.clip(weights, 0, 1) * 2**22 + 0.5).astype(int)
    rows = zip(table["u"].to_pylist(), table["v"].to_pylist(), units.tolist(), strict=True)
    graph.add_weighted_edges_from((a, b, w) for a, b, w in rows if a != b)
    return graph


@pytest.mark.parametrize("name", NAMES)
def test_triangles_degrees_and_trees_agree_with_networkx(name: str) -> None:
    """Triangles also with the committed reference; trees of each part together; counts of vertices by edges."""
    table, vertices = read(name)
    other = peer(table, vertices)
    with opened(table, vertices) as db:
        graph = sulq.testing.exact(db).graph
        assert graph.triangles().value == sum(nx.triangles(other).values()) // 3
        forest = sum(data["weight"] for *_, data in nx.minimum_spanning_edges(other))
        assert graph.spanning_tree_weight().value == forest / 2**22
        parts = nx.number_connected_components(other)
        assert graph.spanning_tree_weight(complete=True).value == forest / 2**22 + parts - 1
        assert graph.to_connected().value == parts - 1
        degrees = np.array([d for _, d in other.degree()])
        assert graph.degrees(50).value.tolist() == [int((degrees >= n).sum()) for n in range(1, 51)]
    reference = json.loads(need("graphs/reference.json").read_text(encoding="utf-8"))
    known = reference.get(name) or reference[f"{name}[weight]"]
    assert (known["nodes"], known["components"]) == (len(vertices), parts)
    largest = sorted(max(nx.connected_components(other), key=len))
    with opened(table, largest) as db:  # the reference counts those of the largest part
        assert sulq.testing.exact(db).graph.triangles().value == known["triangles"]


@pytest.mark.parametrize("name", ["karate", "lesmis", "netscience"])
def test_cuts_agree_with_networkx(name: str) -> None:
    """Of the largest part, where there are several: of the whole the cut is 0, and so the database says."""
    table, vertices = read(name)
    other = peer(table, vertices)
    largest = sorted(max(nx.connected_components(other), key=len))
    expected = nx.stoer_wagner(other.subgraph(largest))[0]
    with opened(table, largest) as db:  # edges to undeclared vertices are missing, silently
        assert sulq.testing.exact(db).graph.min_cut().value == expected / 2**22
    with opened(table, vertices) as db:
        whole = sulq.testing.exact(db).graph.min_cut().value
        assert whole == (expected / 2**22 if len(largest) == len(vertices) else 0)


@pytest.mark.parametrize(
    ("name", "among", "edges", "cut"),
    [
        ("ca-GrQc", None, 10, 3),
        ("ca-GrQc", None, 20, 2),
        ("ego-facebook", range(1600, 1912), 5, 3),
        ("ego-facebook", range(1600, 1912), 15, 19),
    ],
)
def test_cuts_of_the_large_graphs_agree_with_networkx_on_their_cores(
    name: str, among: range | None, edges: int, cut: int
) -> None:
    """Networkx takes hours for all of them; so of the largest part of a core, among some vertices of ego-facebook.

    A core's vertices have so many edges at least. The first three cuts are none of a single vertex, whose edges
    are more; in the last it is.
    """
    table, vertices = read(name)
    whole = peer(table, vertices)
    core = nx.k_core(nx.Graph(whole if among is None else whole.subgraph(among)), edges)
    part = core.subgraph(max(nx.connected_components(core), key=len))
    assert nx.stoer_wagner(part, weight=None)[0] == cut
    assert (min(degree for _, degree in part.degree()) > cut) == (cut < edges)
    with opened(table, sorted(part)) as db:
        assert sulq.testing.exact(db).graph.min_cut().value == cut


@pytest.mark.audit
@pytest.mark.parametrize("name", ["ca-GrQc", "ego-facebook"])
def test_the_cut_of_a_large_graph_is_that_of_its_loneliest_vertex(name: str) -> None:
    """Connected, and with a vertex of one edge: so the minimum cut is 1, at full size in the long run alone.

    In a short one of the neighbourhood of such a vertex. Control: without its one edge, 0.
    """
    table, vertices = read(name)
    whole = peer(table, vertices)
    part = whole.subgraph(max(nx.connected_components(whole), key=len))
    lonely = min(part, key=lambda vertex: (part.degree(vertex), vertex))
    size = counts.count(f"vertices of {name} whose cut is worked out", short=400, long=len(part))
    part = part.subgraph(itertools.islice(nx.bfs_tree(part, lonely), size))
    assert part.degree(lonely) == 1
    assert nx.is_connected(part)
    with opened(table, sorted(part)) as db:
        exact = sulq.testing.exact(db).graph
        assert exact.min_cut().value == 1
        assert exact.min_cut(where=(col("u") != lonely) & (col("v") != lonely)).value == 0


@pytest.mark.parametrize("cut", [2, 9])
def test_a_planted_cut_is_found_within_its_accuracy(cut: int) -> None:
    """Two dense halves joined by a few edges: the release is within its 1 - 1e-8 accuracy of the planted cut.

    Control: it is farther than that from the cut of another graph, whose halves are joined by a hundred.
    """

    def halves(joined: int) -> pa.Table:
        rng = np.random.default_rng(cut)
        rows = [(a + s, b + s) for s in (0, 40) for a in range(40) for b in range(a) if rng.random() < 0.9]
        rows += [(i % 40, 40 + i // 40 + i % 40) for i in range(joined) if 40 + i // 40 + i % 40 < 80]
        return pa.table({"u": [a for a, _ in rows], "v": [b for _, b in rows]})

    with opened(halves(cut), list(range(80))) as db:
        assert sulq.testing.exact(db).graph.min_cut().value == cut
        found = db.graph.min_cut(spend=Epsilon(2))
        assert abs(found.value - cut) <= found.accuracy(1e-8)
    with opened(halves(100), list(range(80))) as db:
        assert sulq.testing.exact(db).graph.min_cut().value - cut > 2 * found.accuracy(1e-8)


def test_engines_agree_on_a_real_graph(tmp_path: Path) -> None:
    """The reference engine, DuckDB and PostgreSQL hand over the same edges."""
    table, vertices = read("lesmis")
    values = []
    sources = [(table, {"engine": "memory"}), (table, {"engine": "duckdb"})]
    if available():
        sources.append((loaded(table), {"ledger": tmp_path / "l.ledger"}))
    for source, options in sources:
        with opened(source, vertices, names=table.column_names, **options) as db:
            graph = sulq.testing.exact(db).graph
            values.append((graph.min_cut().value, graph.spanning_tree_weight().value, graph.triangles(degree=9).value))
    assert all(found == values[0] for found in values)
