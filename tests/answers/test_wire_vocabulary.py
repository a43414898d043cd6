"""The vocabulary: one table of every kind of value that may cross a boundary."""

from __future__ import annotations

import dataclasses

from sulq.answers import wire
from sulq.kernel.private import Private
from sulq.language.domain import COLUMNS
from sulq.language.question import QUESTIONS
from sulq.language.rowfn import ROW_FUNCTIONS


def test_names_are_unique_and_values_frozen():
    """Every kind is a frozen dataclass under its own name; none hides another."""
    every = (
        *wire.LOSSES, *wire.EVENTS, *wire.LAWS, *wire.PLANS, *wire.ANSWERS, *COLUMNS,
        *QUESTIONS, *ROW_FUNCTIONS,
    )  # fmt: skip
    assert len(wire.KINDS) == len(every) == len(set(every))
    assert all(dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen for cls in every)


def test_no_private_value_has_a_name_on_the_wire_SR21():
    """Private is not in the table, and cannot be by its name (SR21)."""
    assert Private not in wire.KINDS.values()
    assert not {"Private", "Frame", "Cells", "Engine"} & set(wire.KINDS)
