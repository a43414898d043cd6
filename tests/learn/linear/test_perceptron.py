"""The perceptron: the paper's algorithm without noise, its theorem with, its errata, its price."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

import sulq
from sulq import Epsilon, Queries, Rho, SubLinear, Unit
from sulq.answers.oracle import ColumnChoice
from sulq.answers.released import Noise
from sulq.errors import SulqError
from sulq.language.law import SMALLEST_SCALE, GaussianLaw
from sulq.learn import Perceptron, load
from sulq.learn.linear.perceptron import most_rounds
from sulq.learn.noisy_sums import deviations
from tests.counts import count
from tests.figures import figure
from tests.learn.cases import exact, opened
from tests.learn.sq.noisy import Arrays

FALSE_ALARM = 1e-7
ENDLESS = SubLinear(epsilon=1, delta=1e-6, queries=10**6)


def names(d: int) -> list[str]:
    return [f"x{i}" for i in range(d)]


def declared(d: int, low: float = -1, high: float = 1) -> dict[str, object]:
    return {**{name: sulq.Real(low, high) for name in names(d)}, "y": sulq.Bool()}


def table(X: np.ndarray, y: np.ndarray) -> dict[str, object]:
    return {**{name: X[:, i] for i, name in enumerate(names(X.shape[1]))}, "y": y}


def separable(
    rng: np.random.Generator, n: int, d: int, margin: float, stretch: float = 0.2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the unit ball, longer in some directions than in others, and a unit vector that separates them.

    The mean of the signed rows then does not: that takes rounds.
    """
    unit = np.ones(d) / np.sqrt(d)
    rows = rng.normal(size=(8 * n, d)) * np.geomspace(1, stretch, d)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)
    rows = rows[np.abs(rows @ unit) >= margin][:n]
    assert len(rows) == n
    return rows, rows @ unit > 0, unit


class Normal(Arrays):
    """The paper's own setting: every scalar gets normal noise of one variance R, none if R = 0."""

    def __init__(self, columns: dict[str, object], data: dict[str, object], R: float, seed: int = 0) -> None:
        super().__init__(columns, data, budget=ENDLESS, unit=Unit(neighbors="zero_out"))
        self.R = R
        self.draw = np.random.default_rng(seed)
        self.weights: list[np.ndarray] = []
        self.counts: list[tuple[float, float]] = []  # exact and noisy
        self.noise: list[np.ndarray] = []

    def ask(self, question: object, **options: object) -> object:
        self.weights.append(np.array(question.where.left.left.weights))
        answer = super().ask(question, **options)
        released = answer.released
        steps = np.repeat([float(part.step) for part in released.noise], [part.width for part in released.noise])
        drawn = np.rint(self.draw.normal(0, math.sqrt(self.R), released.units.shape) / steps)
        scales = [max(Fraction(math.sqrt(self.R)) / part.step, SMALLEST_SCALE) for part in released.noise]
        laws = tuple(
            Noise(GaussianLaw(scale), part.step, part.width) for scale, part in zip(scales, released.noise, strict=True)
        )
        noisy = replace(released, units=released.units + drawn.astype(np.int64), noise=laws)
        self.counts.append((float(released.values()[0, 0]), float(noisy.values()[0, 0])))
        self.noise.append(drawn[0, 1:] * steps[1:])
        return replace(answer, released=noisy)

    def fit(self, d: int, **parameters: object) -> Perceptron:
        model = Perceptron(fit_intercept=False, **parameters)
        return model.fit(ColumnChoice(tuple(names(d)), self), ColumnChoice(("y",), self))


def textbook(X: np.ndarray, sign: np.ndarray, rounds: int) -> tuple[np.ndarray, int]:
    """S0.15 in NumPy: the mean of all misclassified rows, until there is none."""
    weights = np.zeros(X.shape[1])
    for made in range(rounds):
        wrong = (X @ weights) * sign <= 0
        if not wrong.any():
            return weights, made
        weights = weights + (X * sign[:, None])[wrong].mean(axis=0)
    return weights, rounds


def refused(code: str, act: object, *args: object, **kwargs: object) -> None:
    with pytest.raises(SulqError) as refusal:
        act(*args, **kwargs)
    assert refusal.value.code == code


