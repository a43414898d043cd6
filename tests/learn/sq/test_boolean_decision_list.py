"""Decision lists: a second concept class over the same bridge."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import sulq
from sulq import Epsilon, Queries, Rho, SubLinear, Unit
from sulq.answers.oracle import ColumnChoice
from sulq.errors import SulqError
from sulq.learn import DecisionList, load
from sulq.learn.sq import Adversarial, Exact
from tests.counts import count
from tests.learn.cases import exact, opened
from tests.learn.sq.noisy import ODD, Arrays, boolean, correlated, listed, rows

FALSE_ALARM = 1e-7


def names(columns: int) -> list[str]:
    return [f"x{i}" for i in range(columns)]


def refused(code: str, act: object, *args: object, **kwargs: object) -> SulqError:
    with pytest.raises(SulqError) as refusal:
        act(*args, **kwargs)
    assert refusal.value.code == code
    return refusal.value


def test_against_the_worst_oracle() -> None:
    """100 random lists and distributions, every answer pushed by tau: the error is at most the accuracy."""
    rng = np.random.default_rng(1)
    tight, lengths = 0.0, []
    for case in range(100):
        columns = int(rng.integers(1, 6))
        X = correlated(rng, 200, columns) if case % 2 else rng.random((200, columns)) < rng.random(columns)
        y = listed(X, rng, int(rng.integers(0, columns + 1)))
        weights = rng.exponential(size=200)
        push = ("up", "down", "turns", "against", lambda *_: rng.uniform(-1, 1))[case % 5]
        oracle = Adversarial(Exact(boolean(columns), rows(X, y), weights), push)
        model = DecisionList(accuracy=0.15).learn(oracle, names(columns), "y")
        error = float((weights / weights.sum()) @ (model.predict(X) != y))
        assert error <= 0.15
        assert error <= model.accuracy_ + 1e-9 <= 0.15 + 2e-9
        tight, lengths = max(tight, error), [*lengths, len(model.rules_)]
    assert tight > 0.01
    assert max(lengths) >= 4


def test_with_exact_answers_it_makes_no_mistake() -> None:
    """A tolerance of next to nothing: whatever list the labels are of, one is found that is right on every row."""
    rng = np.random.default_rng(2)
    for _ in range(30):
        X = rng.random((300, 5)) < rng.uniform(0.1, 0.9, 5)
        y = listed(X, rng, int(rng.integers(0, 6)))
        model = DecisionList(accuracy=1e-9).learn(Exact(boolean(5), rows(X, y)), names(5), "y")
        assert model.score(X, y) == 1.0
        assert len({name for name, _, _ in model.rules_}) == len(model.rules_) <= 5
    parity = X[:, 0] ^ X[:, 1]  # no list: a rule all the same, and a bound that tells
    model = DecisionList(accuracy=0.1).learn(Exact(boolean(5), rows(X, parity)), names(5), "y")
    assert 1 - model.score(X, parity) <= model.accuracy_


def test_without_noise_it_is_the_greedy_list() -> None:
    """On the noise-free oracle of a database: round by round the purest column, as worked out with NumPy."""
    rng = np.random.default_rng(3)
    X = rng.random((800, 4)) < [0.7, 0.4, 0.5, 0.6]
    y = listed(X, rng, 3)
    with opened(boolean(4), rows(X, y), size=800) as db:
        plain = exact(db)
        model = DecisionList(accuracy=0.05).fit(plain[names(4)], plain["y"], spend=Epsilon(800))
    tau, left, free, rules = 0.005, np.ones(800, bool), list(range(4)), []
    while free:
        if min((left & y).mean(), (left & ~y).mean()) <= tau:
            break
        options = []
        for i in free:
            for value in (True, False):
                for answer in (True, False):
                    covered = left & (X[:, i] == value)
                    wrong, mass = (covered & (y != answer)).mean(), covered.mean()
                    options.append((wrong > tau, (wrong + tau) / (mass + 2 * tau), i, value, answer))
        _, _, i, value, answer = min(options, key=lambda option: option[:2])
        rules.append((f"x{i}", value, answer))
        free.remove(i)
        left &= X[:, i] != value
    assert list(model.rules_) == rules
    assert model.default_ == bool((left & y).sum() >= (left & ~y).sum())
    assert model.score(X, y) >= 0.95


@pytest.mark.parametrize("spend", [Epsilon(2), Rho(0.1)])
def test_with_noise_its_bound_holds(spend: object) -> None:
    """Whatever the rows, the error is at most accuracy_ with probability 1 - beta; and lists are found."""
    rng = np.random.default_rng(4)
    runs = count(f"decision lists {spend}", short=8, long=200)
    broken, errors = 0, []
    for seed in range(runs):
        X = rng.random((20_000, 5)) < rng.uniform(0.2, 0.8, 5)
        y = listed(X, rng, 4) ^ (rng.random(20_000) < 0.02 * (seed % 2))
        database = Arrays(boolean(5), rows(X, y), seed=seed, budget=sulq.EpsilonDelta(9, 1e-6))
        model = DecisionList().fit(ColumnChoice(tuple(names(5)), database), ColumnChoice(("y",), database), spend=spend)
        broken += 1 - model.score(X, y) > model.accuracy_
        errors.append(1 - model.score(X, y))
        assert 0 < model.spent_.exact <= spend.exact
    assert broken <= binom.ppf(1 - FALSE_ALARM, runs, 0.05)
    assert np.mean(errors) < 0.05


def test_a_promise_is_checked_before_the_first_round() -> None:
    """All rounds together must fit the spend: else the rows it would need are told and nothing was asked."""
    rng = np.random.default_rng(5)
    X = rng.random((1000, 4)) < 0.5
    data = rows(X, listed(X, rng, 3))
    with opened(boolean(4), data, Epsilon(2), size=1000) as db:
        refusal = refused("too-few-rows", DecisionList(accuracy=0.05).fit, db[names(4)], db["y"], spend=Epsilon(2))
        assert db.spent.amount == 0
    needed = int(refusal.message.split("about ")[1].split(" rows")[0].replace(",", ""))
    X = rng.random((needed, 4)) < 0.5
    database = Arrays(boolean(4), rows(X, listed(X, rng, 3)), size=needed, seed=1)
    model = DecisionList(accuracy=0.05).fit(
        ColumnChoice(tuple(names(4)), database), ColumnChoice(("y",), database), spend=Epsilon(2)
    )
    assert model.spent_.exact <= 2


def test_under_a_sublinear_budget_each_cell_is_a_query() -> None:
    """Four a column and round, two for the last answer; a budget too small is refused at once."""
    rng = np.random.default_rng(6)
    X = rng.random((3000, 3)) < 0.5
    data, unit = rows(X, X[:, 0]), Unit(neighbors="zero_out")
    with opened(boolean(3), data, SubLinear(epsilon=1, delta=1e-6, queries=60), unit=unit, size=3000) as db:
        model = DecisionList(max_length=2).fit(db[names(3)], db["y"])
        assert model.spent_ in (Queries(12), Queries(14))
        assert model.score(X, X[:, 0]) > 0.9
        before = db.spent
        refused("too-few-rows", DecisionList(accuracy=0.05).fit, db[names(3)], db["y"])
        assert db.spent == before


def test_facts_of_the_data_are_no_errors_SR6() -> None:
    """No rows, one class, missing cells: a list, within its spend."""
    for data in ODD:
        for eta in (0.0, 0.2):
            database = Arrays(boolean(2), data, seed=1)
            model = DecisionList(eta=eta).fit(
                ColumnChoice(("x0", "x1"), database), ColumnChoice(("y",), database), spend=Epsilon(1)
            )
            assert 0 < model.spent_.exact <= 1
            assert np.isfinite([model.tolerance_, model.accuracy_]).all()
            assert model.predict(np.array([[1, 1], [0, 1]])).shape == (2,)


def test_bad_parameters_cost_nothing() -> None:
    """Told before the first ask."""
    data = rows(np.ones((9, 2), bool), np.ones(9, bool))
    with opened(boolean(2), data, Epsilon(1), size=9) as db:
        for wrong in (
            {"max_length": 0},
            {"max_length": 1.5},
            {"max_length": 3, "accuracy": 0.1},
            {"accuracy": 2},
            {"beta": 1},
            {"eta": 0.5},
        ):
            refused("bad-parameter", DecisionList(**wrong).fit, db[names(2)], db["y"], spend=Epsilon(1))
        refused("bad-parameter", DecisionList().learn, Exact(boolean(2), data), names(2), "y")
        assert db.spent.amount == 0


def test_the_list_can_be_read_and_kept() -> None:
    """As text, as JSON; a list of one answer too."""
    X = np.array([[True, False], [False, False], [False, True]] * 400)
    y = X[:, 0]
    database = Arrays(boolean(2), rows(X, y), seed=3, size=1200)
    model = DecisionList().fit(ColumnChoice(("x0", "x1"), database), ColumnChoice(("y",), database), spend=Epsilon(50))
    assert model.score(X, y) == 1.0
    assert model.export_text().splitlines()[0] in ("if x0: true", "if not x0: false")
    again = load(model.to_json())
    assert again.predict(X).tolist() == y.tolist()
    assert again.rules_ == model.rules_
    X_, y_ = ColumnChoice(("x0", "x1"), database), ColumnChoice(("y",), database)
    always = DecisionList(max_length=1).fit(X_, y_, spend=Epsilon(9))
    assert always.export_text() == "always false"
    assert always.predict(X).tolist() == [False] * 1200
