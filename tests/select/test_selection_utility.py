"""Utilities that an owner declares, and base measures: the exact law, and who may choose by what (S3.31, SR5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

import sulq
from sulq import Choose, Epsilon, EpsilonDelta, Int, Linear, Rho, Sums, Unit, Utility, col, lit, select
from sulq.errors import QuestionError, SetupError
from sulq.language.law import ExponentialLaw, FlipLaw, MetricLaw
from tests.figures import figure

GROUPS = 4096
WEIGHTS = (1, 5, 2)
COUNTS = (3, 0, 1)  # rows of each candidate in a group
ALARM = 1e-9
BUDGET = EpsilonDelta(1000, 1e-6)


def ages(rows: np.ndarray) -> list[float]:
    """An owner's utility: how many rows are young, in the middle, or old."""
    return [
        float((rows[:, 0] < 40).sum()),
        float(((rows[:, 0] >= 40) & (rows[:, 0] < 70)).sum()),
        float((rows[:, 0] >= 70).sum()),
    ]


def expected(scale: float, weights: tuple[int, ...], scores: tuple[int, ...] = COUNTS) -> np.ndarray:
    """The exponential mechanism with a base measure, by its definition [S3.9, E29]: weight times exp(+score/scale)."""
    found = np.array([w * math.exp(s / scale) for w, s in zip(weights, scores, strict=True)])
    return found / found.sum()


def fits(observed: np.ndarray, law: np.ndarray) -> bool:
    """Whether counts are of a law, but for one time in 10^9."""
    gap = ((observed - observed.sum() * law) ** 2 / (observed.sum() * law)).sum()
    return bool(gap < chi2.isf(ALARM, len(law) - 1))


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.1)], ids=str)
def test_a_base_measure_is_in_the_law_S3_31(spend: object) -> None:
    """One choice in each of 4,096 groups, all of the same counts: as often as its exact probability says.

    Control: without weights, with others, and by the wrong sign (E29), the law does not fit.
    """
    rows = [(group, value) for group in range(GROUPS) for value, many in enumerate(COUNTS) for _ in range(many)]
    table = pa.table({"group": [group for group, _ in rows], "value": [value for _, value in rows]})
    matrix = tuple(tuple(int(i == c) for i in range(3)) for c, weight in enumerate(WEIGHTS) for _ in range(weight))
    with sulq.connect(table, columns={"group": Int(0, GROUPS - 1), "value": Int(0, 2)}, budget=BUDGET) as db:
        question = Choose(Sums((lit(1),), by=(col("group"), col("value"))), Linear(matrix), exponential=True)
        law = db.foresee(question, spend=spend).parts[0].laws[0]
        drawn = db.ask(question, spend=spend).released.units.ravel()
    assert isinstance(law, MetricLaw if isinstance(spend, Epsilon) else ExponentialLaw)
    chosen = np.bincount(np.searchsorted(np.cumsum(WEIGHTS), drawn, side="right"), minlength=3)
    scale = float(law.scale)
    assert fits(chosen, expected(scale, WEIGHTS))
    if isinstance(spend, Epsilon):
        share, law_share = (chosen / chosen.sum()).tolist(), expected(scale, WEIGHTS).tolist()
        figure("S3.31", "shares of 4,096 choices; utilities 3, 0, 1, weights 1, 5, 2, epsilon 1", share, law_share)
    assert not fits(chosen, expected(scale, (1, 1, 1)))
    assert not fits(chosen, expected(scale, (1, 2, 5)))
    assert not fits(chosen, expected(-scale, WEIGHTS))


def test_a_pure_exponential_choice_costs_what_is_paid_S3_9() -> None:
    """Scale D/epsilon for a span of D, as permute-and-flip: over all neighbouring counts the odds move by e^epsilon.

    Control: half the noise passes it.
    """
    with sulq.connect(pa.table({"value": [0]}), columns={"value": Int(0, 2)}, budget=BUDGET) as db:
        counts = Sums((lit(1),), by=(col("value"),))
        plans = [
            db.foresee(Choose(counts, Linear(((1, 0, 0), (0, 1, 0), (0, 0, 1))), exponential=e), spend=Epsilon(1))
            for e in (False, True)
        ]
    (flip, law), draws = (plan.parts[0].laws[0] for plan in plans), [plan.event.draws[0] for plan in plans]
    assert (type(flip), type(law)) == (FlipLaw, MetricLaw)
    assert draws[0].sensitivity == draws[1].sensitivity == 1
    assert law.scale == flip.scale >= 1

    def lost(scale: float) -> float:
        vectors = [(a, b, c) for a in range(4) for b in range(4) for c in range(4)]
        pairs = [(v, tuple(x + (i == j) for j, x in enumerate(v))) for v in vectors for i in range(3)]
        return max(
            float(np.abs(np.log(expected(scale, WEIGHTS, a) / expected(scale, WEIGHTS, b))).max()) for a, b in pairs
        )

    assert lost(float(law.scale)) <= 1
    assert lost(float(law.scale) / 2) > 1


