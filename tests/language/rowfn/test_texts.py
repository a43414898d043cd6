"""Text: characters are code points, only ASCII letters have two cases, patterns are decided in linear time."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.errors import QuestionError
from sulq.language.kinds import Scalar, Truth, Words
from sulq.language.rowfn import (
    Col,
    Concat,
    IndexOf,
    Length,
    Like,
    Lit,
    Lowered,
    StartsWith,
    Substring,
    Trimmed,
    Uppered,
    like,
    texts,
)
from tests import meaning
from tests.counts import count
from tests.expressions import SCHEMA
from tests.language.rowfn.test_scalar_missing import values

CASES = count("patterns against all their places", short=300, long=50_000)
NAME = Col("name")


@pytest.mark.parametrize(
    ("fn", "want"),
    [
        (Lowered(NAME), "stra\u00dfe \u00c9\u0130x"),
        (Uppered(NAME), "STRA\u00dfE \u00c9\u0130X"),
        (Length(NAME), 10),
        (Substring(NAME, 2, 3), "tra"),
        (Substring(NAME, -1, 3), "S"),
        (Substring(NAME, 0, 1), ""),
        (Substring(NAME, 9), "\u0130x"),
        (Substring(NAME, 99), ""),
        (Trimmed(NAME, "right", "x\u0130"), "Stra\u00dfe \u00c9"),
        (Trimmed(NAME, "left", "tS"), "ra\u00dfe \u00c9\u0130x"),
        (Trimmed(NAME, "both", "Sx"), "tra\u00dfe \u00c9\u0130"),
        (Trimmed(NAME, "both", ""), "Stra\u00dfe \u00c9\u0130x"),
        (IndexOf(NAME, "\u00dfe"), 5),
        (IndexOf(NAME, ""), 1),
        (IndexOf(NAME, "q"), 0),
        (Concat((NAME, Lit("!"))), "Stra\u00dfe \u00c9\u0130x!"),
        (StartsWith(NAME, "Str"), True),
        (StartsWith(NAME, "str"), False),
        (Like(NAME, "S%_x"), True),
        (Like(NAME, "s%"), False),
    ],
)
def test_each_function_means_what_it_says(fn, want):
    """Of one text with letters whose case depends on the language; of a missing one it is missing."""
    assert values(fn, [{"name": "Stra\u00dfe \u00c9\u0130x"}, {"name": None}]) == [want, None]


def test_kinds_follow_the_text():
    """Text stays text, lengths and places have bounds, conditions are unknown where the text is missing."""
    assert Lowered(NAME).kind(SCHEMA) == Words()
    assert Concat((Lit("a"), Lit("b"))).kind(SCHEMA) == Words(nullable=False, longest=2)
    assert Substring(Concat((NAME, NAME)), 10, 3).kind(SCHEMA) == Words(longest=3)
    assert Substring(NAME, 9_999).kind(SCHEMA) == Words(longest=2)
    assert Length(NAME).kind(SCHEMA) == Scalar(0, 10_000, 1)
    assert Like(Lit("a"), "a").kind(SCHEMA) == Truth(nullable=False)


@settings(max_examples=CASES)
@given(st.text(alphabet="ab\n", max_size=10), st.text(alphabet="ab%_\\", max_size=8))
def test_a_pattern_matches_where_some_choice_of_places_does(text, pattern):
    """The leftmost places decide as well as all of them."""
    try:
        fn = Like(NAME, pattern)
    except QuestionError as refusal:
        assert refusal.code == "bad-literal"  # noqa: PT017 - a pattern that ends with its escape
        return
    assert like(text, pattern) == meaning.like(fn, text)


@pytest.mark.parametrize(
    ("pattern", "escape", "text", "want"),
    [
        ("10\\%", "\\", "10%", True),
        ("10\\%", "\\", "100", False),
        ("10!%", "!", "10%", True),
        ("10\\%", "", "10\\x", True),
        ("!a!!", "!", "a!", True),
        ("", "\\", "", True),
        ("%", "\\", "", True),
        ("_", "\\", "", False),
        ("a.c", "\\", "abc", False),
        ("a%a", "\\", "a", False),
    ],
)
def test_an_escaped_sign_stands_for_itself(pattern, escape, text, want):
    """The escape may be any character, or none."""
    assert like(text, pattern, escape) is want


def test_no_pattern_takes_more_than_linear_time_T74():
    """What a matcher that takes choices back would never finish is decided at once."""
    start = time.process_time()
    assert not like("a" * 100_000, "%a" * 40 + "%b")
    assert time.process_time() - start < 1


@settings(max_examples=CASES)
@given(st.text(alphabet="ab\n\u00e9\U0001f600", max_size=12), st.text(alphabet="ab%_\u00e9", max_size=9))
def test_all_places_at_once_are_the_places_one_by_one_T74(text, pattern):
    """Long texts are searched by their bits, short ones place by place: both as all choices of places would."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "MAX_SEARCH_STEPS", -1)
        assert like(text, pattern) == meaning.like(Like(NAME, pattern), text)


