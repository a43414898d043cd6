"""Statistics of the whole table as values: what they read, what they refuse, and that they cross the wire."""

from __future__ import annotations

import pytest

from sulq.answers import wire
from sulq.errors import QuestionError
from sulq.language.domain import Category, Int, Real, Schema, Text, Vertices
from sulq.language.question import Holistic
from sulq.language.rowfn import Bucket, Col, Position
from sulq.language.space import Box, Cube, Points
from sulq.language.statistic import (
    STATISTICS,
    Aggregated,
    Certified,
    Degrees,
    Edges,
    Graph,
    HeavyPersons,
    MinCut,
    Occurring,
    SpanningTree,
    ToBoundedDegree,
    ToConnected,
    ToProperty,
    ToSorted,
    ToUnique,
    Triangles,
)

GRAPH = Graph("u", "v", "w")
EACH = [
    MinCut(GRAPH),
    SpanningTree(GRAPH, complete=True),
    Triangles(GRAPH, 3),
    Degrees(GRAPH, 5),
    Edges(GRAPH),
    ToConnected(GRAPH),
    ToBoundedDegree(GRAPH, 2),
    ToUnique(("a", "b")),
    ToSorted("a"),
    Occurring(("a",)),
    HeavyPersons(),
    Aggregated("mean", ("a",), 7, 0, 1.5, 3),
    Certified("own", ("a",)),
    ToProperty("own", ("a", "b")),
]
ENDS = Category((1, 2, 3))


def test_there_is_an_example_of_each() -> None:
    """So that the tests below leave none out."""
    assert {type(item) for item in EACH} == set(STATISTICS)


@pytest.mark.parametrize("statistic", EACH, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("space", [None, Cube(), Box(0, 9, 3, "circle"), Points(((0,), (2,)), "discrete")], ids=str)
def test_a_question_crosses_the_wire(statistic: object, space: object) -> None:
    """Its canonical JSON reads back as a question of the same text."""
    text = wire.encode(Holistic(statistic, Col("a") > 3, space))
    assert wire.encode(wire.decode(text)) == text


def test_what_each_reads_of_a_row() -> None:
    """Columns; the place where order counts; the block where people are divided."""
    assert [fn.name for fn in MinCut(GRAPH).row] == ["u", "v", "w"]
    assert [fn.name for fn in ToConnected(Graph("u", "v")).row] == ["u", "v"]
    assert isinstance(ToSorted("a").row[0], Position)
    block = Aggregated("mean", ("a",), 7, 0, 1, 3).row[0]
    assert isinstance(block, Bucket)
    assert (block.count, block.salt) == (7, 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Graph("u", "u"),
        lambda: Graph("u", ""),
        lambda: Graph("u", "v", "v"),
        lambda: Graph(1, "v"),
        lambda: MinCut("u"),
        lambda: Triangles(GRAPH, 0),
        lambda: Triangles(GRAPH, 2.0),
        lambda: Degrees(GRAPH, 0),
        lambda: Degrees(GRAPH, True),
        lambda: ToBoundedDegree(GRAPH, -1),
        lambda: ToUnique(()),
        lambda: ToUnique(("a", "a")),
        lambda: ToUnique("ab"),
        lambda: ToSorted(""),
        lambda: Occurring((3,)),
        lambda: Aggregated("", ("a",), 3, 0, 1),
        lambda: Aggregated("mean", ("a",), 0, 0, 1),
        lambda: Aggregated("mean", ("a",), 3, 1, 1),
        lambda: Aggregated("mean", ("a",), 3, 0, 1e300),
        lambda: Aggregated("mean", ("a",), 3, 0, "1"),
        lambda: Aggregated("mean", ("a",), 3, 0, 1, 0.5),
        lambda: Certified("", ("a",)),
    ],
)
def test_odd_statistics_are_refused_with_a_code(make: object) -> None:
    """A wrong number, name or kind is a question's error, never a raw one."""
    with pytest.raises(QuestionError) as refused:
        make()
    assert refused.value.code in {"bad-question", "bad-literal"}


@pytest.mark.parametrize(
    ("columns", "person", "code"),
    [
        ({"u": ENDS, "v": ENDS, "w": Real(0, 1)}, None, None),
        ({"u": Vertices(0, 9), "v": Vertices(0, 9), "w": Int(0, 1)}, "owner", None),
        ({"u": Int(0, 9), "v": Int(0, 9), "w": Int(0, 1)}, "owner", "wrong-kind"),
        ({"u": ENDS, "v": ENDS}, None, "unknown-column"),
        ({"u": ENDS, "v": ENDS, "w": Real(0, 1)}, "u", "node-unit"),
        ({"u": ENDS, "v": ENDS, "w": Real(0, 1)}, "v", "node-unit"),
        ({"u": ENDS, "v": Category((1, 2)), "w": Real(0, 1)}, None, "wrong-kind"),
        ({"u": Real(0, 1), "v": Real(0, 1), "w": Real(0, 1)}, None, "wrong-kind"),
        ({"u": ENDS, "v": ENDS, "w": Text()}, None, "wrong-kind"),
    ],
)
def test_what_can_be_a_graph_SR10(columns: dict[str, object], person: str | None, code: str | None) -> None:
    """Ends declared alike by a list or as vertices, a number for a weight, and no vertex for a unit.

    Plain whole numbers are clamped to their bounds, which would make edges that nobody has.
    """
    found = GRAPH.unfit(Schema.of("t", columns), person)
    assert (found if found is None else found[0]) == code


def test_whole_numbers_that_a_graph_names_are_read_as_vertices_SR10() -> None:
    """Ends alone, and what is declared otherwise stays as it is."""
    given = {"u": Int(0, 9), "v": Int(0, 9), "w": Int(0, 1)}
    found = dict(GRAPH.numbered(Schema.of("t", given)).columns)
    assert found == {"u": Vertices(0, 9), "v": Vertices(0, 9), "w": Int(0, 1)}
    assert found["u"] != Int(0, 9)
    listed = Schema.of("t", {"u": ENDS, "v": ENDS})
    assert GRAPH.numbered(listed) == listed
