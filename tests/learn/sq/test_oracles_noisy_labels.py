"""Labels flipped at random: the truth's statistics from what is seen [S2.13, S2.14]."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sulq
from sulq import Epsilon, col
from sulq.errors import QuestionError
from sulq.language.rowfn.base import numbers
from sulq.learn import DecisionList, MonotoneConjunction, StatisticalQueries
from sulq.learn.sq import Adversarial, Exact, NoisyLabels
from sulq.learn.sq.oracles import flipped, mentions
from tests.figures import figure
from tests.learn.sq.noisy import Arrays, boolean, rcn, rows

COLUMNS = {"x": sulq.Bool(), "w": sulq.Bool(), "y": sulq.Bool()}
PHI = col("x") & col("y") | (~col("x") & col("w") & ~col("y"))


def drawn(size: int = 400_000) -> tuple[dict[str, object], np.ndarray]:
    """Rows on which phi holds for .4237 of the true labels and .1277 of the opposite ones."""
    rng = np.random.default_rng(14)
    kind = rng.choice(3, size, p=[0.4237, 0.1277, 0.4486])
    x, w = kind == 0, kind == 1
    return {"x": x, "w": w, "y": np.ones(size, bool)}, rng.random(size)


def test_the_identity_and_its_numbers_S2_14() -> None:
    """Truth, flipped labels, corrected: .4237, .3349, .4251 in SPEC; here .4234, .3358, .4258 (n = 400,000)."""
    clean, coins = drawn()
    size, eta = len(coins), 0.3
    seen = {**clean, "y": np.asarray(clean["y"]) ^ (coins < eta)}
    truth = Exact(COLUMNS, clean).stat(PHI, 0.1)
    naive = Exact(COLUMNS, seen).stat(PHI, 0.1)
    corrected = NoisyLabels(Exact(COLUMNS, seen), "y", eta).stat(PHI, 0.1)
    deviation = 0.5 / math.sqrt(size)
    assert truth == pytest.approx(0.4237, abs=5 * deviation)
    assert naive == pytest.approx(0.3349, abs=5 * deviation)
    assert corrected == pytest.approx(truth, abs=5 * deviation / (1 - 2 * eta))
    assert corrected == pytest.approx(0.4251, abs=5 * deviation / (1 - 2 * eta))
    assert abs(naive - truth) > 0.08
    figure("S2.14", f"a mean at eta .3, n = 400,000: naive {naive:.4f}, corrected", corrected, truth)
    both = NoisyLabels(Exact(COLUMNS, seen), "y", eta, paper=True).stat(PHI, 0.1)
    assert both == pytest.approx(corrected, abs=1e-9)


@pytest.mark.parametrize("eta", [0.0, 0.1, 0.3, 0.45])
@pytest.mark.parametrize("paper", [True, False])
def test_in_expectation_it_is_exact_S2_14(eta: float, paper: object) -> None:
    """On the law of the flipped labels itself, weights instead of coins, the true mean comes out to rounding."""
    rng = np.random.default_rng(2)
    X = rng.random((40, 2)) < 0.5
    y = X[:, 0] ^ (rng.random(40) < 0.4)
    twice = {"x": np.tile(X[:, 0], 2), "w": np.tile(X[:, 1], 2), "y": np.concatenate([y, ~y])}
    weights = np.repeat([1 - eta, eta], 40)
    truth = Exact(COLUMNS, {"x": X[:, 0], "w": X[:, 1], "y": y})
    seen = NoisyLabels(Exact(COLUMNS, twice, weights), "y", eta, paper=bool(paper))
    phis = [PHI, col("y"), col("x"), sulq.case((col("y"), 0.7), otherwise=0.2), ~col("w") & ~col("y")]
    assert np.allclose(seen.stats(phis, 0.1), truth.stats(phis, 0.1), atol=1e-12)
    tables = [[col("x") & col("y"), col("y")]]
    assert np.allclose(seen.cells(tables, 0.1)[0], truth.cells(tables, 0.1)[0], atol=1e-12)


@pytest.mark.parametrize("push", ["up", "down", "against"])
@pytest.mark.parametrize("paper", [True, False])
def test_the_oracle_behind_may_push_as_it_likes(push: str, paper: object) -> None:
    """Within tau (1 - 2 eta) behind is within tau in front; within tau behind is 1/(1 - 2 eta) times as far off."""
    clean, coins = drawn(2000)
    twice = {name: np.tile(np.asarray(values), 2) for name, values in clean.items()}
    twice["y"] = np.concatenate([clean["y"], ~np.asarray(clean["y"])])
    behind = Exact(COLUMNS, twice, np.repeat([0.7, 0.3], len(coins)))
    truth = Exact(COLUMNS, clean).stat(PHI, 0.1)
    pushed = NoisyLabels(Adversarial(behind, push), "y", 0.3, paper=bool(paper))
    assert abs(pushed.stat(PHI, 0.05) - truth) <= 0.05 + 1e-9
    psi = (Adversarial(behind, "up").stat(NoisyLabels(behind, "y", 0.3)._corrected(PHI), 0.05) - 0.3) / 0.4
    assert abs(psi - truth) == pytest.approx(0.05 / 0.4)


def test_no_rate_of_one_half_or_more() -> None:
    """Such labels say nothing; and a rate is a number."""
    for eta in (0.5, 0.7, -0.1, "half", True):
        with pytest.raises(QuestionError) as refusal:
            NoisyLabels(Exact(COLUMNS, drawn(10)[0]), "y", eta)
        assert refusal.value.code == "bad-parameter"


def test_the_opposite_label_is_put_everywhere() -> None:
    """In conditions, cases, keys and arithmetic: phi(x, not y) is phi on flipped labels."""
    clean, _ = drawn(500)
    here, there = Exact(COLUMNS, clean).table, Exact(COLUMNS, {**clean, "y": ~np.asarray(clean["y"])}).table
    read = sulq.lookup([sulq.each(col("y"))], [0.25, 1.0])
    for phi in (PHI, sulq.case((col("y"), col("x")), otherwise=0.5), read, col("y") * 0.5 + 0.25):
        assert mentions(phi, "y")
        assert numbers(flipped(phi, "y"), here)[0].tolist() == numbers(phi, there)[0].tolist()
    assert not mentions(col("x") & ~col("w"), "y")


@pytest.mark.parametrize("learner", [MonotoneConjunction, DecisionList])
def test_learning_below_the_noise_rate_S2_14(learner: type) -> None:
    """With 30% of the labels flipped the rule errs on fewer rows than its labels did, on the true ones."""
    rng = np.random.default_rng(6)
    X = rng.random((100_000, 4)) < [0.8, 0.7, 0.6, 0.5]
    y = X[:, 0] & X[:, 2]
    database = Arrays(boolean(4), rows(X, rcn(y, 0.3, rng)), seed=7)
    model = learner(eta=0.3).fit(database_columns(database, 4), label(database), spend=Epsilon(4))
    assert 1 - model.score(X, y) < 0.3
    assert 1 - model.score(X, y) <= model.accuracy_
    blind = learner().fit(database_columns(database, 4), label(database), spend=Epsilon(4))
    assert 1 - blind.score(X, y) >= 1 - model.score(X, y)


def database_columns(database: Arrays, count: int) -> object:
    return sulq.answers.oracle.ColumnChoice(tuple(f"x{i}" for i in range(count)), database)


def label(database: Arrays) -> object:
    return sulq.answers.oracle.ColumnChoice(("y",), database)


def test_a_spend_behind_is_needed_for_the_best_of_it() -> None:
    """An oracle without a spend has no best: a tolerance must be named."""
    with pytest.raises(QuestionError) as refusal:
        NoisyLabels(Exact(COLUMNS, drawn(10)[0]), "y", 0.1).best([PHI], sulq.language.law.Fraction(1))
    assert refusal.value.code == "bad-parameter"
    oracle = StatisticalQueries(Arrays(COLUMNS, drawn(10)[0]), spend=Epsilon(1), queries=4)
    assert NoisyLabels(oracle, "y", 0.1)._tabled


def test_labels_are_flipped_alike_whatever_the_row_and_the_error_is_against_the_truth_S2_13() -> None:
    """S2.13: each label flipped by itself with probability eta < 1/2; the goal is the error against c*, even below eta.

    Over four kinds of rows the flips have rate eta in each, six standard errors. By enumeration E over what is seen is
    (1 - eta) E[phi(x, c)] + eta E[phi(x, not c)]. The learner told eta errs less than eta on the truth; controls: told
    a wrong eta its means are off, and the labels themselves are wrong on the part eta.
    """
    rng = np.random.default_rng(13)
    eta, size = 0.3, 200_000
    X = rng.random((size, 2)) < [0.7, 0.6]
    truth = X.all(axis=1)
    seen = rcn(truth, eta, rng)
    for kind in range(4):
        here = 2 * X[:, 0] + X[:, 1] == kind
        flips = float((seen != truth)[here].mean())
        assert abs(flips - eta) < 6 * math.sqrt(eta * (1 - eta) / here.sum())
    columns, names = boolean(2), ["x0", "x1"]
    phi = ~col("x0") & col("y")
    law = np.array([0.12, 0.18, 0.28, 0.42])
    kinds = np.array([[False, False], [False, True], [True, False], [True, True]])
    both = np.concatenate([kinds, kinds])
    labels = np.concatenate([kinds.all(axis=1), ~kinds.all(axis=1)])
    oracle = Exact(columns, rows(both, labels), np.concatenate([(1 - eta) * law, eta * law]))
    clean = float(law @ (~kinds[:, 0] & kinds.all(axis=1)))
    turned = float(law @ (~kinds[:, 0] & ~kinds.all(axis=1)))
    assert oracle.stat(phi, 0.1) == pytest.approx((1 - eta) * clean + eta * turned)
    assert NoisyLabels(oracle, "y", eta).stat(phi, 0.1) == pytest.approx(clean, abs=1e-12)
    assert abs(NoisyLabels(oracle, "y", 0.2).stat(phi, 0.1) - clean) > 0.03
    database = Arrays(columns, rows(X, seen), seed=13, budget=Epsilon(9), size=size)
    oracle = NoisyLabels(StatisticalQueries(database, spend=Epsilon(5), queries=2), "y", eta)
    model = MonotoneConjunction(accuracy=0.2).learn(oracle, names, "y")
    error = float(np.mean(model.predict(X) != truth))
    assert error < eta / 3
    assert abs(float(np.mean(seen != truth)) - eta) < 0.01
    figure(
        "S2.13", "error against the truth of a conjunction learned from labels flipped at rate .3", error, "below 0.3"
    )
