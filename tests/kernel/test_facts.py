"""Facts are values: equal ones are equal, whoever made them."""

from __future__ import annotations

import dataclasses

import pytest

from sulq.kernel.facts import Column, Facts, Table


def test_facts_are_frozen_values() -> None:
    """So a certificate may be remembered under them."""
    table = Table(("kept",), (("c0", Column("TINYINT", 0, 5)),), 1, owned=True)
    facts = Facts((table,), "add_remove", row_is_person=False)
    assert facts == dataclasses.replace(facts)
    assert len({facts, dataclasses.replace(facts)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        facts.neighbors = "replace_one"  # type: ignore[misc]
