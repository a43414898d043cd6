"""Raking takes on the marginals it is given, and leaves even what they do not say."""

from __future__ import annotations

import numpy as np

from sulq.release.synthetic.raking import Raked
from sulq.release.synthetic.space import Space
from tests.release.synthetic.cases import BINS, NAMES, made, rows, truth

PAIRS = ((0, 1), (1, 2), (0, 3))


def test_it_has_the_marginals() -> None:
    """All to a thousandth of the rows; the even table that it starts from is far off."""
    data = rows(5000)
    space = Space.of(NAMES, made(5).facts.schema, BINS)
    targets = {p: truth([NAMES[i] for i in p], data) for p in PAIRS}
    model = Raked(space, 5000.0)
    before = model.marginals(PAIRS)
    assert all(np.abs(before[p] - targets[p]).sum() > 500 for p in PAIRS)
    model.fit(targets, 5.0)
    found = model.marginals(PAIRS)
    assert all(np.abs(found[p] - targets[p]).sum() < 5 for p in PAIRS)
    cells = model.draw(5000, np.random.default_rng(1))
    assert cells.shape == (5000, 4)
