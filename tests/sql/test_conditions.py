"""Tests of sulq.sql.conditions: a condition means the same as text, as a row function and as a handle."""

from __future__ import annotations

import pytest

from sulq.answers.oracle import ColumnChoice
from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon
from sulq.language.rowfn import Col, IsIn, RowFn, col
from sulq.sql.conditions import condition, row_function
from tests.counts import count, generator
from tests.sql.asking import TABLES, facts, node, same, table
from tests.sql.conditions import Conditions, Source
from tests.stub import Stub

FACTS = facts()
PEOPLE = Source(
    "people", ["age", "income", "region"], ["sex", "educ"], ["married"], ["age", "region"], ["born"], ["seen"], ["educ"]
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age > 40", col("age") > 40),
        ("AGE > 40", col("age") > 40),
        ('"age" > 40', col("age") > 40),
        ("people.age > 40", col("age") > 40),
        ("age BETWEEN 3 AND 4", col("age").between(3, 4)),
        ("age > 40 AND sex = 'f'", (col("age") > 40) & (col("sex") == "f")),
        ("age % 7 = 3", col("age") % 7 == 3),
        ("educ IN ('primary', 'tertiary')", col("educ").isin(["primary", "tertiary"])),
        ("age IS NULL", col("age").is_missing()),
        ("NOT married", ~col("married")),
        ("married", col("married")),
    ],
)
def test_a_text_is_the_row_function_that_python_makes(text: str, expected: RowFn) -> None:
    """So the same question is the same, and its stored answer is given again, however it was asked (SR12)."""
    found = condition(text, FACTS)
    assert same(found, expected)


def test_random_conditions_mean_what_they_mean_after_where_SR15() -> None:
    """Whatever our SQL knows of rows: the same row function as in a query's WHERE."""
    rows, draw = table().express(), Conditions(generator("conditions as text"))
    for _ in range(count("conditions as text", short=150, long=20_000)):
        text = draw.condition(PEOPLE)
        text = text.replace("= 'Lod'", "= 'primary'").replace("<> 'Lod'", "<> 'primary'")
        assert same(condition(text, FACTS), rows.condition(node(f"({text})"))), text


def test_other_forms_of_a_condition_are_taken_as_they_are() -> None:
    """None keeps all rows, a row function is one, a handle of a Bool column stands for it."""
    oracle = Stub(FACTS.schema, [], budget=Epsilon(1))
    old = col("age") > 40
    assert condition(None, FACTS) is None
    assert condition(old, FACTS) is old
    assert same(condition(ColumnChoice(("married",), oracle), FACTS), Col("married"))
    assert isinstance(row_function("age IN (1, 2)", FACTS), IsIn)
    assert row_function(3, FACTS) == 3


def test_each_table_has_its_own_columns() -> None:
    """A condition on another table's rows reads that table; the person's column too where it is declared."""
    assert same(condition("cost > 3", FACTS, "visits"), col("cost") > 3)
    assert same(condition("visits.paid", FACTS, "visits"), col("paid"))
    assert same(condition("pid = 3", FACTS, "bills"), col("PID") == 3)
    assert same(condition("zone = 'east'", FACTS, "regions"), col("zone") == "east")
    for name, columns in TABLES.items():
        for column in set(columns) - {"PID"}:  # there is always a person
            assert same(condition(f'"{column}" IS NULL', FACTS, name), Col(column).is_missing())
    with pytest.raises(QuestionError, match="No table 'nowhere'"):
        condition("age > 3", FACTS, "nowhere")


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("yaer = 1984", "unknown-column", r"No column 'yaer' .*line 1, column 1 of the condition"),
        ("age > 3\n AND cost > 3", "unknown-column", r"'cost' is a column of 'visits'.*'people', at line 2, column 6"),
        ("visits.cost > 3", "unknown-column", r"'cost' is a column of 'visits'"),
        ("agee > 3", "unknown-column", r"Did you mean 'age'\?"),
        ("sex = female", "unknown-column", r"single quotes: 'female'\."),
        ("age IS None", "sql-unsupported", r"IS NULL"),
        ("age > 3 && married", "sql-unsupported", r"The operator &&.*AND, OR and NOT"),
        ("nowhere.age > 3", "unknown-column", r"No column 'age' of 'nowhere'"),
        ('sex = "f"', "unknown-column", r"column 7 of the condition.*single quotes: 'f'"),
        ("pid = 3", "unknown-column", r"person's column is not declared.*column 1 of the condition"),
        ("age", "wrong-kind", r"A condition is needed here, not a whole number, at line 1, column 1"),
        ("age = 'x'", "bad-literal", r"'x' cannot be read as a whole number"),
        ("sex = 'q'", "unknown-category", r"'q' is not a declared category, at line 1, column 1"),
        ("age > 3 GROUP BY sex", "sql-syntax", r"near 'GROUP BY', at line 1, column 9 of the condition.*db\.sql"),
        ("age >", "sql-syntax", r"column 5 of the condition. Write it as after WHERE"),
        ("age > 3 & married", "sql-unsupported", r"The operator &.*AND, OR and NOT"),
        ("name < 'b'", "sql-unsupported", r"An order of free text.*LIKE"),
        ("*", "sql-syntax", r"A star cannot stand here"),
        ("", "sql-syntax", r"A condition is a text\. Write it as after WHERE"),
    ],
)
def test_a_refusal_has_the_place_in_the_condition_and_is_free(text: str, code: str, words: str) -> None:
    """It speaks of the condition, which is all that was written, and of no query."""
    with pytest.raises(QuestionError, match=words) as caught:
        condition(text, FACTS)
    assert caught.value.code == code
    assert "query" not in caught.value.message


def test_what_is_neither_text_nor_column_is_refused() -> None:
    """A number, a truth value or a list is no condition; several columns are none either."""
    for bad in (3, True, ["age > 3"], {"age": 3}, lambda: True, b"age > 3"):
        with pytest.raises(QuestionError, match="of type") as caught:
            condition(bad, FACTS)  # type: ignore[arg-type]
        assert "where=" in caught.value.remedy
    with pytest.raises(QuestionError, match="2 columns are no value"):
        condition(ColumnChoice(("age", "married"), Stub(FACTS.schema, [], budget=Epsilon(1))), FACTS)


def test_a_text_is_read_and_never_run() -> None:
    """Python in it is no SQL, and nothing of it happens."""
    for text in ("__import__('os').system('x')", "(lambda: 1)()", "exec('x')", "age.__class__", "[x for x in (1, 2)]"):
        with pytest.raises(QuestionError):
            condition(text, FACTS)
