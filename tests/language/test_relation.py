"""Relations: a closed language, checked when it is built, and no bomb is followed (T74)."""

from __future__ import annotations

import pytest

from sulq.errors import QuestionError
from sulq.language.question import Sums
from sulq.language.relation import MAX_RELATION_DEPTH, Distinct, Join, PerPerson, Select, Table, Union, Where, functions
from sulq.language.rowfn import Col, Lit

PEOPLE = Table("people")


@pytest.mark.parametrize(
    "maker",
    [
        lambda: Where("people", Col("age") > 1),
        lambda: Where(PEOPLE, "age > 1"),
        lambda: Select(PEOPLE, ()),
        lambda: Select(PEOPLE, (("a", Col("age")), ("a", Col("pay")))),
        lambda: Select(PEOPLE, (("", Col("age")),)),
        lambda: Select(PEOPLE, (("a", 1),)),
        lambda: Join(PEOPLE, PEOPLE, (), "full"),
        lambda: Join(PEOPLE, PEOPLE, ("a",)),
        lambda: Join(PEOPLE, 3, ()),
        lambda: Join(PEOPLE, PEOPLE, (), person="yes"),
        lambda: PerPerson(PEOPLE, (), (("n", "median", Col("age")),)),
        lambda: PerPerson(PEOPLE, (), (("n", "sum", None),)),
        lambda: PerPerson(PEOPLE, ("n",), (("n", "count", None),)),
        lambda: Distinct(None),
        lambda: Union((PEOPLE,)),
        lambda: Sums((Lit(1),), over="people"),
    ],
)
def test_what_is_no_relation_is_refused_when_it_is_built(maker: object) -> None:
    """Names, kinds and ways of joining are checked at once, with a code."""
    with pytest.raises(QuestionError) as refused:
        maker()
    assert refused.value.code in {"bad-question", "too-large"}


def test_every_row_function_of_a_relation_is_found() -> None:
    """What stands inside a derived table counts as part of the question."""
    one, two, three = Col("age") > 1, Col("pay"), Col("age")
    made = PerPerson(Select(Where(PEOPLE, one), (("x", two),)), (), (("n", "sum", three),))
    assert {id(fn) for fn in functions(made)} == {id(one), id(two), id(three)}


def test_tables_nested_too_deeply_are_refused_T74() -> None:
    """A tower of derived tables, or one that doubles at each step, is refused quickly."""
    tall = wide = PEOPLE
    for _ in range(MAX_RELATION_DEPTH + 1):
        tall = Distinct(tall)
    for _ in range(MAX_RELATION_DEPTH - 2):
        wide = Union((wide, wide))
    for bomb in (tall, wide):
        with pytest.raises(QuestionError) as refused:
            Sums((Lit(1),), over=bomb)
        assert refused.value.code == "too-large"
