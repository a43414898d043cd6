"""The ways one person can move the sums, by relation, rows and what can be dropped (SR1)."""

from __future__ import annotations

import pytest

from sulq.curator.plan.contribution import contribution
from sulq.curator.plan.draft import Draft
from sulq.terms.domain import Bool, Schema
from sulq.terms.engine import Key
from sulq.terms.privacy import Epsilon, Unit
from sulq.terms.question import Sums
from sulq.terms.rowfn import Col, Each, Lit
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
def test_SR1_the_ways_of_moving(unit, droppable, cells, ways):
    """A row is surely there only under replace_one where it is the person itself and none can be dropped (SR1, E46)."""
    told = facts(SCHEMA, unit)
    keys = KEYS if cells > 1 else ()
    draft = contribution(Draft(Sums((Lit(1),)), told, Epsilon(1), keys=keys, droppable=droppable, cells=cells))
    assert set(draft.ways) == ways
    assert draft.rows == unit.rows
