"""Cross-validation: a person's rows are judged by the model that did not learn from them; every part of it is paid."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear, Unit, bucket
from sulq.answers.oracle import ColumnChoice
from sulq.learn import ID3, PCA, KMeans, LinearRegression, LogisticRegression, cross_validate, folds_of
from tests.learn.cases import exact, opened, refused
from tests.learn.evaluation.cases import rows_of

X = ["a", "b", "c"]
PERSON = Unit("pid", 2)


def people(unit: Unit = PERSON, budget: object = None, rows: int = 1200) -> sulq.Database:
    frame, declared, unit = rows_of(unit, rows)
    return opened(declared, {name: frame[name].to_numpy() for name in frame}, budget, unit=unit)


@pytest.mark.parametrize(
    ("model", "label", "name"),
    [
        (LogisticRegression(max_iter=0), "yes", "accuracy"),
        (ID3(max_depth=2), "kind", "accuracy"),
        (LinearRegression(narrow=False), "n", "r2"),
    ],
    ids=["two classes", "three", "a number"],
)
def test_without_noise_each_fold_is_scored_by_the_model_of_the_others(model: object, label: str, name: str) -> None:
    """As a fit on the condition that leaves a part out, scored on the condition that is that part."""
    with people() as db:
        held = exact(db)
        found = cross_validate(model, held[X], held[label], folds=3, spend=Epsilon(30), salt=4)
        assert found.scores.columns == (name,)
        for fold, one in enumerate(found.models):
            part = folds_of(held[[*X, label]], folds=3, salt=4)[fold][1]
            columns = [ColumnChoice(tuple(names), part.oracle) for names in (X, [label])]
            alone = one.score(*columns, spend=Epsilon(1)).value
            assert found.scores.value[fold] == pytest.approx(alone, abs=1e-6)
        sizes = held.count(by=bucket(3, 4), spend=Epsilon(1)).value
        if name == "accuracy":
            whole = sum(found.scores.value[fold] * sizes[fold] for fold in range(3)) / sum(sizes.values())
            assert found.score.value == pytest.approx(whole)


def test_a_person_is_judged_by_a_model_that_never_saw_them() -> None:
    """A label that only the person tells is not learned across folds: a control learns it from all people at once."""
    rng = np.random.default_rng(1)
    key = np.repeat([f"k{i}" for i in range(40)], 4)
    data = {"pid": key, "key": key, "yes": np.repeat(rng.random(40) < 0.5, 4)}
    declared = {"key": sorted(set(key.tolist())), "yes": sulq.Bool()}
    with opened(declared, data, unit=Unit("pid", 4)) as db:
        held = exact(db)
        alone = cross_validate(LogisticRegression(), held[["key"]], held["yes"], folds=4, spend=Epsilon(100))
        seen = LogisticRegression().fit(held[["key"]], held["yes"], spend=Epsilon(20))
        assert seen.score(held[["key"]], held["yes"], spend=Epsilon(1)).value > 0.95
        assert alone.score.value < 0.8


@pytest.mark.parametrize(
    ("budget", "spend", "unit"),
    [
        (Epsilon(20), Epsilon(5), PERSON),
        (Rho(20), Rho(1), Unit("pid", 2, "replace_one")),
        (EpsilonDelta(20, 1e-6), EpsilonDelta(3, 1e-6), PERSON),
        (EpsilonDelta(20, 1e-6), Rho(0.5), Unit(neighbors="zero_out")),
        (Epsilon(20), Epsilon(5), Unit(neighbors="replace_one")),
    ],
    ids=str,
)
def test_the_parts_add_up_to_the_spend(budget: object, spend: object, unit: Unit) -> None:
    """Each fit an equal part, the scores the rest; what is spent is what the ledger says, and no more than named."""
    with people(unit, budget, 400) as db:
        steps: list[tuple[int, int]] = []
        found = cross_validate(
            ID3(max_depth=2), db[X], db["yes"], folds=3, spend=spend, score_part=0.25,
            progress=lambda done, planned: steps.append((done, planned)),
        )  # fmt: skip
        told = [float(cost.amount) for _, cost in found.costs]
        most = float(db.facts.counted(spend).rho if isinstance(spend, EpsilonDelta) else spend.exact)
        assert sum(told) == pytest.approx(float(found.spent.amount))
        assert float(found.spent.amount) <= most * (1 + 1e-9)
        assert told == pytest.approx([most * 0.25] * 4, rel=0.02)
        assert [name for name, _ in found.costs] == [
            "fit without fold 0",
            "fit without fold 1",
            "fit without fold 2",
            "scores",
        ]
        assert steps == [(0, 4), (1, 4), (2, 4), (4, 4)]
        low, high = found.score.interval()
        assert low <= found.score.value <= high


@pytest.mark.parametrize("model", [KMeans(2), PCA(1)], ids=["clusters", "components"])
def test_models_without_a_label_are_scored_too(model: object) -> None:
    """By distances, or by what is held; the model that was given stays as it was."""
    with people() as db:
        held = exact(db)
        found = cross_validate(model, held[["a", "b"]], folds=2, spend=Epsilon(20))
        assert not model.fitted
        assert len(found.models) == 2
        assert np.isfinite(float(found.score.value))


def test_what_cannot_be_divided_is_refused_before_anything_is_paid() -> None:
    """Rows without people, queries, a Pipeline, arrays, a foreign model, wrong numbers, too little budget."""
    with people(Unit(), rows=200) as db:
        refused("needs-position", cross_validate, ID3(), db[X], db["yes"], spend=Epsilon(1))
        assert db.spent.amount == 0
    with people(budget=SubLinear(1, 1e-6, 10**4), rows=200) as db:
        refused("spend-kind", cross_validate, ID3(), db[X], db["yes"])
    with people(rows=200, budget=Epsilon(2)) as db:
        pay = Epsilon(1)
        refused("budget-exceeded", cross_validate, ID3(), db[X], db["yes"], spend=Epsilon(3))
        refused("spend-missing", cross_validate, ID3(), db[X], db["yes"])
        refused("bad-question", cross_validate, ID3(), [[1, 2, 3]], [True], spend=pay)
        refused("bad-question", cross_validate, object(), db[X], db["yes"], spend=pay)
        refused("bad-parameter", cross_validate, ID3(), db[X], db["yes"], folds=1, spend=pay)
        refused("bad-parameter", cross_validate, ID3(), db[X], db["yes"], score_part=1.0, spend=pay)
        refused("bad-parameter", cross_validate, ID3(max_depth=0), db[X], db["yes"], spend=pay)
        refused("bad-question", cross_validate, ID3(), db[X], None, spend=pay)
        refused("bad-literal", cross_validate, ID3(), db[X], db["yes"], salt=0.5, spend=pay)
        assert db.spent.amount == 0


def test_no_rows_are_no_error_SR6() -> None:
    """A fold may be empty, or all of them."""
    frame, declared, _ = rows_of(PERSON, 60)
    for rows in (0, 1, 60):
        with opened(declared, {name: frame[name].to_numpy()[:rows] for name in frame}, unit=PERSON) as db:
            found = cross_validate(LogisticRegression(max_iter=0), db[X], db["yes"], folds=3, spend=Epsilon(1))
            assert found.spent.exact <= 1
            assert repr(found)


def test_folds_are_parts_of_the_people() -> None:
    """Handles on the people without a part, and on the part: together all rows, with no declared size."""
    frame, declared, _ = rows_of(Unit(neighbors="replace_one"), 300)
    data = {name: frame[name].to_numpy() for name in frame}
    with opened(declared, data, unit=Unit(neighbors="replace_one"), size=300) as db:
        held = exact(db)
        for rest, part in folds_of(held[X], folds=3):
            assert (rest.names, part.names) == (tuple(X), tuple(X))
            assert rest.oracle.facts.size is part.oracle.facts.size is None
            asked = [each.oracle.ask(sulq.Sums((sulq.lit(1),)), spend=Epsilon(1)).value for each in (rest, part)]
            assert sum(asked) == 300
