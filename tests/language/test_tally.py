"""What an engine is asked: blocks side by side, cells over all combinations of labels."""

from __future__ import annotations

import itertools
from fractions import Fraction

from sulq.compile.plan import draw
from sulq.kernel.private import Private
from sulq.language.domain import Bool, Category, Int, Schema
from sulq.language.privacy import Epsilon
from sulq.language.question import Sums
from sulq.language.rowfn import Col, Lit, Vector
from sulq.language.tally import Block, Tally, sums_of
from tests.frames import Frame, sums
from tests.stub import facts

SCHEMA = Schema.of("t", {"x": Int(-1, 2), "c": Category(["u", "v", "w"]), "f": Bool()})


def test_widths_add_up():
    """A tally is as wide as its blocks together."""
    assert Block(Lit(1), Fraction(1), (0, 0), (1, 1), vector=True).width == 2
    plan = draw(Sums((Lit(1), Vector((Col("x"), Col("x"))))), facts(SCHEMA), Epsilon(1))
    assert plan.parts[0].tally.width == 3


def test_cells_run_over_all_labels_the_last_key_fastest():
    """A row lies in one cell or none; missing keys, values and conditions add nothing."""
    question = Sums((Lit(1), Col("x")), Col("x") != 2, (Col("c"), Col("f")))
    tally = draw(question, facts(SCHEMA), Epsilon(1)).parts[0].tally
    assert tally.cells == 6
    rows = [{"x": x, "c": c, "f": f} for x, c, f in itertools.product((-1, 2, None), (0, 1, 2, None), (0, 1, None))]
    expected = [[0, 0] for _ in range(6)]
    for row in rows:
        if row["x"] == -1 and row["c"] is not None and row["f"] is not None:
            cell = expected[2 * row["c"] + row["f"]]
            cell[0] += 1
            cell[1] -= 1
    assert sums(tally, Frame(SCHEMA, rows)).tolist() == expected


def test_an_engine_without_shared_scans_is_asked_tally_by_tally():
    """Sums of several tallies come from the engine's own one pass, or one after the other."""
    tallies = [draw(Sums((Lit(n),)), facts(SCHEMA), Epsilon(1)).parts[0].tally for n in (1, 2)]

    class Plain:
        def sums(self, tally: Tally) -> Private:
            return Private(tally.blocks[0].fn.value)

    class Sharing(Plain):
        def sums_of(self, tallies: list[Tally]) -> tuple[Private, ...]:
            return tuple(Private(10 * tally.blocks[0].fn.value) for tally in tallies)

    assert [sums.open() for sums in sums_of(Plain(), tallies)] == [1, 2]
    assert [sums.open() for sums in sums_of(Sharing(), tallies)] == [10, 20]
