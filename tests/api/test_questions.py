"""Named statistics as sums; what they give is tested through the asks (test_named_asks.py)."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq.answers.readings.estimators import CentredMean, Mean
from sulq.api.database import Database
from sulq.api.questions import COUNT_SHARE, covariance, keys, mean, spread
from sulq.errors import QuestionError
from sulq.language.domain import Category, Int, Real, Schema
from sulq.language.privacy import Budget, Epsilon, Queries, Rho, SubLinear, Unit
from sulq.language.rowfn import Bins, Col
from tests.figures import figure
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
        spread(FACTS, Col("age"), None, (), Epsilon(1), root=False, ddof=2)
    with pytest.raises(QuestionError, match="constant by its bounds"):
        covariance(FACTS, [Col("age"), Col("same")], None, ())


B, N, ALPHA = 10.0, 1000, 0.5  # values in [0, b], n of them, at epsilon alpha


def opened(budget: Budget, unit: Unit = Unit(neighbors="replace_one"), **declared: object) -> Database:  # noqa: B008
    """A table of n values, of which none may be missing unless it is said."""
    table = pa.table({"x": np.linspace(0, B, N), "g": ["a", "b"] * (N // 2)})
    never = {"missing": False} | declared
    columns = {"x": Real(0, B, **never), "g": Category(["a", "b"], missing=False)}
    if unit.neighbors == "zero_out":
        columns["g"] = Category(["a", "b"])
    return sulq.connect(table, columns=columns, unit=unit, budget=budget, size=N, synthetic=True)


def laws(db: Database, text: str | None = None, **asked: object) -> list[tuple[object, float]]:
    """The law of each sum that a mean would ask for, and one unit of its noise."""
    if text is None:
        plan = db.foresee(mean(db.facts, Col("x"), *asked.values(), Epsilon(ALPHA))[0], spend=Epsilon(ALPHA))
    else:
        plan = db.explain(text, spend=Epsilon(ALPHA)).plan
    return [(noise.law, float(noise.step)) for part in plan.parts for noise in part.noise for _ in range(noise.width)]


@pytest.mark.parametrize("text", [None, "SELECT AVG(x) FROM data", "SELECT AVG(x), SUM(x) FROM data"])
def test_a_mean_of_a_public_number_of_rows_is_the_papers_S2_3_S2_4(text):
    """One sum with Laplace noise of scale b/(alpha n): its density at 0, and what it passes with probability d.

    Control: a column whose cells may be missing has two sums, of noise that makes the mean 1.4 times as far off.
    """
    asked = {"where": None, "by": ()} if text is None else {}
    with opened(Epsilon(100)) as db:
        ((law, step),) = laws(db, text, **asked)
    step /= N  # of the mean
    assert float(law.scale) * step == pytest.approx(B / (ALPHA * N), rel=1e-6)
    assert law.pmf(0) / step == pytest.approx(ALPHA * N / (2 * B), rel=1e-6)
    figure("S2.3", "scale of a mean's noise, in parts of b/(alpha n)", float(law.scale) * step / (B / (ALPHA * N)), 1)
    for d in (0.5, 0.1, 0.01, 1e-6):
        reach = B / (ALPHA * N) * math.log(1 / d)
        assert law.tail(math.floor(reach / step)) == pytest.approx(d, rel=1e-5)
    with opened(Epsilon(100), missing=True) as db:
        pair = laws(db, text, **asked)
    assert len(pair) == 2
    wide = math.sqrt(sum(each.variance() for each, _ in pair)) / 2 * pair[0][1] / N  # at the middle, where it is least
    assert wide / (math.sqrt(law.variance()) * step) == pytest.approx(math.sqrt(2), rel=1e-3)


def test_such_a_mean_is_one_query_S2_3_S0_8():
    """Where two one-sided sums are two. A group, a filter, a person's column and zero_out keep their pair."""
    budget = SubLinear(epsilon=1, delta=1e-6, queries=100)
    for declared, queries in (({}, 1), ({"missing": True}, 2)):
        with opened(budget, **declared) as db:
            assert db.mean("x").spent == Queries(queries)
            assert db.sql("SELECT AVG(x) FROM data", fresh=True).spent == Queries(queries)
    with opened(Epsilon(100)) as db:
        assert len(laws(db, where=Col("x") > 1, by=())) == len(laws(db, where=None, by=keys("g"))) == 2
        assert len(laws(db, "SELECT AVG(x) FROM data WHERE x > 1")) == 2
        assert len(laws(db, "SELECT g, AVG(x) FROM data GROUP BY g")) == 2
        assert len(laws(db, "SELECT AVG(x) FILTER (WHERE x > 1) FROM data")) == 2
        assert len(laws(db, "SELECT AVG(DISTINCT x) FROM data")) == 2
    for unit, declared in ((Unit(), {}), (Unit(neighbors="zero_out"), {"missing": True})):
        with opened(Epsilon(100), unit, **declared) as db:
            assert len(laws(db, where=None, by=())) == len(laws(db, "SELECT AVG(x) FROM data")) == 2


def test_an_accuracy_has_the_papers_price_S2_4_SR7():
    """Within w except with probability beta costs b ln(1/beta)/(n w), and explain foretells that width."""
    wished, beta = 0.02, 0.05
    price = B * math.log(1 / beta) / (N * wished)
    with opened(Epsilon(100)) as db:
        named = db.mean("x", within=wished, beta=beta)
        asked = db.sql("SELECT AVG(x) AS m FROM data", within=wished, beta=beta)
        for answer in (named, asked):
            assert price <= answer.spent.epsilon <= price * 1.001
        told = db.explain("SELECT AVG(x) AS m FROM data", spend=Epsilon(price)).columns[0]
        assert told.widths == pytest.approx((wished,) * 3, rel=1e-3)
        assert named.accuracy(beta) <= wished * 1.001
        counted = db.sql("SELECT AVG(x) AS m, COUNT(*) AS n FROM data", spend=Epsilon(90))
        assert counted.to_dict()["m"][0] == pytest.approx(B / 2, abs=0.05)
        assert counted.to_dict()["n"][0] == pytest.approx(N, abs=20)
