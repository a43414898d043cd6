"""Exact answers of made-up data: the truth in the shape of the noisy answer, free, and refused elsewhere (SR9)."""

from __future__ import annotations

import math
import statistics

import pyarrow as pa
import pytest

import sulq
from sulq import Above, Epsilon, EpsilonDelta, Int, Real, Rho, SubLinear, Sums, Together, col
from sulq.api.named_asks import NamedAsks
from sulq.errors import AccessDenied, QuestionError
from sulq.language.rowfn import Bins, Lit, Vector
from sulq.testing import exact
from sulq.testing.exact import without_noise

X = [1, 5, 7, 3, None, 9]
Y = [0.5, 0.25, 0.75, 1.0, 0.0, -4.0]
TABLE = pa.table({"x": X, "y": Y})
COLUMNS = {"x": Int(0, 9), "y": Real(0, 1)}


def opened(**options: object):
    given: dict[str, object] = {"columns": COLUMNS, "budget": Epsilon(1), "synthetic": True}
    return sulq.connect(TABLE, **(given | options))


@pytest.mark.parametrize("budget", [Epsilon(1), Rho(1), EpsilonDelta(1, 1e-6), SubLinear(1, 1e-6, 50)])
def test_exact_answers_are_the_truth_and_cost_nothing_SR9(budget: object) -> None:
    """Counts, sums, means, variances and covariances are those of the clamped cells, under every budget (SR9)."""
    present = [x for x in X if x is not None]
    clamped = [min(max(y, 0.0), 1.0) for y in Y]
    with opened(budget=budget) as db:
        truth = exact(db)
        assert truth.count().value == 6
        assert truth.sum("x").value == sum(present)
        assert truth.sum("y").value == sum(clamped)
        assert math.isclose(truth.mean("x").value, statistics.fmean(present))
        assert math.isclose(truth.variance("x").value, statistics.pvariance(present), rel_tol=1e-6)
        assert math.isclose(truth.std("x", ddof=1).value, statistics.stdev(present), rel_tol=1e-6)
        assert truth.histogram("x", bins=[0, 5, 9]).value == {(0, 5): 2, (5, 9): 3}
        both = [(x, y) for x, y in zip(X, clamped, strict=True) if x is not None]
        mean = [statistics.fmean(side) for side in zip(*both, strict=True)]
        products = statistics.fmean((x - mean[0]) * (y - mean[1]) for x, y in both)
        assert math.isclose(truth.covariance(["x", "y"]).value[0, 1], products, abs_tol=5e-3)
        asked = truth.ask(Together((Sums((Lit(1),)), Sums((col("x"),)))))
        assert [answer.value for answer in asked] == [6, 25]
        assert all("no noise" in repr(answer) for answer in (*asked, truth.count()))
        assert db.transcript() == []


def test_exact_answers_are_refused_for_private_data_and_other_oracles_T94() -> None:
    """Without the declaration, and for anything that is no open database of sulq's own, there is no exactness (T94)."""
    with opened(synthetic=False) as db:
        with pytest.raises(AccessDenied) as refused:
            exact(db)
        assert refused.value.code == "not-synthetic"
        assert "synthetic=True" in refused.value.remedy
        rows = db._oracle.curator._rows
        own = rows._kernel._draw
        with pytest.raises(AccessDenied):  # where rows are read, too: no other way leads to other noise
            rows.replace_noise(db._ledger, without_noise)
        assert rows._kernel._draw is own
    with opened() as db:
        truth = exact(db)
        assert isinstance(truth, NamedAsks)
        with pytest.raises(AccessDenied):
            exact(truth)
    with pytest.raises(AccessDenied):
        truth.count()


def test_what_the_noisy_database_would_refuse_is_refused_here_too_SR9() -> None:
    """The same plan is drawn: undeclared columns and unbounded sums are errors, budgets are not asked."""
    with opened() as db:
        for ask in (lambda: exact(db).sum("z"), lambda: exact(db).sum(1 / col("x"))):
            with pytest.raises(QuestionError):
                ask()
        assert exact(db).count(spend=Epsilon(500)).value == 6
        assert exact(db).foresee(Sums((Lit(1),))).parts


@pytest.mark.parametrize("budget", [Epsilon(1), Rho(1), EpsilonDelta(1, 1e-6)], ids=str)
def test_without_noise_the_first_sum_that_reaches_its_threshold_SR9(budget: object) -> None:
    """Cell by cell, coordinate by coordinate; equality passes; the number of sums where none does (SR9)."""
    halves = (Bins(col("x"), (0, 4, 9)),)  # 2 and 3 of the values, which add up to 4 and 21
    with opened(budget=budget) as db:
        for question, place in (
            (Above(Sums((Lit(1),)), 6), 0),
            (Above(Sums((Lit(1),)), 7), 1),
            (Above(Sums((Lit(1),), None, halves), 3), 1),
            (Above(Sums((Lit(1),), None, halves), (2, 9)), 0),
            (Above(Sums((Lit(-1),), None, halves), -2), 0),
            (Above(Sums((col("x"),), None, halves), 4.5), 1),
            (Above(Sums((col("x"),), None, halves), 100), 2),
            (Above(Sums((Vector((col("x") > 8, col("x") > 4, col("x") > 2), 1),)), 3), 1),
        ):
            answer = exact(db).ask(question)
            assert answer.value == place
            assert "no noise" in repr(answer)
        assert db.transcript() == []
