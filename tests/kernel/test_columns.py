"""Columns in memory are those they say they are, each cell at its row's number."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from sulq.kernel.columns import narrow, read, text, vector
from sulq.kernel.facts import Refused
from sulq.kernel.matrix import cut, fold
from sulq.kernel.programs import Box, Program, Stack, Sum, Unit, box_of
from tests.kernel.folds import column, missing

STACK = 3
TABLE = ("data", "kept0")
PROGRAM = Program(
    ("c0", "c1"), (column(0), column(1), missing(1), Stack((Unit(0, -9, 9), Unit(1, -9, 9)), 2)), (Sum("products", 3),)
)


def stored(order: list[int], cells: dict[str, np.ndarray]):
    """A table that gives its rows in some order, in pieces."""

    def ask(statement: str):
        asked = statement.removeprefix("SELECT rowid, ").removesuffix(" FROM data.kept0").split(", ")
        for start in range(0, len(order), 3):
            rows = np.array(order[start : start + 3])
            yield [(rows, None), *((cells[name][rows], None) for name in asked)], len(rows)

    return ask


def test_a_statement_is_made_of_names_alone() -> None:
    """A name of another form would be text of somebody's."""
    assert text(TABLE, ("c0", "p")) == "SELECT c0, p FROM data.kept0"
    assert text(("kept",), ("c0",), numbered=True) == "SELECT rowid, c0 FROM kept"
    for table, columns in (
        (TABLE, ()),
        (TABLE, ("c0 + c1",)),
        (TABLE, ("C0",)),
        (("kept; DROP",), ("c0",)),
        (("",), ("c0",)),
    ):
        with pytest.raises(Refused):
            text(table, columns)


def test_cells_meet_by_the_numbers_of_their_rows() -> None:
    """Columns read in different orders; the control: in the order they came in the sums are others."""
    rng = random.Random(0)
    cells = {name: np.array([rng.randint(-9, 9) for _ in range(10)]) for name in ("c0", "c1")}
    found, wrong = {}, {}
    for name in cells:
        order = rng.sample(range(10), 10)
        found |= read(stored(order, cells), TABLE, (name,), 10)
        wrong[name] = cells[name][order]
    columns = [found[name].part(0, 10)[0] for name in cells]
    assert [each.tolist() for each in columns] == [each.tolist() for each in cells.values()]
    sums = fold(PROGRAM, cut(PROGRAM, TABLE, found, {}, (10, 4)))[0]
    assert int(sums[0, 1]) == int(cells["c0"] @ cells["c1"]) != int(wrong["c0"] @ wrong["c1"])
    with pytest.raises(LookupError):
        read(stored(list(range(9)), cells), TABLE, ("c0",), 10)


def test_a_column_or_a_vector_of_other_rows_is_not_taken() -> None:
    """Whoever keeps them may give a wrong one: of another table or number of rows, or a vector of other bounds."""
    ask = stored(list(range(6)), {name: np.arange(6) for name in ("c0", "c1")})
    right, box = read(ask, TABLE, ("c0", "c1"), 6), box_of(PROGRAM.steps[STACK])

    def folded(columns, made, count):
        return fold(PROGRAM, cut(PROGRAM, TABLE, columns, {STACK: made} if made else {}, (count, 4)))

    assert folded(right, vector(TABLE, box, 6), 6)[0].tolist() == folded(right, None, 6)[0].tolist()
    fewer = read(stored(list(range(5)), {"c0": np.arange(6)}), TABLE, ("c0",), 5)
    other = {"c0": replace(right["c0"], table=("data", "kept1"))}
    wide = box_of(replace(PROGRAM.steps[STACK], units=(Unit(0, -9, 9), Unit(1, -9, 10))))
    for columns, made, count in (
        (right | other, None, 6),
        (right | fewer, None, 6),
        (right, None, 5),
        (right, vector(("data", "kept1"), box, 6), 6),
        (right, vector(TABLE, box, 7), 6),
        (right, vector(TABLE, wide, 6), 6),
        ({"c0": right["c0"]}, None, 6),
    ):
        with pytest.raises((LookupError, TypeError)):
            folded(columns, made, count)


def test_vectors_that_are_known_give_the_same_sums_and_need_no_column() -> None:
    """Read back as they were written, where all rows were; a vector half written is not ready."""
    cells = {"c0": np.arange(-8, 4), "c1": np.arange(12) - 3}
    columns = read(stored(list(range(12)), cells), TABLE, ("c0", "c1"), 12)
    box = box_of(PROGRAM.steps[STACK])
    made, half = vector(TABLE, box, 12), vector(TABLE, box, 12)
    first = fold(PROGRAM, cut(PROGRAM, TABLE, columns, {STACK: made}, (12, 5)))[0]
    assert made.ready
    assert fold(PROGRAM, cut(PROGRAM, TABLE, {}, {STACK: made}, (12, 7)))[0].tolist() == first.tolist()
    fold(PROGRAM, list(cut(PROGRAM, TABLE, columns, {STACK: half}, (12, 5)))[:1])
    assert not half.ready
    assert made.bytes == 12 * 3


@pytest.mark.parametrize(("low", "high", "size"), [(-128, 127, 1), (-129, 0, 2), (0, 128, 2), (-200, 2**31, 8)])
def test_vectors_are_as_narrow_as_their_bounds(low: int, high: int, size: int) -> None:
    """Both ends, zero and one are held."""
    kind = narrow(Box.of((low,), (high,)))
    assert kind.itemsize == size
    assert [int(np.array(x, dtype=kind)) for x in (low, high, 0, 1)] == [low, high, 0, 1]
