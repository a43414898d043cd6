"""Under a SubLinear budget all that a fit may ask is reserved before its first ask, whatever noise will decide."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq import Queries, SubLinear, Unit
from sulq.learn import (
    ID3,
    AdditiveClassifier,
    AdditiveRegressor,
    LinearRegression,
    LogisticRegression,
    NaiveBayes,
    Perceptron,
)
from sulq.learn.base import Learner
from sulq.learn.linear.scores import SCORE_BINS, STEP_LENGTHS
from tests.learn.cases import opened, refused

COLUMNS = {
    "b": sulq.Bool(),
    "c": sulq.Bool(),
    "x": sulq.Real(0, 1),
    "z": sulq.Real(0, 1),
    "w": sulq.Real(0, 1),
    "y": sulq.Real(0, 1),
    "ill": sulq.Bool(),
}
ZERO_OUT = Unit(neighbors="zero_out")
HISTOGRAM = 2 * SCORE_BINS  # of two classes' scores
LOUD, CLEAR = 1.0, 300.0  # epsilon: noise that products would drown in, and next to none


def rows(n: int = 3000) -> dict[str, np.ndarray]:
    """Two bits, three numbers, and both kinds of y that depend on them."""
    rng = np.random.default_rng(1)
    data = {name: rng.random(n) < 0.5 for name in "bc"} | {name: rng.random(n) for name in "xzw"}
    worth = 0.4 * data["b"] + 0.4 * data["x"] + 0.1 * rng.random(n)
    return data | {"y": np.clip(worth, 0, 1), "ill": worth > 0.4}


@pytest.mark.parametrize(
    ("model", "X", "epsilon", "cap", "spent"),
    [
        # Rows, then y thrice, labels, two rounds of steps; or rows, y twice, means, products.
        (LinearRegression(), "bc", LOUD, 1 + 3 + 4 + 2 * 4, 16),
        (LinearRegression(), "bc", CLEAR, 16, 1 + 2 + 3 + 3 + 6),
        (LinearRegression(), "xzw", LOUD, 21, 1 + 3 + 2 * 3),
        (LinearRegression(), "xzw", CLEAR, 1 + 2 + 4 + 4 + 10, 21),
        # Sizes, sums, products where they are clear, the histogram of scores; then gradients and searches.
        (LogisticRegression(), "xz", CLEAR, 2 + 4 + 3 + HISTOGRAM, None),
        (LogisticRegression(), "xz", 0.01, 2 + 4 + 3 + HISTOGRAM, 2 + 4 + HISTOGRAM),
        (LogisticRegression(max_iter=2), "xz", CLEAR, 9 + HISTOGRAM + 2 * (3 + len(STEP_LENGTHS)), None),
        # Labels, a histogram with the missing by label, two rounds of at most as many groups.
        (AdditiveClassifier(n_bins=2), "bx", CLEAR, 2 + 2 * 6 + 2 * 6, None),
        (AdditiveClassifier(n_bins=2, rounds=3), "bx", LOUD, 2 + 2 * 6 + 3 * 6, None),
        (AdditiveRegressor(n_bins=2), "bx", CLEAR, 3 + 6 + 2 * 6, None),
        (ID3(), "bc", CLEAR, 1 + 2, 3),
        (Perceptron(fit_intercept=False), "xz", CLEAR, 1 + 2, 3),
    ],
)
def test_a_fit_at_the_cap_ends_and_one_query_fewer_is_refused_free(
    model: Learner, X: str, epsilon: float, cap: int, spent: int | None
) -> None:
    """At the cap it is fitted to the end, on whichever path noise decides; one query fewer buys nothing."""
    y = "y" if isinstance(model, (LinearRegression, AdditiveRegressor)) else "ill"
    for queries in (cap, cap - 1):
        with opened(COLUMNS, rows(), SubLinear(epsilon, 1e-6, queries), unit=ZERO_OUT) as db:
            if queries < cap:
                refused("budget-exceeded", model.fit, db[list(X)], db[y])
                assert db.spent == Queries(0)
            else:
                found = model.fit(db[list(X)], db[y]).spent_
                assert found == db.spent
                assert found.queries == spent or (spent is None and found.queries <= cap)


def test_a_tree_ends_at_any_number_of_queries() -> None:
    """What the queries left do not suffice for is a leaf."""
    for queries in range(3, 40):
        with opened(COLUMNS, rows(400), SubLinear(CLEAR, 1e-6, queries), unit=ZERO_OUT) as db:
            assert ID3(n_bins=2).fit(db[["b", "c", "x"]], db["ill"]).spent_.queries <= queries


@pytest.mark.parametrize("model", [ID3(), Perceptron(stop=1e-6), NaiveBayes(bins=2)])
def test_a_spend_of_fewer_queries_is_kept(model: Learner) -> None:
    """Named fewer queries than are left, a fit asks no more than those, or is refused for free."""
    with opened(COLUMNS, rows(), SubLinear(CLEAR, 1e-6, 1000), unit=ZERO_OUT) as db:
        refused("budget-exceeded", model.fit, db[["b", "x"]], db["ill"], spend=Queries(1))
        assert db.spent == Queries(0)
        assert model.fit(db[["b", "x"]], db["ill"], spend=Queries(12)).spent_.queries <= 12
