"""Hill climbing: the proof against the worst oracle, separable data, local tops, and the rows a promise needs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom

import sulq
from sulq import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit
from sulq.answers.oracle import ColumnChoice
from sulq.learn import HillClimbing, load
from sulq.learn.sq import Adversarial, Exact
from sulq.learn.sq.local_search import Conjunctions, Hypothesis, WeightedVotes
from tests.counts import count
from tests.figures import figure
from tests.learn.cases import exact, opened, refused
from tests.learn.sq.noisy import Arrays, boolean, correlated, rcn, rows
from tests.learn.sq.test_sq import BACKENDS, concept


def names(columns: int) -> list[str]:
    return [f"x{i}" for i in range(columns)]


def says(rule: Hypothesis, X: np.ndarray, hypotheses: str) -> np.ndarray:
    """A rule on rows, in plain NumPy."""
    if hypotheses == "halfspaces":
        return X @ np.array(rule[:-1]) >= rule[-1]
    return np.array(
        [all(not sign or (value == (sign > 0)) for sign, value in zip(rule, row, strict=True)) for row in X]
    )


def steps(rule: Hypothesis, hypotheses: str) -> list[Hypothesis]:
    """The neighbours of a rule by their definition: all rules, kept if they are one step away."""
    values = (0, 1) if hypotheses == "monotone" else (-1, 0, 1)
    states = itertools.product(values, repeat=len(rule) - (hypotheses == "halfspaces"))
    if hypotheses != "halfspaces":
        return [one for one in states if sum(a != b for a, b in zip(one, rule, strict=True)) == 1]
    reach = len(rule) - 1
    both = ((*one, b) for one in states for b in range(-reach, reach + 1))
    return [
        one
        for one in both
        if one != rule
        and sum(abs(a - b) for a, b in zip(one[:-1], rule[:-1], strict=True)) <= 1
        and abs(one[-1] - rule[-1]) <= 1
    ]


SPACES = {
    "monotone": Conjunctions(("x0", "x1", "x2"), monotone=True),
    "conjunctions": Conjunctions(("x0", "x1", "x2"), monotone=False),
    "halfspaces": WeightedVotes(("x0", "x1", "x2"), 1),
}


@pytest.mark.parametrize("hypotheses", SPACES)
def test_neighbours_and_conditions_are_as_defined(hypotheses: str) -> None:
    """By brute force over all rules of three columns; a rule's condition is what `predict` says, missing cells too."""
    space = SPACES[hypotheses]
    X = np.array(list(itertools.product((False, True), repeat=3)))
    seen, waiting = {space.first}, [space.first]
    while waiting:
        rule = waiting.pop()
        near = space.neighbours(rule)
        assert sorted(near) == sorted(steps(rule, hypotheses))
        assert len(near) <= space.most
        assert space.holds(rule, X).tolist() == says(rule, X, hypotheses).tolist()
        said = space.condition(rule)
        oracle = Exact(boolean(3), rows(X, X[:, 0]))
        mean = 1.0 if said is None else oracle.stat(said, 0.1)
        assert mean == pytest.approx(says(rule, X, hypotheses).mean())
        waiting += [one for one in near if one not in seen]
        seen.update(near)
    assert len(seen) == space.size


def test_against_the_worst_oracle_S2_16() -> None:
    """S2.16: 100 random targets and distributions, every answer pushed by tau: what the proof says holds.

    Each step lowers the true error rate; where the climb ends no neighbour is better by more than accuracy; the true
    error rate is at most `accuracy_`.
    """
    rng = np.random.default_rng(1)
    ended, climbed = 0, 0
    for case in range(100):
        columns, hypotheses = int(rng.integers(2, 6)), ("conjunctions", "halfspaces")[case % 2]
        X = correlated(rng, 300, columns) if case % 4 < 2 else rng.random((300, columns)) < rng.random(columns)
        y = X[:, rng.random(columns) < 0.5].all(axis=1) ^ (rng.random(300) < rng.choice([0.0, 0.1]))
        weights = rng.exponential(size=300)
        weights /= weights.sum()
        push = ("up", "down", "turns", "against", lambda *_: rng.uniform(-1, 1))[case % 5]
        oracle = Adversarial(Exact(boolean(columns), rows(X, y), weights), push)
        model = HillClimbing(accuracy=0.08, concepts=hypotheses).learn(oracle, names(columns), "y")

        def error(rule: Hypothesis) -> float:
            return float(weights @ (says(rule, X, hypotheses) != y))  # noqa: B023

        found = error(model.rule_)
        assert found <= model.accuracy_ + 1e-12
        assert abs(found - model.errors_[-1]) <= model.tolerance_ + 1e-12 == pytest.approx(0.02)
        assert oracle.asked == model.queries_ <= 1 + 6 * (2 * columns if case % 2 == 0 else 6 * columns + 2)
        assert np.diff(model.errors_).max(initial=-1) < -0.04
        assert found <= error((0,) * len(model.rule_)) + 1e-12
        if model.converged_:
            assert found <= min(map(error, steps(model.rule_, hypotheses))) + 0.08 + 1e-12
        ended += model.converged_
        climbed += len(model.errors_) > 2
    assert ended > 80
    assert climbed > 20


