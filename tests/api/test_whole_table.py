"""Statistics of the whole table by name: each is the statistic it is called by, on data without noise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq.errors import QuestionError
from sulq.language.domain import Category, Int
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho
from sulq.testing import exact

TABLE = pd.DataFrame({"who": [1, 1, 2, 3, 4, 4, 4], "x": [3, 1, 2, 2, 5, 4, 6], "city": list("aabcabc")})
COLUMNS = {"x": Int(0, 9), "city": Category(["a", "b", "c", "d"])}
ASKS = {
    "key": (lambda db, **pay: db.distance_from_key("x", **pay), [1]),
    "pair": (lambda db, **pay: db.distance_from_key(["x", "city"], **pay), [0]),
    "heavy": (lambda db, **pay: db.heavy_persons(**pay), [1, 3]),
}


@pytest.mark.parametrize("name", ASKS)
def test_without_noise_each_is_its_statistic(name: str):
    """Rows that must go, bits that occur, persons with more rows than are kept."""
    ask, expected = ASKS[name]
    unit = sulq.Unit("who", rows=2)
    with sulq.connect(TABLE, columns=COLUMNS, unit=unit, budget=Epsilon(9), synthetic=True) as db:
        assert np.ravel(ask(exact(db), spend=Epsilon(1)).value).tolist() == expected


def test_conditions_of_each_are_texts_handles_or_row_functions():
    """The same answer in every spelling, of the whole table and of a graph's edges."""
    unit = sulq.Unit("who", rows=2)
    with sulq.connect(TABLE, table="t", columns=COLUMNS, unit=unit, budget=Epsilon(9), synthetic=True) as db:
        noiseless = exact(db)
        for ask in (
            lambda where: noiseless.distance_from_key("x", where=where, spend=Epsilon(1)),
            lambda where: noiseless.occurring("city", where=where, spend=Epsilon(1)),
        ):
            wanted = np.ravel(ask(sulq.col("x") > 2).value).tolist()
            assert np.ravel(ask("x > 2").value).tolist() == np.ravel(ask(db["x"] > 2).value).tolist() == wanted
        with pytest.raises(QuestionError, match="of the condition"):
            noiseless.distance_from_key("x", where="y > 2", spend=Epsilon(1))
    edges = pd.DataFrame({"u": [0, 1, 2, 0], "v": [1, 2, 0, 3], "weight": [0.25, 0.5, 1.0, 0.5]})
    columns = {"u": range(4), "v": range(4), "weight": sulq.Real(0, 1)}
    with sulq.connect(edges, columns=columns, graph=("u", "v", "weight"), budget=Epsilon(9), synthetic=True) as db:
        graph = exact(db).graph
        assert graph.triangles(spend=Epsilon(1)).value == 1
        assert graph.triangles(where="weight < 1", spend=Epsilon(1)).value == 0
        assert graph.triangles(where=db["weight"] < 1, spend=Epsilon(1)).value == 0


@pytest.mark.parametrize("spend", [Epsilon(0.5), Rho(0.1), EpsilonDelta(0.5, 1e-7)], ids=str)
def test_an_epsilon_and_delta_buy_the_nearer_noise_here_too_SR3(spend: object):
    """One number that one person moves by little: pure noise is nearer, and no delta is used."""
    with sulq.connect(TABLE, columns=COLUMNS, budget=EpsilonDelta(9, 1e-6)) as db:
        found = db.distance_from_key("x", spend=spend)
        assert found.spent == (Epsilon(0.5) if isinstance(spend, EpsilonDelta) else spend)
