"""diffprivlib on NumPy arrays that are in memory before it is asked."""

import importlib.metadata

import numpy as np
import pyarrow.parquet as pq
from diffprivlib import mechanisms, tools
from loop import Unsupported, serve

HIGH = 200_000.0


def columns(told):
    """The columns of the table, regions as codes."""
    table = pq.read_table(told["path"], columns=["age", "income", "region"])
    region = table["region"].combine_chunks().dictionary_encode()
    order = np.argsort(np.argsort(np.asarray(region.dictionary.to_pylist())))
    return table["age"].to_numpy(), table["income"].to_numpy(), order[region.indices.to_numpy()]


def answers(told, age, income, region):
    """The call of each question; a total of several answers is split evenly, groups are disjoint."""
    epsilon = told["epsilon"]
    limits = {"bounds": (0.0, HIGH)}

    def grouped():
        found = []
        for code in range(50):
            own = income[region == code]
            found.append(tools.count_nonzero(np.ones(len(own)), epsilon=epsilon / 3))
            found.append(tools.sum(own, epsilon=epsilon / 3, **limits))
            found.append(tools.mean(own, epsilon=epsilon / 3, **limits))
        return found

    return {
        "filtered count": lambda: [tools.count_nonzero(age > 40, epsilon=epsilon)],
        "sum and mean": lambda: [
            tools.sum(income, epsilon=epsilon / 2, **limits),
            tools.mean(income, epsilon=epsilon / 2, **limits),
        ],
        "groups": grouped,
        "histogram": lambda: list(tools.histogram(age, epsilon=epsilon, bins=101, range=(-0.5, 100.5))[0]),
        "count": lambda: [tools.count_nonzero(age > 40, epsilon=epsilon)],
        "sum": lambda: [tools.sum(income, epsilon=epsilon, **limits)],
        "mean": lambda: [tools.mean(income, epsilon=epsilon, **limits)],
    }


def queries(told):
    """A question of part A."""
    if told["question"] == "person groups":
        raise Unsupported("it knows no persons of several rows")
    run = answers(told, *columns(told))[told["question"]]
    return run, "rows in memory beforehand; a mean takes n as public; floating-point noise"


def accuracy(told):
    """Errors, each from a call on the whole array."""
    age, income, region = columns(told)
    run = answers(told, age, income, region)[told["question"]]
    truth = {
        "count": [(age > 40).sum()],
        "sum": [income.sum()],
        "mean": [income.mean()],
        "histogram": np.bincount(age, minlength=101),
    }[told["question"]]
    note = {
        "mean": "takes n as public",
        "count": "of a filter: a count of all is cut off at n, which it takes as public",
    }

    def errors():
        found = []
        while len(found) < told["many"]:
            found += list(np.subtract(run(), truth))
        return found

    return errors, note.get(told["question"], "")


def noise(told):
    """One cell at a time: it has no other way."""
    scale, cells = told["scale"], told["cells"]
    own = (
        mechanisms.Geometric(epsilon=1.0, sensitivity=scale)
        if told["question"] == "laplace"
        else mechanisms.GaussianDiscrete(epsilon=1.0, delta=1e-6, sensitivity=max(scale // 5, 1))
    )

    def run():
        found = [own.randomise(cell) for cell in range(cells)]
        return lambda: [cells, float(np.std(np.subtract(found, np.arange(cells))))]

    return run, "one cell at a time"


PARTS = {"A": queries, "B": accuracy, "E": noise}


def prepare(told):
    """By part."""
    run, note = PARTS[told["part"]](told)
    return run, importlib.metadata.version("diffprivlib"), note


if __name__ == "__main__":
    serve(prepare)
