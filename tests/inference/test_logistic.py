"""Logistic regression on a database: without noise the maximum of the likelihood, with it near, and empty data."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, Rho, col
from sulq.errors import QuestionError
from sulq.testing import exact
from tests.inference.cases import frame, opened
from tests.inference.populations import maximum_likelihood, odds
from tests.inference.simulations import logit_found


def test_without_noise_it_is_the_maximum_of_the_likelihood() -> None:
    """Coefficients near scipy-free Newton steps' own, standard errors near Fisher's."""
    people = odds("normal", np.random.default_rng(8), samples=1, width=2)
    truth = maximum_likelihood(people)
    data = pd.DataFrame({"x0": people.x[0, :, 0], "x1": people.x[0, :, 1], "y": people.y[0] > 0})
    columns = {"x0": sulq.Real(*people.bounds), "x1": sulq.Real(*people.bounds), "y": sulq.Bool()}
    with opened(data, columns=columns, budget=Epsilon(1000)) as db:
        found = exact(db).logit("y", ["x0", "x1"], spend=Epsilon(900))
        priced = exact(db).logit("y", ["x0", "x1"], spend=Epsilon(4))
    assert [one.coef for one in found] == pytest.approx(truth, abs=6e-3)
    rows = np.concatenate([np.ones((5000, 1)), people.x[0]], axis=1)
    chance = 1 / (1 + np.exp(-rows @ truth))
    fisher = np.linalg.inv((rows * (chance * (1 - chance))[:, None]).T @ rows)
    assert [one.se for one in found] == pytest.approx(np.sqrt(np.diag(fisher)), rel=0.05)
    simulated = logit_found(people, Epsilon(4), None)
    assert [one.coef for one in priced] == pytest.approx(simulated.coef[0], abs=5e-3)
    assert [one.se for one in priced] == pytest.approx(np.sqrt(simulated.law.variance[0]), rel=1e-2)


@pytest.mark.parametrize("spend", [Epsilon(4), Rho(0.5), sulq.EpsilonDelta(4, 1e-7)], ids=str)
def test_noisy_coefficients_lie_near_the_truth(spend: object) -> None:
    """Each within sixteen standard errors of the exact ones, as test_regression.py proves of Laplace terms."""
    with opened() as db:
        names = ["x", "z", "who'se"]
        without = exact(db).logit("won", names, spend=Epsilon(20))
        truth = {one.term: one.coef for one in without}
        found = db.logit("won", names, spend=spend)
    assert all(abs(one.coef - truth[one.term]) < 16 * one.se for one in found)
    assert without["x"].p < 1e-4
    assert 0 < found["x"].p <= 1
    assert any("Fisher" in note for note in found.notes)


def test_empty_data_one_class_and_collinear_columns_are_answers_SR6() -> None:
    """No rows and collinear columns: unknown. One class alone: an interval that is very wide."""
    with opened() as db:
        assert math.isnan(db.logit("won", ["x"], where=col("x") > 11, spend=Epsilon(1))["x"].coef)
        assert math.isnan(db.logit("won", {"x": "x", "two": col("x") * 2}, spend=Epsilon(1))["x"].coef)
    with opened(frame().assign(won=True)) as db:
        found = db.logit("won", ["x"], spend=Epsilon(2))
        assert found["intercept"].se > 0.1


def test_the_outcome_is_true_or_false() -> None:
    """A number or a category is refused, a condition of it is not; nor does it explain itself."""
    with opened() as db:
        for y in ("y", "plan"):
            with pytest.raises(QuestionError, match="neither"):
                db.logit(y, ["x"], spend=Epsilon(1))
        with pytest.raises(QuestionError, match="itself"):
            db.logit("won", ["won"], spend=Epsilon(1))
        assert db.logit(col("plan") == "paid", ["x"], spend=Epsilon(2))["x"].se > 0