@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_leads_to_the_target_S2_16(name: str) -> None:
    """S2.16: exact, adversarial, sampled, joint, split, repeated, flipped labels: the same two columns."""
    X, y, data = concept(name)
    model = HillClimbing(accuracy=0.4, max_iter=4).learn(BACKENDS[name](data), names(3), "y")
    assert model.score(X, y) >= 1 - model.accuracy_ - 1e-9
    assert model.accuracy_ <= 0.6
    assert model.queries_ <= 25


@pytest.mark.parametrize("push", ["up", "down", "turns", "against"])
def test_separable_data_are_learned_S2_16(push: str) -> None:
    """S2.16: independent columns, a conjunction of three of six as the label: found itself, in 4 rounds."""
    rng = np.random.default_rng(2)
    X = rng.random((20_000, 6)) < [0.7, 0.5, 0.8, 0.6, 0.5, 0.4]
    y = X[:, 0] & X[:, 2] & X[:, 4]
    oracle = Adversarial(Exact(boolean(6), rows(X, y)), push)
    model = HillClimbing(accuracy=0.02).learn(oracle, names(6), "y")
    assert model.rule_ == (1, 0, 1, 0, 1, 0)
    assert model.export_text() == "x0 and x2 and x4"
    assert model.converged_
    assert model.score(X, y) == 1
    assert (model.queries_, model.tolerance_) == (1 + 4 * 12, 0.005)  # M and the least tau [S2.9]
    figure("S2.16", f"queries and error of a climb to 3 of 6 columns, tau .005, push {push}",
           [model.queries_, float(np.mean(model.predict(X) != y))], "at most 1 + 6 * 12, error 0")  # fmt: skip


def test_monotone_conjunctions_have_one_top_S2_16() -> None:
    """S2.16: independent columns: of all 64 monotone rules only the target has no better neighbour, on 50 laws.

    Error by the law's own formula. Control: with negations, ten columns of .9 and all of them the target, the climb
    ends where the rule hardly ever holds, at an error of P(T) = .35, and without them at the target.
    """
    rng = np.random.default_rng(16)
    rules = list(itertools.product((0, 1), repeat=6))
    for _ in range(50):
        p = rng.uniform(0.05, 0.95, 6)
        target = rng.random(6) < 0.5

        def error(rule: Hypothesis) -> float:
            asked = np.array(rule, bool)
            both = float(np.prod(p[asked | target]))  # noqa: B023
            return float(np.prod(p[asked]) + np.prod(p[target])) - 2 * both  # noqa: B023

        tops = [rule for rule in rules if error(rule) <= min(map(error, steps(rule, "monotone")))]
        assert tops == [tuple(target.astype(int).tolist())]
    X = rng.random((4000, 10)) < 0.9
    oracle = Exact(boolean(10), rows(X, X.all(axis=1)))
    found = {
        concepts: HillClimbing(accuracy=0.02, max_iter=12, concepts=concepts).learn(oracle, names(10), "y")
        for concepts in ("monotone", "conjunctions")
    }
    assert found["monotone"].score(X, X.all(axis=1)) == 1
    assert found["conjunctions"].converged_
    assert found["conjunctions"].error_ == pytest.approx(0.9**10, abs=0.02)


