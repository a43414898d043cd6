"""SVD and PCA over several databases: estimates and their errors, one set of groups for all, who pays what."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Queries, SubLinear, Unit
from sulq.api.database import Database
from sulq.learn import vertical
from sulq.learn.vertical import MAX_GROUPS, best_number, from_cells, from_subsets, standard_errors
from tests.counts import count
from tests.learn.cases import exact, opened, refused
from tests.learn.matrices import captured
from tests.learn.noised import Noised, columns

N = 3000
REAL = sulq.Real(0, 1)


def rows() -> np.ndarray:
    """Four columns along two directions."""
    rng = np.random.default_rng(8)
    mixed = rng.normal(size=(N, 2)) @ np.array([[1, 0.8, 0.5, 0], [0, 0.3, -0.5, 0.9]])
    return np.clip(0.5 + 0.15 * mixed + 0.03 * rng.normal(size=(N, 4)), 0, 1)


def split(budget: object = None, **options: object) -> tuple[Database, Database]:
    """The columns in two databases, the rows of each in an order of its own."""
    points, ids = rows(), np.arange(N)
    other = np.random.default_rng(9).permutation(N)
    told = {"unit": Unit("id")} | options
    one = opened({"a": REAL, "b": REAL}, {"id": ids, "a": points[:, 0], "b": points[:, 1]}, budget, **told)
    points = points[other]
    two = opened({"c": REAL, "d": REAL}, {"id": ids[other], "c": points[:, 2], "d": points[:, 3]}, budget, **told)
    return one, two


def subset_sums(rng: np.random.Generator, kinds: np.ndarray, t: int) -> np.ndarray:
    """Sums of two Boolean columns over t random halves, by how many rows have both, the first, the second alone."""
    both, first, second = (rng.binomial(kind, 0.5, t) for kind in kinds)
    return np.stack([both + first, both + second], axis=1).astype(float)


def test_the_papers_numbers_S0_12() -> None:
    """N = 5000, p_a = .3, R = 25, t = 4000: true .1848, a standard error of .0060, which is the spread within 10%.

    Control: centred on noisy totals, R/n stays in the error, which is then .0078. With other subsets for each column
    the estimate is near zero, whatever the truth.
    """
    n, t, noise = 5000, 4000, 5.0
    kinds = np.array([924, 576, 691])  # rows with both, with the first, with the second alone: p_a = .3, p_b = .323
    truth = 924 / n
    moments = np.array([[0.3, truth], [truth, 0.323]])
    error = standard_errors(moments, np.full(2, noise**2), n, t, factor=4)[0, 1]
    assert truth == pytest.approx(0.1848)
    assert error == pytest.approx(0.0060, abs=5e-5)
    rng = np.random.default_rng(10)
    totals = np.array([kinds[0] + kinds[1], kinds[0] + kinds[2]], dtype=float)
    found, astray, before = [], [], []
    for _ in range(600):
        sums = subset_sums(rng, kinds, t) + noise * rng.normal(size=(t, 2))
        noisy = totals + noise * rng.normal(size=2)
        found.append(from_subsets(sums)[0, 1] / n)
        before.append((sums[:, 0] - noisy[0] / 2) @ (sums[:, 1] - noisy[1] / 2) * 4 / t / n)
        other = sums[rng.permutation(t), 1]  # column two over other subsets
        astray.append(from_subsets(np.stack([sums[:, 0], other], axis=1))[0, 1] / n)
    assert np.abs(np.array(found) - truth).max() < 6 * error
    assert np.std(found) == pytest.approx(error, rel=0.1)  # 600 draws tell a spread to 2.9%
    assert np.std(before) == pytest.approx(0.0078, rel=0.1)
    assert np.std(before) != pytest.approx(error, rel=0.1)
    assert abs(np.mean(found) - truth) < 5.5 * error / np.sqrt(600)
    assert np.abs(astray).max() < 0.05


def test_errors_of_halves_are_as_large_as_they_say_where_noise_is_S0_12() -> None:
    """Few people, much noise: the errors' spread is what `errors_` says within 10%, and 95% lie within 1.96 of it.

    Control: with the products of noisy totals in it, the spread is more than three times as large.
    """
    rng = np.random.default_rng(12)
    n, t, noise, runs = 300, 400, 40.0, 2000
    kinds = np.array([60, 40, 50])
    truth, totals = 60 / n, np.array([100.0, 110.0])
    moments = np.array([[100, 60], [60, 110]]) / n
    error = float(standard_errors(moments, np.full(2, noise**2), n, t, factor=4)[0, 1])
    away, before = [], []
    for _ in range(runs):
        sums = subset_sums(rng, kinds, t) + noise * rng.normal(size=(t, 2))
        away.append(from_subsets(sums)[0, 1] / n - truth)
        centred = sums - (totals + noise * rng.normal(size=2)) / 2
        before.append(centred[:, 0] @ centred[:, 1] * 4 / t / n - truth)
    assert np.std(away) == pytest.approx(error, rel=0.1)
    assert np.std(before) > 3 * error
    within = np.mean(np.abs(away) < 1.96 * error)
    assert abs(within - 0.95) < 5.5 * np.sqrt(0.95 * 0.05 / runs)


def test_groups_are_unbiased_and_their_error_is_foretold() -> None:
    """Products from disjoint groups: the truth on average, off by the predicted standard error; g groups and noise."""
    rng = np.random.default_rng(11)
    points = rows() - 0.5
    truth = points.T @ points / N
    runs = count("group estimates", short=300, long=5000)
    for groups, noise in ((20, 0.0), (200, 0.0), (200, 1.0)):
        found = []
        for _ in range(runs):
            place = rng.integers(groups, size=N)
            sums = np.stack([np.bincount(place, weights=column, minlength=groups) for column in points.T], axis=1)
            found.append(from_cells(sums + noise * rng.normal(size=sums.shape)) / N)
        error = standard_errors(truth, np.full(4, noise**2), N, groups, factor=groups)
        off = ~np.eye(4, dtype=bool)
        assert (np.abs(np.mean(found, axis=0) - truth) < 6 * error / np.sqrt(runs))[off].all()
        assert np.std(found, axis=0)[off] == pytest.approx(error[off], rel=0.3)


def test_so_many_groups_that_noise_equals_the_rows_own_products() -> None:
    """No other number has a smaller standard error; never fewer than two, never more than a list may hold."""
    squares, noise = np.array([0.1, 0.2]), np.array([4.0, 1.0])
    best = best_number(squares, noise, 10_000)
    moments = np.diag(squares)

    def error(groups: int) -> float:
        return float(standard_errors(moments, noise, 10_000, groups, factor=groups)[0, 1])

    assert error(best) <= min(error(groups) for groups in range(2, 3000)) * 1.0001
    assert best_number(squares, noise * 1e9, 10) == 2
    assert best_number(squares, noise * 0, 10) == MAX_GROUPS


def test_without_noise_it_is_near_the_whole_tables_S0_12() -> None:
    """Within each database products are exact, between them within five standard errors; directions follow."""
    points = rows()
    matrix = np.cov(points.T, bias=True)
    one, two = split()
    with one, two:
        X = [exact(one)[["a", "b"]], exact(two)[["c", "d"]]]
        for method, number, least in (("cells", 1000, 0.95), ("subsets", 200, 0.7)):
            model = vertical.PCA(2, method=method, cells=number).fit(X, spend=Epsilon(800))
            inside = np.zeros((4, 4), dtype=bool)
            inside[:2, :2] = inside[2:, 2:] = method == "cells"
            np.fill_diagonal(inside, True)
            assert np.allclose(model.covariance_[inside], matrix[inside], atol=1e-3)
            assert (np.abs(model.covariance_ - matrix)[~inside] < 5 * model.errors_[~inside]).all()
            assert model.errors_[~inside].max() < 1 / np.sqrt(number)
            assert captured(model.components_, matrix) > least
            assert model.feature_names_in_ == ("a", "b", "c", "d")
        whole = vertical.SVD(1).fit(X, spend=Epsilon(800))
        assert whole.singular_values_[0] == pytest.approx(np.linalg.norm(points, 2), rel=0.01)
        assert np.allclose(whole.transform(points), points @ whole.components_.T)


def test_other_groups_in_each_database_tell_nothing_S0_12() -> None:
    """Control: with a salt of its own each database's sums vary on their own; products between them are near zero."""
    points = rows()
    matrix = np.cov(points.T, bias=True)
    one, two = split()
    with one, two:
        sums = []
        for db, names, salt in ((one, "ab", 1), (two, "cd", 2)):
            values = tuple(sulq.col(name) - 0.5 for name in names)
            sums.append(exact(db).ask(sulq.Sums(values, by=(sulq.bucket(1000, salt),)), spend=Epsilon(1)))
        apart = from_cells(np.concatenate([answer.released.values() for answer in sums], axis=1)) / N
        model = vertical.PCA(2, cells=1000).fit([exact(one)[["a", "b"]], exact(two)[["c", "d"]]], spend=Epsilon(800))
    strong = np.abs(matrix) > 0.01
    strong[:2, :2] = strong[2:, 2:] = False
    assert strong.any()
    assert np.abs(apart[strong]).max() < 0.4 * np.abs(matrix[strong]).min()
    assert np.abs(model.covariance_[strong]).min() > 0.6 * np.abs(matrix[strong]).min()


