"""Names to columns: what a question may speak of, and what a relation forbids."""

from __future__ import annotations

import pytest

from sulq.compile.plan.draft import PlanDraft, bind
from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Int, Real, Schema, Text
from sulq.language.privacy import NEIGHBORS, Epsilon, Unit
from sulq.language.question import Sums
from sulq.language.relation import Table, functions
from sulq.language.rowfn import Bins, Bucket, Col, Each, Lit, Lookup, Position, RowFn, Vector
from sulq.language.rowfn.base import walk
from tests.stub import facts

SCHEMA = Schema.of(
    "people",
    {
        "n": Int(0, 4),
        "r": Real(0, 1),
        "f": Bool(),
        "c": Category(["a", "b"]),
        "many": Category(list(range(60_000))),
        "name": Text(),
    },
)


def bound(question: Sums, unit: Unit | None = None) -> PlanDraft:
    return bind(PlanDraft(question, facts(SCHEMA, unit), Epsilon(1)))


def refused(question: Sums, unit: Unit | None = None) -> str:
    with pytest.raises(QuestionError) as refusal:
        bound(question, unit)
    return refusal.value.code


def test_keys_are_categories_bins_whole_numbers_and_truths():
    """A column that is no key yet becomes one where it has few whole values; cells are all combinations."""
    draft = bound(Sums((Lit(1),), None, (Col("c"), Col("n"), Col("f"), Bins(Col("r"), (0, 0.5, 1)))))
    assert [len(key.labels) for key in draft.keys] == [2, 5, 2, 2]
    assert draft.cells == 40
    assert isinstance(draft.keys[1].fn, Each)
    assert bound(Sums((Lit(1),))).cells == 1


def test_a_row_can_fall_outside_where_a_condition_or_a_key_can_be_missing():
    """`droppable` is what makes the number of rows secret even where n is public (SR1)."""
    always = Each(Col("n").fill(0))
    assert bound(Sums((Lit(1),))).droppable is False
    assert bound(Sums((Lit(1),), None, (always,))).droppable is False
    assert bound(Sums((Lit(1),), None, (Col("n"),))).droppable is True
    assert bound(Sums((Lit(1),), None, (Bins(Col("n").fill(0), (0, 2)),))).droppable is True
    assert bound(Sums((Lit(1),), Lit(True))).droppable is True


@pytest.mark.parametrize(
    ("question", "code"),
    [
        (Sums((Lit(1),), over=Table("other")), "unknown-table"),
        (Sums((Lit(1),), Col("n")), "wrong-kind"),
        (Sums((Lit(1),), Col("nobody") > 1), "unknown-column"),
        (Sums((Lit(1),), None, (Col("r"),)), "wrong-kind"),
        (Sums((Lit(1),), None, (Col("name"),)), "open-keys"),
        (Sums((Lit(1),), None, (Vector((Col("n"),)),)), "wrong-kind"),
        (Sums((Lit(1),), None, (Col("many"), Col("many"))), "too-large"),
        (Sums((Lit(1),), None, (Bucket(2**20), Bucket(2**20), Bucket(2**20))), "too-large"),
    ],
)
def test_what_cannot_be_bound_is_refused(question, code):
    """Unknown names, conditions that are none, keys that are none, partitions past all measure (T74)."""
    assert refused(question, Unit("who")) == code


def test_the_table_may_be_named_or_not():
    """One table is registered; its name is optional."""
    for name in ("", "people"):
        assert bound(Sums((Lit(1),), over=Table(name))).cells == 1


def hidden(fn: RowFn) -> list[Sums]:
    """A row function in every place of a question."""
    return [
        Sums((fn,)),
        Sums((fn + 1,)),
        Sums((Lit(1),), fn > 3),
        Sums((Lit(1),), None, (Bins(fn, (0, 10)),)),
        Sums((Vector((fn, Col("n"))),)),
    ]


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("column", [None, "who"])
def test_a_place_may_be_named_only_where_no_neighbour_moves_it_S0_7_SR11(neighbors, rows, column):
    """Places: zero_out, or replace_one where the row is the person; elsewhere refused (S0.7, trap 7)."""
    if column is None and rows > 1:
        return
    unit = Unit(column, rows, neighbors)
    allowed = neighbors == "zero_out" or (neighbors == "replace_one" and column is None)
    for question in hidden(Position()):
        if allowed:
            bound(question, unit)
        else:
            assert refused(question, unit) == "needs-position"


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_buckets_need_persons_or_places_SR11(neighbors):
    """A bucket is a hash of the person; without a person column it needs places, which add_remove does not keep."""
    for key in (Bucket(4), Lookup((Bucket(2),), ((0,), (1,)))):
        question = Sums((Lit(1),), None, (key,)) if isinstance(key, Bucket) else Sums((key,))
        bound(question, Unit("who", 3, neighbors))
        if neighbors == "add_remove":
            assert refused(question, Unit(None, 1, neighbors)) == "needs-position"
        else:
            bound(question, Unit(None, 1, neighbors))


def test_every_row_function_of_a_question_is_looked_at():
    """Walk reaches values, condition, keys and all their parts, outermost first."""
    inner = Col("n")
    question = Sums((inner + 1, Lit(2)), Col("f") & (inner > 2), (Each(inner),))
    found = list(walk(*question.parts(), *functions(question.over)))
    assert found[:4] == [*question.values, question.where, *question.by] or found[0] is question.values[0]
    assert sum(fn is inner for fn in found) == 3
