"""The fit: right samplers pass, wrong ones do not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sulq.audit.statistics import MAX_FIT_DEVIATIONS, fit
from sulq.errors import QuestionError
from sulq.kernel.mechanisms import release
from sulq.kernel.private import Private
from sulq.language.law import GaussianLaw, LaplaceLaw


@pytest.mark.parametrize(
    "law", [LaplaceLaw(Fraction(3)), GaussianLaw(Fraction(5, 2)), LaplaceLaw(Fraction(1, 2))], ids=repr
)
def test_draws_fit_their_law_and_no_other_T7(law) -> None:
    """T7: 50,000 draws of the real samplers fit; the same draws shrunk by a twentieth, or shifted by one, do not."""
    draws = release(law, Private(np.zeros((50_000, 1), dtype=np.int64)))
    assert fit(draws, law.pmf).follows
    shrunk = np.trunc(0.95 * draws).astype(np.int64)
    assert law.scale < 1 or not fit(shrunk, law.pmf).follows
    assert not fit(draws + 1, law.pmf).follows
    assert not fit(np.abs(draws), law.pmf).follows


def test_a_law_that_is_followed_is_rarely_far_off() -> None:
    """500 fits of 2,000 seeded draws: deviations are about standard normal, and none is near the limit."""
    law = LaplaceLaw(Fraction(4))
    random, p = np.random.default_rng(1), -np.expm1(-0.25)
    found = [fit(random.geometric(p, 2_000) - random.geometric(p, 2_000), law.pmf).deviation for _ in range(500)]
    assert np.mean(found) == pytest.approx(0, abs=0.3)
    assert np.std(found) == pytest.approx(1, abs=0.2)
    assert max(found) < MAX_FIT_DEVIATIONS


def test_constants_and_too_few_draws() -> None:
    """A certain outcome fits itself; three draws are no evidence."""
    assert fit(np.zeros(200, dtype=np.int64), lambda z: float(z == 0)).follows
    with pytest.raises(QuestionError):
        fit([1, 2, 3], lambda _z: 1.0)


def test_the_deviation_never_cries_wolf() -> None:
    """At the limit the exact tail of chi-square is below 3e-9 for any number of cells, and not far below for many."""
    for free in (1, 2, 5, 30, 300):
        square = free * (1 - 2 / (9 * free) + MAX_FIT_DEVIATIONS * np.sqrt(2 / (9 * free))) ** 3
        assert stats.chi2.sf(square, free) < 3e-9
    assert stats.chi2.sf(square, free) > 5e-10
