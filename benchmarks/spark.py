"""Spark on two local workers: X'X and a group-by, each beside the same plain Spark job without privacy.

    python -m benchmarks.spark [--rows 2000000] [--rounds 5] [--partitions 4 2 8 16]

Both sides read rows the cluster keeps in memory. The plain X'X is the best form
we found: NumPy over Arrow batches of 16,384 rows of doubles, one BLAS thread a
worker; the plain group-by is Spark's own. Ours is a whole ask: plan, debit on
disk, job, noise. Both sides have the same partitions.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa

import sulq
from benchmarks.report import Line, Report
from benchmarks.spark_cluster import Cluster
from benchmarks.timing import interleave
from sulq import Rho, Sums, col, lit, outer, vector

WIDE = 50
GROUPS = 50
BAR = 1.3
PARTITIONS = (4, 2, 8, 16)  # the first as the rows lie in their files
GROUP = "Spark, master and 2 workers on loopback"
NAMES = [f"x{j}" for j in range(WIDE)]


def rows(session, folder: Path, count: int):
    """Made-up doubles within [-1, 1] and a key, written once as Parquet and kept in the cluster's memory."""
    values = [f"(pmod(xxhash64(id, {j}), 2000003) - 1000001) / 1000001.0D AS x{j}" for j in range(WIDE)]
    made = session.range(0, count, 1, 4).selectExpr(*values, f"concat('g', pmod(xxhash64(id, 99), {GROUPS})) AS g")
    made.write.parquet(str(folder / "rows.parquet"))
    return session.read.parquet(str(folder / "rows.parquet"))


def plain_products(batches):
    """X'X of one partition, doubles as they are."""
    total = np.zeros((WIDE, WIDE))
    for batch in batches:
        X = np.stack([column.to_numpy() for column in batch.columns])
        total += X @ X.T
    yield pa.RecordBatch.from_pydict({"s": pa.array([total.tobytes()], pa.binary())})


def measured(count: int, rounds: int, report: Report, partitions: Sequence[int] = PARTITIONS) -> None:
    """Both comparisons on one cluster, for each number of partitions."""
    settings = {
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
        "spark.executor.memory": "4g",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    }
    with tempfile.TemporaryDirectory() as name, Cluster(workers=2, memory="5g") as cluster:
        session = cluster.session(**settings)
        frame = rows(session, Path(name), count)
        for parts in partitions:
            cut = frame if parts == frame.rdd.getNumPartitions() else frame.repartition(parts)
            _compared(cut, count, rounds, report, ledger=Path(name) / f"{parts}.ledger", cut=f"{parts} partitions")
        session.stop()


def _compared(frame, count: int, rounds: int, report: Report, *, ledger: Path, cut: str) -> None:
    columns = dict.fromkeys(NAMES, sulq.Real(-1, 1)) | {"g": [f"g{i}" for i in range(GROUPS)]}
    db = sulq.connect(frame, columns=columns, budget=Rho(1000), ledger=ledger)
    db.prepare()
    plain = frame.persist()
    plain.count()

    def products() -> object:
        parts = plain.select(*NAMES).mapInArrow(plain_products, "s binary").collect()
        return sum(np.frombuffer(part.s) for part in parts)

    squares = Sums((outer(vector(NAMES)),))
    found = interleave({"ours": lambda: db.ask(squares, spend=Rho(1)), "plain": products}, rounds)
    report.add(GROUP, Line(f"X'X, {count:,} x {WIDE}, {cut}", found["ours"], found["plain"], BAR))
    sums = Sums((lit(1), col("x0")), by=(col("g"),))

    def grouped() -> object:
        return plain.groupBy("g").agg({"*": "count", "x0": "sum"}).collect()

    found = interleave({"ours": lambda: db.ask(sums, spend=Rho(1)), "plain": grouped}, rounds)
    what = f"count and sum of {GROUPS} groups, {count:,} rows, {cut}"
    report.add(GROUP, Line(what, found["ours"], found["plain"], BAR))
    db.close()
    plain.unpersist()


def main() -> None:
    """Measure and print."""
    told = argparse.ArgumentParser(prog="python -m benchmarks.spark")
    told.add_argument("--rows", type=int, default=2_000_000)
    told.add_argument("--rounds", type=int, default=5)
    told.add_argument("--partitions", type=int, nargs="*", default=PARTITIONS)
    given = told.parse_args()
    measured(given.rows, given.rounds, Report(), given.partitions)


if __name__ == "__main__":
    main()
