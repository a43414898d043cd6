"""A plan as a value: what it says before any row is read."""

from __future__ import annotations

from fractions import Fraction

from sulq.compile.plan import draw
from sulq.language.domain import Category, Int, Schema, Text
from sulq.language.law import GaussianLaw
from sulq.language.privacy import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Col, Lit, Vector
from tests.stub import facts

SCHEMA = Schema.of("t", {"x": Int(0, 3), "c": Category(["a", "b"]), "name": Text()})


def test_accuracy_is_foreseen_from_the_laws():
    """Each block's width at beta, in the answer's units; the same number the answer will tell."""
    plan = draw(Sums((Lit(1), Vector((Col("x"), Col("x")), 4))), facts(SCHEMA), Epsilon(1))
    part = plan.parts[0]
    expected = tuple(law.accuracy(0.01) * step for law, step in zip(part.laws, part.steps, strict=True))
    assert plan.accuracy(0.01) == (expected,)
    assert part.steps == tuple(block.step for block in part.tally.blocks)


def test_the_text_of_a_plan_names_what_matters():
    """Price, unit, guarantee, cells, norm, sensitivity, law and width, a line for each block."""
    plan = draw(Together((Sums((Lit(1),), None, (Col("c"),)), Sums((Col("x"),)))), facts(SCHEMA, budget=Rho(9)), Rho(2))
    first, *lines = str(plan).splitlines()
    assert first == "price rho 2; protects one row, add_remove; guarantee dp"
    assert [line.split()[:3] for line in lines] == [
        ["what", "cells", "sensitivity"],
        ["Lit", "x", "1"],
        ["Col", "x", "1"],
    ]
    assert "2 cells" in lines[1]
    assert "l2 sensitivity 3" in lines[2]
    assert "GaussianLaw" in lines[2]
    assert repr(plan) == str(plan)
    assert plan._repr_html_().count("<tr>") == 3


def test_under_sublinear_noise_is_drawn_on_a_finer_grid_SR8():
    """`refine` makes the step small beside the noise, so that the rounded normal is close (SR8)."""
    told = facts(SCHEMA, Unit(None, 1, "replace_one"), SubLinear(1, 1e-6, 100), size=1000)
    part = draw(Sums((Lit(1),)), told, None).parts[0]
    assert isinstance(part.laws[0], GaussianLaw)
    assert part.refine[0] > 0
    assert part.steps == (Fraction(1, 2 ** part.refine[0]),)
    assert part.laws[0].scale >= 2**19
    assert isinstance(draw(Sums((Lit(1),)), told, None).spend, Queries)


def test_facts_say_what_is_public_and_nothing_else():
    """The printed facts hold table, unit, budget, columns, size and warnings."""
    text = str(facts(SCHEMA, Unit("who", 2), EpsilonDelta(1, 1e-6), size=10))
    for word in (
        "t: protects a person (who, up to 2 rows)",
        "epsilon 1, delta 1e-06",
        "x       Int(0",
        "declared size 10",
    ):
        assert word in text
