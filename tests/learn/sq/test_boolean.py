"""Truth values of ordinary tables, and who may be asked to learn from them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon
from sulq.errors import SulqError
from sulq.learn import MonotoneConjunction
from sulq.learn.sq.boolean import truth_columns, truths_of
from tests.learn.cases import opened


def test_truths_of_ordinary_tables() -> None:
    """Truth values, zeros and ones, frames in any order of columns; what is missing is false."""
    assert truths_of([[1, 0], [0, 1]], ("a", "b")).tolist() == [[True, False], [False, True]]
    frame = pd.DataFrame({"b": [True, None], "a": [np.nan, 1.0]})
    assert truths_of(frame, ("a", "b")).tolist() == [[False, True], [True, False]]
    with pytest.raises(SulqError) as refusal:
        truths_of(pd.DataFrame({"a": ["yes"]}), ("a",))
    assert refusal.value.code == "bad-table"


def test_only_truth_values_are_taken() -> None:
    """A number or a category is refused by its name."""
    columns = {"a": sulq.Bool(), "n": sulq.Int(0, 9), "y": sulq.Bool()}
    with opened(columns, {"a": [True], "n": [1], "y": [True]}) as db:
        assert truth_columns(db[["a"]], db["y"]) == (("a",), "y")
        for X, y in ((db[["a", "n"]], db["y"]), (db[["a"]], db["n"])):
            with pytest.raises(SulqError) as refusal:
                truth_columns(X, y)
            assert refusal.value.code == "wrong-kind"
            assert "n is not" in refusal.value.message


def test_rates_are_probabilities() -> None:
    """An accuracy may be left out; eta may be zero."""
    settings = [(0, 0.1, 0), (1.0, 0.1, 0), (True, 0.1, 0), (0.1, 0, 0), (0.1, 0.1, 0.5), (0.1, 0.1, "a")]
    columns = {"a": sulq.Bool(), "y": sulq.Bool()}
    with opened(columns, {"a": [True], "y": [True]}) as db:
        for accuracy, beta, eta in settings:
            model = MonotoneConjunction(accuracy=accuracy, beta=beta, eta=eta)
            with pytest.raises(SulqError) as refusal:
                model.fit(db[["a"]], db["y"], spend=Epsilon(0.1))
            assert refusal.value.code == "bad-parameter"
        for beta, eta in ((0.05, 0), (0.5, 0.49)):
            MonotoneConjunction(beta=beta, eta=eta).fit(db[["a"]], db["y"], spend=Epsilon(0.1))
