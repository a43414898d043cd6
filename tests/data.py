"""Where the shared test data lies: public data sets that are no part of this repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def need(path: str) -> Path:
    """A file of the shared data, from $SULQ_DATA or beside the checkout; without it the test is skipped."""
    folder = Path(os.environ.get("SULQ_DATA") or ROOT.parent / "shared" / "data")
    found = folder / path
    if not found.exists():
        pytest.skip(f"needs the shared test data: no {path} in $SULQ_DATA or ../shared/data")
    return found