def test_without_noise_it_is_the_textbooks_S0_15() -> None:
    """The same weights as NumPy's, round by round, and no training error; the first round takes all rows for wrong."""
    X, y, _ = separable(np.random.default_rng(1), 2000, 4, 0.05)
    oracle = Normal(declared(4), table(X, y), R=0)
    model = oracle.fit(4, max_iter=2000)
    grid = np.rint(X * 2**14) / 2**14
    weights, rounds = textbook(grid, np.where(y, 1.0, -1.0), 2000)
    assert oracle.counts[0][0] == 2000
    assert (model.n_iter_, model.error_count_) == (rounds, 0)
    assert np.allclose(model.coef_[0], weights, rtol=1e-4)
    assert model.score(X, y) == 1
    assert model.spent_ == Queries((rounds + 1) * 5)


def test_a_database_gives_what_the_arrays_give() -> None:
    """On the noise-free oracle of a database, with the plane anywhere: no training error, in the columns' units."""
    rng = np.random.default_rng(2)
    X, y, _ = separable(rng, 800, 3, 0.1)
    X = 50 + 10 * X
    with opened(declared(3, 30, 70), table(X, y)) as db:
        plain = exact(db)
        model = Perceptron(max_iter=500, stop=0.01).fit(plain[names(3)], plain["y"], spend=Epsilon(900))
    assert model.score(X, y) == 1
    assert np.array_equal(model.decision_function(X) > 0, X @ model.coef_[0] + model.intercept_[0] > 0)


def test_the_hard_instance_S0_15() -> None:
    """N = 20,000, d = 6, margin .03: rounds 177 without noise, 60 to 100 at R = 100, 25 to 40 at R = 900.

    The data behind these numbers is not given. Ours, over 8 seeds: 34 without noise, 16 to 41 at R = 100 and 14 to 22
    at R = 900, with errors below .002 and .007; all are far below Theorem 2's 35,556. With more noise there are
    fewer, since the last rows are not looked for.
    """
    X, y, _ = separable(np.random.default_rng(3), 20_000, 6, 0.03)
    assert most_rounds(1, 0.03) == 35_556
    found = {}
    for R in (0, 100, 900):
        model = Normal(declared(6), table(X, y), R=R, seed=4).fit(6, max_iter=400)
        error = 1 - model.score(X, y)
        assert error <= 9 * math.sqrt(R) / 20_000  # the threshold, five deviations, and four more
        found[R] = model.n_iter_
    assert 400 > found[0] > found[100] > found[900] > 5, found


def test_rounds_are_bounded_S0_16() -> None:
    """With a margin m >> sqrt(d R)/s there are at most 32 max|x|^2/m^2 rounds; with m = .3 that is 356."""
    runs = count("perceptrons within Theorem 2", short=20, long=200)
    rng = np.random.default_rng(5)
    rounds = []
    for seed in range(runs):
        X, y, _ = separable(rng, 3000, 3, 0.3)
        model = Normal(declared(3), table(X, y), R=25, seed=seed).fit(3, max_iter=1000)
        rounds.append(model.n_iter_)
        assert 1 - model.score(X, y) <= 9 * 5 / 3000
    allowed = math.ceil(32 / 0.3**2)  # 32 max|x|^2/m^2, |x| <= 1
    assert most_rounds(1, 0.3) == allowed
    assert sum(made > allowed for made in rounds) <= binom.ppf(1 - FALSE_ALARM, runs, 0.01)
    figure("S0.16", "most rounds of 20 runs, margin .3, rows within 1", max(rounds), f"at most {allowed}")


def test_a_known_margin_bounds_the_rounds_beforehand_S0_16() -> None:
    """Of the spend each round the theorem allows has its part, and no other is planned."""
    rng = np.random.default_rng(6)
    X, y, _ = separable(rng, 5000, 2, 0.5)
    steps: list[tuple[int, int]] = []
    oracle = Arrays(declared(2), table(X, y), seed=1)
    data = ColumnChoice(tuple(names(2)), oracle), ColumnChoice(("y",), oracle)
    # Three coordinates, the constant one included, within half the corner of their cube: |x|^2 <= 3/4.
    Perceptron(margin=2.0).fit(*data, spend=Epsilon(5), progress=lambda *at: steps.append(at))
    assert steps[0] == (0, most_rounds(0.75, 2.0)) == (0, 6)


