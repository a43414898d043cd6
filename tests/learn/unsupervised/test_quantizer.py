"""k-means on points that are nobody's: finds what is there, takes any weights, is the same every time."""

from __future__ import annotations

import numpy as np

from sulq.learn.unsupervised.quantizer import cover, distances, nearest_of, quantize


def test_it_finds_groups_that_lie_apart() -> None:
    """Four groups of different weight have their weighted means for centres."""
    rng = np.random.default_rng(4)
    centres = np.array([[0.0, 0], [5, 0], [0, 5], [9, 9]])
    points = np.concatenate([centre + 0.1 * rng.normal(size=(30, 2)) for centre in centres])
    weights = rng.uniform(0.1, 1, len(points))
    found = quantize(points, weights, 4)
    order = nearest_of(centres, found)
    assert sorted(order) == [0, 1, 2, 3]
    for i in range(4):
        mine = slice(30 * i, 30 * i + 30)
        assert np.allclose(found[order[i]], np.average(points[mine], axis=0, weights=weights[mine]))
    assert np.array_equal(found, quantize(points, weights, 4))


def test_ties_go_to_the_lowest_index() -> None:
    """As for rows (S0.13)."""
    assert nearest_of(np.array([[0.0]]), np.array([[1.0], [-1.0], [1.0]])).tolist() == [0]
    assert distances(np.array([[0.0, 3.0]]), np.array([[4.0, 0.0]])).tolist() == [[25.0]]


def test_too_few_points_and_no_weight_are_no_errors() -> None:
    """Fewer points than centres, equal points, weights of zero: k finite centres all the same."""
    for points, weights in ((np.zeros((1, 3)), [1.0]), (np.ones((5, 2)), [0.0] * 5), (np.eye(2), [1.0, 0.0])):
        found = quantize(points, np.array(weights), 4)
        assert found.shape == (4, points.shape[1])
        assert np.isfinite(found).all()


def test_a_box_is_covered() -> None:
    """The centres of a long box stand in a row along it; those of a point are the point."""
    found = cover(np.array([1.0, 0.0]), np.array([8.0, 0.1]), 4)
    assert np.allclose(np.sort(found[:, 0]), [-5, -1, 3, 7], atol=0.5)
    assert np.allclose(cover(np.array([2.0]), np.array([0.0]), 3), 2.0)
