"""Row functions of text as SQL: the same characters and the same patterns."""

from __future__ import annotations

import time

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.language.rowfn import (
    Col,
    IndexOf,
    Length,
    Like,
    Lowered,
    NullIf,
    RowFn,
    StartsWith,
    Substring,
    Trimmed,
    Uppered,
)
from sulq.language.rowfn.texts import THERE
from tests import expressions
from tests.counts import count
from tests.meaning import like
from tests.sources.rowwise import filled, in_numpy, in_sql

CASES = count("patterns and texts as SQL", short=150, long=20_000)
TEXTS = count("texts of any script as SQL", short=40, long=5_000)
SIGNS = "ab%_ \n\\.*[]()^$\u00e9\u0301\u0130\u1e9e\u03c2\ufb01\U0001f986\u00a0\u200d\ufeff"


@settings(max_examples=CASES)
@given(st.text(alphabet="ab\n\u00e9", max_size=8), expressions.patterns())
def test_a_pattern_means_the_same_everywhere(text, pattern):
    """LIKE in SQL, in NumPy and by all places it can come to."""
    fn = Like(Col("name"), pattern)
    rows = filled({"name": [text, None]})
    assert in_sql(fn, rows) == in_numpy(fn, rows) == [like(fn, text), None]


def test_a_text_that_is_missing_begins_with_nothing():
    """Not even with the empty text: as a condition DuckDB takes starts_with(x, '') for true without looking at x.

    The control is that statement itself.
    """
    fn = StartsWith(NullIf(Col("name"), Col("name")), "")
    rows = filled({"name": ["a", "b", None]})
    assert in_sql(fn, rows) == in_numpy(fn, rows) == [None] * 3
    with duckdb.connect() as plain:
        plain.execute("CREATE TABLE t AS SELECT 'a' || i AS x FROM range(2) r(i)")
        counted = "SELECT count(*) FROM t WHERE {}"
        (careless,), (ours,) = (
            plain.execute(counted.format(condition.format("nullif(x, x)"))).fetchone()
            for condition in ("starts_with({}, '')", THERE)
        )
    assert (careless, ours) == (2, 0)


@pytest.mark.parametrize("sign", [chr(i) for i in range(1, 128)])
def test_every_ascii_character_of_a_pattern_stands_for_itself(sign):
    """But % and _ no character is special, on the path of regular expressions too."""
    fn = Like(Col("name"), f"_{sign}%{sign}", escape="")
    rows = filled({"name": [f"x{sign}{sign}", f"x{sign}y\n{sign}", f"x{sign}", sign * 3, "xyz", "x\\\\"]})
    found = in_sql(fn, rows)
    assert found == in_numpy(fn, rows)
    assert found[0]
    assert sign in "%_" or not found[4]


@settings(max_examples=TEXTS)
@given(st.text(alphabet=SIGNS, max_size=6) | st.text(max_size=6), st.integers(-2, 7), st.none() | st.integers(0, 4))
def test_texts_of_any_script_are_cut_and_changed_alike(text, start, length):
    """Combining marks, characters past the first plane, letters whose case changes their length: all code points."""
    text = text.encode("utf-8", "ignore").decode().replace("\x00", "")
    fns: list[RowFn] = [f(Col("name")) for f in (Lowered, Uppered, Length)]
    fns += [Trimmed(Col("name"), side, " \u00e9\U0001f986") for side in ("both", "left", "right")]
    fns += [Trimmed(Col("name")), Substring(Col("name"), start, length)]
    fns += [IndexOf(Col("name"), needle) for needle in ("", "\u0301", "a", "\U0001f986")]
    rows = filled({"name": [text, text * 3, None]})
    for fn in fns:
        assert in_sql(fn, rows) == in_numpy(fn, rows), fn


@pytest.mark.parametrize("path", [in_sql, in_numpy])
def test_no_pattern_takes_time_but_in_proportion_T74(path):
    """Patterns on which a matcher that takes choices back never ends are decided at once."""
    rows = filled({"name": ["a" * 20_000, "a" * 20_000 + "b"]})
    for pattern in ("%a" * 90 + "%b_", "%a_" * 45 + "c", "%_" * 49 + "%b", "_" * 99 + "%"):
        start = time.process_time()
        path(Like(Col("name"), pattern), rows)
        assert time.process_time() - start < 2


def test_a_length_has_a_bound():
    """More than 10,000 characters count as 10,000, and a place past them too."""
    rows = filled({"name": ["a" * 10_000 + "bb", "a", None]})
    assert in_sql(Length(Col("name")), rows) == in_numpy(Length(Col("name")), rows) == [10_000.0, 1.0, None]
    place = IndexOf(Col("name"), "bb")
    assert in_sql(place, rows) == in_numpy(place, rows) == [10_000.0, 0.0, None]
