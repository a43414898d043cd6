"""Graph statistics against the library called directly: the same exact numbers, with plan, debit, noise and all.

    python -m benchmarks.graphs

The baseline has the edges in memory as arrays, hands them to rustworkx and asks; ours begins at `db.graph`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import rustworkx

import sulq
from benchmarks.report import Line, Report
from benchmarks.timing import interleave
from sulq import Epsilon, Int, Real

GROUP = "Graphs, against rustworkx called directly on the same edges in memory"
BAR = 1.5
SPEND = Epsilon(0.01)
CUT_ROUNDS, TREE_ROUNDS = 3, 5
VERTICES, EDGES = 100_000, 1_000_000


def facebook() -> tuple[np.ndarray, str]:
    """The edges of ego-facebook; where the shared data is absent, as many made up ones."""
    root = Path(os.environ.get("SULQ_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    path = root / "graphs" / "ego-facebook.csv"
    if path.exists():
        table = pa.csv.read_csv(path)
        return np.column_stack([table["u"].to_numpy(), table["v"].to_numpy()]), "ego-facebook"
    rng = np.random.default_rng(0)
    return rng.integers(0, 4039, (88_234, 2)), "a random graph of the size of ego-facebook"


def direct(size: int, ends: np.ndarray, weights: np.ndarray) -> rustworkx.PyGraph:
    """The graph as the library takes it."""
    graph = rustworkx.PyGraph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(list(zip(ends[:, 0].tolist(), ends[:, 1].tolist(), weights.tolist(), strict=True)))
    return graph


def cut(report: Report, folder: Path) -> None:
    """The minimum cut of some 88,000 edges."""
    ends, name = facebook()
    size = int(ends.max()) + 1
    path = folder / "cut.parquet"
    pa.parquet.write_table(pa.table({"u": ends[:, 0], "v": ends[:, 1]}), path)
    ones = np.ones(len(ends))
    columns = {"u": Int(0, size - 1), "v": Int(0, size - 1)}
    with sulq.connect(
        path, columns=columns, graph=("u", "v"), budget=Epsilon(9), synthetic=True, ledger=folder / "cut.ledger"
    ) as db:
        db.prepare()
        found = interleave(
            {
                "ours": lambda: db.graph.min_cut(spend=SPEND, fresh=True),
                "raw": lambda: rustworkx.stoer_wagner_min_cut(direct(size, ends, ones), weight_fn=float),
            },
            CUT_ROUNDS,
        )
    report.add(GROUP, Line(f"minimum cut, {name}, {len(ends):,} edges", found["ours"], found["raw"], BAR))


def tree(report: Report, folder: Path) -> None:
    """A spanning tree of a million weighed edges."""
    rng = np.random.default_rng(1)
    ends, weights = rng.integers(0, VERTICES, (EDGES, 2)), rng.random(EDGES)
    path = folder / "tree.parquet"
    pa.parquet.write_table(pa.table({"u": ends[:, 0], "v": ends[:, 1], "w": weights}), path)
    columns = {"u": Int(0, VERTICES - 1), "v": Int(0, VERTICES - 1), "w": Real(0, 1)}
    graph = ("u", "v", "w")
    with sulq.connect(
        path, columns=columns, graph=graph, budget=Epsilon(9), synthetic=True, ledger=folder / "tree.ledger"
    ) as db:
        db.prepare()
        found = interleave(
            {
                "ours": lambda: db.graph.spanning_tree_weight(spend=SPEND, fresh=True),
                "raw": lambda: sum(
                    edge[2]
                    for edge in rustworkx.minimum_spanning_edges(direct(VERTICES, ends, weights), weight_fn=float)
                ),
            },
            TREE_ROUNDS,
        )
    report.add(GROUP, Line(f"spanning tree, {EDGES:,} edges", found["ours"], found["raw"], BAR))


def graphs(report: Report, folder: Path) -> None:
    """Both comparisons."""
    tree(report, folder)
    cut(report, folder)


def main() -> None:
    """These two alone."""
    report = Report()
    with tempfile.TemporaryDirectory(prefix="sulq-graphs-") as name:
        graphs(report, Path(name))


if __name__ == "__main__":
    main()
