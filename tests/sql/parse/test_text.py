"""Tests of sulq.sql.parse.text."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest

from sulq.errors import QuestionError
from sulq.sql.parse import text as module
from sulq.sql.parse.syntax import SelectQuery
from sulq.sql.parse.text import parse
from sulq.sql.parse.tree import MAX_DEPTH, MAX_QUERY_BYTES, MAX_TOKENS


def code(text: object) -> str:
    with pytest.raises(QuestionError) as caught:
        parse(text)  # type: ignore[arg-type]
    return caught.value.code


def test_one_select_is_read() -> None:
    """A SELECT becomes our own syntax, with its clauses."""
    found = parse("SELECT sex, COUNT(*) AS n FROM people WHERE age > 3 GROUP BY sex ORDER BY n DESC LIMIT 3 OFFSET 1")
    query = found.query
    assert isinstance(query, SelectQuery)
    assert not found.explain
    assert [alias for _, alias in query.items] == [None, "n"]
    assert (query.limit, query.offset, query.distinct) == (3, 1, False)
    assert query.order[0].descending
    assert query.groups is not None


def test_explain_is_taken_off_and_places_stay() -> None:
    """EXPLAIN SELECT is the same query, and a refusal still names the place in the whole text."""
    assert parse("explain SELECT COUNT(*) FROM t").explain
    with pytest.raises(QuestionError, match="line 1, column 16"):
        parse("EXPLAIN SELECT foo(x) FROM t")


def test_several_statements_and_no_statement_are_refused() -> None:
    """One query at a time."""
    assert code("SELECT 1; SELECT 2") == "sql-syntax"
    assert code("") == code("   ") == code(None) == code("-- nothing") == "sql-syntax"
    assert code(";") == "sql-unsupported"
    assert parse("SELECT COUNT(*) FROM t;").query


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (1)", "UPDATE t SET x = 1", "DELETE FROM t", "DROP TABLE t", "CREATE TABLE t (x int)",
        "COPY t TO 'x'", "TRUNCATE t", "ALTER TABLE t ADD x int",
        "MERGE INTO t USING s ON a = b WHEN MATCHED THEN DELETE",
        "VALUES (1)", "SET x = 1", "ATTACH 'x'", "SELECT a INTO b FROM t", "SELECT a FROM t FOR UPDATE",
        "SELECT * FROM read_csv('x')", "SELECT * FROM pg_catalog.pg_class", "SELECT * FROM information_schema.tables",
        "SELECT * FROM sqlite_master", "SELECT count(*) FROM t TABLESAMPLE BERNOULLI (1)", "SELECT 1 EXCEPT SELECT 2",
        "WITH RECURSIVE q AS (SELECT 1) SELECT * FROM q", "SELECT DISTINCT ON (a) a FROM t", "SELECT a[1] FROM t",
        "SELECT $1 FROM t", "SELECT :p FROM t", "SELECT a FROM t GROUP BY ALL", "SELECT a.* EXCEPT (b) FROM t AS a",
        "SELECT SUM(x ORDER BY y) FROM t", "SELECT a SIMILAR TO 'x' FROM t", "SELECT a ~ 'x' FROM t",
    ],
)  # fmt: skip
def test_what_is_not_on_the_list_is_refused(text: str) -> None:
    """Writes, system tables, files, parameters and every unknown part of a known construct (T69 to T73)."""
    assert code(text) in ("sql-unsupported", "sql-syntax")


def test_a_refusal_names_construct_and_place() -> None:
    """The construct as it was written, with line and column."""
    with pytest.raises(QuestionError, match=r"md5\(\).*line 2, column 3"):
        parse("SELECT COUNT(*),\n  MD5(sex) FROM t")
    with pytest.raises(QuestionError, match=r"OVER.*line 1, column 8"):
        parse("SELECT sum(x) OVER (PARTITION BY y) FROM t")
    with pytest.raises(QuestionError, match=r"near 'WHERE', at line 1, column 13"):
        parse("SELECT FROM WHERE")


def test_top_is_a_limit() -> None:
    """T-SQL's TOP at the front is LIMIT; anywhere else it is refused."""
    query = parse("SELECT TOP 5 a FROM t").query
    assert isinstance(query, SelectQuery)
    assert query.limit == 5
    assert code("SELECT TOP 5 a FROM t LIMIT 3") == "sql-unsupported"
    assert code("SELECT a FROM (SELECT TOP 5 a FROM t) AS q") == "sql-unsupported"
    assert code("SELECT TOP 2.5 a FROM t") == "sql-unsupported"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 500 + "1" + ")" * 500,
        "SELECT " + "NOT " * 500 + "a",
        "SELECT " + "- " * 500 + "1",
        "SELECT " + "+".join(["a"] * 5000),
        "SELECT " + "CASE WHEN a THEN " * 300 + "1" + " END" * 300,
        "SELECT " + ", ".join(["a"] * MAX_TOKENS),
        "SELECT '" + "a" * MAX_QUERY_BYTES + "'",
        "SELECT a FROM t WHERE x IN (" + ",".join(["1"] * MAX_TOKENS) + ")",
        " UNION ALL ".join(["SELECT 1"] * 500),
        "SELECT " + "a" * 300,
    ],
)
def test_bombs_are_refused_quickly_T74(text: str) -> None:
    """Bytes, words, depth and chains are bounded before anything is planned."""
    start = time.perf_counter()
    assert code(text) in ("too-large", "sql-syntax")
    assert time.perf_counter() - start < 5