def test_halfspaces_are_learned_S2_16() -> None:
    """S2.16: x0 or x1 or not x3, a halfspace that no conjunction is: the target itself, against the worst oracle."""
    rng = np.random.default_rng(3)
    X = rng.random((5000, 5)) < [0.3, 0.2, 0.5, 0.7, 0.5]
    y = X[:, 0] | X[:, 1] | ~X[:, 3]
    oracle = Adversarial(Exact(boolean(5), rows(X, y)), "against")
    model = HillClimbing(accuracy=0.02, concepts="halfspaces").learn(oracle, names(5), "y")
    assert model.score(X, y) == 1
    assert model.rule_ == (1, 1, 0, -1, 0, 0)
    assert model.export_text() == "1 x0 + 1 x1 - 1 x3 >= 0"
    other = HillClimbing(accuracy=0.02).learn(oracle, names(5), "y")
    assert other.score(X, y) < 0.9


def test_a_parity_is_a_plateau_S2_16() -> None:
    """S2.16, the control: x0 xor x1 of fair columns: no neighbour of the start is better than 1/2.

    Of halfspaces a majority of three is one: from any single column both of the next steps have its error.
    """
    X = np.array(list(itertools.product((False, True), repeat=4)))
    y = X[:, 0] ^ X[:, 1]
    model = HillClimbing(accuracy=0.02).learn(Exact(boolean(4), rows(X, y)), names(4), "y")
    assert model.converged_
    assert model.rule_ == (0, 0, 0, 0)
    assert model.error_ == 0.5
    majority = X[:, :3].sum(axis=1) >= 2
    model = HillClimbing(concepts="halfspaces", accuracy=0.02).learn(
        Exact(boolean(4), rows(X, majority)), names(4), "y"
    )
    assert model.converged_
    assert model.score(X, majority) == 0.75


def test_a_tolerance_too_large_fails_S2_16() -> None:
    """S2.16, the control: pushed by a tau of .15 the climb cannot tell better from worse; by .005 it can."""
    rng = np.random.default_rng(4)
    X = rng.random((5000, 6)) < 0.8
    y = X[:, :3].all(axis=1)
    for accuracy, reached in ((0.6, False), (0.02, True)):
        model = HillClimbing(accuracy=accuracy).learn(Adversarial(Exact(boolean(6), rows(X, y))), names(6), "y")
        assert (model.score(X, y) == 1) is reached
    assert (
        HillClimbing(accuracy=0.02, max_iter=1).learn(Exact(boolean(6), rows(X, y)), names(6), "y").converged_ is False
    )


@pytest.mark.parametrize(
    "budget", [Epsilon(2), EpsilonDelta(4, 1e-6), Rho(2), SubLinear(epsilon=1, delta=1e-6, queries=300)]
)
@pytest.mark.parametrize("unit", [Unit(), Unit(neighbors="replace_one"), Unit("pid", rows=2)])
def test_too_few_rows_are_refused_up_front_S2_16(budget: object, unit: Unit) -> None:
    """S2.16: a promise that the spend does not buy for all rounds is refused with the rows it needs."""
    rng = np.random.default_rng(5)
    X = rng.random((400, 4)) < 0.7
    data = {**rows(X, X[:, 0] & X[:, 1]), "pid": np.arange(400)}
    spend = {Epsilon: Epsilon(1), Rho: Rho(0.1), EpsilonDelta: Rho(0.1)}.get(type(budget))
    with opened(boolean(4), data, budget, unit=unit, size=400) as db:
        learner = HillClimbing(accuracy=0.02)
        with pytest.raises(sulq.errors.QuestionError, match=r"would need about [\d,]+ rows") as refusal:
            learner.fit(db[names(4)], db["y"], spend=spend)
        assert refusal.value.code == "too-few-rows"
        if unit.rows == 1:
            assert not getattr(db.spent, "queries", getattr(db.spent, "amount", None))


