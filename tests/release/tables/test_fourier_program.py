"""The linear program: a vertex, nearest to the noisy coefficients, whatever they are."""

from __future__ import annotations

import itertools

import highspy
import numpy as np
import pytest

from sulq.release.tables import fourier as linear
from sulq.release.tables.design import CoefficientDesign
from sulq.release.tables.fourier import STRATEGIES, fitted
from sulq.release.tables.interactions import spread


def program(sizes: tuple[int, ...], ways: int) -> np.ndarray:
    """The matrix of all marginals of so many attributes: a column for each coefficient."""
    design = CoefficientDesign.of(tuple(itertools.combinations(range(len(sizes)), ways)), sizes, "even", pure=True)
    return np.concatenate([spread(part, tuple(range(len(sizes))), sizes) for part in design.parts]).T


def far(matrix: np.ndarray, asked: np.ndarray, cells: np.ndarray) -> float:
    """How far a table's coefficients are from those asked for, at most."""
    return float(np.abs(asked - cells @ matrix).max())


@pytest.mark.parametrize(("sizes", "ways"), [((2,) * 6, 2), ((2,) * 7, 3), ((3, 2, 4, 3), 2)])
@pytest.mark.parametrize("scale", [0.0, 3.0, 300.0])
def test_the_fit_is_a_vertex_and_nearest(sizes: tuple[int, ...], ways: int, scale: float) -> None:
    """At most |B| cells are not zero, none is negative, and no table found by another solver is nearer."""
    scipy = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(18)
    matrix = program(sizes, ways)
    count = matrix.shape[1]
    true = rng.poisson(2.0, len(matrix)) * 1.0
    asked = true @ matrix + rng.laplace(0, 1, count) * scale
    found = fitted(matrix, asked, np.ones(count))
    assert found.min() >= 0
    assert np.count_nonzero(found) <= count
    both = np.concatenate([np.hstack([matrix.T, -np.ones((count, 1))]), np.hstack([-matrix.T, -np.ones((count, 1))])])
    cost = np.append(np.zeros(len(matrix)), 1.0)
    other = scipy.linprog(cost, A_ub=both, b_ub=np.append(asked, -asked), method="highs-ipm")
    assert far(matrix, asked, found) <= other.fun * (1 + 1e-5) + 1e-5
    assert far(matrix, asked, found) <= far(matrix, asked, true) + 1e-6  # Theorem 4 rests on this [S3.19]
    if scale < 300:  # the nearest tables are many: a point among them that is as near, but no vertex
        inside = interior(matrix, asked)
        assert far(matrix, asked, inside) <= other.fun * (1 + 1e-3) + 1e-3
        assert np.count_nonzero(inside > 1e-6) > count  # rounding it moves more than |B| cells


def interior(matrix: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """The same program by an interior point method that is not led to a vertex."""
    solver = highspy.Highs()
    for name, value in {"output_flag": False, "solver": "ipm", "run_crossover": "off", "presolve": "off"}.items():
        solver.setOptionValue(name, value)
    solver.passModel(linear._nearest(matrix * 1.0, asked))
    solver.run()
    return np.array(solver.getSolution().col_value)[: len(matrix)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_solver_gives_a_vertex(strategy: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of them is the one that gets there, the table is as near, and has at most |B| cells."""
    rng = np.random.default_rng(4)
    matrix = program((2,) * 6, 2)
    asked = rng.normal(0, 50, matrix.shape[1])
    best = fitted(matrix, asked, np.ones(matrix.shape[1]))
    monkeypatch.setattr(linear, "STRATEGIES", (strategy,))
    found = fitted(matrix, asked, np.ones(matrix.shape[1]))
    assert np.count_nonzero(found) <= matrix.shape[1]
    assert far(matrix, asked, found) == pytest.approx(far(matrix, asked, best), rel=1e-5)


def test_a_solver_that_fails_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that stops before the optimum leaves it to the next; where all do there is no table, and no error."""
    matrix = program((2,) * 6, 2)
    asked = np.random.default_rng(4).normal(0, 50, matrix.shape[1])
    stopped = {"solver": "simplex", "simplex_iteration_limit": 0, "presolve": "off"}
    monkeypatch.setattr(linear, "STRATEGIES", (stopped, *STRATEGIES))
    assert fitted(matrix, asked, np.ones(matrix.shape[1])) is not None
    monkeypatch.setattr(linear, "STRATEGIES", (stopped,))
    assert fitted(matrix, asked, np.ones(matrix.shape[1])) is None


def test_of_the_nearest_the_closest_is_taken() -> None:
    """Where no table fits exactly, the total distance is least among the nearest."""
    rng = np.random.default_rng(7)
    matrix = program((2,) * 6, 2)
    asked = rng.normal(0, 50, matrix.shape[1])
    found = fitted(matrix, asked, np.ones(matrix.shape[1]))
    scipy = pytest.importorskip("scipy.optimize")
    count, cells = matrix.shape[1], len(matrix)
    distance = far(matrix, asked, found)
    assert distance > 1
    bounds = [(0, None)] * cells + [(0, distance)] * (2 * count)
    equal = np.hstack([matrix.T, np.eye(count), -np.eye(count)])
    least = scipy.linprog(np.append(np.zeros(cells), np.ones(2 * count)), A_eq=equal, b_eq=asked, bounds=bounds)
    assert np.abs(asked - found @ matrix).sum() == pytest.approx(least.fun, rel=1e-4)


def test_noise_is_the_unit() -> None:
    """A coefficient that is ten times as noisy may be ten times as far off."""
    rng = np.random.default_rng(3)
    matrix = program((2,) * 5, 2)
    noise = np.where(np.arange(matrix.shape[1]) % 2, 10.0, 1.0)
    asked = rng.normal(0, 50, matrix.shape[1]) * noise
    found = fitted(matrix, asked, noise)
    plain = fitted(matrix, asked, np.ones(len(noise)))
    gaps, others = (np.abs(asked - cells @ matrix) / noise for cells in (found, plain))
    assert gaps.max() < others.max()


@pytest.mark.parametrize("asked", [0.0, -1e6, 1e12])
def test_any_numbers_have_a_fit(asked: float) -> None:
    """Hopeless coefficients are fitted like any others: nothing is refused or tried again [T6]."""
    matrix = program((2,) * 4, 2)
    found = fitted(matrix, np.full(matrix.shape[1], asked), np.ones(matrix.shape[1]))
    assert np.isfinite(found).all()
    assert found.min() >= 0
