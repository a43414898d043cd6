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


SHAPES = {
    "declared keys": "SELECT k, count(*) AS n FROM '{0}' GROUP BY k ORDER BY k",
    "one sum of many columns": "SELECT sum(x7) FROM '{0}'",
}
TYPES = {"person": "BIGINT", "age": "INTEGER", "income": "DOUBLE", "region": "VARCHAR"}


def shaped(con, told):
    """Groups with their keys, whose counts are added up afterwards; one sum; a copy of a CSV file."""
    if told["question"] == "a copy of CSV":
        reader = (
            f"read_csv('{told['path']}', columns = {TYPES}, auto_detect = false, header = true, strict_mode = true)"
        )

        def run():
            with tempfile.TemporaryDirectory(dir=told["scratch"]) as folder:
                con.execute(f"ATTACH '{Path(folder) / 'kept'}' AS kept")
                con.execute(f"CREATE TABLE kept.t AS SELECT age, income, region FROM {reader}")
                (number,) = con.execute("SELECT count(*) FROM kept.t").fetchone()
                con.execute("DETACH kept")
            return [number]

        return run, duckdb.__version__, "types told, strict reading"
    sql = SHAPES[told["question"]].format(told["path"])

    def run():
        found = con.execute(sql).to_arrow_table()
        return lambda: [told["declared"] + float(sum(found.column(found.num_columns - 1).to_pylist()))]

    return run, duckdb.__version__, ""


def prepare(told):
    """The query, over the file."""
    con = duckdb.connect()
    con.execute(f"SET threads = {told['threads']}")
    if told.get("memory"):
        con.execute(f"SET memory_limit = '{told['memory'] >> 20}MiB'")
    if told["question"] == "preparing persons":
        return preparing(con, told)
    if told["part"] == "I":
        return shaped(con, told)
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
