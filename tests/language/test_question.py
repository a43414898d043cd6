"""Questions: what may be asked at all, and how a price is divided over it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.errors import QuestionError
from sulq.language.question import QUESTIONS, WHOLE, Above, Choose, Holistic, OpenSums, Sums, Together
from sulq.language.relation import Table
from sulq.language.rowfn import Col, Lit
from sulq.language.score import Rank


def code(maker) -> str:
    with pytest.raises(QuestionError) as refusal:
        maker()
    return refusal.value.code


def test_a_question_is_made_of_row_functions():
    """Values, a condition, keys; all of them row functions, at least one value."""
    question = Sums((Col("a"), Lit(1)), Col("b") > 1, (Col("c"),))
    assert question.parts() == [*question.values, question.where, *question.by]
    assert question.over == WHOLE == Table("")
    for maker in (
        lambda: Sums(("a",)),
        lambda: Sums((Lit(1),), "a"),
        lambda: Sums((Lit(1),), None, ("a",)),
        lambda: Sums((Lit(1),), True),
        lambda: Sums((len,)),
        lambda: Together(("a",)),
        lambda: Together((Together((Sums((Lit(1),)),)),)),
    ):
        assert code(maker) == "bad-question"


def test_questions_have_limits_T74():
    """4096 values, 32 keys, 4096 questions, 50,000 nodes and 64 levels (T74)."""
    deep = Col("a")
    for _ in range(63):
        deep = deep + 1
    Sums((deep,))
    for maker in (
        lambda: Sums(()),
        lambda: Sums((Lit(1),) * 4097),
        lambda: Sums((Lit(1),), None, (Col("c"),) * 33),
        lambda: Sums((deep + 1,)),
        lambda: Sums((deep,) * 500),
        lambda: Together(()),
        lambda: Together((Sums((Lit(1),)),) * 4097),
        lambda: Together((Sums((deep,) * 300),) * 3),
    ):
        assert code(maker) == "too-large"


def test_shares_are_positive_numbers_one_for_each():
    """Shares become exact fractions; what is no share is refused, not passed on."""
    assert Sums((Lit(1), Lit(1)), shares=(1, 0.5)).shares == (Fraction(1), Fraction(1, 2))
    assert Together((Sums((Lit(1),)),), (Fraction(3),)).shares == (Fraction(3),)
    for bad in (
        (1,), (1, 1, 1), (1, 0), (1, -1), (1, float("nan")), (1, float("inf")), (1, "1"), (1, None), (True, True),
        (1, 1e-10), (1, 10**10), (1, Fraction(1, 10**400)),
    ):  # fmt: skip
        assert code(lambda bad=bad: Sums((Lit(1), Lit(1)), shares=bad)) == "bad-question"
        assert code(lambda bad=bad: Together((Sums((Lit(1),)),) * 2, bad)) == "bad-question"


def test_six_questions_are_the_whole_language():
    """Sums, sums by open keys, choices, thresholds, statistics of the whole, several together: no more (S0.29)."""
    assert set(QUESTIONS) == {Sums, OpenSums, Choose, Above, Holistic, Together}


def test_a_threshold_is_a_number_or_one_for_each_sum():
    """Kept as a tuple of plain numbers, exact as they were given; its parts are those of its sums."""
    counts = Sums((Lit(1),), Col("f"), (Col("g"),))
    asked = Above(counts, 3)
    assert (asked.threshold, asked.levels) == ((3,), (Fraction(3),))
    assert Above(counts, [0.5, np.int64(2), Fraction(1, 4)]).levels == (Fraction(1, 2), Fraction(2), Fraction(1, 4))
    assert Above(counts, asked.threshold).threshold == asked.threshold
    assert (asked.parts(), asked.over) == (counts.parts(), counts.over)
    assert len(Together((asked, counts)).questions) == 2
    for bad in (lambda: Above(counts.values, 3), lambda: Above(Sums((Lit(1), Lit(2))), 3), lambda: Above(asked, 3)):
        assert code(bad) == "bad-question"
    for bad in ("3", None, True, float("inf"), (1, float("nan"))):
        assert code(lambda bad=bad: Above(counts, bad)) == "bad-literal"
    assert code(lambda: Above(counts, ())) == code(lambda: Above(counts, (1,) * 4097)) == "too-large"


def test_open_sums_and_choices_are_built_from_row_functions():
    """Their parts are those of their sums; they stand beside sums in Together."""
    opened = OpenSums((Lit(1),), Col("f"), (Col("note"),))
    chosen = Choose(Sums((Lit(1),), None, (Col("g"),)), Rank(1, 2))
    assert opened.parts() == [*opened.values, opened.where, *opened.by]
    assert chosen.parts() == chosen.counts.parts()
    assert chosen.over == opened.over == Sums((Lit(1),)).over
    assert len(Together((opened, chosen, Sums((Lit(1),)))).questions) == 3
    for bad in (
        lambda: OpenSums((Lit(1),)),
        lambda: OpenSums((1,), None, (Col("g"),)),
        lambda: OpenSums((), None, (Col("g"),), (), "data"),
        lambda: Choose(opened, Rank(1, 2)),
        lambda: Choose(chosen.counts, "rank"),
        lambda: Choose(Sums((Lit(1),)), Rank(1, 2)),
    ):
        assert code(bad) == "bad-question"