@pytest.mark.parametrize(("spend", "budget"), [(Epsilon(1), Epsilon(2)), (Rho(0.05), EpsilonDelta(4, 1e-6))])
@pytest.mark.parametrize("size", [None, 20_000])
def test_with_noise_it_keeps_its_promise_S2_16(spend: object, budget: object, size: int | None) -> None:
    """S2.16: with probability 1 - beta the error is at most `accuracy_`, for the best of a spend and for a promise."""
    rng = np.random.default_rng(6)
    runs = count(f"climbs {spend} {size}", short=4, long=100)
    broken, scores = 0, []
    for seed in range(runs):
        X = rng.random((20_000, 5)) < [0.7, 0.5, 0.8, 0.6, 0.5]
        y = X[:, 0] & X[:, 2]
        database = Arrays(boolean(5), rows(X, y), seed=seed, budget=budget, size=size)
        X_, y_ = ColumnChoice(tuple(names(5)), database), ColumnChoice(("y",), database)
        for accuracy in (None, 0.3):
            model = HillClimbing(accuracy=accuracy, max_iter=4).fit(X_, y_, spend=spend)
            assert model.spent_.exact <= spend.exact
            broken += 1 - model.score(X, y) > model.accuracy_
            scores += [] if accuracy else [model.score(X, y)]  # a promise of .3 is kept by what is far off too
    assert broken <= binom.ppf(1 - 1e-7, 2 * runs, 0.05)
    assert np.mean(scores) > 0.95


def test_flipped_labels_S2_16_S2_13() -> None:
    """S2.16, S2.13: labels flipped at rate .3: with eta=.3 the climb ends at the target, whose error is below eta."""
    rng = np.random.default_rng(7)
    X = rng.random((60_000, 4)) < [0.7, 0.5, 0.8, 0.6]
    y = X[:, 0] & X[:, 2]
    seen = rcn(y, 0.3, rng)
    database = Arrays(boolean(4), rows(X, seen), seed=8, budget=Epsilon(20), size=60_000)
    X_, y_ = ColumnChoice(tuple(names(4)), database), ColumnChoice(("y",), database)
    model = HillClimbing(eta=0.3, max_iter=3).fit(X_, y_, spend=Epsilon(10))
    assert 1 - model.score(X, y) < 0.05
    assert abs(model.error_ - np.mean(model.predict(X) != y)) < model.tolerance_


def test_a_fit_on_a_database_saved_and_loaded() -> None:
    """Without noise the climb's own path; the file predicts as the model does; missing cells, empty data."""
    rng = np.random.default_rng(9)
    X = rng.random((3000, 3)) < 0.6
    y = X[:, 0] & ~X[:, 1]
    with opened(boolean(3), rows(X, y), size=3000) as db:
        plain = exact(db)
        model = HillClimbing().fit(plain[names(3)], plain["y"], spend=Epsilon(100))
        assert model.export_text() == "x0 and not x1"
        assert model.score(X, y) == 1
        again = load(model.to_json())
        assert again.predict(X).tolist() == model.predict(X).tolist()
        assert again.export_text() == model.export_text()
        assert again.predict([[None, None, None]]).tolist() == [False]
    with opened(boolean(2), rows(X[:0, :2], y[:0]), size=1000) as db:
        empty = HillClimbing(max_iter=2).fit(db[names(2)], db["y"], spend=Epsilon(1))
        assert 0 <= empty.error_ <= 1
        assert db.spent.exact <= 1
    budget = SubLinear(epsilon=1, delta=1e-6, queries=100)
    with opened(boolean(2), rows(X[:, :2], y), budget, size=3000) as db:
        HillClimbing(max_iter=3).fit(db[names(2)], db["y"])
        assert 0 < db.spent.queries <= 1 + 3 * 4
        assert isinstance(db.spent, Queries)


def test_bad_parameters_are_refused_and_nothing_is_spent() -> None:
    """Rounds, weights, spaces, kinds of columns."""
    with opened(
        {**boolean(2), "n": sulq.Int(0, 5)}, {**rows(np.ones((5, 2), bool), np.ones(5, bool)), "n": range(5)}
    ) as db:
        for wrong in ({"max_iter": 0}, {"max_weight": 0}, {"concepts": "trees"}, {"accuracy": 2}, {"beta": 0}):
            refused("bad-parameter", HillClimbing(**wrong).fit, db[names(2)], db["y"], spend=Epsilon(1))
        refused("wrong-kind", HillClimbing().fit, db[["n"]], db["y"], spend=Epsilon(1))
        refused(
            "bad-parameter",
            HillClimbing().learn,
            Exact(boolean(1), rows(np.ones((2, 1), bool), np.ones(2, bool))),
            ["x0"],
            "y",
        )
        assert db.spent.amount == 0
