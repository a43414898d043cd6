"""t tests on a database: without noise the textbook's, with it near, and what is unknown."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from sulq import Epsilon, Rho, col
from sulq.errors import QuestionError
from sulq.testing import exact
from tests.inference.cases import frame, opened


def test_without_noise_they_are_the_textbooks_tests() -> None:
    """Welch's difference and interval, one mean beside a number, and the mean of paired differences are scipy's."""
    data = frame()
    with opened(data, budget=Epsilon(1000)) as db:
        quiet = exact(db)
        welch = quiet.ttest("y", "plan", groups=["paid", "free"], spend=Epsilon(300))
        one = quiet.ttest("y", mean=5.0, spend=Epsilon(300))
        pair = quiet.ttest("y", paired="before", spend=Epsilon(300))
    a, b = (data["y"][data["plan"] == name] for name in ("paid", "free"))
    found, expected = welch["difference"], stats.ttest_ind(a, b, equal_var=False)
    low, high = expected.confidence_interval()
    assert (found.coef, found.low, found.high) == pytest.approx((a.mean() - b.mean(), low, high), abs=0.02)
    assert found.p <= 1e-5
    single = stats.ttest_1samp(data["y"], 5.0)
    assert one["y"].coef == pytest.approx(data["y"].mean(), abs=0.01)
    assert one["y"].p == pytest.approx(float(single.pvalue), abs=1e-3)
    (gap,) = pair
    assert gap.coef == pytest.approx((data["y"] - data["before"]).mean(), abs=0.02)
    assert math.isnan(welch["plan=paid"].p)


@pytest.mark.parametrize("spend", [Epsilon(0.5), Rho(0.05)], ids=str)
def test_noisy_differences_lie_near_the_truth(spend: object) -> None:
    """Within seven standard errors."""
    data = frame()
    with opened(data) as db:
        found = db.ttest("y", col("plan") == "paid", spend=spend)["difference"]
    paid = data["plan"] == "paid"
    assert abs(found.coef - (data["y"][~paid].mean() - data["y"][paid].mean())) < 7 * found.se


def test_an_empty_group_has_an_unknown_mean_SR6() -> None:
    """Its interval is the declared bounds, the difference's all that bounds allow."""
    with opened() as db:
        found = db.ttest("y", col("x") > 9.9999, where=col("x") < 9, spend=Epsilon(0.5))
    unknown = found.estimates[1]
    assert math.isnan(unknown.coef)
    assert (unknown.low, unknown.high) == pytest.approx((-20.0, 40.0), abs=0.01)
    assert found["difference"].low == pytest.approx(-60.0, abs=0.01)


@pytest.mark.parametrize(
    "ask",
    [
        lambda db: db.ttest("y", "plan", spend=Epsilon(1)),
        lambda db: db.ttest("y", "won", mean=3.0, spend=Epsilon(1)),
        lambda db: db.ttest("y", "won", paired="before", spend=Epsilon(1)),
        lambda db: db.ttest("plan", "won", spend=Epsilon(1)),
        lambda db: db.ttest("y", "x", spend=Epsilon(1)),
    ],
)
def test_what_is_no_test_is_refused_free(ask) -> None:
    """Three groups, a group beside a number, a paired group, a category as a number, groups by a number."""
    with opened() as db:
        with pytest.raises(QuestionError):
            ask(db)
        assert db.facts.spent.amount == 0
