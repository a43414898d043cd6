"""A SELECT of rows as a derived table: its columns, whose they are, and what is no table of rows."""

from __future__ import annotations

import pytest

from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Int
from sulq.language.relation import Select, Table
from sulq.language.shape import shape
from sulq.sql.view import view_rows
from tests.sql.asking import facts

FACTS = facts()


def test_columns_of_a_table_as_they_stand_are_the_table_itself() -> None:
    """So that a question of them is the one that is asked of the table (SR12)."""
    found = view_rows("SELECT age, sex FROM people WHERE age > 40", FACTS)
    assert isinstance(found.relation, Table)
    assert found.columns == ("age", "sex")
    assert found.where is not None


def test_domains_follow_from_the_declarations() -> None:
    """Expressions, conditions, constants, one row for each person, joins, UNION ALL."""
    found = view_rows("SELECT age + 1 AS next, age > 40 AS old, 'x' AS one, sex FROM people", FACTS)
    assert isinstance(found.relation, Select)
    columns = dict(shape(found.relation, FACTS).schema.columns)
    assert (columns["next"].lo, columns["next"].hi) == (1, 121)
    assert isinstance(columns["old"], Bool)
    assert isinstance(columns["sex"], Category)
    each = view_rows("SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid", FACTS)
    made = shape(each.relation, FACTS)
    assert dict(made.schema.columns)["n"] == Int(0, 4)
    assert (each.person, made.rows, made.owned) == ("pid", 1, True)
    joined = view_rows("SELECT v.cost, p.age FROM people p JOIN visits v ON p.pid = v.pid", FACTS)
    assert shape(joined.relation, FACTS).rows == 4
    two = view_rows("SELECT cost, kind FROM visits WHERE paid UNION ALL SELECT cost, kind FROM visits", FACTS)
    assert shape(two.relation, FACTS).rows == 8


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("SELECT AVG(age) AS a FROM people", "sql-unsupported", "aggregates rows of several persons"),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", "sql-unsupported", "aggregates rows of several persons"),
        ("SELECT age FROM people ORDER BY age", "sql-unsupported", "have no order"),
        ("SELECT age FROM people LIMIT 3", "raw-rows", "pick rows by their place"),
        ("SELECT age FROM people OFFSET 3", "raw-rows", "pick rows by their place"),
        ("EXPLAIN SELECT age FROM people", "bad-question", "EXPLAIN"),
        ("SELECT age, income AS age FROM people", "bad-question", "Two columns of this view are called 'age'"),
        ("SELECT age, income AS AGE FROM people", "bad-question", "Two columns"),
        ("SELECT age, NULL AS x FROM people", "bad-question", "NULL in every row"),
        ("SELECT pid FROM people", "bad-question", "no declared column"),
        ("SELECT age * 2 AS pid FROM people", "bad-question", "name of the person's column"),
        ("SELECT v.cost FROM people p JOIN visits v ON p.age = v.vid", "person-lost", ""),
        ("SELECT nothing FROM people", "unknown-column", "nothing"),
        ("SELECT age FROM nowhere", "unknown-table", "nowhere"),
        ("DELETE FROM people", "sql-unsupported", ""),
        (7, "bad-question", "A view is a SELECT"),
    ],
)
def test_what_is_no_table_of_rows_is_refused(text: object, code: str, said: str) -> None:
    """With the reason; from public facts alone."""
    with pytest.raises(QuestionError) as refused:
        view_rows(text, FACTS)
    assert refused.value.code == code
    assert said in refused.value.message
