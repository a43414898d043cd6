"""Tests of sulq.sql.parse.text."""

from __future__ import annotations

import pytest

from sulq.errors import QuestionError
from sulq.sql.parse.syntax import Derived, Joined, Named, SelectQuery, Sets, UnionQuery
from sulq.sql.parse.text import parse


def select(text: str) -> SelectQuery:
    query = parse(text).query
    assert isinstance(query, SelectQuery)
    return query


def test_from_is_read_with_every_kind_of_join() -> None:
    """Comma, CROSS, ON, USING, NATURAL, LEFT and RIGHT; the usual schema's name is left out."""
    hows = {
        "public.a x, b": "cross", "a CROSS JOIN b": "cross", "a JOIN b ON a.x = b.x": "inner",
        "a JOIN b USING (x)": "inner", "a NATURAL JOIN b": "inner", "a LEFT OUTER JOIN b USING (x)": "left",
        "a RIGHT JOIN b USING (x)": "right",
    }  # fmt: skip
    for text, how in hows.items():
        source = select(f"SELECT COUNT(*) FROM {text}").source
        assert isinstance(source, Joined)
        assert source.how == how
        assert isinstance(source.left, Named)
        assert source.left.name.text == "a"


def test_subqueries_and_with() -> None:
    """A subquery in FROM, a join in parentheses, WITH and its column names."""
    source = select("SELECT COUNT(*) FROM (SELECT a FROM t) AS q (b)").source
    assert isinstance(source, Derived)
    assert [name.text for name in source.columns] == ["b"]
    assert isinstance(select("SELECT COUNT(*) FROM (a JOIN b USING (x)) AS q").source, Derived)
    query = select("WITH q (z) AS (SELECT a FROM t) SELECT COUNT(z) FROM q")
    name, inner = query.tables[0]
    assert name.text == "q"
    assert isinstance(inner, SelectQuery)
    assert inner.items[0][1] == "z"


def test_grouping_sets_are_spelled_out() -> None:
    """ROLLUP, CUBE and GROUPING SETS are lists of keys."""
    sizes = {"ROLLUP (a, b)": [2, 1, 0], "CUBE (a, b)": [2, 1, 1, 0], "GROUPING SETS ((a, b), a, ())": [2, 1, 0]}
    for text, expected in sizes.items():
        found = select(f"SELECT COUNT(*) FROM t GROUP BY {text}").groups
        assert found is not None
        assert isinstance(found[0], Sets)
        assert [len(one) for one in found[0].sets] == expected
    assert len(select("SELECT COUNT(*) FROM t GROUP BY (a, b), c").groups or ()) == 3


def test_limits_and_fetch() -> None:
    """FETCH FIRST n ROWS is LIMIT n, LIMIT ALL is none."""
    assert select("SELECT COUNT(*) FROM t FETCH FIRST 5 ROWS ONLY").limit == 5
    assert select("SELECT COUNT(*) FROM t LIMIT ALL").limit is None
    assert isinstance(parse("SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM s").query, UnionQuery)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM a FULL JOIN b USING (x)", "SELECT COUNT(*) FROM a SEMI JOIN b USING (x)",
        "SELECT COUNT(*) FROM LATERAL (SELECT 1) AS q", "SELECT COUNT(*) FROM unnest(ARRAY[1])", "SELECT",
        "SELECT COUNT(*) FROM t LIMIT -1", "SELECT COUNT(*) FROM t LIMIT x",
        "SELECT COUNT(*) FROM t OFFSET 99999999999999999",
        "SELECT COUNT(*) FROM t GROUP BY CUBE (a, b, c, d, e, f, g)", "WITH q (a, b) AS (SELECT 1) SELECT a FROM q",
        "SELECT COUNT(*) FROM t QUALIFY x = 1", "SELECT COUNT(*) FROM t WINDOW w AS (ORDER BY x)",
    ],
)  # fmt: skip
def test_other_clauses_are_refused(text: str) -> None:
    """No clause is read past: what is not known is refused."""
    with pytest.raises(QuestionError) as caught:
        parse(text)
    assert caught.value.code in ("sql-unsupported", "sql-syntax", "too-large")
