"""What a query wants to know: the statistics have names that questions are made for."""

from __future__ import annotations

from sulq.language.relation import Table
from sulq.sql.parse.whitelist import AGGREGATES, QUANTILES
from sulq.sql.released.program import MOMENTS, ORDERS, PAIRS, GroupStatistics, Stat


def test_every_aggregate_of_sql_is_of_a_family():
    """Each aggregate that is read is a statistic, but for the truths that rows are not asked for."""
    read = {*AGGREGATES.values(), *QUANTILES.values(), "count"}
    assert read - {"bool_and", "bool_or"} == {*MOMENTS, *ORDERS, *PAIRS}


def test_a_request_has_defaults():
    """COUNT(*) over a whole table is the shortest request."""
    groups = GroupStatistics(Table(), stats=(Stat("rows"),))
    assert (groups.where, groups.keys, groups.sets, groups.stats[0].args) == (None, (), (), ())
