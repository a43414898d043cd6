"""Columns as keys, alike on private rows and on ordinary ones."""

from __future__ import annotations

import numpy as np
import pandas as pd

import sulq
from sulq import Epsilon
from sulq.learn.features import Attributes, Labels
from tests.learn.cases import ALL, COLUMNS, DATA, exact, opened, refused


def test_attributes_are_alike_on_private_rows_and_on_ordinary_ones() -> None:
    """The counts by each key are the counts of the frame's codes, in the same order."""
    with opened(COLUMNS, DATA) as db:
        attributes = Attributes.of(db[[*ALL, "visit"]], bins=7)
        codes = attributes.codes(pd.DataFrame(DATA))
        for i, attribute in enumerate(attributes.items):
            answer = exact(db).ask(sulq.Sums((sulq.lit(1),), by=(attribute.row,)), spend=Epsilon(1))
            assert list(answer.value.values()) == np.bincount(codes[:, i], minlength=attribute.size).tolist()
            assert len(answer.value) == attribute.size
        odd = pd.DataFrame(
            {"age": [None, 500], "income": [np.nan, -5.0], "city": [None, "Akko"], "smoker": [None, True]}
        )
        assert Attributes.of(db[ALL], bins=7).codes(odd).tolist() == [[-1, -1, -1, -1], [6, 0, -1, 1]]


def test_whole_numbers_have_bins_between_them() -> None:
    """An Int of few values has a cell for each, one of many has intervals that cover its bounds."""
    with opened({"few": sulq.Int(1, 4), "many": sulq.Int(0, 120)}, {"few": [1, 4], "many": [0, 120]}) as db:
        few, many = Attributes.of(db[["few", "many"]], bins=10).items
        assert few.labels == (1, 2, 3, 4)
        assert many.edges is not None
        assert (many.edges[0], many.edges[-1], many.size) == (0, 120, 10)
        assert all(edge == int(edge) for edge in many.edges)


def test_classes_are_the_declared_ones_SR6() -> None:
    """Whatever the data holds, a label's classes are those declared; a number without a list is refused."""
    with opened(COLUMNS, DATA) as db:
        assert Labels(db["city"]).classes.tolist() == ["Haifa", "Lod", "Yafo"]
        assert Labels(db["smoker"]).classes.tolist() == [False, True]
        refused("wrong-kind", Labels, db["income"])


def test_joined_cells_are_the_groups_of_the_cells() -> None:
    """Counts of joined intervals are sums of the cells': of whole numbers, days and others; without intervals, none."""
    columns = {
        "n": sulq.Int(0, 120),
        "x": sulq.Real(-1, 1),
        "day": sulq.Date("2020-01-01", "2020-12-31"),
        "b": sulq.Bool(),
    }
    rng = np.random.default_rng(1)
    days = np.datetime64("2020-01-01") + rng.integers(0, 366, 400)
    data = {"n": rng.integers(0, 121, 400), "x": rng.uniform(-1, 1, 400), "day": days, "b": rng.random(400) < 0.5}
    groups, others = [0, 0, 1, 2, 2, 2, 3], [0, 1, 1, 2, 2, 2, 3]
    with opened(columns, data) as db:
        *numbers, truth = Attributes.of(db[list(columns)], bins=7).items
        for attribute in numbers:
            cells, coarse = (
                list(exact(db).ask(sulq.Sums((sulq.lit(1),), by=(by,)), spend=Epsilon(1)).value.values())
                for by in (attribute.row, attribute.joined(groups))
            )
            assert coarse == np.bincount(groups, weights=cells).tolist()
            assert coarse != np.bincount(others, weights=cells).tolist()  # control: joined otherwise
        assert truth.joined([0, 0]) is None
