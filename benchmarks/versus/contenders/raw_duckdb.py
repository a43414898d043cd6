"""DuckDB over the original Parquet, without privacy: the limit."""

import duckdb
from loop import Unsupported, serve

SQL = {
    "filtered count": "SELECT count(*) FROM '{0}' WHERE age > 40",
    "sum and mean": "SELECT sum(income), avg(income) FROM '{0}'",
    "groups": "SELECT region, count(*), sum(income), avg(income) FROM '{0}' GROUP BY region ORDER BY region",
    "histogram": "SELECT age, count(*) FROM '{0}' GROUP BY age ORDER BY age",
    "person groups": "SELECT region, count(*) FROM '{0}' GROUP BY region ORDER BY region",
}


def prepare(told):
    """The query, over the file."""
    con = duckdb.connect()
    con.execute(f"SET threads = {told['threads']}")
    if told.get("memory"):
        con.execute(f"SET memory_limit = '{told['memory'] >> 20}MiB'")
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
