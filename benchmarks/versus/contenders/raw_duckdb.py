"""DuckDB over the original Parquet, without privacy: the limit."""

import tempfile
from pathlib import Path

import duckdb
from loop import Unsupported, serve

SQL = {
    "filtered count": "SELECT count(*) FROM '{0}' WHERE age > 40",
    "sum and mean": "SELECT sum(income), avg(income) FROM '{0}'",
    "groups": "SELECT region, count(*), sum(income), avg(income) FROM '{0}' GROUP BY region ORDER BY region",
    "histogram": "SELECT age, count(*) FROM '{0}' GROUP BY age ORDER BY age",
    "person groups": "SELECT region, count(*) FROM '{0}' GROUP BY region ORDER BY region",
}
KEPT = """CREATE TABLE kept.t AS SELECT age, income, region FROM (
    SELECT *, row_number() OVER (PARTITION BY person ORDER BY hash(person, age, income, region)) AS place FROM '{0}'
) WHERE place <= 5"""


def preparing(con, told):
    """At most five rows of each person, those of least hash, in a table in a file."""

    def run():
        with tempfile.TemporaryDirectory(dir=told["scratch"]) as folder:
            con.execute(f"ATTACH '{Path(folder) / 'kept'}' AS kept")
            con.execute(f"SET temp_directory = '{folder}'")
            con.execute(KEPT.format(told["path"]))
            (number,) = con.execute("SELECT count(*) FROM kept.t").fetchone()
            con.execute("DETACH kept")
        return [number]

    return run, duckdb.__version__, "a hash that anybody can foresee"


def prepare(told):
    """The query, over the file."""
    con = duckdb.connect()
    con.execute(f"SET threads = {told['threads']}")
    if told.get("memory"):
        con.execute(f"SET memory_limit = '{told['memory'] >> 20}MiB'")
    if told["question"] == "preparing persons":
        return preparing(con, told)
    if told["question"] not in SQL:
        raise Unsupported("not a query")
    sql = SQL[told["question"]].format(told["path"])
    keyed = "GROUP BY" in sql

    def run():
        rows = con.execute(sql).fetchall()
        return lambda: [v for row in rows for v in row[1 if keyed else 0 :]]

    bounds_nobody = "bounds nobody" if told["question"] == "person groups" else ""
    return run, duckdb.__version__, bounds_nobody


if __name__ == "__main__":
    serve(prepare)
