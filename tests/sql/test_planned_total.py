"""A design is taken where it is foreseen to be nearer, and queries are asked apart where it is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq.answers.released import Noise, Released
from sulq.errors import QuestionError
from sulq.language.law import GaussianLaw
from sulq.language.privacy import Epsilon, Rho
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Lit
from sulq.sql import forecast, planned_total
from sulq.sql.session import Sql
from tests.api.test_named_asks import PEOPLE, SCHEMA
from tests.stub import Stub

QUERIES = ["SELECT COUNT(*) AS n FROM people", "SELECT COUNT(*) AS n FROM people WHERE age > 40"]


class Supposed:
    """A design of which it is said how noisy each query's count is."""

    question = Together((Sums((Lit(1),)),))

    def __init__(self, scales: Sequence[float]) -> None:
        self.noise = [Noise(GaussianLaw(Fraction(scale)), Fraction(1), 1) for scale in scales]

    def foreseen(self, _: object) -> list[Noise]:
        return self.noise

    def read(self, _: object) -> list[Released]:
        return [Released(np.array([[7 + i]]), (noise,)) for i, noise in enumerate(self.noise)]


@pytest.mark.parametrize(
    ("scales", "taken"),
    [((1, 1), True), ((9, 9), True), ((11, 11), False), ((1, 16), False), ((200, 200), False)],
)
def test_a_design_is_taken_if_it_is_nearer_and_no_query_too_far_off(scales: tuple[float, ...], *, taken: bool) -> None:
    """Apart each has rho .005, a deviation of 10; at half of that 14.1, which no query may pass."""
    stub = Stub(SCHEMA, PEOPLE, budget=Rho(1))
    plan = Sql(stub, lambda *_: [[((0, 1), Supposed(scales))]]).plan(QUERIES, spend=Rho(0.01))
    assert [query.together for query in plan.queries] == [(0, 1) if taken else ()] * 2
    apart = Sql(stub).plan(QUERIES, spend=Rho(0.01))
    assert sum(query.error for query in plan.queries) <= sum(query.error for query in apart.queries)
    assert sum(spend.exact for spend in plan.spends) <= Fraction(1, 100)
    answers = plan.ask()
    assert len(stub.asked) == 1
    assert ([answer.value for answer in answers] == [7, 8]) == taken


def test_pure_totals_have_no_designs() -> None:
    """Laplace noise is added to each query's own counts."""
    stub = Stub(SCHEMA, PEOPLE, budget=Epsilon(1))
    plan = Sql(stub, lambda *_: [[((0, 1), Supposed((1, 1)))]]).plan(QUERIES, spend=Epsilon(1))
    assert not any(query.together for query in plan.queries)


def test_a_quantile_weighs_by_its_own_error_and_not_by_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ends have a quarter of its spend and reach several times as far. Control: by its interval it gets more."""
    queries = ["SELECT city, COUNT(*) AS n FROM people GROUP BY city", "SELECT MEDIAN(income) AS m FROM people"]

    def part() -> Fraction:
        counts, median = Sql(Stub(SCHEMA, PEOPLE, budget=Epsilon(1))).plan(queries, spend=Epsilon(1)).spends
        return Fraction(median.exact / (counts.exact + median.exact))

    own = part()
    monkeypatch.setattr(forecast, "value_reach", lambda *_: math.inf)
    assert own < Fraction(9, 10) * part()


def test_known_answers_are_read_by_column_whatever_these_are_called() -> None:
    """A label called low_n is no error bar of n. Control: by its bars an answer that is off counts for more."""
    sql = Sql(Stub(SCHEMA, PEOPLE, budget=Epsilon(9)))
    plain, named = (
        sql.ask(f"SELECT city AS {label}, COUNT(*) AS n FROM people GROUP BY city", spend=Epsilon(1), fresh=True)
        for label in ("city", "low_n")
    )
    assert planned_total._seen(named, 0.05) == planned_total._seen(plain, 0.05) > 0
    queries = ["SELECT COUNT(*) AS n FROM people"]
    assert sql.plan(queries, spend=Epsilon(1), known=[named]).queries


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.5)], ids=["apart", "at one debit"])
def test_a_plan_without_intervals_is_nearer(spend: Epsilon | Rho) -> None:
    """All of a quantile's spend buys its value, in the plan and in its answers; with intervals, one that is bought."""
    rows = pd.DataFrame({"x": np.random.default_rng(3).integers(0, 1_000, 5_000)})
    queries = ["SELECT MEDIAN(x) AS m FROM t", "SELECT COUNT(*) AS n FROM t"]
    columns = {"x": sulq.Int(0, 100_000, missing=False)}
    with sulq.connect(rows, table="t", columns=columns, budget=type(spend)(9), synthetic=True) as db:
        bought, bare = (db.plan(queries, spend=spend, interval=each) for each in (True, False))
        assert bare[0].error < bought[0].error
        assert bare[1].error == pytest.approx(bought[1].error, rel=0.2)
        for plan, whole in ((bought, False), (bare, True)):
            median, _ = plan.ask()
            told = median.to_dict(0.95)
            assert (told["low_m"] == [0.0] and told["high_m"] == [100_000.0]) is whole
            assert any("no interval was bought" in note for note in median.notes) is whole
        with pytest.raises(QuestionError):
            db.plan(queries, spend=spend, interval=1)
