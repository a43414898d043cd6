"""PipelineDP's engine on its local backend, over rows that are Python tuples in memory before it is asked."""

import importlib.metadata

import numpy as np
import pipeline_dp
import pyarrow.parquet as pq
from loop import Unsupported, serve

HIGH = 200_000.0
REGIONS = [f"r{number:02d}" for number in range(50)]
METRICS = {
    "COUNT": pipeline_dp.Metrics.COUNT,
    "SUM": pipeline_dp.Metrics.SUM,
    "MEAN": pipeline_dp.Metrics.MEAN,
}
DELTA = 1e-12  # of which nothing is used: keys are public and the noise is Laplace


def answer(rows, told, *, metrics, keys, key, unit=None):
    """One aggregation by public keys, in the order of the keys."""
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=told["epsilon"], total_delta=DELTA)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    several = {"max_contributions_per_partition": 1, "max_partitions_contributed": 1}
    if unit:
        several = {"max_contributions": 5}
    params = pipeline_dp.AggregateParams(
        metrics=[METRICS[name] for name in metrics],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        min_value=None if metrics == ("COUNT",) else 0.0,
        max_value=None if metrics == ("COUNT",) else HIGH,
        contribution_bounds_already_enforced=unit is None,
        **several,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=unit, partition_extractor=key, value_extractor=lambda row: row[2]
    )
    found = engine.aggregate(rows, params, extractors, public_partitions=keys)
    accountant.compute_budgets()
    by_key = dict(found)
    return [getattr(by_key[each], name.lower()) for each in keys for name in metrics]


def open_keys(told):
    """The better of its selections beside a count of people, by its engine, keys private."""
    table = pq.read_table(told["path"], columns=["pid", "label"])
    rows = list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    exact = {each["values"]: each["counts"] for each in table["label"].value_counts().to_pylist()}
    ways = pipeline_dp.PartitionSelectionStrategy
    way = ways.LAPLACE_THRESHOLDING if told["each"] == 1 else ways.GAUSSIAN_THRESHOLDING

    def run():
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=told["epsilon"], total_delta=told["delta"])
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        params = pipeline_dp.AggregateParams(
            metrics=[pipeline_dp.Metrics.PRIVACY_ID_COUNT],
            noise_kind=pipeline_dp.NoiseKind.LAPLACE,
            max_partitions_contributed=told["each"],
            max_contributions_per_partition=1,
            partition_selection_strategy=way,
        )
        extractors = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda _row: 0,
        )
        result = engine.aggregate(rows, params, extractors)
        accountant.compute_budgets()
        found = dict(result)
        off = [one.privacy_id_count - exact[label] for label, one in found.items()]
        return lambda: [len(off), float(np.sqrt(np.mean(np.square(off))))]

    return (
        run,
        importlib.metadata.version("pipeline-dp"),
        "local backend; half of epsilon for the keys, half for counts",
    )


def prepare(told):
    """Rows as tuples: person, age, income, region."""
    if told["part"] == "H":
        return open_keys(told)
    table = pq.read_table(told["path"], columns=["person", "age", "income", "region"])
    rows = list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    everything = {"keys": [0], "key": lambda _row: 0}
    regions = {"keys": REGIONS, "key": lambda row: row[3]}
    ages = {"keys": list(range(101)), "key": lambda row: row[1]}
    all_three = ("COUNT", "SUM", "MEAN")
    runs = {
        "filtered count": lambda: answer((r for r in rows if r[1] > 40), told, metrics=("COUNT",), **everything),
        "sum and mean": lambda: answer(rows, told, metrics=("SUM", "MEAN"), **everything),
        "groups": lambda: answer(rows, told, metrics=all_three, **regions),
        "histogram": lambda: answer(rows, told, metrics=("COUNT",), **ages),
        "person groups": lambda: answer(rows, told, metrics=("COUNT",), unit=lambda row: row[0], **regions),
        "count": lambda: answer(rows, told, metrics=("COUNT",), **ages),
        "sum": lambda: answer(rows, told, metrics=("SUM",), **ages),
        "mean": lambda: answer(rows, told, metrics=("MEAN",), **everything),
    }
    if told["question"] not in runs:
        raise Unsupported("not a query")
    run, version = runs[told["question"]], importlib.metadata.version("pipeline-dp")
    if told["part"] == "A":
        return run, version, "local backend; rows are Python tuples in memory beforehand"
    incomes, own = (table[name].to_numpy() for name in ("income", "age"))
    counts = np.bincount(own, minlength=101)
    truth = {
        "count": counts,
        "sum": np.bincount(own, incomes, minlength=101),
        "mean": [incomes.mean()],
        "histogram": counts,
    }[told["question"]]
    grouped = "of 101 groups, whose noise is that of one" if told["question"] in ("count", "sum") else ""
    return (lambda: list(np.subtract(run(), truth))), version, grouped


if __name__ == "__main__":
    serve(prepare)
