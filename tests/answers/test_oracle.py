"""The Oracle: one door of three members."""

from __future__ import annotations

import inspect

from sulq.answers.oracle import Oracle
from sulq.curator.reuse import ReusingOracle
from tests.stub import Stub


def test_the_door_is_facts_foresee_and_ask():
    """Nothing else is asked of an Oracle, and the curator and the stub of these tests have it."""
    members = {name for name in vars(Oracle) if not name.startswith("_")}
    assert members == {"facts", "foresee", "ask"}
    for cls in (ReusingOracle, Stub):
        for name in ("foresee", "ask"):
            asked = list(inspect.signature(getattr(Oracle, name)).parameters)
            assert list(inspect.signature(getattr(cls, name)).parameters) == asked
        assert isinstance(vars(cls)["facts"], property)
