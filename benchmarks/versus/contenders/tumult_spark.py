"""Tumult Analytics on a local Spark of its own."""

import importlib.metadata
import os
import sys

import numpy as np
from loop import Unsupported, serve

REGIONS = [f"r{number:02d}" for number in range(50)]
HIGH = 200_000.0


def session(told, frame, *, person):
    """A session with the whole loss of one question."""
    from tmlt.analytics import AddOneRow, AddRowsWithID, PureDPBudget, Session

    unit = AddRowsWithID(id_column="person") if person else AddOneRow()
    return Session.from_dataframe(
        privacy_budget=PureDPBudget(told["epsilon"]), source_id="t", dataframe=frame, protected_change=unit
    )


def prepare(told):
    """Spark, and the file as its frame."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession
    from tmlt.analytics import KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder

    spark = (
        SparkSession.builder.master(f"local[{told['threads']}]")
        .config("spark.driver.memory", "8g")
        .config("spark.sql.shuffle.partitions", str(told["threads"]))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", told["scratch"])
        .getOrCreate()
    )
    question, person = told["question"], told["question"] == "person groups"
    frame = spark.read.parquet(told["path"])
    regions = KeySet.from_dict({"region": REGIONS})
    ages = KeySet.from_dict({"age": list(range(101))})
    whole = PureDPBudget(told["epsilon"])

    def shared(many):
        return PureDPBudget(told["epsilon"] / many)

    def start():
        return QueryBuilder("t")  # a new one each time: its methods change it

    income = ("income", 0.0, HIGH)
    asked = {
        "filtered count": [(start().filter("age > 40").count(), whole)],
        "sum and mean": [(start().sum(*income), shared(2)), (start().average(*income), shared(2))],
        "groups": [
            (start().groupby(regions).count(), shared(3)),
            (start().groupby(regions).sum(*income), shared(3)),
            (start().groupby(regions).average(*income), shared(3)),
        ],
        "histogram": [(start().groupby(ages).count(), whole)],
        "person groups": [(start().enforce(MaxRowsPerID(5)).groupby(regions).count(), whole)],
        "count": [(start().groupby(ages).count(), whole)],
        "sum": [(start().groupby(ages).sum(*income), whole)],
        "mean": [(start().average(*income), whole)],
    }
    if question not in asked:
        raise Unsupported("not a query")

    def run():
        own = session(told, frame, person=person)
        frames = [own.evaluate(query, budget).toPandas() for query, budget in asked[question]]

        def values():
            keys = [name for name in frames[0].columns if name in ("region", "age")]
            if not keys:
                return [each.iloc[0, 0] for each in frames]
            columns = [each.sort_values(keys).drop(columns=keys).iloc[:, 0].to_numpy() for each in frames]
            return list(np.column_stack(columns).ravel())

        return values

    version = importlib.metadata.version("tmlt.analytics")
    if told["part"] == "A":
        return run, version, "local Spark"
    truth = {
        "count": lambda: [row["count"] for row in frame.groupBy("age").count().orderBy("age").collect()],
        "sum": lambda: [row[1] for row in frame.groupBy("age").sum("income").orderBy("age").collect()],
        "mean": lambda: [frame.agg({"income": "avg"}).collect()[0][0]],
    }
    exact = truth["count" if question == "histogram" else question]()
    grouped = "of 101 groups, whose noise is that of one" if question in ("count", "sum") else ""
    return (lambda: list(np.subtract(run()(), exact))), version, grouped


if __name__ == "__main__":
    serve(prepare)
