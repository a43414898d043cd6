"""Estimators that sulq brings: what each makes of a block."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.compile.plan.estimators import OWN
from sulq.language.statistic import ESTIMATORS


def test_estimators_that_sulq_brings() -> None:
    """Each of a block's values, of as many columns as it reads."""
    values = np.array([[1.0], [2.0], [6.0]])
    assert OWN["mean"][1](values) == 3
    assert OWN["median"][1](values) == 2
    assert OWN["trimmed_mean"][1](np.array([[-99.0], *[[1.0]] * 8, [99.0]])) == 1
    line = np.array([(x, 2.0 * x + 1) for x in range(6)])
    assert OWN["slope"][1](line) == pytest.approx(2.0)
    assert OWN["correlation"][1](line) == pytest.approx(1.0)
    assert {name: width for name, (width, _) in OWN.items()}["slope"] == 2


def test_estimators_that_sulq_brings_are_those_the_language_names() -> None:
    """One list of names, and a function for each."""
    assert tuple(OWN) == ESTIMATORS
