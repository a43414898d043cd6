"""Many marginals at once are those of one after the other; adding up is the transpose of summing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sulq.release.tables.interactions import gathered, scattered

SHAPES = [(2, 3, 4, 2), (5,), (1, 3, 1, 2), (3, 2, 2, 2, 2)]


def parts(shape: tuple[int, ...], ways: int) -> list[tuple[int, ...]]:
    return [p for r in range(ways + 1) for p in itertools.combinations(range(len(shape)), r)]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_marginal_is_its_own_sum(shape: tuple[int, ...]) -> None:
    """All of up to three columns, the number of rows among them; in any order of asking."""
    table = np.random.default_rng(1).normal(size=shape)
    found = gathered(table, reversed(parts(shape, 3)))
    assert len(found) == len(parts(shape, 3))
    for places, values in found.items():
        others = tuple(axis for axis in range(len(shape)) if axis not in places)
        assert np.allclose(values, table.sum(axis=others))


@pytest.mark.parametrize("shape", SHAPES)
def test_adding_up_is_the_transpose(shape: tuple[int, ...]) -> None:
    """<scattered(p), t> = <p, gathered(t)>, and not of other tables."""
    rng = np.random.default_rng(2)
    table = rng.normal(size=shape)
    several = {p: rng.normal(size=[shape[i] for i in p]) for p in parts(shape, 2)}
    whole = float(np.vdot(scattered(several, shape), table))
    found = gathered(table, several)
    assert whole == pytest.approx(sum(float(np.vdot(several[p], found[p])) for p in several))
    assert whole != pytest.approx(float(np.vdot(scattered(several, shape), table + 1.0)))  # the control
