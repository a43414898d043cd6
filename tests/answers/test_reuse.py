"""Which questions are the same, and which stored answers are as good as new ones."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sulq.answers import wire
from sulq.answers.released import Noise, Released
from sulq.answers.reuse import name_of, narrower, nothing, rearranged, serves, strength
from sulq.compile.plan import draw
from sulq.errors import SulqError
from sulq.language.law import (
    AboveLaw,
    BinomialLaw,
    ExponentialLaw,
    FlipLaw,
    GaussianLaw,
    LaplaceLaw,
    PassedGaussianLaw,
    PassedLaw,
)
from sulq.language.privacy import Epsilon, EpsilonDelta, Event, Queries, Rho, Unit
from sulq.language.question import Above, Choose, OpenSums, Sums, Together
from sulq.language.rowfn import Arith, Bernstein, Case, Col, Compare, IsIn, Lit, Logic, Not
from sulq.language.score import Rank
from sulq.testing import neighbours
from sulq.testing.questions import Drawer
from tests import counts
from tests.frames import Frame, sums
from tests.reword import reworded
from tests.stub import facts

A, B, C = Col("age") > 3, Col("flag"), Compare("==", Col("city"), Lit("Lod"))
COUNT = Sums((Lit(1),))


def counted(where: object) -> Sums:
    return Sums((Lit(1),), where)


SAME = [
    (counted(Logic("and", (A, B, C))), counted(Logic("and", (C, A, B)))),
    (counted(A & (B & C)), counted((C & B) & A)),
    (counted(A | B), counted(B | A | B)),
    (counted(A), counted(Not(Not(A)))),
    (counted(Lit(3) < Col("age")), counted(Col("age") > 3)),
    (counted(Col("age") <= Col("gain")), counted(Col("gain") >= Col("age"))),
    (counted(Compare("!=", Lit("Lod"), Col("city"))), counted(Compare("!=", Col("city"), Lit("Lod")))),
    (counted(IsIn(Col("code"), (1, 5))), counted(IsIn(Col("code"), (5, 1, 5)))),
    (Sums((Arith("+", Col("age"), Lit(2)),)), Sums((Arith("+", Lit(2), Col("age")),))),
    (Sums((Lit(1), Col("age"))), Sums((Lit(1), Col("age")), None, (), (Fraction(7), Fraction(7)))),
    (Sums((Lit(1), Col("age"))), Sums((Col("age"), Lit(1)))),
    (Sums((Lit(1), Col("age")), None, (), (1, 2)), Sums((Col("age"), Lit(1)), None, (), (2, 1))),
    (OpenSums((Lit(1), A), None, (B,), (1, 2, 3)), OpenSums((A, Lit(1)), None, (B,), (2, 6, 4))),
    (Together((COUNT, counted(A)), (1, 3)), Together((counted(A), COUNT), (6, 2))),
    (Together((COUNT, counted(A))), Together((counted(A), COUNT), (2, 2))),
    (Together((COUNT,), (3,)), COUNT),
]
OTHER = [
    (COUNT, counted(A)),
    (counted(A & B), counted(A | B)),
    (counted(A), counted(Not(A))),
    (counted(Col("age") > 3), counted(Col("age") >= 3)),
    (counted(Col("age") > 3), counted(Lit(3) > Col("age"))),
    (Sums((Arith("-", Col("age"), Lit(2)),)), Sums((Arith("-", Lit(2), Col("age")),))),
    (Sums((Lit(1), Col("age")), None, (), (1, 2)), Sums((Col("age"), Lit(1)), None, (), (1, 2))),
    (Sums((Lit(1), Col("age"))), Sums((Lit(1), Col("age")), None, (), (Fraction(1), Fraction(7)))),
    (Sums((Lit(1),), None, (Col("city"), Col("code"))), Sums((Lit(1),), None, (Col("code"), Col("city")))),
    (counted(IsIn(Col("code"), (1, 5))), counted(IsIn(Col("code"), (1, 2)))),
    (Together((COUNT, counted(A)), (1, 3)), Together((COUNT, counted(A)), (3, 1))),
    (OpenSums((Lit(1),), None, (B,)), Sums((Lit(1),), None, (B,))),
    (OpenSums((Lit(1),), None, (B,)), OpenSums((Lit(1),), None, (B,), (2, 1))),
    (Sums((Case(((A, Lit(1)), (B, Lit(2)))),)), Sums((Case(((B, Lit(2)), (A, Lit(1)))),))),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_other_words_for_the_same_question_have_one_name_SR12(one, other):
    """Order, repetition, double denial and turned comparisons are looked through (SR12)."""
    assert name_of(one, "here") == name_of(other, "here")
    assert name_of(one, "here") != name_of(one, "there")


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_another_question_has_another_name_SR12(one, other):
    """Control: what is not proved equal is told apart, also where only the layout of the answer differs."""
    assert name_of(one) != name_of(other)


def test_questions_of_one_name_are_the_same_sums_of_any_rows_SR12():
    """Over random tables, a question in other words has the same name and the same exact sums, part by part (T10)."""
    rng = np.random.default_rng(12)
    told = facts(neighbours.SCHEMA, Unit("pid", 3), Epsilon(900))
    drawer = Drawer(rng)
    rows = [
        {name: _cell(column, rng) for name, column in neighbours.COLUMNS} | {"person": i % 7, "position": i}
        for i in range(40)
    ]
    seen = 0
    while seen < counts.count("questions put in other words", short=300, long=10_000):
        question = drawer.question()
        try:
            plan = draw(question, told, Epsilon(1))
        except SulqError:
            continue
        other = reworded(question, rng)
        again = draw(other, told, Epsilon(1))
        assert name_of(question) == name_of(other)
        frame = Frame(neighbours.SCHEMA, rows)
        found = [sums(part.tally, frame) for part in plan.parts]
        second = [sums(part.tally, frame) for part in again.parts]
        stored = [Released(total, part.noise) for total, part in zip(found, plan.parts, strict=True)]
        for kept, total, part in zip(rearranged(stored, question, other), second, again.parts, strict=True):
            assert (kept.units == total).all()
            assert kept.noise == part.noise
        seen += 1


def _cell(column, rng):
    if rng.random() < 0.15:
        return None
    low = getattr(column, "low", None)
    return "ann" if low is None else int(rng.integers(low, column.high + 1))


def test_the_name_of_a_question_survives_the_wire():
    """A question read back from the ledger has the name it had when it was asked."""
    for one, other in SAME:
        assert name_of(wire.decode(wire.encode(one))) == name_of(other)


def test_releases_are_put_in_the_order_they_are_asked_for():
    """A stored answer serves the same questions in any order, and the same values of each, columns and noise alike."""

    def release(*columns: int, widths: tuple[int, ...] = ()) -> Released:
        noise = tuple(Noise(LaplaceLaw(Fraction(i + 1)), Fraction(1), w) for i, w in enumerate(widths))
        return Released(np.array([columns]), noise)

    stored, asked = Together((COUNT, counted(A), counted(B))), Together((counted(B), COUNT, counted(A)))
    found = rearranged([release(i, widths=(1,)) for i in (1, 2, 3)], stored, asked)
    assert [one.units.tolist() for one in found] == [[[3]], [[1]], [[2]]]
    pair = Bernstein(Col("age"))
    (one,) = rearranged([release(1, 2, 3, 4, widths=(1, 2, 1))], Sums((Lit(1), pair, A)), Sums((A, Lit(1), pair)))
    assert one.units.tolist() == [[4, 1, 2, 3]]
    assert [(noise.law.scale, noise.width) for noise in one.noise] == [(3, 1), (1, 1), (2, 2)]
    opened = [OpenSums(values, None, (B,)) for values in ((Lit(1), A), (A, Lit(1)))]
    assert rearranged([release(9, 1, 2, widths=(1, 1, 1))], *opened)[0].units.tolist() == [[9, 2, 1]]
    choice = Choose(Sums((Lit(1),), None, (Col("code"),)), Rank(1, 2))
    assert rearranged([release(5, widths=(1,))], choice, choice)[0].units.tolist() == [[5]]
    first = Above(Sums((Lit(1),), None, (Col("code"),)), 3)
    assert rearranged([release(5, widths=(1,))], first, first)[0].units.tolist() == [[5]]


@pytest.mark.parametrize(
    ("law", "other", "expected"),
    [
        (LaplaceLaw(Fraction(5)), LaplaceLaw(Fraction(5)), True),
        (LaplaceLaw(Fraction(5)), LaplaceLaw(Fraction(6)), True),
        (LaplaceLaw(Fraction(6)), LaplaceLaw(Fraction(5)), False),
        (GaussianLaw(Fraction(70)), GaussianLaw(Fraction(71)), True),
        (GaussianLaw(Fraction(71)), GaussianLaw(Fraction(70)), False),
        (BinomialLaw(10), BinomialLaw(12), True),
        (BinomialLaw(12), BinomialLaw(10), False),
        (GaussianLaw(Fraction(50)), LaplaceLaw(Fraction(100)), True),
        (GaussianLaw(Fraction(110)), LaplaceLaw(Fraction(100)), False),  # wider about the middle
        (LaplaceLaw(Fraction(1)), GaussianLaw(Fraction(3)), False),  # narrower about the middle, wider far out
        (PassedLaw(Fraction(5), 40), PassedLaw(Fraction(5), 41), True),
        (PassedLaw(Fraction(5), 42), PassedLaw(Fraction(6), 41), False),
        (PassedGaussianLaw(Fraction(5), 40), PassedGaussianLaw(Fraction(5), 41), True),
        (PassedGaussianLaw(Fraction(5), 40), PassedLaw(Fraction(5), 41), False),
        (PassedLaw(Fraction(1), 40), GaussianLaw(Fraction(5)), False),
        (FlipLaw(Fraction(2), 9), FlipLaw(Fraction(2), 9), True),
        (FlipLaw(Fraction(2), 9), ExponentialLaw(Fraction(2), 9), True),
        (ExponentialLaw(Fraction(2), 9), FlipLaw(Fraction(2), 9), False),
        (FlipLaw(Fraction(2), 8), FlipLaw(Fraction(2), 9), False),
        (AboveLaw(Fraction(2), Fraction(0), 9), AboveLaw(Fraction(2), Fraction(1), 9), True),
        (AboveLaw(Fraction(2), Fraction(2), 9), AboveLaw(Fraction(3), Fraction(1), 9), False),
        (AboveLaw(Fraction(2), Fraction(1), 8), AboveLaw(Fraction(2), Fraction(1), 9), False),
        (AboveLaw(Fraction(1), Fraction(0), 1), LaplaceLaw(Fraction(2)), False),
    ],
)
def test_a_law_is_narrower_only_if_it_is_so_at_every_confidence(law, other, expected):
    """Within a family by the scale; between families by the tails, which may cross."""
    assert narrower(law, other) is expected
    if expected:
        assert all(law.accuracy(beta) <= other.accuracy(beta) for beta in (0.5, 0.3, 0.05, 1e-3, 1e-9, 1e-15))


def test_a_stored_answer_serves_what_is_no_more_accurate_SR12():
    """A release serves a plan of its own spend or less, never of more, another grid or more key delta (SR12)."""
    told = facts(neighbours.SCHEMA, Unit(), EpsilonDelta(900, 1e-6))
    question = Sums((Lit(1), Col("age")), None, (Col("city"),))

    def released(plan):
        return tuple(
            Released(
                np.zeros((part.tally.cells, 2), dtype=np.int64),
                tuple(Noise(law, step, 1) for law, step in zip(part.laws, part.steps, strict=True)),
            )
            for part in plan.parts
        )

    for kind in (Epsilon, Rho):
        plan = draw(question, told, kind(0.5))
        found = released(plan)
        assert serves(found, plan.event, plan)
        assert serves(found, plan.event, draw(question, told, kind(0.4)))
        assert not serves(found, plan.event, draw(question, told, kind(0.51)))
        assert not serves(found, plan.event, draw(Sums((Lit(1),), None, (Col("city"),)), told, kind(0.1)))
        assert not serves(found * 2, plan.event, plan)
        assert not serves(found, plan.event, replace(plan, event=replace(plan.event, key_delta=Fraction(1, 10**9))))
        finer = replace(found[0], noise=tuple(replace(one, step=one.step / 2) for one in found[0].noise))
        assert not serves((finer,), plan.event, plan)


def test_a_stored_answer_costs_nothing_in_any_currency():
    """The price of a stored answer is zero of the spend's own kind; stronger losses come first."""
    for spend in (Epsilon(1), Rho(1), EpsilonDelta(1, 1e-6), Queries(3)):
        assert type(nothing(spend)) is type(spend)
        assert float(getattr(nothing(spend), "amount", nothing(spend).queries if spend == Queries(3) else 1)) == 0
    assert strength(Event(Fraction(2), Fraction(2))) > strength(Event(Fraction(1), Fraction(1, 2)))
    assert strength(Event(None, Fraction(2))) > strength(Event(None, Fraction(1)))
