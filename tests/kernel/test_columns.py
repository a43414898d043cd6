"""Columns in memory are those they say they are, each cell at its row's number."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from sulq.kernel.columns import Made, names, needed, read, size, text
from sulq.kernel.facts import Refused
from sulq.kernel.matrix import cut, fold, vectors
from sulq.kernel.programs import Box, Column, Constant, Missing, Program, Stack, Sum, Unit

TABLE = ("data", "kept0")
PROGRAM = Program(
    ("c0", "c1"), (Column(0), Column(1), Missing(1), Stack((Unit(0, -9, 9), Unit(1, -9, 9)), 2)), (Sum("products", 3),)
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


def test_a_column_or_a_vector_of_something_else_is_not_taken() -> None:
    """Whoever keeps them may give a wrong one: another column, table, number of rows, or another vector's numbers."""
    cells = {name: np.arange(6) for name in ("c0", "c1")}
    ask = stored(list(range(6)), cells)
    right = read(ask, TABLE, ("c0", "c1"), 6)
    ((place, (of, box, by_rows)),) = vectors(PROGRAM, TABLE).items()
    made = Made(of, box, 6, by_rows=by_rows)
    assert sum(batch.size for batch in cut(PROGRAM, TABLE, right, {place: made}, (6, 4))) == 6
    others = read(stored(list(range(5)), cells), TABLE, ("c0",), 5)
    for columns, kept, count in (
        ({"c0": right["c1"], "c1": right["c0"]}, {}, 6),
        (right | others, {}, 6),
        (right, {}, 5),
        (right, {place: Made((("data", "kept1"), of[1]), box, 6, by_rows=False)}, 6),
        (right, {place: Made((TABLE, "vector of another"), box, 6, by_rows=False)}, 6),
    ):
        with pytest.raises(LookupError):
            list(cut(PROGRAM, TABLE, columns, kept, (count, 4)))


def test_vectors_that_are_known_give_the_same_sums_and_need_no_column() -> None:
    """Read back as they were written, where all rows were; a vector half written is not ready."""
    cells = {"c0": np.arange(-8, 4), "c1": np.arange(12) - 3}
    columns = read(stored(list(range(12)), cells), TABLE, ("c0", "c1"), 12)
    ((place, (of, box, by_rows)),) = vectors(PROGRAM, TABLE).items()
    made = Made(of, box, 12, by_rows=by_rows)
    first = fold(PROGRAM, cut(PROGRAM, TABLE, columns, {place: made}, (12, 5)))[0]
    assert made.end()
    assert needed(PROGRAM, {place}) == set()
    assert needed(PROGRAM, set()) == {0, 1}
    assert fold(PROGRAM, cut(PROGRAM, TABLE, {}, {place: made}, (12, 7)))[0].tolist() == first.tolist()
    half = Made(of, box, 12, by_rows=by_rows)
    fold(PROGRAM, list(cut(PROGRAM, TABLE, columns, {place: half}, (12, 5)))[:1])
    assert not half.end()
    assert made.bytes == size(box, 12, by_rows=False) == 12 * 3
    assert size(Box((-200,), (2**31,)), 1, by_rows=True) == 17


def test_other_steps_have_other_names() -> None:
    """Every change of a field of a step or of what it is worked out of is another vector."""
    changed = [
        replace(PROGRAM.steps[3], ball=5),
        replace(PROGRAM.steps[3], l1=5),
        replace(PROGRAM.steps[3], missing=None),
        replace(PROGRAM.steps[3], units=PROGRAM.steps[3].units[::-1]),
        replace(PROGRAM.steps[3], units=(replace(PROGRAM.steps[3].units[0], scale=0.5), PROGRAM.steps[3].units[1])),
        replace(PROGRAM.steps[3], units=(replace(PROGRAM.steps[3].units[0], low=-8), PROGRAM.steps[3].units[1])),
    ]
    found = {names(replace(PROGRAM, steps=(*PROGRAM.steps[:3], step)))[3] for step in (PROGRAM.steps[3], *changed)}
    found.add(names(replace(PROGRAM, columns=("c1", "c0")))[3])
    assert len(found) == len(changed) + 2
    one, true = (names(Program((), (Constant(value),), ()))[0] for value in (1, True))
    assert one != true
