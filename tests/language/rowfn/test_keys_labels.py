"""Labels: constants of a case, new names, missing as a name of its own, and numbers again."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq.errors import QuestionError
from sulq.language.kinds import Code, Scalar
from sulq.language.rowfn import Bins, Choice, Col, Each, Lit, OrMissing, Relabel, Value
from tests.expressions import SCHEMA
from tests.language.rowfn.test_scalar_missing import values

AGE = Choice(((Col("few") < 0, 1), (Col("few") == 0, None)), ("old", "young"), 0)


def test_a_case_of_constants_is_a_key():
    """The first condition that holds decides; an unknown one does not hold."""
    assert AGE.kind(SCHEMA) == Code(("old", "young"))
    assert values(AGE, [{"few": few} for few in (-1, 0, 1, None)]) == [1, None, 0, 0]
    sure = Choice(((Col("few") < 0, 1),), (10, 20), 0)
    assert sure.kind(SCHEMA) == Code((10, 20), nullable=False)


def test_new_names_are_sorted_and_shared_ones_are_one():
    """Texts by their characters, numbers by size; None is missing."""
    fn = Relabel(Col("city"), ("south", "centre", "south"))
    assert fn.kind(SCHEMA) == Code(("centre", "south"))
    assert values(fn, [{"city": code} for code in (0, 1, 2, None)]) == [1, 0, 1, None]
    fn = Relabel(Each(Col("flag")), (3.5, None))
    assert fn.kind(SCHEMA) == Code((3.5,))
    assert values(fn, [{"flag": code} for code in (0, 1, None)]) == [0, None, None]
    whole = Relabel(Bins(Col("part"), (0, 0.5, 1)), (False, True))
    assert whole.kind(SCHEMA).labels == (False, True)


def test_missing_can_be_a_label():
    """One more label, None, and nothing is missing any more."""
    fn = OrMissing(AGE)
    assert fn.kind(SCHEMA) == Code(("old", "young", None), nullable=False)
    assert values(fn, [{"few": few} for few in (-1, 0, 1, None)]) == [1, 2, 0, 0]
    assert values(OrMissing(Each(Lit(True))), [{}]) == [1]
    named = Relabel(OrMissing(Col("city")), ("Haifa", "Lod", "Yafo", "unknown"))
    assert values(named, [{"city": 0}, {"city": None}]) == [0, 3]


def test_a_label_that_is_a_number_is_one_again():
    """Its interval is that of the labels; the label None is missing."""
    assert Value(Col("grade")).kind(SCHEMA) == Scalar(Fraction(-1), Fraction(7), Fraction(1))
    assert values(Value(Col("grade")), [{"grade": code} for code in (0, 1, 2, None)]) == [7, -1, 3, None]
    halves = Value(OrMissing(Choice(((Col("flag"), 1),), (0.5, 2))))
    assert halves.kind(SCHEMA) == Scalar(Fraction(1, 2), Fraction(2))
    assert values(halves, [{"flag": flag} for flag in (1, 0, None)]) == [2, None, None]


@pytest.mark.parametrize(
    ("maker", "code"),
    [
        (lambda: Choice((), ("a",)), "bad-question"),
        (lambda: Choice(((Col("flag"), 0),), ()), "bad-question"),
        (lambda: Choice(((Col("flag"), 1),), ("a",)), "bad-question"),
        (lambda: Choice(((Col("flag"), -1),), ("a",)), "bad-question"),
        (lambda: Choice(((Col("flag"), True),), ("a", "b")), "bad-question"),
        (lambda: Choice(((Col("flag"), 0),), ("a",), 1), "bad-question"),
        (lambda: Choice(((Col("flag"), 0),), ("a", "a")), "bad-question"),
        (lambda: Choice(((Col("flag"), 0),), (1, 1.0)), "bad-question"),
        (lambda: Choice(((True, 0),), ("a",)), "bad-question"),
        (lambda: Choice(((Col("flag"), 0),), (len,)), "bad-literal"),
        (lambda: Relabel(Col("city"), ("a", 1, "b")), "bad-question"),
        (lambda: Relabel(Col("city"), (True, 1, 0)), "bad-question"),
        (lambda: Relabel(Col("city"), (None, None, None)), "bad-question"),
        (lambda: Relabel(Col("city"), ("a", "b")).kind(SCHEMA), "bad-question"),
        (lambda: Relabel(Col("few"), ("a", "b")).kind(SCHEMA), "wrong-kind"),
        (lambda: OrMissing(Col("few")).kind(SCHEMA), "wrong-kind"),
        (lambda: Value(Col("city")).kind(SCHEMA), "wrong-kind"),
        (lambda: Value(Each(Col("flag"))).kind(SCHEMA), "wrong-kind"),
        (lambda: Choice(((Col("few"), 0),), ("a",)).kind(SCHEMA), "wrong-kind"),
    ],
)
def test_what_has_no_meaning_is_refused(maker, code):
    """Labels are constants of one sort, and a branch gives one of them."""
    with pytest.raises(QuestionError) as refusal:
        maker()
    assert refusal.value.code == code


def test_a_literal_meets_labels_wherever_they_come_from_SR21():
    """A comparison with a label that is not there is refused; with one that is, decided by the code."""
    assert values(AGE == "old", [{"few": few} for few in (-1, 0, 1)]) == [False, None, True]
    with pytest.raises(QuestionError) as refusal:
        (AGE == "ancient").kind(SCHEMA)
    assert refusal.value.code == "unknown-category"


@pytest.mark.parametrize("labels", [("a", 1), (1, True), (1, 1.0), ("a", "a"), (True, "x")])
def test_labels_that_rows_could_mix_up_are_refused_T30(labels: tuple[object, ...]) -> None:
    """All texts, all numbers or all truths, and all different: no pair of them can fail to be told apart or sorted."""
    with pytest.raises(QuestionError) as refused:
        Choice(((Col("flag"), 1),), labels, 0)
    assert refused.value.code == "bad-question"