def test_a_long_condition_is_no_bomb() -> None:
    """A chain of AND is one list, however long; the control is the chain of sums above."""
    text = "SELECT COUNT(*) FROM t WHERE " + " AND ".join(f"x <> {i}" for i in range(MAX_DEPTH * 5))
    assert parse(text).query


def test_odd_texts_are_refused_not_followed_T71() -> None:
    """NUL, a stray quote, control characters, right-to-left marks: a code, never a crash."""
    for text in ("SELECT '\x00'", "SELECT 'a", 'SELECT "a', "SELECT \u202e1 FROM", "SELECT 1e999999999 FROM t", "\\"):
        assert code(text) in ("sql-syntax", "bad-literal", "sql-unsupported")


def test_a_remark_is_a_blank_wherever_it_stands() -> None:
    """Inside GROUP BY and ORDER BY too; a quotation that looks like one stays, and places are those of the text."""
    plain = "SELECT 'a -- b' AS \"c /*\", 'd /*' FROM t GROUP {} BY a ORDER {} BY a"
    assert parse(plain.format("/* x /* y */ z */", "-- w\n")) == parse(plain.format(" " * 17, " " * 5))
    assert [alias for _, alias in parse(plain.format("", "")).query.items] == ["c /*", None]
    with pytest.raises(QuestionError, match="line 2, column 6"):
        parse("SELECT COUNT(*) FROM t GROUP/* \u00e9\U0001f600\n*/BY foo(a)")
    assert code("SELECT a FROM t GROUP 'x' BY a") == "sql-syntax"


@pytest.mark.parametrize(
    ("most", "text"),
    [
        (16, lambda n: "SELECT 1 FROM t" + " CROSS JOIN u" * n),
        (64, lambda n: "SELECT " + "+".join(["(SELECT 1 FROM t)"] * (n - 1)) + " FROM t"),
        (128, lambda n: "SELECT " + ", ".join(["SUM(a)"] * n) + " FROM t"),
        (32, lambda n: "SELECT " + ", ".join(["MEDIAN(a)"] * n) + " FROM t"),
        (32, lambda n: "SELECT 1 FROM t GROUP BY " + ", ".join(["a"] * n)),
        (64, lambda n: "SELECT 1 FROM t GROUP BY GROUPING SETS (" + ", ".join(["(a)"] * n) + ")"),
        (64, lambda n: "SELECT 1 FROM t ORDER BY " + ", ".join(["a"] * n)),
        (100, lambda n: "SELECT CONCAT(" + ", ".join(["a"] * n) + ") FROM t"),
    ],
)
def test_each_construct_has_its_limit_T74(most: int, text: Callable[[int], str]) -> None:
    """So many are read; one more is refused. Control: the first line."""
    assert parse(text(most)).query
    assert code(text(most + 1)) == "too-large"


def test_half_a_character_is_no_text_T71() -> None:
    """A lone surrogate cannot be written down again, so nobody may ask with it; a whole pair's character may."""
    assert code("SELECT '\ud83d' FROM t") == code('SELECT "\udc69" FROM t') == "sql-syntax"
    assert parse("SELECT '\U0001f469' FROM t").query


def test_a_text_is_read_once_for_each_asker_T39(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short text that comes again is read again for another asker alone; refusals and long texts are not kept."""
    read: list[str] = []
    whole = module._parse
    monkeypatch.setattr(module, "_parse", lambda text: [read.append(text), whole(text)][1])
    first, second = module.reader(), module.reader()
    text, long = "SELECT COUNT(*) FROM t", f"SELECT COUNT(*) FROM t{' ' * module.MAX_CACHED_LETTERS}"
    assert first(text) == first(text) == second(text)
    assert read == [text, text]
    for asked in (long, "SELECT FROM", 7):
        for _ in range(2):
            with contextlib.suppress(QuestionError):
                first(asked)
    assert read[2:] == [long, long, "SELECT FROM", "SELECT FROM"]
