"""Comparisons that need Spark or PostgreSQL: where one is not there, the page says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import heavy
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
