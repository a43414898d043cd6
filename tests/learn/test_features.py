"""Columns as numbers, alike on private rows and on ordinary ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon
from sulq.errors import QuestionError
from sulq.learn import ID3, LogisticRegression, NaiveBayes
from sulq.learn.features import BadTable, Features
from tests.learn.cases import ALL, COLUMNS, DATA, exact, opened, refused


def test_features_are_alike_on_private_rows_and_on_ordinary_ones() -> None:
    """The sums of the row functions are the sums of the transformed frame, column by column."""
    with opened(COLUMNS, DATA) as db:
        features = Features.of(db[[*ALL, "visit"]])
        assert features.names == ("age", "income", "city=Haifa", "city=Lod", "city=Yafo", "smoker", "visit")
        table = features.transform(pd.DataFrame(DATA))
        assert np.abs(table).max() <= 1
        sums = [exact(db).ask(sulq.Sums((row,)), spend=Epsilon(1)).value for row in features.rows]
        assert np.allclose(sums, table.sum(axis=0), atol=1e-4)
        assert np.allclose(
            Features.of(db[["age", "income"]]).restore(table[:, :2]), [[0, 0], [50, 500], [100, 1000], [30, 250]]
        )
        with pytest.raises(QuestionError):
            Features.of(db[["name"]])


def test_ordinary_cells_are_clamped_and_missing_ones_lie_in_the_middle() -> None:
    """Whatever a table to predict on holds, its features are numbers within bounds."""
    with opened(COLUMNS, DATA) as db:
        odd = pd.DataFrame(
            {"age": [None, 500], "income": [np.nan, -5.0], "city": [None, "Akko"], "smoker": [None, True]}
        )
        table = Features.of(db[ALL]).transform(odd)
        assert table.tolist() == [[0, 0, -1, -1, -1, -1], [1, -1, -1, -1, -1, 1]]
        refused("bad-table", Features.of(db[ALL]).transform, odd.drop(columns="age"))
        refused("bad-table", Features.of(db[ALL]).transform, np.zeros((3, 3)))
        refused("bad-table", Features.of(db[["age"]]).transform, pd.DataFrame({"age": ["old"]}))


@pytest.mark.parametrize("learner", [ID3, NaiveBayes, LogisticRegression])
def test_a_cell_that_pandas_calls_NA_is_missing(learner: type) -> None:
    """A frame of pandas' own types predicts as the same frame with None and NaN in it."""
    columns = {"city": ["Haifa", "Lod"], "smoker": sulq.Bool(), "age": sulq.Int(0, 99), "y": sulq.Bool()}
    rng = np.random.default_rng(3)
    data = {
        "city": rng.choice(["Haifa", "Lod"], 400),
        "smoker": rng.random(400) < 0.5,
        "age": rng.integers(0, 100, 400),
    }
    data["y"] = (data["city"] == "Lod") ^ (rng.random(400) < 0.1)
    plain = pd.DataFrame(
        {"city": ["Lod", None, "Haifa", None], "smoker": [True, None, None, False], "age": [None, 5, None, 70]},
        dtype=object,
    )
    theirs = plain.convert_dtypes()
    assert [str(kind) for kind in theirs.dtypes] == ["string", "boolean", "Int64"]
    names = list(plain)
    with opened(columns, data) as db:
        model = learner().fit(db[names], db["y"], spend=Epsilon(50))
    assert np.array_equal(model.predict(theirs), model.predict(plain))
    assert np.array_equal(model.predict_proba(theirs), model.predict_proba(plain))
    everything = np.asarray(theirs.astype(object))  # NA among numbers too
    assert any(cell is pd.NA for cell in everything[:, 2])
    assert np.array_equal(model.predict_proba(everything), model.predict_proba(plain))
    with pytest.raises(BadTable) as refusal:
        model.predict(plain.assign(age="old"))
    assert refusal.value.code == "bad-table"