def test_the_invariants_of_the_proof_S0_27() -> None:
    """In 99% of rounds <w', w> grows by a quarter of the margin; |w|^2 stays within its sum where noise is no help."""
    X, y, unit = separable(np.random.default_rng(7), 20_000, 5, 0.1)
    oracle = Normal(declared(5), table(X, y), R=100, seed=8)
    oracle.fit(5, max_iter=300)
    weights = np.array(oracle.weights)
    grown = np.diff(weights @ unit)
    needed = [
        exact_ / noisy >= 1 / 2 and abs(unit @ noise) / noisy <= 0.1 / 4
        for (exact_, noisy), noise in zip(oracle.counts, oracle.noise, strict=True)
    ][: len(grown)]
    assert np.mean(grown[needed] >= 0.1 / 4) >= 0.99
    assert sum(needed) >= 5
    cross = bound = 0.0
    checked = 0
    for j, noise in enumerate(oracle.noise[: len(weights) - 1]):
        part = noise / oracle.counts[j][1]
        cross += float(weights[j] @ part)
        ratio = oracle.counts[j][0] / oracle.counts[j][1]
        bound += (ratio * 1.0) ** 2 + 2 * ratio * np.linalg.norm(part) + part @ part  # |v + n|^2 with |v| <= ratio
        if cross <= 0:
            checked += 1
            assert weights[j + 1] @ weights[j + 1] <= bound + 1e-6
    assert checked > 0
    assert not np.all(np.diff(weights @ -unit) >= 0.1 / 4)  # control: another vector does not grow along


def test_the_printed_baseline_does_not_learn_E13() -> None:
    """Adding d_j instead of l_j d_j goes astray, and the strict test never fires from w = 0."""
    X, y, _ = separable(np.random.default_rng(9), 500, 3, 0.2)
    sign = np.where(y, 1.0, -1.0)
    assert not np.any((X @ np.zeros(3)) * sign < 0)  # as printed: nothing is wrong at the start

    def learned(steps: np.ndarray) -> np.ndarray:
        weights = np.zeros(3)
        for _ in range(3000):
            wrong = np.flatnonzero((X @ weights) * sign <= 0)
            if not len(wrong):
                break
            weights = weights + steps[wrong[0]]
        return weights

    assert np.all((X @ learned(sign[:, None] * X)) * sign > 0)
    assert np.mean((X @ learned(X)) * sign <= 0) > 0.05  # as printed


def test_the_printed_bounds_change_with_the_unit_of_measure_E14() -> None:
    """Rows in other units take as many rounds: the printed 32 max|d|^2/delta and 32 max|d|/delta^2 fall below that."""
    X, y, _ = separable(np.random.default_rng(10), 1000, 6, 0.05, stretch=0.05)
    rounds = textbook(X, np.where(y, 1.0, -1.0), 10_000)[1]
    assert rounds == textbook(X / 1024, np.where(y, 1.0, -1.0), 10_000)[1] > 20
    for scale in (1e-3, 1.0, 1e3):
        longest, margin = scale, 0.05 * scale
        assert rounds <= most_rounds(longest**2, margin) == 12_800
    assert rounds > 32 * 1e-3**2 / (0.05 * 1e-3)  # the statement, in units a thousand times larger
    assert rounds > 32 * 1e3 / (0.05 * 1e3) ** 2  # the appendix, in units a thousand times smaller


def test_trap2_a_signed_sum_has_twice_the_range_E47() -> None:
    """Replacing a row moves l x by 2: noise for a range of 1 breaks the promise of .001 with probability .094."""
    z = norm.isf(0.001)
    mu = math.sqrt(z**2 + 2) - z  # T queries of range 1 at the paper's tight noise
    assert norm.sf(1 / mu - mu / 2) == pytest.approx(0.001)
    assert norm.sf(1 / (2 * mu) - mu) == pytest.approx(0.094, abs=1e-3)
    X, y, _ = separable(np.random.default_rng(11), 100, 2, 0.1)
    for neighbors, times in (("replace_one", 2), ("zero_out", 1)):
        options = {"budget": SubLinear(1, 1e-6, 100), "unit": Unit(neighbors=neighbors), "size": 100}
        oracle = Arrays(declared(2), table(X, y), **options)
        data = ColumnChoice(tuple(names(2)), oracle), ColumnChoice(("y",), oracle)
        Perceptron(max_iter=1, fit_intercept=False).fit(*data)
        noise = deviations(oracle.foresee(oracle.asked[0][0]))[0]
        assert noise[1:] / noise[0] == pytest.approx(times, rel=1e-3)


