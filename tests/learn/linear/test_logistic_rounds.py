"""Rounds of logistic regression with several classes: made where they gain more than their noise costs, else not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sulq import Epsilon
from sulq.learn import LogisticRegression
from sulq.learn.linear import logistic
from tests.learn.cases import opened
from tests.learn.noised import Noised, Replayed, columns

NAMES = list("abcd")
COLUMNS = {name: list("pqrs") for name in NAMES} | {"y": ["u", "v", "w"]}


def rows(seed: int, n: int) -> dict[str, np.ndarray]:
    """Four keys, of which two go with another, and three classes of log-odds linear in their labels."""
    rng, weights = np.random.default_rng(seed), np.random.default_rng(3).normal(0, 1.5, (4, 4, 3))
    codes = rng.integers(0, 4, (n, 4))
    for to, of in ((1, 0), (3, 2)):
        codes[:, to] = np.where(rng.random(n) < 0.8, codes[:, of], codes[:, to])
    scores = sum(weights[j][codes[:, j]] for j in range(4)) + rng.gumbel(size=(n, 3))
    names = {name: np.array(list("pqrs"))[codes[:, j]] for j, name in enumerate(NAMES)}
    return names | {"y": np.array(["u", "v", "w"])[scores.argmax(axis=1)]}


def scored(epsilon: float) -> tuple[float, int]:
    """The mean accuracy on other rows of fits with seeded noise, and the rounds."""
    held, found = rows(99, 3000), []
    for seed in range(3):
        with opened(COLUMNS, rows(seed, 2000)) as db:
            oracle = Noised(db, seed)
            model = LogisticRegression().fit(columns(oracle, NAMES), columns(oracle, ["y"]), spend=Epsilon(epsilon))
        found.append(model.score(pd.DataFrame(held), held["y"]))
    return float(np.mean(found)), model.n_iter_


def test_several_classes_have_rounds_where_they_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 rows at epsilon 10: rounds, and .01 more named rightly than by the gate of 5,000 a class that was."""
    mean, rounds = scored(10)
    monkeypatch.setattr(logistic, "WITH_KEYS", 5000)
    before, none = scored(10)
    assert rounds > none == 0
    assert mean > before + 0.01


def test_several_classes_have_no_rounds_where_noise_would_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """At epsilon .3 there is none; control: with rounds all the same fewer rows are named rightly."""
    mean, rounds = scored(0.3)
    monkeypatch.setattr(logistic, "WITH_KEYS", 1)
    forced, many = scored(0.3)
    assert rounds == 0 < many
    assert forced < mean - 0.02


def test_the_rounds_depend_on_answers_alone_SR6() -> None:
    """Replayed without any data the model and the number of asks are the same."""
    with opened(COLUMNS, rows(3, 2000)) as db:
        oracle = Noised(db, 5)
        model = LogisticRegression().fit(columns(oracle, NAMES), columns(oracle, ["y"]), spend=Epsilon(10))
        again = Replayed(oracle)
        other = LogisticRegression().fit(columns(again, NAMES), columns(again, ["y"]), spend=Epsilon(10))
    assert not again.answers
    assert other.to_json() == model.to_json()
