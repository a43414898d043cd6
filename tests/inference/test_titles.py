"""What expressions are called: as people write them, or by their columns."""

from __future__ import annotations

import pytest

from sulq import Epsilon, col
from sulq.inference.titles import labelled, title
from sulq.language.rowfn import Each, RowFn, bins
from tests.inference.cases import opened

A, B = col("a"), col("b")
WRITTEN = {
    "a": A,
    "who'se": col("who'se"),
    "a > 12": A > 12,
    "col(\"who'se\") == 'paid'": col("who'se") == "paid",
    "a >= 1 and a <= 2.5": A.between(1, 2.5),
    "a and (b or not (a == True))": A & (B | ~(A == True)),  # noqa: E712 - a condition on rows
    "a * (b + 1) - (a - b) / 2": A * (B + 1) - (A - B) / 2,
    "a - (b - 1)": A - (B - 1),
    "(a > 1) == (b > 2)": (A > 1) == (B > 2),
    "The expression of column 'a'": A**2,
    "The expression of column 'b', 'a'": (A**2 > 1) & (B > 1),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_expressions_are_told_as_people_write_them(text: str) -> None:
    """Comparisons, and/or/not, arithmetic with brackets where they matter; anything else by its columns."""
    found: RowFn = WRITTEN[text]
    assert title(found) == text
    assert title(Each(found)) == text


def test_a_long_expression_is_told_by_its_columns() -> None:
    """A title has 80 characters at most."""
    found = A
    for _ in range(40):
        found = found + 1
    assert title(found) == "The expression of column 'a'"


def test_labels_stand_beside_the_key() -> None:
    """In brackets where the key is an expression that is written out."""
    assert labelled(A, "u") == "a=u"
    assert labelled(A > 1, label=True) == "(a > 1)=True"
    assert labelled(Each(A > 1), label=True) == "(a > 1)=True"
    assert labelled(A > 1, label=True, name="old") == "old=True"
    assert labelled(bins(A, [0, 1]), (0, 1)) == "The expression of column 'a'=(0, 1)"


def test_tables_name_conditions_as_they_are_written() -> None:
    """Terms, groups and titles."""
    with opened() as db:
        line = db.ols("y", [col("x") > 5], spend=Epsilon(2))
        groups = db.ttest("y", by=col("x") > 5, spend=Epsilon(2))
    assert [one.term for one in line] == ["intercept", "x > 5"]
    assert "y on x > 5" in line.title
    assert "by x > 5" in groups.title
    assert [one.term for one in groups][:2] == ["(x > 5)=False", "(x > 5)=True"]
