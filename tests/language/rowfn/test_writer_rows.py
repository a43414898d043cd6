"""Each row function as SQL gives, row by row, what it gives in NumPy: to the bit, but for ln, exp and odd powers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.language.kinds import Code
from sulq.language.rowfn import ROW_FUNCTIONS, Col, Lit, NullIf, RowFn, Substring
from tests import expressions
from tests.counts import count
from tests.expressions import EXAMPLES, SCHEMA
from tests.frames import Row
from tests.sources.rowwise import filled, in_numpy, in_sql

CASES = count("row functions as SQL, row by row", short=150, long=20_000)
LEFT_TO_BATCHES = {
    "Bernstein",
    "Dot",
    "Lookup",
    "Nearest",
    "Outer",
    "Route",
    "Scaled",
    "Vector",
    "WithinBall",
    "WithinL1",
}
EXPRESSIONS = st.one_of(
    expressions.numbers(),
    expressions.conditions(),
    expressions.keys(),
    expressions.words(2),
    expressions.dates(2),
    st.sampled_from(list(EXAMPLES.values())),
)


def placed(rows: list[Row]) -> list[Row]:
    return [{**row, "position": i} for i, row in enumerate(rows)]


@settings(max_examples=CASES)
@given(EXPRESSIONS, expressions.tables().map(placed))
def test_every_row_is_the_same_in_SQL_SR16_T30(fn, rows):
    """No difference in generated expressions, missing values and ends of ranges included; no row raises (T30)."""
    found = in_sql(fn, rows)
    if found is not None:
        assert found == in_numpy(fn, rows)


def test_a_text_cut_one_character_off_is_noticed():
    """Control: the comparison tells neighbouring functions apart."""
    rows = filled({"name": ["Haifa", "Lod", None]})
    fn, other = Substring(Col("name"), 2), Substring(Col("name"), 1)
    assert in_sql(fn, rows) == in_numpy(fn, rows) != in_numpy(other, rows)


@pytest.mark.parametrize("node", ROW_FUNCTIONS, ids=lambda node: node.__name__)
def test_every_node_is_written(node):
    """Only vectors and their like are left to the batch path."""
    written = in_sql(EXAMPLES[node], filled({"few": [None, 1]})) is not None
    assert written == (node.__name__ not in LEFT_TO_BATCHES)


@pytest.mark.parametrize(
    ("start", "other"),
    [
        (Col("few"), Lit(1)),
        (Col("flag"), Lit(True)),
        (Col("city"), Lit("Lod")),
        (Col("name"), Lit("x")),
        (Col("city"), Col("town")),
    ],
)
def test_a_tower_of_nullif_is_written_once_a_storey_T74(start: RowFn, other: RowFn):
    """Each storey looks twice at the one below, and names it."""
    fn = start
    for _ in range(24):
        fn = NullIf(fn, other)
    rows = filled({"few": [1, 0], "flag": [1, 0], "city": [1, 0], "town": [1, 1], "name": ["x", "y"]})
    found = in_sql(fn, rows)
    assert found == in_numpy(fn, rows)
    assert found[0] is None
    assert found[1] is not None
    assert isinstance(start.kind(SCHEMA), type(fn.kind(SCHEMA))) or isinstance(fn.kind(SCHEMA), Code)
