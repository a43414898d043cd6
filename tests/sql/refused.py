"""Texts that are refused: operators, constructs and clauses that the whitelist leaves out, one of each.

For the table people(pid, age, income, sex, educ) and visits(vid, pid, cost, kind) of tests/sql/constructs.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.parsers.postgres import PostgresParser

ON_ROWS = (
    "age & 1", "age # 1", "age << 1", "age >> 1", "~age", "sex ~ 'f'", "sex ~* 'f'", "sex !~ 'f'", "sex SIMILAR TO 'f'",
    "age -> 'a'", "age ->> 'a'", "age #> 'a'", "age @> age", "age <@ age", "age && age", 'sex COLLATE "C"',
    "age AT TIME ZONE 'utc'", "ARRAY[age]", "ROW(age, 1)", "(age, 1)", "age = ANY(ARRAY[1])", "age = ALL(ARRAY[1])",
    "age BETWEEN SYMMETRIC 1 AND 2", "age[1]", "(people).age.b.c.d", "$1", ":p", "?", "@p", "age::json", "age::int[]",
    "CAST(age AS uuid)", "age::timestamptz", "CAST(age AS timestamp with time zone)", "age::bytea", "json '1'",
    "CAST(NULL AS json)", "age::interval", "INTERVAL '1 fortnight'", "EXTRACT(microseconds FROM age)", "current_date",
    "current_timestamp", "current_user", "session_user", "localtime", "current_schema", "b'1'", "x'1F'", "$$a$$",
    "age IS JSON", "XMLELEMENT(NAME foo)", "OVERLAY(sex PLACING 'a' FROM 1)", "SUBSTRING(sex FROM 'a')",
    "sex LIKE ANY(ARRAY['a'])", "age IN (SELECT 1)", "age = (SELECT 1)", "(age, income) OVERLAPS (age, income)",
    "NEXT VALUE FOR a", "IF(age > 1, 1, 2)", "TRY_CAST(age AS json)", "make_date(2020, age, 1)", "POWER(age, income)",
    "WIDTH_BUCKET(age, ARRAY[1, 2])", "ROUND(income, age)", "random()", "COS(age)", "DIV()", "CEIL()",
    "BTRIM(age, 1, 2)",
)  # fmt: skip
AGGREGATED = (
    "SUM(age ORDER BY age)", "COUNT(age, income)", "COUNT(people.*)", "SUM(*)", "SUM(age, income)", "BIT_AND(age)",
    "STRING_AGG(sex, ',')", "STRING_AGG(sex, ',' ORDER BY age)", "ARRAY_AGG(DISTINCT age)", "JSON_AGG(sex)",
    "GROUP_CONCAT(sex SEPARATOR ',')", "DECODE(age, 1, 2, 3)", "IIF(age > 1, 1, 2)",
    "mode() WITHIN GROUP (ORDER BY age)",
    "RANK() OVER (ORDER BY age)", "SUM(age) OVER ()", "ABS(age) FILTER (WHERE age > 1)",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age, income)", "APPROX_COUNT_DISTINCT(age)", "COUNT(*)::json",
    "PERCENTILE_DISC(0.2) WITHIN GROUP (ORDER BY age DESC)", "md5(COUNT(*))", "to_char(COUNT(*), '9')", "SUM(ARRAY[1])",
    "COUNT(DISTINCT 3)", "random()",
)  # fmt: skip
WHOLE = (
    "SELECT COUNT(*) FROM people FULL JOIN visits USING (pid)",
    "SELECT COUNT(*) FROM people ASOF JOIN visits USING (pid)",
    "SELECT COUNT(*) FROM people, LATERAL (SELECT 1) AS q", "SELECT COUNT(*) FROM unnest(ARRAY[1])",
    "SELECT COUNT(*) FROM generate_series(1, 2)", "SELECT COUNT(*) FROM (VALUES (1)) AS t", "SELECT 1",
    "SELECT COUNT(*) FROM people LIMIT -1", "SELECT COUNT(*) FROM people GROUP BY ALL",
    "SELECT COUNT(*) FROM people QUALIFY age = 1", "SELECT COUNT(*) FROM people WINDOW w AS (ORDER BY age)",
    "SELECT COUNT(*) FROM people FOR UPDATE", "SELECT COUNT(*) INTO x FROM people",
    "SELECT COUNT(*) FROM people TABLESAMPLE BERNOULLI (1)", "SELECT 1 FROM people EXCEPT SELECT 1 FROM people",
    "WITH RECURSIVE q AS (SELECT 1) SELECT * FROM q", "SELECT DISTINCT ON (age) age FROM people",
    "SELECT COUNT(*) FROM ONLY people", "SELECT COUNT(*) FROM people FETCH FIRST 5 ROWS WITH TIES",
    "SELECT COUNT(*) FROM pg_class", "SELECT COUNT(*) FROM read_csv('x')", "DELETE FROM people", "BEGIN",
    "SELECT people.* EXCEPT (age) FROM people", "SELECT COUNT(*) FROM people PIVOT (SUM(age) FOR sex IN ('f'))",
    "SELECT COUNT(*) FROM people GROUP BY sex WITH ROLLUP", "SELECT COUNT(*) FROM people CONNECT BY age = 1",
    "SELECT age FROM people UNION SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people LIMIT 5 BY sex",
    "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1)",
    "SELECT COUNT(*) FROM people WHERE 3 IN (SELECT vid FROM visits)",
    "SELECT COUNT(*) FROM people WHERE pid IN (SELECT pid, vid FROM visits)", "SELECT COUNT(*)) FROM people",
    "SELECT COUNT(*) FROM people WHERE sex = 'f", "SELECT COUNT(*) FROM people /* x",
    "SELECT COUNT(*) FROM people WHERE",
    "SELECT COUNT(*) FROM people LEFT JOIN visits ON people.pid = visits.pid AND age > 3", "SELECT 1; SELECT 2",
    "SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY ROLLUP (pid)) AS t",
    "SELECT SUM(n) FROM (SELECT pid, COUNT(DISTINCT 3) AS n FROM visits GROUP BY pid) AS t",
)  # fmt: skip


def texts() -> list[str]:
    """Every text of the lists above as a whole query."""
    on_rows = [f"SELECT COUNT(*) FROM people WHERE {item} IS NOT NULL" for item in ON_ROWS]
    return [*WHOLE, *on_rows, *(f"SELECT {item} FROM people GROUP BY sex" for item in AGGREGATED)]


def calls() -> Iterator[str]:
    """A query with each function that the parser knows by a name, of no column to four of them, on rows or groups."""
    names = {*PostgresParser.FUNCTIONS, *PostgresParser.FUNCTION_PARSERS, *PostgresParser.NO_PAREN_FUNCTION_PARSERS}
    for name in sorted(names):
        yield f"SELECT COUNT(*) FROM people WHERE {name} IS NOT NULL"
        for given in ("", "age", "age, 1", "age, 1, 2", "sex, 'a', 'b', 'c'"):
            yield f"SELECT COUNT(*) FROM people WHERE {name}({given}) IS NOT NULL"
            yield f"SELECT {name}({given.replace('age', 'COUNT(*)')}) FROM people"
