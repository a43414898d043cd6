"""Exact binomial intervals, against scipy."""

from __future__ import annotations

import pytest
from scipy import stats

from sulq.audit.statistics import beta_cdf, binomial_interval, binomial_tail
from sulq.errors import QuestionError


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (1, 10), (10, 10), (37, 1000), (500_000, 1_000_000), (3, 10**6)])
def test_the_ends_are_those_of_Clopper_and_Pearson(hits: int, trials: int) -> None:
    """Both ends agree with the beta quantiles of scipy, from common to very sure."""
    for alpha in (0.05, 1e-6, 1e-9):
        low, high = binomial_interval(hits, trials, alpha)
        wanted = (
            stats.beta.ppf(alpha, hits, trials - hits + 1) if hits else 0,
            stats.beta.ppf(1 - alpha, hits + 1, trials - hits) if hits < trials else 1,
        )
        assert (low, high) == pytest.approx(wanted, rel=1e-6)


def test_tails_and_the_beta_function() -> None:
    """P(X >= k) is scipy's; outside the support it is certain or impossible."""
    assert binomial_tail(60, 100, 0.5) == pytest.approx(stats.binom.sf(59, 100, 0.5), rel=1e-10)
    assert binomial_tail(0, 5, 0.1) == 1
    assert binomial_tail(6, 5, 0.1) == 0
    assert beta_cdf(0.3, 2.5, 7) == pytest.approx(stats.beta.cdf(0.3, 2.5, 7), rel=1e-12)


@pytest.mark.parametrize("given", [(-1, 5, 0.1), (6, 5, 0.1), (0, 0, 0.1), (1, 5, 0), (1, 5, 1)])
def test_counts_that_make_no_sense_are_refused(given: tuple[int, int, float]) -> None:
    """Hits within the trials, alpha within 0 and 1."""
    with pytest.raises(QuestionError):
        binomial_interval(*given)
