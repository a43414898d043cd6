"""What an owner declares of functions, asked exactly of an engine: for tests that compare engines (S4.27, S4.28)."""

from __future__ import annotations

import numpy as np

import sulq
from sulq import Epsilon, Property, Stated, Unit, Utility, testing

PLACE = "tests.sources.declared"
UNIT = Unit("who", 9)  # more than anybody has rows, so that all are kept, whatever the ledger's key
OWN = {
    "told": (f"{PLACE}:told", Stated(5000, 0, 10**6, ("age",), 4)),
    "sides": (f"{PLACE}:sides", Utility(("old", "young"), 9, 0, 10**6, ("age",), (1, 2))),
    "pairs": (f"{PLACE}:pairs", Property(("age",), 1)),
}


def told(rows: np.ndarray) -> list[float]:
    """Their number, those without an age, their sum, and what the fifth is: rows are sorted."""
    return [len(rows), np.isnan(rows).sum(), np.nansum(rows), np.nan_to_num(rows[5:6, 0].sum())]


def sides(rows: np.ndarray) -> list[float]:
    """Two numbers to choose by."""
    return [(rows[:, 0] > 30).sum() * 1000, (rows[:, 0] <= 30).sum()]


def pairs(rows: np.ndarray) -> bool:
    """Every small table."""
    return len(rows) <= 1


def asked(db: sulq.Database) -> tuple[list[float], float, object]:
    """The exact numbers of a database of made-up data, and a choice that is next to certain."""
    exact = testing.exact(db)
    chosen = sulq.select.choose(db, "sides", spend=Epsilon(100)).candidate
    return exact.statistic("told").value.tolist(), exact.distance_from("pairs").value, chosen
