"""The 61 one-construct queries that other private SQL engines were measured with, and what becomes of each here.

Two linked tables, people(pid, age, income, sex, educ) and visits(vid, pid, cost,
kind); the person is pid. `ANSWERED` or the code of the refusal.
"""

from __future__ import annotations

from dataclasses import dataclass

from sulq.language.domain import Category, Int, Real, Schema
from sulq.language.facts import Facts, TableFacts
from sulq.language.privacy import EpsilonDelta, Unit

ANSWERED = "answered"
COLUMNS = {
    "people": {
        "age": Int(0, 120),
        "income": Real(0, 200_000),
        "sex": Category(("f", "m")),
        "educ": Category(("primary", "secondary", "tertiary")),
    },
    "visits": {"vid": Int(0, 10**6), "cost": Real(0, 1_000), "kind": Category(("blood", "eye", "skin"))},
}
KEYS = {"people": "pid", "visits": "vid"}


def facts() -> Facts:
    """Public facts of the two tables."""
    budget, none = EpsilonDelta(10.0, 1e-6), EpsilonDelta(1e-9, 1e-15)
    tables = tuple(
        TableFacts(Schema(name, tuple(columns.items())), key=KEYS[name]) for name, columns in COLUMNS.items()
    )
    return Facts(tables[0].schema, Unit("pid", rows=5), budget, none, budget, tables=tables)


@dataclass(frozen=True)
class Construct:
    """One construct, a query that uses it, and what is expected."""

    name: str
    sql: str
    expect: str = ANSWERED


