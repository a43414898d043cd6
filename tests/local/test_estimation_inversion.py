"""Estimators against enumeration: unbiased for every record, with exactly the variance that is told."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sulq.local import METHODS, Collector, Respondent
from sulq.local.estimation import inversion, transformed
from sulq.local.methods import Response
from tests.counts import count

SIZES = [(2,), (5,), (2, 3), (4, 2)]


def reports_of(response: Response) -> np.ndarray:
    reports = [report for report, _ in response.pmf(0)]
    return np.array(reports)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("method", METHODS)
def test_estimates_are_unbiased_with_the_told_variance_S4_19(method: str, sizes: tuple[int, ...]) -> None:
    """By enumeration of every report of every record, for indicators and for random functions."""
    response = METHODS[method].of(sizes, Fraction(3, 2))
    inverse = inversion(response)
    cells = math.prod(sizes)
    rng = np.random.default_rng(4)
    table = np.column_stack([np.eye(cells), rng.normal(size=(cells, 2)), np.ones(cells)])
    all_reports = reports_of(response)
    values = np.array([inverse.counts(inverse.tally(report[None]), 1) @ table for report in all_reports])
    variances, jumps = inverse.spread(table)
    for cell in range(cells):
        chances = np.array([float(chance) for _, chance in response.pmf(cell)])
        means = chances @ values
        assert means == pytest.approx(table[cell], abs=1e-9)
        assert chances @ (values - table[cell]) ** 2 == pytest.approx(variances[cell], rel=1e-9, abs=1e-9)
        if method != "oue":  # there a bit is a summand
            assert (np.abs(values - table[cell]).max(axis=0) <= jumps + 1e-9).all()


def closed(method: str, cells: int, epsilon: float) -> float:
    """The variance of one report's estimate of a value nobody has, in closed form [S4.19; SPEC section 10]."""
    e = math.exp(epsilon)
    if method == "krr":
        return (e + cells - 2) / (e - 1) ** 2
    if method == "oue":
        return 4 * e / (e - 1) ** 2
    return ((e + 1) / (e - 1)) ** 2


def measured(method: str, cells: int, epsilon: float, runs: int, people: int) -> tuple[float, float]:
    """Mean square of the estimates of values that nobody has, times the number of reports, and its standard error."""
    reports = Respondent(cells, epsilon=epsilon, method=method).randomise(np.zeros(runs * people, dtype=np.int64))
    collector = Collector(cells, epsilon=epsilon, method=method)
    found = []
    for run in range(runs):
        values = np.array(list(collector.frequencies(reports[run * people : (run + 1) * people]).value.values()))
        found.append(float((values[1:] ** 2).mean()) * people)
    return float(np.mean(found)), float(np.std(found, ddof=1)) / math.sqrt(runs)


@pytest.mark.parametrize("method", ["krr", "oue", "hadamard"])
def test_variances_are_the_closed_form(method: str) -> None:
    """K = 64, epsilon 1: within 5% of the formula and within 5.5 standard errors of it, which are at most 5%."""
    runs = count("local: runs of 1,000 reports for variances", short=700, long=4_000)
    found, error = measured(method, 64, 1.0, runs, 1000)
    expected = closed(method, 64, 1.0)
    assert 5.5 * error < 0.05 * expected
    assert abs(found - expected) < 5.5 * error
    other = closed(method, 64, 1.1)  # control: what epsilon 1.1 would give is told apart
    assert abs(found - other) > 5.5 * error


@pytest.mark.parametrize("method", ["krr", "oue", "hadamard"])
@pytest.mark.parametrize("cells", [4, 64, 1000])
def test_the_told_variance_is_the_closed_form(method: str, cells: int) -> None:
    """To 1e-9, for a value that nobody has."""
    own = np.zeros((cells, 1))
    own[0] = 1
    variances, _ = inversion(METHODS[method].of((cells,), Fraction(1))).spread(own)
    assert variances[1, 0] == pytest.approx(closed(method, cells, 1.0), rel=1e-9)


def test_unary_and_hadamard_beat_kary_by_the_predicted_factor() -> None:
    """K = 64, epsilon 1: 5.95 and 4.68 times less variance, within 5.5 standard errors; at K = 4, the control, more."""
    found = {method: measured(method, 64, 1.0, 500, 1000) for method in ("krr", "oue", "hadamard")}
    for method, factor in (("oue", 5.95), ("hadamard", 4.68)):
        predicted = closed("krr", 64, 1.0) / closed(method, 64, 1.0)
        assert predicted == pytest.approx(factor, abs=0.005)
        (above, over), (below, under) = found["krr"], found[method]
        ratio = above / below
        error = ratio * math.hypot(over / above, under / below)
        assert abs(ratio - predicted) < 5.5 * error
        assert ratio > 4
    few = {method: measured(method, 4, 1.0, 300, 1000)[0] for method in ("krr", "oue", "hadamard")}
    assert few["krr"] < few["oue"] < few["hadamard"] * 1.05


def test_the_transform_is_its_own_inverse() -> None:
    """Twice the Walsh-Hadamard transform is the number of rows times the first."""
    rows = np.random.default_rng(2).normal(size=(16, 3))
    assert transformed(transformed(rows)) == pytest.approx(16 * rows)
    signs = transformed(np.eye(8))
    assert signs[3, 5] == (-1) ** (3 & 5).bit_count()


def test_tallies_add_up() -> None:
    """What is known of two batches is what is known of both."""
    rng = np.random.default_rng(6)
    for method, kind in METHODS.items():
        reports = Respondent(5, epsilon=1, method=method).randomise(rng.integers(0, 5, 1000))
        inverse = inversion(kind.of((5,), Fraction(1)))
        parts = inverse.tally(reports[:300]) + inverse.tally(reports[300:])
        assert (parts == inverse.tally(reports)).all()
