"""What every learner does: parameters by name, whole numbers, columns once, and a fit that holds or leaves no mark."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq import Epsilon, SubLinear, Unit
from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.forms.parameters import whole
from sulq.learn import ID3, PCA, KMeans
from sulq.learn.base import Learner
from tests.learn.cases import COLUMNS, DATA, opened, refused
from tests.learn.counter import Counter


def test_parameters_are_scikit_learns() -> None:
    """They are read, set, shown and cloned by name; an unknown one is refused."""
    model = Counter(rounds=5)
    assert model.get_params() == {"rounds": 5}
    assert repr(model) == "Counter(rounds=5)"
    assert model.set_params(rounds=2).rounds == 2
    refused("bad-parameter", model.set_params, turns=3)
    refused("not-fitted", model._ready)
    sklearn = pytest.importorskip("sklearn.base")
    assert sklearn.clone(model).get_params() == {"rounds": 2}


UNITS = {name: sulq.Real(0, 1) for name in "abc"}
ROWS = {name: np.linspace(0, 1, 50) for name in "abc"}


@pytest.mark.parametrize("learner", [lambda: PCA(n_components=1), lambda: KMeans(2, max_iter=1)], ids=["PCA", "KMeans"])
def test_a_refused_fit_leaves_the_model_as_it_was(learner: object) -> None:
    """Fitted on a and b, refused on a, b and c for want of queries: it works on two columns, at the first price.

    That refusal comes from within a fit that has begun; the one for want of epsilon before it.
    """
    points = np.array([[0.1, 0.2], [0.8, 0.9]])
    budget = SubLinear(epsilon=1, delta=1e-6, queries=12)
    with opened(UNITS, ROWS, budget, unit=Unit(neighbors="replace_one"), size=50) as db, opened(UNITS, ROWS) as other:
        model = learner().fit(db[["a", "b"]])
        before, told, values, spent = dict(vars(model)), model.to_json(), model.transform(points), db.spent
        refused("budget-exceeded", model.fit, db[["a", "b", "c"]])
        refused("budget-exceeded", model.fit, other[["a", "b", "c"]], spend=Epsilon(901))
        assert db.spent == model.spent_ == spent
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())
        assert model.to_json() == told
        assert np.array_equal(model.transform(points), values)
        fresh = learner()
        refused("budget-exceeded", fresh.fit, db[["a", "b", "c"]])
        assert not fresh.fitted
        assert vars(fresh).keys() == fresh.get_params().keys()
        refused("not-fitted", fresh.transform, points)
        model.fit(other[["a", "b", "c"]], spend=Epsilon(1))  # one that is not refused replaces it (control)
        assert model.feature_names_in_ == ("a", "b", "c")
        refused("bad-table", model.transform, points)


class Stopped(BaseException):
    """Neither an error nor a refusal: somebody ended the fit."""


class Halting(Learner):
    """Learns something and is ended in the midst of it, if told so."""

    def __init__(self, *, halt: bool = False) -> None:
        self.halt = halt

    def _fit(self, X: ColumnChoice, y: ColumnChoice | None, spending: SpendPlan) -> None:
        self.width_ = len(X)
        if self.halt:
            raise Stopped
        if len(X) == 1:
            self.only_ = X.names[0]


def test_a_stopped_fit_leaves_the_model_as_it_was() -> None:
    """Also where what ended it is no error; and nothing of an earlier fit stays in a later one."""
    with opened(UNITS, ROWS) as db:
        model = Halting().fit(db[["a"]], spend=Epsilon(1))
        with pytest.raises(Stopped):
            model.set_params(halt=True).fit(db[["a", "b"]], spend=Epsilon(1))
        assert (model.width_, model.only_, model.halt, model.feature_names_in_) == (1, "a", True, ("a",))
        model.set_params(halt=False).fit(db[["a", "b"]], spend=Epsilon(1))
        assert model.width_ == 2
        assert not hasattr(model, "only_")


def test_a_whole_number_may_be_numpys() -> None:
    """Of any width, within the same limits; a truth value, a fraction and a text are none."""
    for value in (3, np.int64(3), np.uint8(3)):
        found = whole(value, "rounds", 1, 3)
        assert (found, type(found)) == (3, int)
    for bad in (True, np.bool_(True), 3.0, np.float64(3), "3", None, np.int64(4), np.uint8(0)):
        refused("bad-parameter", whole, bad, "rounds", 1, 3)
    with opened(COLUMNS, DATA) as db:
        model = KMeans(n_clusters=np.int64(2)).fit(db[["age", "income"]], spend=Epsilon(1))
        assert model.cluster_centers_.shape == (2, 2)
        assert PCA(n_components=np.int32(1)).fit(db[["age", "income"]], spend=Epsilon(1)).components_.shape == (1, 2)
        tree = ID3(max_depth=np.int64(1)).fit(db[["age"]], db["smoker"], spend=Epsilon(1))
        assert type(tree).from_json(tree.to_json()).max_depth == 1


def test_a_column_is_named_once() -> None:
    """One that is there twice is refused by its name, for nothing."""
    with opened(COLUMNS, DATA) as db:
        for fit, y in ((PCA().fit, ()), (KMeans(2).fit, ()), (ID3().fit, (db["smoker"],))):
            with pytest.raises(sulq.errors.QuestionError, match="age is there twice") as refusal:
                fit(db[["age", "income", "age"]], *y, spend=Epsilon(1))
            assert refusal.value.code == "bad-question"
        assert db.spent.amount == 0