@pytest.mark.parametrize("spend", [Epsilon(2), Rho(0.1)])
def test_with_noise_it_separates_what_can_be_separated(spend: object) -> None:
    """20,000 rows of margin .3: few errors, counted within noise; what is not needed is not spent."""
    X, y, _ = separable(np.random.default_rng(12), 20_000, 4, 0.3, stretch=0.5)
    budget = spend if isinstance(spend, Epsilon) else Rho(1)
    oracle = Arrays(declared(4), table(X, y), seed=13, budget=budget)
    model = Perceptron().fit(ColumnChoice(tuple(names(4)), oracle), ColumnChoice(("y",), oracle), spend=spend)
    assert model.score(X, y) > 0.99
    assert 0 < model.spent_.exact <= spend.exact
    assert model.spent_.exact == pytest.approx(spend.exact * Fraction(len(oracle.asked), 12))
    assert 1 < len(oracle.asked) < 12


def test_a_sublinear_budget_counts_rounds() -> None:
    """A round costs 1 + d queries; there are as many as fit, and none where one does not."""
    X, y, _ = separable(np.random.default_rng(14), 4000, 3, 0.05)
    with opened(declared(3), table(X, y), SubLinear(1, 1e-6, queries=19), unit=Unit(neighbors="zero_out")) as db:
        model = Perceptron(fit_intercept=False, stop=1e-6).fit(db[names(3)], db["y"])
        assert model.spent_ == Queries(16)
        refused("budget-exceeded", Perceptron(fit_intercept=False).fit, db[names(3)], db["y"])
        assert db.spent == Queries(16)


def test_facts_of_the_data_are_no_errors_SR6() -> None:
    """No rows, one class, a constant column, missing cells: a valid model, no NaN, saved and loaded."""
    cells = {
        "none": (np.zeros((0, 2)), np.zeros(0, bool)),
        "one class": (np.full((50, 2), 0.3), np.ones(50, bool)),
        "missing": (np.array([[None, 0.2], [0.1, None]] * 30), np.array([True, None] * 30)),
    }
    for (X, y), seed in ((each, seed) for each in cells.values() for seed in (15, None)):
        oracle = Arrays(declared(2), table(X, y), seed=seed)
        data = ColumnChoice(tuple(names(2)), oracle), ColumnChoice(("y",), oracle)
        model = Perceptron(max_iter=4).fit(*data, spend=Epsilon(1))
        assert np.isfinite([*model.coef_[0], *model.intercept_, model.error_count_]).all()
        assert model.predict([[0.5, 0.5], [np.nan, 0]]).shape == (2,)
        assert np.array_equal(load(model.to_json()).predict([[0.5, -0.5]]), model.predict([[0.5, -0.5]]))


def test_categories_are_indicators() -> None:
    """A label that decides is found, through frames and arrays alike; a plane through the origin has no intercept."""
    rng = np.random.default_rng(16)
    frame = pd.DataFrame({"city": rng.choice(["Haifa", "Lod", "Yafo"], 4000), "age": rng.integers(0, 90, 4000)})
    columns = {"city": ["Haifa", "Lod", "Yafo"], "age": sulq.Int(0, 100), "y": ["no", "yes"]}
    data = {**{name: frame[name].to_numpy() for name in frame}, "y": np.where(frame.city == "Lod", "yes", "no")}
    oracle = Arrays(columns, data, seed=17)
    for intercept in (True, False):
        learner = Perceptron(fit_intercept=intercept, max_iter=6)
        model = learner.fit(ColumnChoice(("city", "age"), oracle), ColumnChoice(("y",), oracle), spend=Epsilon(9))
        assert model.score(frame, data["y"]) > 0.97
        assert intercept or model.intercept_[0] == 0


def test_bad_parameters_cost_nothing() -> None:
    """Told before the first ask."""
    columns = {**declared(2), "kind": ["a", "b", "c"]}
    X, y, _ = separable(np.random.default_rng(18), 10, 2, 0.1)
    with opened(columns, {**table(X, y), "kind": ["a", "b"] * 5}, Epsilon(1)) as db:
        for wrong in ({"max_iter": 0}, {"max_iter": 1.5}, {"margin": 0}, {"margin": "wide"}, {"stop": -1}, {"stop": 0}):
            refused("bad-parameter", Perceptron(**wrong).fit, db[names(2)], db["y"], spend=Epsilon(1))
        refused("bad-parameter", Perceptron(fit_intercept="no").fit, db[names(2)], db["y"], spend=Epsilon(1))
        refused("wrong-kind", Perceptron().fit, db[names(2)], db["kind"], spend=Epsilon(1))
        refused("not-fitted", Perceptron().predict, [[0, 0]])
        assert db.spent.amount == 0
