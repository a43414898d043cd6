"""Where Spark's rows come from: a frame the owner made, or a table named by its address."""

from __future__ import annotations

import importlib
import re
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast

from sulq.errors import SetupError
from sulq.sources.spark import settings

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

SCHEME: Final = "spark://"
_ADDRESS: Final = re.compile(r"(spark://[^/\s]+|local(?:\[[0-9*]+\])?)/(\S+)")
# Nodes of a plan that take some rows and leave others by how the rows happen to lie.
CHANCE: Final = {
    "GlobalLimit": "limit",
    "LocalLimit": "limit",
    "Offset": "offset",
    "Sample": "sample",
    "Tail": "tail",
    "Window": "a window, such as row_number, in which equal rows have any order",
}
# Expressions that may give another value when a row is read again, by Spark's name of the pattern.
RANDOM: Final = {
    "CURRENT_LIKE": "current_timestamp, now or the like",
    "PYTHON_UDF": "a Python function, which may be random",
    "SCALA_UDF": "a function of your own, which may be random",
}
# Aggregates that take what comes first.
ORDERED: Final = frozenset({"First", "Last", "AnyValue", "CollectList", "ListAgg", "MaxBy", "MinBy", "Mode"})
# Steps of an RDD that give the same rows again: those Spark itself makes of a table handed over, and kept ones.
STABLE: Final = frozenset({"MapPartitionsRDD", "ParallelCollectionRDD", "LocalCheckpointRDD", "ReliableCheckpointRDD"})


def is_frame(data: object) -> bool:
    """Whether this is one of Spark's frames, of whichever kind."""
    module = type(data).__module__
    return module.startswith("pyspark.") and type(data).__name__ == "DataFrame"


class NamedTable:
    """A table by its address: spark://HOST:PORT/TABLE, where TABLE is one of the catalog's or a Parquet's path."""

    def __init__(self, address: str) -> None:
        found = _ADDRESS.fullmatch(address.removeprefix(SCHEME) if address.startswith(f"{SCHEME}local") else address)
        if found is None:
            raise SetupError("bad-declaration", "A Spark table is named spark://HOST:PORT/TABLE.")
        self.master, self.table = found[1], found[2]
        self._shape: str | None = None

    @property
    def fingerprint(self) -> str:
        """What the ledger registers."""
        return f"spark {self.table}"

    def frame(self) -> DataFrame:
        """The table, in a session of its own; the table must be what it was when it was opened."""
        session = self._session()
        found, failed = None, ""
        try:
            path = "/" in self.table
            found = session.read.parquet(self.table) if path else session.table(self.table)
            shape = cast("str", found.schema.json())
        except Exception as error:  # noqa: BLE001 - Spark's text may hold more than a name (T31)
            failed = type(error).__name__
        if failed or found is None:
            raise SetupError("missing-file", f"There is no Spark table {self.table[:200]!r} that can be read.")
        if self._shape not in (None, shape):
            raise SetupError("source-changed", f"The columns of {self.table[:200]!r} changed since it was opened.")
        self._shape = shape
        return found

    def _session(self) -> SparkSession:
        builder = spark_sql().SparkSession.builder.master(self.master).appName("sulq")
        for name, value in settings.SETTINGS.items():
            if not (name in settings.CLUSTER and settings.local(self.master)):
                builder = builder.config(name, value)
        found, failed = None, ""
        try:
            found = cast("SparkSession", builder.getOrCreate())
            failed = "" if found.sparkContext.master == self.master else "this process has another already"
        except Exception as error:  # noqa: BLE001 - likewise
            failed = type(error).__name__
        if failed or found is None:
            raise SetupError("unreadable-data", f"No Spark session could be started at {self.master} ({failed}).")
        return found


def spark_sql() -> ModuleType:
    """The package pyspark, or what to install."""
    try:
        importlib.import_module("pandas")  # pyspark's Arrow functions ask for it
        return importlib.import_module("pyspark.sql")
    except ImportError:
        pass
    raise SetupError("missing-extra", "Rows of Spark need the extra 'spark'.", "pip install 'sulq[spark]'")


def check_kind(data: object) -> None:
    """Refuse frames of Spark's that rows cannot be prepared from here."""
    module = type(data).__module__
    if module.startswith("pyspark.pandas"):
        raise SetupError("bad-declaration", "This is a pandas-on-Spark frame.", "Give frame.to_spark().")
    if module.startswith("pyspark.sql.connect"):
        raise SetupError(
            "bad-declaration",
            "A frame of Spark Connect is worked on by a server that others share.",
            "Open the data in a session of its own: SparkSession.builder.master(...).",
        )


def check(frame: DataFrame) -> None:
    """Refuse rows that are drawn by chance: read twice, they would be other rows (SR2)."""
    if frame.isStreaming:
        raise SetupError("bad-declaration", "A stream is not a table.", "Write it to one, and open that.")
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - the plan has no other door
    patterns = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern  # noqa: SLF001
    found = _chance(plan) or next(
        (why for name, why in RANDOM.items() if plan.containsPattern(getattr(patterns, name)())), ""
    )
    if found:
        raise SetupError(
            "bad-declaration",
            f"The rows of this frame may be drawn by chance ({found}): read again, they could be others.",
            "Write them to a table, and open that.",
        )


def _chance(plan: JavaObject) -> str:
    """What in a plan takes rows by chance, or may; "" where nothing does."""
    front = [plan]
    while front:
        node = front.pop()
        name = str(node.nodeName())
        if name in CHANCE:
            return CHANCE[name]
        if name == "Deduplicate" and node.keys().size() < node.output().size():
            return "dropDuplicates of some columns"
        if name == "LogicalRDD" and not set(re.findall(r"(\w+)\[\d+\]", node.rdd().toDebugString())) <= STABLE:
            return "an RDD, whose functions may be random"
        if name == "Generate" and "Python" in str(node.generator().getClass().getSimpleName()):
            return "a Python function, which may be random"
        if name == "Aggregate" and _takes_first(node.aggregateExpressions()):
            return "first, last, collect_list or the like"
        for seq in (node.children(), node.subqueries()):
            front += [seq.apply(i) for i in range(seq.size())]
    return "" if plan.deterministic() else "rand(), uuid() or the like"


def _takes_first(expressions: JavaObject) -> bool:
    """Whether one of a node's aggregates depends on the order in which rows come."""
    front = [expressions.apply(i) for i in range(expressions.size())]
    while front:
        node = front.pop()
        if str(node.getClass().getSimpleName()) in ORDERED:
            return True
        front += [node.children().apply(i) for i in range(node.children().size())]
    return False
