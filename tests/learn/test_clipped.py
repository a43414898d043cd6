"""bounds="auto" of a fit: the columns are declared within what was found, and every question is of clipped columns."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear, Unit, col
from sulq.answers.auto_bounds import Bounds
from sulq.language.privacy import Loss
from sulq.learn import (
    LEARNERS,
    DecisionList,
    HillClimbing,
    KMeans,
    LinearRegression,
    LogisticRegression,
    MonotoneConjunction,
    NaiveBayes,
)
from sulq.learn.base import Learner
from sulq.learn.clipped import ClippedOracle
from tests.learn.cases import opened, refused

RNG = np.random.default_rng(47)
N = 4000
X = np.round(np.exp(RNG.normal(9, 0.8, N)))
COLUMNS = {
    "income": sulq.Int(0, 10**9),
    "age": sulq.Int(0, 120),
    "cost": sulq.Real(-(10**9), 10**9, default=0.0, missing=False),
    "rich": sulq.Bool(),
    "name": sulq.Text(),
}
DATA = {
    "income": X.astype(np.int64),
    "age": RNG.integers(18, 90, N),
    "cost": X / 4 + RNG.normal(0, 300, N),
    "rich": X > 9000,
    "name": np.array(["x"] * N),
}


@pytest.mark.parametrize(
    ("learner", "label"),
    [(LinearRegression, "cost"), (LogisticRegression, "rich"), (NaiveBayes, "rich"), (KMeans, None)],
)
@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.1), EpsilonDelta(1, 1e-6)], ids=["pure", "rho", "both"])
def test_a_fit_pays_for_its_search_and_says_what_it_found(
    learner: type[Learner], label: str | None, spend: Loss
) -> None:
    """All of it within the spend; the model tells its bounds, in JSON too, and predicts."""
    budget = EpsilonDelta(9, 1e-3) if isinstance(spend, EpsilonDelta) else type(spend)(9)
    with opened(COLUMNS, DATA, budget) as db:
        model = learner().fit(db[["income", "age"]], label and db[label], spend=spend, bounds="auto")
        most = db.facts.counted(spend).rho if isinstance(spend, EpsilonDelta) else spend.exact
        assert float(most) * 0.3 < float(model.spent_.exact) <= float(most)
    assert model.bounds_.keys() == {"income", "age", *(["cost"] if label == "cost" else [])}
    assert all(low < high for low, high in model.bounds_.values())
    again = learner.from_json(model.to_json())
    assert (again.bounds_, again.notes_) == (model.bounds_, model.notes_)
    assert model.notes_
    assert all("of the values lie beyond the clip" in note or "stood out" in note for note in model.notes_)
    assert len(model.predict(np.array([[9000, 40], [10**9, 300]]))) == 2


def test_wide_bounds_no_longer_spoil_a_fit() -> None:
    """Who is rich follows from the income alone: learned from clipped columns it is told, from the declared ones not.

    Of five fits the median, at epsilon 3.
    """

    def score(bounds: Bounds | None) -> float:
        found = []
        for _ in range(5):
            with opened(COLUMNS, DATA) as db:
                model = NaiveBayes().fit(db[["income", "age"]], db["rich"], spend=Epsilon(3), bounds=bounds)
            found.append(model.score(np.stack([DATA["income"], DATA["age"]], axis=1), DATA["rich"]))
        return float(np.median(found))

    assert score("auto") > 0.75
    assert score(None) < 0.65


def test_a_refused_fit_has_not_paid_for_a_search() -> None:
    """Parameters, columns, a spend too small or too large: all of it is looked at before the first debit."""
    with opened(COLUMNS, DATA, Epsilon(9)) as db:
        columns, label = db[["income", "age"]], db["rich"]
        refused("bad-parameter", KMeans(0).fit, columns, spend=Epsilon(1), bounds="auto")
        refused("wrong-kind", KMeans().fit, db[["income", "name"]], spend=Epsilon(1), bounds="auto")
        refused("wrong-kind", NaiveBayes().fit, columns, db["cost"], spend=Epsilon(1), bounds="auto")
        refused("bad-loss", KMeans().fit, columns, spend=Epsilon(1.2e-5), bounds="auto")
        refused("budget-exceeded", KMeans().fit, columns, spend=Epsilon(10), bounds="auto")
        refused("bad-question", NaiveBayes().fit, columns, label, spend=Epsilon(1), bounds=(0, 1))
        assert db.spent.amount == 0
    with opened(COLUMNS, DATA, SubLinear(1, 1e-6, 500), unit=Unit(neighbors="replace_one"), size=N) as db:
        refused("spend-kind", KMeans().fit, db[["income", "age"]], bounds="auto")


def test_every_question_is_of_clipped_columns_and_nothing_else_changes() -> None:
    """Facts and questions agree: a column is declared and asked within its clip, the others as they are."""
    with opened(COLUMNS, DATA) as db:
        oracle = ClippedOracle(db._oracle, {"income": (0, 1024), "cost": (-64.0, -2.0)})
        facts = oracle.facts
        income, cost = facts.schema.find("income"), facts.schema.find("cost")
        assert (income.lo, income.hi, cost.lo, cost.hi, cost.default) == (0, 1024, -64.0, -2.0, -2.0)
        assert facts.schema.find("age") == db.facts.schema.find("age")
        both = sulq.Sums((col("income") + 1, sulq.case((col("rich"), col("income")), otherwise=0)), col("income") > 5)
        plan = oracle.foresee(sulq.Together((both, sulq.Sums((col("age"),)))), spend=Epsilon(1))
        first, second = plan.parts
        assert [float(block.high[0] * block.step) for block in first.tally.blocks] == [1025, 1024]
        assert second.tally.blocks[0].high[0] == 120
        untouched = sulq.Sums((col("age"),))
        assert oracle._of(untouched) is untouched
        answer = oracle.ask(sulq.Sums((col("income"),)), spend=Epsilon(800))
        assert answer.value == pytest.approx(np.minimum(X, 1024).sum(), abs=200)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
def test_every_learner_takes_the_setting(learner: type[Learner]) -> None:
    """A fit tells the bounds of the numbers it searched, within what is declared; without, or of none, nothing."""
    label = {"classifier": "rich", "regressor": "cost"}.get(learner.kind)
    truths = learner in (DecisionList, HillClimbing, MonotoneConjunction)
    columns = ["old"] if truths else ["income", "age"]
    with opened(COLUMNS | {"old": sulq.Bool()}, DATA | {"old": DATA["age"] > 50}) as db:
        x, y = db[columns], label and db[label]
        plain, searched = (learner().fit(x, y, spend=Epsilon(5), bounds=bounds) for bounds in (None, "auto"))
    assert not hasattr(plain, "bounds_")
    found = getattr(searched, "bounds_", {})
    assert found.keys() == (set() if truths else {"income", "age", *(["cost"] if label == "cost" else [])})
    for name, (low, high) in found.items():
        assert COLUMNS[name].lo <= low < high <= min(COLUMNS[name].hi, 2**20)
