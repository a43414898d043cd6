"""The examples run as they stand."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

EXAMPLES = sorted(path.stem for path in (Path(__file__).resolve().parents[1] / "examples").glob("[a-z]*.py"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    """Each example runs from beginning to end."""
    database = importlib.import_module(f"examples.{name}").main(tmp_path)
    if database is not None:
        database.close()
