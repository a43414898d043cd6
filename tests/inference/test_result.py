"""The table of an inference: columns, rounding, notebooks, and estimates that are not known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from sulq import Epsilon
from sulq.errors import QuestionError
from sulq.inference.result import COLUMNS, checked_level, estimates_of, unknown
from tests.inference.cases import opened


def test_a_result_is_a_small_table_with_its_price_and_what_it_counts() -> None:
    """Printed, in a notebook, as a frame; by the name of a term; the receipt and the price of both questions."""
    with opened() as db:
        found = db.ols("y", ["x"], spend=Epsilon(2), level=0.9)
    assert tuple(found.to_pandas().columns) == COLUMNS
    assert found.spent == Epsilon(2)
    assert len(found.bill.receipts) == 2
    assert abs(found.rows_used - 6000) < 300
    assert found.receipt == found.bill.receipts[-1]
    text = repr(found)
    assert "low 90%" in text
    assert "noise and the sampling of a larger population" in text
    assert "spent epsilon 2" in text
    assert "<table>" in found._repr_html_()
    assert found["x"] in list(found)
    with pytest.raises(QuestionError, match="intercept, x"):
        found["y"]


def test_estimates_that_are_not_known_have_no_number() -> None:
    """Neither value nor p-value, and an endless interval."""
    nothing = np.zeros(1)
    (one,) = estimates_of(("a",), nothing, nothing, reach=nothing, p=nothing, known=False)
    assert math.isnan(one.coef)
    assert (one.low, one.high) == (-math.inf, math.inf)


def test_a_p_value_without_a_hypothesis_is_a_dash() -> None:
    """Of group means, in text and in HTML; that of an estimate which is not known is unknown."""
    with opened() as db:
        found = db.ttest("y", by="who'se", spend=Epsilon(4))
    tested = [one.term for one in found if not math.isnan(one.p)]
    assert len(tested) == 1
    assert "unknown" not in repr(found)
    assert repr(found).count(" -\n") == len(list(found)) - 1
    assert found._repr_html_().count("<td>-</td>") == len(list(found)) - 1
    bare = replace(found, estimates=(unknown("a"),))
    assert "unknown" in repr(bare)
    assert bare._repr_html_().count("<td>unknown</td>") == 2


@pytest.mark.parametrize("level", [0, 1, 1.0, 0.2, "0.95", True, math.nan])
def test_a_level_is_a_probability(level: object) -> None:
    """A percentage, a text or a truth value is refused."""
    with pytest.raises(QuestionError):
        checked_level(level)
