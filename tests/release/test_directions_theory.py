"""The papers' sizes for halfspaces, and what is wrong with the printed ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sulq import Epsilon, EpsilonDelta, Queries, Rho
from sulq.errors import QuestionError
from sulq.release.directions import (
    discretise,
    halfspace_n,
    projection_dimension,
    projection_failure,
    projections_for,
)
from tests.figures import figure


def test_the_dimension_S3_25() -> None:
    """18,528 dimensions for g = .5 and 451,542 for g = .1: no net has so many, so the dimension is a parameter."""
    assert projection_dimension(0.5, 0.1) == 18528
    assert projection_dimension(0.1, 0.1) == 451542
    for g in (0.5, 0.1):
        paper = 4 * math.log(8 / 0.1) / ((g / 16) ** 2 - (g / 16) ** 3)
        figure("S3.25", f"dimensions for g = {g}, failure .1", projection_dimension(g, 0.1), math.ceil(paper))
    assert projection_failure(0.5, 18528) <= 0.1 / 4 < projection_failure(0.5, 18527)
    assert projection_failure(0.5, 3) > 1  # at a dimension that has a net it says nothing
    with pytest.raises(QuestionError):
        projection_dimension(0.0, 0.1)


def test_cosines_after_a_projection_S3_25() -> None:
    """Renormalised, cosines are kept within about (1 - c^2)/sqrt(k): measured at k = 400."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50))
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    off = []
    for _ in range(400):
        matrix = rng.choice([-1.0, 1.0], size=(50, 400))
        px, py = x @ matrix, y @ matrix
        off.append(px @ py / (np.linalg.norm(px) * np.linalg.norm(py)) - x @ y)
    assert abs(np.mean(off)) < 5.5 * np.std(off) / 20
    assert np.std(off) == pytest.approx((1 - (x @ y) ** 2) / 20, rel=0.2)


def test_a_projection_does_not_land_on_the_sphere_E34() -> None:
    """Printed: xM/sqrt(k) is on the unit sphere. It is so only on average: lengths differ widely, sides do not."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=10)
    x /= np.linalg.norm(x)
    matrices = rng.choice([-1.0, 1.0], size=(3000, 10, 2))
    lengths = np.linalg.norm(x @ matrices / math.sqrt(2), axis=1)
    assert np.mean(lengths**2) == pytest.approx(1, abs=0.1)
    assert lengths.min() < 0.3
    assert lengths.max() > 1.7
    # Also: points with cos <= g, printed without a bar, would be free to fall either way however deep they lie.
    assert np.cos(math.pi) <= 0.1 < abs(np.cos(math.pi))


def test_the_sine_takes_a_halfspace_for_its_opposite_E33() -> None:
    """Printed: distance is the sine of the angle. Between y and -y it is 0, and their fractions are complementary."""
    y = np.array([1.0, 0.0])
    cosine = float(y @ -y)
    assert math.sqrt(1 - cosine**2) == 0
    points = np.array([[1.0, 0.2], [0.5, -0.5], [0.7, 0.1], [-0.1, 0.9]])
    assert (points @ y >= 0).mean() == 0.75
    assert (points @ -y >= 0).mean() == 0.25


def test_a_union_bound_over_all_directions_needs_bd_E36() -> None:
    """Printed: m = O(ln(1/d) + ln(bd)). Over 2^(bd) directions a median of so few fails; 8(ln(1/d) + bd ln 2) do."""
    bits, columns, beta = 8, 10, 0.05
    m = projections_for(beta, bits=bits, columns=columns)
    assert m == math.ceil(8 * (math.log(20) + 80 * math.log(2)))

    def fails(number: float) -> float:
        return 2.0 ** (bits * columns) * math.exp(-number / 8)

    assert fails(m) <= beta
    assert fails(8 * (math.log(1 / beta) + math.log(bits * columns))) > 1e20
    assert projections_for(beta, queries=100) == math.ceil(8 * math.log(2000)) == 61


def test_the_number_of_rows_E37() -> None:
    """Printed: (ln(1/d) + ln m + (k-1) ln(1/g) + N)/(acc^2 a) rows: with so few some count is nearly always off."""
    m, net, accuracy, beta, epsilon, g = 25, 5, 0.5, 0.05, 1.0, 0.5
    count = m * net

    def fails(n: float) -> float:
        """That one of N Laplace noises of scale N/epsilon passes accuracy n; exactly."""
        return 1 - (1 - math.exp(-accuracy * n * epsilon / count)) ** count

    ours = halfspace_n(count, accuracy, beta, spend=Epsilon(epsilon))
    assert ours == math.ceil(count * math.log(count / beta) / (epsilon * accuracy))
    assert fails(ours) <= beta
    assert fails(ours - 300) > beta
    printed = (math.log(1 / beta) + math.log(m) + math.log(1 / g) + count) / (accuracy**2 * epsilon)
    assert math.log(count / beta) > 1 / accuracy  # where the printed one is too small
    assert fails(printed) > 0.99


def test_gaussian_noise_needs_fewer_rows() -> None:
    """At Rho the counts cost their square root; (1, 1e-6) as the rho it holds."""
    n = halfspace_n(100, 0.1, 0.05, spend=Rho(0.02))
    scale = math.sqrt(100 / 0.04)
    rng = np.random.default_rng(0)
    worst = np.abs(rng.normal(0, scale, (4000, 100))).max(axis=1)
    failed = float((worst > 0.1 * n).mean())
    assert 0.03 < failed < 0.07
    assert halfspace_n(100, 0.1, 0.05, spend=EpsilonDelta(1, 1e-6)) < halfspace_n(100, 0.1, 0.05, spend=Epsilon(1)) / 2
    for wrong in ((0, 0.1, 0.1), (5, 1.0, 0.1), (5, 0.1, 0.0)):
        with pytest.raises(QuestionError):
            halfspace_n(*wrong, spend=Epsilon(1))
    with pytest.raises(QuestionError):
        halfspace_n(5, spend=Queries(3))


def test_discretised_directions_S3_24() -> None:
    """Each coordinate in b bits: 2^(bd) directions at most, and the angle moves by about 2^-b."""
    rng = np.random.default_rng(0)
    for y in rng.normal(size=(50, 6)):
        found = discretise(y, 8)
        assert found.min() >= -128
        assert found.max() <= 127
        cosine = found @ y / (np.linalg.norm(found) * np.linalg.norm(y))
        assert math.sqrt(max(1 - cosine**2, 0)) < 0.02
    assert len({tuple(discretise(y, 1)) for y in rng.normal(size=(500, 3))}) <= 2**3
