"""Variances from noisy eigenvalues: what noise adds on average is taken away, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from sulq import Epsilon
from sulq.learn import PCA
from sulq.learn.unsupervised.components import _falling, enlarged, variances
from tests.learn.cases import opened
from tests.learn.noised import Noised, columns
from tests.learn.unsupervised.test_components import NAMES, UNIT, table

SPECTRA = {
    "one direction": [5.0, *[0.2] * 9],
    "all alike": [1.0] * 6,
    "falling": [3.0, 1.5, 1.0, 0.6],
    "nothing": [0.0] * 8,
    "of one": [2.0],
}


def noisy(spectrum: np.ndarray, noise: float, times: int) -> np.ndarray:
    """Eigenvalues of so many matrices of this spectrum with noise, the largest first; the same at each run."""
    rng, d = np.random.default_rng(12), len(spectrum)
    drawn = noise * rng.normal(size=(times, d, d))
    several = np.diag(spectrum) + np.triu(drawn) + np.transpose(np.triu(drawn, 1), (0, 2, 1))
    return np.linalg.eigvalsh(several)[:, ::-1]


def test_without_noise_eigenvalues_stay_what_they_are() -> None:
    """But for what is below zero."""
    assert variances(np.array([3.0, 1.0, -0.5]), 0.0).tolist() == [3.0, 1.0, 0.0]
    assert variances(np.zeros(3), 0.0).tolist() == [0.0] * 3


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("noise", [0.02, 0.2])
def test_what_noise_adds_is_taken_away(name: str, noise: float) -> None:
    """On average over many matrices the largest variance is nearer to the truth than the eigenvalue, or as near.

    Control: the eigenvalue of a matrix of noise alone is two deviations times the root of its size.
    """
    truth = np.array(SPECTRA[name])
    seen = noisy(truth, noise, 120)
    told = np.array([variances(each, noise) for each in seen])
    before, after = (abs(found[:, 0].mean() - truth[0]) for found in (seen, told))
    sampling = 4 * seen[:, 0].std() / np.sqrt(len(seen))
    assert after < before / 2 + sampling
    assert (np.diff(told, axis=1) <= 1e-12).all()
    assert (told >= 0).all()
    if name == "nothing":
        assert before == pytest.approx(2 * noise * np.sqrt(8), rel=0.25)
        assert after < before / 2


def test_numbers_that_rise_are_averaged() -> None:
    """The nearest that never rise, of the same sum."""
    assert _falling(np.array([3.0, 2.0, 1.0])).tolist() == [3.0, 2.0, 1.0]
    assert _falling(np.array([1.0, 3.0, 2.0, 0.0])).tolist() == [2.0, 2.0, 2.0, 0.0]
    assert _falling(np.array([1.0, 2.0, 6.0])).tolist() == [3.0] * 3


def test_a_spread_is_believed_as_far_as_it_stands_out() -> None:
    """All of it without an error, nothing of a gap that its error explains, never less than the matrix has."""
    found = np.array([3.0, 1.0])
    assert enlarged(found, 8.0, 0.0).tolist() == [6.0, 2.0]
    assert enlarged(found, 8.0, 2.0).sum() == pytest.approx(4 + 4 * (1 - 0.25))
    assert enlarged(found, 8.0, 4.0).tolist() == enlarged(found, 2.0, 0.1).tolist() == [3.0, 1.0]
    assert enlarged(np.zeros(2), 5.0, 1.0).tolist() == [0.0, 0.0]


def test_explained_variance_is_not_too_large_for_noise() -> None:
    """Ten equal variances, epsilon .3: on average within 6%, where the noisy matrix's first is 13% too large."""
    rng = np.random.default_rng(4)
    points = np.clip(0.5 + 0.2 * rng.normal(size=(10_000, 10)), 0, 1)
    truth = np.linalg.eigvalsh(np.cov(points.T, bias=True))[-1]
    with opened(UNIT, table(points)) as db:
        models = [PCA(1).fit(columns(Noised(db, seed), NAMES), spend=Epsilon(0.3)) for seed in range(12)]
    assert np.mean([model.explained_variance_[0] for model in models]) == pytest.approx(truth, rel=0.06)
    assert np.mean([model.eigenvalues_[0] for model in models]) > 1.1 * truth
