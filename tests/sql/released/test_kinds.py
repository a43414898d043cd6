"""Tests of sulq.sql.released.kinds."""

from __future__ import annotations

import random

import pytest

import sulq
from sulq import Epsilon
from sulq.errors import QuestionError
from tests.sql.asking import program, refused
from tests.sql.queries import opened, tables

WRONG = [
    "'x' * COUNT(*)", "SUM(age) > 'a'", "COUNT(*) BETWEEN 'a' AND 'b'", "COUNT(*) IN (3, 'a')", "sex * 2", "SQRT(sex)",
    "LEAST('a', COUNT(*))", "COALESCE(sex, COUNT(*))", "CASE WHEN COUNT(*) > 5 THEN 'a' ELSE 2 END", "LEFT(sex, 'x')",
    "sex > 3", "sex = COUNT(*)", "NULLIF(COUNT(*), 'x')", "MAX(born) > 'x'",
    "MAX(born) > '0001-01-01T00:00:00+14:00'", "(sex || 'a') + 1",
    "CAST(age AS text) + 1",
    "(SELECT MAX(educ) FROM (SELECT educ, COUNT(*) FROM people GROUP BY educ)) + COUNT(*)",
]  # fmt: skip
RIGHT = {
    "COUNT(*) * 2": "number", "SUM(age) > '12'": "number", "sex || COUNT(*)": "text", "MAX(born)": "clock",
    "MAX(born) > '1990-01-01'": "number", "MAX(born) - MIN(born)": "number", "MAX(born) - 3": "clock",
    "COALESCE(NULL, COUNT(*))": "number", "CASE WHEN COUNT(*) > 5 THEN sex END": "text", "sex = 'f'": "number",
    "NULL": "any", "NULLIF(sex, 'f')": "text", "GREATEST(COUNT(*), 3.5)": "number", "CAST(sex AS int)": "number",
    "DATE_TRUNC('month', MAX(born))": "clock", "LENGTH(sex)": "number", "(SELECT MAX(born) FROM people)": "clock",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_what_no_value_could_have_is_refused_before_anything_is_asked(text: str) -> None:
    """A text where a number is needed, or beside one, whatever is released."""
    found = refused(f"SELECT {text} FROM people GROUP BY sex, age")
    assert found.code == "wrong-kind"
    assert "line 1" in found.message


@pytest.mark.parametrize("text", RIGHT)
def test_the_kind_of_an_expression(text: str) -> None:
    """Numbers and truths are one kind, dates and moments another, texts the third; what is not known is any."""
    assert program(f"SELECT {text} FROM people GROUP BY sex").kinds == (RIGHT[text],)


def test_kinds_pass_through_tables_of_released_rows() -> None:
    """Columns of a subquery keep their kinds, keys and aggregates too; a UNION of two kinds is any."""
    inner = "SELECT sex AS s, COUNT(*) AS n, MAX(born) AS d FROM people GROUP BY sex"
    assert program(f"SELECT s, n, d FROM ({inner}) t").kinds == ("text", "number", "clock")
    assert program(f"SELECT s, SUM(n), MAX(d), MIN(s) FROM ({inner}) t GROUP BY s").kinds == (
        "text", "number", "clock", "text",
    )  # fmt: skip
    assert refused(f"SELECT SUM(s) FROM ({inner}) t").code == "wrong-kind"
    assert refused(f"SELECT n + s FROM ({inner}) t").code == "wrong-kind"
    union = "SELECT sex AS v FROM people GROUP BY sex UNION ALL SELECT COUNT(*) FROM people"
    assert program(f"SELECT v FROM ({union}) t").kinds == ("any",)
    assert program(f"SELECT v + 1, SUM(v) FROM ({union}) t GROUP BY v").kinds == ("any", "number")


@pytest.fixture(scope="module")
def db() -> sulq.Database:
    return opened(tables(random.Random(3)), engine="memory")


def test_a_refusal_spends_nothing_and_a_doubtful_value_is_missing(db: sulq.Database) -> None:
    """Before the debit by the kinds; what only the release decides is answered, with a missing value in its place."""
    before = db.spent
    with pytest.raises(QuestionError):
        db.sql("SELECT 'x' * COUNT(*) FROM people", spend=Epsilon(0.1))
    assert db.spent == before
    union = "SELECT 'x' AS v, COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*), 1 FROM people"
    rows = db.sql(f"SELECT v, v + 1 FROM ({union}) t ORDER BY v", spend=Epsilon(0.1)).value
    assert rows[0][1] == rows[0][0] + 1
    assert rows[1] == ("x", None)
