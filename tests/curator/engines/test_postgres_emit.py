"""Row functions as PostgreSQL's SQL give, row by row, what they give in NumPy; no row makes one fail (SR16, T30)."""

from __future__ import annotations

import re

import psycopg
import pytest
from hypothesis import given, settings

from sulq.curator.engines import kept
from sulq.curator.engines.emit import NotInSql
from sulq.curator.engines.kept import Rows
from sulq.curator.engines.postgres_emit import PostgresEmitter
from sulq.terms.rowfn import Col, Substring, col
from tests import expressions
from tests.counts import count
from tests.curator.engines.rowwise import filled, in_numpy
from tests.curator.engines.rowwise_postgres import in_postgres, session
from tests.curator.engines.test_emit_rows import EXPRESSIONS, placed
from tests.expressions import EXAMPLES, SCHEMA

CASES = count("row functions as PostgreSQL's SQL, row by row", short=300, long=20_000)
# What is not written: vectors, as for DuckDB, and what PostgreSQL would raise on, or works out another way.
LEFT_TO_BATCHES = {
    "Bernstein", "Dot", "Lookup", "Nearest", "Outer", "Route", "Scaled", "Vector", "WithinBall",
}  # fmt: skip


@settings(max_examples=CASES)
@given(EXPRESSIONS, expressions.tables().map(placed))
def test_SR16_T30_every_row_is_the_same_in_PostgreSQL(fn, rows):
    """No difference in generated expressions, missing values and ends of ranges included; no row raises (T30)."""
    found = in_postgres(fn, rows)
    if found is not None:
        assert found == in_numpy(fn, rows)


def test_a_text_cut_one_character_off_is_noticed():
    """Control: the comparison tells neighbouring functions apart."""
    rows = filled({"name": ["Haifa", "Lod", None]})
    fn, other = Substring(Col("name"), 2), Substring(Col("name"), 1)
    assert in_postgres(fn, rows) == in_numpy(fn, rows) != in_numpy(other, rows)


def test_PostgreSQL_itself_would_fail():
    """Control: the same arithmetic without what is known of its size raises, for one row and not for another."""
    for text in ("1e308 * 1e308", "1e-308 * 1e-308", "1 / 0", "sqrt(-1)", "1e60"):
        item = re.sub(r"(-?[0-9][0-9e.-]*)", r"float8 '\1'", text)
        with pytest.raises(psycopg.DataError):
            session().execute(f"SELECT ({item})::bigint")


WRITTEN = (
    "Arith", "Bins", "Bucket", "Case", "Clip", "Col", "Compare", "Concat", "DatePart", "DateTrunc", "Each", "Fill",
    "First", "Greatest", "IndexOf", "IsIn", "IsMissing", "Least", "Length", "Lit", "Logic", "Lowered", "Not", "NullIf",
    "OrMissing", "Relabel", "StartsWith", "Substring", "ToDate", "ToTimestamp", "Trimmed", "Uppered",
    "Value", "Choice",
)  # fmt: skip


@pytest.mark.parametrize("node", EXAMPLES, ids=lambda node: node.__name__)
def test_the_usual_nodes_are_written(node):
    """What questions are made of day by day is summed in the database; vectors and their like are not."""
    written = in_postgres(EXAMPLES[node], filled({"few": [None, 1]})) is not None
    if node.__name__ in WRITTEN:
        assert written
    if node.__name__ in LEFT_TO_BATCHES:
        assert not written


def test_T71_a_text_is_bound_and_never_spelled_out():
    """A constant stands in no statement; one that the database cannot hold is not sent to it."""
    hostile = "'; DROP TABLE kept; -- %s %(x)s"
    emitter = PostgresEmitter(SCHEMA, Rows("kept", {}, kept.names(SCHEMA), frozenset(), {}, 1))
    piece = emitter.truth(col("name") == hostile)
    assert "DROP" not in piece.sql
    assert emitter.scan(piece.sql).bound == {"text0": hostile}
    assert in_postgres(col("name") == hostile, filled({"name": [hostile, "a", None]})) == [True, False, None]
    with pytest.raises(NotInSql):
        emitter.parameter("a\x00b")
