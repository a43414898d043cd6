"""Mended marginals have no negative counts, agree with each other, and are nearer to the truth than noisy ones."""

from __future__ import annotations

import numpy as np

from sulq.release.synthetic.evidence import Evidence
from sulq.release.synthetic.measurement import Measurement
from sulq.release.synthetic.nearest import nearest
from sulq.release.synthetic.space import closure
from sulq.release.synthetic.summing import gathered

SIZES = (8, 8, 3)
PAIRS = ((0, 1), (0, 2), (1, 2))


def told(noise: float) -> tuple[Evidence, dict[tuple[int, ...], np.ndarray], dict[tuple[int, ...], np.ndarray]]:
    rng = np.random.default_rng(3)
    table = np.zeros(SIZES)
    table[np.arange(8), np.arange(8)] = rng.random((8, 3)) * 100  # most cells of a marginal are empty
    truth = gathered(table, closure(PAIRS))
    noisy = {p: truth[p] + rng.normal(0, noise, truth[p].shape) for p in PAIRS}
    several = [Measurement(p, noisy[p], max(noise, 0.01)) for p in PAIRS]
    return Evidence.measured(several, SIZES, [(), *closure(PAIRS)]), truth, noisy


def test_noisy_marginals_are_mended() -> None:
    """No negative count, marginals that agree, and nearer in L1; before it some counts were negative."""
    evidence, truth, noisy = told(20.0)
    found = nearest(evidence, PAIRS)
    assert min(values.min() for values in noisy.values()) < -20  # the control
    assert min(values.min() for values in found.values()) >= 0
    assert np.abs(found[0, 1].sum(axis=1) - found[0, 2].sum(axis=1)).max() < 1.0
    assert np.abs(noisy[0, 1].sum(axis=1) - noisy[0, 2].sum(axis=1)).max() > 10.0  # the control
    far = {name: sum(np.abs(each[p] - truth[p]).sum() for p in PAIRS) for name, each in (("n", noisy), ("f", found))}
    assert far["f"] < 0.7 * far["n"]


def test_true_marginals_stay() -> None:
    """With hardly any noise nothing is mended, but for a tenth of a row."""
    evidence, truth, _ = told(0.0)
    found = nearest(evidence, PAIRS)
    assert all(np.allclose(found[p], truth[p], atol=0.1) for p in PAIRS)