def test_the_spend_is_the_sum_over_columns_SR20() -> None:
    """Each ledger is charged for its own columns, the model says the sum; a column more takes a larger part."""
    one, two = split(Epsilon(1))
    with one, two:
        model = vertical.PCA(2).fit([one[["a", "b"]], two["c"]], spend=Epsilon(1))
        assert abs(one.spent.exact - Fraction(2, 3)) < Fraction(1, 10**12)
        assert abs(two.spent.exact - Fraction(1, 3)) < Fraction(1, 10**12)
        assert model.spent_.exact == one.spent.exact + two.spent.exact
        refused("budget-exceeded", vertical.PCA(2).fit, [one["a"], two["c"]], spend=Epsilon(0.9))
        assert one.spent.exact < 0.67
        assert two.spent.exact < 0.34  # neither was charged, though this one could pay
    budget = SubLinear(epsilon=1, delta=1e-6, queries=120)
    one, two = split(budget, size=N)
    with one, two:
        model = vertical.PCA(2, cells=50).fit([one[["a", "b"]], two["c"]])
        assert one.spent == Queries(2 * 52)  # t + 2 a column
        assert two.spent == Queries(52)
        assert model.spent_ == Queries(3 * 52)


def test_a_shared_ledger_holds_all_parts_or_none_SR20(tmp_path: Path) -> None:
    """Two databases of one person space: refused whole if it cannot hold both parts, though each alone would fit."""
    points = rows()
    ledger, unit = tmp_path / "people.ledger", Unit("id")
    tables = [pa.table({"id": np.arange(N), name: points[:, i]}) for i, name in enumerate("ab")]
    opening = {"unit": unit, "budget": Epsilon(1), "ledger": ledger, "synthetic": True}
    with (
        sulq.connect(tables[0], table="first", columns={"a": REAL}, **opening) as one,
        sulq.connect(tables[1], table="second", columns={"b": REAL}, **opening) as two,
    ):
        assert one.facts.public_key == two.facts.public_key
        refused("budget-exceeded", vertical.PCA(1).fit, [one["a"], two["b"]], spend=Epsilon(1.5))
        assert one.spent.amount == 0
        model = vertical.PCA(1).fit([one["a"], two["b"]], spend=Epsilon(1))
        assert model.spent_ == one.spent == two.spent


