"""Nets cover: every direction is within the promised angle of one of theirs, up to sign."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sulq.errors import QuestionError
from sulq.release.directions import Net, covers, net, relaxed, signs_cosine, spiral
from tests.figures import figure

POINTS = 100_000


def farthest(vectors: np.ndarray, seed: int = 0) -> float:
    """The largest sine, over many random directions, to the nearest of some vectors up to sign."""
    points = np.random.default_rng(seed).normal(size=(POINTS, vectors.shape[1]))
    points /= np.linalg.norm(points, axis=1)[:, None]
    nearest = min(float(np.abs(part @ vectors.T).max(axis=1).min()) for part in np.array_split(points, 20))
    return math.sqrt(1 - nearest**2)


@pytest.mark.parametrize(
    ("dimension", "sine", "size"),
    [(2, 0.375, 5), (2, 0.05, 32), (3, 0.3, 40), (3, 0.45, 20), (4, 0.51, 40), (5, 0.54, 121), (6, 0.56, 364)],
)
def test_the_covering_radius_S3_26(dimension: int, sine: float, size: int) -> None:
    """No one of 1e5 random directions is further off than the net says, nor the net than asked for; it is small."""
    made = net(dimension, sine)
    assert len(made.vectors) <= size
    assert made.sine <= sine + 1e-9
    assert np.linalg.norm(made.vectors, axis=1) == pytest.approx(np.ones(len(made.vectors)))
    assert 0.8 * made.sine < farthest(made.vectors) <= made.sine + 1e-9
    assert farthest(made.vectors[::2]) > made.sine  # the control: half of it
    figure(
        "S3.26",
        f"farthest of 1e5 directions, k = {dimension}, {size} planes",
        farthest(made.vectors),
        f"at most {sine}",
    )


def test_angles_are_spaced_twice_the_radius_S3_26() -> None:
    """In the plane 2 arcsin(3g/4) apart at most, as evenly as half a turn allows."""
    for g in (0.1, 0.3, 0.5, 0.9):
        made = net(2, 0.75 * g).vectors
        turns = np.arctan2(made[:, 1], made[:, 0])
        spaces = np.diff([*turns, math.pi])
        assert spaces == pytest.approx(np.full(len(made), spaces[0]))
        assert spaces[0] <= 2 * math.asin(0.75 * g) + 1e-9
        assert len(made) == max(2, math.ceil(math.pi / (2 * math.asin(0.75 * g))))


def test_the_radius_of_signs_is_attained() -> None:
    """At y_j in proportion to sqrt(j) - sqrt(j - 1) all best cosines agree, and are the least."""
    for dimension in (2, 3, 4, 5, 6):
        roots = np.sqrt(np.arange(dimension + 1))
        worst = np.diff(roots) / np.linalg.norm(np.diff(roots))
        cosine = signs_cosine(dimension)
        if dimension > 3:
            made = net(dimension, 0.7)
            assert float(np.abs(made.vectors @ worst).max()) == pytest.approx(cosine)
            assert made.cosine == cosine
            assert len(made.vectors) == (3**dimension - 1) // 2
        assert np.cumsum(worst) / np.sqrt(np.arange(1, dimension + 1)) == pytest.approx(np.full(dimension, cosine))


def test_caps_that_cover_are_told_from_caps_that_do_not() -> None:
    """The check of rims agrees with random directions: yes only where all are covered, no where a hole is found."""
    for number in (5, 9, 16, 30):
        for vectors in (spiral(number), relaxed(number)):
            radius = farthest(vectors, 3)
            assert not covers(vectors, math.sqrt(1 - (radius - 0.002) ** 2))  # a hole was seen
            assert covers(vectors, math.sqrt(1 - (radius + 0.03) ** 2))
    assert not covers(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), 0.1)  # the third axis


def test_nearest_is_up_to_sign() -> None:
    """A negative cosine says that the opposite of the direction is the nearest (E33)."""
    made = Net(np.eye(2), 0.7)
    places, cosines = made.nearest(np.array([[3.0, 1.0], [0.0, -2.0]]))
    assert places.tolist() == [0, 1]
    assert cosines == pytest.approx([3 / math.sqrt(10), -1.0])


def test_what_is_too_fine_is_refused() -> None:
    """Each refusal names a distance or a dimension that fits."""
    for dimension, sine, said in ((2, 1e-4, "0.001"), (3, 0.05, "0.12"), (4, 0.5, "0.507"), (9, 0.9, "dimension=2")):
        with pytest.raises(QuestionError) as refusal:
            net(dimension, sine)
        assert refusal.value.code == "too-large"
        assert said in str(refusal.value)
    assert len(net(4, 0.507).vectors) == 40
    assert len(net(1, 0.5).vectors) == 1
