"""The fitted table has the marginals that the evidence tells, less noise; its rows are its own."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.release.synthetic.evidence import Evidence
from sulq.release.synthetic.fitted import Fitted
from sulq.release.synthetic.measurement import Measurement
from sulq.release.synthetic.space import Space, closure
from tests.release.synthetic.cases import BINS, NAMES, made, rows, truth

PAIRS = ((0, 1), (1, 2), (0, 3))


def told(n: int, noise: float, seed: int = 1) -> tuple[Space, Evidence, dict[tuple[int, ...], np.ndarray]]:
    """Three noisy marginals of so many rows."""
    rng = np.random.default_rng(seed)
    space = Space.of(NAMES, made(5).facts.schema, BINS)
    true = {pair: truth([NAMES[i] for i in pair], rows(n)) for pair in PAIRS}
    several = [Measurement(pair, true[pair] + rng.normal(0, noise, true[pair].shape), noise) for pair in PAIRS]
    return space, Evidence.measured(several, space.sizes, [(), *closure(PAIRS)]), true


def test_it_has_the_marginals() -> None:
    """With hardly any noise all to a hundredth of the rows; the even table is far off, and rows are of the model."""
    space, evidence, true = told(5000, 0.01)
    model = Fitted(space, evidence)
    found = model.marginals(PAIRS)
    for pair in PAIRS:
        assert np.abs(found[pair] - true[pair]).sum() < 50
        assert np.abs(true[pair].mean() - true[pair]).sum() > 500  # the control
    assert model.draw(5000, np.random.default_rng(1)).shape == (5000, 4)


def test_with_noise_it_is_nearer_than_what_was_told() -> None:
    """Mean of ten draws: none negative, one table, the evidence's number of rows, and nearer by a tenth at least."""
    fitted, plain = [], []
    for seed in range(10):
        space, evidence, true = told(400, 30.0, seed)
        found = Fitted(space, evidence).marginals((*PAIRS, (0,)))
        assert min(values.min() for values in found.values()) >= 0
        assert found[0,].sum() == pytest.approx(evidence.total)
        assert found[0, 1].sum(axis=1) == pytest.approx(found[0,])
        fitted.append(sum(np.abs(found[pair] - true[pair]).sum() for pair in PAIRS))
        plain.append(sum(np.abs(evidence.marginal(pair)[0] - true[pair]).sum() for pair in PAIRS))
    assert np.mean(fitted) < 0.9 * np.mean(plain)
