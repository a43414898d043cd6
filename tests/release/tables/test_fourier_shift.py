"""The constant of fourier-shift: the paper's quantile, enough, and known before anything is asked."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.answers.released import Noise
from sulq.language.law import GaussianLaw, LaplaceLaw
from sulq.release.tables.design import CoefficientDesign
from sulq.release.tables.fourier import _chernoff, _log_mean_laplace, gamma_quantile, shift
from sulq.release.tables.interactions import inverse, lengths, product
from sulq.release.tables.noisy_tables import Coefficients
from tests.stub import noise as drawn


@pytest.mark.parametrize(("size", "printed"), [(4, 2.51), (16, 1.67), (64, 1.31)])
def test_quantile_of_the_sum_S3_21(size: int, printed: float) -> None:
    """The 99% quantile of a Gamma variable over its mean."""
    assert gamma_quantile(size, 0.99) / size == pytest.approx(printed, abs=0.006)


@pytest.mark.parametrize("k", [5, 10])
def test_the_constant_for_even_weights_S3_21(k: int) -> None:
    """The quantile of |B| exponential variables of mean |B|/epsilon, and a unit each; 1/sqrt 2 of it (E01) is not.

    The sum of the noise drawn passes it in one run of twenty, and .7 of it in a third or more.
    """
    pairs = tuple((i, j) for i in range(k) for j in range(i + 1, k))
    design = CoefficientDesign.of(pairs, (2,) * k, "even", pure=True)
    size = 1 + k + len(pairs)
    assert design.count == size
    noise = [Noise(LaplaceLaw(Fraction(size)), 1, size)]  # epsilon 1
    constant = shift(design.read([(np.zeros(size), noise)]), 0.05)
    assert constant == pytest.approx(gamma_quantile(size, 0.95) * size + size, rel=1e-3)
    sums = np.abs(drawn(noise[0].law, np.random.default_rng(k), (20_000, size))).sum(axis=1)
    assert np.mean(sums > constant - size) == pytest.approx(0.05, abs=0.0082)  # 5.3 standard errors
    assert np.mean(sums > 0.7 * constant) > 0.33
    assert sums.mean() == pytest.approx(size**2, rel=0.01)  # |B|^2/epsilon: 3136 for ten


@pytest.mark.parametrize("sizes", [(2,) * 10, (3, 4, 2, 5)])
def test_the_constant_for_uneven_noise(sizes: tuple[int, ...]) -> None:
    """By the law on a grid: passed in at most one run of twenty, and 3% less of it in more."""
    pairs = tuple((i, j) for i in range(len(sizes)) for j in range(i + 1, len(sizes)))
    design = CoefficientDesign.of(pairs, sizes, "best", pure=True)
    found = design.read([(np.zeros(design.count), [Noise(LaplaceLaw(Fraction(3000)), 1, design.count)])])
    each = np.concatenate(
        [
            own * np.abs(product(ours)).max(axis=1) * np.prod(ours) / lengths(ours)
            for part, own in found.deviations.items()
            for ours in [tuple(sizes[i] for i in part)]
        ]
    )
    constant = shift(found, 0.05) - design.count
    sums = np.random.default_rng(5).exponential(1, (100_000, len(each))) @ each / np.sqrt(2)
    assert 0.04 < np.mean(sums > constant) < 0.05 + 0.0037  # 5.3 standard errors
    assert np.mean(sums > 0.97 * constant) > 0.06
    assert _chernoff(each, 0.05, _log_mean_laplace, 1.4) > 1.08 * constant  # what was taken before is loose


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (3, 4, 2)])
@pytest.mark.parametrize("weights", ["even", "best"])
def test_a_shifted_table_is_seldom_negative(law: str, sizes: tuple[int, ...], weights: str) -> None:
    """Of an empty table's noisy coefficients: with the constant few tables have a negative cell, without it most."""
    marginals = tuple((i, j) for i in range(len(sizes)) for j in range(i))
    design = CoefficientDesign.of(tuple(tuple(sorted(own)) for own in marginals), sizes, weights, pure=law == "laplace")
    kind = LaplaceLaw if law == "laplace" else GaussianLaw
    noise = [Noise(kind(Fraction(30)), 1, design.count)]
    rng = np.random.default_rng(6)
    constant = shift(design.read([(np.zeros(design.count), noise)]), 0.05)
    lowest = [
        _table(design.read([(drawn(noise[0].law, rng, (design.count,)) * 1.0, noise)])).min() * np.prod(sizes)
        for _ in range(400)
    ]
    assert np.mean(np.array(lowest) + constant < 0) < 0.05 + 0.06  # 5.3 standard errors
    assert np.mean(np.array(lowest) < 0) > 0.9
    assert constant < 40 * 30 * design.count  # of some use


def _table(found: Coefficients) -> np.ndarray:
    whole = np.zeros(found.sizes)
    for part, values in found.values.items():
        place = tuple(slice(1, None) if i in part else 0 for i in range(len(found.sizes)))
        whole[place] = values.reshape([found.sizes[i] - 1 for i in part])
    return inverse(whole)


def test_the_constant_does_not_see_the_numbers_T6() -> None:
    """Whatever was read, the constant is the same; it follows the law alone."""
    design = CoefficientDesign.of(((0, 1), (1, 2)), (2, 2, 2), "even", pure=True)
    noise = [Noise(LaplaceLaw(Fraction(50)), 1, design.count)]
    rng = np.random.default_rng(1)
    found = {shift(design.read([(rng.normal(0, 1e4, design.count), noise)]), 0.05) for _ in range(5)}
    assert len(found) == 1
    wider = [Noise(LaplaceLaw(Fraction(100)), 1, design.count)]
    assert shift(design.read([(np.zeros(design.count), wider)]), 0.05) > 1.9 * found.pop()
