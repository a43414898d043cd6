"""What synthetic data is made of: the space, measurements, the model that learns from them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sulq
from sulq import Epsilon, Rho
from sulq.release.space import CellSpace, closes, closure
from sulq.release.synthetic.models import MIN_ERROR_ROWS, GraphModel, MeasuredMarginal, total
from sulq.release.synthetic.rounds import distance
from tests.learn.cases import COLUMNS, DATA, exact, opened, refused
from tests.release.synthetic.cases import BINS, NAMES, made, rows, truth


def test_a_space_has_the_declared_cells() -> None:
    """Sizes, and marginals by name or by number of columns; the closure holds each part once."""
    space = CellSpace.of(NAMES, made(5).facts.schema, BINS)
    assert (space.sizes, space.cells, space.size((0, 3))) == ((3, 3, 2, 4), 72, 12)
    assert space.workload(None, 3) == ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3))
    assert space.workload(None, 9) == ((0, 1, 2, 3),)
    assert space.workload([["income", "city"], ["city", "income"]], 2) == ((0, 3),)
    assert closure([(0, 3), (3,)]) == ((0,), (3,), (0, 3))
    assert closes([tuple(range(12))])
    assert not closes([tuple(range(13))])
    assert not closes(itertools.combinations(range(30), 3))  # each is small, all together are too many
    refused("too-large", closure, [tuple(range(50))])


def test_bad_input_is_refused() -> None:
    """Columns and marginals that are not declared, named twice, or no lists."""
    schema = opened(COLUMNS, DATA).facts.schema
    refused("unknown-column", CellSpace.of, ["age", "height"], schema, 4)
    refused("wrong-kind", CellSpace.of, ["name"], schema, 4)
    for columns, bins in (([], 4), ("age", 4), (["age", "age"], 4), (["age"], 0), (["age"], True), ([3], 4)):
        refused("bad-parameter", CellSpace.of, columns, schema, bins)
    space = CellSpace.of(["age", "city"], schema, 4)
    for marginals in ([], [[]], ["age"], [["income"]], [["age", "age"]], [[3]], "age"):
        refused("bad-parameter", space.workload, marginals, 2)
    refused("bad-parameter", space.workload, None, 0)


def test_rows_that_miss_a_value_are_in_no_marginal() -> None:
    """A category that is not on the list counts nowhere, in other columns' marginals either: all have one total."""
    data = {"city": ["Haifa", "Nowhere", "Lod"], "rooms": [0, 1, 2]}
    db = opened({"city": ["Haifa", "Lod"], "rooms": sulq.Int(0, 2)}, data)
    space = CellSpace.of(["city", "rooms"], db.facts.schema, 4)
    for places, expected in (((0,), [1, 1]), ((1,), [1, 0, 1]), ((), 2)):
        answer = exact(db).ask(space.partition(places), spend=Epsilon(1))
        assert MeasuredMarginal.of(answer, places, space).values.tolist() == expected


def test_what_is_said_of_noise_is_true_of_it() -> None:
    """Standard deviation and mean distance of Laplace and Gaussian noise, by their laws; hardly any counts as some."""
    db = made(50, sulq.EpsilonDelta(900, 1e-6))
    space = CellSpace.of(NAMES, db.facts.schema, BINS)
    for spend in (Epsilon(0.1), Rho(0.005)):
        noise = db.foresee(space.partition((0,)), spend=spend).parts[0].noise[0]
        assert noise.deviation == pytest.approx(14.14 if isinstance(spend, Epsilon) else 10.0, rel=1e-2)
        z = np.arange(-400, 401)
        mass = np.array([noise.law.pmf(int(k)) for k in z])
        assert distance(noise) == pytest.approx(float((np.abs(z) * mass).sum()), rel=1e-2)
    assert MeasuredMarginal((0,), np.zeros(3), 1e-200).error == MIN_ERROR_ROWS


def test_the_total_weighs_measurements_by_their_precision() -> None:
    """A fine marginal of few cells says more than a coarse one of many."""
    fine, coarse = MeasuredMarginal((0,), np.full(2, 50.0), 1.0), MeasuredMarginal((1,), np.full(8, 25.0), 10.0)
    assert total([fine, coarse]) == pytest.approx((100 / 2 + 200 / 800) / (1 / 2 + 1 / 800))


def test_a_model_learns_what_was_measured() -> None:
    """Fitted to exact overlapping marginals the model has them; without steps it stays even (the control)."""
    data = rows(3000)
    space = CellSpace.of(NAMES, made(5).facts.schema, BINS)
    measured = [
        MeasuredMarginal(places, truth([NAMES[place] for place in places], data), 2.0)
        for places in ((0, 1), (1, 2), (0, 3))
    ]
    model = GraphModel(space.sizes)
    model.fit(measured, 3000.0, 0)
    assert np.allclose(model.marginal((0, 1, 2, 3)), 3000 / 72)
    assert np.abs(model.marginal((0, 1)) - measured[0].values).sum() > 500
    model.fit(measured, 3000.0, 400)
    for each in measured:
        assert np.abs(model.marginal(each.places) - each.values).sum() < 30
    drawn = model.draw(3000, np.random.default_rng(1))
    assert drawn.shape == (3000, 4)
    assert (drawn.max(axis=0) < space.sizes).all()
