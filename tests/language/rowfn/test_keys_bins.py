"""Bins by one division are the bins by search, or there is no division (SR16)."""

from __future__ import annotations

from fractions import Fraction

import duckdb

from sulq.compile.statements import kept_table
from sulq.compile.statements.emitter import Emitter
from sulq.language.domain import Int, Real, Schema
from sulq.language.rowfn import Bins, Col
from sulq.language.rowfn.keys import divided
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
