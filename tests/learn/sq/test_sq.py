"""The seam: every backend answers within its tolerance, and every learner learns over every backend [S2.8]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import sulq
from sulq import Epsilon, Rho, SubLinear, Unit, col
from sulq.errors import QuestionError
from sulq.learn import DecisionList, MonotoneConjunction, StatisticalQueries
from sulq.learn.sq import Adversarial, Exact, NoisyLabels, Sample, StatOracle
from tests.learn.sq.noisy import Arrays, boolean, rcn, rows

D, N = 3, 15_000
ROWS = {"sample": 45_000, "split": 90_000}  # what each needs of it
COLUMNS = boolean(D)
ETA = 0.2


def concept(name: str = "") -> tuple[np.ndarray, np.ndarray, dict[str, object]]:
    """A conjunction, which is a decision list too, with its true labels and the rows a backend sees."""
    rng = np.random.default_rng(1)
    X = rng.random((ROWS.get(name, N), D)) < [0.7, 0.5, 0.6]
    y = X[:, 0] & X[:, 2]
    return X, y, rows(X, rcn(y, ETA, rng) if name == "noisy labels" else y)


def database(data: dict[str, object], **options: object) -> Arrays:
    people = np.arange(len(data["y"]))
    return Arrays({**COLUMNS, "pid": sulq.Int(0, len(people))}, {**data, "pid": people}, seed=2, **options)


def noisy_labels(data: dict[str, object]) -> StatOracle:
    return NoisyLabels(StatisticalQueries(database(data), spend=Epsilon(40), queries=200), "y", ETA)


QUERIES = 30
BACKENDS: dict[str, Callable[[dict[str, object]], StatOracle]] = {
    "exact": lambda data: Exact(COLUMNS, data),
    "up": lambda data: Adversarial(Exact(COLUMNS, data), "up"),
    "down": lambda data: Adversarial(Exact(COLUMNS, data), "down"),
    "turns": lambda data: Adversarial(Exact(COLUMNS, data), "turns"),
    "against": lambda data: Adversarial(Exact(COLUMNS, data), "against"),
    "sample": lambda data: Sample(COLUMNS, data, queries=QUERIES),
    "joint": lambda data: StatisticalQueries(database(data), spend=Epsilon(5), queries=QUERIES),
    "joint, declared": lambda data: StatisticalQueries(database(data, size=N), spend=Epsilon(5), queries=QUERIES),
    "joint, rho": lambda data: StatisticalQueries(database(data, budget=Rho(9)), spend=Rho(1), queries=QUERIES),
    "joint, population": lambda data: StatisticalQueries(
        database(data), spend=Epsilon(5), queries=QUERIES, population=True, family=10**6
    ),
    "split": lambda data: StatisticalQueries(
        database(data, unit=Unit("pid")), spend=Epsilon(20), queries=QUERIES, method="split"
    ),
    "repeated": lambda data: StatisticalQueries(
        database(data, budget=SubLinear(epsilon=1, delta=1e-6, queries=300), size=N), queries=QUERIES
    ),
    "repeated, counted": lambda data: StatisticalQueries(
        database(data, budget=SubLinear(epsilon=1, delta=1e-6, queries=300)), queries=QUERIES
    ),
    "noisy labels": noisy_labels,
}
PHIS = [col("x0"), ~col("x0") & col("y"), (col("x1") * 0.5 + 0.25).clip(0, 1), col("x2") | col("y"), sulq.lit(1)]


def truths(X: np.ndarray, y: np.ndarray) -> list[float]:
    return [X[:, 0].mean(), (~X[:, 0] & y).mean(), X[:, 1].mean() / 2 + 0.25, (X[:, 2] | y).mean(), 1.0]


@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_answers_within_its_tolerance(name: str) -> None:
    """One by one, together, and as tables; failures have a probability of .05 and the noise is seeded."""
    X, y, data = concept(name)
    oracle, tau, slack = BACKENDS[name](data), 0.1, 1 + 1e-9
    for phi, truth in zip(PHIS, truths(X, y), strict=True):
        assert abs(oracle.stat(phi, tau) - truth) <= tau * slack
    together = oracle.stats(PHIS, tau)
    assert np.abs(together - truths(X, y)).max() <= tau * slack
    tables = oracle.cells([[col("x0") & col("y"), col("x0"), ~col("y")], [col("x1")]], tau)
    expected = [(X[:, 0] & y).mean(), (X[:, 0] & ~y).mean(), (~X[:, 0] & ~y).mean()]
    assert [len(table) for table in tables] == [3, 1]
    assert np.abs(tables[0] - expected).max() <= tau * slack
    assert abs(tables[1][0] - X[:, 1].mean()) <= tau * slack


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("learner", [MonotoneConjunction, DecisionList])
def test_every_learner_runs_on_every_backend(learner: type, name: str) -> None:
    """And has the error it promises, on the true labels."""
    X, y, data = concept(name)
    model = learner(accuracy=0.4).learn(BACKENDS[name](data), ["x0", "x1", "x2"], "y")
    assert model.score(X, y) >= 1 - 0.4
    assert model.accuracy_ <= 0.4 + 1e-9


@pytest.mark.parametrize("name", BACKENDS)
def test_what_is_no_query_is_refused(name: str) -> None:
    """A function outside [0, 1], a tolerance of nothing, an unknown column: nothing is asked."""
    oracle = BACKENDS[name](concept(name)[2])
    for phi, tau, code in [
        (col("x0") * 2, 0.1, "bad-question"),
        (col("x0") - 1, 0.1, "bad-question"),
        (col("y") * 2, 0.1, "bad-question"),
        (col("y") * 1.5 - 0.25, 0.1, "bad-question"),
        (3, 0.1, "bad-question"),
        (col("x0"), 0.0, "bad-parameter"),
        (col("x0"), 1.1, "bad-parameter"),
        (col("z"), 0.1, "unknown-column"),
    ]:
        with pytest.raises(QuestionError) as refusal:
            oracle.stat(phi, tau)
        assert refusal.value.code == code


def test_a_query_past_the_last_is_refused() -> None:
    """The bounds were made for so many queries and no more."""
    for name in ("sample", "joint", "split", "repeated"):
        oracle = BACKENDS[name](concept(name)[2])
        with pytest.raises(QuestionError) as refusal:
            oracle.stats([col("x0")] * (QUERIES + 1), 0.3)
        assert refusal.value.code == "too-large"


def test_what_the_learners_ask_S2_9() -> None:
    """Conjunctions: d queries of tolerance accuracy/(2d). Lists: at most 2d(d+1) + 2 of accuracy/(2d + 2)."""
    taus: list[float] = []

    class Counting(Exact):
        def stat(self, phi: object, tau: float) -> float:
            taus.append(tau)
            return super().stat(phi, tau)

    oracle = Counting(COLUMNS, concept()[2])
    MonotoneConjunction(accuracy=0.3).learn(oracle, ["x0", "x1", "x2"], "y")
    assert taus == [0.3 / 6] * 3
    taus.clear()
    DecisionList(accuracy=0.3).learn(oracle, ["x0", "x1", "x2"], "y")
    assert 0 < len(taus) <= 2 * 3 * 4 + 2
    assert set(taus) == {0.3 / 8}


def test_a_reply_is_within_tau_of_the_expectation_S2_8() -> None:
    """S2.8: for phi of a row and its label into [0, 1], a reply is within tau of E phi, and may be an end.

    The notes' two examples, the error rate of h and P[x_i = 0 and y = 1], under a law with weights, by enumeration.
    Control: an oracle that pushes by 2 tau is caught, and a learner that keeps its promise against tau breaks with it.
    """
    kinds = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], bool)
    y = kinds[:, 0] & kinds[:, 2]
    law = np.arange(1.0, 9.0) / 36
    said = kinds[:, 0]  # h = x0
    queries = {
        "error of h": (col("x0") != col("y"), said != y),
        "x1 = 0, y = 1": (~col("x1") & col("y"), ~kinds[:, 1] & y),
    }
    exact, tau = Exact(COLUMNS, rows(kinds, y), law), 0.05
    for phi, holds in queries.values():
        truth = float(law @ holds)
        assert exact.stat(phi, tau) == pytest.approx(truth)
        for push, end in (("up", truth + tau), ("down", truth - tau)):
            assert Adversarial(exact, push).stat(phi, tau) == pytest.approx(end)  # the ends are allowed
        wild = Adversarial(exact, lambda *_: 99.0)  # a push is held to tau
        assert wild.stat(phi, tau) == pytest.approx(truth + tau)

    class Past(Exact):
        def stat(self, phi: object, tau: float) -> float:
            return super().stat(phi, tau) + 2.1 * tau

    past = Past(COLUMNS, rows(kinds, y), law)
    assert abs(past.stat(queries["error of h"][0], tau) - float(law @ (said != y))) > tau
    names, accuracy = ["x0", "x1", "x2"], 0.3
    within = MonotoneConjunction(accuracy=accuracy).learn(Adversarial(exact, "up"), names, "y")
    assert {"x0", "x2"} <= set(within.variables_)  # no column of the target is lost
    assert not {"x0", "x2"} & set(MonotoneConjunction(accuracy=accuracy).learn(past, names, "y").variables_)
