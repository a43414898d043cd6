"""The ways one person can move the sums, by relation, rows and what can be dropped (SR1)."""

from __future__ import annotations

import pytest

from sulq.compile.plan import draw
from sulq.compile.plan.calibration import contribution
from sulq.compile.plan.draft import PlanDraft
from sulq.language.domain import Bool, Int, Schema
from sulq.language.facts import Facts, TableFacts
from sulq.language.privacy import Epsilon, Unit
from sulq.language.question import Sums
from sulq.language.relation import Join, Relation, Select, Table
from sulq.language.rowfn import Col, Each, Lit
from sulq.language.tally import Key
from tests.stub import facts

SCHEMA = Schema.of("t", {"f": Bool()})
KEYS = (Key(Each(Col("f")), (False, True)),)


@pytest.mark.parametrize(
    ("unit", "droppable", "cells", "ways"),
    [
        (Unit(), False, 1, {"single"}),
        (Unit("who", 5), True, 2, {"single"}),
        (Unit("who", 5, "zero_out"), True, 2, {"single"}),
        (Unit(neighbors="replace_one"), False, 1, {"pair"}),
        (Unit(neighbors="replace_one"), True, 1, {"single", "pair"}),
        (Unit(neighbors="replace_one"), False, 2, {"pair", "apart"}),
        (Unit(neighbors="replace_one"), True, 2, {"single", "pair", "apart"}),
        (Unit("who", 1, "replace_one"), False, 1, {"single", "pair"}),
        (Unit("who", 2, "replace_one"), False, 1, {"single", "pair"}),
        (Unit("who", 2, "replace_one"), False, 2, {"single", "pair", "apart"}),
    ],
)
def test_the_ways_of_moving_SR1(unit, droppable, cells, ways):
    """A row is surely there only under replace_one where it is the person itself and none can be dropped (SR1, E46)."""
    told = facts(SCHEMA, unit)
    keys = KEYS if cells > 1 else ()
    draft = contribution(PlanDraft(Sums((Lit(1),)), told, Epsilon(1), keys=keys, droppable=droppable, cells=cells))
    assert set(draft.ways) == ways
    assert draft.rows == unit.rows


@pytest.mark.parametrize(
    ("over", "rows"),
    [
        (Table("visits"), 5),
        (Join(Table("visits"), Table("regions"), ()), 50),
        (Join(Table("visits"), Select(Table("visits"), (("x", Col("cost")),)), (), person=True), 25),
    ],
)
def test_rows_that_a_join_multiplies_are_charged_as_multiplied_T15(over: Relation, rows: int) -> None:
    """A person's 5 visits beside each of 10 public regions are 50 rows, beside themselves 25: the count moves by that.

    Control: the table alone is charged the 5 rows that are kept (SR15).
    """
    visits = TableFacts(Schema.of("visits", {"pid": Int(0, 99), "cost": Int(0, 9)}))
    regions = TableFacts(Schema.of("regions", {"number": Int(0, 9)}), key="number", public=True, rows=10)
    told = Facts(visits.schema, Unit("pid", 5), Epsilon(9), Epsilon(1), Epsilon(8), tables=(visits, regions))
    plan = draw(Sums((Lit(1),), over=over), told, Epsilon(1))
    assert [item.sensitivity for item in plan.event.draws] == [rows]
