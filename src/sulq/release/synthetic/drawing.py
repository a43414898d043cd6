"""Cells drawn from weights: each as often as its share says, up to one.

Free: weights are made of answers. The generator's seed comes from the operating system and protects nobody.
"""

from __future__ import annotations

import numpy as np

from sulq.language.kinds import Floats, Integers


def drawn(weights: Floats, rows: int, rng: np.random.Generator) -> Integers:
    """`rows` cells in random order, cell c either the floor or the ceiling of rows * share(c) times."""
    return given(weights[None, :], np.zeros(rows, dtype=np.int64), rng)


def given(weights: Floats, groups: Integers, rng: np.random.Generator) -> Integers:
    """A cell for each row by its group's weights (a row of them a group): likewise evenly within each group."""
    shares = np.cumsum(np.maximum(weights, 0.0), axis=1)
    nothing = shares[:, -1] <= 0
    shares[nothing] = np.arange(1, weights.shape[1] + 1)  # a group that weighs nothing is drawn evenly
    shares /= shares[:, -1:]
    found = np.empty(len(groups), dtype=np.int64)
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]  # by group, in random order within
    counts = np.bincount(groups, minlength=len(weights))
    stops = np.cumsum(counts)
    for group in np.flatnonzero(counts):
        at = (np.arange(counts[group]) + rng.random()) / counts[group]
        cells = np.searchsorted(shares[group], at, side="right")
        found[order[stops[group] - counts[group] : stops[group]]] = np.minimum(cells, weights.shape[1] - 1)
    return found
