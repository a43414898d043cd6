"""Bins by one division, or by a floor, are the bins by search, or there is neither (SR16)."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import duckdb
import numpy as np
import pytest

from sulq.compile.statements import kept_table
from sulq.compile.statements.emitter import Emitter
from sulq.language.domain import Int, Real, Schema
from sulq.language.kinds import Cells
from sulq.language.rowfn import Bins, Col, Fill
from sulq.language.rowfn.edges import by_floor, divided, dyadic
from sulq.language.rowfn.writer import KeptRows
from tests import counts
from tests.counts import count


def test_even_bins_are_one_division_where_it_is_exact() -> None:
    """Bins by division are the bins by search, edge by edge; where edges are uneven there is no division."""
    rng = counts.generator(5)
    found = alone = 0
    for _ in range(count("sets of edges divided", short=150, long=20_000)):
        column = rng.choice(
            (Int(0, 120), Int(-50, 7), Real(-1, 1), Real(0, 200_000), Real(-3.5, 10, 0.25), Int(10**9, 10**9 + 40))
        )
        low, high = float(column.low * column.step), float(column.high * column.step)
        parts = rng.randint(1, 40)
        first, last = sorted((rng.choice((low, rng.uniform(low, high))), rng.choice((high, rng.uniform(low, high)))))
        if first == last:
            continue
        edges = (*(first + (last - first) * i / parts for i in range(parts)), last)
        if rng.random() < 0.2 and parts > 2:
            edges = (*edges[:1], *edges[2:])
        schema = Schema("data", (("x", column),))
        rows = KeptRows("kept", {}, kept_table.names(schema), frozenset(), {}, 10)
        bins = Bins(Col("x"), edges)
        sql = Emitter(schema, rows).code(bins).sql
        found += "//" in sql
        codes = sorted({rng.randint(column.low, column.high) for _ in range(60)} | {column.low, column.high})
        codes += [
            c
            for edge in edges
            for c in (round(edge / float(column.step)) + d for d in (-1, 0, 1))
            if column.low <= c <= column.high
        ]
        got = duckdb.execute(f"SELECT {sql} FROM (SELECT unnest($1) AS c0)", [codes]).fetchall()
        values = [float(c) * float(column.step) for c in codes]
        want = [next((i for i in range(len(edges) - 1) if edges[i] <= v < edges[i + 1]), None) for v in values]
        want = [len(edges) - 2 if v == edges[-1] else w for v, w in zip(values, want, strict=True)]
        assert [code for (code,) in got] == want, (column, edges)
        key = Emitter(schema, rows).key(bins, alone=True)
        got = duckdb.execute(f"SELECT {key.piece.sql} FROM (SELECT unnest($1) AS c0)", [codes]).fetchall()
        there = [None if code is None or key.places is None else key.places[code - key.shift] for (code,) in got]
        alone += key.places is not None
        assert [None if place is None or place < 0 else place for place in there] == want or key.places is None
    assert found > 20
    assert alone > 20


def test_an_uneven_edge_is_no_division() -> None:
    """Control: one edge moved by a unit, and the division is refused."""
    assert divided([Fraction(x) for x in (0, 10, 20, 30)], [0, 10, 20], 29) is not None
    assert divided([Fraction(x) for x in (0, 11, 20, 30)], [0, 11, 20], 29) is None


def bin_of(value: float, edges: list[float]) -> int | None:
    """The bin of a number, by comparing it with each edge."""
    last = len(edges) - 2
    found = (i for i in range(last + 1) if edges[i] <= value < edges[i + 1])
    return last if value == edges[-1] else next(found, None)


FLOORED = [(-1, 1, 16), (-8, 8, 256), (-3, 5, 8), (0, 64, 64), (1e9, 1e9 + 1, 8)]
SEARCHED = [(-1, 1, 11), (0, 64, 4), (0.1, 1.1, 4)]


@pytest.mark.parametrize(("low", "high", "parts"), FLOORED + SEARCHED)
def test_bins_of_dyadic_edges_are_floors(low: float, high: float, parts: int) -> None:
    """At every edge and the doubles beside it as by comparing, in NumPy and in SQL; other edges are searched."""
    edges = np.linspace(low, high, parts + 1).tolist()
    scale = dyadic(edges)
    assert (scale is not None) == ((low, high, parts) in FLOORED)
    beside = [math.nextafter(edge, way) for edge in edges for way in (-math.inf, math.inf)]
    values = np.array([*edges, *beside, 0.0, -0.0, 5e-324, -5e-324, 1e300, -1e300])
    covered = values[(values >= low) & (values <= high)]
    schema = Schema("data", (("x", Real(-1, 1)),))
    for some, item in ((values, Col("x") / Col("x")), (covered, Fill(Col("x"), 0).clip(low, high))):
        bins = Bins(item, tuple(edges))
        expected = [bin_of(value, edges) for value in some.tolist()]
        frame = SimpleNamespace(schema=schema, seen={id(item): Cells(some, None, of=item)})
        found = bins.cells(frame)
        told = np.where(found.missing, -1, found.values).tolist()
        assert told == [-1 if place is None else place for place in expected]
        if scale:
            form = by_floor(edges, scale, covered=some is covered)
            got = duckdb.execute(f"SELECT {form.format('v')} FROM (SELECT unnest($1) AS v)", [some.tolist()]).fetchall()
            assert [place for (place,) in got] == expected


def test_edges_that_floors_would_round_are_searched() -> None:
    """Wider bins than one: to divide turns the least number below an edge into the edge; control: of one they are."""
    assert dyadic([0.0, 8.0, 16.0]) is None
    assert dyadic([0.0, 1.0, 2.0]) == 1
    assert dyadic([0.0, 0.5, 2.0]) is None
    assert dyadic([0.25, 0.75, 1.25]) is None
    assert math.floor(-5e-324 / 8) == 0 != math.floor(-5e-324)
