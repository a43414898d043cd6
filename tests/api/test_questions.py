"""Named statistics as sums; what they give is tested through the asks (test_named_asks.py)."""

from __future__ import annotations

import pytest

from sulq.answers.estimators import CentredMean, Mean
from sulq.api.questions import COUNT_SHARE, covariance, keys, mean, spread
from sulq.errors import QuestionError
from sulq.language.domain import Int, Schema
from sulq.language.privacy import Epsilon, Rho
from sulq.language.rowfn import Bins, Col
from tests.stub import Stub

FACTS = Stub(Schema.of("people", {"age": Int(0, 120), "same": Int(7, 7)}), []).facts


def test_keys_are_names_or_row_functions():
    """by= takes one or several of either."""
    fn = Bins(Col("age"), (0, 60, 120))
    assert keys(None) == ()
    assert keys("city")[0].name == "city"
    assert keys(fn) == (fn,)
    assert [type(key).__name__ for key in keys(["city", fn])] == ["Col", "Bins"]


def test_the_noise_chooses_the_form_of_a_mean_SR18():
    """Pure noise takes the one-sided pair, Gaussian noise a count and a centred sum."""
    pure, reading = mean(FACTS, Col("age"), None, (), Epsilon(1))
    assert isinstance(reading, Mean)
    assert len(pure.values) == 1
    gaussian, reading = mean(FACTS, Col("age"), None, (), Rho(1))
    assert isinstance(reading, CentredMean)
    assert gaussian.shares == COUNT_SHARE


def test_spreads_and_covariances_refuse_what_has_none():
    """A wrong ddof, and a column that is constant by its bounds."""
    with pytest.raises(QuestionError, match="ddof"):
        spread(FACTS, Col("age"), None, (), root=False, ddof=2)
    with pytest.raises(QuestionError, match="constant by its bounds"):
        covariance(FACTS, [Col("age"), Col("same")], None, ())
