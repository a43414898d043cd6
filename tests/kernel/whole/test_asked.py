"""What may be asked of the whole table: priced by what all neighbours do, and by nothing that somebody states (SR5)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from sulq.kernel.facts import Draw, Refused, Unit
from sulq.kernel.mechanisms import MECHANISMS
from sulq.kernel.whole.asked import STATISTICS, Asked, Statistic, exact, sensitivity
from sulq.kernel.whole.figure import Figure, monotone
from sulq.kernel.whole.functions import BLANK, Aggregated, Declared, Range, Word
from sulq.kernel.whole.graphs import (
    Degrees,
    Edges,
    Graph,
    MinCut,
    SpanningTree,
    ToBoundedDegree,
    ToConnected,
    Triangles,
)
from sulq.kernel.whole.metric import Cube, Points
from sulq.kernel.whole.rows import HeavyPersons, Occurring, ToSorted, ToUnique
from tests.kernel.whole.small_graphs import pairs, table, tables

NEIGHBORS = ("add_remove", "replace_one", "zero_out")
SCALE = Fraction(4)
ONE = Fraction(1)
ENDS = Range(ONE, 0, 3)
WORD = Word((ONE,), Range(ONE, -4, 4), Fraction(0), ONE, ONE)  # a row moves it by two at most
GRAPH, WEIGHED = Graph(4), Graph(3, one=2)
WEIGHTS = [(*pair, weight) for pair in pairs(3) for weight in (0, 2)]
TWO = [(a, b) for a in (0, 1) for b in (0, 1, 2)]
CASES: dict[str, tuple[Statistic, list[tuple[int, ...]], int]] = {  # kinds of rows, and the most rows of a table
    "MinCut": (MinCut(WEIGHED), WEIGHTS, 3),
    "SpanningTree": (SpanningTree(WEIGHED), WEIGHTS, 4),
    "complete tree": (SpanningTree(WEIGHED, complete=True), WEIGHTS, 4),
    "Triangles": (Triangles(GRAPH), pairs(4), 6),
    "few triangles": (Triangles(GRAPH, 1), pairs(4), 5),
    "Degrees": (Degrees(GRAPH, 3), pairs(4), 4),
    "Edges": (Edges(GRAPH), pairs(4), 3),
    "ToConnected": (ToConnected(GRAPH), pairs(4), 4),
    "ToBoundedDegree": (ToBoundedDegree(GRAPH, 1), pairs(4), 4),
    "ToUnique": (ToUnique(2), TWO, 3),
    "ToSorted": (ToSorted(), TWO, 3),
    "Occurring": (Occurring(((0, 1), (0, 2))), TWO, 3),
}
LOOSE = {"few triangles", "Degrees"}  # so few rows do not reach all of these bounds


def length(rows: np.ndarray) -> float:
    return float(len(rows))


def norms(first: np.ndarray, second: np.ndarray) -> dict[str, int]:
    """How far two vectors are apart, as each law is priced by it."""
    gaps = np.abs(first - second).ravel()
    return {"laplace": int(gaps.sum()), "gaussian": int((gaps**2).sum()), "bits": int((gaps > 0).sum())}


def neighbours(kinds: list[tuple[int, ...]], most: int, k: int, neighbors: str) -> set[tuple[tuple, tuple]]:
    """All pairs of tables that differ in the rows of one person, who has up to k; larger tables are left out."""
    found = set()
    every = set(tables(kinds, most))
    for common in every:
        held = [
            tuple(sorted((*common, *own)))
            for n in range(k + 1)
            for own in itertools.combinations_with_replacement(kinds, n)
        ]
        held = [each for each in held if each in every]
        found |= (
            {(common, each) for each in held} if neighbors != "replace_one" else set(itertools.combinations(held, 2))
        )
    return found


def least(asked: Asked, k: int, unit: Unit, law: str) -> int:
    """The least sensitivity of a draw that is not refused."""
    for record in itertools.count():
        draw = Draw(law, unit.neighbors, MECHANISMS[law].norm, Fraction(record), SCALE, ONE, 1)
        try:
            asked.cost(k, draw, unit)
        except Refused:
            continue
        return record
    raise AssertionError


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("name", CASES)
def test_no_neighbour_moves_a_statistic_farther_than_its_draw_must_record_SR5(name: str, neighbors: str) -> None:
    """All tables of a few rows and all persons of one and two rows in them, in L1, squared L2 and bits.

    Control: a draw that records one unit less is passed by some neighbour, wherever so few rows reach the bound.
    """
    statistic, kinds, most = CASES[name]
    values = {rows: exact(Asked(statistic), table(rows, len(kinds[0])), {}) for rows in tables(kinds, most)}
    spaces = [(Asked(statistic), "laplace"), (Asked(statistic), "gaussian")]
    spaces += [(Asked(statistic, Cube()), "bits")] if isinstance(statistic, (Edges, Occurring)) else []
    for k in (1, 2):
        unit = Unit("who", k, neighbors)
        found = [norms(values[a], values[b]) for a, b in neighbours(kinds, most, k, neighbors)]
        for asked, law in spaces:
            said, reached = least(asked, k, unit, law), max(each[law] for each in found)
            assert reached <= said
            if k == 1 and name not in LOOSE:
                assert reached == said


SPACES = [*itertools.product(("ToUnique", "Degrees"), ("l1", "linf", "hamming", "discrete")), ("ToUnique", "circle")]


@pytest.mark.parametrize(("name", "distance"), SPACES)  # a circle is of one number
def test_a_point_of_a_space_hides_what_moves_its_distances_SR5(name: str, distance: str) -> None:
    """Over all neighbours the odds of a point, by the exact law, change by no more than what is paid.

    Two rows of a person are exchanged. Control: a law of an eighth of the noise does not stay within it.
    """
    statistic, kinds, most = CASES[name]
    width = statistic.figure(1).width
    points = tuple((i,) * width for i in range(5))
    asked = Asked(statistic, Points(points, distance, 5 if distance == "circle" else 0))
    unit = Unit("who", 2, "replace_one")
    scores = {rows: exact(asked, table(rows, 2), {})[0] for rows in tables(kinds, most)}
    record = least(asked, 2, unit, "metric")
    epsilon = float(record / SCALE)

    def lost(scale: float) -> float:
        odds = {rows: score / scale - np.log(np.exp(score / scale).sum()) for rows, score in scores.items()}
        pairs_of = neighbours(kinds, most, 2, "replace_one")
        return max(float(np.abs(odds[a] - odds[b]).max()) for a, b in pairs_of)

    assert lost(float(SCALE)) <= epsilon + 1e-12
    assert lost(float(SCALE) / 8) > epsilon
    assert least(asked, 2, unit, "exponential") == (2 * asked.space.moved(sensitivity(statistic, 2, unit))) ** 2


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_blocks_of_people_move_within_what_a_draw_must_record_SR11(neighbors: str) -> None:
    """All tables of up to three persons in two blocks, rows and all; control: less than the range would not do."""
    asked = Asked(Aggregated("own", (ONE,), 2, (0, 1, 0), ENDS))
    unit = Unit("who", 2, neighbors)
    said = least(asked, 2, unit, "laplace")
    persons = [tuple((person, value) for value in held) for person in range(3) for held in ((), (0,), (3,), (3, 3))]
    own = {"own": lambda rows: rows[:, 0].max() if len(rows) else 0.0}
    most = 0
    for others in itertools.product(persons[:4], persons[4:8]):
        rest = [row for held in others for row in held]
        after = [int(exact(asked, table([*rest, *held], 2), own)[0, 0]) for held in persons]
        here = int(exact(asked, table(rest, 2), own)[0, 0])
        ends = after if neighbors == "replace_one" else [here]
        most = max(most, *(abs(a - b) for a in after for b in ends))
    assert most <= said == (6 if neighbors == "replace_one" else 3)
    assert most >= 3


def test_a_declared_function_is_priced_by_its_owners_word_S4_13() -> None:
    """Twice what the owner says for a row and a unit for rounding, k times, within its range; and no less."""
    asked = Asked(Declared("own", WORD))
    for k, said in ((1, 3), (2, 6), (3, 8)):
        assert least(asked, k, Unit(None, 1, "zero_out"), "laplace") == said


def test_heavy_persons_are_priced_whatever_rows_they_have() -> None:
    """One count, or two where a person is exchanged."""
    asked = Asked(HeavyPersons())
    assert [least(asked, k, Unit("who", k), "laplace") for k in (1, 9)] == [1, 1]
    assert least(asked, 9, Unit("who", 9, "replace_one"), "gaussian") == 2
    assert exact(asked, np.array([[3, 4]]), {}).tolist() == [[3, 4]]
    with pytest.raises(ValueError, match="unpack"):
        exact(asked, np.array([[3, 4], [5, 6]]), {})


@pytest.mark.parametrize("law", sorted(MECHANISMS))
def test_a_law_hides_what_it_is_for_and_nothing_else_SR22(law: str) -> None:
    """Numbers, bits and points each have their own laws; whatever the draw records, another is refused."""
    points = Points(((0,), (1,)), "l1")
    for asked, laws in (
        (Asked(ToUnique(1)), {"laplace", "gaussian"}),
        (Asked(ToUnique(1), points), {"metric", "exponential"}),
        (Asked(Edges(GRAPH), Cube()), {"bits"}),
    ):
        draw = Draw(law, "add_remove", MECHANISMS[law].norm, Fraction(10**6), SCALE, ONE, 1)
        if law in laws:
            asked.cost(1, draw, Unit())
        else:
            with pytest.raises(Refused):
                asked.cost(1, draw, Unit())


def test_the_price_is_that_of_the_move_and_not_of_the_record() -> None:
    """A draw that records more than moves costs what moves; the noise is what it is."""
    draw = Draw("laplace", "add_remove", "l1", Fraction(100), SCALE, ONE, 1)
    assert Asked(ToUnique(1)).cost(2, draw, Unit("who", 2)).epsilon == Fraction(2, 4)


@pytest.mark.parametrize("rows", [0, -1, 10**6 + 1, True, 1.0])
def test_a_number_of_rows_that_is_none_is_refused(rows: object) -> None:
    """Nobody alters no row at all, or a part of one."""
    with pytest.raises(Refused):
        sensitivity(ToUnique(1), rows, Unit())


@dataclass(frozen=True, slots=True)
class Quiet(ToUnique):
    """A statistic that says it does not move."""

    def figure(self, rows: int) -> Figure:
        return monotone(0)


def test_what_is_none_of_the_list_is_refused() -> None:
    """Not even one that is made of one of the list; the list has all there are."""
    for other in (Quiet(1), None, "MinCut", GRAPH):
        with pytest.raises(Refused):
            Asked(other)
    assert {type(statistic) for statistic, _, _ in CASES.values()} | {HeavyPersons, Aggregated, Declared} == set(
        STATISTICS
    )


def test_a_space_that_does_not_fit_is_refused() -> None:
    """A cube is for bits, a point as wide as the statistic."""
    for statistic, space in (
        (Degrees(GRAPH, 3), Cube()),
        (Degrees(GRAPH, 3), Points(((0,),), "l1")),
        (ToUnique(1), Points(((0, 1),), "l1")),
    ):
        with pytest.raises(Refused):
            Asked(statistic, space)


@pytest.mark.parametrize("name", CASES)
def test_rows_that_lack_something_are_left_out_by_themselves(name: str) -> None:
    """Wherever a cell is missing the row is not there. Control: a declared function sees them all."""
    statistic, kinds, _ = CASES[name]
    rows = table(kinds, len(kinds[0]))
    lacking = rows.copy()
    lacking[-1, 0] = BLANK
    found = exact(Asked(statistic), np.vstack([rows, lacking[-1:]]), {})
    assert (found == exact(Asked(statistic), rows, {})).all()
    seen = exact(Asked(Declared("own", replace(WORD, steps=(ONE,)))), np.array([(0, BLANK), (1, 2)]), {"own": length})
    assert seen.tolist() == [[2]]


@pytest.mark.parametrize("cells", [np.zeros((2, 3), np.int64), np.zeros((2, 2)), np.zeros(2, np.int64)], ids=repr)
def test_cells_of_another_shape_or_type_are_an_error(cells: np.ndarray) -> None:
    """What would show a row by its shape never reaches the noise."""
    with pytest.raises(TypeError):
        exact(Asked(ToUnique(2)), cells, {})
