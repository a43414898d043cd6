"""Queries that are small to write and large to follow, over the tables of queries.py: none may take long (T74)."""

from __future__ import annotations

from typing import Final


def chained(count: int, first: str, step: str, last: str) -> str:
    """WITH queries of which each is made of the one before, {p} in its text."""
    steps = [f"q0 AS ({first})", *(f"q{i} AS ({step.format(p=f'q{i - 1}')})" for i in range(1, count))]
    return f"WITH {', '.join(steps)} {last.format(p=f'q{count - 1}')}"


BOMBS: Final = {
    "bytes": "SELECT '" + "a" * 200000 + "'",
    "bytes 99999": "SELECT COUNT(*) FROM people WHERE sex = '" + "a" * 99000 + "'",
    "parens": "SELECT " + "(" * 40000 + "1" + ")" * 40000,
    "parens100": "SELECT " + "(" * 99 + "1" + ")" * 99 + " FROM people",
    "brackets": "SELECT " + "[" * 20000 + "]" * 20000,
    "not": "SELECT COUNT(*) FROM people WHERE " + "NOT " * 20000 + "married",
    "minus": "SELECT COUNT(*) FROM people WHERE age = " + "- " * 20000 + "1",
    "minusparen": "SELECT COUNT(*) FROM people WHERE age = " + "-(" * 90 + "1" + ")" * 90,
    "plus chain": "SELECT SUM(" + "+".join(["age"] * 5900) + ") FROM people",
    "plus chain 90": "SELECT SUM(" + "+".join(["age"] * 90) + ") FROM people",
    "times chain 90": "SELECT SUM(" + "*".join(["age"] * 90) + ") FROM people",
    "concat chain": "SELECT COUNT(*) FROM people WHERE " + "||".join(["sex"] * 5000) + " = 'a'",
    "concat 90": "SELECT " + "||".join(["sex"] * 90) + ", COUNT(*) FROM people GROUP BY 1",
    "and chain": "SELECT COUNT(*) FROM people WHERE " + " AND ".join(f"age <> {i}" for i in range(2900)),
    "or chain": "SELECT COUNT(*) FROM people WHERE " + " OR ".join(f"age = {i}" for i in range(2900)),
    "andor nest": "SELECT COUNT(*) FROM people WHERE " + "(age = 1 AND (age = 2 OR " * 45 + "married" + "))" * 45,
    "case nest": "SELECT SUM(" + "CASE WHEN married THEN " * 3000 + "1" + " END" * 3000 + ") FROM people",
    "case nest 45": "SELECT SUM(" + "CASE WHEN married THEN age ELSE " * 45 + "1" + " END" * 45 + ") FROM people",
    "case wide": "SELECT SUM(CASE " + " ".join(f"WHEN age = {i} THEN {i}" for i in range(1400)) + " END) FROM people",
    "case group": "SELECT CASE "
    + " ".join(f"WHEN age = {i} THEN 'l{i}'" for i in range(1000))
    + " END, COUNT(*) FROM people GROUP BY 1",
    "in list": "SELECT COUNT(*) FROM people WHERE age IN (" + ",".join(map(str, range(5900))) + ")",
    "in list 50k": "SELECT COUNT(*) FROM people WHERE age IN (" + ",".join(["1"] * 49000) + ")",
    "in lists": "SELECT COUNT(*) FROM people WHERE " + " OR ".join("age IN (1,2,3)" for _ in range(900)),
    "items": "SELECT " + ",".join(["COUNT(*)"] * 2000) + " FROM people",
    "items1000": "SELECT " + ",".join(["SUM(age)"] * 1000) + " FROM people",
    "items1000 differ": "SELECT " + ",".join(f"SUM(age+{i})" for i in range(1000)) + " FROM people",
    "items500 avg": "SELECT " + ",".join(f"AVG(age+{i})" for i in range(500)) + " FROM people",
    "items200 median": "SELECT " + ",".join(f"MEDIAN(age+{i})" for i in range(200)) + " FROM people",
    "groups": "SELECT COUNT(*) FROM people GROUP BY " + ",".join(["sex"] * 3000),
    "group product": "SELECT COUNT(*) FROM people GROUP BY age, educ, sex, married, region, born",
    "group product2": "SELECT COUNT(*) FROM people GROUP BY " + ",".join(f"age+{i}" for i in range(20)),
    "cube": "SELECT COUNT(*) FROM people GROUP BY CUBE(" + ",".join(["sex"] * 40) + ")",
    "cube6": "SELECT COUNT(*) FROM people GROUP BY CUBE(age, educ, sex, married, region, born)",
    "cube x cube": "SELECT COUNT(*) FROM people GROUP BY "
    + ", ".join(["CUBE(sex,married,educ,region,age,income)"] * 6),
    "rollup": "SELECT COUNT(*) FROM people GROUP BY ROLLUP(" + ",".join(["sex"] * 2000) + ")",
    "rollups": "SELECT COUNT(*) FROM people GROUP BY " + ", ".join(["ROLLUP(sex,married,educ,region)"] * 10),
    "sets": "SELECT COUNT(*) FROM people GROUP BY GROUPING SETS (" + ",".join(["(sex, married)"] * 1500) + ")",
    "sets nested": "SELECT COUNT(*) FROM people GROUP BY GROUPING SETS ("
    + ",".join(["CUBE(sex,married,educ,age,region,income)"] * 100)
    + ")",
    "union arms": " UNION ALL ".join(["SELECT COUNT(*) FROM people"] * 3000),
    "union arms 32": " UNION ALL ".join(["SELECT COUNT(*) FROM people"] * 33),
    "union rows 32": "SELECT COUNT(*) FROM (" + " UNION ALL ".join(["SELECT age FROM people"] * 33) + ") u",
    "union nest": "SELECT COUNT(*) FROM ("
    + "(SELECT age FROM people UNION ALL " * 30
    + "SELECT age FROM people"
    + ")" * 30
    + ") u",
    "joins": "SELECT COUNT(*) FROM people p0 "
    + " ".join(f"JOIN people p{i} ON p{i}.pid = p0.pid" for i in range(1, 900)),
    "joins 30": "SELECT COUNT(*) FROM people p0 "
    + " ".join(f"JOIN people p{i} ON p{i}.pid = p0.pid" for i in range(1, 30)),
    "joins visits": "SELECT COUNT(*) FROM visits p0 "
    + " ".join(f"JOIN visits p{i} ON p{i}.pid = p0.pid" for i in range(1, 30)),
    "comma": "SELECT COUNT(*) FROM " + ", ".join(f"regions r{i}" for i in range(2000)),
    "comma people": "SELECT COUNT(*) FROM people, " + ", ".join(f"regions r{i}" for i in range(20)),
    "cross regions": "SELECT COUNT(*) FROM people " + " ".join(f"CROSS JOIN regions r{i}" for i in range(60)),
    "natural": "SELECT COUNT(*) FROM people " + " ".join("NATURAL JOIN regions" for i in range(500)),
    "cte laughs union": chained(
        30, "SELECT age FROM people", "SELECT age FROM {p} UNION ALL SELECT age FROM {p}", "SELECT COUNT(*) FROM {p}"
    ),
    "cte laughs join": chained(
        30,
        "SELECT pid, age FROM people",
        "SELECT a.pid, a.age FROM {p} a JOIN {p} b ON a.pid = b.pid",
        "SELECT COUNT(*) FROM {p}",
    ),
    "cte laughs expr": chained(
        40, "SELECT age AS a FROM people", "SELECT a + a AS a FROM {p}", "SELECT SUM(a) FROM {p}"
    ),
    "cte laughs times": chained(
        40, "SELECT age AS a FROM people", "SELECT a * a AS a FROM {p}", "SELECT SUM(a) FROM {p}"
    ),
    "cte laughs text": chained(
        40, "SELECT sex AS a FROM people", "SELECT a || a AS a FROM {p}", "SELECT COUNT(*) FROM {p} WHERE a = 'x'"
    ),
    "cte laughs text group": chained(
        40, "SELECT sex AS a FROM people", "SELECT a || a AS a FROM {p}", "SELECT a, COUNT(*) FROM {p} GROUP BY a"
    ),
    "cte laughs case": chained(
        40,
        "SELECT age AS a FROM people",
        "SELECT CASE WHEN a > 3 THEN a ELSE a + 1 END AS a FROM {p}",
        "SELECT SUM(a) FROM {p}",
    ),
    "cte laughs cond": chained(
        40,
        "SELECT married AS a FROM people",
        "SELECT (a AND NOT a) OR a AS a FROM {p}",
        "SELECT COUNT(*) FROM {p} WHERE a",
    ),
    "cte released": chained(
        30, "SELECT COUNT(*) AS n FROM people", "SELECT a.n + b.n AS n FROM {p} a, {p} b", "SELECT n FROM {p}"
    ),
    "cte released expr": chained(
        60, "SELECT COUNT(*) AS n FROM people", "SELECT n + n AS n FROM {p}", "SELECT n FROM {p}"
    ),
    "cte released union": chained(
        30, "SELECT COUNT(*) AS n FROM people", "SELECT n FROM {p} UNION ALL SELECT n FROM {p}", "SELECT n FROM {p}"
    ),
    "cte scalar": chained(
        30,
        "SELECT COUNT(*) AS n FROM people",
        "SELECT (SELECT MAX(n) FROM {p}) + (SELECT MAX(n) FROM {p}) AS n FROM {p}",
        "SELECT n FROM {p}",
    ),
    "cte many": "WITH "
    + ", ".join(f"q{i} AS (SELECT age FROM people)" for i in range(1000))
    + " SELECT COUNT(*) FROM q1",
    "cte filters": chained(
        90, "SELECT age AS a FROM people", "SELECT a FROM {p} WHERE a > 1", "SELECT SUM(a) FROM {p}"
    ),
    "cte perperson": chained(
        40,
        "SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid",
        "SELECT pid, SUM(n) AS n FROM {p} GROUP BY pid",
        "SELECT AVG(n) FROM {p}",
    ),
    "cte distinct": chained(
        40, "SELECT pid, age AS n FROM people", "SELECT DISTINCT pid, n + n AS n FROM {p}", "SELECT AVG(n) FROM {p}"
    ),
    "subquery nest": "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 90 + "people" + ") q" * 90,
    "subquery nest cols": "SELECT SUM(a) FROM "
    + "(SELECT a + a AS a FROM " * 40
    + "(SELECT age AS a FROM people) z"
    + ") q" * 40,
    "stars": "SELECT COUNT(*) FROM (SELECT " + ",".join(["p.*"] * 1000) + " FROM people p) q",
    "stars nest": "SELECT COUNT(*) FROM " + "(SELECT *, * FROM " * 20 + "people" + ") q" * 20,
    "in subquery": "SELECT COUNT(*) FROM people WHERE " + " AND ".join(["pid IN (SELECT pid FROM visits)"] * 300),
    "in subquery nest": "SELECT COUNT(*) FROM people WHERE "
    + "pid IN (SELECT pid FROM visits WHERE " * 40
    + "paid"
    + ")" * 40,
    "exists nest": "SELECT COUNT(*) FROM people p WHERE "
    + " OR ".join(["EXISTS (SELECT 1 FROM visits v WHERE v.pid = p.pid)"] * 200),
    "scalar sub": "SELECT " + "+".join(["(SELECT COUNT(*) FROM people)"] * 90) + " FROM people",
    "scalar sub differ": "SELECT "
    + "+".join(f"(SELECT COUNT(*) FROM people WHERE age > {i})" for i in range(90))
    + ", COUNT(*) FROM people",
    "having": "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING "
    + " OR ".join(f"COUNT(*) > {i}" for i in range(2000)),
    "order": "SELECT COUNT(*) AS n FROM people ORDER BY " + ",".join(["n"] * 5000),
    "like": "SELECT COUNT(*) FROM people WHERE sex LIKE '" + "%a" * 5000 + "'",
    "likes": "SELECT COUNT(*) FROM people WHERE " + " OR ".join(f"sex LIKE '%{i}%'" for i in range(2000)),
    "digits": "SELECT SUM(" + "9" * 50000 + ") FROM people",
    "exponent": "SELECT SUM(age * 1e999999999) FROM people",
    "power": "SELECT SUM(POWER(age, 999999999)) FROM people",
    "power tower": "SELECT SUM(" + "POWER(" * 40 + "age" + ", 99)" * 40 + ") FROM people",
    "round": "SELECT SUM(ROUND(age, 999999999)) FROM people",
    "substring": "SELECT COUNT(*) FROM people WHERE SUBSTRING(sex, 1, 999999999) = 'a'",
    "repeat": "SELECT REPEAT('a', 999999999), COUNT(*) FROM people GROUP BY 1",
    "lpad": "SELECT COUNT(*) FROM people WHERE LPAD(sex, 999999999) = 'a'",
    "cast varchar": "SELECT CAST(sex AS VARCHAR(999999999)), COUNT(*) FROM people GROUP BY 1",
    "decimal": "SELECT SUM(CAST(age AS DECIMAL(38, 999999))) FROM people",
    "width_bucket": "SELECT WIDTH_BUCKET(age, 0, 100, 999999999), COUNT(*) FROM people GROUP BY 1",
    "date trunc groups": "SELECT born, COUNT(*) FROM people GROUP BY born",
    "interval": "SELECT COUNT(*) FROM people WHERE born > DATE '2000-01-01' + INTERVAL '999999999999 years'",
    "interval2": "SELECT COUNT(*) FROM people WHERE born > DATE '2000-01-01' - INTERVAL '999999 months'",
    "date arithmetic": "SELECT COUNT(*) FROM people WHERE "
    + " + ".join(["born"] + ["INTERVAL '1 day'"] * 90)
    + " > DATE '2000-01-01'",
    "limit": "SELECT COUNT(*) FROM people LIMIT " + "9" * 5000,
    "limit expr": "SELECT COUNT(*) FROM people LIMIT " + "9" * 400,
    "percentile": "SELECT "
    + ",".join(f"PERCENTILE_CONT(0.{i:03}) WITHIN GROUP (ORDER BY income)" for i in range(1, 400))
    + " FROM people",
    "aliases": "SELECT COUNT(*) AS " + "a" * 90000 + " FROM people",
    "alias chain": "SELECT age + 1 AS a0, "
    + ", ".join(f"a{i - 1}+a{i - 1} AS a{i}" for i in range(1, 60))
    + " FROM people",
    "comments": "/*" * 40000 + "*/" * 40000 + " SELECT COUNT(*) FROM people",
    "comments2": "--\n" * 30000 + " SELECT COUNT(*) FROM people",
    "dashes": "-" * 99000,
    "quotes": "SELECT " + "'" * 99000,
    "dquotes": "SELECT " + '"' * 99000,
    "dollars": "SELECT " + "$" * 99000,
    "semicolons": ";" * 99000,
    "spaces": " " * 99000 + "SELECT COUNT(*) FROM people" + " " * 100,
    "unicode": "SELECT " + "👩" * 20000,
    "dots": "SELECT " + ".".join(["a"] * 5000) + " FROM people",
    "casts": "SELECT SUM(age" + "::int" * 5000 + ") FROM people",
    "casts 90": "SELECT SUM(age" + "::int" * 90 + ") FROM people",
    "between": "SELECT COUNT(*) FROM people WHERE age " + "BETWEEN 1 AND " * 90 + "2",
    "is null": "SELECT COUNT(*) FROM people WHERE age " + "IS NULL " * 3000,
    "cmp chain": "SELECT COUNT(*) FROM people WHERE " + "=".join(["age"] * 3000),
    "coalesce wide": "SELECT SUM(COALESCE(" + ",".join(["age"] * 3000) + ")) FROM people",
    "greatest wide": "SELECT SUM(GREATEST(" + ",".join(["age", "educ"] * 1500) + ")) FROM people",
    "greatest nest": "SELECT SUM(" + "GREATEST(age, LEAST(educ, " * 45 + "age" + "))" * 45 + ") FROM people",
    "coalesce nest": "SELECT SUM(" + "COALESCE(NULLIF(age, 1), " * 45 + "age" + ")" * 45 + ") FROM people",
    "nullif nest": "SELECT SUM(" + "NULLIF(" * 45 + "age" + ", 1)" * 45 + ") FROM people",
    "fn nest": "SELECT SUM(" + "ABS(FLOOR(CEIL(" * 30 + "age" + ")))" * 30 + ") FROM people",
    "div nest": "SELECT SUM(" + "1/(1+" * 45 + "age" + ")" * 45 + ") FROM people",
    "case cond product": "SELECT "
    + " || ".join(f"CASE WHEN age > {i} THEN 'a' ELSE 'b' END" for i in range(25))
    + ", COUNT(*) FROM people GROUP BY 1",
    "sum of products": "SELECT SUM(" + "*".join("(age+educ)" for i in range(60)) + ") FROM people",
    "corr many": "SELECT " + ",".join(f"CORR(age+{i}, income)" for i in range(200)) + " FROM people",
    "vars": "SELECT " + ",".join(f"VAR_POP(age+{i})" for i in range(300)) + " FROM people GROUP BY region",
    "distincts": "SELECT " + ",".join(f"COUNT(DISTINCT age+{i})" for i in range(100)) + " FROM people",
    "filters": "SELECT " + ",".join(f"COUNT(*) FILTER (WHERE age > {i})" for i in range(800)) + " FROM people",
    "groups of many": "SELECT region, "
    + ",".join(f"SUM(age+{i})" for i in range(200))
    + " FROM people GROUP BY CUBE(region, educ, sex, married)",
    "explain": "EXPLAIN " * 10000 + "SELECT 1",
    "top": "SELECT " + "TOP 5 " * 10000 + " age FROM people",
    "with nest": "WITH a AS (" * 49 + "SELECT age FROM people" + ") SELECT * FROM a" * 49,
    "with nest count": "WITH a AS (" * 49
    + "SELECT age FROM people"
    + ") SELECT age FROM a" * 48
    + ") SELECT COUNT(*) FROM a",
    # as much as is allowed, or nearly
    "most conditions": "SELECT COUNT(*) FROM people WHERE " + " AND ".join(f"age <> {i}" for i in range(900)),
    "most choices": "SELECT COUNT(*) FROM people WHERE " + " OR ".join(f"age = {i} AND married" for i in range(600)),
    "most listed": "SELECT COUNT(*) FROM people WHERE age IN (" + ",".join(map(str, range(1_900))) + ")",
    "most branches": "SELECT SUM(CASE "
    + " ".join(f"WHEN age = {i} THEN {i}" for i in range(480))
    + " END) FROM people",
    "most patterns": "SELECT COUNT(*) FROM people WHERE " + " OR ".join(f"sex LIKE '%{i}%'" for i in range(900)),
    "most aggregates": "SELECT " + ",".join(f"SUM(age+{i})" for i in range(128)) + " FROM people",
    "most means": "SELECT " + ",".join(f"AVG(age+{i})" for i in range(128)) + " FROM people",
    "most correlations": "SELECT " + ",".join(f"CORR(age+{i}, income)" for i in range(128)) + " FROM people",
    "most medians": "SELECT " + ",".join(f"MEDIAN(age+{i})" for i in range(32)) + " FROM people",
    "most joins": "SELECT COUNT(*) FROM people p0 "
    + " ".join(f"JOIN people p{i} ON p{i}.pid = p0.pid" for i in range(1, 17)),
    "most unions": "SELECT COUNT(*) FROM (" + " UNION ALL ".join(["SELECT age FROM people"] * 32) + ") u",
    "most orders": "SELECT COUNT(*) AS n FROM people ORDER BY " + ",".join(["n"] * 64),
    "most values": "SELECT SUM(GREATEST(" + ",".join(["age", "educ"] * 50) + ")) FROM people",
    "most having": "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING "
    + " OR ".join(f"COUNT(*) > {i}" for i in range(127)),
    "most sets": "SELECT COUNT(*) FROM people GROUP BY CUBE(educ, sex, married, region, educ + 1)",
    "most columns": "SELECT COUNT(*) FROM (SELECT " + ",".join(["age"] * 1_000) + " FROM people) q",
    "long top": "SELECT TOP " + "9" * 5_000 + " age FROM people",
}
