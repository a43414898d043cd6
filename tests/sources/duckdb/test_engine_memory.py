"""The reference engine: what it reads, what it refuses, and that it fails without a word of the rows (T31)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.language.privacy import Unit
from sulq.language.rowfn import bucket, lit
from sulq.sources import stored_engine as module
from sulq.sources.duckdb.engine import MemoryEngine
from sulq.sources.source import Origin
from sulq.sources.tables import Dataset
from tests.sources.cases import ASKED, CANARY, KEY, SCHEMA, ask, parquet, sums, table


def memory(data: object, **more: object) -> MemoryEngine:
    """The engine over data."""
    return MemoryEngine(Dataset.one(Origin.of(data), SCHEMA, Unit(), KEY), **more)


def test_it_reads_frames_and_files(tmp_path: Path) -> None:
    """A frame and its Parquet file give the same sums; a DuckDB file is not for it."""
    assert sums(memory(parquet(tmp_path))) == sums(memory(table())) == sums(memory(table(), batch=1))
    (tmp_path / "x.duckdb").touch()
    with pytest.raises(SetupError) as refused:
        memory(tmp_path / "x.duckdb")
    assert refused.value.code == "engine-not-available"


def test_a_failure_has_a_code_and_no_text_T31(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever goes wrong while summing is one constant error; the log has the kind of it alone."""

    def fail(*_: object, **__: object) -> None:
        raise ValueError(f"could not convert {CANARY}")

    monkeypatch.setattr(module, "fold", fail)
    with caplog.at_level(logging.DEBUG), pytest.raises(CuratorError) as failed:
        memory(table()).sums(ASKED[0])
    assert failed.value.code == "engine-failed"
    assert failed.value.__context__ is failed.value.__cause__ is None
    assert CANARY not in caplog.text + str(failed.value)
    assert "ValueError" in caplog.text


def test_persons_that_were_not_kept_cannot_be_asked() -> None:
    """A bucket where rows are nobody's is refused by the plan, and fails here."""
    with pytest.raises(CuratorError) as failed:
        memory(table()).sums(ask(lit(1), by=(bucket(2),)))
    assert failed.value.code == "engine-failed"


def test_a_closed_engine_answers_nothing() -> None:
    """After close there are no rows."""
    engine = memory(table())
    engine.close()
    with pytest.raises(AccessDenied) as refused:
        engine.sums(ASKED[0])
    assert refused.value.code == "closed"
