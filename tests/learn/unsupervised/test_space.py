"""Coordinates of rows: alike on private and on ordinary ones, in the columns' units, with noise divided well."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon
from sulq.language.rowfn import WithinBall
from sulq.learn.features import Features
from sulq.learn.unsupervised.space import MIN_RELATIVE_REACH, ColumnSpace, ball, moved
from tests.learn.cases import ALL, COLUMNS, DATA, exact, opened


@pytest.mark.parametrize("scale", [False, True])
def test_coordinates_are_alike_on_private_rows_and_on_ordinary_ones(*, scale: bool) -> None:
    """The sums of the row functions about a centre, in units, are those of the transformed frame."""
    with opened(COLUMNS, DATA) as db:
        space = ColumnSpace(Features.of(db[[*ALL, "visit"]]), scale=scale)
        rng = np.random.default_rng(1)
        centre = space.middle + space.half * rng.uniform(-1, 1, len(space))
        unit = rng.uniform(0.5, 2, len(space))
        points = (space.transform(pd.DataFrame(DATA)) - centre) / unit
        assert (np.abs(points) * unit <= space.away(centre) + 1e-9).all()
        for row, column in zip(space.rows(centre, unit), points.T, strict=True):
            assert exact(db).ask(sulq.Sums((row,)), spend=Epsilon(1)).value == pytest.approx(column.sum(), abs=1e-2)


def test_coordinates_are_in_the_columns_own_units() -> None:
    """Numbers as they are, truth values and categories as 0 and 1; scaled, all within -1 and 1."""
    with opened(COLUMNS, DATA) as db:
        features = Features.of(db[ALL])
        own = ColumnSpace(features, scale=False).transform(pd.DataFrame(DATA))
        assert own[0].tolist() == [0, 0, 0, 1, 0, 1]
        assert own[2].tolist() == [100, 1000, 0, 0, 1, 1]
        assert np.abs(ColumnSpace(features, scale=True).transform(pd.DataFrame(DATA))).max() == 1


@pytest.mark.parametrize("pure", [True, False])
def test_noise_is_divided_over_coordinates_so_that_squared_errors_are_least(*, pure: bool) -> None:
    """No other units of the sums have a smaller sum of squared errors; equal units have a larger one."""
    with opened({"a": sulq.Real(0, 1), "b": sulq.Real(0, 5), "c": sulq.Real(0, 30)}, {n: [0.5] for n in "abc"}) as db:
        space = ColumnSpace(Features.of(db[["a", "b", "c"]]), scale=False)

        def errors(unit: np.ndarray) -> float:
            return float(moved(space.half / unit, np.inf, pure=pure) ** 2 * (unit**2).sum())

        best = errors(space.even(pure=pure))
        rng = np.random.default_rng(2)
        assert all(errors(space.even(pure=pure) * rng.uniform(0.5, 2, 3)) >= best for _ in range(1000))
        assert errors(np.ones(3)) > 1.1 * best


def test_no_coordinate_falls_below_a_part_of_the_grid() -> None:
    """However narrow a column beside the widest, it has hundreds of units in a weighted vector."""
    with opened({"a": sulq.Real(0, 1), "b": sulq.Real(0, 1e9)}, {"a": [0.5], "b": [3.0]}) as db:
        space = ColumnSpace(Features.of(db[["a", "b"]]), scale=False)
        for pure in (True, False):
            reach = space.half / space.even(pure=pure)
            assert reach.min() >= reach.max() * MIN_RELATIVE_REACH * (1 - 1e-9)


def test_a_ball_that_holds_the_box_is_left_out() -> None:
    """A vector is shortened only where that can happen; a shortened one moves by the ball's norms."""
    with opened({"a": sulq.Real(0, 2), "b": sulq.Real(0, 2)}, {"a": [0.5], "b": [1.0]}) as db:
        space = ColumnSpace(Features.of(db[["a", "b"]]), scale=False)
        away = space.away(space.middle)
        vector = space.vector(space.middle)
        assert ball(vector, 1.5, away) is vector
        assert isinstance(ball(vector, 1.4, away), WithinBall)
        assert moved(away, 1.0, pure=True) == pytest.approx(np.sqrt(2))
        assert moved(away, 1.0, pure=False) == 1.0
        assert moved(away, 9.0, pure=True) == 2.0
