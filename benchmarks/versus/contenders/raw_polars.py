"""Polars over the original Parquet, without privacy."""

import tempfile
from pathlib import Path

import polars as pl
from loop import Unsupported, serve


def preparing(data, told):
    """Five rows of each person, the first ones, in a Parquet file."""
    kept = data.filter(pl.int_range(pl.len()).over("person") < 5).select("age", "income", "region")

    def run():
        with tempfile.TemporaryDirectory(dir=told["scratch"]) as folder:
            kept.sink_parquet(Path(folder) / "kept.parquet")
            return [pl.scan_parquet(Path(folder) / "kept.parquet").select(pl.len()).collect().item()]

    return run, pl.__version__, "the rows that come first"


def shaped(told):
    """Groups with their keys; one sum; a copy of a CSV file as Parquet."""
    if told["question"] == "a copy of CSV":
        kinds = {"person": pl.Int64, "age": pl.Int32, "income": pl.Float64, "region": pl.String}
        kept = pl.scan_csv(told["path"], schema=kinds).select("age", "income", "region")

        def run():
            with tempfile.TemporaryDirectory(dir=told["scratch"]) as folder:
                kept.sink_parquet(Path(folder) / "kept.parquet")
                return [pl.scan_parquet(Path(folder) / "kept.parquet").select(pl.len()).collect().item()]

        return run, pl.__version__, "types told"
    data = pl.scan_parquet(told["path"])
    query = {
        "declared keys": data.group_by("k").agg(pl.len()).sort("k"),
        "one sum of many columns": data.select(pl.col("x7").sum()),
    }[told["question"]]

    def run():
        frame = query.collect()
        return lambda: [told["declared"] + float(frame.to_series(frame.width - 1).sum())]

    return run, pl.__version__, ""


def prepare(told):
    """The lazy query, over the file."""
    if told["part"] == "I":
        return shaped(told)
    data = pl.scan_parquet(told["path"])
    if told["question"] == "preparing persons":
        return preparing(data, told)
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
