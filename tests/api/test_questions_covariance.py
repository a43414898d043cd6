"""Covariances of rows within a norm: their noise is free of the number of columns in L1."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq.api.database import Database
from sulq.api.questions import covariance
from sulq.errors import QuestionError
from sulq.language.domain import Int, Real
from sulq.language.privacy import Epsilon, Rho, Unit
from sulq.language.rowfn import Col
from tests.figures import figure

N = 1000
ONE = {"norm": "l1", "bound": 1}
UNITS = {"replace_one": Unit(neighbors="replace_one"), "add_remove": Unit(), "two rows": Unit("who", 2, "replace_one")}


def names(d: int) -> list[str]:
    """The names of d columns."""
    return [f"x{i}" for i in range(d)]


def one_hot(d: int) -> np.ndarray:
    """Rows of indicators of which one is 1, some far more often than others."""
    return np.eye(d, dtype=np.int64)[np.random.default_rng(5).choice(d, N, p=np.arange(1, d + 1) / (d * (d + 1) / 2))]


def opened(rows: np.ndarray, column: object, unit: Unit = UNITS["replace_one"]) -> Database:
    """A table of these rows."""
    table = {name: rows[:, i] for i, name in enumerate(names(rows.shape[1]))} | {"who": np.arange(len(rows))}
    return sulq.connect(
        pa.table(table),
        columns=dict.fromkeys(names(rows.shape[1]), column),
        unit=unit,
        budget=Epsilon(1000),
        size=N,
        synthetic=True,
    )


@pytest.mark.parametrize(("unit", "sums"), [("replace_one", 2), ("add_remove", 1), ("two rows", 4)])
def test_the_noise_of_a_covariance_is_free_of_the_dimension_S4_10(unit, sums):
    """Rows of L1 norm g: sums move by 2g and products by 2g^2 under replace_one, of 5 columns as of 60 [S4.10].

    Control: within the box, and within an L2 ball, the noise of products grows with the number of columns.
    """
    found = {}
    for d in (5, 20, 60):
        with opened(one_hot(d), Int(0, 1, missing=False), UNITS[unit]) as db:
            for how in ("l1", "l2", None):
                options = {} if how is None else {"norm": how, "bound": 1}
                question, _ = covariance(db.facts, [Col(name) for name in names(d)], None, (), **options)
                found[d, how] = tuple(map(float, db.foresee(question, spend=Epsilon(1)).parts[0].sensitivity[-2:]))
    assert {found[d, "l1"] for d in (5, 20, 60)} == {(sums, sums)}
    assert found[60, "l2"][1] > 5 * found[5, "l2"][1] > 10 * sums
    assert found[60, None][1] > 50 * found[5, None][1]


def test_one_hot_rows_have_a_tenth_of_the_error_S4_10_E35():
    """20 columns, 1,000 rows, epsilon 1: below the paper's 8 sqrt(2)/n = .0113 and the tight 6 sqrt(2)(n - 1)/n^2.

    Raw products move by 2g^2 where the covariance itself moves by 6g^2 (n - 1)/n. Control: without the norm ten times.
    """
    rows = one_hot(20)
    truth = np.cov(rows.T, bias=True)
    with opened(rows, Int(0, 1, missing=False)) as db:
        error = {}
        for name, options in (("l1", ONE), ("box", {})):
            asked = [db.covariance(names(20), spend=Epsilon(1), fresh=True, **options) for _ in range(6)]
            error[name] = math.sqrt(np.mean([(np.array(answer.value) - truth) ** 2 for answer in asked]))
        low, high = db.covariance(names(20), spend=Epsilon(1), **ONE).interval(1 - 1e-11)
    assert error["l1"] < 0.006 < math.sqrt(2) * 6 * (N - 1) / N**2 < math.sqrt(2) * 8 / N
    assert error["box"] > 0.07
    figure(
        "S4.10",
        "RMSE of a covariance of 20 indicators, n = 1,000, epsilon 1, within L1",
        error["l1"],
        8 * math.sqrt(2) / N,
    )
    figure("S4.10", "the same without the norm", error["box"], 8 * math.sqrt(2) / N)
    assert (np.array(low) <= truth).all()
    assert (truth <= np.array(high)).all()


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("spend", [Epsilon(900), Rho(900)])
def test_rows_past_the_bound_are_shortened_to_it_S4_10(norm, spend):
    """What is given is the covariance of the shortened rows; the control: not that of the rows as they are."""
    rows = np.random.default_rng(6).uniform(-20, 20, (N, 3))
    order, bound = (1 if norm == "l1" else 2), 12.0
    short = np.clip(rows, -bound, bound)  # a value past the bound is the bound, then the row is shortened
    short = short / np.maximum(np.linalg.norm(short, order, axis=1) / bound, 1)[:, None]
    with opened(rows, Real(-20, 20, missing=False)) as db:
        found = np.array(sulq.testing.exact(db).covariance(names(3), norm=norm, bound=bound, spend=Epsilon(9)).value)
        assert found == pytest.approx(np.cov(short.T, bias=True), abs=0.02)
        assert abs(found - np.cov(rows.T, bias=True)).max() > 1
        if isinstance(spend, Epsilon):
            noisy = np.array(db.covariance(names(3), norm=norm, bound=bound, spend=spend).value)
            assert noisy == pytest.approx(found, abs=0.5)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"norm": "l1"}, "bad-question"),
        ({"bound": 1}, "bad-question"),
        ({"norm": "l3", "bound": 1}, "bad-question"),
        ({"norm": ["l1"], "bound": 1}, "bad-question"),
        ({"norm": "l1", "bound": 0}, "bad-literal"),
        ({"norm": "l1", "bound": -1}, "bad-literal"),
        ({"norm": "l1", "bound": math.nan}, "bad-literal"),
        ({"norm": "l1", "bound": "one"}, "bad-literal"),
    ],
)
def test_a_norm_and_its_bound_are_asked_for_together(options, code):
    """A clear refusal, and nothing is spent."""
    with opened(one_hot(3), Int(0, 1)) as db:
        with pytest.raises(QuestionError) as refusal:
            db.covariance(names(3), spend=Epsilon(1), **options)
        assert refusal.value.code == code
        assert db.spent.epsilon == 0
