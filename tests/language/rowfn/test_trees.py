"""Trees: every row walks to one public leaf, or to none."""

from __future__ import annotations

import time

import numpy as np
import pytest

from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Int, Schema
from sulq.language.kinds import Cells, Code
from sulq.language.rowfn import Bins, Col, Each, OrMissing, Route, RowFn, route
from sulq.language.rowfn.base import evaluate
from tests.frames import Frame

SCHEMA = Schema.of("t", {"c": Category(["u", "v", "w"]), "f": Bool(), "n": Int(0, 9)})
CITY, FLAG = Col("c"), Each(Col("f"))
TREE = ((0, 1, -1, None), (1, -2, -3))  # u asks the flag, v is leaf 0, w is nowhere


def found(fn: Route, rows: list[dict[str, int | None]]) -> list[int | None]:
    cells = evaluate(fn, Frame(SCHEMA, rows))
    return [None if gone else int(leaf) for leaf, gone in zip(cells.values, cells.missing, strict=True)]


def test_a_row_walks_from_node_0_to_a_leaf():
    """Each code leads to a node, a leaf or nowhere."""
    fn = Route((CITY, FLAG), TREE)
    rows = [{"c": c, "f": f} for c in range(3) for f in (0, 1)]
    assert found(fn, rows) == [1, 2, 0, 0, None, None]
    assert fn.kind(SCHEMA) == Code((0, 1, 2))
    assert (fn.depth, fn.leaves) == (2, 3)


def test_only_keys_on_the_path_are_missed():
    """A missing key loses a row where its path asks that key, and nowhere else."""
    fn = Route((CITY, FLAG), TREE)
    assert found(fn, [{"c": None, "f": 1}, {"c": 0, "f": None}, {"c": 1, "f": None}]) == [None, None, 0]


def test_the_missing_may_have_a_child_of_their_own():
    """A key with missing as a label has a child for it; then no row is lost."""
    fn = Route((OrMissing(CITY),), ((0, -1, -1, -1, -2),))
    assert found(fn, [{"c": 2}, {"c": None}]) == [0, 1]
    assert not fn.kind(SCHEMA).nullable


def test_a_kind_is_nullable_only_for_what_is_asked():
    """Keys nobody asks do not make a leaf missing, and are not even looked at."""

    class Silent(RowFn):
        def kind(self, schema: Schema) -> Code:
            return Code((0, 1))

        def cells(self, frame: Frame) -> Cells:
            raise AssertionError

    bins = Bins(Col("n").fill(0), (0, 5, 9))
    fn = Route((Silent(), bins), ((1, -1, -2),))
    assert not fn.kind(SCHEMA).nullable
    assert found(fn, [{"n": 7}, {"n": None}]) == [1, 0]


def test_the_tree_without_nodes_has_one_leaf():
    """Before the first question every row is at the root."""
    fn = Route((), ())
    assert fn.kind(SCHEMA) == Code((0,), nullable=False)
    assert found(fn, [{"c": None}, {"c": 1}]) == [0, 0]
    assert (fn.depth, fn.leaves) == (0, 1)


def test_leaves_and_nodes_may_be_shared():
    """Several branches may come to one leaf, several nodes to one node."""
    fn = Route((CITY, FLAG), ((0, 1, 2, 2), (1, 2, -1), (1, -2, -1)))
    assert found(fn, [{"c": c, "f": f} for c in range(3) for f in (0, 1)]) == [1, 0, 1, 0, 1, 0]


def test_a_code_that_no_label_has_is_nowhere():
    """Whatever stands in a missing cell, or beyond the labels, no row walks outside the tree (T30)."""

    class Wild(RowFn):
        def kind(self, schema: Schema) -> Code:
            return Code((0, 1))

        def cells(self, frame: Frame) -> Cells:
            wild = np.array([0, 1, 2, -1, 2**62, -(2**63), 7])
            return Cells(wild, np.arange(7) == 6)

    fn = Route((Wild(),), ((0, -1, -2),))
    assert found(fn, [{} for _ in range(7)]) == [0, 1, None, None, None, None, None]


@pytest.mark.parametrize(
    "tree",
    [
        ((2, -1, -2, -3),),
        ((-1, -1, -2, -3),),
        ((None, -1, -2, -3),),
        ((True, -1, -2, -3),),
        ((0,),),
        ((),),
        (0, -1),
        ((0, 0, -1, -2),),
        ((0, 1, -1, -2), (1, 0, -3)),
        ((0, 2, -1, -2), (1, -3, -4)),
        ((0, -1, -1, -3),),
        ((0, -2, -2, -3),),
        ((0, None, None, None),),
        ((0, -1, -2, 0.0),),
        ((0, -1, -2, False),),
        ((0, -1, -(2**60), -2),),
    ],
    ids=str,
)
def test_what_is_no_tree_is_refused(tree):
    """Keys and later nodes that are there, leaves without a gap: else there might be no end of the path (T74)."""
    with pytest.raises(QuestionError) as refusal:
        Route((CITY, FLAG), tree)
    assert refusal.value.code in {"bad-question", "too-large"}


def test_a_node_needs_a_child_for_each_label():
    """Too few children would leave a row nowhere to go; a key must have labels at all."""
    for fn in (Route((CITY,), ((0, -1, -2),)), Route((CITY,), ((0, -1, -2, -3, -4),))):
        with pytest.raises(QuestionError) as refusal:
            fn.kind(SCHEMA)
        assert refusal.value.code == "bad-question"
    with pytest.raises(QuestionError) as refusal:
        Route((Col("n"),), ((0, -1),)).kind(SCHEMA)
    assert refusal.value.code == "wrong-kind"


def test_the_builder_takes_whole_numbers_only():
    """Arrays and lists make a tree; parts of numbers do not."""
    assert route(["c"], [[0, -1, None, np.int64(-2)]]).tree == ((0, -1, None, -2),)
    with pytest.raises(QuestionError):
        route("c", [[0, -1, -2, -2.5]])


def test_a_full_tree_of_its_largest_size_is_walked_quickly():
    """16 levels, 65,535 nodes: kind and cells of 1,000 rows within a second, leaf for leaf the binary number."""
    schema = Schema.of("t", {f"b{i}": Bool() for i in range(16)})
    nodes = 2**16 - 1
    child = lambda i: i if i < nodes else -1 - (i - nodes)  # noqa: E731
    tree = tuple(((i + 1).bit_length() - 1, child(2 * i + 1), child(2 * i + 2)) for i in range(nodes))
    codes = np.random.default_rng(1).integers(0, 2, (1000, 16))
    frame = Frame(schema, [{f"b{i}": int(x) for i, x in enumerate(row)} for row in codes])
    start = time.process_time()
    fn = Route(tuple(Each(Col(f"b{i}")) for i in range(16)), tree)
    assert fn.kind(schema).size == 2**16
    leaves = evaluate(fn, frame).values
    assert time.process_time() - start < 1
    assert leaves.tolist() == (codes @ (2 ** np.arange(15, -1, -1))).tolist()
