"""What `sulq.audit` offers, and the shape every attack has."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

import sulq
from sulq.audit import ATTACKS, Finding


def test_every_name_is_there_and_described() -> None:
    """Names are sorted as the linter sorts them, exist, and say what they are."""
    assert all(hasattr(sulq.audit, name) for name in sulq.audit.__all__)
    silent = [
        name
        for name in sulq.audit.__all__
        if callable(getattr(sulq.audit, name)) and not inspect.getdoc(getattr(sulq.audit, name))
    ]
    assert silent == []


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_an_attack_asks_an_oracle_and_reports_a_finding(attack: Callable[..., Finding]) -> None:
    """Whom to ask comes first, all else by name, a spend among it; and what comes back has its allowance beside it."""
    found = inspect.signature(attack)
    first, *rest = found.parameters.values()
    assert first.name == "oracle"
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in rest)
    assert "spend" in found.parameters
    assert found.return_annotation == "Finding"
