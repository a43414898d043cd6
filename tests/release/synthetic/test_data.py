"""Synthetic data as it is published: rows, marginals, charts, files."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, Unit
from sulq import release as published
from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.release.base import Paid, Written
from sulq.release.space import CellSpace, Marginal
from sulq.release.synthetic.data import SyntheticData, made

COLUMNS = {
    "city": sulq.Category(["Haifa", "Lod"]),
    "code": sulq.Category([10, 20]),
    "rooms": sulq.Int(0, 2),
    "smoker": sulq.Bool(),
    "income": sulq.Real(0, 32),
    "visit": sulq.Date("2020-01-01", "2020-12-31"),
    "seen": sulq.Timestamp("2020-01-01T00:00:00", "2020-12-31T00:00:00"),
}
SPACE = CellSpace.of(list(COLUMNS), Schema.of("t", COLUMNS), 4)
CELLS = np.stack([np.random.default_rng(i).integers(0, size, 60) for i, size in enumerate(SPACE.sizes)], axis=1)
MEASURED = Marginal(
    ("rooms", "city"), ((0, 1, 2), ("Haifa", "Lod")), np.arange(6.0).reshape(3, 2), np.full((3, 2), 2.0)
)
DATA = SyntheticData(
    paid=Paid(Epsilon(1), Unit(), "dp"),
    attributes=SPACE.attributes,
    rows=made(SPACE, CELLS, np.random.default_rng(1)),
    method="mwem",
    total=120.0,
    measured=(MEASURED,),
    notes=("A note.",),
)


def test_the_rows_are_frames_of_the_declared_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pandas where it is there, Arrow always; names, kinds and bounds as declared."""
    frame = DATA.frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(COLUMNS)
    assert len(DATA) == len(frame) == 60
    assert {*frame["city"]} == {"Haifa", "Lod"}
    assert frame["income"].between(0, 32).all()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert isinstance(DATA.frame(), pa.Table)


def test_a_marginal_counts_the_rows_as_parts_of_the_total() -> None:
    """Axes in the order asked; the error is the measured one's and how far the rows are from it, or not known."""
    found = DATA.marginal(["city", "rooms"])
    expected = np.zeros((2, 3))
    np.add.at(expected, (CELLS[:, 0], CELLS[:, 2]), 2.0)
    assert np.array_equal(found.values, expected)
    told = np.arange(6.0).reshape(3, 2)
    assert found.standard_error == pytest.approx(np.hypot(2.0, expected - told.T))
    apart = expected.sum(axis=1) - told.sum(axis=0)
    assert DATA.marginal(["city"]).standard_error == pytest.approx(np.hypot(2.0 * np.sqrt(3), apart))
    assert DATA.marginal(["city"]).standard_error.min() > 20  # the control: the noise alone is 3.5
    assert np.isnan(DATA.marginal(["income"]).standard_error).all()
    for names in (["height"], [], ["city", "city"], "city"):
        with pytest.raises(QuestionError):
            DATA.marginal(names)


@pytest.mark.parametrize("written", ["parquet", "csv"])
@pytest.mark.parametrize("count", [60, 0])
def test_what_was_saved_is_loaded(tmp_path: Path, written: Written, count: int) -> None:
    """Rows, marginals, measured counts and notes come back; of no rows as well."""
    few = SyntheticData(
        paid=DATA.paid,
        attributes=DATA.attributes,
        rows=made(SPACE, CELLS[:count], np.random.default_rng(1)),
        method="aim",
        total=None,
        measured=DATA.measured if count else (),
    )
    few.save(tmp_path, written)
    found = published.load(tmp_path)
    assert isinstance(found, SyntheticData)
    assert found.rows.equals(few.rows)
    assert (found.method, found.total, found.notes) == ("aim", None, ())
    assert np.array_equal(found.marginal(["income", "seen"]).values, few.marginal(["income", "seen"]).values)
    for one, other in zip(found.measured, few.measured, strict=True):
        assert (one.names, one.labels) == (other.names, other.labels)
        assert np.array_equal(one.values, other.values)
        assert np.array_equal(one.standard_error, other.standard_error)


def test_the_page_shows_what_was_measured(tmp_path: Path) -> None:
    """Error bars of 95%, and how far the rows are; without measurements the columns and the note."""
    chart = DATA.charts()[0]
    assert chart.values == tuple(range(6))  # noqa: PD011 - a chart's, not a frame's
    assert chart.error == pytest.approx([max(1.96, np.log(20) / np.sqrt(2)) * 2] * 6, rel=1e-3)
    assert "in L1" in chart.said
    DATA.save(tmp_path)
    assert "Synthetic data: 60 rows" in (tmp_path / "index.html").read_text(encoding="utf-8")
    plain = SyntheticData(
        paid=DATA.paid, attributes=DATA.attributes, rows=DATA.rows, method="blr", total=None, notes=("A note.",)
    )
    assert [chart.title for chart in plain.charts()] == list(COLUMNS)
    assert plain.charts()[0].said == "A note."