@pytest.fixture
def people() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table({"pid": np.arange(400) // 2, "age": rng.integers(70, 100, 400)})


@pytest.mark.parametrize(
    "unit",
    [Unit(), Unit("pid", 2), Unit(neighbors="replace_one"), Unit("pid", 2, "replace_one"), Unit(neighbors="zero_out")],
    ids=str,
)
def test_a_declared_utility_is_chosen_by_its_name_S3_31(people: pa.Table, unit: Unit, tmp_path: Path) -> None:
    """By function and by sums, with weights and without, for every kind of spend; saved and read again.

    The best is drawn where the spend is large; a wrong sign would draw the others (E29).
    """
    place = "tests.select.test_selection_utility:ages"
    labels = ("young", ("if", "middle", ("then", 7)), "old")
    sums = {"young": col("age") < 70, "old": col("age") >= 70}
    own = {
        "plain": (place, Utility(labels, 4, 0, 1000, ("age",))),
        "prior": (place, Utility(labels, 4, 0, 1000, ("age",), (9, 9, 1))),
        "sums": Utility(sums),
        "prior_sums": Utility(sums, weights=(9, 1)),
    }
    with sulq.connect(people, columns={"age": Int(0, 120)}, unit=unit, budget=BUDGET, estimators=own) as db:
        for name, laws in {
            "plain": (FlipLaw, ExponentialLaw),
            "prior": (MetricLaw, ExponentialLaw),
            "sums": (FlipLaw, ExponentialLaw),
            "prior_sums": (MetricLaw, ExponentialLaw),
        }.items():
            for spend, law in zip((Epsilon(2), Rho(0.5), EpsilonDelta(2, 1e-7)), (*laws, laws[1]), strict=True):
                found = select.choose(db, name, spend=spend)
                assert found.candidate == "old"
                assert found.place == found.candidates - 1
                assert type(found.law) is law
                assert 0 < found.within() < 150
                assert "(declared by the owner)" in repr(found)
        found.save(tmp_path / "chosen.json")
        assert select.load(tmp_path / "chosen.json") == found
        stated = db.foresee(
            sulq.Holistic(
                sulq.Certified("plain", ("age",), placed=db.facts.placed(db.facts.every[0])), space=sulq.Candidates()
            ),
            spend=Epsilon(1),
        )
        assert "one of 3 candidates  l1 sensitivity 8.00049 (declared by the owner)  FlipLaw" in str(stated)


@pytest.mark.parametrize(
    "ask",
    [
        lambda db: select.choose(db, "other", spend=Epsilon(1)),
        lambda db: select.choose(db, 7, spend=Epsilon(1)),
        lambda db: select.choose(db, "plain", "least", spend=Epsilon(1)),
        lambda db: select.choose(db, "plain", bins=3, spend=Epsilon(1)),
        lambda db: select.choose(db, "plain", weights=[1, 1, 1], spend=Epsilon(1)),
        lambda db: select.choose(db, "age", bins=3, weights=[1, 1], spend=Epsilon(1)),
        lambda db: select.choose(db, "age", bins=3, weights=[1, 1, 0], spend=Epsilon(1)),
        lambda db: select.choose(db, "age", bins=3, weights=[1, 1, 2**20], spend=Epsilon(1)),
        lambda db: db.ask(sulq.Holistic(sulq.Certified("plain", ("age",), placed=False)), spend=Epsilon(1)),
        lambda db: db.ask(sulq.Holistic(sulq.ToUnique(("age",)), space=sulq.Candidates()), spend=Epsilon(1)),
        lambda db: db.ask(sulq.Holistic(sulq.Aggregated("plain", ("age",), 4, 0, 1)), spend=Epsilon(1)),
        lambda db: db.statistic("plain", spend=Epsilon(1)),
    ],
)
def test_a_choice_that_is_none_is_refused_and_costs_nothing_SR5(
    people: pa.Table, ask: Callable[[sulq.Database], object]
) -> None:
    """Names nobody declared, two candidates' worth of words, weights that are none, and a utility asked as numbers."""
    own = {"plain": ("tests.select.test_selection_utility:ages", Utility(("a", "b", "c"), 4, 0, 1000, ("age",)))}
    with sulq.connect(people, columns={"age": Int(0, 120)}, unit=Unit("pid", 2), budget=BUDGET, estimators=own) as db:
        with pytest.raises(QuestionError):
            ask(db)
        assert db.transcript() == []


def test_weights_of_ones_own_are_a_base_measure_too_S3_31(people: pa.Table) -> None:
    """Whoever asks may weigh candidates by sums: nothing private is in a weight."""
    with sulq.connect(people, columns={"age": Int(0, 120)}, budget=BUDGET) as db:
        found = select.choose(db, "age", bins=4, weights=[1, 2, 3, 4], spend=Epsilon(5))
        assert type(found.law) is MetricLaw
        assert found.law.candidates == 10
        assert found.candidates == 4
        near = select.choose(db, {"a": col("age") - 85, "b": col("age") - 60}, "zero", weights=[3, 1], spend=Rho(1))
        assert near.candidate == "a"
        of_numpy = select.choose(db, "age", bins=4, weights=np.arange(1, 5), spend=Epsilon(5))
        assert of_numpy.law == found.law
        with pytest.raises(QuestionError, match="positive whole numbers"):
            select.choose(db, "age", bins=4, weights="1234", spend=Epsilon(5))


def test_a_utility_has_no_columns_name(people: pa.Table) -> None:
    """So that a name says what is chosen by. Control: an estimator may."""
    told = {"columns": {"age": Int(0, 120)}, "budget": BUDGET}
    with pytest.raises(SetupError, match="named as no column is"):
        sulq.connect(people, **told, estimators={"age": Utility({"a": col("age") > 1})})
    sulq.connect(people, **told, estimators={"age": "numpy:min"}).close()


def test_row_functions_of_a_utility_are_looked_at_as_it_is_declared(people: pa.Table) -> None:
    """One of a column nobody declared, or without bounds,, or that is none, is the owner's to hear of."""
    for sums in ({"a": col("gone") > 1}, {"a": 1 / col("age")}, {"a": 7}):
        with pytest.raises(SetupError):
            sulq.connect(people, columns={"age": Int(0, 120)}, budget=BUDGET, estimators={"plan": Utility(sums)})
