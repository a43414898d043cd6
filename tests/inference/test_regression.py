"""Least squares on a database: without noise the textbook's, with it what simulations say, and empty data."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, Rho, Unit, col
from sulq.errors import BudgetExceeded, QuestionError
from sulq.testing import exact
from tests.inference.cases import COLUMNS, frame, opened
from tests.inference.populations import Population, lines
from tests.inference.simulations import ols_found


def white(data: pd.DataFrame, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and White's standard errors."""
    rows, y = np.concatenate([np.ones((len(data), 1)), data[names].to_numpy(float)], axis=1), data["y"].to_numpy()
    inverse = np.linalg.inv(rows.T @ rows)
    found = inverse @ rows.T @ y
    scores = rows * (y - rows @ found)[:, None]
    return found, np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))


def test_without_noise_the_coefficients_are_least_squares() -> None:
    """With a spend so large that noise hardly matters the standard errors are White's."""
    data = frame()
    with opened(data, budget=Epsilon(1000)) as db:
        found = exact(db).ols("y", ["x", "z"], spend=Epsilon(900))
    expected, errors = white(data, ["x", "z"])
    assert [one.coef for one in found] == pytest.approx(expected, abs=2e-3)
    assert [one.se for one in found] == pytest.approx(errors, rel=0.05)


def test_a_database_and_the_simulation_agree() -> None:
    """The same rows, no noise drawn: coefficients and standard errors of both paths are one."""
    people = lines("skewed", np.random.default_rng(4), samples=1, width=2)
    data = pd.DataFrame({"x0": people.x[0, :, 0], "x1": people.x[0, :, 1], "y": people.y[0]})
    columns = {"x0": sulq.Real(*people.bounds), "x1": sulq.Real(*people.bounds), "y": sulq.Real(*people.y_bounds)}
    with opened(data, columns=columns) as db:
        found = exact(db).ols("y", ["x0", "x1"], spend=Epsilon(4))
    simulated = ols_found(people, Epsilon(4), None)
    assert isinstance(people, Population)
    assert [one.coef for one in found] == pytest.approx(simulated.coef[0], rel=2e-3, abs=2e-3)
    assert [one.se for one in found] == pytest.approx(np.sqrt(simulated.law.variance[0]), rel=1e-2)


@pytest.mark.parametrize("spend", [Epsilon(4), Rho(0.5), sulq.EpsilonDelta(4, 1e-7)], ids=str)
def test_noisy_coefficients_lie_near_the_truth(spend: object) -> None:
    """Each within sixteen standard errors of the exact ones; categories, truth values and names that need quoting.

    A sum of Laplace terms is off by k deviations in a share of at most 2 exp(-ku)/(1 - u^2/2) of cases, for any u below
    the root of 2 (Chernoff; one term is the worst of a given variance): at k = 16 and u = 1.35 in one of 10^8.
    """
    with opened() as db:
        names = ["x", "plan", "who'se"]
        without = exact(db).ols("y", names, spend=Epsilon(20))
        truth = {one.term: one.coef for one in without}
        found = db.ols("y", names, where=col("z") > -9, spend=spend)
    assert [one.term for one in found] == ["intercept", "x", "plan=paid", "plan=gift", "who'se"]
    assert all(abs(one.coef - truth[one.term]) < 16 * one.se for one in found)
    assert without["x"].p < 1e-4
    assert 0 < found["x"].p <= 1
    assert found["x"].low < found["x"].coef < found["x"].high


def test_a_second_ask_is_free_and_new_noise_is_not_SR12() -> None:
    """The same question again is reused, even where nothing is left; `fresh` is refused there, free."""
    with opened(budget=Epsilon(1)) as db:
        first = db.ols("y", ["x"], spend=Epsilon(1))
        again = db.ols("y", ["x"], spend=Epsilon(1))
        assert again.reused
        assert again.spent == Epsilon.total(0)
        assert again.estimates == first.estimates
        with pytest.raises(BudgetExceeded):
            db.ols("y", ["x"], spend=Epsilon(1), fresh=True)


@pytest.mark.parametrize("rows", [0, 1, 30])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one", "zero_out"])
def test_few_rows_give_unknown_coefficients_SR6(rows: int, neighbors: str) -> None:
    """No error, whatever the data: not a number, an endless interval, and a note."""
    data = frame(30).iloc[:rows]
    with opened(data, unit=Unit(neighbors=neighbors)) as db:
        found = db.ols("y", ["x", "z"], spend=Epsilon(0.5))
    assert all(math.isnan(one.coef) and one.low == -math.inf and one.high == math.inf for one in found)
    assert any("unknown" in note for note in found.notes)
    assert "inf" in repr(found)


def test_collinear_and_constant_columns_give_unknown_coefficients_SR6() -> None:
    """A fact of the data is no error: columns that vary together, or not at all."""
    data = frame().assign(z=0.5)
    with opened(data) as db:
        for names in (["x", "z"], {"x": "x", "twice": col("x") * 2}):
            assert math.isnan(exact(db).ols("y", names, spend=Epsilon(2))["x"].coef)


def test_rows_of_one_person_widen_the_intervals() -> None:
    """Where a person may have three rows the sampling variance is three times as large, and a note says so."""
    data = frame().assign(who=np.arange(6000) // 3)
    with opened(data, budget=Epsilon(1000)) as one, opened(data, budget=Epsilon(1000), unit=Unit("who", rows=3)) as db:
        single = exact(one).ols("y", ["x"], spend=Epsilon(300))["x"]
        found = exact(db).ols("y", ["x"], spend=Epsilon(900))
    assert found["x"].se == pytest.approx(3**0.5 * single.se, rel=0.05)
    assert any("up to 3 rows" in note for note in found.notes)


@pytest.mark.parametrize(
    "ask",
    [
        lambda db: db.ols("y", ["y"], spend=Epsilon(1)),
        lambda db: db.ols("plan", ["x"], spend=Epsilon(1)),
        lambda db: db.ols("y", ["x"]),
        lambda db: db.ols("y", ["x"], spend=Epsilon(1), level=95),
        lambda db: db.ols("y", ["x"], spend=Epsilon(1), fresh="yes"),
        lambda db: db.ols("y", ["x"], spend=Epsilon(1), law="gaussian"),
        lambda db: db.ols("y", ["x"], spend=Epsilon(1e-9)),
        lambda db: db.ols("y", ["x"], spend=Epsilon(91)),
    ],
)
def test_what_cannot_be_asked_is_refused_free(ask) -> None:
    """No y beside itself, no category as y; a spend, a level and a law there can be, and no more than is left."""
    with opened() as db:
        with pytest.raises((QuestionError, BudgetExceeded)):
            ask(db)
        assert db.facts.spent.amount == 0
    assert COLUMNS["x"] == sulq.Real(0, 10)
