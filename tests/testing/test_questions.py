"""Generated questions: every row function in them, most answerable, all with a place on the wire."""

from __future__ import annotations

from sulq.answers import wire
from sulq.compile.plan import draw
from sulq.errors import SulqError
from sulq.language.facts import Facts
from sulq.language.privacy import Epsilon, Unit
from sulq.language.question import Together
from sulq.language.relation import functions
from sulq.language.rowfn import ROW_FUNCTIONS
from sulq.language.rowfn.base import walk
from sulq.testing import neighbours
from sulq.testing.questions import Drawer
from tests.privacy.cases import seeded


def test_every_row_function_is_drawn_and_answerable() -> None:
    """All row functions occur in questions that a plan takes, filtered, partitioned and together."""
    drawer = Drawer(seeded("questions"))
    unit = Unit(None, 1, "zero_out")  # rows have places and buckets here
    facts = Facts(neighbours.SCHEMA, unit, Epsilon(1), Epsilon(1), Epsilon(1))
    seen, shapes, planned = set(), set(), 0
    for _ in range(3000):
        question = drawer.question()
        try:
            draw(question, facts, Epsilon(1))
        except SulqError:
            continue
        planned += 1
        for sums in question.questions if isinstance(question, Together) else (question,):
            seen |= {type(fn) for fn in walk(*sums.parts(), *functions(sums.over))}
            shapes.add((sums.where is None, len(sums.by), len(sums.values) > 1, bool(sums.shares)))
        shapes.add(type(question).__name__)
    assert planned > 1500
    assert seen == set(ROW_FUNCTIONS)
    assert {"Sums", "Together"} <= shapes
    assert {by for shape in shapes if isinstance(shape, tuple) for by in shape[1:2]} == {0, 1, 2}


def test_questions_cross_the_wire_unchanged() -> None:
    """Encoding and decoding a question gives the same bytes again."""
    drawer = Drawer(seeded("wire"))
    for _ in range(50):
        text = wire.encode(drawer.question())
        assert wire.encode(wire.decode(text)) == text
