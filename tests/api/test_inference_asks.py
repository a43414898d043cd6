"""The inference asks at both doors: the methods are those of the room, and it is loaded when one is called."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sulq import Epsilon
from sulq.api.inference_asks import InferenceAsks
from sulq.testing import exact
from tests.inference.cases import opened

ASKS = {
    "ols": lambda db: db.ols("y", ["x"], spend=Epsilon(2)),
    "logit": lambda db: db.logit("won", ["x"], spend=Epsilon(2)),
    "ttest": lambda db: db.ttest("y", "won", spend=Epsilon(2)),
    "proportions": lambda db: db.proportions("won", "plan", spend=Epsilon(2)),
    "chi2": lambda db: db.chi2(["won", "plan"], spend=Epsilon(2)),
}


@pytest.mark.parametrize("name", ASKS)
def test_each_ask_gives_its_table_without_noise_too(name: str) -> None:
    """Every public method of the mixin is among them."""
    assert set(ASKS) == {name for name in vars(InferenceAsks) if not name.startswith("_")}
    with opened() as db:
        assert "protects one row" in repr(ASKS[name](exact(db)))


def test_inference_is_loaded_when_it_is_asked_for() -> None:
    """Importing the package loads none of it."""
    code = "import sulq, sys; print(any(name.startswith('sulq.inference') for name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "False"
