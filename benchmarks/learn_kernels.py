"""What learners ask, once their columns are in memory: X'X, a k-means round, gradient sums, the levels of a tree.

`python -m benchmarks.learn_kernels` runs this part alone.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.cluster._k_means_lloyd import lloyd_iter_chunked_dense
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import sulq
from benchmarks import data
from benchmarks.report import Line, Report
from benchmarks.timing import interleave
from sulq import (
    EpsilonDelta,
    Rho,
    Sums,
    Together,
    bins,
    col,
    dot,
    learn,
    lit,
    lookup,
    nearest,
    outer,
    route,
    scaled,
    vector,
    within_ball,
)

GROUP = "What learners ask, columns in memory, 1M rows; best of interleaved rounds"
ROWS = 1_000_000
ROUNDS = 15
FEW_ROUNDS = 3
BUDGET = Rho(900)
SPEND = Rho(1)
ATTRIBUTES = 15
DEPTH = 6

Matrix = npt.NDArray[np.float64]


def kernels(report: Report, folder: Path, con: duckdb.DuckDBPyConnection) -> None:
    """All comparisons of this part."""
    products(report, folder)
    rounds(report, folder)
    large_round(report, folder)
    fits(report, folder)
    levels(report, folder, con)


def compare(report: Report, what: str, ours: Callable[[], object], baseline: Callable[[], object], bar: float) -> None:
    """Time ours against a baseline and take the best of each: other work on the machine only ever adds."""
    found = interleave({"ours": ours, "baseline": baseline}, ROUNDS)
    best = {name: replace(timing, median=timing.low) for name, timing in found.items()}
    report.add(GROUP, Line(what, best["ours"], best["baseline"], bar))


def compare_work(
    report: Report, what: str, ours: Callable[[], object], baseline: Callable[[], object], bar: float
) -> None:
    """The same of processor time, the least of a few interleaved rounds."""
    found = interleave({"ours": ours, "baseline": baseline}, FEW_ROUNDS, time.process_time)
    best = {name: replace(timing, median=timing.low) for name, timing in found.items()}
    report.add(GROUP, Line(f"{what}, of the processor", best["ours"], best["baseline"], bar))


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


def iteration(X: Matrix, centres: Matrix) -> Callable[[], None]:
    """One iteration of scikit-learn's Lloyd on one thread."""
    ones, labels = np.ones(len(X)), np.full(len(X), -1, dtype=np.int32)

    def lloyd() -> None:
        found, sizes, moved = np.zeros_like(centres), np.zeros(len(centres)), np.zeros(len(centres))
        with threadpool_limits(1):
            lloyd_iter_chunked_dense(X, ones, centres, found, sizes, labels, moved, 1, update_centers=True)

    return lloyd


def rounds(report: Report, folder: Path) -> None:
    """A k-means round against one iteration of scikit-learn's Lloyd on one thread."""
    names = [f"x{j}" for j in range(10)]
    path = data.matrix(folder / "ten.parquet", ROWS, len(names))
    centres = np.random.default_rng(2).uniform(-1, 1, (10, len(names)))
    lloyd = iteration(loaded(path, names), centres)
    with opened(path, dict.fromkeys(names, sulq.Real(-1, 1))) as db:
        for what, points in (("k-means round", vector(names)), ("k-means round, ball", within_ball(vector(names), 2))):
            asked = Sums((lit(1), points), by=(nearest(points, centres),))
            compare(report, f"{what}, d=10, k=10", lambda asked=asked: db.ask(asked, spend=SPEND), lloyd, 1.5)


def large_round(report: Report, folder: Path) -> None:
    """The same with more rows, columns and centres; processor time, as ours may take a second thread."""
    names, rows = [f"x{j}" for j in range(20)], 1_500_000
    path = data.matrix(folder / "twenty.parquet", rows, len(names))
    centres = np.random.default_rng(2).uniform(-1, 1, (20, len(names)))
    points = within_ball(vector(names), 2)
    asked = Sums((lit(1), points), by=(nearest(points, centres),))
    with opened(path, dict.fromkeys(names, sulq.Real(-1, 1))) as db:
        lloyd = iteration(loaded(path, names), centres)
        compare_work(report, "k-means round, d=20, k=20, 1.5M rows", lambda: db.ask(asked, spend=SPEND), lloyd, 1.3)


def fits(report: Report, folder: Path) -> None:
    """A logistic regression from its first question to its last, against scikit-learn's on the same numbers."""
    names, rows = [f"x{j}" for j in range(50)], 300_000
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (rows, len(names)))
    y = rng.random(rows) < 1 / (1 + np.exp(-X @ (rng.normal(size=len(names)) / 2)))
    path = folder / "labelled.parquet"
    pq.write_table(pa.table({**dict(zip(names, X.T, strict=True)), "y": y}), path)
    spend = EpsilonDelta(1, 1e-6)
    columns = {**dict.fromkeys(names, sulq.Real(-1, 1)), "y": sulq.Bool()}
    ledger = path.with_suffix(".ledger")
    with sulq.connect(path, columns=columns, budget=EpsilonDelta(900, 0.01), ledger=ledger) as db:
        db.prepare()
        fit = lambda: learn.LogisticRegression().fit(db[names], db["y"], spend=spend)  # noqa: E731
        what = "logistic regression, d=50, 300,000 rows (scikit-learn)"
        with threadpool_limits(1):  # a thread of BLAS that waits counts as work
            compare_work(report, what, fit, lambda: LogisticRegression().fit(X, y), 2.0)


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
