"""Polars over the original Parquet, without privacy."""

import polars as pl
from loop import Unsupported, serve


def prepare(told):
    """The lazy query, over the file."""
    data = pl.scan_parquet(told["path"])
    income = pl.col("income")
    queries = {
        "filtered count": data.filter(pl.col("age") > 40).select(pl.len()),
        "sum and mean": data.select(income.sum().alias("s"), income.mean().alias("m")),
        "groups": data.group_by("region").agg(pl.len(), income.sum().alias("s"), income.mean().alias("m")),
        "histogram": data.group_by("age").agg(pl.len()),
        "person groups": data.group_by("region").agg(pl.len()),
    }
    if told["question"] not in queries:
        raise Unsupported("not a query")
    query = queries[told["question"]]

    def run():
        frame = query.collect()
        key = [name for name in frame.columns if name in ("region", "age")]
        return lambda: [v for row in (frame.sort(key).drop(key) if key else frame).rows() for v in row]

    return run, pl.__version__, "bounds nobody" if told["question"] == "person groups" else ""


if __name__ == "__main__":
    serve(prepare)
