"""Which groups are compared: labels of a category, both sides of a condition, those that are named."""

from __future__ import annotations

import pytest

from sulq import col
from sulq.errors import QuestionError
from sulq.inference.groups import groups_of, named_groups
from sulq.language.domain import Bool, Category, Real, Schema
from tests.stub import facts

FACTS = facts(Schema("t", (("x", Real(0, 10)), ("b", Bool()), ("c", Category(["u", "v", "w"])))))


def test_labels_are_compared_in_the_order_they_are_named() -> None:
    """Their cells are those of the answer; all labels are taken where none are named."""
    found = groups_of(FACTS, "c", ["w", "u"], most=2)
    assert (found.labels, found.cells) == (("w", "u"), (2, 0))
    assert groups_of(FACTS, "c", None).labels == ("u", "v", "w")
    assert named_groups(groups_of(FACTS, "b", None)) == ["b=False", "b=True"]
    assert groups_of(FACTS, col("x") > 5, None).labels == (False, True)


@pytest.mark.parametrize(
    ("by", "wanted"), [("x", None), ("c", None), ("c", ["u", "z"]), ("c", ["u", "u"]), ("c", ["u"]), ("c", "uv")]
)
def test_what_is_no_pair_of_groups_is_refused(by: str, wanted: object) -> None:
    """A number, three labels where two are compared, a label that is not declared, one twice, one alone."""
    with pytest.raises(QuestionError):
        groups_of(FACTS, by, wanted, most=2)
