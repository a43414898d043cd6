"""What is known of a number's size: it always holds, so nothing written in SQL leaves the doubles (T30)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from sulq.curator.engines.piece import NotInSql
from sulq.curator.engines.postgres_extent import NOTHING, ONE, Extent, Extents, added, either, of, power, product
from sulq.curator.engines.postgres_extent import quotient as divided
from sulq.terms.kinds import Scalar
from sulq.terms.rowfn import Col, Lit, col
from sulq.terms.rowfn.scalar import evaluate
from tests import expressions
from tests.curator.engines.test_emit_rows import placed
from tests.expressions import SCHEMA
from tests.frames import Frame


@settings(max_examples=300)
@given(expressions.numbers(), expressions.tables().map(placed))
def test_T30_no_row_leaves_the_extent(fn, rows):
    """Every value that is not missing and not 0 lies within the bounds, whatever the expression."""
    if not isinstance(fn.kind(SCHEMA), Scalar):
        return
    try:
        extent = Extents(SCHEMA).of(fn)
    except NotInSql:
        return
    cells = evaluate(fn, Frame(SCHEMA, rows))
    there = np.ones(len(rows), dtype=bool) if cells.missing is None else ~cells.missing
    sizes = np.abs(cells.values[there].astype(np.float64))
    sizes = sizes[sizes > 0]
    assert (sizes >= extent.least).all()
    assert (sizes <= extent.most * (1 + 1e-12)).all()


def test_the_arithmetic_of_extents():
    """Products multiply both ends, a sum may cancel down to the last place, nothing times anything is nothing."""
    a, b = Extent(0.5, 4.0), Extent(2.0, 8.0)
    assert product(a, b) == (1.0, 32.0)
    assert divided(a, b) == (0.0625, 2.0)
    assert added(a, b) == (0.5 * 2.0**-53, 12.0)
    assert either(a, b) == (0.5, 8.0)
    assert power(a, 3) == (0.125, 64.0)
    assert product(a, NOTHING) == divided(NOTHING, a) == divided(a, NOTHING) == NOTHING
    assert of(-3.0) == (3.0, 3.0)
    assert of(0.0) == NOTHING
    assert ONE == (1.0, 1.0)


@pytest.mark.parametrize(
    "fn",
    [
        Lit(1e60) * 1e60 * 1e60 * 1e60 * 1e60,
        Col("tiny") * 1e-300,
        Col("large") * 1e60 * 1e60 * 1e60 * 1e60,
        Col("large") / (Col("tiny") * 1e-215),
    ],
)
def test_what_might_overflow_or_underflow_is_left_to_batches(fn):
    """Control: near the ends of the doubles nothing is promised."""
    with pytest.raises(NotInSql):
        Extents(SCHEMA).of(fn).safe  # noqa: B018 - raises


def test_lookups_and_texts_have_no_extent():
    """A number that SQL does not work out is left to batches, by its kind."""
    with pytest.raises(NotInSql):
        Extents(SCHEMA).of(Col("city"))
    with pytest.raises(NotInSql):
        Extents(SCHEMA).of(col("name"))
