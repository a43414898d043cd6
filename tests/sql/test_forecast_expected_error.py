"""Foretelling: the width of made-up answers is that of real ones, and wishes are read strictly."""

from __future__ import annotations

import math

import pytest

from sulq.compile.plan import draw
from sulq.errors import QuestionError
from sulq.language.domain import Category, Date, Int, Schema
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho, Unit
from sulq.sql.compile import compile as compiled
from sulq.sql.forecast import ErrorForecast, slip, wished
from tests.stub import facts

SCHEMA = Schema.of(
    "people", {"age": Int(0, 60), "city": Category(["Lod", "Yafo"]), "day": Date("2020-01-01", "2020-12-31")}
)
TOLD = facts(SCHEMA, Unit("pid", 1), EpsilonDelta(50, 1e-6))


def forecast(text: str) -> ErrorForecast:
    return ErrorForecast(compiled(text, TOLD), TOLD, lambda question, spend: draw(question, TOLD, spend))


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.1)])
def test_a_sum_is_as_wide_however_many_rows_there_are_SR7(spend):
    """Counts and sums do not depend on rows; means do, inversely; keys and constants are exact (SR7)."""
    found = forecast("SELECT city, COUNT(*) AS n, SUM(age) AS s, AVG(age) AS m, 1 AS one FROM people GROUP BY city")
    plan = found.plan(spend)
    few, many = (found.widths(plan, rows=rows, beta=0.05) for rows in (1_000, 10_000))
    assert (few[0], few[4]) == (0, 0)
    assert few[1] == pytest.approx(many[1], abs=1)
    assert few[2] == pytest.approx(many[2], abs=1)
    assert few[3] == pytest.approx(10 * many[3], rel=0.2)
    assert found.sure(plan, 1, 0.05)
    assert not found.sure(plan, 3, 0.05)
    assert found.widths(plan, rows=1_000, beta=0.001)[1] > few[1]
    assert found.widths(plan, rows=1_000, beta=0.05, leans=("low", "high"))[3] >= few[3] * 0.99


def test_errors_are_measured_by_typical_answers():
    """A mean by the middle of its bounds, a count by the rows, a sum by both; of nothing private, nothing.

    A date by its range, a number of either sign by a quarter of it, what no made-up row has by a small part.
    """
    found = forecast("SELECT COUNT(*), SUM(age), AVG(age) FROM people")
    assert found.scales(found.plan(Epsilon(1)), rows=1_000) == pytest.approx((1_000, 30 * 1_000, 30), rel=0.02)
    odd = forecast("SELECT MAX(day), AVG(age - 35), COUNT(*) FILTER (WHERE age > 1000) FROM people")
    day, either, none = odd.scales(odd.plan(Epsilon(1)), rows=1_000)
    assert day > 300
    assert either == pytest.approx(60 / 4, rel=0.05)
    assert 0 < none < 20
    free = forecast("SELECT DISTINCT city FROM people")
    assert free.plan(Epsilon(1)) is None
    assert free.widths(None, rows=10, beta=0.05) == (0.0,)
    assert free.explained(Epsilon(1), 0.05).price is None


def test_moments_have_a_width_in_days():
    """The bar of a date is measured in days; what no interval is known for is infinite."""
    found = forecast("SELECT MAX(day) AS d, COUNT(*) > 5 AS many FROM people")
    day, many = found.widths(found.plan(Epsilon(1)), rows=5_000, beta=0.05)
    assert 0 <= day < 366
    assert many == math.inf


def test_noise_is_worth_rows():
    """How many rows of the widest value the noise may outweigh: inverse to the spend."""
    found = forecast("SELECT AVG(age) FROM people")
    one, ten = (slip(found.plan(Epsilon(spend)), 0.05) for spend in (1, 10))
    assert 5 <= one <= 12
    assert ten <= 2
    assert one > ten


@pytest.mark.parametrize(
    ("within", "code"),
    [(0, "bad-loss"), (True, "bad-loss"), (math.inf, "bad-loss"), (math.nan, "bad-loss"), ("3", "bad-loss"),
     ({}, "bad-question"), ({"x": 1}, "bad-question"), ({"a": -1}, "bad-loss"), ([1], "bad-loss")],
)  # fmt: skip
def test_wishes_are_numbers_by_column(within, code):
    """A width for all columns or one for each named; anything else is refused."""
    assert wished(2, ("a", "b")) == {0: 2.0, 1: 2.0}
    assert wished({"b": 3.5}, ("a", "b")) == {1: 3.5}
    with pytest.raises(QuestionError) as refused:
        wished(within, ("a", "b"))
    assert refused.value.code == code
