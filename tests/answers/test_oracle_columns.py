"""Handles on columns: names, domains and the Oracle; never rows."""

from __future__ import annotations

import pytest

from sulq.answers.oracle import ColumnChoice, GraphTable
from sulq.errors import QuestionError
from sulq.language.domain import Bool, Int, Schema
from sulq.language.space import Cube
from sulq.language.statistic import (
    Degrees,
    Edges,
    Graph,
    MinCut,
    SpanningTree,
    ToBoundedDegree,
    ToConnected,
    Triangles,
)
from tests.stub import Stub

ORACLE = Stub(Schema.of("people", {"age": Int(0, 120), "smoker": Bool()}), [{"age": 77, "smoker": 1}])


def test_a_handle_knows_its_columns():
    """Names, domains and row functions, in order."""
    handle = ColumnChoice(("smoker", "age"), ORACLE)
    assert handle.domain == (Bool(), Int(0, 120))
    assert [fn.name for fn in handle.row] == ["smoker", "age"]
    assert len(handle) == 2


def test_a_handle_shows_no_row_S0_1():
    """Its text names columns and table only (S0.1)."""
    text = repr(ColumnChoice(("age",), ORACLE))
    assert text == "Columns(age of people; private)"
    assert "77" not in text


@pytest.mark.parametrize("names", [("income",), ("age", "x" * 10_000), (3,), (None,)])
def test_undeclared_columns_are_refused(names):
    """A name that is not declared, or no name, is refused with a code."""
    with pytest.raises(QuestionError) as refusal:
        ColumnChoice(names, ORACLE)
    assert refusal.value.code in {"unknown-column", "bad-question"}
    assert len(str(refusal.value)) < 400


def test_a_graph_is_asked_by_its_columns():
    """Each ask becomes one question about the declared graph; nothing of a row is in its text."""
    asked = []

    class Listening:
        facts = ORACLE.facts

        def ask(self, question, *, spend=None, key=None, reuse=False):
            asked.append((question.statistic, question.space, question.over.name, reuse))

    graph = Graph("u", "v", "w")
    handle = GraphTable(graph, Listening(), "people")
    handle.min_cut(spend=None)
    handle.spanning_tree_weight(complete=True, fresh=True)
    handle.triangles(degree=3)
    handle.degrees(4)
    handle.to_connected()
    handle.to_bounded_degree(2)
    handle.edges()
    assert [statistic for statistic, *_ in asked] == [
        MinCut(graph), SpanningTree(graph, complete=True), Triangles(graph, 3), Degrees(graph, 4), ToConnected(graph),
        ToBoundedDegree(graph, 2), Edges(graph),
    ]  # fmt: skip
    assert [space for _, space, *_ in asked] == [None] * 6 + [Cube()]
    assert [reuse for *_, reuse in asked] == [True, False, True, True, True, True, True]
    assert repr(handle) == "GraphTable(u, v, w of people; private)"
    with pytest.raises(QuestionError):
        handle.min_cut(fresh=1)
