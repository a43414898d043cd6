"""Windows: found where rows are, left alone where noise is; a design is the same for questions and for tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, Sums
from sulq.answers.oracle import ColumnChoice
from sulq.language.domain import Int
from sulq.learn.linear.windows import BINS, SURE_DEVIATIONS, WORTH, Design, Window, stands_out
from tests.learn.cases import refused
from tests.learn.sq.noisy import Arrays

COLUMNS = {
    "x": sulq.Real(-16, 16),
    "city": ["Haifa", "Lod", "Yafo"],
    "n": sulq.Int(0, 10),
    "day": sulq.Date("2020-01-01", "2020-12-31"),
    "b": sulq.Bool(),
    "word": sulq.Text(),
}
NAMES = ["x", "city", "n", "b"]


def frame(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    city = rng.choice(["Haifa", "Lod", "Yafo"], n)
    return pd.DataFrame(
        {"x": rng.uniform(-16, 16, n), "city": city, "n": rng.integers(0, 11, n), "b": rng.random(n) < 0.5}
    )


def oracle(values: pd.DataFrame | dict[str, object], seed: int | None = None) -> Arrays:
    """The columns that are given, and empty cells of the others."""
    size = len(values["x"])
    return Arrays(COLUMNS, {name: np.asarray(values.get(name, [None] * size)) for name in COLUMNS}, seed=seed)


def found(x: np.ndarray, spend: float, seed: int | None, sure: float = SURE_DEVIATIONS) -> Window:
    asked = oracle({"x": x}, seed)
    window = Window.declared("x", dict(asked.facts.schema.columns)["x"])
    released = asked.ask(window.histogram, spend=Epsilon(spend)).released
    return window.narrowed(released, (float(len(x)), 1.0), WORTH, sure)


def test_a_window_is_where_most_rows_are() -> None:
    """Rows of an eighth of the bounds: the window holds nearly all, and is little wider."""
    x = np.random.default_rng(1).uniform(1, 5, 5000)
    for spend, seed in ((900, None), (1, 2)):
        window = found(x, spend, seed)
        assert window.low <= 1.2
        assert window.high >= 4.8
        assert window.half <= 4


def test_a_few_rows_far_out_do_not_widen_it_and_many_do() -> None:
    """A halving of the width is worth a tenth of the rows; control: with a fifth of them it is not halved."""
    rng = np.random.default_rng(3)
    for part, narrow in ((0.02, True), (0.4, False)):
        x = np.where(rng.random(5000) < part, rng.choice([-15.0, 15.0], 5000), rng.uniform(0, 3.9, 5000))
        assert (found(x, 900, None).half < 4) == narrow


def test_noise_alone_mostly_leaves_the_whole() -> None:
    """Hardly any rows at a small spend: how seldom it is narrowed is a matter of `sure`; control: rows narrow it."""
    seldom = {
        sure: sum(found(np.zeros(3), 0.01, seed, sure=sure).half < 16 for seed in range(100))
        for sure in (2.5, 4.0, 8.0)
    }
    assert 50 > seldom[2.5] > seldom[4.0] >= seldom[8.0]
    assert seldom[4.0] <= 25
    assert seldom[8.0] == 0
    assert found(np.zeros(50_000), 0.01, 0, sure=8.0).half < 16


def test_histograms_that_stand_out_are_those_that_narrow() -> None:
    """All rows in a quarter of the bounds: found there mostly where `stands_out` says so, and seldom far from there."""
    x = np.random.default_rng(5).uniform(0.1, 7.9, 2000)
    for spend, tells in ((1.0, True), (0.05, True), (0.01, False), (0.001, False)):
        assert stands_out(2**0.5 / spend, (2000.0, 1.0), WORTH) == tells
        windows = [found(x, spend, seed) for seed in range(20)]
        around = sum(window.low in (-2, 0) and window.high in (8, 10) for window in windows)
        assert around >= 15 if tells else around <= 10
    assert not stands_out(1.0, (1.0, 1.0), WORTH)  # no rows


def test_a_window_reads_rows_and_tables_alike() -> None:
    """Within [-1, 1]; beyond an end it is the end, missing is the middle; dates are days."""
    window = Window("x", dict(oracle({"x": [0.0]}).facts.schema.columns)["x"], -2.0, 6.0)
    x = np.array([-16.0, -2.0, 2.0, 4.0, 6.0, 9.0, np.nan])
    assert window.of(x) == pytest.approx([-1, -1, 0, 0.5, 1, 1, 0])
    sums = oracle({"x": x[:-1]}).ask(Sums((window.row,)), spend=Epsilon(900)).released.values()[0, 0]
    assert sums == pytest.approx(window.of(x[:-1]).sum(), abs=1e-3)
    day = Window.declared("day", dict(oracle({"x": [0.0]}).facts.schema.columns)["day"])
    assert day.of(np.array(["2020-01-01", "2020-12-31"], dtype="datetime64[D]")) == pytest.approx([-1, 1])
    point = Window.declared("p", Int(5, 5))  # bounds that are one point
    assert point.half == 1
    assert point.of(np.array([5.0])) == pytest.approx(0)


def test_a_histogram_has_a_row_in_one_part() -> None:
    """All rows, each once."""
    x = np.random.default_rng(4).uniform(-16, 16, 1000)
    asked = oracle({"x": x})
    window = Window.declared("x", dict(asked.facts.schema.columns)["x"])
    counts = asked.ask(window.histogram, spend=Epsilon(900)).released.values()[:, 0]
    assert np.array_equal(counts, np.histogram(x, bins=BINS, range=(-16, 16))[0])


def test_a_design_scores_rows_as_tables() -> None:
    """The sum of a score over the rows is that of its table's; in the columns' units too."""
    rows = frame(500)
    asked = oracle(rows)
    design = Design.of(ColumnChoice(tuple(NAMES), asked))
    assert design.names == ("x", "city=Haifa", "city=Lod", "city=Yafo", "n", "b=False", "b=True")
    assert design.widths == (2, 3, 2)
    design = design.narrowed([Window("x", design.numbers[0].domain, -8.0, 4.0), design.numbers[1]])
    rng = np.random.default_rng(5)
    weights = rng.normal(size=(2, design.size))
    intercepts = np.array([0.5, -1.0])
    there = design.matrix(rows) @ weights.T + intercepts
    for k in range(2):
        score = design.score(design.vector(), weights[k], float(intercepts[k]))
        told = asked.ask(Sums((score.clip(-20, 20),)), spend=Epsilon(900)).released.values()[0, 0]
        assert told == pytest.approx(there[:, k].sum(), abs=0.2)
    coef, constant = design.told(weights, intercepts)
    assert design.scores(rows, coef, constant) == pytest.approx(there)
    blank = pd.DataFrame({"x": [np.nan], "city": ["Eilat"], "n": [np.nan], "b": [np.nan]})
    assert not design.matrix(blank).any()


def test_free_text_is_refused() -> None:
    """A design takes numbers and keys."""
    refused("wrong-kind", Design.of, ColumnChoice(("x", "word"), oracle({"x": [0.0]})))
