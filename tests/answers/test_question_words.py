"""Questions in a few words, as lists of past asks show them."""

from __future__ import annotations

import pytest

from sulq import col
from sulq.answers.question_words import asked
from sulq.language.question import Above, OpenSums, Sums, Together
from sulq.language.rowfn import Lit

COUNT = Sums((Lit(1),), col("age") > 3, (col("city"),))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (COUNT, "count by city where age meets a condition"),
        (Sums((col("income"),)), "sum of income"),
        (OpenSums((), None, (col("city"),)), "people by city"),
        (Above(COUNT, 5), "the first above a threshold: count by city where age meets a condition"),
        (Together((COUNT, COUNT)), "count by city where age meets a condition"),
        (None, "a question"),
    ],
)
def test_a_question_is_said_in_a_few_words(question: object, text: str) -> None:
    """What was asked of the rows: values, keys, and which columns a condition reads."""
    assert asked(question) == text
