"""k-means: Lloyd's iteration without noise, the papers' prices and numbers, small clusters, and good centres."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit, learn
from sulq.answers.oracle import SpendPlan
from sulq.learn import KMeans
from sulq.learn.features import Features
from sulq.learn.unsupervised.kmeans import KMeansTask, LloydRound, Rounds
from sulq.learn.unsupervised.quantizer import nearest_of
from sulq.learn.unsupervised.space import ColumnSpace
from tests.counts import count
from tests.figures import figure
from tests.learn.cases import COLUMNS, DATA, exact, opened, refused
from tests.learn.matrices import POSTERIOR, theorem_1
from tests.learn.noised import Noised, Replayed, columns

TWO = ["x0", "x1"]
SQUARE = dict.fromkeys(TWO, sulq.Real(0, 1))
PLACES = np.array([[0.25, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75, 0.75]])


def table(points: np.ndarray) -> dict[str, np.ndarray]:
    return {f"x{i}": column for i, column in enumerate(points.T)}


def square(n: int, seed: int = 1, deviation: float = 0.08) -> np.ndarray:
    """Four groups in the unit square."""
    rng = np.random.default_rng(seed)
    return np.clip(PLACES[rng.integers(4, size=n)] + deviation * rng.normal(size=(n, 2)), 0, 1)


def lloyd(points: np.ndarray, centres: np.ndarray, rounds: int) -> np.ndarray:
    """The iteration as a textbook has it; a cluster of no rows stays."""
    for _ in range(rounds):
        place = nearest_of(points, centres)
        centres = np.stack(
            [points[place == i].mean(axis=0) if (place == i).any() else c for i, c in enumerate(centres)]
        )
    return centres


def test_given_centres_and_no_noise_it_is_lloyds_iteration_S0_13() -> None:
    """Every round's centres, the sizes and the inertia are the textbook's."""
    points = np.round(square(2000) * 2**12) / 2**12
    start = points[:4]
    with opened(SQUARE, table(points)) as db:
        X = exact(db)[TWO]
        model = KMeans(4, init=start, max_iter=4, threshold=0, inertia=True).fit(X, spend=Epsilon(1))
    for i, centres in enumerate(model.history_):
        assert np.allclose(centres, lloyd(points, start, i), atol=1e-3)
    assert np.array_equal(model.cluster_centers_, model.history_[-1])
    assert model.n_iter_ == 4
    before = nearest_of(points, lloyd(points, start, 3))
    assert model.counts_ == pytest.approx(np.bincount(before, minlength=4), abs=3)
    assert model.fractions_.sum() == pytest.approx(1)
    told = ((points - lloyd(points, start, 4)[before]) ** 2).sum()
    assert model.inertia_ == pytest.approx(told, rel=0.01)


def test_it_is_scikit_learns_iteration() -> None:
    """The same centres as scikit-learn's KMeans from the same start; predict, transform and score agree with it."""
    cluster = pytest.importorskip("sklearn.cluster")
    points = square(3000, seed=2)
    with opened(SQUARE, table(points)) as db:
        model = KMeans(4, init=PLACES + 0.1, max_iter=20).fit(exact(db)[TWO], spend=Epsilon(100))
    theirs = cluster.KMeans(4, init=PLACES + 0.1, n_init=1).fit(points)
    assert np.allclose(model.cluster_centers_, theirs.cluster_centers_, atol=1e-3)
    assert (model.predict(points) == theirs.predict(points)).mean() > 0.999
    assert np.allclose(model.transform(points[:9]), theirs.transform(points[:9]), atol=1e-2)
    assert model.score(points) == pytest.approx(theirs.score(points), rel=1e-3)


def test_a_tie_goes_to_the_lowest_index_S0_13() -> None:
    """A row between two centres is counted once, for the first."""
    points = np.full((100, 2), 0.5)
    with opened(SQUARE, table(points)) as db:
        start = [[0.25, 0.5], [0.75, 0.5]]
        model = KMeans(2, init=start, max_iter=1, threshold=0).fit(exact(db)[TWO], spend=Epsilon(1))
    assert model.counts_.tolist() == [100, 0]
    assert np.allclose(model.cluster_centers_, [[0.5, 0.5], [0.75, 0.5]], atol=1e-4)


