"""Quasi-Newton steps: they find the least point of a convex function, and never go up."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.release.tables.fitting import least


def test_the_least_point_of_a_bent_function() -> None:
    """Log of sums of exponentials, a quarter of a million times as curved one way as the other, against the slope."""
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(40, 12)) * np.geomspace(1, 500, 12)

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        raised = np.exp(matrix @ x - (top := float((matrix @ x).max())))
        mean = raised @ matrix / raised.sum()
        return top + float(np.log(raised.sum())) + 0.5 * float(x @ x), mean + x

    start = np.ones(12)
    found, gained = least(function, start, gain=1e-14, steps=2000)
    assert np.abs(function(found)[1]).max() < 1e-3
    assert gained == pytest.approx(function(start)[0] - function(found)[0])
    assert np.abs(function(start)[1]).max() > 1  # the control: the start is not it


def test_steps_never_go_up() -> None:
    """Ended after any number of steps it is no worse than before; at the least point it stays."""

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        return float((x**4).sum()), 4 * x**3

    values = [function(least(function, np.full(3, 9.0), gain=0.0, steps=steps)[0])[0] for steps in range(6)]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]
    assert np.array_equal(least(function, np.zeros(3), gain=0.0, steps=5)[0], np.zeros(3))
