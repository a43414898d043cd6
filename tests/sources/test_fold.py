"""A batch shows row functions what an engine stored."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.sources.fold import RowBatch
from tests.sources.cases import SCHEMA


def test_codes_are_int64_and_text_stays_text() -> None:
    """Stored widths are the engine's affair; row functions see int64, or objects for Text."""
    note = np.array(["a", None], dtype=object)
    batch = RowBatch(
        SCHEMA, 2, {"age": (np.array([1, 2], dtype=np.int8), None), "note": (note, np.array([False, True]))}
    )
    assert batch.codes("age").values.dtype == np.int64
    assert batch.codes("note").values.tolist() == ["a", None]
    assert batch.part(1, 9).size == 1
    assert batch.part(1, 9).codes("note").missing.tolist() == [True]


def test_persons_and_places_that_were_not_kept_cannot_be_asked() -> None:
    """Where rows carry neither, a row function that looks for them fails."""
    batch = RowBatch(SCHEMA, 0, {})
    for look in (batch.person, batch.position):
        with pytest.raises(LookupError):
            look()


def test_rows_that_are_not_there_lack_every_cell_in_their_places_S4_13() -> None:
    """Of five rows of the source those in the places 3 and 1 are there, in any order; none was there: all lack all."""
    stored = {"age": (np.array([7, 8], dtype=np.int8), np.array([False, True]))}
    whole = RowBatch(SCHEMA, 2, stored, position=np.array([3, 1])).placed(5)
    assert (whole.size, whole.position().tolist()) == (5, [0, 1, 2, 3, 4])
    assert whole.codes("age").missing.tolist() == [True, True, True, False, True]
    assert whole.codes("age").values[3] == 7
    none = RowBatch(SCHEMA, 0, {"age": (np.array([], dtype=np.int8), None)}, position=np.array([], dtype=np.int64))
    assert none.placed(2).codes("age").missing.tolist() == [True, True]
