"""What comes back of a SELECT: codes, missing keys, values put into bins, numbers past 64 bits."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import numpy as np

from sulq.compile.statements import kept_table
from sulq.compile.statements.aggregate import Query, alone
from sulq.compile.statements.emitter import Emitter, Keyed
from sulq.kernel.layout import assemble
from sulq.language.domain import Int, Schema
from sulq.language.rowfn.edges import places
from sulq.language.rowfn.piece import Piece
from sulq.language.rowfn.writer import KeptRows
from sulq.sources.duckdb.runner import CursorRunner

SCHEMA = Schema("data", (("x", Int(0, 9)),))


def found(keys: list[Keyed], sizes: list[int], bound: int = 100) -> list[list[int]]:
    """Counts of 0..9, twice 5 and a NULL by some keys."""
    rows = KeptRows("t", {}, kept_table.names(SCHEMA), frozenset(), {}, 12)
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT unnest([0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, NULL]) AS c0")
    query = Query(Emitter(SCHEMA, rows), keys, sizes)
    query.blocks.append(((0, 0), [{query.aggregate("count(*)", bound): 1}, {query.aggregate("sum(c0)", bound): 2}]))
    statement = alone(query, None)
    return assemble(statement, CursorRunner(con.cursor(), SCHEMA, rows).columns([statement])[0], query.bounds)[
        0, 0
    ].tolist()


def test_values_are_put_into_bins_afterwards() -> None:
    """Values of one bin are added; those in no bin, and missing ones, are left out; the last bin holds its edge."""
    edges = [Fraction(x) for x in (2, 5, 8)]
    assert places(edges, 0, 9) == (-1, -1, 0, 0, 0, 1, 1, 1, 1, -1)
    for bound in (100, 2**63):  # as 64 bits, and as Python's numbers
        assert found([Keyed(Piece("c0"), 0, places(edges, 0, 9))], [2], bound) == [[3, 18], [5, 62]]


def test_codes_out_of_range_are_left_out() -> None:
    """A code is counted from its shift, and what has no label is nothing."""
    assert found([Keyed(Piece("c0"), 7)], [2]) == [[1, 14], [1, 16]]
    assert found([], []) == [[12, 100]]
    assert np.array(found([Keyed(Piece("c0"))], [10])).sum(axis=0).tolist() == [11, 100]


def test_missing_keys_are_the_code_after_the_last() -> None:
    """NULL is a cell of its own where a key has one for it; with bins, what is in none is there too."""
    assert found([Keyed(Piece("c0"), missing=10)], [11])[9:] == [[1, 18], [1, 0]]
    edges = [Fraction(x) for x in (2, 5, 8)]
    binned = tuple(2 if place < 0 else place for place in places(edges, 0, 9))
    assert found([Keyed(Piece("c0"), 0, binned, 2)], [3]) == [[3, 18], [5, 62], [4, 20]]
