"""Pieces of SQL: put together, clamped, and named where they are needed twice."""

from __future__ import annotations

import duckdb
import pytest

from sulq.compile.statements.emitter import Emitter
from sulq.language.domain import Int, Schema
from sulq.language.rowfn.piece import Piece, clamped, joined
from sulq.language.rowfn.writer import KeptRows


def shown(statement: str) -> object:
    with duckdb.cursor() as cursor:
        return cursor.execute(statement).fetchall()[0][0]


def test_a_joined_piece_stands_on_the_highest_layer():
    """What is put together needs the names of all its parts; a brace in a part stays what it is."""
    found = joined("({0} + {1} + {0})", Piece("t1", 2, atom=True), Piece("'{0}'", 1))
    assert found == Piece("(t1 + '{0}' + t1)", 2)
    assert joined("1") == Piece("1")


@pytest.mark.parametrize(("value", "want"), [("5e0", 2.0), ("-5e0", -1.0), ("0.5e0", 0.5), ("NULL", None)])
def test_a_clamped_piece_holds_its_bounds_and_stays_missing(value, want):
    """Below, above, inside, missing."""
    sql = clamped(Piece(f"CAST({value} AS DOUBLE)"), -1, 2).sql
    assert shown(f"SELECT {sql}") == want


@pytest.mark.parametrize(("value", "want"), [("1e0", 1.0), ("'inf'", None), ("'nan'", None), ("NULL", None)])
def test_what_is_not_finite_is_missing(value, want):
    """Infinities and NaN become NULL; the operand is named once."""
    emitter = Emitter(
        Schema("data", (("x", Int(0, 1)),)), KeptRows("(SELECT 1 AS c0)", {}, {"x": "c0"}, frozenset(), {}, 1)
    )
    sql = emitter.finite(Piece(f"CAST({value} AS DOUBLE)")).sql
    assert shown(f"SELECT {sql} FROM {emitter.relation()}") == want
    assert value not in sql