def test_a_pattern_that_begins_with_a_wildcard_is_decided_in_linear_time_T74_T100():
    """A long pattern costs each character of the text a fraction of what trying the pattern at each place does.

    Control: trying it at each place, as was done once. Twice the text takes about twice the time.
    """
    text, pattern = "e" * 10_000, "%" + "e" * 450 + "_" * 90 + "e" * 450 + "z%"
    tried = re.compile(texts.expression(texts.segments(pattern, "")[1]), re.DOTALL)

    def taken(act, text):
        found = []
        for _ in range(7):
            start = time.process_time()
            assert not act(text)
            found.append(time.process_time() - start)
        return min(found)

    ours = taken(lambda text: like(text, pattern), text)
    assert ours < taken(tried.search, text) / 3
    assert taken(lambda text: like(text, pattern), text * 2) < 3.5 * ours


@pytest.mark.parametrize(
    ("maker", "code"),
    [
        (lambda: Like(NAME, "a\\"), "bad-literal"),
        (lambda: Like(NAME, "a", "ab"), "bad-literal"),
        (lambda: Like(NAME, 3), "bad-literal"),
        (lambda: Like(NAME, "x" * 1001), "too-large"),
        (lambda: Like(NAME, "%" * 101), "too-large"),
        (lambda: Like("name", "a"), "bad-question"),
        (lambda: Substring(NAME, 1, -1), "bad-literal"),
        (lambda: Substring(NAME, 1.5), "bad-literal"),
        (lambda: Substring(NAME, 2**40), "bad-literal"),
        (lambda: Trimmed(NAME, "middle"), "bad-question"),
        (lambda: Trimmed(NAME, "both", 3), "bad-literal"),
        (lambda: IndexOf(NAME, "a\x00"), "bad-literal"),
        (lambda: StartsWith(NAME, None), "bad-literal"),
        (lambda: Concat(()), "bad-question"),
        (lambda: Concat((NAME, "x")), "bad-question"),
        (lambda: Lowered(Col("city")).kind(SCHEMA), "wrong-kind"),
        (lambda: Length(Col("few")).kind(SCHEMA), "wrong-kind"),
        (lambda: Concat((NAME, Col("few"))).kind(SCHEMA), "wrong-kind"),
        (lambda: Like(Col("flag"), "%").kind(SCHEMA), "wrong-kind"),
        (lambda: StartsWith(Lit(3), "3").kind(SCHEMA), "wrong-kind"),
    ],
)
def test_what_has_no_meaning_is_refused(maker, code):
    """Patterns and lengths are constants with a meaning; only text has characters."""
    with pytest.raises(QuestionError) as refusal:
        maker()
    assert refusal.value.code == code
