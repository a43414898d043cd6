"""SmartNoise SQL, its Postgres dialect over the rows in an in-memory DuckDB."""

import importlib.metadata

import duckdb
import numpy as np
from loop import Unsupported, serve
from snsql import Privacy
from snsql.sql.private_reader import PrivateReader
from snsql.sql.reader.postgres import PostgresReader

ONCE = 20  # queries an answer, where only accuracy counts
DELTA = 1e-9  # it takes none of 0; counts and sums are pure all the same
SQL = {
    "filtered count": "SELECT COUNT(*) AS n FROM S.T WHERE age > 40",
    "sum and mean": "SELECT SUM(income) AS s, AVG(income) AS m FROM S.T",
    "groups": "SELECT region, COUNT(*) AS n, SUM(income) AS s, AVG(income) AS m FROM S.T GROUP BY region",
    "histogram": "SELECT age, COUNT(*) AS n FROM S.T GROUP BY age",
    "person groups": "SELECT region, COUNT(*) AS n FROM S.T GROUP BY region",
    "count": "SELECT COUNT(*) AS n FROM S.T",
    "sum": "SELECT SUM(income) AS s FROM S.T",
    "mean": "SELECT AVG(income) AS m FROM S.T",
}


class Rows(PostgresReader):
    """Its reader, with DuckDB's cursor; DuckDB speaks this dialect, but for a random order inside a window."""

    def execute(self, query, *_ignored, accuracy=False):
        """Names, then rows."""
        cursor = self.conn.execute(str(query).replace("ORDER BY RANDOM ( )", "ORDER BY hash(person, region)"))
        return [tuple(each[0] for each in cursor.description), *cursor.fetchall()]


def prepare(told):
    """Rows loaded into DuckDB's memory; the loss set so that the whole query costs what it may."""
    question = told["question"]
    if question not in SQL:
        raise Unsupported("not a query")
    person = question == "person groups"
    con = duckdb.connect()
    con.execute(f"SET threads = {told['threads']}")
    con.execute("CREATE SCHEMA S")
    con.execute(f"CREATE TABLE S.T AS SELECT * FROM '{told['path']}'")
    columns = {
        "rows": told["declared"],
        "age": {"type": "int", "lower": 0, "upper": 100},
        "income": {"type": "float", "lower": 0.0, "upper": 200_000.0},
        "region": {"type": "string", "cardinality": 50},
        "person": {"type": "int", "private_id": True} if person else {"type": "int"},
    }
    columns |= {"max_ids": 5, "sample_max_ids": True} if person else {"row_privacy": True}
    metadata = {"": {"S": {"T": columns}}}

    def reader(epsilon):
        own = PrivateReader(Rows(conn=con), metadata, privacy=Privacy(epsilon=epsilon, delta=DELTA))
        own._options.censor_dims = False
        return own

    sql = SQL[question]
    cost = reader(1.0).get_privacy_cost(sql)[0]
    private = reader(told["epsilon"] / cost)
    keyed = "GROUP BY" in sql
    note = f"delta {DELTA:g}; keys are those found in the rows; it charges {cost:g} times its epsilon for this"

    def run():
        rows = private.execute(sql)[1:]
        return lambda: [v for row in (sorted(rows) if keyed else rows) for v in row[1 if keyed else 0 :]]

    if told["part"] == "A":
        return run, importlib.metadata.version("smartnoise-sql"), note
    raw = [
        v for row in con.execute(sql + (" ORDER BY 1" if keyed else "")).fetchall() for v in row[1 if keyed else 0 :]
    ]

    def errors():
        return list(np.subtract([run()() for _ in range(ONCE)], raw).ravel())

    return errors, importlib.metadata.version("smartnoise-sql"), note


if __name__ == "__main__":
    serve(prepare)
