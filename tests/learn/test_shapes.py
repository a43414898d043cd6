"""Shape functions: groups of enough rows, the same value in a question and in a prediction, text and picture."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, Sums
from sulq.language.attribute import Attribute
from sulq.language.domain import Bool, Category, Int, Real
from sulq.learn.features import Attributes
from sulq.learn.shapes import GRID, Shape
from tests.learn.cases import exact

AGE = Attribute("age", Int(0, 99), 10)
CITY = Attribute("city", Category(("H", "L", "Y", "Z")), 10)
FEW = Attribute("few", Int(1, 4), 10)


def test_cells_of_few_rows_are_joined() -> None:
    """Neighbours where there is an order, else all small ones together; the missing are a group of their own."""
    counts = np.array([5.0, 3, 4, 20, 1, 1, 1, 9, 2, 1, 7])
    shape = Shape.of(AGE, counts, 8, 1)
    assert shape.groups == (0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 3)
    assert shape.counts.tolist() == [8, 24, 15, 7]
    assert Shape.of(AGE, counts, 1e9, 1).groups == (0,) * 10 + (1,)
    assert Shape.of(AGE, counts, 0, 1).groups == tuple(range(11))
    pooled = Shape.of(CITY, np.array([50.0, 2, 40, -3, 0]), 8, 2)
    assert pooled.groups == (0, 2, 1, 2, 3)
    assert pooled.counts.tolist() == [50, 40, 2, 0]
    assert pooled.scores.shape == (4, 2)
    assert Shape.of(CITY, np.full(5, -9.0), 8, 1).groups == (0, 0, 0, 0, 1)
    assert Shape.of(Attribute("b", Bool(), 9), np.array([9.0, 9, 0]), 1, 1).groups == (0, 1, 2)


def test_a_row_has_the_same_value_in_a_question_and_in_a_prediction() -> None:
    """Sums of the row function by group are those of the codes, exactly, missing cells included (SR16)."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": pd.Series(rng.integers(0, 100, 500), dtype="Int64").mask(rng.random(500) < 0.1),
            "city": pd.Series(rng.choice(["H", "L", "Y", "elsewhere"], 500)).mask(rng.random(500) < 0.1),
            "few": rng.integers(1, 5, 500),
            "w": rng.random(500),
        }
    )
    columns = {"age": sulq.Int(0, 99), "city": ["H", "L", "Y", "Z"], "few": sulq.Int(1, 4), "w": sulq.Real(0, 1)}
    items = (AGE, CITY, FEW, Attribute("w", Real(0, 1), 7))
    codes = Attributes(items).codes(frame)
    with sulq.connect(frame, columns=columns, budget=Epsilon(9), synthetic=True) as db:
        for i, item in enumerate(items):
            counts = np.bincount(codes[:, i] % (item.size + 1), minlength=item.size + 1).astype(float)
            shape = Shape.of(item, counts, 40, 2)
            shape.add(rng.normal(size=shape.scores.shape))
            question = Sums((shape.rows()[1], sulq.lit(1)), by=(shape.group,))
            found = exact(db).ask(question, spend=Epsilon(1)).released.values()
            group = np.array(shape.groups)[codes[:, i]]
            own = np.bincount(group, weights=shape.of_codes(codes[:, i])[:, 1], minlength=len(shape.scores))
            assert np.array_equal(found[:, 0], own)
            assert found[:, 1].tolist() == np.bincount(group, minlength=len(shape.scores)).tolist()
            assert np.array_equal(shape.scores * GRID, np.rint(shape.scores * GRID))


def test_a_shape_is_written_anew_only_where_it_moved() -> None:
    """A constant until then, one key for all scores, a table of its groups alone."""
    shape = Shape.of(AGE, np.array([5.0, 3, 4, 20, 1, 1, 1, 9, 2, 1, 7]), 8, 2)
    assert [row.value for row in shape.rows()] == [0, 0]
    shape.add(np.array([[1.0, 0.25], [2.0, 0.25], [-1.0, 0.25], [0.5, 0.25]]))
    first, second = shape.rows()
    assert first.table == ((1.0,), (2.0,), (-1.0,), (0.5,))
    assert first.keys[0] is shape.key is shape.group
    assert second.value == 0.25
    city = Shape.of(CITY, np.array([50.0, 2, 40, -3, 0]), 8, 1)
    city.add(np.array([[1.0], [2.0], [3.0], [4.0]]))
    assert city.rows()[0].table == ((1.0,), (3.0,), (2.0,), (3.0,), (4.0,))  # cells, as pooled ones are apart


def test_a_centred_shape_has_mean_nought() -> None:
    """Over the noisy counts, up to the grid; what was taken off is given; importance is the mean absolute value."""
    shape = Shape.of(CITY, np.array([10.0, 20, 30, 40, 0]), 1, 1)
    shape.add(np.array([[1.0], [2.0], [-1.0], [0.5], [9.0]]))
    mean = shape.centre()
    assert mean[0] == pytest.approx((10 + 40 - 30 + 20) / 100, abs=1 / GRID)
    assert abs(float(shape.counts @ shape.scores[:, 0])) / 100 < 1 / GRID
    assert shape.importance[0] == pytest.approx(np.abs(shape.counts * shape.scores[:, 0]).sum() / 100)
    empty = Shape.of(CITY, np.zeros(5), 1, 1)
    assert empty.centre().tolist() == [0]
    assert empty.importance.tolist() == [0]


def test_a_shape_is_told_in_the_columns_own_words() -> None:
    """Intervals, values, joined categories, the missing."""
    shape = Shape.of(AGE, np.array([5.0, 3, 4, 20, 1, 1, 1, 9, 2, 1, 7]), 8, 1)
    assert [line.split("  ")[1] for line in shape.lines()] == ["[0, 20)", "[20, 40)", "[40, 99]", "missing"]
    assert shape.lines()[1] == "  [20, 40)  +0.000  24 rows"
    few = Shape.of(FEW, np.array([1.0, 9, 9, 9, 0]), 5, 1)
    assert [line.split("  ")[1] for line in few.lines()] == ["1 to 2", "3", "4", "missing"]
    many = Attribute("m", Category(tuple("abcdefgh")), 9)
    pooled = Shape.of(many, np.array([9.0, 1, 1, 1, 1, 1, 1, 1, 0]), 5, 1)
    assert [line.split("  ")[1] for line in pooled.lines()] == ["a", "b, c, d, e and 3 more", "missing"]


def test_a_shape_is_drawn() -> None:
    """Numbers as a curve of steps between the declared bounds, categories as bars."""
    pytest.importorskip("matplotlib").use("agg")
    shape = Shape.of(AGE, np.full(11, 10.0), 1, 1)
    axes = shape.plot(0, "log-odds")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "log-odds")
    bars = Shape.of(CITY, np.full(5, 10.0), 1, 1).plot(0, "y")
    assert [label.get_text() for label in bars.get_xticklabels()] == ["H", "L", "Y", "Z"]