@pytest.mark.parametrize("method", ["subsets", "cells"])
def test_queries_of_a_shared_ledger_are_counted_together_SR20(tmp_path: Path, method: str) -> None:
    """A SubLinear ledger that holds either database's queries, but not both: nothing is asked. Control: fewer fit."""
    points, unit = rows(), Unit("id", neighbors="zero_out")
    tables = [pa.table({"id": np.arange(N), name: points[:, i]}) for i, name in enumerate("ab")]
    budget = SubLinear(epsilon=1, delta=1e-6, queries=150)
    opening = {"unit": unit, "budget": budget, "ledger": tmp_path / "people.ledger", "synthetic": True, "size": N}
    with (
        sulq.connect(tables[0], table="first", columns={"a": REAL}, **opening) as one,
        sulq.connect(tables[1], table="second", columns={"b": REAL}, **opening) as two,
    ):
        refused("budget-exceeded", vertical.PCA(1, cells=100, method=method).fit, [one["a"], two["b"]])
        if method == "cells":
            refused("bad-parameter", vertical.PCA(1, method=method).fit, [one["a"], two["b"]])
        assert one.spent == two.spent == Queries(0)
        model = vertical.PCA(1, cells=50, method=method).fit([one["a"], two["b"]])
        assert model.spent_ == one.spent


