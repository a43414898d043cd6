"""Counts over ranges of a published table: their cells, their standard errors, and noise that is divided for them."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import sulq
from sulq import EpsilonDelta, Rho
from sulq.errors import QuestionError
from sulq.release.contingency import ContingencyTable, contingency
from sulq.release.tables.contents import noise_of
from sulq.release.tables.noisy_tables import variance
from sulq.release.tables.ranges import counted, picked
from tests.learn.sq.noisy import Arrays

COLUMNS = {"age": sulq.Int(0, 31), "pay": sulq.Real(0, 80), "city": ["x", "y", "z"]}
NAMES = list(COLUMNS)
N = 400


def data() -> dict[str, object]:
    rng = np.random.default_rng(2)
    return {"age": rng.integers(0, 32, N), "pay": rng.random(N) * 80, "city": rng.choice(["x", "y", "z"], N)}


def oracle(seed: int | None) -> Arrays:
    return Arrays(COLUMNS, data(), seed=seed, budget=EpsilonDelta(900, 0.1))


def moves(found: ContingencyTable) -> list[np.ndarray]:
    """How far a deviation of each coefficient moves the cells of age and city."""
    noise = noise_of(found.contents)
    whole = []
    for part, deviations in noise.deviations.items():
        for i, deviation in enumerate(deviations):
            one = {key: np.zeros(len(own)) for key, own in noise.values.items()}
            one[part][i] = deviation
            whole.append(replace(noise, values=one).marginal((0, 2)))
    return whole


@pytest.mark.parametrize("method", ["cells", "marginals", "fourier-shift"])
def test_a_range_is_the_sum_of_its_cells(method: str) -> None:
    """Of numbers, of intervals and of one label; without noise it is the count of rows."""
    rows = data()
    found = contingency(oracle(None), NAMES, [["age", "pay", "city"]], method, bins=8, spend=Rho(900))
    bins = found.count({"city": "y", "pay": (20, 50)})
    true = np.sum((rows["city"] == "y") & (rows["pay"] >= 20) & (rows["pay"] < 50))
    assert bins.value == pytest.approx(true, abs=0.5)
    marginal = found.marginal(["pay", "city"])
    assert bins.value == pytest.approx(float(marginal.values[2:5, 1].sum()))
    assert found.count({"pay": (0, 80)}).value == pytest.approx(N, abs=0.5)


def test_the_standard_error_is_that_of_the_sum() -> None:
    """Against the covariance of the cells, written out from the coefficients; the sum of cells' variances is not it."""
    found = contingency(oracle(1), NAMES, [["age", "city"]], "fourier-shift", bins=32, ranges=["age"], spend=Rho(0.5))
    noise, places, whole = noise_of(found.contents), (0, 2), moves(found)
    for low, high, city in ((3, 20, 1), (0, 31, 0), (7, 7, 2)):
        moved = [own[low : high + 1, city].sum() for own in whole]
        count = found.count({"age": (low, high), "city": "xyz"[city]})
        assert count.standard_error == pytest.approx(math.sqrt(np.sum(np.square(moved))))
    cells = variance(noise, places)[3:21, 1].sum() ** 0.5
    assert found.count({"age": (3, 20), "city": "y"}).standard_error < 0.8 * cells


def test_noise_divided_for_ranges_is_less_in_them() -> None:
    """Over all ranges of 32 cells a quarter less variance, or better, than divided for cells; of cells it is more.

    So it is of pairs with an attribute that is not ranged.
    """
    mean, cells = {}, {}
    for ranges in (None, ["age"]):
        found = contingency(
            oracle(1), NAMES, [["age", "city"]], "fourier-shift", bins=32, weights="variance", ranges=ranges,
            spend=Rho(0.5),
        )  # fmt: skip
        ends = list(itertools.combinations_with_replacement(range(32), 2))
        errors = [found.count({"age": own, "city": "y"}).standard_error for own in ends]
        mean[ranges is None] = float(np.mean(np.square(errors)))
        cells[ranges is None] = float(variance(noise_of(found.contents), (0, 2)).mean())
    assert mean[False] < 0.75 * mean[True]
    assert cells[False] > 1.2 * cells[True]


