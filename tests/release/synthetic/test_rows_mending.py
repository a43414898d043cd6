"""Exchanged rows have the model's marginals far nearer than drawn ones, and are rows that were drawn."""

from __future__ import annotations

import itertools

import numpy as np

from sulq.release.synthetic.rows import mended
from sulq.release.tables.interactions import gathered

SIZES = (2, 3, 4, 2, 2, 3)
PAIRS = list(itertools.combinations(range(len(SIZES)), 2))


def far(rows: np.ndarray, goal: dict[tuple[int, ...], np.ndarray]) -> float:
    table = np.zeros(SIZES)
    np.add.at(table, tuple(rows.T), 1)
    found = gathered(table, PAIRS)
    return sum(float(np.abs(found[p] - goal[p] * len(rows)).sum()) for p in PAIRS)


def test_rows_are_exchanged_until_they_fit() -> None:
    """A tenth of the distance of rows drawn one by one; no row that was not drawn, and as many as before."""
    rng = np.random.default_rng(4)
    shares = rng.dirichlet(np.full(int(np.prod(SIZES)), 0.3))
    goal = gathered(shares.reshape(SIZES), PAIRS)
    drawn = [np.stack(np.unravel_index(rng.choice(shares.size, 3000, p=shares), SIZES), axis=1) for _ in range(2)]
    found = mended(drawn[0], drawn[1], goal, rng)
    assert len(found) == 3000
    assert far(found, goal) < 0.1 * far(drawn[0], goal)
    every = {tuple(row) for row in np.concatenate(drawn).tolist()}
    assert {tuple(row) for row in found.tolist()} <= every


def test_no_rows_stay_no_rows() -> None:
    """Nothing to exchange."""
    nothing = np.zeros((0, len(SIZES)), dtype=np.int64)
    goal = {p: np.ones([SIZES[i] for i in p]) for p in PAIRS}
    assert len(mended(nothing, nothing, goal, np.random.default_rng(1))) == 0
