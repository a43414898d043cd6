"""A Spark job that ends: where the cluster is gone Spark would wait for it for ever."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sulq.sources.spark.settings import local

if TYPE_CHECKING:
    from pyspark import SparkContext

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