def test_errors_of_ranges_are_as_foreseen() -> None:
    """60 draws of 12 ranges, in units of their covariance: 720 squares of mean 1, within 6 standard errors."""
    rows = data()
    spans = [(low, low + 7) for low in range(0, 32, 8)]
    asked = [{"age": span, "city": city} for span in spans for city in "xyz"]
    true = [np.sum((rows["age"] >= a) & (rows["age"] <= b) & (rows["city"] == c)) for a, b in spans for c in "xyz"]
    db, errors = oracle(5), []
    for _ in range(60):
        found = contingency(db, NAMES, [["age", "city"]], "fourier-shift", bins=32, ranges=["age"], spend=Rho(0.1))
        errors.append(np.array([found.count(where).value for where in asked]) - true)
    sums = np.stack([own.reshape(4, 8, 3).sum(axis=1).ravel() for own in moves(found)])
    covariance = sums.T @ sums
    assert np.sqrt(np.diag(covariance)) == pytest.approx([found.count(where).standard_error for where in asked])
    square = float(np.mean(np.linalg.solve(np.linalg.cholesky(covariance), np.array(errors).T) ** 2))
    assert square == pytest.approx(1, abs=6 * math.sqrt(2 / 720))
    assert square * (4 / 3) ** 2 > 1 + 6 * math.sqrt(2 / 720)  # the control: noise a third larger


def test_other_tables_have_independent_cells() -> None:
    """Of cells and of marginals the variances of the chosen cells add up."""
    for method in ("cells", "marginals"):
        found = contingency(oracle(1), NAMES, [["age", "city"]], method, bins=4, spend=Rho(0.5))
        own = counted(
            found.contents.marginal((0,)), noise_of(found.contents), (0,), [np.array([True, True, False, False])]
        )
        assert own.standard_error == pytest.approx(variance(noise_of(found.contents), (0,))[:2].sum() ** 0.5)


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (("x", "y"), ("x", "z")),
        (("x", "y"), "q"),
        ((1, 2, 3), (4, 9)),
        ((1, 2, 3), ("a", 2)),
        ((1, 2, 3), (1, 2, 3)),
        (((0.0, 5.0), (5.0, 10.0)), (0, 7)),
        (((0.0, 5.0), (5.0, 10.0)), 3),
    ],
)
def test_what_is_no_range_is_refused(labels: tuple[object, ...], wanted: object) -> None:
    """Categories have no order; a range holds whole cells, and at least one."""
    with pytest.raises(QuestionError) as refused:
        picked("a", labels, wanted)
    assert refused.value.code == "bad-parameter"


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.int8])
def test_numbers_of_numpy_are_numbers(kind: type[np.number]) -> None:
    """As labels and as ends, in arrays too; what is no cell is refused as Python's number is."""
    intervals, single = [(0.0, 10.0), (10.0, 20.0), (20.0, 30.0)], [1, 2, 5]
    for ends in ((kind(0), kind(20)), [kind(0), kind(20)], np.array([0, 20], dtype=kind)):
        assert picked("age", intervals, ends).tolist() == [True, True, False]
    assert picked("age", intervals, (kind(10), kind(20))).tolist() == [False, True, False]
    assert picked("size", single, kind(2)).tolist() == [False, True, False]
    for labels, wanted in ((intervals, kind(3)), (intervals, (kind(0), kind(9))), (single, kind(3))):
        with pytest.raises(QuestionError) as caught:
            picked("age", labels, wanted)
        assert caught.value.code == "bad-parameter"
        with pytest.raises(QuestionError) as plain:
            picked("age", labels, wanted.tolist() if isinstance(wanted, np.generic) else tuple(map(float, wanted)))
        assert str(plain.value) == str(caught.value)


def test_ranges_are_of_ordered_attributes_and_of_coefficients() -> None:
    """Others are refused for free; auto takes coefficients. Days are ordered by their texts."""
    db = oracle(1)
    for more in ({"ranges": ["city"]}, {"ranges": ["absent"]}, {"ranges": ["age"], "method": "cells"}):
        with pytest.raises(QuestionError) as refused:
            contingency(db, NAMES, [["age", "city"]], spend=Rho(0.5), **more)
        assert refused.value.code == "bad-parameter"
    assert db.asked == []
    found = contingency(db, NAMES, [["age", "city"]], ranges=["age"], spend=Rho(0.5))
    assert found.method == "fourier-shift"
    for where in ({}, {"pay": (0, 80)}, {"age": (0, 3), "absent": 1}, [("age", 1)]):
        with pytest.raises(QuestionError):
            found.count(where)
    days = (("2026-01-01", "2026-02-01"), ("2026-02-01", "2026-03-01"))
    assert picked("day", days, ("2026-01-01", "2026-02-01")).tolist() == [True, False]
    assert picked("day", days, ("2026-01-01", "2026-03-01")).tolist() == [True, True]
