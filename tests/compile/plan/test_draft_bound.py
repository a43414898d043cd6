"""Kinds to integer blocks: the grid of each value from public facts alone."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq.compile.plan.draft import PlanDraft, bind, bound
from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Int, Real, Schema, Text
from sulq.language.privacy import Epsilon, Unit
from sulq.language.question import Sums
from sulq.language.rowfn import Bernstein, Bucket, Col, Lit, Lookup, Outer, RowFn, Vector
from sulq.language.tally import Block
from tests.stub import facts

SCHEMA = Schema.of(
    "t",
    {
        "n": Int(-3, 4),
        "vast": Int(0, 2**40),
        "r": Real(0.1, 0.9),
        "f": Bool(),
        "c": Category(["a", "b"]),
        "large": Real(-1e60, 1e60),
        "name": Text(),
    },
)


def block(fn: RowFn) -> Block:
    return bound(bind(PlanDraft(Sums((fn,)), facts(SCHEMA), Epsilon(1)))).blocks[0]


def test_every_block_has_its_grid_SR17():
    """Whole numbers keep the grid of 1, parts get at most 2^22 units, vectors bring their own (SR17)."""
    expected = {
        Col("n"): (1, (-3,), (4,), False),
        Col("f"): (1, (0,), (1,), False),
        Col("f") & Col("f"): (1, (0,), (1,), False),
        Lit(1): (1, (1,), (1,), False),
        Col("n") * 0.5: (Fraction(1, 2), (-3,), (4,), False),
        Col("vast"): (2**18, (0,), (2**22,), False),
        Vector((Col("n"), Col("f")), 3): (Fraction(1, 2), (-6, 0), (8, 2), True),
        Outer(Vector((Col("n"),), 2)): (1, (0,), (16,), True),
        Bernstein(Col("n")): (1, (0, 0), (7, 7), True),
        Lookup((Col("c"),), ((1,), (2,))): (1, (1,), (2,), False),
        Lookup((Col("c"),), ((1, 2), (2, 0))): (1, (1, 0), (2, 2), True),
    }
    for fn, (step, low, high, vector) in expected.items():
        found = block(fn)
        assert (found.step, found.low, found.high, found.vector) == (step, low, high, vector)
    part = block(Col("r"))
    assert part.low[0] * part.step <= Fraction(0.1)
    assert part.high[0] * part.step >= Fraction(0.9)
    assert part.high[0] <= 2**22


def test_the_clamp_sits_on_the_expression_T11():
    """The interval of what is summed, not of a column inside it, bounds the block (T11)."""
    found = block(Col("n") * Col("n") - 2 * Col("n"))
    assert (found.low[0], found.high[0]) == (-12 - 8, 16 + 6)


@pytest.mark.parametrize(
    ("fn", "code"),
    [
        (Col("c"), "wrong-kind"),
        (Col("name"), "wrong-kind"),
        (1 / Col("n"), "unbounded"),
        (Bucket(3), "wrong-kind"),
        (Outer(Outer(Vector((Col("n"),), 15))), "too-large"),
        (Outer(Vector((Col("large"),), 11)), "too-large"),
        (Bernstein(Col("large"), 2), "too-large"),
    ],
    ids=lambda fn: type(fn).__name__,
)
def test_what_cannot_be_summed_is_refused_T12(fn, code):
    """No number, no bounds, or too large a number: refused before any debit (T12, SR17)."""
    with pytest.raises(QuestionError) as refusal:
        bound(PlanDraft(Sums((fn,)), facts(SCHEMA), Epsilon(1)))
    assert refusal.value.code == code


def test_an_answer_holds_at_most_2_to_24_numbers_T74():
    """Cells times values are counted before anything is worked out (T74)."""
    draft = bind(
        PlanDraft(Sums((Lit(1),) * 9, None, (Bucket(2**20), Bucket(2))), facts(SCHEMA, Unit("who")), Epsilon(1))
    )
    with pytest.raises(QuestionError) as refusal:
        bound(draft)
    assert refusal.value.code == "too-large"
