"""Tests of proportions on a database: without noise the textbook's, with it near, and what is unknown."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sulq import Epsilon, Rho, col
from sulq.errors import QuestionError
from sulq.testing import exact
from tests.inference.cases import frame, opened


def test_without_noise_difference_and_lift_are_the_textbooks() -> None:
    """Rates, their difference with its normal interval, and the lift with that of the logarithm of the ratio."""
    data = frame()
    with opened(data, budget=Epsilon(1000)) as db:
        found = exact(db).proportions("won", "who'se", spend=Epsilon(300))
    groups = [data["won"][data["who'se"] == side] for side in (False, True)]
    (p, q), (n, m) = [g.mean() for g in groups], [len(g) for g in groups]
    error = math.sqrt(p * (1 - p) / n + q * (1 - q) / m)
    apart = found["difference"]
    assert (apart.coef, apart.se) == pytest.approx((q - p, error), rel=0.01)
    assert (apart.low, apart.high) == pytest.approx((q - p - 1.96 * error, q - p + 1.96 * error), abs=1e-3)
    logs = math.sqrt((1 - p) / (n * p) + (1 - q) / (m * q))
    assert found["lift"].low == pytest.approx(q / p * math.exp(-1.96 * logs) - 1, abs=2e-3)
    assert found["who'se=True"].coef == pytest.approx(q, abs=1e-3)


@pytest.mark.parametrize("spend", [Epsilon(0.5), Rho(0.05)], ids=str)
def test_several_groups_are_compared_with_the_first(spend: object) -> None:
    """Each other group has a difference and a lift, near the truth; the first may be named."""
    data = frame()
    with opened(data) as db:
        found = db.proportions(col("y") > 5, "plan", groups=["gift", "paid", "free"], spend=spend)
        alone = db.proportions("won", spend=spend)
    rates = {name: (data["y"][data["plan"] == name] > 5).mean() for name in ("gift", "paid", "free")}
    for name in ("paid", "free"):
        one = found[f"difference plan={name}"]
        assert abs(one.coef - (rates[name] - rates["gift"])) < 7 * one.se
        assert f"lift plan={name}" in [row.term for row in found]
    assert len(alone.estimates) == 1
    assert np.isfinite(alone["won"].se)


def test_a_group_without_rows_or_successes_is_unknown_SR6() -> None:
    """The rate of no rows lies anywhere from 0 to 1; a lift over a rate of nothing may be anything."""
    with opened() as db:
        none = db.proportions("won", col("x") > 9, where=col("x") < 5, spend=Epsilon(0.5))
        never = db.proportions(col("x") > 9.9999, "who'se", spend=Epsilon(0.5))
    assert (none.estimates[1].low, none.estimates[1].high) == (0.0, 1.0)
    assert math.isnan(never["lift"].coef)
    assert np.isfinite(never["difference"].se)


def test_only_truth_values_have_proportions() -> None:
    """A number or a category as the success is refused, free."""
    with opened() as db:
        for success in ("y", "plan"):
            with pytest.raises(QuestionError, match="neither"):
                db.proportions(success, "won", spend=Epsilon(1))
        assert db.facts.spent.amount == 0
