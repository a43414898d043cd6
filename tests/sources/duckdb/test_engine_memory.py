"""The reference engine: what it reads, what it refuses, and that it fails without a word of the rows (T31)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.language.domain import Int, Schema
from sulq.language.rowfn import bucket, lit
from sulq.sources import stored_engine as module
from tests.sources.cases import ASKED, CANARY, ask, memory, parquet, sums, table


def test_it_reads_frames_and_files(tmp_path: Path) -> None:
    """A frame and its Parquet file give the same sums; a DuckDB file is not for it; a missing column is named."""
    assert sums(memory(parquet(tmp_path))) == sums(memory(table())) == sums(memory(table(), batch=1))
    (tmp_path / "x.duckdb").touch()
    with pytest.raises(SetupError) as refused:
        memory(tmp_path / "x.duckdb")
    assert refused.value.code == "engine-not-available"
    declared = Schema("data", (("agee", Int(0, 9)),))
    for data in (parquet(tmp_path), table()):
        with pytest.raises(SetupError, match=r"no column .agee.+it has: .*age, ") as refused:
            memory(data, schema=declared).ready()
        assert refused.value.code == "missing-column"


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
