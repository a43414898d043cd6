"""Additive models where noise is much: groups, rounds and steps by what a step's noise leaves, beside the old rules."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon
from sulq.language.attribute import Attribute
from sulq.language.domain import Category, Real
from sulq.learn import AdditiveClassifier, AdditiveRegressor, additive
from sulq.learn.shapes import GRID, Shape
from tests.learn.cases import exact, opened
from tests.learn.noised import Noised, Replayed, columns
from tests.learn.test_additive import auc

NUMBERS = ["a", "b", "c", "d"]
DECLARED = {name: sulq.Real(0, 1) for name in NUMBERS}


def seldom(seed: int, n: int) -> dict[str, np.ndarray]:
    """One row in fifty is of the second class; one number tells most of it, another a little."""
    rng = np.random.default_rng(seed)
    data = {name: rng.random(n) for name in NUMBERS}
    return data | {"y": rng.random(n) < 1 / (1 + np.exp(7.2 - 4 * data["a"] - data["b"]))}


def alike(seed: int, n: int) -> dict[str, np.ndarray]:
    """Four numbers that go together, and one that is to be told from what is left of each, with a long tail."""
    rng = np.random.default_rng(seed)
    size, age = rng.beta(5, 3, n), rng.normal(size=n)
    data = {name: np.clip(size**k * np.exp(0.1 * rng.normal(size=n)), 0, 1) for k, name in enumerate(NUMBERS, 1)}
    data["d"] = np.clip(data["d"] * np.exp(0.25 * age), 0, 1)
    return data | {"y": np.clip(4 + 9 * size + 2 * age + np.maximum(age, 0) ** 2, 0, 30)}


def old_rules(patch: pytest.MonkeyPatch) -> None:
    """No group joined for a step's noise, no neighbour listened to, 2 to 6 rounds, clipped at one deviation."""
    for name, value in {"GROUPS": 1e9, "ROUGH": 1.0, "CLIP": 1.0, "PRIOR": 0.2, "PRIOR_ODDS": 0.5}.items():
        patch.setattr(additive, name, value)
    for learner in (AdditiveClassifier, AdditiveRegressor):
        patch.setattr(learner, "usual_rounds", (2, 6))
    patch.setattr(additive, "CLEARNESS_A_ROUND", 120.0)


def classified(epsilon: float, runs: int = 4) -> tuple[float, int]:
    """The mean AUC of fits with seeded noise, and the groups of the number that tells most."""
    found = []
    for seed in range(runs):
        with opened(DECLARED | {"y": sulq.Bool()}, seldom(seed, 8000)) as db:
            oracle = Noised(db, seed)
            model = AdditiveClassifier().fit(columns(oracle, NUMBERS), columns(oracle, ["y"]), spend=Epsilon(epsilon))
        held = seldom(99, 8000)
        found.append(auc(held["y"], model.decision_function(pd.DataFrame(held))))
    return float(np.mean(found)), len(model.shapes_[0].counts)


def test_of_few_positives_bins_are_joined_by_the_noise_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in fifty positive, epsilon .3: an AUC .02 above the old rules'; at 90 hardly a bin is joined."""
    mean, groups = classified(0.3)
    assert groups <= 12
    assert classified(90, 1)[1] > 24
    old_rules(monkeypatch)
    before, many = classified(0.3)
    assert groups < many
    assert mean > before + 0.02


def test_a_regressor_does_not_level_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that go together at epsilon 10: rounds by what they gain, R^2 more than .05 above the old rules'."""
    scores: list[float] = []
    rounds: list[int] = []
    for old in (False, True):
        if old:
            old_rules(monkeypatch)
        found = []
        for seed in range(2):
            with opened(DECLARED | {"y": sulq.Real(0, 30)}, alike(seed, 3000)) as db:
                oracle = Noised(db, seed)
                model = AdditiveRegressor().fit(columns(oracle, NUMBERS), columns(oracle, ["y"]), spend=Epsilon(10))
            held = alike(99, 3000)
            found.append(model.score(pd.DataFrame(held), held["y"]))
        scores.append(float(np.mean(found)))
        rounds.append(model.n_rounds_)
    assert rounds[0] > 2 * rounds[1]
    assert scores[0] > scores[1] + 0.05


@pytest.mark.parametrize("ordered", [True, False])
def test_a_step_is_the_mean_of_a_curve_seen_through_noise(*, ordered: bool) -> None:
    """By the formula for conditional normal variables, on the grid; a group of no rows moves as its neighbours do."""
    domain = Real(0, 1) if ordered else Category(tuple("abcde"))
    shape = Shape.of(Attribute("x", domain, 5), np.array([100.0, 90, 80, 70, 60, 0]), 1, 1)
    weights = np.array([[100.0], [90], [0], [70], [60], [0]])
    seen = np.array([[50.0], [40], [7], [-9], [-30], [12]])
    AdditiveClassifier()._step(
        shape, SimpleNamespace(values=lambda: seen, deviations=lambda: np.array([9.0])), weights, 0.4
    )
    likely = 0.16 * shape.alike(additive.SMOOTH, additive.ROUGH)
    joint = np.diag(weights[:, 0]) @ likely
    expected = joint.T @ np.linalg.inv(joint @ np.diag(weights[:, 0]) + 81 * np.eye(6)) @ seen
    assert np.abs(shape.scores - expected).max() <= 0.5 / GRID
    assert shape.scores[-1, 0] == 0  # the missing: nobody is there
    alone = seen * weights / (weights**2 + (9 / 0.4) ** 2)
    if ordered:
        assert shape.scores[2, 0] > 0.05
    else:
        assert np.abs(shape.scores - alone).max() <= 0.5 / GRID


@pytest.mark.parametrize("learner", [AdditiveClassifier, AdditiveRegressor])
def test_what_is_asked_depends_on_answers_alone_SR6(learner: type) -> None:
    """Replayed without any data: the same model; without noise a row more changes no question's shape."""
    made = seldom if learner is AdditiveClassifier else alike
    y = sulq.Bool() if learner is AdditiveClassifier else sulq.Real(0, 30)
    data = made(3, 500)
    with opened(DECLARED | {"y": y}, data) as db:
        oracle = Noised(db, 5)
        model = learner().fit(columns(oracle, NUMBERS), columns(oracle, ["y"]), spend=Epsilon(1))
        again = Replayed(oracle)
        other = learner().fit(columns(again, NUMBERS), columns(again, ["y"]), spend=Epsilon(1))
        assert not again.answers
        assert other.to_json() == model.to_json()
    with opened(DECLARED | {"y": y}, {name: values[:1] for name, values in data.items()}) as db:
        plain = exact(db)
        few = learner().fit(plain[NUMBERS], plain["y"], spend=Epsilon(1))
    assert few.n_rounds_ == learner.usual_rounds[0]
    assert all(len(shape.counts) == 2 for shape in few.shapes_)
