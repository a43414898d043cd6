"""OpenDP's Context over Polars for queries, its measurements for noise and accuracy."""

import importlib.metadata

import numpy as np
import opendp.prelude as dp
import polars as pl
from loop import Unsupported, serve

dp.enable_features("contrib")
REGIONS = [f"r{number:02d}" for number in range(50)]
ROWS_EACH = 5
HIGH = 200_000.0


INCOME = pl.col("income").fill_nan(0.0).fill_null(0.0)
TOTAL, MEAN = INCOME.dp.sum((0.0, HIGH)).alias("s"), INCOME.dp.mean((0.0, HIGH)).alias("m")
KEYS = {
    "region": pl.LazyFrame({"region": REGIONS}),
    "age": pl.LazyFrame({"age": pl.Series(range(101), dtype=pl.Int32)}),
}


def asked(told, question):
    """The query of a new context, whose unit, loss and public facts are everybody's."""
    person = question == "person groups"
    query = dp.Context.compositor(
        data=pl.scan_parquet(told["path"]),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("person") if person else None),
        privacy_loss=dp.loss_of(epsilon=told["epsilon"]),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=by, max_length=told["declared"]) for by in ((), ["region"], ["age"])],
    ).query()
    if question == "filtered count":
        return query.filter(pl.col("age") > 40).select(dp.len())
    if question == "sum and mean":
        return query.select(TOTAL, MEAN)
    if question == "groups":
        return query.group_by("region").agg(dp.len(), TOTAL, MEAN).with_keys(KEYS["region"])
    if question == "histogram":
        return query.group_by("age").agg(dp.len()).with_keys(KEYS["age"])
    if person:
        return query.truncate_per_group(ROWS_EACH).group_by("region").agg(dp.len()).with_keys(KEYS["region"])
    if question == "sum":
        return query.select(TOTAL)
    if question == "mean":
        return query.select(TOTAL, dp.len())
    raise Unsupported("not a query of its Context")


def queries(told):
    """A new context each time, as each answer has the whole loss to itself."""
    asked(told, told["question"])

    def run():
        frame = asked(told, told["question"]).release().collect()
        key = [name for name in frame.columns if name in KEYS]
        return lambda: [v for row in (frame.sort(key).drop(key) if key else frame).rows() for v in row]

    return run, "searches its noise scale at each query"


def open_keys(told):
    """Exact counts of people through its noise with a threshold."""
    from opendp_keys import least

    table = pl.read_parquet(told["path"]).group_by("label").len()
    exact = dict(table.iter_rows())
    release = least(told["each"], told["epsilon"], told["delta"])

    def run():
        found = release(exact)
        off = [n - exact[label] for label, n in found.items()]
        return lambda: [len(off), float(np.sqrt(np.mean(np.square(off))))]

    return run, "on exact numbers of people; its map charges for a threshold one higher than it applies"


def noise(told):
    """A vector of integers through one measurement."""
    make = dp.m.make_laplace if told["question"] == "laplace" else dp.m.make_gaussian
    norm = dp.l1_distance if told["question"] == "laplace" else dp.l2_distance
    add = make(dp.vector_domain(dp.atom_domain(T="i64")), norm(T="i64"), float(told["scale"]))
    values = np.arange(told["cells"], dtype=np.int64)

    def run():
        found = np.asarray(add(values))
        return lambda: [found.size, float(np.std(found - values))]

    return run, ""


def accuracy(told):
    """Errors of the noise its Context plans for the query: laws and scales from `summarize`, draws by measurements."""
    question = "filtered count" if told["question"] == "count" else told["question"]
    scales = asked(told, question).summarize()["scale"].to_list()
    income = pl.read_parquet(told["path"])["income"]
    rows, exact = len(income), float(income.sum())
    count = dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scales[-1])
    total = dp.m.make_laplace(dp.atom_domain(T="f64", nan=False), dp.absolute_distance(T="f64"), scales[0])

    def error():
        if question == "sum":
            return total(0.0)
        if question == "mean":
            return min(max((exact + total(0.0)) / max(rows + count(0), 1), 0.0), HIGH) - exact / rows
        return count(0)

    chosen = ", ".join(f"{scale:g}" for scale in scales)
    return (lambda: [error() for _ in range(told["many"])]), f"scale {chosen} from its Context"


PARTS = {"A": queries, "B": accuracy, "E": noise, "H": open_keys}


def prepare(told):
    """By part."""
    run, note = PARTS[told["part"]](told)
    return run, importlib.metadata.version("opendp"), note


if __name__ == "__main__":
    serve(prepare)
