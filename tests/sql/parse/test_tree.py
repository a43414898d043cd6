"""Tests of sulq.sql.parse.tree."""

from __future__ import annotations

import time

import pytest
from sqlglot import exp

from sulq.errors import QuestionError
from sulq.sql.parse.syntax import SqlRefused
from sulq.sql.parse.tree import MAX_QUERY_BYTES, checked, limit, place, tokens, tree


def read(text: str, what: str = "condition") -> exp.Expr:
    found = tokens(text)
    limit(found, what)
    return tree(found, text, what)


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("a = 1 GROUP BY b", 6, "near 'GROUP BY'"),
        ("a = 'x", 4, "quotation that begins here"),
        ("a = 'x''y' AND b = \"c", 19, "quotation that begins here"),
        ("a = 1 /* b", 6, "remark that begins here"),
        ("a = $t$ b", 4, "quotation that begins here"),
        ("(a = 1", 5, "near '1'"),
        ("a =", 2, "near '='"),
        ("md5(a, b, c) = a", 11, "does not take so many arguments"),
        ("a = 1; b = 2", 5, "One condition at a time"),
        ("a = 1 UNION SELECT 2", 6, "near 'UNION'"),
        ("a = 1 -- it's", None, ""),
    ],
)
def test_what_breaks_the_grammar_is_refused_where_it_stands(text: str, at: int | None, words: str) -> None:
    """Each with the place of the word at which the reading stopped; a remark at the end is none of it."""
    if at is None:
        assert isinstance(read(text), exp.EQ)
        return
    with pytest.raises(SqlRefused) as caught:
        read(text)
    assert (caught.value.code, caught.value.at) == ("sql-syntax", at)
    assert words in caught.value.message


def test_what_is_no_text_or_too_long_is_refused() -> None:
    """In the words of what was asked for: a condition is none of a query's SELECT."""
    for text in (None, 3, "", "  ", "a\x00", "\ud800", "a" * (MAX_QUERY_BYTES + 1), "a " * 9_000):
        with pytest.raises(QuestionError, match=r"A condition"):
            checked(text, "condition")
    assert checked("a > 1", "condition") == "a > 1"


def test_the_place_of_a_function_is_that_of_its_name() -> None:
    """Also where the parser keeps none: CASE, CAST, STRING_AGG."""
    for text in ("b + STRING_AGG(a, ',')", "b + CASE WHEN a THEN 1 END", "b + CAST(a AS int)", "b + CURRENT_DATE"):
        found = read(text)
        assert place(found) == 0
        assert place(found.expression) == 4


def test_an_unclosed_quotation_is_found_in_linear_time_T74() -> None:
    """However many openings there are."""
    start = time.perf_counter()
    for text in ("/*" * 40_000, "$a$ '' " * 8_000 + "'", "''" * 40_000 + "'", "\"'" * 40_000):
        with pytest.raises((SqlRefused, QuestionError)):
            read(text)
    assert time.perf_counter() - start < 20