PER_PERSON = "SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid"
CONSTRUCTS = (
    Construct("COUNT(*)", "SELECT COUNT(*) FROM people"),
    Construct("COUNT(column)", "SELECT COUNT(age) FROM people"),
    Construct("SUM", "SELECT SUM(income) FROM people"),
    Construct("AVG", "SELECT AVG(age) FROM people"),
    Construct("VARIANCE", "SELECT VARIANCE(age) FROM people"),
    Construct("STDDEV", "SELECT STDDEV(age) FROM people"),
    Construct("COUNT(DISTINCT column)", "SELECT COUNT(DISTINCT educ) FROM people"),
    Construct("COUNT(DISTINCT person)", "SELECT COUNT(DISTINCT pid) FROM visits"),
    Construct("MIN", "SELECT MIN(age) FROM people"),
    Construct("MAX", "SELECT MAX(income) FROM people"),
    Construct("MEDIAN", "SELECT MEDIAN(age) FROM people"),
    Construct("PERCENTILE_CONT", "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY income) FROM people"),
    Construct("CORR", "SELECT CORR(age, income) FROM people"),
    Construct("REGR_SLOPE", "SELECT REGR_SLOPE(income, age), REGR_INTERCEPT(income, age) FROM people"),
    Construct("arithmetic on aggregates", "SELECT SUM(income) / COUNT(*) + 1 FROM people"),
    Construct("SUM of an expression", "SELECT SUM(age + income) FROM people"),
    Construct("SUM(CASE ...)", "SELECT SUM(CASE WHEN age > 40 THEN 1 ELSE 0 END) FROM people"),
    Construct("FILTER (WHERE ...)", "SELECT COUNT(*) FILTER (WHERE age > 40) FROM people"),
    Construct("WHERE ... AND ...", "SELECT COUNT(*) FROM people WHERE age > 40 AND sex = 'f'"),
    Construct("WHERE ... OR NOT ...", "SELECT COUNT(*) FROM people WHERE age > 40 OR NOT sex = 'f'"),
    Construct("IN (list)", "SELECT COUNT(*) FROM people WHERE educ IN ('primary', 'tertiary')"),
    Construct("BETWEEN", "SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 40"),
    Construct("IS NOT NULL", "SELECT COUNT(*) FROM people WHERE income IS NOT NULL"),
    Construct("LIKE", "SELECT COUNT(*) FROM people WHERE educ LIKE '%ary'"),
    Construct("IN (SELECT ...)", "SELECT COUNT(*) FROM people WHERE pid IN (SELECT pid FROM visits WHERE cost > 100)"),
    Construct(
        "EXISTS (SELECT ...)",
        "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.pid = p.pid AND v.cost > 100)",
    ),
    Construct("scalar subquery", "SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM visits) AS share FROM people"),
    Construct("GROUP BY column", "SELECT sex, COUNT(*) FROM people GROUP BY sex"),
    Construct("GROUP BY two columns", "SELECT sex, educ, AVG(age) FROM people GROUP BY sex, educ"),
    Construct("GROUP BY expression", "SELECT FLOOR(age / 10), COUNT(*) FROM people GROUP BY FLOOR(age / 10)"),
    Construct(
        "GROUP BY CASE", "SELECT CASE WHEN age < 40 THEN 'young' ELSE 'old' END AS g, COUNT(*) FROM people GROUP BY 1"
    ),
    Construct("GROUP BY alias", "SELECT UPPER(sex) AS s, COUNT(*) FROM people GROUP BY s"),
    Construct("GROUP BY position", "SELECT sex, COUNT(*) FROM people GROUP BY 1"),
    Construct("ROLLUP", "SELECT sex, educ, COUNT(*) FROM people GROUP BY ROLLUP (sex, educ)"),
    Construct("GROUPING SETS", "SELECT sex, educ, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), (educ), ())"),
    Construct("HAVING", "SELECT educ, COUNT(*) FROM people GROUP BY educ HAVING COUNT(*) > 10"),
    Construct("ORDER BY", "SELECT educ, COUNT(*) AS n FROM people GROUP BY educ ORDER BY n DESC"),
    Construct("LIMIT", "SELECT educ, COUNT(*) AS n FROM people GROUP BY educ ORDER BY n DESC LIMIT 2"),
    Construct("OFFSET", "SELECT educ, COUNT(*) AS n FROM people GROUP BY educ ORDER BY n DESC LIMIT 2 OFFSET 1"),
    Construct("TOP", "SELECT TOP 2 educ, COUNT(*) AS n FROM people GROUP BY educ ORDER BY n DESC"),
    Construct("SELECT DISTINCT column", "SELECT DISTINCT educ FROM people"),
    Construct("row-level SELECT", "SELECT age, income FROM people", "raw-rows"),
    Construct("subquery in FROM", "SELECT AVG(older) FROM (SELECT age + 1 AS older FROM people WHERE sex = 'f') AS t"),
    Construct("nested aggregate", "SELECT MAX(n) FROM (SELECT educ, COUNT(*) AS n FROM people GROUP BY educ) AS t"),
    Construct("per-person aggregate", f"SELECT AVG(n) FROM ({PER_PERSON}) AS t"),
    Construct("CTE (WITH)", f"WITH t AS ({PER_PERSON}) SELECT AVG(n) FROM t WHERE n > 1"),
    Construct("INNER JOIN ON", "SELECT SUM(v.cost) FROM people p JOIN visits v ON p.pid = v.pid WHERE p.sex = 'f'"),
    Construct("LEFT JOIN", "SELECT COUNT(v.pid) FROM people p LEFT JOIN visits v ON p.pid = v.pid"),
    Construct("JOIN USING", "SELECT educ, AVG(cost) FROM people JOIN visits USING (pid) GROUP BY educ"),
    Construct("CROSS JOIN, on the person", "SELECT COUNT(*) FROM people p CROSS JOIN visits v WHERE p.pid = v.pid"),
    Construct("comma join", "SELECT COUNT(*) FROM people p, visits v WHERE p.pid = v.pid AND v.cost > 10"),
    Construct("self-join", "SELECT COUNT(*) FROM visits a JOIN visits b ON a.pid = b.pid AND a.cost < b.cost"),
    Construct("UNION ALL", "SELECT COUNT(*) FROM (SELECT pid FROM people UNION ALL SELECT pid FROM visits) AS u"),
    Construct("UNION", "SELECT COUNT(*) FROM (SELECT pid FROM people UNION SELECT pid FROM visits) AS u"),
    Construct("window function", "SELECT AVG(income) OVER (PARTITION BY sex) FROM people", "sql-unsupported"),
    Construct("table alias without AS", "SELECT SUM(p.age) FROM people p"),
    Construct("column alias without AS", "SELECT SUM(age) total FROM people"),
    Construct("text ||", "SELECT sex || '-' || educ AS g, COUNT(*) FROM people GROUP BY g"),
    Construct("SUBSTRING FROM", "SELECT SUBSTRING(educ FROM 1 FOR 1) AS g, COUNT(*) FROM people GROUP BY g"),
    Construct("COALESCE as a key", "SELECT COALESCE(educ, 'none') AS g, COUNT(*) FROM people GROUP BY g"),
    Construct("CAST", "SELECT SUM(CAST(income AS INTEGER)) FROM people"),
    Construct(
        "functions of numbers", "SELECT AVG(SQRT(income)), SUM(LN(income + 1)), AVG(ROUND(income, -3)) FROM people"
    ),
)
