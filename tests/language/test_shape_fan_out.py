"""Tests of sulq.language.shape."""

from __future__ import annotations

import time

import pytest

from sulq.language.domain import Int, Schema
from sulq.language.facts import TableFacts, Tables
from sulq.language.privacy import Unit
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Col, Lit
from sulq.language.shape import fan_out

FACTS = Tables(
    Unit("pid", 5),
    (
        TableFacts(Schema("visits", (("vid", Int(0, 9)), ("kind", Int(0, 9)))), key="vid"),
        TableFacts(Schema("regions", (("code", Int(0, 9)), ("zone", Int(0, 9)))), key="code", public=True, rows=7),
        TableFacts(Schema("zones", (("name", Int(0, 9)), ("sea", Int(0, 1)))), key="name", public=True, rows=3),
        TableFacts(Schema("heaps", (("heap", Int(0, 9)),)), public=True),
    ),
)
VISITS, REGIONS, ZONES, HEAPS = (Table(name) for name in ("visits", "regions", "zones", "heaps"))
BOTH = Join(REGIONS, ZONES, (("zone", "name"),))
OWN = PerPerson(VISITS, ("kind",), (("n", "count", None),))


@pytest.mark.parametrize(
    ("relation", "columns", "most"),
    [
        (REGIONS, {"code"}, 1),
        (REGIONS, {"zone"}, 7),
        (REGIONS, set(), 7),
        (HEAPS, {"heap"}, None),
        (VISITS, {"vid"}, 1),
        (VISITS, {"kind"}, 5),
        (Where(REGIONS, Col("zone") > 1), {"code"}, 1),
        (Select(REGIONS, (("x", Col("code")), ("y", Col("zone") + 1))), {"x"}, 1),
        (Select(REGIONS, (("x", Col("code") + 1),)), {"x"}, 7),
        (Distinct(Select(REGIONS, (("x", Col("zone")),))), {"x"}, 1),
        (Distinct(Select(REGIONS, (("x", Col("zone")), ("y", Lit(1))))), {"x"}, 7),
        (BOTH, {"code"}, 1),
        (BOTH, {"name"}, 7),
        (BOTH, {"sea"}, 7),  # three zones, seven regions: each region has one
        (BOTH, set(), 7),
        (Join(REGIONS, ZONES, ()), {"code"}, 3),
        (Join(REGIONS, ZONES, ()), {"code", "name"}, 1),
        (Join(REGIONS, ZONES, (("zone", "name"),), "left"), {"code"}, 1),
        (Join(ZONES, REGIONS, (("name", "zone"),), "left"), {"name"}, 7),
        (Join(ZONES, REGIONS, (("name", "zone"),), "left"), {"code"}, 1),
        (Join(ZONES, REGIONS, (("name", "zone"),), "left"), set(), 21),  # a zone without regions stays
        (Join(ZONES, HEAPS, (("name", "heap"),)), {"name"}, None),
        (OWN, {"kind"}, 1),
        (OWN, {"n"}, None),
        (PerPerson(VISITS, (), (("n", "count", None),)), set(), 1),
        (Union((REGIONS, REGIONS)), {"code"}, None),
    ],
)
def test_how_many_rows_one_other_row_can_meet_SR15(relation: Relation, columns: set[str], most: int | None) -> None:
    """One by a unique key, through filters, columns and joins; else all there are."""
    assert fan_out(relation, columns, FACTS) == most


def test_a_chain_of_joins_is_gone_through_once() -> None:
    """Each of many joins may be bounded from either side, and that does not double the work each time."""
    chain: Relation = Select(REGIONS, (("c0", Col("code")), ("z0", Col("zone"))))
    for i in range(1, 25):
        other = Select(REGIONS, ((f"c{i}", Col("code")), (f"z{i}", Col("zone"))))
        chain = Join(chain, other, ((f"z{i - 1}", f"c{i}"),))
    start = time.perf_counter()
    assert fan_out(chain, {"c0"}, FACTS) == 1
    assert time.perf_counter() - start < 5
