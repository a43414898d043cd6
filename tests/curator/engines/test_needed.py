"""What tallies look at: every column that is read row by row, and vectors that kernels read as a whole."""

from __future__ import annotations

from sulq.curator.engines.needed import Needed, needed, vectors
from sulq.terms import wire
from sulq.terms.rowfn import Dot, Outer, bucket, col, dot, lit, nearest, outer, position, scaled, vector, within_ball
from tests.curator.engines.cases import ask

PAIR = vector(["age", "pay"])
BALL = within_ball(PAIR, 3)


def told(found: Needed) -> tuple[set[str], bool, bool]:
    return found.columns, found.person, found.place


def test_columns_persons_and_places() -> None:
    """Everything that is named anywhere in a tally, or in any of several."""
    assert told(needed(ask(col("age"), where=col("city") == "x"))) == ({"age", "city"}, False, False)
    assert told(needed(ask(lit(1), by=(bucket(3),)))) == (set(), True, False)
    assert told(needed(ask(position().clip(0, 1)))) == (set(), False, True)
    assert told(needed(ask(PAIR), ask(col("city") == "x"))) == ({"age", "pay", "city"}, False, False)


def test_vectors_that_kernels_read() -> None:
    """Those of blocks, of outer and scaled blocks, of dot, nearest and is_missing, once each; a ball by itself."""
    tally = ask(outer(PAIR), scaled(BALL, dot(vector(["age"]), [2])), where=~vector(["pay"]).is_missing())
    again = ask(lit(1), by=(nearest(within_ball(vector(["age", "pay"]), 3), [[0, 0]]),))
    names = {wire.encode(fn) for fn in (PAIR, BALL, vector(["age"]), vector(["pay"]))}
    assert set(vectors([tally, again])) == names


def test_a_known_vector_needs_no_column() -> None:
    """Where its coordinates are at hand; what else reads its columns still needs them."""
    known = [wire.encode(PAIR), wire.encode(BALL)]
    for tally in (ask(PAIR), ask(outer(PAIR), BALL, by=(nearest(BALL, [[0, 0]]),)), ask(dot(PAIR, [1, 2]))):
        assert needed(tally).columns == {"age", "pay"}
        assert needed(tally, known=known).columns == set()
        assert needed(tally, known=known[1:]).columns in ({"age", "pay"}, set())
    assert needed(ask(PAIR, where=col("pay") > 1), known=known).columns == {"pay"}
    assert needed(ask(scaled(PAIR, col("pay"))), known=known).columns == {"pay"}


def test_a_vector_inside_what_is_worked_out_row_by_row_is_no_kernels() -> None:
    """An outer product under a dot is made the long way; so is a vector in whose coordinates another is read."""
    known = [wire.encode(PAIR)]
    deep = ask(Dot(Outer(PAIR), (1, 2, 3)))
    assert vectors([deep]) == {}
    assert needed(deep, known=known).columns == {"age", "pay"}
    nested = vector([dot(PAIR, [1, 2]), "age"])
    assert set(vectors([ask(nested)])) == {wire.encode(PAIR)}
    assert needed(ask(nested), known=[*known, wire.encode(nested)]).columns == {"age"}
