"""What is missing: the first value that is there, and a value taken away."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq.errors import QuestionError
from sulq.language.kinds import Code, Scalar, Truth, Words
from sulq.language.rowfn import Col, First, Lit, NullIf, Vector
from sulq.language.rowfn.base import evaluate
from tests.expressions import SCHEMA
from tests.frames import Frame


def values(fn, rows):
    cells = evaluate(fn, Frame(SCHEMA, rows))
    missing = [False] * len(rows) if cells.missing is None else cells.missing
    return [None if gone else value for value, gone in zip(cells.values.tolist(), missing, strict=True)]


def test_the_first_value_that_is_there_is_taken():
    """Numbers, conditions, keys and texts, each of its kind."""
    rows = [{"few": a, "above": b} for a in (2, None) for b in (100, None)]
    assert values(First((Col("few"), Col("above"), Lit(7))), rows) == [2, 2, 100, 7]
    rows = [{"name": "a"}, {"name": None}]
    assert values(First((Col("name"), Lit("?"))), rows) == ["a", "?"]
    rows = [{"city": a, "town": b} for a in (0, None) for b in (2, None)]
    assert values(First((Col("city"), Col("town"))), rows) == [0, 0, 2, None]
    rows = [{"flag": 1}, {"flag": None}]
    assert values(First((Col("flag"), Lit(False))), rows) == [True, False]
    assert values(First((Col("flag"), Lit(0.5))), rows) == [1.0, 0.5]


def test_the_kind_of_the_first_value_holds_all():
    """The hull of intervals, missing only where all are."""
    assert First((Col("few"), Col("above"))).kind(SCHEMA) == Scalar(Fraction(-2), Fraction(105), Fraction(1))
    assert not First((Col("few"), Lit(1))).kind(SCHEMA).nullable
    assert First((Col("flag"), Lit(True))).kind(SCHEMA) == Truth(nullable=False)
    assert First((Col("name"), Lit("x"))).kind(SCHEMA) == Words(nullable=False)
    assert First((Col("city"), Col("town"))).kind(SCHEMA) == Code(("Haifa", "Lod", "Yafo"))
    assert not First((Col("few"), 1 / Col("few"))).kind(SCHEMA).bounded
    assert First((Col("day"), Col("day"))).kind(SCHEMA).clock == "date"


def test_a_value_is_taken_away_where_it_equals_another():
    """Where either is unknown nothing is taken away."""
    rows = [{"few": a, "above": b} for a, b in ((2, 100), (0, 100), (None, 100))]
    assert values(NullIf(Col("few"), Lit(0)), rows) == [2, None, None]
    assert values(NullIf(Lit(2), Col("few")), rows) == [None, 2, 2]
    rows = [{"city": a, "town": b} for a in (1, None) for b in (1, 2, None)]
    assert values(NullIf(Col("city"), Col("town")), rows) == [None, 1, 1, None, None, None]
    assert values(NullIf(Col("city"), Lit("Lod")), rows[:1]) == [None]
    assert NullIf(Lit(3), Lit(3)).kind(SCHEMA).nullable


@pytest.mark.parametrize(
    "fn",
    [
        First((Col("few"), Col("name"))),
        First((Col("name"), Col("few"))),
        First((Col("city"), Col("grade"))),
        First((Col("day"), Col("few"))),
        NullIf(Col("few"), Lit("x")),
        NullIf(Lit("x"), Col("few")),
        NullIf(Col("city"), Col("grade")),
        NullIf(Vector((Col("few"),)), Lit(1)),
    ],
)
def test_values_of_different_kinds_do_not_mix(fn):
    """Numbers, dates, keys and texts are kept apart."""
    with pytest.raises(QuestionError) as refusal:
        fn.kind(SCHEMA)
    assert refusal.value.code == "wrong-kind"


@pytest.mark.parametrize("maker", [lambda: First(()), lambda: First((1,)), lambda: NullIf(Col("few"), 3)])
def test_they_are_built_from_row_functions(maker):
    """Nothing else crosses the language."""
    with pytest.raises(QuestionError) as refusal:
        maker()
    assert refusal.value.code == "bad-question"


def test_a_kind_asks_each_part_once_T74():
    """Forty storeys have their kind at once (T74)."""
    fn = Col("few")
    for _ in range(40):
        fn = First((NullIf(fn, Lit(1)),))
    assert fn.kind(SCHEMA).bounded
