"""Where Spark's rows come from: a frame the owner made, or a table named by its address; and what its session must be.

Spark starts with everything open: anybody on the network may send it code, its pages show what it works on, what it
spills to disk is in clear. A session that is not shut is refused before a row is read (T40, T78).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import itertools
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import unquote

from sulq.errors import SetupError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext
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
        for name, value in SETTINGS.items():
            if not (name in CLUSTER and local(self.master)):
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


_STATUS: Final = re.compile(r"path=(.*?); isDirectory=false; length=(\d+);.*?modification_time=(\d+)")
UNKNOWN: Final = "unknown"


def stamp(frame: DataFrame) -> str:
    """A digest of name, size and time of each file; "" where a frame is read from none, UNKNOWN where none answers."""
    try:
        return _stamp([str(file) for file in frame.inputFiles()], frame)
    except Exception:  # noqa: BLE001 - a file that is gone, or a store that does not answer: never as it was
        return UNKNOWN


def _stamp(files: list[str], frame: DataFrame) -> str:
    folders: dict[str, set[str]] = {}
    for file in files:
        folder, _, name = file.rpartition("/")
        folders.setdefault(folder, set()).add(unquote(name))
    java = frame.sparkSession._jvm  # noqa: SLF001 - files have no other door
    conf = frame.sparkSession._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - likewise
    found = []
    for folder, wanted in sorted(folders.items()):  # one call a folder, however many files it has
        place = java.org.apache.hadoop.fs.Path(java.java.net.URI(folder))
        listed = java.scala.runtime.ScalaRunTime.stringOf(place.getFileSystem(conf).listStatus(place))
        told = {path.rpartition("/")[2]: (size, time) for path, size, time in _STATUS.findall(listed)}
        found += [(folder, name, *told[name]) for name in sorted(wanted)]
    return hashlib.sha256(repr(found).encode()).hexdigest()[:32] if found else ""


HERE: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.io.encryption.enabled": "true",
    "spark.driver.maxResultSize": "0",
    "spark.log.level": "OFF",
}
"""Everywhere: no pages, no logs of the driver, nothing spilled in clear, no answer that fails for its length."""

CLUSTER: Final[Mapping[str, str]] = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
}
"""On a cluster besides: who has no secret is not heard, and what goes over the network is encrypted."""

SETTINGS: Final[Mapping[str, str]] = {
    **HERE,
    **CLUSTER,
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.ui.showConsoleProgress": "false",
}
"""To start a session with; on a cluster `spark.authenticate.secret` comes from the owner."""

UNSET: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "true",
    "spark.eventLog.enabled": "false",
    "spark.io.encryption.enabled": "false",
    "spark.driver.maxResultSize": "1g",
    "spark.log.level": "WARN",
    "spark.authenticate": "false",
    "spark.network.crypto.enabled": "false",
}


def local(master: str) -> bool:
    """Whether a master is this process itself."""
    return master.partition("[")[0] == "local"


def open_doors(settings: Mapping[str, str], master: str) -> list[str]:
    """The settings that are not as they must be, as they should be written."""
    asked = HERE if local(master) else {**HERE, **CLUSTER}
    return [
        f"{name}={value}"
        for name, value in asked.items()
        if settings.get(name, UNSET[name]).strip().lower() not in (value.lower(), f"{value}b")
    ]


def check_settings(context: SparkContext) -> None:
    """Refuse a session that is not shut."""
    found = open_doors(dict(context.getConf().getAll()), cast("str", context.master))
    if found:
        raise SetupError(
            "bad-config",
            f"This Spark session may not hold private rows: it was not started with {', '.join(found)}.",
            "Start a session of its own with these settings (docs/operate/spark.md).",
        )


GROUP: Final = "spark.jobGroup.id"
LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
GRACE_SECONDS = 60.0  # seconds without an executor after which a job is given up: time for one to be started anew
LOOK_SECONDS = 0.5  # seconds between two looks
NUMBERS: Final = itertools.count()  # of jobs: one process has one session


def stopped(context: SparkContext) -> bool:
    """Whether a session was stopped, or its Java is gone."""
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())  # noqa: SLF001 - there is no other way to ask
    except Exception:  # noqa: BLE001 - what does not answer is gone
        return True


def manned(context: SparkContext) -> bool:
    """Whether anybody is there to work, or comes within the time that a job would be given."""
    if local(context.master):
        return True
    for _ in range(max(int(GRACE_SECONDS / LOOK_SECONDS), 1)):
        if _executors(context):
            return True
        time.sleep(LOOK_SECONDS)
    return False


def _executors(context: SparkContext) -> int:
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # noqa: SLF001 - the driver is one of them


def quiet(context: SparkContext) -> None:
    """Switch off the logs of the driver, and of pyspark, which writes errors down once more."""
    context.setLogLevel("OFF")
    loggers = importlib.import_module("pyspark.logger").PySparkLogger  # of its own class, or its calls would fail
    for name in LOGGERS:
        loggers.getLogger(name).disabled = True


@contextlib.contextmanager
def watched(context: SparkContext) -> Iterator[None]:
    """Run jobs under a name of their own, and give them up where nobody is left to work on them.

    Spark writes an error's text, in which a cell may stand, into its logs: those of this process stay off (T31).
    How long that takes is a constant; whether it happens depends on the cluster and on no row.
    """
    before = context.getLocalProperty(GROUP)
    name = f"sulq-{os.getpid()}-{next(NUMBERS)}"
    context.setLocalProperty(GROUP, name)
    quiet(context)
    done = threading.Event()
    watcher = None
    if not local(context.master):
        watcher = threading.Thread(target=_watch, args=(context, name, done), daemon=True)
        watcher.start()
    try:
        yield
    finally:
        done.set()
        if watcher is not None:
            watcher.join()
        with contextlib.suppress(Exception):
            context.setLocalProperty(GROUP, before)


def _watch(context: SparkContext, name: str, done: threading.Event) -> None:
    alone = 0.0
    while not done.wait(LOOK_SECONDS):
        try:
            workers = _executors(context)
        except Exception:  # noqa: BLE001 - with the context its jobs end too
            return
        alone = 0.0 if workers else alone + LOOK_SECONDS
        if alone >= GRACE_SECONDS:
            with contextlib.suppress(Exception):
                context.cancelJobGroup(name)
            alone = 0.0
