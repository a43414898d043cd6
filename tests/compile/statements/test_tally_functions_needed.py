"""What tallies look at: every column that is read, persons and places."""

from __future__ import annotations

from sulq.compile.statements.tally_functions import Needed, needed
from sulq.language.rowfn import bucket, col, dot, lit, nearest, outer, position, scaled, vector, within_ball
from tests.sources.cases import ask

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


def test_what_vectors_read_is_needed() -> None:
    """Of balls, products and nearest centres: the columns of their coordinates."""
    for tally in (
        ask(outer(PAIR), BALL, by=(nearest(BALL, [[0, 0]]),)),
        ask(dot(PAIR, [1, 2])),
        ask(scaled(PAIR, lit(1))),
    ):
        assert needed(tally).columns == {"age", "pay"}