def test_the_price_in_queries_S0_13() -> None:
    """Iterations * k(1 + d) = 60 queries, refused whole where one is missing."""
    for queries, fits in ((60, True), (59, False)):
        budget = SubLinear(epsilon=1, delta=1e-6, queries=queries)
        with opened(SQUARE, table(square(50)), budget, unit=Unit(neighbors="replace_one"), size=50) as db:
            if fits:
                assert KMeans(4).fit(db[TWO]).spent_ == Queries(5 * 4 * 3)
            else:
                refused("budget-exceeded", KMeans(4).fit, db[TWO])
                assert db.spent == Queries(0)


@pytest.mark.parametrize("inertia", [False, True])
def test_rounds_go_on_until_the_query_cap_S0_13_S1_10(*, inertia: bool) -> None:
    """As many rounds of k(1 + d) as the budget's queries allow, and no query more is asked or refused.

    The last round asks k more where the inertia is wanted. A spend in queries, and what was asked before, count.
    Control: one query less leaves a round less.
    """
    k, d, more = 4, 2, 4 * inertia
    for queries in (1000, k * (1 + d) * 7 + more, k * (1 + d) * 7 + more - 1):
        budget = SubLinear(epsilon=1, delta=1e-6, queries=queries)
        rounds = (queries - more) // (k * (1 + d))
        with opened(SQUARE, table(square(50)), budget, unit=Unit(neighbors="replace_one"), size=50) as db:
            model = KMeans(k, max_iter="budget", inertia=inertia).fit(db[TWO])
            assert model.n_iter_ == rounds == len(model.history_) - 1
            assert model.spent_ == db.spent == Queries(rounds * k * (1 + d) + more)
            assert db.remaining.queries < k * (1 + d)
            refused("budget-exceeded", KMeans(k, max_iter="budget", inertia=inertia).fit, db[TWO])
    budget = SubLinear(epsilon=1, delta=1e-6, queries=100)
    with opened(SQUARE, table(square(50)), budget, unit=Unit(neighbors="replace_one"), size=50) as db:
        db.count()
        refused("budget-exceeded", KMeans(k, max_iter="budget").fit, db[TWO], spend=Queries(11))
        assert KMeans(k, max_iter="budget").fit(db[TWO], spend=Queries(30)).spent_ == Queries(24)
        assert KMeans(k, max_iter="budget").fit(db[TWO]).spent_ == Queries(72)  # of 75 that are left


@pytest.mark.parametrize("k", [2, 4, 30])
def test_a_tight_round_costs_1_and_d_for_any_k_S0_13_X1(k: int) -> None:
    """Under a budget of loss a row is in one cell: squared L2 sensitivities of 1 for the size and d for the sums.

    So a round of any number of clusters costs 1 + d where the papers' costs k(1 + d); "budget" has no meaning there.
    """
    with opened(SQUARE, table(square(50)), Rho(1)) as db:
        X = db[TWO]
        space = ColumnSpace(Features.of(X), scale=False)
        rounds = Rounds(space, SpendPlan(X.oracle, Rho(1)), space.middle - space.half, np.inf, 1.0)
        (part,) = db.foresee(rounds.question(np.tile(space.middle, (k, 1))), spend=Rho(1)).parts
        assert [float(moved) ** 2 for moved in part.sensitivity] == pytest.approx([1, 2], rel=1e-6)
        refused("bad-parameter", KMeans(k, max_iter="budget", init="spread").fit, X, spend=Rho(1))
        refused("bad-parameter", KMeans(k, max_iter="all").fit, X, spend=Rho(1))
        assert db.spent.amount == 0


