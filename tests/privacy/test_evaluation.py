"""Record and replay of how models are judged: neighbours are told apart by noise alone, whatever a model says."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import sulq
import sulq.testing
from sulq import Epsilon, EpsilonDelta, Rho, Unit
from sulq.answers.answer import Answer
from sulq.answers.oracle import ColumnChoice
from sulq.answers.readings.estimators import Plain
from sulq.learn import (
    ID3,
    PCA,
    AdditiveClassifier,
    AdditiveRegressor,
    KMeans,
    LinearRegression,
    LogisticRegression,
    NaiveBayes,
    Perceptron,
    StandardScaler,
    cross_validate,
    evaluate,
)
from sulq.learn.base import Learner
from sulq.testing import neighbours
from sulq.testing.replay import differences
from tests import counts
from tests.learn.cases import exact
from tests.privacy.cases import Program, engine, run, seeded

NAMES = ("age", "gain", "score", "city", "code")
MODELS: list[tuple[Learner, tuple[str, ...], str | None]] = [
    (AdditiveClassifier(rounds=1), NAMES, "flag"),
    (AdditiveRegressor(rounds=2), NAMES, "debt"),
    (ID3(max_depth=2), NAMES, "flag"),
    (ID3(max_depth=2), ("age", "gain", "day"), "city"),
    (KMeans(2), ("age", "gain", "flag"), None),
    (LinearRegression(), NAMES, "debt"),
    (LogisticRegression(max_iter=0), NAMES, "flag"),
    (LogisticRegression(max_iter=0), ("age", "gain"), "city"),
    (NaiveBayes(), (*NAMES, "day"), "flag"),
    (PCA(1), ("age", "gain", "score"), None),
    (Perceptron(), NAMES, "flag"),
]
UNITS = [
    Unit(),
    Unit("pid", 2),
    Unit(None, 1, "replace_one"),
    Unit("pid", 2, "replace_one"),
    Unit("pid", 2, "zero_out"),
]
# Every relation in memory; DuckDB writes SQL of its own for the same row functions.
WAYS = [*(("memory", unit) for unit in UNITS), ("duckdb", Unit("pid", 2, "replace_one"))]
SPENDS = (Epsilon(0.5), Rho(0.02), EpsilonDelta(0.5, 1e-6))


@functools.cache
def fitted(place: int) -> Learner:
    """A model of other people, as an analyst has it before asking."""
    model, names, label = MODELS[place]
    rng = np.random.default_rng(place)
    table = neighbours.arrow(neighbours.table(rng, Unit(), 200))
    columns = dict(neighbours.COLUMNS)
    with sulq.connect(table, table="data", columns=columns, budget=Epsilon(900), synthetic=True, engine="memory") as db:
        held = exact(db)
        learner = type(model)(**model.get_params())
        return learner.fit(held[list(names)], None if label is None else held[label], spend=Epsilon(50))


def plain(answer: Answer) -> Answer:
    """The released numbers themselves, as a replay compares them."""
    return answer.read(Plain(), tuple(f"v{i}" for i in range(answer.released.units.shape[1])))


def judging(place: int, spend: object, way: int) -> Program:
    """One way to judge a model on whatever rows there are."""
    model, names, label = fitted(place), *MODELS[place][1:]
    asks = ["score", "evaluate", "row"]
    if model.kind == "classifier":
        asks += ["confusion", *(("roc",) if len(model.classes_) == 2 else ())]
    ask = asks[way % len(asks)]

    def program(db: object) -> object:
        X, y = db[list(names)], None if label is None else db[label]
        if ask == "row":
            found = model.kind != "regressor" and not isinstance(model, PCA)
            return db.count(by=model.prediction_row() if found else None, spend=spend)
        if ask == "evaluate":
            return plain(evaluate(model, X, y, spend=spend).score)
        found = getattr(model, ask)(X, y, spend=spend)
        return plain(getattr(found, "answer", found))

    return program


def folded(db: object) -> object:
    """Folds of a scaled table: fits on parts of the people, and one question that judges them."""
    X = StandardScaler().fit(db[["age", "gain"]], spend=Epsilon(0.5)).transform(db[["age", "gain"]])
    y = ColumnChoice(("flag",), X.oracle)
    return plain(cross_validate(LogisticRegression(max_iter=0), X, y, folds=2, spend=Epsilon(2)).scores)


@pytest.mark.audit
@pytest.mark.parametrize(("kind", "unit"), WAYS, ids=str)
def test_judging_a_model_tells_neighbours_apart_by_noise_alone(kind: str, unit: Unit) -> None:
    """Scores, matrices, curves and predictions as keys: calls, bytes, errors and ledger are equal (RP, T17)."""
    planned = counts.count(f"judged models replayed on {kind}, {unit}", short=3, long=1_500)
    rng = seeded(f"judged models on {kind}, {unit}")
    budget, done, turn = EpsilonDelta(1000, 1e-6), 0, WAYS.index((kind, unit))
    while done < planned:
        rows = neighbours.table(rng, unit, 7)
        chosen = [(3 * turn + i) % len(MODELS) for i in range(3)]  # every model at least once, over all ways
        programs = [judging(i, SPENDS[(turn + i) % 3], turn + i) for i in chosen]
        pairs = list(neighbours.pairs(rng, unit, rows))
        with engine(kind, rows, unit) as source:
            first = run(source, programs, unit, budget)
        assert not any("Error" in outcome.split()[0] for outcome in first.outcomes), first.outcomes
        for i in rng.permutation(len(pairs))[:1]:
            with engine(kind, pairs[i].second, unit) as source:
                assert differences(first, run(source, programs, unit, budget, earlier=first)) == [], pairs[i].what
            done += len(programs)
        turn += len(WAYS) + 1


@pytest.mark.audit
@pytest.mark.parametrize("unit", [Unit("pid", 2), Unit("pid", 2, "replace_one")], ids=str)
def test_folds_tell_neighbours_apart_by_noise_alone_SR11(unit: Unit) -> None:
    """Whose part a person is in is public; what a part's people add to any of it is covered by noise (RP, SR11)."""
    planned = counts.count(f"folds replayed, {unit}", short=1, long=300)
    rng = seeded(f"folds, {unit}")
    budget, done = Epsilon(900), 0
    while done < planned:
        rows = neighbours.table(rng, unit, 6)
        pairs = list(neighbours.pairs(rng, unit, rows))
        with engine("memory", rows, unit) as source:
            first = run(source, [folded], unit, budget)
        assert not any("Error" in outcome.split()[0] for outcome in first.outcomes), first.outcomes
        for i in rng.permutation(len(pairs))[:1]:
            with engine("memory", pairs[i].second, unit) as source:
                assert differences(first, run(source, [folded], unit, budget, earlier=first)) == [], pairs[i].what
            done += 1


def test_control_a_model_that_was_fitted_to_the_rows_is_told_apart() -> None:
    """Were a threshold taken from the rows without noise, the questions would differ, and the replay says so."""
    unit, rows = Unit(), neighbours.table(seeded("rows of a leaky model"), Unit(), 7)
    second = [dict(row, age=3) for row in rows][:-1]

    def leaky(held: list[dict[str, object]]) -> Program:
        most = sum(int(row["age"] or 0) % 101 for row in held if isinstance(row["age"], int)) % 97
        return lambda db: db.count(by=sulq.case((sulq.col("age") > most, 1), otherwise=0), spend=Epsilon(1))

    with engine("memory", rows, unit) as source:
        first = run(source, [leaky(rows)], unit, Epsilon(100))
    with engine("memory", second, unit) as source:
        assert differences(first, run(source, [leaky(second)], unit, Epsilon(100), earlier=first))
