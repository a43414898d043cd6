"""The vocabulary: one table of every kind of value that may cross a boundary."""

from __future__ import annotations

import dataclasses

from sulq.answers import vocabulary
from sulq.kernel.private import Private
from sulq.language.domain import COLUMNS
from sulq.language.question import QUESTIONS
from sulq.language.rowfn import ROW_FUNCTIONS


def test_names_are_unique_and_values_frozen():
    """Every kind is a frozen dataclass under its own name; none hides another."""
    every = (
        *vocabulary.LOSSES, *vocabulary.EVENTS, *vocabulary.LAWS, *vocabulary.PLANS, *vocabulary.ANSWERS, *COLUMNS,
        *QUESTIONS, *ROW_FUNCTIONS,
    )  # fmt: skip
    assert len(vocabulary.KINDS) == len(every) == len(set(every))
    assert all(dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen for cls in every)


def test_no_private_value_has_a_name_on_the_wire_SR21():
    """Private is not in the table, and cannot be by its name (SR21)."""
    assert Private not in vocabulary.KINDS.values()
    assert not {"Private", "Frame", "Cells", "Engine"} & set(vocabulary.KINDS)