def test_the_error_of_a_mean_S0_14_E12() -> None:
    """N = 20,000, d = 2, k = 4: error/bound .66 on average, within twice the bound in 99% and more.

    The bound (|m| + sqrt d) sqrt R/|S| is in the *new* mean m: the part |m| sqrt R/|S| is what noise in the size makes.
    With the norm of the old centre, as printed, that part is passed by as many times as the old centre is shorter.
    """
    points = square(20_000, seed=3)
    budget = SubLinear(epsilon=1, delta=1e-6, queries=60)
    deviation = np.sqrt(POSTERIOR * 60)
    ratios = []
    with opened(SQUARE, table(points), budget, unit=Unit(neighbors="replace_one"), size=20_000) as db:
        place = nearest_of(points, PLACES)
        means = np.stack([points[place == i].mean(axis=0) for i in range(4)])
        sizes = np.bincount(place)
        assert (sizes >= 10 * deviation).all()
        for seed in range(count("k-means lemma 1", short=100, long=1000)):
            model = KMeans(4, init=PLACES, max_iter=1).fit(columns(Noised(db, seed), TWO))
            off = np.linalg.norm(model.cluster_centers_ - means, axis=1)
            ratios += list(off / ((np.linalg.norm(means, axis=1) + np.sqrt(2)) * deviation / sizes))
    assert np.mean(ratios) == pytest.approx(0.66, abs=0.08)
    figure("S0.14", "error of a mean over (|m| + sqrt d) sqrt R/|S|, on average", np.mean(ratios), "O(1)")
    assert np.mean(np.array(ratios) <= 2) >= 0.99 - 5 * np.sqrt(0.99 * 0.01 / len(ratios))
    assert np.mean(np.array(ratios) <= 0.5) < 0.6  # a quarter of it is passed

    # Noise in the size alone, N = 20,000 normal draws: twice the bound holds as often as two deviations do.
    size, mean = 4000, np.array([0.5, 0.5])
    sizes = size + deviation * np.random.default_rng(12).normal(size=20_000)
    found = LloydRound(sizes, np.tile(size * mean, (len(sizes), 1)), deviation, np.zeros(2)).means
    off = np.linalg.norm(found - mean, axis=1)
    correct = np.linalg.norm(mean) * deviation / size
    error = 5 / np.sqrt(len(sizes))
    assert np.mean(off <= 2 * correct) == pytest.approx(0.954, abs=0.5 * error)
    for shorter, held in ((4, 0.383), (40, 0.040), (400, 0.004)):  # P(|z| <= 2/shorter)
        printed = np.linalg.norm(mean / shorter) * deviation / size
        assert np.mean(off <= 2 * printed) == pytest.approx(held, abs=0.5 * error)


def test_the_error_of_the_papers_noise_and_of_less_S0_14() -> None:
    """N = 20,000, d = 2, k = 4, five rounds at (1, 1e-6): means off by .113 by Theorem 1, by .0056 with a 20th of it.

    Noise of 392 in every size and sum against 19.5, the mean over 4 x 500 means (standard errors .001 and .0001).
    """
    rng = np.random.default_rng(9)
    points = square(20_000, seed=3)
    place = nearest_of(points, PLACES)
    sizes = np.bincount(place).astype(float)
    means = np.stack([points[place == i].mean(axis=0) for i in range(4)])
    found = []
    for deviation in (np.sqrt(theorem_1(60)), np.sqrt(POSTERIOR * 15)):
        counts = sizes + deviation * rng.normal(size=(500, 4))
        sums = means * sizes[:, None] + deviation * rng.normal(size=(500, 4, 2))
        found.append(np.linalg.norm(np.clip(sums / counts[..., None], 0, 1) - means, axis=2).mean())
    assert found[0] == pytest.approx(0.113, abs=0.01)
    assert found[1] == pytest.approx(0.0056, abs=0.0005)


def test_the_papers_threshold_is_below_the_noise_E22() -> None:
    """T = 60: sqrt(T) = 7.7, noise 392 by Theorem 1. An empty cluster passes 7.7 half the time, 5 deviations never."""
    assert np.sqrt(60) == pytest.approx(7.746, rel=1e-3)
    assert np.sqrt(theorem_1(60)) == pytest.approx(392.4, rel=1e-3)
    rng = np.random.default_rng(4)
    sizes = rng.normal(0, np.sqrt(theorem_1(60)), 1_000_000)
    assert np.mean(sizes >= np.sqrt(60)) == pytest.approx(0.492, abs=0.003)
    assert np.mean(sizes >= 5 * np.sqrt(theorem_1(60))) < 5e-6
    start = np.vstack([PLACES[:3], [[1.0, 1.0]]])
    points = np.clip(square(4000)[:, :], 0, 0.6)  # nobody near the last centre
    budget = SubLinear(epsilon=1, delta=1e-6, queries=12, calibration="theorem1")
    with opened(SQUARE, table(points), budget, unit=Unit(neighbors="replace_one"), size=4000) as db:
        for seed in range(count("empty clusters", short=30, long=300)):
            oracle = Noised(db, seed)
            moved = KMeans(4, init=start, max_iter=1).fit(columns(oracle, TWO)).cluster_centers_[3]
            assert np.array_equal(moved, start[3])
        loose = KMeans(4, init=start, max_iter=1, threshold=0.0)
        passed = sum(bool((loose.fit(columns(Noised(db, s), TWO)).cluster_centers_[3] != 1).any()) for s in range(30))
        assert passed > 3  # without the noise's part, an empty cluster is moved about by noise


