"""What a query wants to know: the statistics have names that questions are made for."""

from __future__ import annotations

from sulq.language.relation import Table
from sulq.sql.released.questions import MOMENTS, ORDERS, PAIRS
from sulq.sql.rows.statistics import NAMES, Groups, Stat


def test_every_statistic_has_its_question():
    """Each name is one of the families that are asked."""
    assert set(NAMES) == {"rows", "persons", *MOMENTS, *ORDERS, *PAIRS}


def test_a_request_has_defaults():
    """COUNT(*) over a whole table is the shortest request."""
    groups = Groups(Table(), stats=(Stat("rows"),))
    assert (groups.where, groups.keys, groups.sets, groups.stats[0].args) == (None, (), (), ())
