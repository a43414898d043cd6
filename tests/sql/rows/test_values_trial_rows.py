"""Tests of sulq.sql.rows.values."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.language.domain import Int, Schema
from sulq.language.kinds import Cells
from sulq.language.rowfn import Col
from sulq.language.rowfn.base import evaluate
from sulq.sql.rows.values import TrialRows

SCHEMA = Schema("", (("a", Int(0, 9)),))


def test_row_functions_are_evaluated_on_made_up_cells():
    """A column is what was made up for it, and its rows are of different people."""
    rows = TrialRows(SCHEMA, 2, lambda _: Cells(np.array([3, 4]), None))
    assert evaluate(Col("a") + 1, rows).values.tolist() == [4, 5]
    assert rows.person().tolist() == rows.position().tolist() == [0, 1]


def test_what_is_seen_is_not_looked_up():
    """An expression that is evaluated already needs no column; anything else has none."""
    part = Col("a")
    rows = TrialRows(SCHEMA, 1, seen={id(part): Cells(np.array([7.0]), None, part)})
    assert evaluate(part, rows).values.tolist() == [7]
    with pytest.raises(LookupError):
        evaluate(Col("a"), rows)