def test_the_deviation_not_the_variance_falls_as_1_over_n_E23() -> None:
    """Deviation of a mean's error times n/sqrt(R) is the same at every n; its variance times that is not."""
    budget = SubLinear(epsilon=1, delta=1e-6, queries=12)
    deviations = []
    for n in (4000, 16_000):
        points = square(n, seed=5)
        with opened(SQUARE, table(points), budget, unit=Unit(neighbors="replace_one"), size=n) as db:
            place = nearest_of(points, PLACES)
            means = np.stack([points[place == i].mean(axis=0) for i in range(4)])
            runs = [
                KMeans(4, init=PLACES, max_iter=1).fit(columns(Noised(db, s), TWO)).cluster_centers_ for s in range(200)
            ]
            deviations.append(np.std(np.array(runs) - means))
    scaled = np.array(deviations) * [4000, 16_000] / np.sqrt(POSTERIOR * 12)
    assert scaled[0] == pytest.approx(scaled[1], rel=0.25)
    as_printed = np.array(deviations) ** 2 * [4000, 16_000] / np.sqrt(POSTERIOR * 12)
    assert as_printed[0] / as_printed[1] > 2.5


def test_small_clusters_S1_10() -> None:
    """Kept, dropped, moved or raised, by the noisy size; raising says what it saw and that it was paid for."""
    points = np.clip(square(4000), 0, 0.6)
    start = np.vstack([PLACES[:3], [[1.0, 1.0]]])
    with opened(SQUARE, table(points), Epsilon(900)) as db:
        X = db[TWO]

        def fitted(small: str) -> KMeans:
            return KMeans(4, init=start, max_iter=1, small=small).fit(X, spend=Epsilon(10))

        assert fitted("keep").cluster_centers_[3].tolist() == [1, 1]
        dropped = fitted("drop")
        assert dropped.cluster_centers_.shape == (3, 2)
        assert len(dropped.counts_) == 3
        moved = fitted("move").cluster_centers_
        assert moved.shape == (4, 2)
        assert not np.array_equal(moved[3], [1, 1])
        before = db.spent.amount
        refused("small-cluster", fitted, "raise")
        assert db.spent.amount == before + 10
    with opened(SQUARE, table(np.zeros((0, 2))), Epsilon(900)) as db:  # nobody at all: one cluster stays
        model = KMeans(4, init=start, max_iter=2, small="drop").fit(db[TWO], spend=Epsilon(10))
        assert len(model.cluster_centers_) >= 1
        assert np.isfinite(model.cluster_centers_).all()


def test_the_gain_over_the_papers_noise() -> None:
    """392 by Theorem 1 for T = 60; at (1, 1e-6) here, five rounds, sizes and sums have a fifteenth of it or less."""
    points = square(500)
    with opened(SQUARE, table(points), EpsilonDelta(1, 1e-6)) as db:
        X = exact(db)[TWO]
        space = ColumnSpace(Features.of(X), scale=False)
        spending = SpendPlan(X.oracle, EpsilonDelta(1, 1e-6))
        rounds, centres, parts, _ = KMeansTask(space, spending, 4).plain(PLACES, 5, inertia=False)
        assert parts == [Fraction(1, 5)] * 5
        found = rounds.ask(centres, parts[0])
    assert np.sqrt(theorem_1(60)) / max(found.blur, found.errors.max()) >= 15
    assert np.sqrt(POSTERIOR * 5 * 3) == pytest.approx(19.5, abs=0.05)


@pytest.mark.parametrize(("spend", "most"), [(Epsilon(1), 1.03), (Rho(0.1), 1.03), (Epsilon(0.1), 1.2)])
def test_a_mixture_is_found(spend: object, most: float) -> None:
    """Five groups in ten dimensions, 40,000 rows, bounds four times wider than the groups: nearly the best inertia."""
    rng = np.random.default_rng(6)
    centres = rng.normal(size=(5, 10))
    points = centres[rng.integers(5, size=40_000)] + 0.6 * rng.normal(size=(40_000, 10))
    names = [f"x{i}" for i in range(10)]
    best = lloyd(points, centres, 10)
    whole = ((points - best[nearest_of(points, best)]) ** 2).sum()
    with opened(dict.fromkeys(names, sulq.Real(-6, 6)), table(points), EpsilonDelta(900, 1e-6)) as db:
        for seed in range(count("mixtures", short=2, long=20)):
            model = KMeans(5).fit(columns(Noised(db, seed), names), spend=spend)
            assert -model.score(points) / whole < most
        spread = KMeans(5, init="spread").fit(columns(Noised(db, 0), names), spend=spend)
        assert -spread.score(points) > whole  # it is a model too


