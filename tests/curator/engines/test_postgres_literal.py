"""Doubles as literals: PostgreSQL reads them back to the same bits."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from sulq.curator.engines.postgres_literal import double
from tests.curator.engines.rowwise_postgres import session


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(-1.7976931348623157e308)
@example(0.1)
def test_a_double_is_read_back_to_the_same_bits(number):
    """Every double, denormals too, and as a double: a bare number would be a numeric."""
    ((found, kind),) = session().execute(f"SELECT {double(number)}, pg_typeof({double(number)})::text").fetchall()
    assert (found, kind) == (number, "double precision")


def test_a_negative_zero_is_zero():
    """No sign is left on it."""
    assert double(-0.0) == double(0.0)
