"""Stein's estimate: the trace is the one written out, and the risk is, in the mean, the distance from the truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sulq.release.tables.fitting import FitTarget, descended, freedom, moved, risk, signs
from sulq.release.tables.interactions import vectors
from tests.counts import count

SIZES = (2, 3, 2, 4)
PARTS = tuple(part for ways in (1, 2) for part in itertools.combinations(range(4), ways))
CELLS = math.prod(SIZES)


def truth() -> np.ndarray:
    """Rows of two kinds."""
    rng = np.random.default_rng(2)
    shares = sum(
        weight * np.einsum("a,b,c,d->abcd", *(rng.dirichlet(np.ones(size)) for size in SIZES)) for weight in (0.6, 0.4)
    )
    return 5000.0 * np.ravel(shares)


def fitted(noise: float, ease: float, seed: int | None) -> tuple[FitTarget, np.ndarray]:
    """A fit to coefficients with normal noise, of a strength."""
    own = vectors(SIZES, PARTS)
    exact = own.told(truth())
    drawn = 0.0 if seed is None else np.random.default_rng(seed).normal(0, noise, len(exact))
    zeros = np.zeros(len(exact))
    told = FitTarget(own, exact + drawn, np.full(len(exact), noise), np.full(len(exact), ease), zeros)
    _, flat = descended(told, zeros, np.full(CELLS, 5000.0 / CELLS))
    return told, flat


def stein(told: FitTarget, flat: np.ndarray) -> tuple[float, float]:
    """The risk of a fit that is drawn to the even table, and its freedom."""
    probes = signs(len(told.values))
    still = np.zeros_like(probes)
    turned = moved(told, flat, probes, still, still)
    return risk(told, flat, probes, still, turned), freedom(told, probes, still, turned)


@pytest.mark.parametrize("ease", [1.0, 100.0, 10_000.0])
def test_the_trace_is_that_of_the_matrices(ease: float) -> None:
    """H (H + R)^(-1) of the covariances written out, to what probes tell."""
    told, flat = fitted(50.0, ease, 1)
    vector = np.stack([told.vectors.spread(each) for each in np.eye(len(told.values))])
    sums = vector @ flat
    bent = (vector * flat) @ vector.T - np.outer(sums, sums) / flat.sum()
    exact = float(np.trace(np.linalg.solve(bent + np.diag(told.ease), bent)))
    assert stein(told, flat)[1] == pytest.approx(exact, abs=3.0)
    assert ease < 10_000 or exact < len(sums) - 6.0  # the control: it is not the number of coefficients


def test_the_risk_is_the_distance_in_the_mean() -> None:
    """Of many draws, at three strengths: within 6 standard errors and what probes miss; the plain gaps are not it."""
    runs = count("risks of a fit", short=24, long=1000)
    exact = vectors(SIZES, PARTS).told(truth())
    for ease in (10.0, 300.0, 3000.0):
        found, far, gaps = [], [], []
        for seed in range(runs):
            told, flat = fitted(50.0, ease, seed)
            here = told.vectors.told(flat)
            found.append(stein(told, flat)[0])
            far.append(float((((here - exact) / told.noise) ** 2).sum()))
            gaps.append(float((((here - told.values) / told.noise) ** 2).sum()))
        slack = 6 * float(np.std(np.subtract(found, far))) / math.sqrt(runs) + 1.5
        assert np.mean(found) == pytest.approx(np.mean(far), abs=slack)
        assert abs(np.mean(gaps) - np.mean(far)) > slack or ease > 1000


def test_what_is_told_without_noise_has_no_risk_but_its_freedom() -> None:
    """A fit that meets the told coefficients has the risk of these themselves, their number."""
    told, flat = fitted(50.0, 1e-3, None)
    assert stein(told, flat)[0] == pytest.approx(len(told.values), abs=1.5)
    strong, other = fitted(50.0, 1e5, None)
    assert stein(strong, other)[0] > 2 * len(told.values)  # the control: drawn to evenness it is far off


def test_a_second_step_takes_in_what_both_leave() -> None:
    """Drawn to where the first step ended, r and r again: the freedom is tr 1 - (R (H + R)^-1)^2, more than of one."""
    told, flat = fitted(50.0, 2000.0, 3)
    probes = signs(len(told.values))
    still = np.zeros_like(probes)
    first = moved(told, flat, probes, still, still)
    second = moved(told, flat, probes, first, first)
    vector = np.stack([told.vectors.spread(each) for each in np.eye(len(told.values))])
    sums = vector @ flat
    bent = (vector * flat) @ vector.T - np.outer(sums, sums) / flat.sum()
    left = np.linalg.solve(bent + np.diag(told.ease), np.diag(told.ease))
    for turned, base, rest in ((first, still, left), (second, first, left @ left)):
        exact = len(sums) - float(np.trace(rest))
        assert freedom(told, probes, base, turned) == pytest.approx(exact, abs=2.0)
    assert float(np.trace(left)) > float(np.trace(left @ left)) + 2.0  # the control