def test_answers_are_all_a_model_is_made_of_S0_29() -> None:
    """The same answers give the same model without any rows: true sizes and convergence play no part."""
    with opened(SQUARE, table(square(2000))) as db:
        for parameters in ({}, {"init": "spread"}, {"init": PLACES, "small": "move"}):
            oracle = Noised(db, 1)
            one = KMeans(4, **parameters).fit(columns(oracle, TWO), spend=Epsilon(1))
            again = KMeans(4, **parameters).fit(columns(Replayed(oracle), TWO), spend=Epsilon(1))
            other = KMeans(4, **parameters).fit(columns(Noised(db, 2), TWO), spend=Epsilon(1))
            assert np.array_equal(one.cluster_centers_, again.cluster_centers_)
            assert not np.array_equal(one.cluster_centers_, other.cluster_centers_)


@pytest.mark.parametrize(
    "parameters", [{}, {"init": "spread"}, {"inertia": True}, {"small": "drop"}, {"small": "move"}]
)
def test_facts_of_the_data_are_no_errors_SR6(parameters: dict[str, object]) -> None:
    """No rows, one, equal ones, missing ones, fewer than clusters: a model at the full charge, without NaN."""
    for rows in (np.zeros((0, 2)), np.ones((1, 2)), np.full((9, 2), 0.5), np.full((9, 2), np.nan)):
        with opened(SQUARE, table(rows), Epsilon(1)) as db:
            model = KMeans(3, **parameters).fit(db[TWO], spend=Epsilon(1))
            assert abs(model.spent_.exact - 1) < Fraction(1, 10**12)
            assert db.spent == model.spent_
        assert np.isfinite(model.cluster_centers_).all()
        assert ((model.cluster_centers_ >= 0) & (model.cluster_centers_ <= 1)).all()
        assert np.isfinite(model.counts_).all()
        assert np.isfinite(model.fractions_).all()
        assert len(model.predict([[0.1, 0.2]])) == 1
        assert hasattr(model, "inertia_") == ("inertia" in parameters)


def test_bad_parameters_cost_nothing() -> None:
    """No clusters, centres of another shape, unknown policies: refused, nothing spent."""
    with opened(COLUMNS, DATA, Epsilon(1)) as db:
        X = db[["age", "income"]]
        for model in (
            KMeans(0), KMeans(1.5), KMeans(2, init=[[1, 2]]), KMeans(1, init=[[1, np.nan]]), KMeans(1, init="pca"),
            KMeans(1, init=[["a", "b"]]), KMeans(2, max_iter=0), KMeans(2, small="merge"), KMeans(2, threshold=-1),
            KMeans(2, inertia=1), KMeans(2, scale=None),
        ):  # fmt: skip
            refused("bad-parameter", model.fit, X, spend=Epsilon(1))
        refused("wrong-kind", KMeans(2).fit, db[["name"]], spend=Epsilon(1))
        refused("budget-exceeded", KMeans(2).fit, X, spend=Epsilon(1.1))
        refused("not-fitted", KMeans(2).predict, [[1, 2]])
        assert db.spent.amount == 0


def test_prediction_needs_no_database(tmp_path: object) -> None:
    """A kept model tells clusters of frames and arrays, categories included; a Pipeline takes it."""
    with opened(COLUMNS, DATA) as db:
        model = KMeans(2, scale=True).fit(db[["age", "city", "smoker"]], spend=Epsilon(1))
        given = KMeans(2, init=np.array([[1.0, 2], [3, 4]])).fit(db[["age", "income"]], spend=Epsilon(1))
    frame = pd.DataFrame(DATA)
    for fitted in (model, given):
        fitted.save(tmp_path / "model.json")
        again = learn.load(tmp_path / "model.json")
        assert np.array_equal(again.predict(frame), fitted.predict(frame))
    assert model.cluster_centers_.shape == (2, 5)
    pipeline = pytest.importorskip("sklearn.pipeline")
    assert np.array_equal(pipeline.Pipeline([("kmeans", model)]).predict(frame), model.predict(frame))


def test_progress_and_parts() -> None:
    """Each round is a step and an equal part; the whole is the spend."""
    with opened(SQUARE, table(square(500)), Epsilon(1)) as db:
        told: list[tuple[int, int]] = []
        KMeans(4, init=PLACES, max_iter=3).fit(db[TWO], spend=Epsilon(1), progress=lambda *step: told.append(step))
        assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
        assert len(db.transcript()) == 3
