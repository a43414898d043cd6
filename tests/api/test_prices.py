"""The price of an accuracy for the named asks: the width holds, the price is no more than it takes, at_most caps it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq.api.named_asks import NamedAsks
from sulq.errors import QuestionError
from sulq.language.domain import Int
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho, Unit
from sulq.language.rowfn import Col
from tests.api.test_named_asks import BUDGET, PEOPLE, SCHEMA, database_asks
from tests.stub import Stub


@pytest.mark.parametrize("kind", [Epsilon, Rho])
def test_within_names_a_width_and_gets_a_price_SR7(kind):
    """count, sum and histogram: the price is paid, and the accuracy is within the width asked for (SR7)."""
    stub = Stub(SCHEMA, PEOPLE, budget=BUDGET)
    db = NamedAsks(stub)
    cap = kind(100)
    for answer, width in (
        (db.count(within=20, at_most=cap), 20),
        (db.sum("age", within=300.5, beta=0.01, at_most=cap), 300.5),
        (db.histogram("age", 6, within=15, at_most=cap), 15),
    ):
        beta = 0.01 if width == 300.5 else 0.05
        alpha = answer.accuracy(beta)
        assert max(alpha.values() if isinstance(alpha, dict) else [alpha]) <= width
        assert answer.spent in [spend for _, spend in stub.asked]
        assert isinstance(answer.spent, kind)
    assert len(stub.asked) == 3


def test_the_price_of_a_mean_buys_a_count_first_SR7():
    """Without a bound on the count a tenth of at_most buys one; the two asks together stay within at_most (SR7)."""
    for cap in (Epsilon(8), Rho(4), EpsilonDelta(6, 1e-6)):
        stub = Stub(SCHEMA, PEOPLE, budget=BUDGET, rng=np.random.default_rng(1))
        found = NamedAsks(stub).mean("age", within=8, at_most=cap)
        assert len(stub.asked) == 2
        first, second = (spend for _, spend in stub.asked)
        assert float(first.exact) == pytest.approx(float(cap.exact) / 10, rel=1e-9)
        rest = EpsilonDelta(cap.exact * 9 / 10, cap.delta).rho if isinstance(second, Rho) and cap != Rho(4) else None
        assert second.exact <= (cap.exact - first.exact if rest is None else rest)
        assert found.accuracy() <= 8
    grouped = Stub(SCHEMA, PEOPLE, budget=BUDGET, rng=np.random.default_rng(2))
    means = NamedAsks(grouped).mean("age", where=Col("city") != "Haifa", by="smoker", within=10, at_most=Epsilon(20))
    assert max(means.accuracy().values()) <= 10


def test_a_declared_size_is_a_count_only_where_every_row_counts_SR7():
    """Rows kept and values present: then the declared size prices the mean at once; else a count is bought (SR7)."""

    def asks(**options) -> int:
        stub = Stub(SCHEMA, PEOPLE, budget=BUDGET, size=400, **options)
        NamedAsks(stub).mean(value, within=8, at_most=Epsilon(20))
        return len(stub.asked)

    value = Col("age").fill(0)
    assert asks() == 1
    assert asks(unit=Unit("who", 3)) == 2
    assert asks(unit=Unit(None, 1, "replace_one")) == 1
    value = Col("age")
    assert asks() == 2
    with pytest.raises(QuestionError) as refusal:
        database_asks(size=400).mean("age", within=8)
    assert refusal.value.code == "spend-missing"


def test_a_public_n_gives_the_mean_the_exact_price_of_its_sum_SR7():
    """Under replace_one with public n a mean's width times n is a sum's width (S2.3, S2.4)."""
    stub = Stub(SCHEMA, PEOPLE, unit=Unit(None, 1, "replace_one"), budget=BUDGET, size=400)
    found = NamedAsks(stub).mean(Col("age").fill(0), within=0.5, at_most=Epsilon(20))
    assert found.accuracy() <= 0.5
    assert float(found.spent.exact) == pytest.approx(120 / 400 / 0.5 * np.log(1 / 0.05), rel=0.02)  # S2.4


@pytest.mark.parametrize(("within", "law"), [(50, Rho), (2, Epsilon)])
def test_an_accuracy_is_bought_by_the_law_that_takes_less_of_what_is_left_SR3(within: float, law: type):
    """Many counts of little accuracy fit as Gaussian ones, few of great accuracy as Laplace; `law` overrides."""
    table = pd.DataFrame({"x": [0, 1] * 50})
    with sulq.connect(table, columns={"x": Int(0, 1)}, budget=EpsilonDelta(4, 1e-6)) as db:
        found = db.count(within=within)
        assert isinstance(found.spent, law)
        assert found.accuracy() <= within
        other = "laplace" if law is Rho else "gaussian"
        named = db.explain("SELECT COUNT(*) AS n FROM data", within=within, law=other)
        assert isinstance(named.price, Epsilon if law is Rho else Rho)
        assert named.columns[0].widths[0] <= within
        assert type(db.count(within=within * 0.98, at_most=EpsilonDelta(4, 1e-6)).spent) is law
        with pytest.raises(QuestionError, match="more than at_most"):
            db.count(within=within * 0.97, at_most=EpsilonDelta(0.001, 1e-6))
        with pytest.raises(QuestionError, match="buys no gaussian noise"):
            db.count(within=within, at_most=Epsilon(1), law="gaussian")