def test_columns_of_one_database_are_asked_together() -> None:
    """Two handles on one database are one holder: their products are asked for, not estimated."""
    one, two = split()
    with one, two:
        oracle = Noised(one, 1)
        model = vertical.PCA(2).fit([columns(oracle, ["a"]), columns(oracle, ["b"])], spend=Epsilon(500))
        assert len(oracle.asked) == 2
        assert np.allclose(model.covariance_, np.cov(rows()[:, :2].T, bias=True), atol=2e-3)


def test_bad_parameters_cost_nothing() -> None:
    """No list, no person column, equal names, budgets of two kinds: refused, nothing spent anywhere."""
    one, two = split(Epsilon(1))
    plain = opened({"e": REAL}, {"e": rows()[:, 0]}, Epsilon(1))
    mixed = opened({"f": REAL}, {"id": np.arange(N), "f": rows()[:, 0]}, EpsilonDelta(1, 1e-6), unit=Unit("id"))
    with one, two, plain, mixed:
        X = [one["a"], two["c"]]
        for model in (
            vertical.PCA(0), vertical.PCA(3), vertical.SVD(3), vertical.PCA(1, cells=1), vertical.PCA(1, cells=10**6),
            vertical.PCA(1, method="mpc"), vertical.PCA(1, salt=0.5), vertical.PCA(1, scale=None),
        ):  # fmt: skip
            refused("bad-parameter", model.fit, X, spend=Epsilon(1))
        refused("bad-question", vertical.PCA(1).fit, np.zeros((3, 2)), spend=Epsilon(1))
        refused("bad-question", vertical.PCA(1).fit, [], spend=Epsilon(1))
        refused("bad-question", vertical.PCA(1).fit, [one["a"], one["a"]], spend=Epsilon(1))
        refused("needs-position", vertical.PCA(1).fit, [one["a"], plain["e"]], spend=Epsilon(1))
        refused("spend-missing", vertical.PCA(1).fit, X)
        refused("spend-kind", vertical.PCA(1).fit, [one["a"], mixed["f"]], spend=EpsilonDelta(1, 1e-6))
        assert all(db.spent.amount == 0 for db in (one, two, plain, mixed))


@pytest.mark.parametrize("method", ["cells", "subsets"])
def test_facts_of_the_data_are_no_errors_SR6(method: str) -> None:
    """Nobody in one database, or other people than in the other: a model at the full charge, without NaN."""
    for ids in (np.arange(0), np.arange(10), np.arange(10) + 100):
        one = opened({"a": REAL}, {"id": np.arange(10), "a": np.full(10, 0.3)}, Epsilon(1), unit=Unit("id"))
        two = opened({"b": REAL}, {"id": ids, "b": np.full(len(ids), 0.6)}, Epsilon(1), unit=Unit("id"))
        with one, two:
            model = vertical.PCA(2, method=method, cells=8).fit([one["a"], two["b"]], spend=Epsilon(1))
            assert abs(model.spent_.exact - 1) < Fraction(1, 10**12)
        for name, value in vars(model).items():
            if name.endswith("_") and isinstance(value, (float, np.ndarray)):
                assert np.isfinite(value).all(), name
        again = vertical.PCA.from_json(model.to_json())
        assert np.allclose(again.transform([[0.1, 0.2]]), model.transform([[0.1, 0.2]]))
