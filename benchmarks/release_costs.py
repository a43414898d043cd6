"""Contingency tables beside their marginals' error: what Gaussian noise gains, and the bars of time.

`python -m benchmarks.release_costs [RUNS]` runs this part alone.
"""

# ruff: noqa: PD011 - values here are NumPy's, not a frame's

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import itertools
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import highspy
import numpy as np
import numpy.typing as npt
import pandas as pd

import sulq
from benchmarks.release_marginals import ROWS, WAYS, Table, counts, generated, marginals, off
from benchmarks.report import Line
from benchmarks.timing import interleave
from sulq import Epsilon, EpsilonDelta, release
from sulq.release.tables.fitting import Turned
from sulq.release.tables.fourier import fitted
from sulq.release.tables.interactions import closure, spread


def report(runs: int = 10, rounds: int = 3) -> list[str]:
    """The lines of the page."""
    frame = pd.DataFrame(generated(10, ROWS), columns=[f"x{i}" for i in range(10)])
    rows = [
        "### Gaussian against Laplace coefficients",
        "",
        "k10, all pairs, by `fourier-shift`: the standard error of a cell, told (and measured). The guarantees differ,",
        "which is the point: epsilon 1, and (1, 1e-6) by the tight conversion.",
        "",
        "| weights | epsilon 1 | (1, 1e-6) | gain | bar | |",
        "|---|---|---|---|---|---|",
        *gaussian(frame, runs),
    ]
    with tempfile.TemporaryDirectory(prefix="sulq-bench-") as folder:
        rows += ["", "### Time", "", "Medians of interleaved rounds, lowest and highest in brackets.", ""]
        rows += timed(Path(folder), rounds)
    return rows


def gaussian(frame: pd.DataFrame, runs: int) -> list[str]:
    """Gaussian against Laplace coefficients at k = 10: the noise of a cell of a pair, told and measured."""
    names = list(frame.columns)
    rows = []
    for weights in ("best", "even"):
        told, seen = {}, {}
        for spend in (Epsilon(1), EpsilonDelta(1, 1e-6)):
            with sulq.connect(frame, columns=dict.fromkeys(names, sulq.Int(0, 1)), budget=EpsilonDelta(900, 0.1)) as db:
                gaps = []
                for _ in range(runs):
                    made = release.contingency(db, names, method="fourier-shift", ways=2, weights=weights, spend=spend)
                    for pair in itertools.combinations(range(len(names)), 2):
                        own = made.marginal([names[place] for place in pair])
                        gaps.append(own.values - counts(frame, pair, (2,) * len(names)))
                told[spend], seen[spend] = float(own.standard_error.mean()), float(np.sqrt(np.mean(np.square(gaps))))
        laplace, normal = told
        ratio = told[laplace] / told[normal]
        verdict = "met" if ratio >= 2 else "**missed**"
        rows.append(
            f"| {weights} | {told[laplace]:.1f} ({seen[laplace]:.1f}) | {told[normal]:.1f} ({seen[normal]:.1f}) "
            f"| {ratio:.2f}x | 2x | {verdict} |"
        )
        print(rows[-1], flush=True)
    return rows


def timed(folder: Path, rounds: int) -> list[str]:
    """The bars of time, and k = 20."""
    found = [_scans(folder, rounds), _program(rounds)]
    rows = ["| comparison | ratio | bar | | sulq | baseline |", "|---|---|---|---|---|---|"]
    for line in found:
        verdict = "met" if line.met else "**missed**"
        rows.append(f"| {line.what} | {line.ratio:.2f}x | {line.bar}x | {verdict} | {line.ours} | {line.baseline} |")
        print(rows[-1], flush=True)
    frame = pd.DataFrame(generated(20, ROWS), columns=[f"x{i}" for i in range(20)])
    said = []
    for ways in WAYS:
        with sulq.connect(frame, columns=dict.fromkeys(frame, sulq.Int(0, 1)), budget=Epsilon(900)) as db:
            db.prepare()
            start = time.perf_counter()
            made = release.contingency(db, list(frame), method="fourier-shift", ways=ways, spend=Epsilon(1))
            took = time.perf_counter() - start
        truth = marginals(frame, (2,) * 20, ways)
        far = off(lambda p, made=made: made.marginal([f"x{i}" for i in p]).values, truth, ROWS)
        said.append(f"all {len(truth):,} marginals of {ways} in {took:.1f} s, off by {far:.4f}")
    note = f"k = 20 by `fourier-shift`, {ROWS:,} rows, epsilon 1, one run: {'; '.join(said)}."
    print(note, flush=True)
    return [*rows, "", note]


