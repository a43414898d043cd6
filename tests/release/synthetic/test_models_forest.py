"""Junction trees: every marginal in a clique, the same column's cliques connected, no table larger than needed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sulq.release.synthetic.models import Forest, megabytes


@pytest.mark.parametrize("seed", range(20))
def test_it_is_a_junction_tree(seed: int) -> None:
    """Of random marginals: each lies in a clique, no clique in another, and a column's cliques hang together."""
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in rng.integers(2, 5, 7)]
    pairs = list(itertools.combinations(range(7), 2))
    marginals = [pairs[i] for i in rng.choice(len(pairs), int(rng.integers(0, 10)), replace=False)]
    forest = Forest.of(marginals, sizes)
    assert all(any({*own} <= {*clique} for clique in forest.cliques) for own in marginals)
    assert not any({*a} <= {*b} for a, b in itertools.permutations(forest.cliques, 2))
    assert sorted(forest.order) == list(range(7))
    for column in range(7):
        having = {i for i, clique in enumerate(forest.cliques) if column in clique}
        joined = [i for i, above in enumerate(forest.above) if above >= 0 and {i, above} <= having]
        assert len(having) == len(joined) + 1  # edges form no circle, so this is a tree
    assert all(above < i for i, above in enumerate(forest.above))  # the roots are no clique's children


def test_sizes_are_those_of_the_cliques() -> None:
    """A chain needs its links alone; a circle of four one column more in two of them."""
    chain = [(0, 1), (1, 2), (2, 3)]
    assert megabytes(chain, (10, 10, 10, 10)) == pytest.approx(300 * 8 / 2**20)
    assert megabytes([*chain, (0, 3)], (10, 10, 10, 10)) == pytest.approx(2000 * 8 / 2**20)
    assert megabytes([], (10, 10)) == pytest.approx(20 * 8 / 2**20)
