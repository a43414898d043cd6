"""A column as a key: public cells, in order, that a question and a reader call by the same names."""

from __future__ import annotations

import pytest

from sulq import Bool, Category, Date, Int, Real, Text
from sulq.errors import QuestionError
from sulq.language.attribute import MAX_CELLS, Attribute
from sulq.language.domain import Schema


@pytest.mark.parametrize(
    ("domain", "bins", "labels"),
    [
        (Bool(), 4, (False, True)),
        (Category(("a", "b", "c")), 2, ("a", "b", "c")),
        (Int(3, 5), 4, (3, 4, 5)),
        (Int(0, 9), 3, ((0.0, 3.0), (3.0, 6.0), (6.0, 9.0))),
        (Real(0, 1), 2, ((0.0, 0.5), (0.5, 1.0))),
        (Date("2026-01-01", "2026-01-03"), 2, (("2026-01-01", "2026-01-02"), ("2026-01-02", "2026-01-03"))),
        (Int(7, 7), 1, (7,)),
    ],
)
def test_every_value_has_its_cell(domain: object, bins: int, labels: tuple[object, ...]) -> None:
    """Values where they are few, intervals of equal width else; the key of a question has the same labels."""
    attribute = Attribute("x", domain, bins)
    assert attribute.labels == labels
    assert attribute.size == len(labels)
    assert attribute.row.kind(Schema.of("data", {"x": domain})).size == len(labels)
    assert attribute.ordered == (not isinstance(domain, (Bool, Category)))


def test_what_has_no_cells_is_refused() -> None:
    """Free text, and more values than a key may have."""
    with pytest.raises(QuestionError) as text:
        Attribute("note", Text(), 4)
    with pytest.raises(QuestionError) as many:
        Attribute("x", Int(0, 10**6), MAX_CELLS + 1)
    assert (text.value.code, many.value.code) == ("wrong-kind", "too-large")
