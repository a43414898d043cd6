"""The closed table of functions: each gives what DuckDB gives, and none is listed that DuckDB does not have."""

from __future__ import annotations

import duckdb
import pytest

from sulq.kernel.facts import Refused
from sulq.kernel.values import FUNCTIONS, PARTS, PERIODS
from tests.kernel.test_values import read, wrong


def test_every_function_is_one_of_duckdbs() -> None:
    """A name that DuckDB does not know could never be certified and run."""
    known = {name for (name,) in duckdb.execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()}
    assert FUNCTIONS.keys() <= known


@pytest.mark.parametrize("part", sorted(PARTS))
def test_parts_of_moments_lie_in_their_intervals(part: str) -> None:
    """At the ends of the calendar, around 1970 and at every end of a month of some years."""
    moments = [0, -1, 2**62, -(2**62), 951_782_400_000_000, 86_399_999_999, -62_135_596_800_000_000]
    moments += [day * 86_400_000_000 + 86_399_999_999 for day in range(10_900, 12_000)]
    found = duckdb.execute(
        f"SELECT date_part('{part}', make_timestamp(m)) FROM (SELECT unnest(?::BIGINT[]) AS m)", [moments]
    ).fetchall()
    low, high = PARTS[part]
    assert all(low <= value <= high for (value,) in found)


@pytest.mark.parametrize("period", sorted(PERIODS))
def test_a_period_begins_before_its_moments(period: str) -> None:
    """Not longer before than was said."""
    expression = f"epoch_us(date_trunc('{period}', make_timestamp(CAST(c0 AS BIGINT) * 1000000000000000)))"
    value = read(expression)
    for c0 in (-2, 0, 3):  # of moments before Christ: DECEIVERS
        (cell,) = duckdb.execute(f"SELECT {expression} FROM (SELECT {c0}::TINYINT AS c0)").fetchone() or (None,)
        assert not wrong(value, cell)


REFUSED = (
    "ln(c2)", "sqrt(c2)", "make_timestamp(c1 * 3)", "substr(c3, c1)", "c1 % c0", "c0 // c0", "c1 * c1", "-c1 * 4",
    "regexp_matches(c3, c3, 'i')", "date_part(c3, make_timestamp(0))", "date_part('era', make_timestamp(0))",
    "list_extract(list_value(c0), 1)", "list_value(1, 2)", "lower(c0)", "c3 + 1", "c3 || c0", "greatest(c3, 'a')",
    "unnest(list_value(1))", "nextval('x')", "getvariable('x')", "hash(c3)", "length(c0)", "isfinite(c3)",
    "CAST(c3 AS BIGINT)", "TRY_CAST(c3 AS DOUBLE)", "CAST($text0 AS INTEGER)",
    "TRY_CAST(c1 AS TINYINT)", "CAST(c2 * 0.5e0 AS BIGINT)", "TRY_CAST(c2 / c0 AS BIGINT)",
)  # fmt: skip


@pytest.mark.parametrize("expression", REFUSED)
def test_what_may_fail_or_is_not_listed_is_refused(expression: str) -> None:
    """Control: what is guarded is not (test_values)."""
    with pytest.raises(Refused):
        read(expression)


TEXTS = [
    "", " ", "7", " 7 ", "-7", "+7", "7.5", "-0", "1e3", "1e400", "-1e400", "9" * 40, "-9223372036854775808",
    "9223372036854775807", "9223372036854775808", "0x1F", "1_000", "inf", "nan", "NULL", "\x00", "7\x00", "\u0667", "é",
    "7" * 100_000, "true", "1e-400", "--7", "1,5",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["TINYINT", "SMALLINT", "INTEGER", "BIGINT"])
def test_a_text_tried_as_an_integer_is_one_or_missing(kind: str) -> None:
    """Whatever it says, bound or in a column: it never fails. Control: CAST fails, and is refused."""
    for expression in (f"TRY_CAST(c3 AS {kind})", f"TRY_CAST($text0 AS {kind})"):
        value = read(expression)
        assert value.whole
        assert value.null
        for text in TEXTS:
            bound = {"text0": text} if "$" in expression else {}
            rows = "(SELECT $c AS c3)" if "c3" in expression else "(SELECT 1)"
            found = duckdb.execute(f"SELECT {expression} FROM {rows}", bound or {"c": text}).fetchone()
            assert found is not None
            assert not wrong(value, found[0]), (text, found)
    with pytest.raises(duckdb.Error):
        duckdb.execute(f"SELECT CAST('é' AS {kind})").fetchone()
