"""The rows a model is judged on: as it learned them, or refused from declarations alone."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq import Epsilon
from sulq.learn import ID3, LinearRegression, LogisticRegression, NaiveBayes
from sulq.learn.base import Learner
from sulq.learn.clipped import ClippedOracle
from sulq.learn.evaluation.rows import JudgedRows
from tests.learn.cases import exact, opened, refused

RNG = np.random.default_rng(3)
DATA = {"a": RNG.integers(0, 60, 500), "c": RNG.choice(["x", "y"], 500)}
DATA["yes"] = DATA["a"] > 30


def declared(most: int = 100, values: tuple[str, ...] = ("x", "y")) -> dict[str, object]:
    return {"a": sulq.Int(0, most), "c": list(values), "yes": sulq.Bool()}


@pytest.mark.parametrize("learner", [ID3, LogisticRegression, NaiveBayes])
def test_wider_bounds_are_clipped_to_those_that_were_learned(learner: type[Learner]) -> None:
    """A model judged where a number may be larger tells every row as it tells ordinary ones."""
    with opened(declared(), DATA) as db:
        held = exact(db)
        model = learner().fit(held[["a", "c"]], held["yes"], spend=Epsilon(100))
        own = model.score(held[["a", "c"]], held["yes"], spend=Epsilon(1)).value
    with opened(declared(10**6), DATA) as wide:
        held = exact(wide)
        rows = JudgedRows.of(model, held[["a", "c"]], held["yes"])
        assert isinstance(rows.oracle, ClippedOracle)
        assert model.score(held[["a", "c"]], held["yes"], spend=Epsilon(1)).value == own


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        (declared(50), "a"),
        (declared(values=("x", "y", "z")), "c"),
        (declared() | {"a": sulq.Real(0, 100)}, "a"),
        (declared() | {"c": sulq.Text()}, "c"),
    ],
    ids=["narrower", "another list", "another kind", "text"],
)
def test_columns_declared_otherwise_are_refused(columns: dict[str, object], name: str) -> None:
    """From public declarations alone, naming the column; nothing is spent."""
    with opened(declared(), DATA) as db:
        model = LogisticRegression(max_iter=0).fit(db[["a", "c"]], db["yes"], spend=Epsilon(1))
    with opened(columns, DATA) as db:
        with pytest.raises(sulq.errors.QuestionError, match=f"{name} is declared otherwise"):
            model.score(db[["a", "c"]], db["yes"], spend=Epsilon(1))
        assert db.spent.amount == 0


def test_columns_may_come_in_another_order() -> None:
    """They are known by name."""
    with opened(declared(), DATA) as db:
        held = exact(db)
        model = NaiveBayes().fit(held[["a", "c"]], held["yes"], spend=Epsilon(9))
        scores = [model.score(held[list(names)], held["yes"], spend=Epsilon(1)).value for names in ("ac", "ca")]
    assert scores[0] == scores[1]


def test_a_label_is_one_column_beside_the_others() -> None:
    """Not two, none of X, and of the same database."""
    with opened(declared(), DATA) as db, opened(declared(), DATA) as other:
        model = ID3().fit(db[["a", "c"]], db["yes"], spend=Epsilon(1))
        refused("bad-question", JudgedRows.of, model, db[["a", "c"]], db[["yes", "c"]])
        refused("bad-question", JudgedRows.of, model, db[["a", "c"]], db["c"])
        refused("bad-question", JudgedRows.of, model, db[["a", "c"]], other["yes"])


def test_names_that_need_quoting_are_columns_like_others() -> None:
    """Of the data, of the model and of the score."""
    data = {'a "b"': DATA["a"], "order": DATA["c"], "select": DATA["a"] / 60}
    columns = {'a "b"': sulq.Int(0, 100), "order": ["x", "y"], "select": sulq.Real(0, 1)}
    with opened(columns, data) as db:
        model = LinearRegression().fit(db[['a "b"', "order"]], db["select"], spend=Epsilon(100))
        assert model.score(db[['a "b"', "order"]], db["select"], spend=Epsilon(5)).value > 0.8
