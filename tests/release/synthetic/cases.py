"""A made-up table with dependent columns of every kind, and its true marginals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

import sulq
from sulq.api.database import Database
from sulq.language.privacy import Budget
from sulq.release.synthetic.data import SyntheticData
from tests.learn.cases import opened

COLUMNS = {
    "city": ["Haifa", "Lod", "Yafo"],
    "rooms": sulq.Int(0, 2),
    "smoker": sulq.Bool(),
    "income": sulq.Real(0, 32),
}
NAMES = list(COLUMNS)
PAIRS = [list(pair) for pair in itertools.combinations(NAMES, 2)]
BINS = 4


def rows(n: int) -> dict[str, np.ndarray]:
    """The same rows at every call: `rooms` follows `city`, `smoker` follows `rooms`, `income` follows `city`."""
    rng = np.random.default_rng(7)
    city = rng.integers(0, 3, n)
    rooms = (city + rng.integers(0, 2, n)) % 3
    smoker = (rooms == 1) ^ (rng.random(n) < 0.1)
    income = np.round(rng.random(n) * 10 * (1 + city), 3)
    return {"city": np.array(COLUMNS["city"])[city], "rooms": rooms, "smoker": smoker, "income": income}


def made(n: int, budget: Budget | None = None, **options: object) -> Database:
    """A database of `n` such rows."""
    return opened(COLUMNS, rows(n), budget, **options)


def truth(names: Sequence[str], data: dict[str, np.ndarray]) -> np.ndarray:
    """Counts by some columns, numbers in intervals of 8."""
    codes = {
        "city": np.searchsorted(COLUMNS["city"], data["city"]),
        "rooms": data["rooms"],
        "smoker": data["smoker"].astype(int),
        "income": np.minimum((data["income"] // 8).astype(int), BINS - 1),
    }
    sizes = {"city": 3, "rooms": 3, "smoker": 2, "income": BINS}
    table = np.zeros([sizes[name] for name in names])
    np.add.at(table, tuple(codes[name] for name in names), 1)
    return table


def distance(found: SyntheticData, names: Sequence[str], data: dict[str, np.ndarray]) -> float:
    """How far a marginal of the synthetic rows is from the truth, in L1 over the number of rows."""
    return float(np.abs(found.marginal(names).values - truth(names, data)).sum() / len(data["city"]))
