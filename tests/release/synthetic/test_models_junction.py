"""Marginals off a junction tree agree with those of the whole table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sulq.release.synthetic import models
from sulq.release.synthetic.models import Junction

SIZES = (2, 3, 2, 4, 2, 3)
CLIQUES = ((0, 1), (1, 2), (2, 3), (4,), (1, 5))  # two trees: one of four cliques, one alone
ABOVE = (-1, 0, 1, -1, 1)


def whole(potentials: dict[tuple[int, ...], np.ndarray]) -> np.ndarray:
    """The table that the potentials stand for."""
    logs = np.zeros(SIZES)
    for own, values in potentials.items():
        order = np.argsort(own)
        logs = logs + values.transpose(order).reshape([n if i in own else 1 for i, n in enumerate(SIZES)])
    return np.exp(logs) / np.exp(logs).sum()


@pytest.mark.parametrize("seed", range(5))
def test_every_marginal_is_that_of_the_whole_table(seed: int) -> None:
    """Of one, two and three columns, in any order, within a clique and across cliques and trees."""
    rng = np.random.default_rng(seed)
    own = [*CLIQUES, (1,), (3, 2)]
    potentials = {places: 3 * rng.normal(size=[SIZES[place] for place in places]) for places in own}
    tree = Junction.of(potentials, CLIQUES, ABOVE, SIZES)
    table = whole(potentials)
    for places in itertools.chain(*(itertools.permutations(range(6), n) for n in (1, 2, 3))):
        expected = table.sum(axis=tuple(i for i in range(6) if i not in places))
        expected = expected.transpose([sorted(places).index(place) for place in places])
        assert np.allclose(tree.marginal(places), expected, atol=1e-12)


def test_potentials_far_apart_do_not_overflow() -> None:
    """Logarithms of a thousand and more: shares stay shares."""
    potentials = {places: np.zeros([SIZES[place] for place in places]) for places in CLIQUES}
    potentials[0, 1][0, 0] = 2000.0
    potentials[1, 2][1, 1] = -2000.0
    tree = Junction.of(potentials, CLIQUES, ABOVE, SIZES)
    found = tree.marginal((0, 3))
    assert np.isclose(found.sum(), 1.0)
    assert np.isclose(found[0].sum(), 1.0)


@pytest.mark.parametrize("direct", [0, 2**14])
def test_large_cliques_have_the_same_shares_as_small_ones(direct: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Added up by one walk or one by one: the whole table's marginals; with a potential left out it has others."""
    monkeypatch.setattr(models, "MAX_DIRECT_CELLS", direct)
    rng = np.random.default_rng(7)
    own = [(1, 0), (0,), (2, 1), (2,), (3, 2), (4,), (5, 1)]
    potentials = {places: 3 * rng.normal(size=[SIZES[place] for place in places]) for places in own}
    table = whole(potentials)
    tree = Junction.of(potentials, CLIQUES, ABOVE, SIZES)
    wanted = [(1, 0), (1,), (2, 3), (3, 2), (1, 5), (4,)]
    for places, found in tree.marginals(wanted).items():
        expected = table.sum(axis=tuple(i for i in range(6) if i not in places))
        assert np.allclose(found, expected.transpose([sorted(places).index(p) for p in places]), atol=1e-12)
    del potentials[2,]
    fewer = Junction.of(potentials, CLIQUES, ABOVE, SIZES)
    assert not np.allclose(fewer.marginal((2, 3)), tree.marginal((2, 3)), atol=1e-3)
