"""What learners ask, once their columns are in memory: X'X, a k-means round, gradient sums, the levels of a tree.

`python -m benchmarks.learn_kernels` runs this part alone.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import duckdb
import numpy as np
import numpy.typing as npt
from sklearn.cluster._k_means_lloyd import lloyd_iter_chunked_dense
from threadpoolctl import threadpool_limits

import sulq
from benchmarks import data
from benchmarks.report import Line, Report
from benchmarks.timing import interleave
from sulq import Rho, Sums, Together, bins, col, dot, lit, lookup, nearest, outer, route, scaled, vector, within_ball

GROUP = "What learners ask, columns in memory, 1M rows; best of interleaved rounds"
ROWS = 1_000_000
ROUNDS = 15
BUDGET = Rho(900)
SPEND = Rho(1)
ATTRIBUTES = 15
DEPTH = 6

Matrix = npt.NDArray[np.float64]


def kernels(report: Report, folder: Path, con: duckdb.DuckDBPyConnection) -> None:
    """All comparisons of this part."""
    products(report, folder)
    rounds(report, folder)
    levels(report, folder, con)


def compare(report: Report, what: str, ours: Callable[[], object], baseline: Callable[[], object], bar: float) -> None:
    """Time ours against a baseline and take the best of each: other work on the machine only ever adds."""
    found = interleave({"ours": ours, "baseline": baseline}, ROUNDS)
    best = {name: replace(timing, median=timing.low) for name, timing in found.items()}
    report.add(GROUP, Line(what, best["ours"], best["baseline"], bar))


def opened(path: Path, columns: dict[str, object]) -> sulq.api.database.Database:
    """A database over the file, prepared."""
    db = sulq.connect(path, columns=columns, budget=BUDGET, ledger=path.with_suffix(".ledger"))
    db.prepare()
    return db


def loaded(path: Path, names: list[str]) -> Matrix:
    """The same numbers in memory."""
    table = duckdb.sql(f"SELECT * FROM '{path}'").fetchnumpy()
    return np.column_stack([table[name] for name in names])


def products(report: Report, folder: Path) -> None:
    """PCA's question and a logistic gradient, against NumPy on doubles in memory with the same BLAS threads."""
    names = [f"x{j}" for j in range(50)]
    path = data.matrix(folder / "fifty.parquet", ROWS, len(names))
    X = loaded(path, names)
    weights = np.random.default_rng(1).normal(size=len(names)) / 5
    edges = np.linspace(-6, 6, 513)
    curve = 1 / (1 + np.exp(-(edges[1:] + edges[:-1]) / 2))
    points = within_ball(vector(names), 5.0)  # half of these rows lie outside a ball of 4.08
    margin = bins(dot(points, weights).clip(-6, 6), edges)
    with opened(path, dict.fromkeys(names, sulq.Real(-1, 1))) as db:
        squares = Sums((lit(1), points, outer(points)))
        compare(report, "PCA, d=50", lambda: db.ask(squares, spend=SPEND), lambda: X.T @ X, 3.5)
        gradient = Sums((scaled(points, lookup(margin, curve) - (col("x0") > 0)),))
        compare(
            report, "gradient sums, d=50 (one X @ w)", lambda: db.ask(gradient, spend=SPEND), lambda: X @ weights, 8
        )


def rounds(report: Report, folder: Path) -> None:
    """A k-means round against one iteration of scikit-learn's Lloyd on one thread."""
    names = [f"x{j}" for j in range(10)]
    path = data.matrix(folder / "ten.parquet", ROWS, len(names))
    X = loaded(path, names)
    centres = np.random.default_rng(2).uniform(-1, 1, (10, len(names)))
    ones, labels = np.ones(ROWS), np.full(ROWS, -1, dtype=np.int32)

    def lloyd() -> None:
        found, sizes, moved = np.zeros_like(centres), np.zeros(len(centres)), np.zeros(len(centres))
        with threadpool_limits(1):
            lloyd_iter_chunked_dense(X, ones, centres, found, sizes, labels, moved, 1, update_centers=True)

    with opened(path, dict.fromkeys(names, sulq.Real(-1, 1))) as db:
        for what, points in (("k-means round", vector(names)), ("k-means round, ball", within_ball(vector(names), 2))):
            asked = Sums((lit(1), points), by=(nearest(points, centres),))
            compare(report, f"{what}, d=10, k=10", lambda asked=asked: db.ask(asked, spend=SPEND), lloyd, 1.5)


def levels(report: Report, folder: Path, con: duckdb.DuckDBPyConnection) -> None:
    """ID3's questions, one Together a level, against a raw scan: one query that groups by each attribute and label."""
    names = [f"a{j}" for j in range(ATTRIBUTES)]
    path = folder / "attributes.parquet"
    columns = ", ".join(f"CAST(floor(random() * 3) AS TINYINT) AS {name}" for name in names)
    con.execute(f"COPY (SELECT {columns}, random() < 0.5 AS y FROM range({ROWS})) TO '{path}' (FORMAT parquet)")
    sets = ", ".join(f"({name}, y)" for name in names)
    scan = f"SELECT {', '.join(names)}, y, count(*) FROM '{path}' GROUP BY GROUPING SETS ({sets})"
    report.note(GROUP, "A raw scan: `SELECT a0, ..., a14, y, count(*) FROM t GROUP BY GROUPING SETS ((a0, y), ...)`.")
    attributes = [col(name) for name in names]
    asked = [level(attributes, depth) for depth in range(DEPTH)]
    with opened(path, {**dict.fromkeys(names, sulq.Category([0, 1, 2])), "y": sulq.Bool()}) as db:

        def grow() -> None:
            for question in asked:
                db.ask(question, spend=SPEND)

        what = f"ID3, {ATTRIBUTES} attributes of 3 values, depth {DEPTH} (one raw scan)"
        compare(report, what, grow, lambda: con.execute(scan).fetchall(), 10)


def level(attributes: list[sulq.language.rowfn.Col], depth: int) -> Together:
    """The tables of attribute against label in every leaf of a full tree of this depth."""
    inner = sum(3**i for i in range(depth))
    tree = [
        (
            i % ATTRIBUTES,
            *(child if child < inner else inner - 1 - child for child in (3 * i + 1, 3 * i + 2, 3 * i + 3)),
        )
        for i in range(inner)
    ]
    leaf = route(attributes, tree)
    return Together(tuple(Sums((lit(1),), by=(leaf, attribute, col("y"))) for attribute in attributes))


def main() -> None:
    """Run this part alone, writing no page."""
    con = duckdb.connect()
    con.execute("SET threads = 2")
    with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name:
        kernels(Report(), Path(name), con)


if __name__ == "__main__":
    main()
