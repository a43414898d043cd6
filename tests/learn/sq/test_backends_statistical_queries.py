"""The public face: `StatisticalQueries(db, spend=..., queries=q)` and `.stat(phi, tau)`."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq import Epsilon, Queries, col
from sulq.errors import SulqError
from sulq.learn import StatisticalQueries
from tests.learn.cases import opened

COLUMNS = {"age": sulq.Int(0, 100), "city": ["Lod", "Yafo"], "smoker": sulq.Bool()}


def data(rows: int) -> dict[str, object]:
    place = np.arange(rows)
    return {"age": place % 100, "city": np.where(place % 4 == 0, "Lod", "Yafo"), "smoker": place % 5 == 0}


def test_a_database_answers_statistical_queries() -> None:
    """Conditions and numbers of any columns, scaled into [0, 1]; the ledger has what `spent` says."""
    with opened(COLUMNS, data(100_000), Epsilon(1), size=100_000) as db:
        oracle = StatisticalQueries(db, spend=Epsilon(0.8), queries=10, beta=1e-7)
        assert oracle.spent.amount == 0
        assert oracle.remaining == Epsilon(0.8)
        assert abs(oracle.stat(col("smoker") & (col("city") == "Lod"), 0.02) - 0.05) <= 0.02
        assert abs(oracle.stat(col("age") / 100, 0.02) - 0.495) <= 0.02
        together = oracle.stats([col("smoker"), col("age") > 49], tau=0.02)
        assert np.abs(together - [0.2, 0.5]).max() <= 0.02
        first = oracle.cells([[col("age") < 25, col("age") < 50], [col("smoker")]], 0.02)
        assert np.abs(np.concatenate(first) - [0.25, 0.25, 0.2]).max() <= 0.02
        assert db.spent.amount == oracle.spent.exact
        assert oracle.remaining.exact + oracle.spent.exact == Epsilon(0.8).exact
        same = StatisticalQueries(db[["age"]], spend=Epsilon(0.1), queries=1, beta=1e-7)
        assert abs(same.stat(col("smoker"), 0.05) - 0.2) <= 0.05


def test_a_query_may_be_a_condition_as_text() -> None:
    """Also a handle, in each of the three ways to ask; one that is not read is refused before the debit."""
    with opened(COLUMNS, data(100_000), Epsilon(1), size=100_000) as db:
        oracle = StatisticalQueries(db, spend=Epsilon(0.8), queries=10, beta=1e-7)
        assert abs(oracle.stat("smoker AND city = 'Lod'", 0.02) - 0.05) <= 0.02
        assert np.abs(oracle.stats([db["smoker"], "age > 49"], tau=0.02) - [0.2, 0.5]).max() <= 0.02
        assert np.abs(oracle.cells([["age < 25", col("age") < 50]], 0.02)[0] - [0.25, 0.25]).max() <= 0.02
        spent = db.spent
        with pytest.raises(SulqError, match="line 1, column 1 of the condition"):
            oracle.stat("nobody > 3", 0.02)
        assert db.spent == spent


def test_every_query_is_new_noise_SR12() -> None:
    """The same query again is charged again and answered anew."""
    with opened(COLUMNS, data(5000), size=5000) as db:
        oracle = StatisticalQueries(db, spend=Epsilon(1), queries=20)
        answers = {oracle.stat(col("smoker"), 0.05) for _ in range(10)}
        assert len(answers) > 1
        assert len(db.transcript()) == 10


def test_the_code_of_a_refusal_is_listed() -> None:
    """And says what to do next."""
    with opened(COLUMNS, data(100), size=100) as db, pytest.raises(SulqError) as refusal:
        StatisticalQueries(db, spend=Epsilon(0.1), queries=5).stat(col("smoker"), 0.01)
    assert refusal.value.code == "too-few-rows"
    assert refusal.value.code in sulq.errors.CODES
    assert "rows" in str(refusal.value)


def test_nobody_counts_without_a_budget() -> None:
    """Where each repetition is a query, a spend of another kind has no meaning."""
    budget = sulq.SubLinear(epsilon=1, delta=1e-6, queries=10)
    with opened(COLUMNS, data(9000), budget, unit=sulq.Unit(neighbors="zero_out"), size=9000) as db:
        oracle = StatisticalQueries(db, queries=2)
        assert abs(oracle.stat(col("smoker"), 0.05) - 0.2) <= 0.1
        assert oracle.spent == Queries(1)
        assert oracle.remaining == Queries(9)
