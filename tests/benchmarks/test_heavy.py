"""Comparisons that need Spark or PostgreSQL: where one is not there, the page says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import heavy, spark_queries
from benchmarks.report import Report


def test_what_cannot_be_measured_here_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Spark and PostgreSQL the page names what is missing. Control: with their packages nothing is."""
    monkeypatch.setenv("JAVA_HOME", "/java")
    with monkeypatch.context() as patch:
        patch.setattr(heavy.importlib.util, "find_spec", lambda name: name)
        assert [heavy.missing(source) for source in ("Spark", "PostgreSQL")] == ["", ""]
    report = Report()
    with monkeypatch.context() as patch:
        patch.setattr(heavy.importlib.util, "find_spec", lambda _: None)
        heavy.heavy(report)
    report.write(tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "PostgreSQL is not measured here: no psycopg" in page
    assert "Spark is not measured here: no pyspark" in page


@pytest.mark.skipif(sys.platform != "linux", reason="what processes take is read from /proc")
def test_the_processor_time_of_all_below_is_counted() -> None:
    """Of a child of a child too, while it runs and once it has ended; control: one that sleeps adds next to nothing."""
    burn = "import time\nwhile time.process_time() < 1: pass\nprint('done', flush=True); input()"
    for text, least, most in ((burn, 0.9, 60), ("print('done', flush=True); input()", 0, 0.9)):
        before = spark_queries.processor_seconds()
        inner = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {text!r}])"
        command = [sys.executable, "-S", "-c", inner]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout.readline() == "done\n"
            assert least <= spark_queries.processor_seconds() - before <= most
            child.communicate("\n")
        assert least <= spark_queries.processor_seconds() - before <= most