def _scans(folder: Path, rounds: int) -> Line:
    """All triples of 16 attributes from 1M rows, against three scans that count all combinations, and the transform."""
    names = [f"x{i}" for i in range(16)]
    path = folder / "sixteen.parquet"
    columns = ", ".join(f"CAST(random() < 0.3 AS TINYINT) AS {name}" for name in names)
    duckdb.sql(f"COPY (SELECT {columns} FROM range(1000000)) TO '{path}' (FORMAT parquet)")
    con = duckdb.connect()
    con.execute("SET threads = 2")
    scan = f"SELECT {', '.join(names)}, count(*) FROM '{path}' GROUP BY ALL"
    turned = Turned((2,) * 16)
    table = np.ones(2**16)

    def raw() -> None:
        for _ in range(3):
            con.execute(scan).fetchnumpy()
        turned.forward(table)

    declared = dict.fromkeys(names, sulq.Int(0, 1))
    with sulq.connect(path, columns=declared, budget=Epsilon(900), ledger=folder / "sixteen.ledger") as db:
        db.prepare()
        ask = lambda: release.contingency(db, names, method="fourier-shift", ways=3, spend=Epsilon(1))  # noqa: E731
        times = interleave({"ours": ask, "raw": raw}, rounds)
    what = "all 560 triples of 16 attributes, 1M rows, by `fourier-shift` (3 raw scans and the transform)"
    return Line(what, times["ours"], times["raw"], 1.0)


def _program(rounds: int) -> Line:
    """The linear program at k = 12, all triples, against HiGHS as it comes on the program as the paper writes it."""
    k = 12
    sizes = (2,) * k
    everywhere = tuple(range(k))
    parts = closure(itertools.combinations(everywhere, 3))
    matrix = np.concatenate([spread(part, everywhere, sizes) for part in parts]).T
    rows = generated(k, ROWS)
    table = np.bincount(rows @ (2 ** np.arange(k)[::-1]), minlength=2**k)
    rng = np.random.default_rng(1)
    asked = table @ matrix + rng.laplace(0, len(parts), len(parts))
    noise = np.full(len(parts), float(len(parts)))
    times = interleave({"ours": lambda: fitted(matrix, asked, noise), "raw": lambda: plain(matrix, asked)}, rounds)
    what = f"the linear program at k = {k}, {len(parts)} coefficients, to a whole table (HiGHS called directly)"
    return Line(what, times["ours"], times["raw"], 2.0)


def plain(matrix: npt.NDArray[np.int64], asked: Table) -> Table:
    """Least t with -t <= y - matrix' w <= t and w >= 0, by HiGHS's simplex method."""
    cells, count = matrix.shape
    solver = highspy.Highs()
    for name, value in (("output_flag", False), ("solver", "simplex"), ("threads", 1)):
        solver.setOptionValue(name, value)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = cells + 1, 2 * count
    model.col_cost_ = np.append(np.zeros(cells), 1.0)
    model.col_lower_, model.col_upper_ = np.zeros(cells + 1), np.full(cells + 1, highspy.kHighsInf)
    model.row_lower_ = np.concatenate([asked, np.full(count, -highspy.kHighsInf)])
    model.row_upper_ = np.concatenate([np.full(count, highspy.kHighsInf), asked])
    dense = np.concatenate([matrix, matrix], axis=1)
    last = np.append(np.ones(count), -np.ones(count))
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = (np.arange(cells + 2) * 2 * count).astype(np.int32)
    model.a_matrix_.index_ = np.tile(np.arange(2 * count), cells + 1).astype(np.int32)
    model.a_matrix_.value_ = np.append(dense.ravel(), last).astype(np.float64)
    solver.passModel(model)
    solver.run()
    return np.array(solver.getSolution().col_value)[:-1]


if __name__ == "__main__":
    print("\n".join(report(int(sys.argv[1]) if len(sys.argv) > 1 else 10)))
